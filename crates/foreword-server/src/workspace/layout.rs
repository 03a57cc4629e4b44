//! The names in a chat's directory, and how they are made: who may read them is settled before anything lies there.

use std::{
    fs::{self, DirBuilder, File, FileTimes, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use jiff::Timestamp;

use super::owner::{self, Survives};
use crate::session::ChatId;

pub(super) const HOME: &str = "home";
pub(super) const UPLOADS: &str = "uploads";
pub(super) const OUTPUTS: &str = "outputs";
pub(super) const PARTS: &str = "parts";
pub(super) const SKILLS: &str = "skills";

/// Holds the chat's id; written last, so that where it is, everything is.
const CHAT: &str = "chat";

/// Its modification time is that of the last use.
const USED: &str = "used";

/// Has the time of [`USED`] from when the chat was spared to when it is used again.
const SPARED: &str = "spared";

/// How exactly the last use is kept.
const USE_STEP: Duration = Duration::from_mins(1);

/// Makes a directory that opens to nobody else, with those above it; one that exists stays as it is.
pub(super) fn make_private(directory: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

/// Makes what a chat's directory holds, unless it is there.
pub(super) fn complete(
    directory: &Path,
    chat_id: &ChatId,
    sandbox_user: Option<u32>,
) -> io::Result<()> {
    if directory.join(CHAT).try_exists()? {
        return Ok(());
    }
    for (name, mode, user) in [
        (HOME, 0o700, sandbox_user),
        (OUTPUTS, 0o700, sandbox_user),
        (UPLOADS, 0o755, None),
        (PARTS, 0o700, None),
    ] {
        let path = directory.join(name);
        make_private(&path)?;
        let handle = File::open(&path)?;
        handle.set_permissions(fs::Permissions::from_mode(mode))?;
        if let Some(user) = user
            && handle.metadata()?.uid() != user
        {
            fchown(&handle, Some(user), Some(user))?;
        }
    }
    // Waiting for the disk would be most of what a chat's first call takes.
    owner::put_once(directory, CHAT, chat_id.as_str(), Survives::TheProcess)
}

/// Notes that the chat is used at this moment.
pub(super) fn note_use(directory: &Path, now: Timestamp) -> io::Result<()> {
    let now = system_time(now);
    if let Some(used) = last_use(directory)? {
        // A clock that was set back must not keep a chat for longer than it should.
        let apart = now.duration_since(used).unwrap_or(USE_STEP);
        if apart < USE_STEP {
            return Ok(());
        }
    }
    set_time(&directory.join(USED), now)
}

/// Takes the chat as used last at `used`, and remembers that this was no use of it.
pub(super) fn spare(directory: &Path, used: SystemTime) -> io::Result<()> {
    set_time(&directory.join(SPARED), used)?;
    set_time(&directory.join(USED), used)
}

/// Whether the chat has not been used since it was spared.
pub(super) fn is_spared(directory: &Path) -> io::Result<bool> {
    let spared = time_of(&directory.join(SPARED))?;
    Ok(spared.is_some() && spared == last_use(directory)?)
}

fn set_time(path: &Path, time: SystemTime) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?
        .set_times(FileTimes::new().set_modified(time))
}

/// The same moment as files have it; what lies before 1970 is 1970.
pub(crate) fn system_time(now: Timestamp) -> SystemTime {
    UNIX_EPOCH + Duration::try_from(now.as_duration()).unwrap_or_default()
}

/// When the chat was used last; none where nobody has noted it.
pub(super) fn last_use(directory: &Path) -> io::Result<Option<SystemTime>> {
    time_of(&directory.join(USED))
}

/// When the file was changed last; none where there is no file.
fn time_of(path: &Path) -> io::Result<Option<SystemTime>> {
    match path.metadata() {
        Ok(metadata) => metadata.modified().map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
