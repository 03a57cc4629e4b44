//! Taking uploads in: written to a file of their own, checked, and put in place by a new name.
//!
//! The cost of an upload does not depend on how many there are: how much they take together is written down, and the file
//! that holds it is also the lock under which files come and go. Should it be wrong after a crash, it says too much, and
//! then the files are counted before an upload is refused. Deliberately absent: where the bytes come from.

use std::{
    fs::{File, OpenOptions, Permissions, TryLockError},
    io::{self, Read, Seek, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::Path,
    time::{Duration, SystemTime},
};

use cap_std::{ambient_authority, fs::Dir};
use md5::Md5;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use super::{
    Workspace,
    files::{self, DotFiles},
    hashes, layout,
    name::UploadName,
};
use crate::config::UploadsConfig;

/// Holds how much the uploads take together.
const TOTAL: &str = "total";

/// How many digits it is written with: what a crash cut short is no number then.
const TOTAL_DIGITS: usize = 20;

/// How long an upload takes at most from its file to the lock on it.
const BEGINNING: Duration = Duration::from_mins(1);

/// An upload on its way; nothing remains of it unless it is finished.
#[derive(Debug)]
pub(crate) struct Part {
    file: NamedTempFile,
    sha256: Sha256,
    md5: Md5,
    size: u64,
    max_bytes: u64,
}

/// An upload that is in place.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) size: u64,
    pub(crate) md5: String,
    pub(crate) sha256: String,
    /// Whether there was a file under that name before.
    pub(crate) replaced: bool,
}

/// Why an upload was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UploadError {
    #[error("the file is larger than the {max_bytes} bytes that are taken here")]
    FileTooLarge { max_bytes: u64 },
    #[error(
        "the chat's uploads would take {needed} bytes together, more than the {max_total_bytes} that they may; delete some"
    )]
    TotalTooLarge { needed: u64, max_total_bytes: u64 },
    #[error("there is a directory under this name; choose another")]
    IsDirectory,
    #[error("one of the directories in this name is a file; choose another name")]
    InsideFile,
    #[error("there is no such file")]
    NotFound,
    #[error("the upload cannot be kept")]
    Failed(#[from] io::Error),
}

impl Part {
    /// Begins an upload of `declared` bytes, if the client says how many.
    pub(crate) fn begin(
        workspace: &Workspace,
        config: &UploadsConfig,
        declared: Option<u64>,
    ) -> Result<Self, UploadError> {
        let max_bytes = config.max_bytes;
        if declared.is_some_and(|declared| declared > max_bytes) {
            return Err(UploadError::FileTooLarge { max_bytes });
        }
        let parts = workspace.path.join(layout::PARTS);
        let file = locked(|| NamedTempFile::new_in(&parts))?;
        let readable = Permissions::from_mode(0o644);
        file.as_file().set_permissions(readable)?;
        Ok(Self {
            file,
            sha256: Sha256::new(),
            md5: Md5::new(),
            size: 0,
            max_bytes,
        })
    }

    /// Takes the next bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), UploadError> {
        self.size += bytes.len() as u64;
        if self.size > self.max_bytes {
            let max_bytes = self.max_bytes;
            return Err(UploadError::FileTooLarge { max_bytes });
        }
        self.sha256.update(bytes);
        self.md5.update(bytes);
        Ok(self.file.as_file_mut().write_all(bytes)?)
    }

    /// Puts the file in place, for good: it is on the disk under its name then.
    pub(crate) fn finish(
        self,
        workspace: &Workspace,
        name: &UploadName,
        config: &UploadsConfig,
    ) -> Result<Stored, UploadError> {
        // This takes long for large files, so others are not kept waiting for it.
        self.file.as_file().sync_all()?;
        let (size, max_total_bytes) = (self.size, config.max_total_bytes);
        let mut total = Total::lock(workspace)?;
        let before = size_of(&workspace.uploads, name.as_path())?;
        let needed = |total: u64| {
            total
                .saturating_sub(before.unwrap_or(0))
                .saturating_add(size)
        };
        if needed(total.bytes) > max_total_bytes {
            total.count(&workspace.uploads)?;
        }
        let needed = needed(total.bytes);
        if needed > max_total_bytes {
            return Err(UploadError::TotalTooLarge {
                needed,
                max_total_bytes,
            });
        }
        make_parents(&workspace.uploads, name.as_path())?;
        let was = total.bytes;
        total.write(needed)?;
        let parts = workspace.path.join(layout::PARTS);
        let parts = Dir::open_ambient_dir(parts, ambient_authority())?;
        let part = self.file.path().file_name().unwrap_or_default();
        if let Err(error) = parts.rename(part, &workspace.uploads, name.as_path()) {
            unless_noted(total.write(was));
            return Err(error.into());
        }
        let md5 = hex::encode(self.md5.finalize());
        unless_noted(hashes::remember(workspace, name.as_path(), &md5));
        sync_parents(workspace, name.as_path())?;
        Ok(Stored {
            size,
            md5,
            sha256: hex::encode(self.sha256.finalize()),
            replaced: before.is_some(),
        })
    }
}

/// Deletes an upload, and the directories that are empty then.
pub(crate) fn delete(workspace: &Workspace, name: &UploadName) -> Result<(), UploadError> {
    let mut total = Total::lock(workspace)?;
    let path = name.as_path();
    let size = match size_of(&workspace.uploads, path) {
        Ok(Some(size)) => size,
        Ok(None) | Err(UploadError::IsDirectory | UploadError::InsideFile) => {
            return Err(UploadError::NotFound);
        }
        Err(error) => return Err(error),
    };
    workspace.uploads.remove_file(path)?;
    unless_noted(total.write(total.bytes.saturating_sub(size)));
    unless_noted(hashes::forget(workspace, path));
    for parent in path.ancestors().skip(1) {
        let emptied =
            parent.as_os_str().is_empty() || workspace.uploads.remove_dir(parent).is_err();
        if emptied {
            break;
        }
    }
    Ok(())
}

/// Removes what uploads left behind that ended with their process; one that has just begun may not be locked yet.
pub(super) fn clear_parts(directory: &Path, now: SystemTime) -> io::Result<()> {
    let parts = match std::fs::read_dir(directory.join(layout::PARTS)) {
        Ok(parts) => parts,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for part in parts {
        let path = part?.path();
        if File::open(&path).is_ok_and(|file| is_left_behind(&file, now)) {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

fn is_left_behind(part: &File, now: SystemTime) -> bool {
    let modified = part.metadata().and_then(|metadata| metadata.modified());
    let is_old = modified.is_ok_and(|modified| {
        let age = now.duration_since(modified).unwrap_or_default();
        age > BEGINNING
    });
    is_old && part.try_lock().is_ok()
}

/// A new file that is locked: as long as it is, somebody is at it.
fn locked(mut make: impl FnMut() -> io::Result<NamedTempFile>) -> io::Result<NamedTempFile> {
    loop {
        let file = make()?;
        match file.as_file().try_lock() {
            Ok(()) => return Ok(file),
            // Whoever cleans up here has it, and is about to remove it.
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// What is written down beside the files can be made anew from them, so that a change which has come about is not said to
/// have failed.
fn unless_noted(noted: io::Result<()>) {
    if let Err(error) = noted {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "What is known about a chat's uploads cannot be written down"
        );
    }
}

/// Sees to it that the names on the way to a file outlast a power cut, those of new directories and of a new chat too.
fn sync_parents(workspace: &Workspace, path: &Path) -> io::Result<()> {
    let uploads = workspace.uploads_path();
    let in_uploads = path.ancestors().skip(1).map(|parent| uploads.join(parent));
    for directory in in_uploads.chain(workspace.path.ancestors().take(2).map(Path::to_owned)) {
        match File::open(directory)?.sync_all() {
            // There are file systems that cannot do this for directories.
            Err(error) if error.kind() != io::ErrorKind::InvalidInput => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The state of a chat's uploads, to be compared with another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stamp(Option<(SystemTime, u64)>);

impl Stamp {
    /// Each change writes the total anew.
    pub(super) fn of(directory: &Path) -> Option<Self> {
        let metadata = directory.join(TOTAL).symlink_metadata().ok()?;
        Some(Self(Some((metadata.modified().ok()?, metadata.ino()))))
    }
}

/// How much the uploads of a chat take together. Files come and go only while this is held.
struct Total {
    file: File,
    bytes: u64,
}

impl Total {
    fn lock(workspace: &Workspace) -> io::Result<Self> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(workspace.path.join(TOTAL))?;
        file.lock()?;
        let mut text = String::new();
        // A file that is damaged is as good as none.
        let _ = file.read_to_string(&mut text);
        let written = text.len() == TOTAL_DIGITS;
        let bytes = text.parse().ok().filter(|_| written);
        let mut total = Self {
            file,
            bytes: bytes.unwrap_or(0),
        };
        if bytes.is_none() {
            total.count(&workspace.uploads)?;
        }
        Ok(total)
    }

    fn count(&mut self, uploads: &Dir) -> io::Result<()> {
        let listing = files::list(uploads, DotFiles::Listed)?;
        self.bytes = listing.files.iter().map(|file| file.size).sum();
        Ok(())
    }

    fn write(&mut self, bytes: u64) -> io::Result<()> {
        self.bytes = bytes;
        self.file.rewind()?;
        self.file
            .write_all(format!("{bytes:0TOTAL_DIGITS$}").as_bytes())
    }
}

/// The size of the file under that name; none where there is nothing.
fn size_of(uploads: &Dir, path: &Path) -> Result<Option<u64>, UploadError> {
    match uploads.symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(UploadError::IsDirectory),
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound => Ok(None),
            io::ErrorKind::NotADirectory => Err(UploadError::InsideFile),
            _ => Err(error.into()),
        },
    }
}

/// Makes the directories that the sandbox has to pass.
fn make_parents(uploads: &Dir, path: &Path) -> Result<(), UploadError> {
    let Some(parent) = path.parent() else {
        return Ok(());
    };
    let mut parents: Vec<&Path> = parent.ancestors().collect();
    parents.pop();
    for parent in parents.into_iter().rev() {
        match uploads.create_dir(parent) {
            Ok(()) => {
                let passable = cap_std::fs::Permissions::from_std(Permissions::from_mode(0o755));
                uploads.set_permissions(parent, passable)?;
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !uploads.symlink_metadata(parent)?.is_dir() {
                    return Err(UploadError::InsideFile);
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_being_cleared_away_is_not_used() {
        let place = tempfile::tempdir().unwrap();
        let mut cleared = None;
        let mut made = 0;
        let file = locked(|| {
            made += 1;
            let file = NamedTempFile::new_in(place.path())?;
            if cleared.is_none() {
                let other = File::open(file.path())?;
                other.lock()?;
                cleared = Some(other);
            }
            Ok(file)
        });
        assert!(file.unwrap().path().exists());
        assert_eq!(made, 2);
    }
}
