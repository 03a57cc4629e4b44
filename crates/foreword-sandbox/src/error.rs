//! Why work in a sandbox could not be done, as far as a caller can act on it.
//!
//! A command that fails, is ended or runs out of something is no error: that is said by [`CommandEnd`](crate::CommandEnd).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{
    spec::SandboxKey,
    state::{Unavailable, Usage},
};

/// Why a sandbox operation failed.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// There are no sandboxes here.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// As many run as may, and each is at work.
    #[error(
        "all {limit} sandboxes are in use; try again when one of their commands has ended, or raise `sandbox.max_running`"
    )]
    Exhausted {
        /// How many may run.
        limit: usize,
    },
    /// It was stopped while the operation ran.
    #[error("the sandbox of `{0}` was stopped while this ran")]
    Stopped(SandboxKey),
    /// Every process that the sandbox may have is taken, even after a fresh start.
    #[error("the sandbox of `{0}` has no process left to run this")]
    NoProcessLeft(SandboxKey),
    /// The command cannot be given to bash.
    #[error("the command {0}")]
    InvalidCommand(&'static str),
    /// The workspace holds more than it may, so nothing is added to it.
    #[error(
        "the workspace holds {} MiB of the {} MiB it may hold; delete what is not needed, then write again",
        .0.used.div_ceil(1 << 20),
        .0.limit >> 20
    )]
    OverQuota(Usage),
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The backend failed in a way that nobody foresaw.
    #[error("the {backend} backend failed")]
    Backend {
        /// Which.
        backend: &'static str,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Why a file operation failed. Paths are as the sandbox sees them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum FileError {
    /// There is no such file.
    #[error("no such file: `{}`", .0.path.display())]
    NotFound(NotFound),
    /// A directory was needed.
    #[error("not a directory: `{}`", .0.display())]
    NotADirectory(PathBuf),
    /// A file was needed.
    #[error("`{}` is a directory", .0.display())]
    IsADirectory(PathBuf),
    /// It is a pipe, socket or device, which could block for ever.
    #[error("`{}` is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// The place cannot be written to.
    #[error("`{}` is in a place that is read only", .0.display())]
    ReadOnly(PathBuf),
    /// The file's permission bits forbid it.
    #[error("permission denied: `{}`", .0.display())]
    Denied(PathBuf),
    /// There is no space left, or the file would be larger than a file may be.
    #[error("no space is left to write `{}`", .0.display())]
    NoSpace(PathBuf),
    /// A name is too long, has a NUL or an endless chain of links.
    #[error("`{}` cannot be a path: {reason}", .path.display())]
    InvalidPath {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The operation took too long, or a process of the sandbox ended it.
    #[error("reading or writing `{}` was interrupted", .0.display())]
    Interrupted(PathBuf),
    /// Something else.
    #[error("`{}`: {reason}", .path.display())]
    Other {
        /// Which.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
}

/// A file that is not there, and what is there instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotFound {
    /// Which was asked for.
    pub path: PathBuf,
    /// The nearest parent that exists.
    pub nearest: PathBuf,
    /// Names in it, sorted; at most 200.
    pub names: Vec<String>,
}
