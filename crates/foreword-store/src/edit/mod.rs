//! Changes to a library, as functions from a library to the next draft.
//!
//! An [`Edit`] can be applied again to a newer library, so that a change of the file behind our back is merged rather
//! than overwritten. Preconditions (`If-Match`) are part of the function for the same reason. The ready-made edits
//! below are what REST and the command line are made of; each says in words what it does, for the history and the
//! events. Deliberately absent: whether the resulting library is valid as a whole, which the store checks once for all.

mod places;
mod profiles;
mod sections;
mod texts;

use std::{fmt, sync::Arc};

use foreword_compose::{Fault, Library, LibraryDraft, Profile, nearest};

pub use places::{PlaceInput, PlacePatch, order_places, patch_place, put_place, remove_place};
pub use profiles::{
    ProfileInput, ProfilePatch, create_profile, delete_profile, patch_profile, replace_profile,
    set_default_profile,
};
pub use sections::{
    SectionInput, SectionPatch, create_section, delete_section, patch_section, replace_section,
};
pub use texts::{set_global_prompt, set_variables, set_workspace_guide};

/// The function inside an [`Edit`].
pub type EditFn = dyn Fn(&Library) -> Result<LibraryDraft, EditError> + Send + Sync;

/// One change to the library.
#[derive(Clone)]
pub struct Edit {
    /// What it does, in words for the history, such as "replaced profile `developer`".
    pub what: String,
    apply: Arc<EditFn>,
}

impl Edit {
    /// An edit that does `apply` and is called `what` in the history.
    pub fn new(
        what: impl Into<String>,
        apply: impl Fn(&Library) -> Result<LibraryDraft, EditError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            what: what.into(),
            apply: Arc::new(apply),
        }
    }

    /// The same edit, done only where `check` finds nothing against it.
    ///
    /// The check sees the very library that the edit is applied to, also when the edit is applied again.
    #[must_use]
    pub fn checked(
        self,
        check: impl Fn(&Library) -> Result<(), EditError> + Send + Sync + 'static,
    ) -> Self {
        let Self { what, apply } = self;
        Self::new(what, move |library| {
            check(library)?;
            apply(library)
        })
    }

    /// The draft that this edit makes of `library`.
    pub fn apply(&self, library: &Library) -> Result<LibraryDraft, EditError> {
        (self.apply)(library)
    }

    /// An edit that changes a copy of the draft in place.
    fn in_place(
        what: String,
        change: impl Fn(&Library, &mut LibraryDraft) -> Result<(), EditError> + Send + Sync + 'static,
    ) -> Self {
        Self::new(what, move |library| {
            let mut draft = library.draft().clone();
            change(library, &mut draft)?;
            Ok(draft)
        })
    }
}

impl fmt::Debug for Edit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Edit")
            .field("what", &self.what)
            .finish_non_exhaustive()
    }
}

/// Why an edit does not apply to the library as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The item does not exist.
    #[error("{kind} `{id}` does not exist{}", did_you_mean(.nearest.as_deref()))]
    NotFound {
        /// `profile` or `section`.
        kind: &'static str,
        /// The id asked for.
        id: String,
        /// The nearest id that exists.
        nearest: Option<String>,
    },
    /// The id is taken.
    #[error("{kind} `{id}` exists already")]
    AlreadyExists {
        /// `profile`, `section` or `inline section`.
        kind: &'static str,
        /// The id asked for.
        id: String,
    },
    /// The item changed since the caller read it.
    #[error("it was changed since you read it")]
    Stale {
        /// The entity tag in force, without quotes.
        current: String,
    },
    /// A shared section that profiles use.
    #[error("section `{id}` is used by {}; remove it there first", quoted(.profiles))]
    InUse {
        /// The section's id.
        id: String,
        /// The profiles that use it.
        profiles: Vec<String>,
    },
    /// The default profile cannot go while others exist.
    #[error("profile `{id}` is the default; make another profile the default first")]
    IsDefault {
        /// The profile's id.
        id: String,
    },
    /// The change itself is not valid. Pointers lead into the resulting library, those to what only the caller knows
    /// (the text of a shared section, an order) into what the caller gave.
    #[error("the change is not valid: {}", messages(.0))]
    Invalid(Vec<Fault>),
}

impl EditError {
    /// The refusal of an id that is not among the known ones.
    pub fn not_found<'a>(
        kind: &'static str,
        id: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        Self::NotFound {
            kind,
            id: id.to_owned(),
            nearest: nearest(id, known).map(str::to_owned),
        }
    }
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |id| format!("; did you mean `{id}`?"))
}

fn quoted(ids: &[String]) -> String {
    let quoted: Vec<_> = ids.iter().map(|id| format!("`{id}`")).collect();
    quoted.join(", ")
}

fn messages(faults: &[Fault]) -> String {
    let messages: Vec<_> = faults.iter().map(|fault| fault.message.as_str()).collect();
    messages.join("; ")
}

/// Accepts a draft unless there are `faults`; with them come those of the library that it would be, so that a caller is
/// told all at once.
fn accept(draft: &LibraryDraft, mut faults: Vec<Fault>) -> Result<(), EditError> {
    if faults.is_empty() {
        return Ok(());
    }
    faults.extend(Library::new(draft.clone()).err().unwrap_or_default());
    Err(EditError::Invalid(faults))
}

/// Where the profile `id` stands in the draft.
fn profile_position(library: &Library, id: &str) -> Result<usize, EditError> {
    let profiles = &library.draft().profiles;
    profiles
        .iter()
        .position(|profile| profile.id == id)
        .ok_or_else(|| {
            EditError::not_found(
                "profile",
                id,
                profiles.iter().map(|profile| profile.id.as_str()),
            )
        })
}

/// The profile `id`.
fn find_profile<'a>(library: &'a Library, id: &str) -> Result<&'a Profile, EditError> {
    profile_position(library, id).map(|at| &library.draft().profiles[at])
}
