//! Deletes the files of chats that nobody has used for long enough, and what broke off on its way in or out.
//!
//! Judged by the last use that was noted, never by the times of directories, and under the chat's lock, so that a chat in
//! use stays whatever its time says. What became due before the server started, while none ran or in a backup that was put back,
//! is spared first, for long enough that somebody sees the warning.

use std::{
    fs, io,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{
    Inner, WorkspaceError, Workspaces, layout,
    lock::{self, Attempt},
    trash, uploads,
};

/// How long to wait between two rounds, at most and at least.
const ROUNDS: (Duration, Duration) = (Duration::from_hours(1), Duration::from_mins(1));

/// For how long a chat is spared; a shorter `workspace.retention` bounds it.
const SPARED_FOR: Duration = Duration::from_hours(24);

/// What a sweep did, in chats.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Their files are gone.
    pub deleted: usize,
    /// They were due before the server started, and are kept for another day, or for the retention if that is shorter.
    pub spared: usize,
}

/// Sweeps again and again until `stopping` is cancelled.
pub(crate) async fn keep_sweeping(workspaces: Workspaces, stopping: CancellationToken) {
    if !workspaces.are_kept() {
        return;
    }
    let retention = workspaces.inner.retention.unwrap_or(Duration::MAX);
    let pause = (retention / 10).clamp(ROUNDS.1, ROUNDS.0);
    loop {
        match workspaces.sweep().await {
            Ok(Swept { deleted, spared }) => {
                if deleted > 0 {
                    tracing::info!(
                        chats = deleted,
                        "Deleted the files of chats that nobody used: {deleted}"
                    );
                }
                if spared > 0 {
                    tracing::warn!(
                        chats = spared,
                        "Chats that were unused for longer than `workspace.retention` when this server started: {spared}; if they stay \
                         unused, their files are deleted in {} (after a restore, `touch -c workspaces/*/used` in the data directory gives \
                         them their whole time again; `workspace.retention = 0` keeps all)",
                        in_words(SPARED_FOR.min(retention))
                    );
                }
            }
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "The files of unused chats cannot be deleted"
            ),
        }
        tokio::select! {
            () = sleep(pause) => {}
            () = stopping.cancelled() => return,
        }
    }
}

fn in_words(duration: Duration) -> String {
    match duration.as_secs().div_ceil(60) {
        1 => "a minute".to_owned(),
        minutes @ ..120 => format!("{minutes} minutes"),
        minutes => format!("{} hours", minutes / 60),
    }
}

pub(super) async fn sweep(inner: &Arc<Inner>) -> Result<Swept, WorkspaceError> {
    let inner = Arc::clone(inner);
    let swept = tokio::task::spawn_blocking(move || sweep_all(&inner)).await;
    swept.expect("a sweep does not panic, and nobody cancels it")
}

/// One chat that cannot be deleted does not keep the others.
fn sweep_all(inner: &Inner) -> Result<Swept, WorkspaceError> {
    let root = inner.root()?;
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Swept::default()),
        Err(error) => return Err(error.into()),
    };
    let (mut swept, mut failed) = (Swept::default(), None);
    for entry in entries {
        let entry = entry?;
        let is_chat = entry.file_type()?.is_dir();
        if !is_chat || entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        match sweep_one(inner, root, &entry.path()) {
            Ok(Done::Deleted) => swept.deleted += 1,
            Ok(Done::Spared) => swept.spared += 1,
            Ok(Done::Nothing) => {}
            Err(error) => failed = Some((entry.path(), error)),
        }
    }
    trash::empty(root)?;
    match failed {
        Some((_, error)) if swept == Swept::default() => return Err(error.into()),
        Some((path, error)) => tracing::warn!(
            error = &error as &dyn std::error::Error,
            "Some unused chats cannot be deleted, `{}` among them",
            path.display()
        ),
        None => {}
    }
    Ok(swept)
}

enum Done {
    Nothing,
    Deleted,
    Spared,
}

fn sweep_one(inner: &Inner, root: &Path, directory: &Path) -> io::Result<Done> {
    if overdue(inner, directory)?.is_none() {
        uploads::clear_parts(directory, layout::system_time((inner.clock)()))?;
        return Ok(Done::Nothing);
    }
    let Attempt::Done(_lock) = lock::exclude(directory)? else {
        return Ok(Done::Nothing);
    };
    // Somebody may have used it just before the lock was taken.
    let Some(Overdue { retention, since }) = overdue(inner, directory)? else {
        return Ok(Done::Nothing);
    };
    let now = layout::system_time((inner.clock)());
    let is_recent = now
        .duration_since(since)
        .is_ok_and(|overdue| overdue < retention.max(SPARED_FOR));
    // A chat that was spared long ago comes from a backup.
    if since <= inner.started && !(is_recent && layout::is_spared(directory)?) {
        layout::spare(directory, now - retention + SPARED_FOR.min(retention))?;
        return Ok(Done::Spared);
    }
    trash::discard(root, directory)?;
    Ok(Done::Deleted)
}

/// A chat that may be deleted.
struct Overdue {
    retention: Duration,
    since: SystemTime,
}

/// Whether a chat was unused for too long. One whose use was never noted is given its time from now on.
fn overdue(inner: &Inner, directory: &Path) -> io::Result<Option<Overdue>> {
    let Some(retention) = inner.retention else {
        return Ok(None);
    };
    let now = (inner.clock)();
    let Some(used) = layout::last_use(directory)? else {
        if directory.is_dir() {
            layout::note_use(directory, now)?;
        }
        return Ok(None);
    };
    let since = used.checked_add(retention);
    Ok(since
        .filter(|since| *since < layout::system_time(now))
        .map(|since| Overdue { retention, since }))
}
