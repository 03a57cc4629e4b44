//! Deletes the files of chats that nobody has used for long enough, and what broke off on its way in or out.
//!
//! Judged by the last use that was noted, never by the times of directories, and under the chat's lock, so that a chat in
//! use stays whatever its time says. What became due while no server ran, or before a backup was put back, is spared once, for
//! long enough that somebody sees the warning.

use std::{fs, io, path::Path, sync::Arc, time::Duration};

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{
    Inner, WorkspaceError, Workspaces, layout,
    lock::{self, Attempt},
    trash, uploads,
};

/// How long to wait between two rounds, at most and at least.
const ROUNDS: (Duration, Duration) = (Duration::from_hours(1), Duration::from_mins(1));

/// For how long chats are spared that are due when a server starts; a shorter `workspace.retention` bounds it.
const SPARED: Duration = Duration::from_hours(24);

/// Sweeps again and again until `stopping` is cancelled.
pub(crate) async fn keep_sweeping(workspaces: Workspaces, stopping: CancellationToken) {
    if !workspaces.are_kept() {
        return;
    }
    let retention = workspaces.inner.retention;
    let pause = retention.map_or(ROUNDS.0, |retention| {
        (retention / 10).clamp(ROUNDS.1, ROUNDS.0)
    });
    match workspaces.spare().await {
        Ok(0) => {}
        Ok(chats) => tracing::warn!(
            chats,
            "Chats that were unused for longer than `workspace.retention` before this start: {chats}; if they stay unused, their files \
             are deleted in {} hours (`workspace.retention = 0` keeps them)",
            spared(retention.unwrap_or_default())
                .as_secs()
                .div_ceil(3600)
        ),
        Err(error) => tracing::warn!(
            error = &error as &dyn std::error::Error,
            "Unused chats cannot be spared"
        ),
    }
    loop {
        match workspaces.sweep().await {
            Ok(0) => {}
            Ok(chats) => tracing::info!(chats, "Deleted the files of {chats} unused chats"),
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

pub(super) async fn sweep(inner: &Arc<Inner>) -> Result<usize, WorkspaceError> {
    on_blocking_thread(inner, sweep_all).await
}

pub(super) async fn spare(inner: &Arc<Inner>) -> Result<usize, WorkspaceError> {
    on_blocking_thread(inner, spare_all).await
}

async fn on_blocking_thread(
    inner: &Arc<Inner>,
    work: fn(&Inner) -> Result<usize, WorkspaceError>,
) -> Result<usize, WorkspaceError> {
    let inner = Arc::clone(inner);
    let done = tokio::task::spawn_blocking(move || work(&inner)).await;
    done.expect("a sweep does not panic, and nobody cancels it")
}

/// One chat that cannot be deleted does not keep the others.
fn sweep_all(inner: &Inner) -> Result<usize, WorkspaceError> {
    let root = inner.root()?;
    let swept = for_each_chat(root, |directory| sweep_one(inner, root, directory));
    trash::empty(root)?;
    swept
}

/// Spares the chats that are due, unless they were spared before.
fn spare_all(inner: &Inner) -> Result<usize, WorkspaceError> {
    let Some(retention) = inner.retention else {
        return Ok(0);
    };
    let used = layout::system_time((inner.clock)()) - retention + spared(retention);
    for_each_chat(inner.root()?, |directory| {
        if !is_due(inner, directory)? || layout::is_spared(directory)? {
            return Ok(false);
        }
        let Attempt::Done(_lock) = lock::exclude(directory)? else {
            return Ok(false);
        };
        // Somebody may have used it just before the lock was taken.
        if !is_due(inner, directory)? {
            return Ok(false);
        }
        layout::spare(directory, used).map(|()| true)
    })
}

fn spared(retention: Duration) -> Duration {
    SPARED.min(retention)
}

/// How many chats something was done to. One where it fails does not keep it from the others.
fn for_each_chat(
    root: &Path,
    mut work: impl FnMut(&Path) -> io::Result<bool>,
) -> Result<usize, WorkspaceError> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error.into()),
    };
    let (mut done, mut failed) = (0, None);
    for entry in entries {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        match work(&entry.path()) {
            Ok(true) => done += 1,
            Ok(false) => {}
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if done == 0 => Err(error.into()),
        _ => Ok(done),
    }
}

fn sweep_one(inner: &Inner, root: &Path, directory: &Path) -> io::Result<bool> {
    if !is_due(inner, directory)? {
        uploads::clear_parts(directory, layout::system_time((inner.clock)()))?;
        return Ok(false);
    }
    let Attempt::Done(_lock) = lock::exclude(directory)? else {
        return Ok(false);
    };
    // Somebody may have used it just before the lock was taken.
    if !is_due(inner, directory)? {
        return Ok(false);
    }
    trash::discard(root, directory)?;
    Ok(true)
}

/// A chat whose use was never noted is given its time from now on.
fn is_due(inner: &Inner, directory: &Path) -> io::Result<bool> {
    let Some(retention) = inner.retention else {
        return Ok(false);
    };
    let now = (inner.clock)();
    match layout::last_use(directory)? {
        Some(used) => {
            let unused = layout::system_time(now).duration_since(used);
            Ok(unused.is_ok_and(|unused| unused > retention))
        }
        None if directory.is_dir() => layout::note_use(directory, now).map(|()| false),
        None => Ok(false),
    }
}
