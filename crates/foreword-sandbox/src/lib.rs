//! Runs commands and moves files in isolation: one trait, backends behind it.
//!
//! Deliberately absent: prompts and HTTP. The backends follow; until then the only one is `none`.

pub mod config;

pub use config::{BackendName, SandboxConfig};
