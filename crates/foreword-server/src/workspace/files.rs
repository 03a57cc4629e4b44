//! Looking at the files beneath a directory's handle: regular files only, and no link that leads out.
//!
//! A sandbox may have made what lies there: pipes that never answer, links to anywhere, a million files, directories
//! without end. So nothing is opened that could block, types are asked of what was opened, and walks end.

use std::{
    fs::File,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use cap_std::fs::{Dir, Metadata, MetadataExt, OpenOptions, OpenOptionsExt};
use jiff::Timestamp;
use rustix::{fs::OFlags, io::Errno};

/// How many files are looked at, at most.
const MAX_FILES: usize = 100_000;

/// How many entries of any kind are looked at, at most.
const MAX_ENTRIES: usize = 1_000_000;

/// A regular file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileEntry {
    /// Relative to the directory.
    pub(crate) path: PathBuf,
    /// In bytes.
    pub(crate) size: u64,
    pub(crate) modified: Timestamp,
}

/// What a walk found.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) files: Vec<FileEntry>,
    /// Whether these are all.
    pub(crate) complete: bool,
}

/// What becomes of names that begin with a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DotFiles {
    Listed,
    LeftOut,
}

/// A file that can be read.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) file: File,
    pub(crate) size: u64,
    pub(crate) modified: Timestamp,
    /// Tells it from another file under the same name.
    pub(crate) inode: u64,
}

impl Listing {
    /// The same with the newest file first.
    pub(crate) fn newest_first(mut self) -> Self {
        self.files.sort_unstable_by(|left, right| {
            let by_time = right.modified.cmp(&left.modified);
            by_time.then_with(|| left.path.cmp(&right.path))
        });
        self
    }

    /// The same by names.
    pub(crate) fn by_name(mut self) -> Self {
        self.files
            .sort_unstable_by(|left, right| left.path.cmp(&right.path));
        self
    }
}

/// All regular files below `directory`; links are not followed.
pub(crate) fn list(directory: &Dir, dot_files: DotFiles) -> io::Result<Listing> {
    let mut listing = Listing {
        files: Vec::new(),
        complete: true,
    };
    let mut waiting = vec![PathBuf::new()];
    let mut entries = 0_usize;
    while let Some(path) = waiting.pop() {
        let inner;
        let current = if path.as_os_str().is_empty() {
            directory
        } else {
            // It may be gone, closed or too deep: then there is nothing to be had in it.
            match directory.open_dir(&path) {
                Ok(opened) => {
                    inner = opened;
                    &inner
                }
                Err(error) => {
                    unless_exhausted(error)?;
                    continue;
                }
            }
        };
        for entry in current.entries()? {
            entries += 1;
            if entries > MAX_ENTRIES || listing.files.len() == MAX_FILES {
                listing.complete = false;
                return Ok(listing);
            }
            let Ok(entry) = entry else { continue };
            let name = entry.file_name();
            if dot_files == DotFiles::LeftOut && name.as_bytes().starts_with(b".") {
                continue;
            }
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() {
                waiting.push(path.join(name));
            } else if kind.is_file()
                && let Ok(metadata) = entry.metadata()
            {
                listing.files.push(FileEntry {
                    path: path.join(name),
                    size: metadata.len(),
                    modified: modified(&metadata),
                });
            }
        }
    }
    Ok(listing)
}

/// Opens a regular file; none where there is none that may be read.
pub(crate) fn open(directory: &Dir, path: &Path) -> io::Result<Option<OpenFile>> {
    let mut options = OpenOptions::new();
    // A pipe would wait for somebody who writes into it.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    options.read(true).custom_flags(flags.bits().cast_signed());
    let file = match directory.open_with(path, &options) {
        Ok(file) => file,
        Err(error) => return unless_exhausted(error).map(|()| None),
    };
    let metadata = file.metadata()?;
    Ok(metadata.is_file().then(|| OpenFile {
        size: metadata.len(),
        modified: modified(&metadata),
        inode: metadata.ino(),
        file: file.into_std(),
    }))
}

/// A time outside of what can be written counts as the beginning of time.
pub(super) fn modified(metadata: &Metadata) -> Timestamp {
    let nanoseconds = i32::try_from(metadata.mtime_nsec()).unwrap_or_default();
    Timestamp::new(metadata.mtime(), nanoseconds).unwrap_or_default()
}

/// Whatever is wrong with a path means that there is no such file; what is wrong with this machine does not.
fn unless_exhausted(error: io::Error) -> io::Result<()> {
    match Errno::from_io_error(&error) {
        Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::IO) => Err(error),
        _ => Ok(()),
    }
}
