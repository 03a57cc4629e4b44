//! Deletes the files of chats that nobody has used for long enough, and what broke off on its way in or out.
//!
//! Judged by the last use that was noted, never by the times of directories, and under the chat's lock, so that a chat in
//! use stays whatever its time says.

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

/// Sweeps again and again until `stopping` is cancelled.
pub(crate) async fn keep_sweeping(workspaces: Workspaces, stopping: CancellationToken) {
    if !workspaces.are_kept() {
        return;
    }
    let retention = workspaces.inner.retention;
    let pause = retention.map_or(ROUNDS.0, |retention| {
        (retention / 10).clamp(ROUNDS.1, ROUNDS.0)
    });
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
    let inner = Arc::clone(inner);
    let swept = tokio::task::spawn_blocking(move || sweep_all(&inner)).await;
    swept.expect("a sweep does not panic, and nobody cancels it")
}

/// One chat that cannot be deleted does not keep the others.
fn sweep_all(inner: &Inner) -> Result<usize, WorkspaceError> {
    let root = inner.root()?;
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error.into()),
    };
    let (mut swept, mut failed) = (0, None);
    for entry in entries {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        match sweep_one(inner, root, &entry.path()) {
            Ok(true) => swept += 1,
            Ok(false) => {}
            Err(error) => failed = Some(error),
        }
    }
    trash::empty(root)?;
    match failed {
        Some(error) if swept == 0 => Err(error.into()),
        _ => Ok(swept),
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
