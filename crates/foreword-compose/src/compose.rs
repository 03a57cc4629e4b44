//! Decides which parts a composition has, and in which order.
//!
//! Mistakes of library or request are not errors: they become [`Diagnostic`]s beside the text, so a preview can show
//! both. The one exception is a profile that does not exist: there is no text that would be right. The work depends on
//! the texts that are composed, never on how many profiles the library has. Deliberately absent: how the parts become
//! one text (`assembly.rs`), and what is cut where a client has no room for everything.

use std::ops::Range;

use crate::{
    assembly::{self, Piece},
    diagnostic::Diagnostic,
    library::{Library, Profile, ResolvedPlace, SectionType},
    request::{Request, Trust},
};

/// Composes the system prompt that `request` asks of `library`.
///
/// # Errors
///
/// [`ProfileNotFound`] if the request names a profile that the library does not have. All other mistakes are
/// diagnostics beside the text.
pub fn compose(library: &Library, request: &Request<'_>) -> Result<Composition, ProfileNotFound> {
    let profile = choose_profile(library, request.profile_id)?;
    let composition = match request.system_override {
        Some(text) if !text.trim().is_empty() => assembly::verbatim(text, library, request),
        _ => assembly::assemble(&plan(library, profile, request), library, request),
    };
    Ok(composition)
}

/// A system prompt with everything there is to know about it, except its revision (see [`crate::revision()`]).
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

fn choose_profile<'a>(
    library: &'a Library,
    id: Option<&str>,
) -> Result<Option<&'a Profile>, ProfileNotFound> {
    let Some(id) = id else {
        return Ok(library.default_profile());
    };
    match library.profile(id) {
        Some(profile) => Ok(Some(profile)),
        None => Err(ProfileNotFound {
            id: id.to_owned(),
            known: library
                .draft()
                .profiles
                .iter()
                .map(|profile| profile.id.clone())
                .collect(),
        }),
    }
}

/// The pieces of the composition in order, blank ones too.
fn plan<'a>(
    library: &'a Library,
    profile: Option<&'a Profile>,
    request: &'a Request<'_>,
) -> Vec<Piece<'a>> {
    let global = library
        .draft()
        .global_prompt
        .as_ref()
        .filter(|global| global.enabled)
        .map(|global| Piece {
            source: PartSource::Global,
            id: "global",
            name: "Global prompt",
            section_type: None,
            text: &global.content,
            trust: Trust::Library,
            priority: 0,
        });
    let tools = profile
        .is_none_or(|profile| profile.tools_prompt)
        .then_some(Piece {
            source: PartSource::Tools,
            id: "tools",
            name: "Tools",
            section_type: None,
            text: request.tools_prompt,
            trust: Trust::Foreign,
            priority: 0,
        });
    let sections = sections_in_order(library, profile)
        .into_iter()
        .map(|place| Piece {
            source: PartSource::Section,
            id: &place.section.id,
            name: &place.section.name,
            section_type: Some(place.section.section_type),
            text: &place.section.content,
            trust: Trust::Library,
            priority: place.priority,
        });
    let context = request.context.iter().map(|block| Piece {
        source: PartSource::Context,
        id: &block.id,
        name: &block.name,
        section_type: None,
        text: &block.text,
        trust: block.trust,
        priority: 0,
    });
    let mut pieces = Vec::with_capacity(sections.len() + request.context.len() + 2);
    pieces.extend(global.into_iter().chain(tools));
    pieces.extend(sections.chain(context));
    pieces
}

fn sections_in_order<'a>(
    library: &'a Library,
    profile: Option<&'a Profile>,
) -> Vec<ResolvedPlace<'a>> {
    let Some(profile) = profile else {
        return Vec::new();
    };
    let mut places = Vec::with_capacity(profile.places.len() + profile.section_ids.len());
    places.extend(library.places(profile).filter(|place| place.enabled));
    // A stable sort: equal orders keep their position in the file.
    places.sort_by_key(|place| place.order);
    places
}
