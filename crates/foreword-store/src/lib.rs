//! Keeps the prompt library: the trait [`Store`] and what implements it.
//!
//! A store hands out immutable snapshots and takes edits. It promises that a reader never waits for a writer, that a
//! reader never sees what is not on disk, and that success means durable. Deliberately absent: HTTP, rendering, and who
//! may do what.

pub mod config;
pub mod edit;
pub mod error;
pub mod store;
pub mod yaml;
mod yaml_store;

pub use config::StoreConfig;
pub use edit::{Edit, EditError};
pub use error::{OpenError, StoreError};
pub use store::{
    Change, Clock, Health, Import, ImportReport, Snapshot, Source, Status, Store, Undone,
};
pub use yaml::{LoadError, parse_library};
pub use yaml_store::YamlStore;
