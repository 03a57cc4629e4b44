//! Drives the init process of a sandbox: whoever speaks to it is here, wherever it runs.
//!
//! The server does so itself for a sandbox of namespaces; in a container our own program does, next to init. Deliberately absent: how
//! a sandbox is made, and which run.

pub(crate) mod file_work;
pub(crate) mod group;
pub(crate) mod guard;
pub(crate) mod protocol;
pub(crate) mod run;
pub(crate) mod sandbox;
pub(crate) mod usage;
