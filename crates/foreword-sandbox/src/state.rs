//! What works here and what does not, for `doctor`, `/readyz` and the start lines.

use serde::{Deserialize, Serialize};

/// What a backend is, and the limits that it keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxesState {
    /// `namespace`, `docker` or `none`.
    pub backend: &'static str,
    /// Why there are no sandboxes, and what to do; `None` also if none are wanted.
    pub unavailable: Option<Unavailable>,
    /// How many run.
    pub running: usize,
    /// How many may run.
    pub max_running: usize,
    /// Each limit.
    pub limits: Vec<LimitState>,
    /// Facts that an operator should know about, in words.
    pub notes: Vec<String>,
}

/// One limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitState {
    /// Its setting, such as `memory_bytes`.
    pub setting: &'static str,
    /// What keeps it.
    pub enforcement: Enforcement,
}

/// What keeps a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enforcement {
    /// Control groups, version 2.
    Cgroup2,
    /// Control groups, version 1.
    Cgroup1,
    /// A limit of each process, which is weaker: why there is no better one.
    EachProcess(String),
    /// The container engine, which makes the control groups.
    Engine,
    /// The kernel, by the size of a mount or a resource limit.
    Kernel,
    /// The server, which looks each second.
    Sampled,
    /// Nothing: why not, and what to do.
    Missing(String),
    /// Nothing, since the setting is 0.
    Off,
}

/// Why there are no sandboxes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no sandbox: {reason}; {cure}")]
pub struct Unavailable {
    /// What does not work.
    pub reason: String,
    /// What to do.
    pub cure: String,
}

/// Bytes used, and the most that may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Used.
    pub used: u64,
    /// Allowed.
    pub limit: u64,
}
