//! Chats as a whole, and what happens to the sandboxes of those that go.

use std::{
    fs::{File, TryLockError},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock},
    time::Instant,
};

use async_trait::async_trait;
use foreword_sandbox::{
    Command, CommandEnd, FileRead, FileStat, ListDirectory, Listing, NoSandboxes, Output, ReadFile,
    SandboxError, SandboxKey, SandboxSpec, Sandboxes, SandboxesState, WriteFile, Written,
};

use crate::support::TestServer;

/// Sandboxes that note, whenever one is stopped, whether others are kept out of its chat.
struct Watched {
    inner: NoSandboxes,
    workspaces: OnceLock<PathBuf>,
    stops: Mutex<Vec<bool>>,
}

#[async_trait]
impl Sandboxes for Watched {
    async fn stop(&self, key: &SandboxKey) -> bool {
        let root = self.workspaces.get().unwrap();
        let lock = File::open(root.join(key.as_str()).join("lock")).unwrap();
        let excluded = matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock));
        self.stops.lock().unwrap().push(excluded);
        true
    }

    async fn open(&self, spec: &SandboxSpec) -> Result<bool, SandboxError> {
        self.inner.open(spec).await
    }

    async fn run(
        &self,
        spec: &SandboxSpec,
        command: &Command,
        output: &mut dyn Output,
    ) -> Result<CommandEnd, SandboxError> {
        self.inner.run(spec, command, output).await
    }

    async fn read_file(
        &self,
        spec: &SandboxSpec,
        read: ReadFile,
    ) -> Result<FileRead, SandboxError> {
        self.inner.read_file(spec, read).await
    }

    async fn write_file(
        &self,
        spec: &SandboxSpec,
        write: WriteFile,
    ) -> Result<Written, SandboxError> {
        self.inner.write_file(spec, write).await
    }

    async fn list_directory(
        &self,
        spec: &SandboxSpec,
        list: ListDirectory,
    ) -> Result<Listing, SandboxError> {
        self.inner.list_directory(spec, list).await
    }

    async fn stat(&self, spec: &SandboxSpec, path: &Path) -> Result<FileStat, SandboxError> {
        self.inner.stat(spec, path).await
    }

    async fn stop_all(&self) {}

    async fn stop_idle(&self, now: Instant) -> usize {
        self.inner.stop_idle(now).await
    }

    fn state(&self) -> SandboxesState {
        self.inner.state()
    }
}

#[tokio::test]
async fn a_sandbox_is_stopped_once_more_when_nobody_can_start_it_anew() {
    let watched = Arc::new(Watched {
        inner: NoSandboxes::wanted(),
        workspaces: OnceLock::new(),
        stops: Mutex::default(),
    });
    let server = TestServer::builder().sandboxes(watched.clone()).start();
    let root = server.data.path().join("workspaces");
    watched.workspaces.set(root.clone()).unwrap();
    server.put("/api/uploads/c/a").body("x").await;
    assert_eq!(server.delete("/api/chats/c").await.status, 204);
    assert_eq!(*watched.stops.lock().unwrap(), [false, true]);
    assert!(!root.join("c").exists());
}
