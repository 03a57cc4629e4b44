//! The trait that every backend has, and the choice of a backend.

use std::{sync::Arc, time::Instant};

use async_trait::async_trait;

use crate::{
    command::{Command, CommandEnd, Output},
    config::{BackendName, SandboxConfig},
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

    /// Stops all.
    async fn stop_all(&self);

    /// Stops those that have been without a call for longer than `sandbox.idle_timeout` at `now`; says how many.
    async fn stop_idle(&self, now: Instant) -> usize;

    /// Says what works here.
    fn state(&self) -> SandboxesState;
}

/// Opens the backend that `config` names. Where it does not work here, the answer is one whose every call says why.
///
/// Only `auto` may become none; an explicit name never falls to another backend.
#[must_use]
pub fn open(config: &SandboxConfig) -> Arc<dyn Sandboxes> {
    match config.backend {
        BackendName::None => Arc::new(NoSandboxes::wanted()),
        BackendName::Docker => Arc::new(NoSandboxes::because(Unavailable {
            reason: "this version has no Docker backend yet".to_owned(),
            cure: "set `sandbox.backend` to `auto`, `namespace` or `none`".to_owned(),
        })),
        BackendName::Auto | BackendName::Namespace => open_namespace(config),
    }
}

#[cfg(target_os = "linux")]
fn open_namespace(config: &SandboxConfig) -> Arc<dyn Sandboxes> {
    match crate::namespace::NamespaceSandboxes::open(config) {
        Ok(sandboxes) => Arc::new(sandboxes),
        Err(unavailable) => Arc::new(NoSandboxes::because(unavailable)),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_namespace(_config: &SandboxConfig) -> Arc<dyn Sandboxes> {
    Arc::new(NoSandboxes::because(Unavailable {
        reason: "namespaces are a part of Linux, and this is another system".to_owned(),
        cure: "set `sandbox.backend` to `none`, or run Foreword on Linux".to_owned(),
    }))
}
