//! Whom a chat's files belong to: the first user who touches them.

use std::{fs, io, io::Write, path::Path};

use tempfile::NamedTempFile;

use super::{Inner, WorkspaceError};
use crate::session::Session;

/// The name of the file.
const OWNER: &str = "owner";

/// Lets the session's user in, or not; who comes first becomes the owner.
pub(super) fn claim(
    inner: &Inner,
    directory: &Path,
    session: &Session,
) -> Result<(), WorkspaceError> {
    let Some(user) = user(inner, session)? else {
        return Ok(());
    };
    if read(directory)?.is_none() {
        put_once(directory, OWNER, user, Survives::TheMachine)?;
    }
    check_user(directory, user)
}

/// Lets the session's user in, or not, and leaves the owner as it is.
pub(super) fn check(
    inner: &Inner,
    directory: &Path,
    session: &Session,
) -> Result<(), WorkspaceError> {
    match user(inner, session)? {
        Some(user) => check_user(directory, user),
        None => Ok(()),
    }
}

/// What a file has to survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Survives {
    /// The end of the process: it can be made again.
    TheProcess,
    /// The end of the machine.
    TheMachine,
}

/// Writes a file that nobody replaces; where there is one already, that one stays.
pub(super) fn put_once(
    directory: &Path,
    name: &str,
    text: &str,
    survives: Survives,
) -> io::Result<()> {
    let mut file = NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    if survives == Survives::TheMachine {
        file.as_file().sync_all()?;
    }
    match file.persist_noclobber(directory.join(name)) {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error.error),
    }
}

/// Refuses a request that would have to name its user, before anything is made for it.
pub(super) fn require(inner: &Inner, session: &Session) -> Result<(), WorkspaceError> {
    user(inner, session).map(|_| ())
}

/// The user whose right has to be looked at; none where the chat is shared, or any user may be.
fn user<'a>(inner: &Inner, session: &'a Session) -> Result<Option<&'a str>, WorkspaceError> {
    match &session.user_email {
        _ if session.shared => Ok(None),
        Some(email) => Ok(Some(email)),
        None if inner.require_owner => Err(WorkspaceError::UserRequired),
        None => Ok(None),
    }
}

fn check_user(directory: &Path, user: &str) -> Result<(), WorkspaceError> {
    match read(directory)? {
        Some(owner) if owner != user => Err(WorkspaceError::BelongsToAnotherUser),
        _ => Ok(()),
    }
}

/// The owner's e-mail address; none where nobody has become it yet.
pub(super) fn read(directory: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(directory.join(OWNER)) {
        Ok(owner) => Ok(Some(owner)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
