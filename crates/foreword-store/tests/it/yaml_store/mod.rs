//! The YAML store: the contract, and what is particular to a file.

use std::sync::Arc;

use foreword_store::{Store, StoreConfig, YamlStore};
use tempfile::TempDir;

use crate::{contract::contract, support::clock};

contract!(factory());

/// Opens the library in a new directory, each time once more.
fn factory() -> impl Fn() -> Arc<dyn Store> {
    let directory = TempDir::new().unwrap();
    move || {
        let store = YamlStore::open(directory.path(), &StoreConfig::default(), clock());
        Arc::new(store.unwrap())
    }
}
