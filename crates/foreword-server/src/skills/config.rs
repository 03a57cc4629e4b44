//! The settings of skills.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Secret;

/// Skills (`[skills]`).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SkillsConfig {
    /// Whether the skills that come with Foreword are offered, beside those of the data directory.
    pub shipped: bool,
    /// A service that says which skills a user has, and holds them.
    pub provider: ProviderConfig,
}

impl Default for SkillsConfig {
    fn default() -> Self {
        Self {
            shipped: true,
            provider: ProviderConfig::default(),
        }
    }
}

/// A service that says which skills a user has, and holds them (`[skills.provider]`).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderConfig {
    /// Where it is; there is none if unset.
    pub url: Option<String>,
    /// Sent to it with every request, as `X-Internal-Api-Key`.
    pub key: Option<Secret>,
    /// How long the handshake of a user who was never seen before may wait for it, in milliseconds.
    pub handshake_wait: u64,
}

impl Default for ProviderConfig {
    fn default() -> Self {
        Self {
            url: None,
            key: None,
            handshake_wait: 800,
        }
    }
}

impl ProviderConfig {
    /// How long the handshake of a user who was never seen before may wait.
    #[must_use]
    pub fn handshake_wait(&self) -> Duration {
        Duration::from_millis(self.handshake_wait)
    }
}
