//! The places whose files are carried, on either side: they are surveyed, filled and read one name at a time, without following links.
//!
//! In a container the agent is root and may look into everything; on this host the server may write anywhere. What lies there may have been
//! made by a model, so neither must be led elsewhere.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    os::fd::{AsFd, OwnedFd},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, UNIX_EPOCH},
};

use rustix::{
    fs::{
        AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, mkdirat, openat, renameat, statat,
        unlinkat,
    },
    io::Errno,
    path::Arg,
};

use super::carry::{Found, MOST_DEPTH, MOST_FILES, MOST_PATH_BYTES, Survey};

const DIRECTORY: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// What unfinished files are called, and a number. They are not carried.
const PART: &str = ".foreword-part-";

/// A place, by its root.
pub(super) struct Root(OwnedFd);

impl Root {
    /// Opens a place. Its own path is not the model's to choose.
    pub(super) fn open(path: impl Arg) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(openat(CWD, path, flags, Mode::empty())?))
    }

    /// Says what is there. What is too much is left out, which the survey's size shows.
    pub(super) fn survey(&self) -> io::Result<Survey> {
        let mut found = Survey::default();
        let mut bytes = 0;
        let mut waiting = vec![(String::new(), 0)];
        while let Some((prefix, depth)) = waiting.pop() {
            // It may be gone by now, or may be something else.
            let Ok(directory) = self.directory(&prefix, Absent::IsAnError) else {
                continue;
            };
            for entry in Dir::read_from(&directory)?.flatten() {
                let Ok(name) = entry.file_name().to_str() else {
                    continue;
                };
                if matches!(name, "." | "..") || name.starts_with(PART) {
                    continue;
                }
                let Ok(stat) = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
                    continue;
                };
                let kind = FileType::from_raw_mode(stat.st_mode);
                let is_directory = kind == FileType::Directory;
                if !(is_directory || kind == FileType::RegularFile) {
                    continue;
                }
                let path = format!("{prefix}{name}");
                bytes += path.len();
                if found.files.len() >= MOST_FILES || bytes > MOST_PATH_BYTES || depth >= MOST_DEPTH
                {
                    found.is_cut = true;
                    return Ok(found);
                }
                if is_directory {
                    waiting.push((format!("{path}/"), depth + 1));
                }
                found.files.insert(path, about(&stat, is_directory));
            }
        }
        Ok(found)
    }

    /// Reads a part of a file; also says how long the file is.
    pub(super) fn fetch(&self, path: &str, offset: u64, limit: u64) -> io::Result<(Vec<u8>, u64)> {
        let mut file = self.file(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.take(limit).read_to_end(&mut bytes)?;
        Ok((bytes, length))
    }

    /// Opens a regular file.
    pub(super) fn file(&self, path: &str) -> io::Result<File> {
        let (parent, name) = split(path)?;
        let parent = self.directory(parent, Absent::IsAnError)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&parent, name, flags, Mode::empty())?;
        if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(file.into())
    }

    /// Makes a directory, and those above it.
    pub(super) fn make_directory(&self, path: &str) -> io::Result<()> {
        self.directory(path, Absent::IsMade).map(drop)
    }

    /// Begins a file that will be at `path`, whose parents are made.
    pub(super) fn create(&self, path: &str) -> io::Result<Incoming> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let (parent, name) = split(path)?;
        let parent = self.directory(parent, Absent::IsMade)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let part = format!("{PART}{:x}-{number:x}", std::process::id());
            match openat(&parent, part.as_str(), flags, Mode::from_raw_mode(0o644)) {
                Ok(file) => {
                    return Ok(Incoming {
                        parent,
                        part: Some(part),
                        name: name.to_owned(),
                        file: file.into(),
                    });
                }
                // Another process had the number before, or somebody guessed it.
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Deletes these, of which what is in a directory comes before it. What is in one besides stays, and the directory with it.
    pub(super) fn delete(&self, gone: &[String]) -> io::Result<()> {
        for path in gone {
            let (parent, name) = split(path)?;
            let Ok(parent) = self.directory(parent, Absent::IsAnError) else {
                continue;
            };
            let deleted = match unlinkat(&parent, name, AtFlags::empty()) {
                Err(Errno::ISDIR | Errno::PERM) => unlinkat(&parent, name, AtFlags::REMOVEDIR),
                other => other,
            };
            match deleted {
                Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// What may still be written to the disk, in bytes.
    pub(super) fn free(&self) -> io::Result<u64> {
        let disk = rustix::fs::fstatvfs(&self.0)?;
        Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    /// Opens the directory at `path`, one name after the other.
    fn directory(&self, path: &str, absent: Absent) -> io::Result<OwnedFd> {
        let mut here = self.0.try_clone()?;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            if matches!(name, "." | "..") {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            if absent == Absent::IsMade {
                match mkdirat(&here, name, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            here = openat(&here, name, DIRECTORY, Mode::empty())?;
        }
        // A handle of its own: a copy would share where reading has come to.
        Ok(openat(here.as_fd(), ".", DIRECTORY, Mode::empty())?)
    }
}

/// What happens to a directory that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absent {
    IsAnError,
    IsMade,
}

/// A path as directory and name; not one that leads up, or from elsewhere.
fn split(path: &str) -> io::Result<(&str, &str)> {
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    if path.starts_with('/') || matches!(name, "" | "." | "..") || name.contains('\0') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok((parent, name))
}

#[expect(
    clippy::unnecessary_cast,
    clippy::cast_sign_loss,
    reason = "the fields' types differ between architectures, and sizes are not negative"
)]
fn about(stat: &Stat, is_directory: bool) -> Found {
    let nanoseconds = |seconds: i64, rest: u64| {
        seconds
            .saturating_mul(1_000_000_000)
            .saturating_add(i64::try_from(rest).unwrap_or_default())
    };
    Found {
        is_directory,
        size: if is_directory { 0 } else { stat.st_size as u64 },
        modified: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as u64),
        changed: nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as u64),
    }
}

/// A file on its way. Dropped before it is complete, it goes.
pub(super) struct Incoming {
    parent: OwnedFd,
    part: Option<String>,
    name: String,
    file: File,
}

impl Incoming {
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// It is complete, and was last changed then.
    pub(super) fn finish(mut self, modified: i64) -> io::Result<()> {
        let modified = u64::try_from(modified).unwrap_or_default();
        self.file
            .set_modified(UNIX_EPOCH + Duration::from_nanos(modified))?;
        if let Some(part) = self.part.take() {
            renameat(
                &self.parent,
                part.as_str(),
                &self.parent,
                self.name.as_str(),
            )?;
        }
        Ok(())
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            let _ = unlinkat(&self.parent, part.as_str(), AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn nobody_is_led_elsewhere() {
        let place = tempfile::tempdir().unwrap();
        let outputs = place.path().join("outputs");
        fs::create_dir_all(outputs.join("d/e")).unwrap();
        fs::create_dir(place.path().join("secret")).unwrap();
        fs::write(place.path().join("secret/key"), "secret").unwrap();
        fs::write(outputs.join("d/e/file"), "0123456789").unwrap();
        std::os::unix::fs::symlink("../secret", outputs.join("link")).unwrap();
        std::os::unix::fs::symlink("../secret/key", outputs.join("key")).unwrap();
        let root = Root::open(&outputs).unwrap();
        let found = root.survey().unwrap();
        let paths: Vec<_> = found.files.keys().map(String::as_str).collect();
        assert_eq!(paths, ["d", "d/e", "d/e/file"]);
        assert_eq!(found.files["d/e/file"].size, 10);
        assert_eq!(
            root.fetch("d/e/file", 3, 4).unwrap(),
            (b"3456".to_vec(), 10)
        );
        for path in ["key", "link/key", "../secret/key", "d", "/etc/passwd", ""] {
            assert!(root.fetch(path, 0, 10).is_err(), "{path}");
        }
        for path in ["link/made", "../made", "d/../../made", "/made"] {
            assert!(root.create(path).is_err(), "{path}");
            let _ = root.make_directory(path);
            let _ = root.delete(&[path.to_owned()]);
        }
        let _ = root.delete(&["link/key".to_owned(), "../secret/key".to_owned()]);
        assert_eq!(
            fs::read_dir(place.path().join("secret")).unwrap().count(),
            1
        );
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2);
        // A link in the place of a file is replaced, and not what it leads to.
        let mut incoming = root.create("key").unwrap();
        incoming.write(b"new").unwrap();
        incoming.finish(0).unwrap();
        assert_eq!(
            fs::read(place.path().join("secret/key")).unwrap(),
            b"secret"
        );
    }

    #[test]
    fn what_comes_in_keeps_its_time_and_is_there_at_once_or_not() {
        let place = tempfile::tempdir().unwrap();
        let root = Root::open(place.path()).unwrap();
        let time = 1_700_000_000_123_456_789;
        let mut incoming = root.create("a/b/file").unwrap();
        incoming.write(b"text").unwrap();
        assert!(!root.survey().unwrap().files.contains_key("a/b/file"));
        incoming.finish(time).unwrap();
        assert_eq!(root.survey().unwrap().files["a/b/file"].modified, time);
        drop(root.create("a/given-up").unwrap());
        assert_eq!(fs::read_dir(place.path().join("a")).unwrap().count(), 1);
        fs::write(place.path().join("a/.foreword-part-x"), "").unwrap();
        root.delete(&["a/b/file".to_owned(), "a/b".to_owned(), "a".to_owned()])
            .unwrap();
        // What is not carried is not deleted.
        assert!(place.path().join("a/.foreword-part-x").exists());
        assert_eq!(root.survey().unwrap().files.len(), 1);
    }

    #[test]
    fn a_survey_that_is_cut_says_so() {
        let place = tempfile::tempdir().unwrap();
        let deep = vec!["d"; MOST_DEPTH + 2].join("/");
        fs::create_dir_all(place.path().join(deep)).unwrap();
        assert!(Root::open(place.path()).unwrap().survey().unwrap().is_cut);
    }
}
