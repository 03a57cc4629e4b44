//! The trait that every backend implements, and the values that cross it.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use foreword_compose::Library;
use jiff::Timestamp;
use tokio::sync::broadcast;

use crate::{edit::Edit, error::StoreError, yaml::LoadError};

/// Where the time comes from.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Keeps one library.
///
/// Nothing here assumes a file. Readers take a snapshot and never wait; edits are validated whole, made durable, then
/// published.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// The library as it is now.
    fn snapshot(&self) -> Arc<Snapshot>;

    /// Whether what is kept can be read, and where it is.
    fn status(&self) -> Status;

    /// Applies one edit; the snapshot in which it is visible comes back. An edit that changes nothing writes nothing.
    async fn edit(&self, edit: Edit) -> Result<Arc<Snapshot>, StoreError>;

    /// Replaces the whole library by a YAML text.
    async fn import(&self, import: Import) -> Result<ImportReport, StoreError>;

    /// Goes one edit back; once more, and it goes one further. A new edit starts anew from there.
    async fn undo(&self) -> Result<Undone, StoreError>;

    /// Changes as they are published, edits and reloads alike.
    fn changes(&self) -> broadcast::Receiver<Arc<Change>>;

    /// The last changes, oldest first, at most [`RECENT_CHANGES`].
    fn recent_changes(&self) -> Vec<Arc<Change>>;
}

/// How many past changes a store remembers for those who come back.
pub const RECENT_CHANGES: usize = 100;

/// One immutable state of the library.
#[derive(Debug)]
pub struct Snapshot {
    /// The library.
    pub library: Library,
    /// The library as YAML, byte for byte as it is kept.
    pub text: Arc<str>,
    /// The first 16 hex digits of SHA-256 over `text`.
    pub revision: String,
    /// Where it comes from.
    pub source: Source,
    /// When it was loaded or written.
    pub loaded_at: Timestamp,
}

/// Where a library comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The library that Foreword ships; nothing was written yet.
    BuiltIn,
    /// A file.
    File(PathBuf),
}

/// How the store is.
#[derive(Debug, Clone)]
pub struct Status {
    /// The revision in use.
    pub revision: String,
    /// Where it comes from.
    pub source: Source,
    /// When it was loaded.
    pub loaded_at: Timestamp,
    /// Whether what is kept can be read.
    pub health: Health,
}

/// Whether what is kept can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// All is well.
    Healthy,
    /// The file is broken or gone; the last good library stays in use.
    Degraded(Vec<LoadError>),
}

/// A published change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Counts up by one with each change of this process.
    pub id: u64,
    /// The revision that it led to.
    pub revision: String,
    /// When it was published.
    pub at: Timestamp,
    /// What changed, in words.
    pub what: String,
}

/// A request to replace the whole library.
#[derive(Debug, Clone)]
pub struct Import {
    /// The YAML text.
    pub text: String,
    /// Only say what would change.
    pub dry_run: bool,
    /// Replace a file that cannot be read, keeping it beside the new one.
    pub replace_broken: bool,
}

/// What an import did, or would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportReport {
    /// A unified difference between the old text and the new one; empty if they are equal.
    pub difference: String,
    /// The revision after the import.
    pub revision: String,
    /// Whether it was written.
    pub written: bool,
    /// The name of the file that keeps the broken library, where one was replaced.
    pub kept_as: Option<String>,
}

/// What an undo did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undone {
    /// What was taken back, in the words of the history.
    pub what: String,
    /// The revision after it.
    pub revision: String,
}
