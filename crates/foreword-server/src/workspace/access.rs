//! Getting at a chat's files: with its lock, its owner's consent, and off the async threads.

use std::{os::unix::fs::MetadataExt, path::Path, sync::Arc, time::Duration};

use cap_std::{ambient_authority, fs::Dir};
use tokio::time::{Instant, sleep};

use super::{
    Excluded, Inner, Workspace, WorkspaceError, layout,
    lock::{self, Attempt},
    owner, trash,
};
use crate::session::{ChatId, Session};

/// How long to wait for a chat that others use, or delete.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait between two looks.
const PAUSE: Duration = Duration::from_millis(10);

pub(super) async fn enter(
    inner: &Arc<Inner>,
    session: &Session,
) -> Result<Workspace, WorkspaceError> {
    let entered = until_free(inner, {
        let session = session.clone();
        move |inner| try_enter(inner, &session)
    });
    entered.await?.ok_or(WorkspaceError::InUse)
}

pub(super) async fn find(
    inner: &Arc<Inner>,
    chat_id: &ChatId,
    session: Option<&Session>,
) -> Result<Option<Workspace>, WorkspaceError> {
    if inner.root.is_none() {
        return Ok(None);
    }
    let (chat_id, session) = (chat_id.clone(), session.cloned());
    until_free(inner, move |inner| {
        try_find(inner, &chat_id, session.as_ref())
    })
    .await
}

pub(super) async fn exclude(
    inner: &Arc<Inner>,
    chat_id: &ChatId,
) -> Result<Option<Excluded>, WorkspaceError> {
    let Some(root) = inner.root.clone() else {
        return Ok(None);
    };
    let directory = inner.directory(chat_id)?;
    let lock = {
        let directory = directory.clone();
        until_free(inner, move |_| Ok(lock::exclude(&directory)?)).await?
    };
    Ok(lock.map(|lock| Excluded {
        root,
        directory,
        lock,
    }))
}

pub(super) async fn discard(excluded: Excluded) -> Result<(), WorkspaceError> {
    let discarded = tokio::task::spawn_blocking(move || {
        trash::discard(&excluded.root, &excluded.directory)?;
        drop(excluded.lock);
        trash::empty(&excluded.root)
    });
    let discarded = discarded.await;
    Ok(discarded.expect("discarding does not panic, and nobody cancels it")?)
}

/// Does `attempt` where it may block, again and again while others hold the lock.
async fn until_free<T: Send + 'static>(
    inner: &Arc<Inner>,
    attempt: impl Fn(&Inner) -> Result<Attempt<T>, WorkspaceError> + Send + Sync + 'static,
) -> Result<Option<T>, WorkspaceError> {
    let attempt = Arc::new(attempt);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (inner, attempt) = (Arc::clone(inner), Arc::clone(&attempt));
        let attempted = tokio::task::spawn_blocking(move || attempt(&inner)).await;
        match attempted.expect("an attempt does not panic, and nobody cancels it")? {
            Attempt::Done(value) => return Ok(Some(value)),
            Attempt::Absent => return Ok(None),
            Attempt::Busy if Instant::now() >= deadline => return Err(WorkspaceError::InUse),
            Attempt::Busy => sleep(PAUSE).await,
        }
    }
}

fn try_enter(inner: &Inner, session: &Session) -> Result<Attempt<Workspace>, WorkspaceError> {
    let directory = inner.directory(&session.chat_id)?;
    owner::require(inner, session)?;
    let lock = match lock::share(&directory, true)? {
        Attempt::Done(lock) => lock,
        Attempt::Busy => return Ok(Attempt::Busy),
        Attempt::Absent => {
            layout::make_private(&directory)?;
            match lock::share(&directory, true)? {
                Attempt::Done(lock) => lock,
                // It was deleted in between.
                Attempt::Busy | Attempt::Absent => return Ok(Attempt::Busy),
            }
        }
    };
    layout::complete(&directory, &session.chat_id, inner.sandbox_user)?;
    check_uid(&directory, inner.sandbox_user)?;
    owner::claim(inner, &directory, session)?;
    layout::note_use(&directory, (inner.clock)())?;
    open(&directory, &session.chat_id, lock).map(Attempt::Done)
}

/// Whether a command could work in the home. Without this it would fail in ways that name no cause.
fn check_uid(directory: &Path, sandbox_user: Option<u32>) -> Result<(), WorkspaceError> {
    let found = directory.join(layout::HOME).symlink_metadata()?.uid();
    let wanted = sandbox_user.unwrap_or_else(|| rustix::process::geteuid().as_raw());
    if found == wanted {
        Ok(())
    } else {
        Err(WorkspaceError::BelongToAnotherUid { found, wanted })
    }
}

fn try_find(
    inner: &Inner,
    chat_id: &ChatId,
    session: Option<&Session>,
) -> Result<Attempt<Workspace>, WorkspaceError> {
    let directory = inner.directory(chat_id)?;
    let lock = match lock::share(&directory, false)? {
        Attempt::Done(lock) => lock,
        Attempt::Busy => return Ok(Attempt::Busy),
        Attempt::Absent => return Ok(Attempt::Absent),
    };
    if let Some(session) = session {
        owner::check(inner, &directory, session)?;
    }
    layout::complete(&directory, chat_id, inner.sandbox_user)?;
    layout::note_use(&directory, (inner.clock)())?;
    open(&directory, chat_id, lock).map(Attempt::Done)
}

fn open(
    directory: &Path,
    chat_id: &ChatId,
    lock: lock::Shared,
) -> Result<Workspace, WorkspaceError> {
    let handle = |name| Dir::open_ambient_dir(directory.join(name), ambient_authority());
    Ok(Workspace {
        chat_id: chat_id.clone(),
        owner: owner::read(directory)?,
        uploads: handle(layout::UPLOADS)?,
        outputs: handle(layout::OUTPUTS)?,
        path: directory.to_owned(),
        lock: Arc::new(lock),
    })
}
