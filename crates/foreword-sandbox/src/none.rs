//! No sandboxes: each call says why there are none.

use std::{path::Path, time::Instant};

use async_trait::async_trait;

use crate::{
    backend::Sandboxes,
    command::{Command, CommandEnd, Output},
    error::SandboxError,
    files::{FileRead, FileStat, ListDirectory, Listing, ReadFile, WriteFile, Written},
    spec::{SandboxKey, SandboxSpec},
    state::{SandboxesState, Unavailable},
};

/// No sandboxes, because none are wanted or none work.
#[derive(Debug)]
pub struct NoSandboxes {
    reason: Unavailable,
    wanted: bool,
}

impl NoSandboxes {
    /// The operator wants none.
    #[must_use]
    pub fn wanted() -> Self {
        let reason = Unavailable {
            reason: "`sandbox.backend` is `none`".to_owned(),
            cure: "set it to `auto` for commands and files".to_owned(),
        };
        Self {
            reason,
            wanted: true,
        }
    }

    /// They do not work here.
    #[must_use]
    pub fn because(reason: Unavailable) -> Self {
        Self {
            reason,
            wanted: false,
        }
    }

    fn refuse<T>(&self) -> Result<T, SandboxError> {
        Err(SandboxError::Unavailable(self.reason.clone()))
    }
}

#[async_trait]
impl Sandboxes for NoSandboxes {
    async fn open(&self, _spec: &SandboxSpec) -> Result<bool, SandboxError> {
        self.refuse()
    }

    async fn run(
        &self,
        _spec: &SandboxSpec,
        _command: &Command,
        _output: &mut dyn Output,
    ) -> Result<CommandEnd, SandboxError> {
        self.refuse()
    }

    async fn read_file(
        &self,
        _spec: &SandboxSpec,
        _read: ReadFile,
    ) -> Result<FileRead, SandboxError> {
        self.refuse()
    }

    async fn write_file(
        &self,
        _spec: &SandboxSpec,
        _write: WriteFile,
    ) -> Result<Written, SandboxError> {
        self.refuse()
    }

    async fn list_directory(
        &self,
        _spec: &SandboxSpec,
        _list: ListDirectory,
    ) -> Result<Listing, SandboxError> {
        self.refuse()
    }

    async fn stat(&self, _spec: &SandboxSpec, _path: &Path) -> Result<FileStat, SandboxError> {
        self.refuse()
    }

    async fn stop(&self, _key: &SandboxKey) -> bool {
        false
    }

    async fn stop_all(&self) {}

    async fn stop_idle(&self, _now: Instant) -> usize {
        0
    }

    fn state(&self) -> SandboxesState {
        SandboxesState {
            backend: "none",
            unavailable: (!self.wanted).then(|| self.reason.clone()),
            running: 0,
            max_running: 0,
            limits: Vec::new(),
            notes: Vec::new(),
        }
    }
}
