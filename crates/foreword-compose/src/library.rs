//! What authors write: the values of a prompt library.
//!
//! A [`LibraryDraft`] is plain data in which anything may stand. A [`Library`] is a draft that was checked
//! ([`Library::new`]): ids are unique, references resolve, there is at most one default. Only a `Library` composes.
//! Deliberately absent: how the values are written down (YAML, JSON); that is the stores' and the API's business.

use std::{collections::HashMap, fmt, str::FromStr};

use indexmap::IndexMap;

use crate::validate::{Fault, faults};

/// The largest length of a profile or section id, in bytes.
pub const MAX_ID_LENGTH: usize = 64;

/// A library as written, not yet checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LibraryDraft {
    /// The text that comes before every profile's sections.
    pub global_prompt: Option<GlobalPrompt>,
    /// Names that may stand in braces in prompt text, with their default values, in file order.
    pub variables: IndexMap<String, String>,
    /// Sections that any profile can use by id, in file order.
    pub sections: Vec<SharedSection>,
    /// The profiles, in file order.
    pub profiles: Vec<Profile>,
    /// The text about the workspace; absent means the one that Foreword ships.
    pub workspace_guide: Option<WorkspaceGuide>,
}

/// The prompt that applies whatever the profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalPrompt {
    /// The text, with placeholders.
    pub content: String,
    /// Whether it is part of compositions.
    pub enabled: bool,
}

/// The per-session text that tells the model about its workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceGuide {
    /// The text, with placeholders.
    pub content: String,
    /// Whether sessions get it.
    pub enabled: bool,
}

/// A section that is written once and used by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedSection {
    /// The section itself.
    pub section: Section,
    /// A note for authors; never part of a prompt.
    pub description: Option<String>,
}

/// A piece of prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Matches `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`.
    pub id: String,
    /// What people call it; the id where the author gave none.
    pub name: String,
    /// A label; it never changes order or text.
    pub section_type: SectionType,
    /// The text, with placeholders.
    pub content: String,
}

/// The seven labels of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SectionType {
    /// Identity and personality.
    Persona,
    /// What is to be done.
    Task,
    /// How answers look.
    Format,
    /// Rules.
    Constraints,
    /// Examples to follow.
    Examples,
    /// Background.
    Context,
    /// Anything else.
    #[default]
    Custom,
}

/// A named list of sections for one use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Matches `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`; compared exactly.
    pub id: String,
    /// What people call it; the id where the author gave none.
    pub name: String,
    /// A note for people; never part of a prompt.
    pub description: Option<String>,
    /// Whether it is used when a request names no profile.
    pub is_default: bool,
    /// Whether the tools prompt is part of this profile's compositions.
    pub tools_prompt: bool,
    /// The entries of `sections`, in file order.
    pub places: Vec<Place>,
    /// The short form: ids of shared sections, which come after `places`.
    pub section_ids: Vec<String>,
}

/// One entry of a profile's `sections`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// What stands there.
    pub content: PlaceContent,
    /// Whether it is part of compositions.
    pub enabled: bool,
    /// Ascending; equal orders keep file order.
    pub order: i64,
    /// Higher goes first when a short form has no room for everything.
    pub priority: i64,
}

/// What a place holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceContent {
    /// A section written in the profile itself.
    Inline(Section),
    /// The id of a shared section.
    Shared(String),
}

impl Place {
    /// The id under which the section is known in its profile.
    #[must_use]
    pub fn id(&self) -> &str {
        match &self.content {
            PlaceContent::Inline(section) => &section.id,
            PlaceContent::Shared(id) => id,
        }
    }
}

/// A place with its section looked up, whichever way the profile wrote it.
#[derive(Debug, Clone, Copy)]
pub struct ResolvedPlace<'a> {
    /// The section.
    pub section: &'a Section,
    /// Whether it is a shared one.
    pub shared: bool,
    /// Whether it is part of compositions.
    pub enabled: bool,
    /// The order in force; entries of `section_ids` take the highest of the profile.
    pub order: i64,
    /// The priority in force.
    pub priority: i64,
}

/// A checked library, ready to compose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    draft: LibraryDraft,
    profile_index: HashMap<String, usize>,
    section_index: HashMap<String, usize>,
    default_profile: Option<usize>,
}

impl Library {
    /// Checks `draft` as a whole.
    ///
    /// # Errors
    ///
    /// Every fault of the draft, in the order of its parts, each with a JSON pointer to the value at fault.
    pub fn new(draft: LibraryDraft) -> Result<Self, Vec<Fault>> {
        let faults = faults(&draft);
        if !faults.is_empty() {
            return Err(faults);
        }
        let profile_index = draft
            .profiles
            .iter()
            .enumerate()
            .map(|(at, profile)| (profile.id.clone(), at))
            .collect();
        let section_index = draft
            .sections
            .iter()
            .enumerate()
            .map(|(at, shared)| (shared.section.id.clone(), at))
            .collect();
        let default_profile = draft
            .profiles
            .iter()
            .position(|profile| profile.is_default)
            .or_else(|| (!draft.profiles.is_empty()).then_some(0));
        Ok(Self {
            draft,
            profile_index,
            section_index,
            default_profile,
        })
    }

    /// The values it was made of.
    #[must_use]
    pub fn draft(&self) -> &LibraryDraft {
        &self.draft
    }

    /// The profile with exactly this id.
    #[must_use]
    pub fn profile(&self, id: &str) -> Option<&Profile> {
        self.profile_index
            .get(id)
            .map(|at| &self.draft.profiles[*at])
    }

    /// The profile marked as default, else the first; none only in a library without profiles.
    #[must_use]
    pub fn default_profile(&self) -> Option<&Profile> {
        self.default_profile.map(|at| &self.draft.profiles[at])
    }

    /// The shared section with exactly this id.
    #[must_use]
    pub fn section(&self, id: &str) -> Option<&SharedSection> {
        self.section_index
            .get(id)
            .map(|at| &self.draft.sections[*at])
    }

    /// All places of `profile`, in file order, `section_ids` last, disabled ones too.
    ///
    /// `profile` must come from this library; references are looked up here.
    pub fn places<'a>(
        &'a self,
        profile: &'a Profile,
    ) -> impl Iterator<Item = ResolvedPlace<'a>> + 'a {
        let highest = profile
            .places
            .iter()
            .map(|place| place.order)
            .max()
            .unwrap_or(0);
        let written = profile.places.iter().filter_map(move |place| {
            let (section, shared) = match &place.content {
                PlaceContent::Inline(section) => (section, false),
                PlaceContent::Shared(id) => (&self.section(id)?.section, true),
            };
            Some(ResolvedPlace {
                section,
                shared,
                enabled: place.enabled,
                order: place.order,
                priority: place.priority,
            })
        });
        let listed = profile.section_ids.iter().filter_map(move |id| {
            let section = &self.section(id)?.section;
            Some(ResolvedPlace {
                section,
                shared: true,
                enabled: true,
                order: highest,
                priority: 0,
            })
        });
        written.chain(listed)
    }
}

impl SectionType {
    /// All of them, in the order in which the documentation lists them.
    pub const ALL: [Self; 7] = [
        Self::Persona,
        Self::Task,
        Self::Format,
        Self::Constraints,
        Self::Examples,
        Self::Context,
        Self::Custom,
    ];

    /// The word that stands for it in files and answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Persona => "persona",
            Self::Task => "task",
            Self::Format => "format",
            Self::Constraints => "constraints",
            Self::Examples => "examples",
            Self::Context => "context",
            Self::Custom => "custom",
        }
    }
}

impl fmt::Display for SectionType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A word that is not one of the seven section types.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown section type `{0}`")]
pub struct UnknownSectionType(pub String);

impl FromStr for SectionType {
    type Err = UnknownSectionType;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|section_type| section_type.as_str() == word)
            .ok_or_else(|| UnknownSectionType(word.to_owned()))
    }
}
