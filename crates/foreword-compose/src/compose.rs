//! Decides which parts a composition has, in which order, and joins them.

use std::ops::Range;

use crate::{
    diagnostic::Diagnostic,
    library::{Library, SectionType},
    request::Request,
};

/// A system prompt with everything there is to know about it, except its revision (see [`crate::revision`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Composition {
    /// The prompt.
    pub text: String,
    /// What it is made of, in order.
    pub parts: Vec<Part>,
    /// The number of bytes before the first one that a session or request value put there.
    pub stable_prefix: usize,
    /// Placeholders that were recognised but had no value, in order of first appearance.
    pub unresolved: Vec<String>,
    /// Problems of this composition.
    pub diagnostics: Vec<Diagnostic>,
}

/// A piece of a composition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Where it comes from.
    pub source: PartSource,
    /// The section's or block's id; a fixed word for the others.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// The label, of sections.
    pub section_type: Option<SectionType>,
    /// Where it lies in the text, as UTF-8 byte offsets.
    pub range: Range<usize>,
    /// Whether it is the same for all sessions.
    pub stability: Stability,
    /// The place's priority; 0 for parts that have none.
    pub priority: i64,
}

/// Where a part comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartSource {
    /// The global prompt.
    Global,
    /// The tools prompt.
    Tools,
    /// A section of the profile.
    Section,
    /// A context block.
    Context,
    /// The override.
    Override,
}

impl PartSource {
    /// The word that stands for it in answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Tools => "tools",
            Self::Section => "section",
            Self::Context => "context",
            Self::Override => "override",
        }
    }
}

/// Whether a part is the same for all sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stability {
    /// The same for all sessions.
    Static,
    /// Made of, or holding, a session or request value.
    Session,
}

/// The request named a profile that the library does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("profile `{id}` does not exist; {}", known_profiles(known))]
pub struct ProfileNotFound {
    /// The id asked for.
    pub id: String,
    /// The ids that exist, in file order.
    pub known: Vec<String>,
}

/// How many known ids the message of [`ProfileNotFound`] lists.
const KNOWN_IN_MESSAGE: usize = 20;

fn known_profiles(known: &[String]) -> String {
    if known.is_empty() {
        return "the library has no profiles".to_owned();
    }
    let listed: Vec<String> = known
        .iter()
        .take(KNOWN_IN_MESSAGE)
        .map(|id| format!("`{id}`"))
        .collect();
    let more = known.len().saturating_sub(KNOWN_IN_MESSAGE);
    let rest = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("known profiles: {}{rest}", listed.join(", "))
}

/// Composes the system prompt that `request` asks of `library`.
///
/// # Errors
///
/// [`ProfileNotFound`] if the request names a profile that the library does not have. All other mistakes are
/// diagnostics beside the text.
pub fn compose(_library: &Library, _request: &Request<'_>) -> Result<Composition, ProfileNotFound> {
    Ok(Composition {
        text: String::new(),
        parts: Vec::new(),
        stable_prefix: 0,
        unresolved: Vec::new(),
        diagnostics: Vec::new(),
    })
}
