//! One lock per chat, across processes: `flock` on a file in the chat's directory.
//!
//! Whoever deletes the directory takes the file away while others may wait for it. So a lock counts only if its file is
//! still the one under that name.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

/// The name of the file.
const LOCK: &str = "lock";

/// Held as long as the chat is used.
#[derive(Debug)]
pub(super) struct Shared {
    _file: File,
}

/// Held while the chat is deleted.
#[derive(Debug)]
pub(super) struct Exclusive {
    _file: File,
}

/// What became of an attempt.
#[derive(Debug)]
pub(super) enum Attempt<T> {
    /// The lock is held.
    Done(T),
    /// Others hold it.
    Busy,
    /// There is no such directory, or (unless it may be made) no lock in it.
    Absent,
}

/// Tries to lock `directory` for use; makes the file of the lock where `create` says so.
pub(super) fn share(directory: &Path, create: bool) -> io::Result<Attempt<Shared>> {
    let locked = take(directory, create, File::try_lock_shared)?;
    Ok(locked.map(|file| Shared { _file: file }))
}

/// Tries to lock `directory` against everybody else.
pub(super) fn exclude(directory: &Path) -> io::Result<Attempt<Exclusive>> {
    let locked = take(directory, false, File::try_lock)?;
    Ok(locked.map(|file| Exclusive { _file: file }))
}

impl<T> Attempt<T> {
    pub(super) fn map<R>(self, with: impl FnOnce(T) -> R) -> Attempt<R> {
        match self {
            Self::Done(value) => Attempt::Done(with(value)),
            Self::Busy => Attempt::Busy,
            Self::Absent => Attempt::Absent,
        }
    }
}

fn take(
    directory: &Path,
    create: bool,
    lock: fn(&File) -> Result<(), TryLockError>,
) -> io::Result<Attempt<File>> {
    let path = directory.join(LOCK);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(create).mode(0o600);
    loop {
        let file = match options.open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Attempt::Absent),
            Err(error) => return Err(error),
        };
        match lock(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Attempt::Busy),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if is_at(&file, &path)? {
            return Ok(Attempt::Done(file));
        }
    }
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match path.symlink_metadata() {
        Ok(there) => Ok((held.dev(), held.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
