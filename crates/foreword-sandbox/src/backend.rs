//! The trait that every backend has, and the choice of a backend.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;

use crate::{
    command::{Command, CommandEnd, Output},
    config::{BackendName, SandboxConfig},
    docker,
    error::SandboxError,
    files::{FileRead, FileStat, ListDirectory, Listing, ReadFile, WriteFile, Written},
    none::NoSandboxes,
    spec::{SandboxKey, SandboxSpec},
    state::{SandboxesState, Unavailable},
};

/// Runs commands and moves files in isolation, in one sandbox for each chat.
///
/// Every method that takes a [`SandboxSpec`] starts the sandbox if it does not run, once however many ask at a time. Dropping a
/// future ends what it began: a command is ended with all that it started, an unfinished file is not left behind.
#[async_trait]
pub trait Sandboxes: Send + Sync {
    /// Starts the sandbox if it does not run, and says whether it had to.
    async fn open(&self, spec: &SandboxSpec) -> Result<bool, SandboxError>;

    /// Runs a command to its end, and gives `output` what it writes on the way.
    async fn run(
        &self,
        spec: &SandboxSpec,
        command: &Command,
        output: &mut dyn Output,
    ) -> Result<CommandEnd, SandboxError>;

    /// Reads a regular file, or a part of it; of a directory, only what it is.
    async fn read_file(&self, spec: &SandboxSpec, read: ReadFile)
    -> Result<FileRead, SandboxError>;

    /// Creates or replaces a file.
    async fn write_file(
        &self,
        spec: &SandboxSpec,
        write: WriteFile,
    ) -> Result<Written, SandboxError>;

    /// Says what is in a directory.
    async fn list_directory(
        &self,
        spec: &SandboxSpec,
        list: ListDirectory,
    ) -> Result<Listing, SandboxError>;

    /// Says what a path is, after links. It may know that without starting the sandbox.
    async fn stat(
        &self,
        spec: &SandboxSpec,
        path: &std::path::Path,
    ) -> Result<FileStat, SandboxError>;

    /// Stops the sandbox and everything in it, and waits until it is gone; says whether it ran.
    async fn stop(&self, key: &SandboxKey) -> bool;

    /// Stops the sandbox of a chat that is being deleted, and deletes what the backend keeps of it besides the workspace.
    async fn forget(&self, key: &SandboxKey) {
        self.stop(key).await;
    }

    /// Stops all.
    async fn stop_all(&self);

    /// The server ends: stops what ends with it, and leaves what the next server finds again.
    async fn close(&self) {
        self.stop_all().await;
    }

    /// Stops those that have been without a call for longer than `sandbox.idle_timeout` at `now`; says how many.
    async fn stop_idle(&self, now: Instant) -> usize;

    /// Prepares what the first sandbox would else wait for, such as an image. What goes wrong is said by whoever needs it.
    async fn prepare(&self) {}

    /// Looks what works now; it takes a few seconds at most.
    async fn check(&self) -> SandboxesState {
        self.state()
    }

    /// Says what works here, as far as it was last seen.
    fn state(&self) -> SandboxesState;
}

/// What a backend is opened with.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The settings.
    pub config: SandboxConfig,
    /// The server's data directory, in which workspaces are.
    pub data_dir: PathBuf,
    /// How often is looked at what the background of a sandbox writes while no command runs.
    pub guard_period: Duration,
}

impl Setup {
    /// What a server opens a backend with.
    #[must_use]
    pub fn new(config: SandboxConfig, data_dir: impl Into<PathBuf>) -> Self {
        Self {
            config,
            data_dir: data_dir.into(),
            guard_period: GUARD_PERIOD,
        }
    }
}

const GUARD_PERIOD: Duration = Duration::from_secs(5);

/// Opens the backend that the settings name. Where it does not work here, the answer is one whose every call says why.
///
/// Only `auto` may become none; an explicit name never falls to another backend. Call it within a tokio runtime.
#[must_use]
pub fn open(setup: &Setup) -> Arc<dyn Sandboxes> {
    if let Err(error) = setup.config.check() {
        return Arc::new(NoSandboxes::because(Unavailable {
            reason: error.to_string(),
            cure: "change the setting and start again".to_owned(),
        }));
    }
    match setup.config.backend {
        BackendName::None => Arc::new(NoSandboxes::wanted()),
        BackendName::Docker => Arc::new(docker::open(setup)),
        BackendName::Auto | BackendName::Namespace => open_namespace(setup),
    }
}

#[cfg(target_os = "linux")]
fn open_namespace(setup: &Setup) -> Arc<dyn Sandboxes> {
    match crate::namespace::Namespaces::open(setup) {
        Ok(sandboxes) => Arc::new(sandboxes),
        Err(unavailable) => Arc::new(NoSandboxes::because(unavailable)),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_namespace(_setup: &Setup) -> Arc<dyn Sandboxes> {
    Arc::new(NoSandboxes::because(Unavailable {
        reason: "namespaces are a part of Linux, and this is another system".to_owned(),
        cure: "set `sandbox.backend` to `docker` or `none`, or run Foreword on Linux".to_owned(),
    }))
}
