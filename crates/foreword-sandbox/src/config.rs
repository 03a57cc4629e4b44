//! The settings of sandboxes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The sandboxes' settings (`[sandbox]`).
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxConfig {
    /// Where commands run.
    pub backend: BackendName,
}

/// Where commands run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BackendName {
    /// The best that works here, else none.
    #[default]
    Auto,
    /// Linux namespaces on this host.
    Namespace,
    /// Containers.
    Docker,
    /// Nowhere: prompts only.
    None,
}
