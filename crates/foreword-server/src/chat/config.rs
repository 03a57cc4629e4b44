//! The settings of the chat endpoints.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Secret;

/// Chat endpoints for clients that speak no MCP (`[chat]`).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ChatConfig {
    /// The model of `POST /api/chat` where the request names none.
    pub default_model: Option<String>,
    /// The role of the message that holds the prompt.
    pub system_role: SystemRole,
    /// Whether the prompt tells of the workspace, skills and connected tools, in requests that name a chat.
    pub include_workspace: bool,
    /// Whether `GET /v1/models` lists each model once more with each profile, as `model@profile`.
    pub list_profiles: bool,
    /// The largest body of a request, in bytes.
    pub max_body: usize,
    /// Where `/v1/chat/completions`, `/v1/models` and `/api/chat` are passed on to.
    pub upstream: UpstreamConfig,
    /// Where `/v1/messages` is passed on to.
    pub anthropic: AnthropicConfig,
}

impl Default for ChatConfig {
    fn default() -> Self {
        Self {
            default_model: None,
            system_role: SystemRole::System,
            include_workspace: false,
            list_profiles: false,
            max_body: 32 << 20,
            upstream: UpstreamConfig::default(),
            anthropic: AnthropicConfig::default(),
        }
    }
}

/// The role of the message that holds the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SystemRole {
    /// What every model knows.
    System,
    /// What newer models of OpenAI call it.
    Developer,
}

impl SystemRole {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
        }
    }
}

/// An OpenAI-compatible API (`[chat.upstream]`).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UpstreamConfig {
    /// Where it is, with its version, such as `https://api.openai.com/v1`; these three routes answer 501 if unset.
    pub base_url: Option<String>,
    /// Sent to it as `Authorization: Bearer …`.
    pub api_key: Option<Secret>,
    /// Whether the caller's own `Authorization` is sent instead; on `/v1/chat/completions` and `/v1/models` then only
    /// `X-Foreword-Key` authenticates here.
    pub forward_authorization: bool,
    /// How long an upstream may be silent, before an answer or between two pieces of one, in seconds.
    pub timeout: u64,
    /// How long connecting to an upstream may take, in seconds.
    pub connect_timeout: u64,
}

impl Default for UpstreamConfig {
    fn default() -> Self {
        Self {
            base_url: None,
            api_key: None,
            forward_authorization: false,
            timeout: 600,
            connect_timeout: 10,
        }
    }
}

impl UpstreamConfig {
    /// How long an upstream may be silent.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }

    /// How long connecting to an upstream may take.
    #[must_use]
    pub fn connect_timeout(&self) -> Duration {
        Duration::from_secs(self.connect_timeout)
    }
}

/// An API of Anthropic's shape (`[chat.anthropic]`); its time limits are those of `[chat.upstream]`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AnthropicConfig {
    /// Where it is, without its version, such as `https://api.anthropic.com`; `/v1/messages` needs it and the key.
    pub base_url: Option<String>,
    /// Sent to it as `x-api-key`.
    pub api_key: Option<Secret>,
}
