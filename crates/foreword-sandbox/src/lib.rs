//! Runs commands and moves files in isolation: one trait, [`Sandboxes`], backends behind it.
//!
//! A caller names a chat by a [`SandboxSpec`] and asks for work; whether a sandbox runs already, has to be started, or has to
//! make room for another is decided here. Whatever the work touches is touched inside the sandbox, as its user, so neither
//! a link nor a race leads out of it.
//!
//! Deliberately absent: prompts, HTTP, and the wording of tools. The backends are `namespace` (Linux), `docker`, and none.

mod backend;
mod command;
pub mod config;
mod docker;
#[cfg(target_os = "linux")]
mod driver;
mod error;
mod files;
mod idle;
#[cfg(target_os = "linux")]
mod init;
#[cfg(target_os = "linux")]
mod namespace;
mod none;
mod operation;
mod pool;
mod pooled;
mod spec;
mod state;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod workspace;

pub use backend::{Sandboxes, Setup, open};
pub use command::{
    BackgroundOutput, Command, CommandEnd, Ending, MAX_COMMAND_BYTES, Output, Restart,
};
pub use config::{
    BackendName, CONTAINER_UID, ConfigError, ContainerFiles, DockerConfig, Network, SandboxConfig,
};
pub use error::{FileError, NotFound, SandboxError};
pub use files::{
    Content, Entry, FileKind, FileRead, FileStat, InsteadOf, ListDirectory, Listing, ReadFile,
    WriteFile, Written,
};
pub use idle::stop_idle_sandboxes;
pub use none::NoSandboxes;
pub use spec::{HOME, OUTPUTS, SKILLS, SandboxKey, SandboxSpec, SkillsDirectory, UPLOADS};
pub use state::{Enforcement, LimitState, SandboxesState, Unavailable, Usage};

#[cfg(target_os = "linux")]
pub use init::INIT_ARGUMENT;
#[cfg(target_os = "linux")]
pub use workspace::{measure, remove_tree};

/// Becomes the init process of a sandbox if this process was started as one, and then does not return.
///
/// A binary that opens sandboxes calls this first thing in `main`, before it makes a thread: entering a user namespace fails in a
/// process that has more than one.
pub fn init_main() {
    #[cfg(target_os = "linux")]
    init::init_main();
}
