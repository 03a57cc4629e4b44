//! Reads the library's file, and replaces it so that after a crash it is the old one or the new one, never a mixture.
//!
//! The file may be a symbolic link, also through swapped directories (Kubernetes config maps). Links are followed, not
//! replaced. Deliberately absent: what the bytes mean.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::{self, File, Metadata, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, SystemTime},
};

use tracing::warn;

use super::data_directory::private_directory;
use crate::yaml::MAX_FILE_BYTES;

/// More than the largest file that loads, so that one too large is seen to be so without being read whole.
const READ_LIMIT: u64 = MAX_FILE_BYTES as u64 + 1;

/// As many symbolic links as Linux follows.
const MAX_LINKS: usize = 40;

/// How long a file that is being written in place must stand still before it counts, and how often that is tried.
const SETTLE_PAUSE: Duration = Duration::from_millis(50);
const SETTLE_ATTEMPTS: usize = 10;

/// The path of the library's file.
#[derive(Debug)]
pub(super) struct LibraryFile {
    path: PathBuf,
}

/// The file as it was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) bytes: Vec<u8>,
    pub(super) stamp: Stamp,
}

/// What tells one state of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Device and inode.
    identity: (u64, u64),
    length: u64,
    modified: Option<SystemTime>,
    /// Seconds and nanoseconds of the last change of content or attributes.
    changed: (i64, i64),
}

/// Whether a file was replaced.
#[derive(Debug)]
pub(super) enum Replaced {
    Yes,
    /// It is in place, but the disk did not confirm it: a power cut may bring the old one back.
    Unconfirmed(io::Error),
    /// It is not the file that was read: somebody else was faster.
    ChangedMeanwhile,
}

impl LibraryFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file, if there is one.
    pub(super) fn read(&self) -> io::Result<Option<Found>> {
        let Some(file) = absent_as_none(File::open(&self.path))? else {
            return Ok(None);
        };
        let stamp = Stamp::of(&file.metadata()?);
        let mut bytes =
            Vec::with_capacity(usize::try_from(stamp.length.min(READ_LIMIT)).unwrap_or(0));
        file.take(READ_LIMIT).read_to_end(&mut bytes)?;
        Ok(Some(Found { bytes, stamp }))
    }

    /// Reads the file once it stands still, for one that differs from what is `known`.
    ///
    /// A file under a new inode was renamed into place and is whole. One under the same inode is being written in
    /// place, perhaps by an editor that emptied it first.
    pub(super) fn read_settled(
        &self,
        found: Option<Found>,
        known: Option<Stamp>,
    ) -> io::Result<Option<Found>> {
        let mut found = found;
        for _ in 0..SETTLE_ATTEMPTS {
            match &found {
                Some(file) if known.is_none_or(|known| known.identity == file.stamp.identity) => {
                    thread::sleep(SETTLE_PAUSE);
                    if self.stamp()? == Some(file.stamp) && !file.bytes.is_empty() {
                        break;
                    }
                    found = self.read()?;
                }
                _ => break,
            }
        }
        Ok(found)
    }

    /// Replaces the file by `text`, durably, if it is still the one that had the stamp `read`.
    pub(super) fn replace(&self, text: &str, read: Option<Stamp>) -> io::Result<Replaced> {
        let target = self.target()?;
        let directory = parent(&target);
        let mut name = OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(".new");
        let temporary = directory.join(name);

        // One left by a crash, or a link planted there: `create_new` follows none.
        absent_as_none(fs::remove_file(&temporary))?;
        let replaced = (|| {
            let mut file = create_private(&temporary)?;
            file.write_all(text.as_bytes())?;
            if let Some(metadata) = absent_as_none(fs::metadata(&target))? {
                keep_owner_and_mode(&file, &metadata)?;
            }
            file.sync_all()?;
            if self.stamp()? != read {
                return Ok(Replaced::ChangedMeanwhile);
            }
            fs::rename(&temporary, &target)?;
            Ok(match sync_directory(directory) {
                Ok(()) => Replaced::Yes,
                Err(error) => Replaced::Unconfirmed(error),
            })
        })();
        if matches!(replaced, Err(_) | Ok(Replaced::ChangedMeanwhile)) {
            // It may not have been made.
            let _ = fs::remove_file(&temporary);
        }
        replaced
    }

    /// Copies the file beside itself, durably; the name of the copy comes back.
    pub(super) fn keep_as(&self, suffix: &str) -> io::Result<Option<String>> {
        let target = self.target()?;
        let Some(mut source) = absent_as_none(File::open(&target))? else {
            return Ok(None);
        };
        let directory = parent(&target);
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        for attempt in 1.. {
            let name = match attempt {
                1 => format!("{name}.{suffix}"),
                _ => format!("{name}.{suffix}-{attempt}"),
            };
            let mut copy = match create_private(&directory.join(&name)) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                copy => copy?,
            };
            io::copy(&mut source, &mut copy)?;
            copy.sync_all()?;
            sync_directory(directory)?;
            return Ok(Some(name));
        }
        unreachable!("the numbers do not end")
    }

    /// The directories in which a change can change what the path leads to.
    pub(super) fn directories(&self) -> BTreeSet<PathBuf> {
        let mut directories = BTreeSet::new();
        let mut pending: Vec<OsString> = components_reversed(&self.path);
        let mut resolved = PathBuf::new();
        let mut links = 0;
        while let Some(component) = pending.pop() {
            let path = resolved.join(&component);
            match fs::read_link(&path) {
                Ok(target) if links < MAX_LINKS => {
                    links += 1;
                    directories.insert(if resolved.as_os_str().is_empty() {
                        PathBuf::from(".")
                    } else {
                        resolved.clone()
                    });
                    pending.extend(components_reversed(&target));
                }
                _ => resolved = path,
            }
        }
        directories.insert(parent(&resolved).to_owned());
        directories
            .into_iter()
            .filter_map(|directory| directory.canonicalize().ok())
            .collect()
    }

    /// The stamp of the file, if there is one.
    pub(super) fn stamp(&self) -> io::Result<Option<Stamp>> {
        let metadata = absent_as_none(fs::metadata(&self.path))?;
        Ok(metadata.as_ref().map(Stamp::of))
    }

    /// What the path leads to, through links, whether it exists or not.
    fn target(&self) -> io::Result<PathBuf> {
        let mut path = self.path.clone();
        for _ in 0..MAX_LINKS {
            match fs::read_link(&path) {
                Ok(target) => path = parent(&path).join(target),
                Err(_) => return Ok(path),
            }
        }
        Err(io::Error::other("too many symbolic links"))
    }
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let (identity, changed) = {
            use std::os::unix::fs::MetadataExt;
            (
                (metadata.dev(), metadata.ino()),
                (metadata.ctime(), metadata.ctime_nsec()),
            )
        };
        #[cfg(not(unix))]
        let (identity, changed) = ((0, 0), (0, 0));
        Self {
            identity,
            length: metadata.len(),
            modified: metadata.modified().ok(),
            changed,
        }
    }
}

/// Creates a file that only its owner can read; never through a link, never over another.
pub(super) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes a directory for `path`'s sake, if it is missing.
pub(super) fn ensure_directory(path: &Path) -> io::Result<()> {
    private_directory().create(path)
}

/// The result, with `None` where there was nothing.
pub(super) fn absent_as_none<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn components_reversed(path: &Path) -> Vec<OsString> {
    path.components()
        .rev()
        .map(|component| component.as_os_str().to_owned())
        .collect()
}

#[cfg(unix)]
fn keep_owner_and_mode(file: &File, like: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};

    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (like.uid(), like.gid())
        && let Err(error) = fchown(file, Some(like.uid()), Some(like.gid()))
    {
        warn!(%error, "Could not keep the owner of the library file");
    }
    // After the owner: changing that can take bits away.
    file.set_permissions(like.permissions())
}

#[cfg(not(unix))]
fn keep_owner_and_mode(file: &File, like: &Metadata) -> io::Result<()> {
    file.set_permissions(like.permissions())
}

#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Elsewhere a rename is made durable by the file system alone.
#[cfg(not(unix))]
fn sync_directory(_directory: &Path) -> io::Result<()> {
    Ok(())
}
