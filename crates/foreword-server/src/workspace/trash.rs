//! How a chat's directory goes away: at once by a new name, then piece by piece.
//!
//! What a sandbox made can be nested deeper than any stack or table of open files. So the trash is flat: a directory in a
//! discarded one becomes an entry of the trash itself before its parent goes. All of it happens beneath a handle that links
//! do not leave.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use cap_std::{
    ambient_authority,
    fs::{Dir, Permissions, PermissionsExt},
};

use super::layout;

/// Where discarded directories lie; no chat has this name, since none begins with a dot.
const TRASH: &str = ".trash";

/// Names tried in this process; another process may have taken one before.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Takes `directory` away from its name.
pub(super) fn discard(root: &Path, directory: &Path) -> io::Result<()> {
    let trash = root.join(TRASH);
    layout::make_private(&trash)?;
    loop {
        let name = next_name();
        match fs::create_dir(trash.join(&name)) {
            // An empty directory is replaced in one step.
            Ok(()) => return fs::rename(directory, trash.join(&name)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Removes what was discarded, also by another process or before a crash.
pub(super) fn empty(root: &Path) -> io::Result<()> {
    let trash = match Dir::open_ambient_dir(root.join(TRASH), ambient_authority()) {
        Ok(trash) => trash,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    loop {
        let mut found = false;
        for entry in trash.entries()? {
            found = true;
            let name = PathBuf::from(entry?.file_name());
            unless_gone(remove(&trash, &name))?;
        }
        if !found {
            return Ok(());
        }
    }
}

fn remove(trash: &Dir, name: &Path) -> io::Result<()> {
    if !trash.symlink_metadata(name)?.is_dir() {
        return trash.remove_file(name);
    }
    // Without these rights, which a sandbox can take away, nothing in it can be changed.
    trash.set_permissions(name, Permissions::from_mode(0o700))?;
    let directory = trash.open_dir(name)?;
    for entry in directory.entries()? {
        let entry = entry?;
        let child = PathBuf::from(entry.file_name());
        if entry.file_type()?.is_dir() {
            unless_gone(lift(trash, &directory, &child))?;
        } else {
            unless_gone(directory.remove_file(&child))?;
        }
    }
    trash.remove_dir(name)
}

/// Moves a directory out of its parent.
fn lift(trash: &Dir, parent: &Dir, child: &Path) -> io::Result<()> {
    parent.set_permissions(child, Permissions::from_mode(0o700))?;
    loop {
        let name = next_name();
        match trash.create_dir(&name) {
            Ok(()) => return parent.rename(child, trash, &name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

fn next_name() -> String {
    NEXT.fetch_add(1, Ordering::Relaxed).to_string()
}

/// Another process may empty the same trash.
fn unless_gone(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty
            ) =>
        {
            Ok(())
        }
        done => done,
    }
}
