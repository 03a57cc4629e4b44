//! The places of a container whose files are carried, as the agent sees them: it surveys, fills and reads them.
//!
//! The agent is root in there and may look into everything, so it must not be led elsewhere: what the sandbox can write to is entered
//! one name at a time, without following links.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::PermissionsExt,
    },
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};

use super::carry::{self, Found, MOST_DEPTH, MOST_FILES, Survey};

const DIRECTORY: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Says what is in a place.
pub(super) fn survey(root: &str) -> io::Result<Survey> {
    let root = openat(CWD, root, DIRECTORY, Mode::empty())?;
    let mut found = Survey::new();
    let mut waiting = vec![(String::new(), 0)];
    while let Some((prefix, depth)) = waiting.pop() {
        // It may be gone by now, or may be something else.
        let Ok(directory) = open_directory(&root, &prefix) else {
            continue;
        };
        for entry in Dir::read_from(&directory)?.flatten() {
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if matches!(name, "." | "..") || found.len() >= MOST_FILES {
                continue;
            }
            let Ok(stat) = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            let kind = FileType::from_raw_mode(stat.st_mode);
            let path = format!("{prefix}{name}");
            match kind {
                FileType::Directory if depth < MOST_DEPTH => {
                    waiting.push((format!("{path}/"), depth + 1));
                }
                FileType::RegularFile => {}
                _ => continue,
            }
            found.insert(path, about(&stat, kind == FileType::Directory));
        }
    }
    Ok(found)
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

/// Opens the directory `path` below `root`, one name after the other.
fn open_directory(root: &OwnedFd, path: &str) -> io::Result<OwnedFd> {
    let mut here = root.try_clone()?;
    for name in path.split('/').filter(|name| !name.is_empty()) {
        if matches!(name, "." | "..") {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        here = openat(&here, name, DIRECTORY, Mode::empty())?;
    }
    // A handle of its own: a copy would share where reading has come to.
    Ok(openat(&here, ".", DIRECTORY, Mode::empty())?)
}

/// Reads a part of a file below `root`; also says how long the file is.
pub(super) fn fetch(root: &str, path: &str, offset: u64, limit: u64) -> io::Result<(Vec<u8>, u64)> {
    let root = openat(CWD, root, DIRECTORY, Mode::empty())?;
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    let parent = open_directory(&root, parent)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(parent.as_fd(), name, flags, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut file = File::from(file);
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok((bytes, length))
}

/// Makes a directory that everybody may enter.
pub(super) fn make_directory(root: &str, path: &str) -> io::Result<()> {
    let path = carry::below(Path::new(root), path).ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(path)
}

/// A file on its way into a place that only the agent writes to.
pub(super) struct Incoming {
    file: File,
    part: std::path::PathBuf,
    path: std::path::PathBuf,
    modified: i64,
}

/// What an unfinished file is called.
const PART: &str = ".foreword-part";

impl Incoming {
    pub(super) fn new(root: &str, path: &str, modified: i64) -> io::Result<Self> {
        let root = Path::new(root);
        let path = carry::below(root, path).ok_or(io::ErrorKind::InvalidInput)?;
        let part = root.join(PART);
        let file = File::create(&part)?;
        file.set_permissions(fs::Permissions::from_mode(0o644))?;
        Ok(Self {
            file,
            part,
            path,
            modified,
        })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        io::Write::write_all(&mut self.file, bytes)
    }

    pub(super) fn finish(self) -> io::Result<()> {
        let modified = u64::try_from(self.modified).unwrap_or_default();
        let modified = UNIX_EPOCH + Duration::from_nanos(modified);
        self.file.set_modified(modified)?;
        fs::rename(&self.part, &self.path)
    }
}

/// Deletes from a place that only the agent writes to.
pub(super) fn delete(root: &str, gone: &[String]) -> io::Result<()> {
    carry::delete(Path::new(root), gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_survey_and_a_fetch_are_not_led_elsewhere() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("outputs");
        fs::create_dir_all(root.join("d/e")).unwrap();
        fs::create_dir(place.path().join("secret")).unwrap();
        fs::write(place.path().join("secret/key"), "secret").unwrap();
        fs::write(root.join("d/e/file"), "0123456789").unwrap();
        std::os::unix::fs::symlink("../secret", root.join("link")).unwrap();
        std::os::unix::fs::symlink("../secret/key", root.join("key")).unwrap();
        let root = root.to_str().unwrap();
        let found = survey(root).unwrap();
        let paths: Vec<_> = found.keys().map(String::as_str).collect();
        assert_eq!(paths, ["d", "d/e", "d/e/file"]);
        assert_eq!(found["d/e/file"].size, 10);
        assert_eq!(
            fetch(root, "d/e/file", 3, 4).unwrap(),
            (b"3456".to_vec(), 10)
        );
        for path in ["key", "link/key", "../secret/key", "d", "/etc/passwd"] {
            assert!(fetch(root, path, 0, 10).is_err(), "{path}");
        }
    }

    #[test]
    fn what_comes_in_keeps_its_time_and_is_there_at_once_or_not() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().to_str().unwrap();
        make_directory(root, "a/b").unwrap();
        let time = 1_700_000_000_123_456_789;
        let mut incoming = Incoming::new(root, "a/b/file", time).unwrap();
        incoming.write(b"text").unwrap();
        assert!(!survey(root).unwrap().contains_key("a/b/file"));
        incoming.finish().unwrap();
        assert_eq!(survey(root).unwrap()["a/b/file"].modified, time);
        assert!(Incoming::new(root, "../x", 0).is_err());
        delete(root, &["a/b/file".to_owned(), "a/b".to_owned()]).unwrap();
        assert_eq!(survey(root).unwrap().len(), 1);
    }
}
