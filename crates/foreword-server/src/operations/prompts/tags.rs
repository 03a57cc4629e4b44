//! Names the editable state of an item, so that a writer can say which state it means to change.
//!
//! A tag covers what a caller can change through the item's own routes, nothing that is computed and nothing that
//! belongs to another item: the text of a shared section is part of that section's tag, not of its users'.

use foreword_compose::{GlobalPrompt, Library, Profile, SharedSection, WorkspaceGuide};
use foreword_store::EditError;
use indexmap::IndexMap;
use sha2::{Digest, Sha256};

/// What must hold of an item for a write to happen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Precondition {
    /// Nothing: the last writer wins on that item.
    #[default]
    None,
    /// The item exists, whatever its state.
    Exists,
    /// The item is in one of these states.
    OneOf(Vec<String>),
}

impl Precondition {
    /// Whether an item in the state `current` may be written.
    pub(super) fn check(&self, current: &str) -> Result<(), EditError> {
        match self {
            Self::OneOf(tags) if !tags.iter().any(|tag| tag == current) => Err(EditError::Stale {
                current: current.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// The tag of a profile with its places.
pub(super) fn profile_tag(library: &Library, profile: &Profile) -> String {
    let mut tag = TagBuilder::new("profile")
        .text(&profile.id)
        .text(&profile.name)
        .optional(profile.description.as_deref())
        .flag(is_default(library, profile))
        .flag(profile.tools_prompt);
    for place in library.places(profile) {
        tag = tag.text(&place.section.id).flag(place.shared);
        if !place.shared {
            tag = tag
                .text(&place.section.name)
                .text(place.section.section_type.as_str())
                .text(&place.section.content);
        }
        tag = tag
            .flag(place.enabled)
            .number(place.order)
            .number(place.priority);
    }
    tag.finish()
}

/// The tag of a shared section.
pub(super) fn section_tag(shared: &SharedSection) -> String {
    TagBuilder::new("section")
        .text(&shared.section.id)
        .text(&shared.section.name)
        .text(shared.section.section_type.as_str())
        .text(&shared.section.content)
        .optional(shared.description.as_deref())
        .finish()
}

/// The tag of the global prompt.
pub(super) fn global_prompt_tag(prompt: &GlobalPrompt) -> String {
    TagBuilder::new("global_prompt")
        .text(&prompt.content)
        .flag(prompt.enabled)
        .finish()
}

/// The tag of the workspace guide.
pub(super) fn workspace_guide_tag(guide: &WorkspaceGuide) -> String {
    TagBuilder::new("workspace_guide")
        .text(&guide.content)
        .flag(guide.enabled)
        .finish()
}

/// The tag of the variables, whose sequence is part of their state.
pub(super) fn variables_tag(variables: &IndexMap<String, String>) -> String {
    let tag = TagBuilder::new("variables");
    let tag = variables
        .iter()
        .fold(tag, |tag, (name, value)| tag.text(name).text(value));
    tag.finish()
}

/// Whether `profile` is what requests get that name none.
pub(super) fn is_default(library: &Library, profile: &Profile) -> bool {
    library
        .default_profile()
        .is_some_and(|default| default.id == profile.id)
}

/// Hashes values one after another, each with its length, so that no two lists of values give the same bytes.
struct TagBuilder(Sha256);

impl TagBuilder {
    fn new(kind: &str) -> Self {
        Self(Sha256::new()).text(kind)
    }

    fn text(mut self, text: &str) -> Self {
        self.0.update((text.len() as u64).to_le_bytes());
        self.0.update(text);
        self
    }

    fn optional(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.flag(true).text(text),
            None => self.flag(false),
        }
    }

    fn flag(mut self, flag: bool) -> Self {
        self.0.update([u8::from(flag)]);
        self
    }

    fn number(mut self, number: i64) -> Self {
        self.0.update(number.to_le_bytes());
        self
    }

    fn finish(self) -> String {
        hex::encode(&self.0.finalize()[..8])
    }
}
