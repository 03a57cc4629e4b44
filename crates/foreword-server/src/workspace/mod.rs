//! Where a chat's files lie, who may use them, and for how long they are kept.
//!
//! A chat has one directory, `<root>/<file name of the chat>`, made on first use:
//!
//! | Name | Holds |
//! |---|---|
//! | `home`, `outputs` | what the sandbox writes; they belong to the sandbox's user where the server runs as root |
//! | `uploads` | what the user uploaded; the sandbox reads it |
//! | `parts` | uploads that are not complete |
//! | `lock` | held shared by whoever uses the chat, exclusively by whoever deletes it, across processes |
//! | `owner`, `chat`, `used` | the first user's e-mail address, the chat's id, and the time of the last use |
//! | `skills` | the skills that the chat's user has, as the sandbox shows them |
//! | `total`, `hashes` | how much the uploads take together, and their MD5 |
//!
//! The directory itself opens to the server's user alone (0700), whatever the rights further in. Nothing about chats is
//! kept in memory: a second process and a restart see the same. Deliberately absent: sandboxes, HTTP and MCP.

mod access;
pub(crate) mod archive;
pub(crate) mod files;
pub(crate) mod hashes;
mod layout;
mod lock;
pub(crate) mod media;
pub(crate) mod name;
mod owner;
mod retention;
mod trash;
pub(crate) mod uploads;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use cap_std::fs::Dir;
use foreword_store::Clock;

use crate::{
    config::ServerConfig,
    session::{ChatId, Session},
};

pub(crate) use layout::system_time;
pub use retention::Swept;
pub(crate) use retention::keep_sweeping;

/// The files of all chats; cheap to clone.
#[derive(Clone)]
pub struct Workspaces {
    inner: Arc<Inner>,
}

struct Inner {
    root: Option<PathBuf>,
    /// Whom `home` and `outputs` belong to; none where the server is not root and can give nothing away.
    sandbox_user: Option<u32>,
    require_owner: bool,
    /// How long a chat is kept without use; none for ever.
    retention: Option<Duration>,
    /// When this server began.
    started: SystemTime,
    clock: Clock,
}

/// One chat's files, which nobody deletes as long as this is held.
#[derive(Debug)]
pub struct Workspace {
    chat_id: ChatId,
    owner: Option<String>,
    path: PathBuf,
    uploads: Dir,
    outputs: Dir,
    lock: Arc<lock::Shared>,
}

/// Keeps a chat's files from being deleted, as [`Workspace`] does, for work that may outlast it.
#[derive(Debug)]
pub struct Held {
    _lock: Arc<lock::Shared>,
}

/// One chat's files, which nobody uses as long as this is held.
#[derive(Debug)]
pub struct Excluded {
    root: PathBuf,
    directory: PathBuf,
    lock: lock::Exclusive,
}

/// Why a chat's files cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// This server keeps no files.
    #[error("this server keeps no files")]
    Off,
    /// The first user who touched the chat was another one.
    #[error("this chat belongs to another user")]
    BelongsToAnotherUser,
    /// `session.require_owner`, and the request names no user.
    #[error("this server needs to know the user: send the header `X-User-Email`")]
    UserRequired,
    /// The chat is being deleted, or is in use and is to be deleted.
    #[error("this chat's files are in use; try again in a moment")]
    InUse,
    /// They were made when the server, or the sandbox, was another user.
    #[error(
        "this chat's files belong to user {found} of the host, and sandboxes here are user {wanted}: the operator can give them \
         over with `chown -R {wanted}:{wanted}` on the chat's `home` and `outputs`, or set `sandbox.backend` and `sandbox.host_uid` back"
    )]
    BelongToAnotherUid {
        /// Whom they belong to.
        found: u32,
        /// Whom they would have to belong to.
        wanted: u32,
    },
    /// The file system.
    #[error("the chat's files cannot be reached")]
    Failed(#[from] io::Error),
}

impl Workspaces {
    /// Keeps the files under `root`; none keeps no files.
    ///
    /// Where the server runs as root, what the sandbox writes belongs to user and group `host_uid`.
    #[must_use]
    pub fn new(root: Option<PathBuf>, host_uid: u32, config: &ServerConfig, clock: Clock) -> Self {
        let is_root = rustix::process::geteuid().is_root();
        Self {
            inner: Arc::new(Inner {
                root,
                sandbox_user: is_root.then_some(host_uid),
                require_owner: config.session.require_owner,
                retention: config.workspace.retention(),
                started: layout::system_time(clock()),
                clock,
            }),
        }
    }

    /// Whether any files are kept here.
    #[must_use]
    pub fn are_kept(&self) -> bool {
        self.inner.root.is_some()
    }

    /// Whether a chat's files could be kept as far as that can be told without making anything.
    pub fn check_writable(&self) -> io::Result<()> {
        let root = self.inner.root.as_deref();
        let mut places = root.into_iter().flat_map(Path::ancestors);
        match places.find(|place| place.exists()) {
            // A file without a name: it is gone when it is closed, whatever happens.
            Some(place) => tempfile::tempfile_in(place).map(drop),
            None => Ok(()),
        }
    }

    /// The session's files, made where they are missing. The first user becomes their owner.
    pub async fn enter(&self, session: &Session) -> Result<Workspace, WorkspaceError> {
        access::enter(&self.inner, session).await
    }

    /// A chat's files, if it has any; whether the caller may see them depends on [`Workspace::owner`].
    pub async fn find(&self, chat_id: &ChatId) -> Result<Option<Workspace>, WorkspaceError> {
        access::find(&self.inner, chat_id, None).await
    }

    /// The session's files, if it has any and they are its user's. Nothing is made and nobody becomes owner.
    pub async fn find_for(&self, session: &Session) -> Result<Option<Workspace>, WorkspaceError> {
        access::find(&self.inner, &session.chat_id, Some(session)).await
    }

    /// Something that is another thing after each change of the chat's uploads, by whichever process.
    pub(crate) async fn uploads_stamp(&self, chat_id: &ChatId) -> uploads::Stamp {
        let directory = self.inner.directory(chat_id);
        let stamp = tokio::task::spawn_blocking(move || uploads::Stamp::of(&directory.ok()?)).await;
        stamp.ok().flatten().unwrap_or_default()
    }

    /// Keeps everybody out of a chat's files, once nobody uses them any more; none where there are none.
    pub async fn exclude(&self, chat_id: &ChatId) -> Result<Option<Excluded>, WorkspaceError> {
        access::exclude(&self.inner, chat_id).await
    }

    /// Deletes what was not used for longer than `workspace.retention`. What was due before this server started is spared first: a
    /// backup that is put back loses nothing before somebody has seen it.
    ///
    /// # Errors
    ///
    /// The directory of the workspaces cannot be read, or nothing could be done to any of the chats that are due.
    pub async fn sweep(&self) -> Result<Swept, WorkspaceError> {
        retention::sweep(&self.inner).await
    }
}

impl Workspace {
    /// The chat.
    #[must_use]
    pub fn chat_id(&self) -> &ChatId {
        &self.chat_id
    }

    /// The e-mail address of its first user, if any was named.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    /// What the sandbox has as its home directory.
    #[must_use]
    pub fn home_path(&self) -> PathBuf {
        self.path.join(layout::HOME)
    }

    /// What the sandbox has as `/mnt/user-data/uploads`.
    #[must_use]
    pub fn uploads_path(&self) -> PathBuf {
        self.path.join(layout::UPLOADS)
    }

    /// Where the skills are put together that the sandbox sees.
    #[must_use]
    pub fn skills_path(&self) -> PathBuf {
        self.path.join(layout::SKILLS)
    }

    /// What the sandbox has as `/mnt/user-data/outputs`.
    #[must_use]
    pub fn outputs_path(&self) -> PathBuf {
        self.path.join(layout::OUTPUTS)
    }

    /// Nobody deletes the files as long as this is held, either.
    #[must_use]
    pub fn hold(&self) -> Held {
        Held {
            _lock: Arc::clone(&self.lock),
        }
    }

    /// The uploads, as a handle that cannot be left by links, `..` or absolute names.
    #[must_use]
    pub fn uploads(&self) -> &Dir {
        &self.uploads
    }

    /// The outputs, likewise.
    #[must_use]
    pub fn outputs(&self) -> &Dir {
        &self.outputs
    }
}

impl Excluded {
    /// Deletes them.
    pub async fn discard(self) -> Result<(), WorkspaceError> {
        access::discard(self).await
    }
}

impl Inner {
    fn root(&self) -> Result<&Path, WorkspaceError> {
        self.root.as_deref().ok_or(WorkspaceError::Off)
    }

    fn directory(&self, chat_id: &ChatId) -> Result<PathBuf, WorkspaceError> {
        Ok(self.root()?.join(chat_id.file_name()))
    }
}
