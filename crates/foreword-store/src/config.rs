//! The settings of the YAML store.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The prompt library's settings (`[library]`).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// How many versions of the library file are kept for `undo`.
    pub history: usize,
    /// How often the file is looked at where watching it fails, in seconds.
    pub poll_seconds: u64,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            history: 20,
            poll_seconds: 5,
        }
    }
}
