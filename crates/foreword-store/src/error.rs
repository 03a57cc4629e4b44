//! Why a store could not do what was asked, as far as a caller can act on it.

use crate::{edit::EditError, yaml::LoadError};

/// Why a store operation failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The edit does not apply to the library as it is.
    #[error(transparent)]
    Refused(#[from] EditError),
    /// The library's file is broken; edits wait until it is mended.
    #[error("the library file is broken, so it cannot be edited: {}", first(.0))]
    Broken(Vec<LoadError>),
    /// A text that was to become the library is not one.
    #[error("the library is not valid: {}", first(.0))]
    Invalid(Vec<LoadError>),
    /// The edit would change what an alias points to.
    #[error("the value is shared through the YAML anchor `&{anchor}`; change it in the file")]
    Aliased {
        /// The anchor's name.
        anchor: String,
    },
    /// The file was changed by somebody else and the edit could not be merged.
    #[error("the library was changed by another process; read it again")]
    Conflict,
    /// There is no earlier version.
    #[error("there is nothing to undo")]
    NothingToUndo,
    /// The edit could not be written so that it reads back the same; nothing was changed.
    #[error("the edit could not be written safely: {0}")]
    Unwritable(String),
    /// The library cannot be kept right now: disk full, read-only, gone.
    #[error("the library cannot be stored right now")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

fn first(errors: &[LoadError]) -> String {
    match errors {
        [] => "no details".to_owned(),
        [only] => only.to_string(),
        [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
    }
}
