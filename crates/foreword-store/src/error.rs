//! Why a store could not do what was asked, as far as a caller can act on it.

use std::{io, path::PathBuf};

use crate::{
    edit::EditError,
    yaml::{LoadError, RewriteError},
};

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
    /// The change is made and in force, but may be lost if the power fails now.
    #[error("the change is made, but the disk did not confirm that it will last")]
    Unconfirmed(#[source] io::Error),
    /// The library cannot be kept right now: disk full, read-only, gone. Nothing was changed.
    #[error("the library cannot be stored right now")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        Self::Unavailable(Box::new(error))
    }
}

impl From<RewriteError> for StoreError {
    fn from(error: RewriteError) -> Self {
        match error {
            RewriteError::Faults(faults) => Self::Refused(EditError::Invalid(faults)),
            RewriteError::Aliased { anchor } => Self::Aliased { anchor },
            RewriteError::Unwritable(reason) => Self::Unwritable(reason),
        }
    }
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The library's file has mistakes; nothing is started over it.
    #[error("the library file `{}` is broken: {}", path.display(), first(errors))]
    Broken {
        /// The file.
        path: PathBuf,
        /// All its mistakes.
        errors: Vec<LoadError>,
    },
    /// There was a library file, and now there is none.
    #[error(
        "the library file `{}` is missing, but was there before; put it back, or delete `{}` to start with the built-in library",
        path.display(),
        marker.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
        /// The file that says that it was there.
        marker: PathBuf,
    },
    /// The data directory was written by a newer Foreword.
    #[error(
        "the data directory `{}` has version `{found}`, and this Foreword knows {supported}; use a newer Foreword, or another directory",
        path.display()
    )]
    NewerVersion {
        /// The directory.
        path: PathBuf,
        /// What its `VERSION` says.
        found: String,
        /// The newest version that is known here.
        supported: u32,
    },
    /// Something could not be read or made.
    #[error("could not open `{}`", path.display())]
    Io {
        /// What was to be opened.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

fn first(errors: &[LoadError]) -> String {
    match errors {
        [] => "no details".to_owned(),
        [only] => only.to_string(),
        [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
    }
}
