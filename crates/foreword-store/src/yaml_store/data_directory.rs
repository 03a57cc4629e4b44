//! The data directory, as far as the library is concerned: its version, the marker, the lock between processes.
//!
//! A directory that cannot be written to is no reason not to start (a configuration mounted read-only); the first edit
//! will say so.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use tracing::warn;

use super::file::absent_as_none;
use crate::error::OpenError;

/// The version of the data directory that this Foreword reads and writes.
const VERSION: u32 = 1;

const MARKER: &str = "library.seen";
const MARKER_TEXT: &str = "\
Foreword has seen system_prompts.yaml here. If the file is missing at a start, it refuses to start rather than use the
built-in library unasked. To start with the built-in library again, delete this marker.
";

/// How long an edit waits for another process: attempts, and the pause between two of them.
const LOCK_ATTEMPTS: u32 = 1_000;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Where Foreword keeps its data.
#[derive(Debug)]
pub(super) struct DataDirectory {
    path: PathBuf,
}

impl DataDirectory {
    /// Opens the directory, made on first use and readable by its owner only.
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        let io = |source| OpenError::Io {
            path: path.to_owned(),
            source,
        };
        if !path.try_exists().map_err(io)? {
            private_directory().create(path).map_err(io)?;
        }
        let directory = Self {
            path: path.to_owned(),
        };
        directory.check_version()?;
        Ok(directory)
    }

    /// A path in the directory.
    pub(super) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Whether a library file was ever seen here.
    pub(super) fn was_seen(&self) -> bool {
        self.marker().exists()
    }

    /// Remembers that there is a library file.
    pub(super) fn mark_seen(&self) {
        if !self.was_seen()
            && let Err(error) = fs::write(self.marker(), MARKER_TEXT)
        {
            warn!(%error, "Could not note that the library file was seen, so its absence at a later start will not be noticed");
        }
    }

    /// The file whose presence says that a library file was seen.
    pub(super) fn marker(&self) -> PathBuf {
        self.join(MARKER)
    }

    /// Waits until no other process edits the library; the lock ends when the file is dropped, or with the process.
    pub(super) fn lock(&self) -> io::Result<File> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.join("library.lock"))?;
        for _ in 0..LOCK_ATTEMPTS {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => thread::sleep(LOCK_PAUSE),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::new(
            ErrorKind::TimedOut,
            "another process holds `library.lock`",
        ))
    }

    fn check_version(&self) -> Result<(), OpenError> {
        let path = self.join("VERSION");
        let text = absent_as_none(fs::read_to_string(&path)).map_err(|source| OpenError::Io {
            path: path.clone(),
            source,
        })?;
        let text = text.unwrap_or_default();
        match text.trim() {
            // Nothing yet, or another process is just writing it.
            "" => {
                if let Err(error) = fs::write(&path, format!("{VERSION}\n")) {
                    warn!(%error, "The data directory cannot be written to, so the library cannot be edited");
                }
                Ok(())
            }
            found if found.parse().is_ok_and(|version: u32| version <= VERSION) => Ok(()),
            found => Err(OpenError::NewerVersion {
                path: self.path.clone(),
                found: found.to_owned(),
                supported: VERSION,
            }),
        }
    }
}

/// Makes directories that only their owner can enter.
pub(super) fn private_directory() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}
