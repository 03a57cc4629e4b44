//! Counts and deletes what a sandbox left on the host's disk.
//!
//! The sandbox may change everything under our feet, so nothing here follows a link or trusts a path: every directory is opened
//! relative to one already held, and going back up is checked. Depth is bounded by nothing, memory and open files are.

use std::{
    collections::HashSet,
    ffi::CString,
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Component, Path},
};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Stat, chmodat, fchmod, fstat, openat, renameat, statat,
    unlinkat,
};

use crate::{
    files::FileStat,
    spec::{HOME, SandboxSpec},
};

const DIRECTORY: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK);

/// Counts the bytes that the tree at `root` takes on disk: each file once, and none as less than 4 KiB.
///
/// What changes while it is counted may be missed. A directory that may not be read counts as itself only: that happens to a server
/// that does not run as root.
pub fn measure(root: &Path) -> io::Result<u64> {
    let mut count = Count::default();
    let mut here = openat(rustix::fs::CWD, root, DIRECTORY, Mode::empty())?;
    let mut levels = vec![count.enter(&here)?];
    while let Some(level) = levels.last_mut() {
        if level.directories.is_empty()
            && let Some(offset) = level.resume
        {
            // Somebody may have closed it meanwhile; what is counted so far has to do.
            let _ = count.read_on(&here, level, Some(offset));
        }
        if let Some(name) = level.directories.pop() {
            match openat(&here, &name, DIRECTORY, Mode::empty()) {
                // One that may be read and not searched counts as itself, too.
                Ok(child) => {
                    if let Ok(level) = count.enter(&child) {
                        levels.push(level);
                        here = child;
                    }
                }
                Err(_) => count.add_closed(&here, &name),
            }
            continue;
        }
        if level.resume.is_some() {
            continue;
        }
        levels.pop();
        if let Some(parent) = levels.last() {
            let above = openat(&here, "..", DIRECTORY, Mode::empty())
                .ok()
                .filter(|above| fstat(above).is_ok_and(|stat| identity(&stat) == parent.identity));
            // It was moved or closed while we were in it. What is counted so far has to do.
            let Some(above) = above else { break };
            here = above;
        }
    }
    Ok(count.bytes)
}

/// What the smallest file counts as. The disk has a place for each, and could else be filled with empty ones.
pub(crate) const LEAST_BYTES: u64 = 4096;
/// Remembers at most this many files that have several names; more count each time.
const MOST_LINKED: usize = 1 << 17;
/// Holds at most this many names of a directory at a time.
const MOST_PENDING: usize = 1000;

#[derive(Default)]
struct Count {
    bytes: u64,
    linked: HashSet<(u64, u64)>,
}

/// A directory that is being counted.
struct Level {
    identity: (u64, u64),
    /// Directories in it that are still to be entered.
    directories: Vec<CString>,
    /// Where reading goes on once these have been entered.
    resume: Option<i64>,
}

impl Count {
    fn enter(&mut self, directory: &OwnedFd) -> io::Result<Level> {
        let stat = fstat(directory)?;
        self.bytes = self.bytes.saturating_add(disk_bytes(&stat));
        let mut level = Level {
            identity: identity(&stat),
            directories: Vec::new(),
            resume: None,
        };
        self.read_on(directory, &mut level, None)?;
        Ok(level)
    }

    /// Counts a directory that cannot be opened.
    fn add_closed(&mut self, parent: &OwnedFd, name: &CString) {
        if let Ok(stat) = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            self.bytes = self.bytes.saturating_add(disk_bytes(&stat));
        }
    }

    /// Counts the files of a directory, and stops when it holds enough names of directories.
    fn read_on(
        &mut self,
        directory: &OwnedFd,
        level: &mut Level,
        from: Option<i64>,
    ) -> io::Result<()> {
        level.resume = None;
        let mut entries = Dir::read_from(directory)?;
        if let Some(offset) = from {
            entries.seek(offset)?;
        }
        for entry in entries {
            let Ok(entry) = entry else { break };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let Ok(stat) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                level.directories.push(name.to_owned());
                if level.directories.len() == MOST_PENDING {
                    level.resume = Some(entry.offset());
                    break;
                }
            } else if stat.st_nlink == 1
                || self.linked.len() >= MOST_LINKED
                || self.linked.insert(identity(&stat))
            {
                self.bytes = self.bytes.saturating_add(disk_bytes(&stat));
            }
        }
        Ok(())
    }
}

// The fields' types differ between architectures.
#[expect(clippy::unnecessary_cast, reason = "u32 on some architectures")]
fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino as u64)
}

#[expect(clippy::cast_sign_loss, reason = "a count of blocks is not negative")]
fn disk_bytes(stat: &Stat) -> u64 {
    (stat.st_blocks as u64 * 512).max(LEAST_BYTES)
}

/// Deletes the directory `root` and all that is in it, whatever its depth and permissions; absent is fine.
///
/// Call it when no sandbox uses the directory.
pub fn remove_tree(root: &Path) -> io::Result<()> {
    let parent = root
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let name = root.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let parent = openat(
        rustix::fs::CWD,
        parent,
        OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let top = match open_for_removal(&parent, name) {
        Ok(top) => top,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    empty(&top)?;
    unlinkat(&parent, name, AtFlags::REMOVEDIR)?;
    Ok(())
}

/// Empties `top`. Directories found below are moved up into it before they are emptied in turn, so two are open at a time.
fn empty(top: &OwnedFd) -> io::Result<()> {
    let mut moved = 0_u64;
    loop {
        let names = names_in(top)?;
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            if unlink_file(top, &name)? {
                continue;
            }
            let directory = match open_for_removal(top, name.as_c_str()) {
                Ok(directory) => directory,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            for inner in names_in(&directory)? {
                if unlink_file(&directory, &inner)? {
                    continue;
                }
                loop {
                    moved += 1;
                    match move_up(&directory, &inner, top, moved) {
                        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
                        Err(error) => return Err(error),
                        Ok(()) => break,
                    }
                }
            }
            match unlinkat(top, &name, AtFlags::REMOVEDIR) {
                // It had more names than are held at a time; its turn comes again.
                Ok(()) | Err(rustix::io::Errno::NOTEMPTY) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn move_up(from: &OwnedFd, name: &CString, top: &OwnedFd, number: u64) -> io::Result<()> {
    // Moving a directory changes its `..`, for which it has to be writable.
    let _ = chmodat(from, name, Mode::RWXU, AtFlags::empty());
    renameat(from, name, top, format!(".foreword-removed-{number}"))?;
    Ok(())
}

/// At most this many names are held at a time.
const MOST_NAMES: usize = 10_000;

fn names_in(directory: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
        if names.len() == MOST_NAMES {
            break;
        }
    }
    Ok(names)
}

/// Unlinks what is not a directory; says whether it was none.
fn unlink_file(directory: &OwnedFd, name: &CString) -> io::Result<bool> {
    match unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(true),
        Err(rustix::io::Errno::ISDIR | rustix::io::Errno::PERM) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Opens a directory and makes sure that it can be read and written, which `chmod 000` would keep a server from that is not root.
fn open_for_removal<P: rustix::path::Arg + Copy>(
    parent: impl AsFd,
    name: P,
) -> io::Result<OwnedFd> {
    let opened = openat(&parent, name, DIRECTORY, Mode::empty());
    let directory = match opened {
        Err(rustix::io::Errno::ACCESS) => {
            let stat = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            chmodat(&parent, name, Mode::RWXU, AtFlags::empty())?;
            openat(&parent, name, DIRECTORY, Mode::empty())?
        }
        other => other?,
    };
    let _ = fchmod(&directory, Mode::RWXU);
    Ok(directory)
}

/// About a regular file that lies in the home directory itself: it is the same on the host, where asking for it costs no process.
/// The README is looked at before each call.
///
/// A link, and whatever is further away, has to be looked at inside.
pub(crate) fn file_in_home(spec: &SandboxSpec, path: &Path) -> Option<FileStat> {
    let mut parts = path.strip_prefix(HOME).unwrap_or(path).components();
    let (Some(Component::Normal(name)), None) = (parts.next(), parts.next()) else {
        return None;
    };
    let metadata = std::fs::symlink_metadata(spec.home.join(name)).ok()?;
    metadata.is_file().then(|| crate::init::stat(&metadata))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, process};

    use super::*;

    #[test]
    fn a_file_with_two_names_counts_once_and_links_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("root");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(place.path().join("outside"), vec![1; 1 << 20]).unwrap();
        let empty = measure(&root).unwrap();
        fs::write(root.join("a/b/file"), vec![1; 256 << 10]).unwrap();
        fs::hard_link(root.join("a/b/file"), root.join("again")).unwrap();
        std::os::unix::fs::symlink(place.path().join("outside"), root.join("link")).unwrap();
        let full = measure(&root).unwrap();
        let grown = full - empty;
        assert!(((256 << 10)..(272 << 10)).contains(&grown), "{grown}");
    }

    #[test]
    fn ten_thousand_levels_are_counted_and_removed() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("root");
        fs::create_dir(&root).unwrap();
        let script = "import os\nfor i in range(10000): os.mkdir('d'); os.chdir('d')\nopen('deep', 'wb').write(b'x' * 1048576)";
        let made = process::Command::new("python3")
            .args(["-c", script])
            .current_dir(&root)
            .status()
            .unwrap();
        assert!(made.success());
        assert!(measure(&root).unwrap() >= 1 << 20);
        remove_tree(&root).unwrap();
        assert!(!root.exists());
    }

    #[test]
    fn a_directory_with_many_names_is_counted_and_removed() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("root");
        fs::create_dir_all(root.join("in")).unwrap();
        for number in 0..12_000 {
            if number % 4 == 0 {
                fs::create_dir(root.join(format!("in/{number}"))).unwrap();
                fs::write(root.join(format!("in/{number}/file")), "").unwrap();
            } else {
                fs::write(root.join(format!("in/{number}")), "").unwrap();
            }
        }
        let counted = measure(&root).unwrap() / LEAST_BYTES;
        // Large directories take more than one block themselves.
        assert!((15_002..15_202).contains(&counted), "{counted}");
        remove_tree(&root).unwrap();
        assert!(!root.exists());
    }

    #[test]
    fn closed_directories_are_removed_and_what_links_point_to_stays() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("root");
        fs::create_dir_all(root.join("closed/inner")).unwrap();
        fs::write(root.join("closed/inner/file"), "x").unwrap();
        fs::write(place.path().join("precious"), "x").unwrap();
        fs::create_dir(place.path().join("kept")).unwrap();
        fs::write(place.path().join("kept/file"), "x").unwrap();
        std::os::unix::fs::symlink("../kept", root.join("link")).unwrap();
        std::os::unix::fs::symlink("../precious", root.join("other")).unwrap();
        for name in ["closed/inner", "closed"] {
            fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o0)).unwrap();
        }
        remove_tree(&root).unwrap();
        assert!(!root.exists());
        assert!(place.path().join("precious").exists() && place.path().join("kept/file").exists());
        remove_tree(&root).unwrap();
    }
}
