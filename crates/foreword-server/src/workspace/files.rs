//! Looking at the files beneath a directory's handle: regular files only, and no link that leads out.
//!
//! A sandbox may have made what lies there: pipes that never answer, links to anywhere, a million files, directories
//! without end. So nothing is opened that could block, types are asked of what was opened, and walks end.

use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use cap_std::fs::{Dir, Metadata, MetadataExt, OpenOptions, OpenOptionsExt};
use jiff::Timestamp;
use rustix::{
    fs::{AtFlags, Dir as ReadDir, DirEntry, FileType, Mode, OFlags, openat, statat},
    io::Errno,
};

/// What a walk takes at most: each of these is enough for whoever means well, and none costs more than some memory.
const LIMITS: Limits = Limits {
    files: 100_000,
    entries: 1_000_000,
    path_bytes: 16 << 20,
};

/// Where a walk ends that would go on.
#[derive(Debug, Clone, Copy)]
struct Limits {
    files: usize,
    /// Of any kind.
    entries: usize,
    /// In the paths that are held at once; one can have 4,096 bytes.
    path_bytes: usize,
}

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
            // Byte by byte: to compare paths part by part takes three times as long.
            by_time.then_with(|| left.path.as_os_str().cmp(right.path.as_os_str()))
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
    Walk::new(dot_files, LIMITS).through(directory)
}

/// A walk on its way.
struct Walk {
    dot_files: DotFiles,
    limits: Limits,
    files: Vec<FileEntry>,
    /// Directories that are still to be looked at; the last one is the next.
    waiting: Vec<PathBuf>,
    entries: usize,
    path_bytes: usize,
}

/// A limit of a walk is reached.
struct Full;

impl Walk {
    fn new(dot_files: DotFiles, limits: Limits) -> Self {
        Self {
            dot_files,
            limits,
            files: Vec::new(),
            waiting: vec![PathBuf::new()],
            entries: 0,
            path_bytes: 0,
        }
    }

    fn through(mut self, directory: &Dir) -> io::Result<Listing> {
        while let Some(path) = self.waiting.pop() {
            self.path_bytes -= length(&path);
            // It may be gone, closed or too deep: then there is nothing to be had in it.
            let (current, entries) = match entries_of(directory, &path) {
                Ok(opened) => opened,
                Err(error) if path.as_os_str().is_empty() => return Err(error),
                Err(error) => {
                    unless_exhausted(error)?;
                    continue;
                }
            };
            for entry in entries {
                if let Err(Full) = self.take(&path, &current, entry) {
                    return Ok(self.listing(false));
                }
            }
        }
        Ok(self.listing(true))
    }

    fn take(
        &mut self,
        parent: &Path,
        current: &Dir,
        entry: rustix::io::Result<DirEntry>,
    ) -> Result<(), Full> {
        let Ok(entry) = entry else { return Ok(()) };
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            return Ok(());
        }
        self.entries += 1;
        if self.entries > self.limits.entries || self.files.len() == self.limits.files {
            return Err(Full);
        }
        if self.dot_files == DotFiles::LeftOut && name.to_bytes().starts_with(b".") {
            return Ok(());
        }
        let kind = entry.file_type();
        let stat = match kind {
            FileType::Directory => None,
            // Some file systems do not say the type with the name.
            FileType::RegularFile | FileType::Unknown => {
                statat(current, name, AtFlags::SYMLINK_NOFOLLOW).ok()
            }
            _ => return Ok(()),
        };
        let kind = stat.map_or(kind, |stat| FileType::from_raw_mode(stat.st_mode));
        let path = parent.join(OsStr::from_bytes(name.to_bytes()));
        match (kind, stat) {
            (FileType::Directory, _) => {
                self.hold(&path)?;
                self.waiting.push(path);
            }
            (FileType::RegularFile, Some(stat)) => {
                self.hold(&path)?;
                self.files.push(FileEntry {
                    path,
                    size: stat.st_size.cast_unsigned(),
                    modified: timestamp(
                        stat.st_mtime,
                        i64::try_from(stat.st_mtime_nsec).unwrap_or_default(),
                    ),
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn hold(&mut self, path: &Path) -> Result<(), Full> {
        let held = self.path_bytes + length(path);
        if held > self.limits.path_bytes {
            return Err(Full);
        }
        self.path_bytes = held;
        Ok(())
    }

    fn listing(self, complete: bool) -> Listing {
        Listing {
            files: self.files,
            complete,
        }
    }
}

/// The directory at `path` below `directory`, and what is in it.
fn entries_of(directory: &Dir, path: &Path) -> io::Result<(Dir, ReadDir)> {
    let current = if path.as_os_str().is_empty() {
        directory.try_clone()?
    } else {
        directory.open_dir(path)?
    };
    // A handle of a directory says where it is, and no more.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let readable = openat(&current, ".", flags, Mode::empty())?;
    Ok((current, ReadDir::new(readable)?))
}

fn length(path: &Path) -> usize {
    path.as_os_str().len()
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
    timestamp(metadata.mtime(), metadata.mtime_nsec())
}

fn timestamp(seconds: i64, nanoseconds: i64) -> Timestamp {
    let nanoseconds = i32::try_from(nanoseconds).unwrap_or_default();
    Timestamp::new(seconds, nanoseconds).unwrap_or_default()
}

/// Whatever is wrong with a path means that there is no such file; what is wrong with this machine does not.
fn unless_exhausted(error: io::Error) -> io::Result<()> {
    match Errno::from_io_error(&error) {
        Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::IO) => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use cap_std::ambient_authority;
    use tempfile::TempDir;

    use super::*;

    fn directory(files: &[&str]) -> (TempDir, Dir) {
        let place = tempfile::tempdir().unwrap();
        for name in files {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let handle = Dir::open_ambient_dir(place.path(), ambient_authority()).unwrap();
        (place, handle)
    }

    #[test]
    fn a_walk_ends_where_its_paths_take_too_many_bytes() {
        let (_place, handle) = directory(&["aaaa", "d/bbbb", "d/cccc"]);
        let walk = |path_bytes| {
            let limits = Limits {
                path_bytes,
                ..LIMITS
            };
            let listing = Walk::new(DotFiles::Listed, limits).through(&handle);
            let listing = listing.unwrap();
            (listing.files.len(), listing.complete)
        };
        // `d` itself is held only until it is looked at.
        assert_eq!(walk(4 + 6 + 6), (3, true));
        assert_eq!(walk(4 + 6 + 5), (2, false));
        assert!(!walk(3).1);
    }

    #[test]
    fn a_closed_directory_hides_what_is_in_it_and_nothing_else() {
        let (place, handle) = directory(&["open/a", "closed/b", "c"]);
        let passable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(place.path(), passable).unwrap();
        let closed = place.path().join("closed");
        let mode = |mode| fs::set_permissions(&closed, fs::Permissions::from_mode(mode)).unwrap();
        mode(0o000);
        let names = std::thread::spawn(move || {
            // Root passes everywhere; this thread alone becomes somebody else.
            let owner = handle.dir_metadata().unwrap().uid();
            if owner == 0 {
                let nobody = rustix::process::Uid::from_raw(64_999);
                let none = None::<rustix::process::Uid>;
                rustix::thread::set_thread_res_uid(none, nobody, none).unwrap();
            }
            list(&handle, DotFiles::Listed)
                .unwrap()
                .by_name()
                .files
                .into_iter()
                .map(|file| file.path.display().to_string())
                .collect::<Vec<_>>()
        });
        let names = names.join().unwrap();
        mode(0o700);
        assert_eq!(names, ["c", "open/a"]);
    }
}
