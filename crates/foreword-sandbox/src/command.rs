//! Commands: what is asked for, and how one ended.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{error::SandboxError, state::Usage};

/// The longest command, in bytes.
pub const MAX_COMMAND_BYTES: usize = 1 << 20;

/// A command for `bash -lc`, in the home directory, with nothing to read on its standard input.
#[derive(Debug, Clone)]
pub struct Command {
    /// What bash runs: at most [`MAX_COMMAND_BYTES`], without NUL.
    pub script: String,
    /// Added to the environment that every command has (`HOME`, `PATH`, `LANG`, …).
    pub environment: Vec<(String, String)>,
    /// How long it may run; more than `sandbox.command_timeout_max` counts as that.
    pub timeout: Duration,
}

impl Command {
    /// Checks what bash cannot be given.
    pub(crate) fn check(&self) -> Result<(), SandboxError> {
        if self.script.len() > MAX_COMMAND_BYTES {
            return Err(SandboxError::InvalidCommand(
                "is longer than 1 MiB; write it to a file and run that",
            ));
        }
        if self.script.contains('\0') {
            return Err(SandboxError::InvalidCommand(
                "holds a NUL character, which bash cannot be given",
            ));
        }
        let environment_bytes: usize = self
            .environment
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        if environment_bytes > 8 << 10 {
            return Err(SandboxError::InvalidCommand(
                "has an environment of more than 8 KiB",
            ));
        }
        let bad_name = |name: &str| name.is_empty() || name.contains(['=', '\0']);
        if self
            .environment
            .iter()
            .any(|(name, value)| bad_name(name) || value.contains('\0'))
        {
            return Err(SandboxError::InvalidCommand(
                "has a variable that no environment can hold",
            ));
        }
        Ok(())
    }
}

/// Takes what a command writes, standard output and standard error in the order they were written.
///
/// It is called from the task that reads, so it must not wait: it counts, keeps a bounded head and tail, or writes to a local file.
/// Nothing is buffered on the way, so memory stays flat however much is written.
pub trait Output: Send {
    /// Takes the next bytes, at most 64 KiB. A character may be cut at either end.
    fn chunk(&mut self, bytes: &[u8]);
}

impl<F: FnMut(&[u8]) + Send> Output for F {
    fn chunk(&mut self, bytes: &[u8]) {
        self(bytes);
    }
}

/// How a command ended, and what else there is to say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandEnd {
    /// How it ended.
    pub ending: Ending,
    /// The memory limit ended a process of the sandbox while this command ran, which may be one of its children only; or since the
    /// command before.
    pub memory_limit_hit: bool,
    /// A process could not be made while this command ran, since the sandbox had all that it may have. Known where a control group
    /// keeps the limit.
    pub process_limit_hit: bool,
    /// Whether something in the background still holds the command's output.
    pub background_output: BackgroundOutput,
    /// Home and outputs hold more than the quota, and that is not why it was ended. As counted at its end if they did before, else after
    /// an earlier command.
    pub over_quota: Option<Usage>,
    /// The sandbox had to be started again since the last command, so background processes of earlier ones are gone. The first
    /// command that ends after it says so.
    pub restarted: Option<Restart>,
    /// How long it ran.
    pub duration: Duration,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// By itself, with this status.
    Exited(u8),
    /// By this signal, which the server did not send.
    Killed {
        /// The signal's number.
        signal: i32,
    },
    /// It ran too long, and was ended with all that it started.
    TimedOut {
        /// How long it was allowed to run.
        after: Duration,
    },
    /// The sandbox itself was ended by the memory limit, so everything in it is gone. The next command starts it again.
    MemoryLimit,
    /// Home and outputs grew beyond the quota; the command was ended with all that it started.
    Quota(Usage),
    /// The disk of the workspaces became too full; the command was ended with all that it started.
    DiskFull {
        /// Bytes that were free.
        free: u64,
        /// Bytes that have to stay free.
        min_free: u64,
    },
}

/// Whether something in the background still holds a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackgroundOutput {
    /// Nothing does: all output was delivered.
    None,
    /// A process does. It lives on; what it writes from now on is dropped.
    Dropped,
}

/// Why a sandbox was started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Restart {
    /// Background processes held all processes that a sandbox may have.
    NoProcessLeft,
    /// It had ended by itself, most likely by the memory limit.
    Ended,
    /// Its workspace, or a part of that, was deleted and made again, which it could not see.
    Remade,
    /// It was stopped because nobody used it, and had background processes.
    Idle,
    /// Its background processes wrote more than the quota allows while no command ran, and were ended.
    WroteTooMuch,
    /// Its background processes made the disk too full while no command ran, and were ended.
    FilledDisk,
}
