//! Changes to a library, as functions from one draft to the next.
//!
//! An [`Edit`] can be applied again to a newer library, so that a change of the file behind our back is merged rather
//! than overwritten. Preconditions (`If-Match`) are part of the function for the same reason.

use std::{fmt, sync::Arc};

use foreword_compose::{Fault, Library, LibraryDraft};

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

    /// The draft that this edit makes of `library`.
    pub fn apply(&self, library: &Library) -> Result<LibraryDraft, EditError> {
        (self.apply)(library)
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
    #[error("{kind} `{id}` does not exist")]
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
        /// `profile` or `section`.
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
    #[error("section `{id}` is used by {}", profiles.join(", "))]
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
    /// The change itself is not valid.
    #[error("the change is not valid")]
    Invalid(Vec<Fault>),
}
