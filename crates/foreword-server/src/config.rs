//! The settings of the server, section by section. Defaults are what an operator gets who sets nothing.
//!
//! Deliberately absent: where values come from. `foreword-cli` merges file, environment and flags.

mod check;

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use check::{ConfigError, Warning};

use crate::{chat::ChatConfig, connections::ConnectionConfig, skills::SkillsConfig};

/// All sections that the server reads.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// The one source of every URL that a browser sees; may have a path. Derived from the listening address if unset.
    pub public_base_url: Option<String>,
    /// Listening, hosts, origins, limits.
    pub http: HttpConfig,
    /// Keys.
    pub auth: AuthConfig,
    /// How a session is read from a request.
    pub session: SessionConfig,
    /// The renderer and its cache.
    pub render: RenderConfig,
    /// The delivery tiers.
    pub delivery: DeliveryConfig,
    /// Capability links.
    pub links: LinksConfig,
    /// Chats' files and how long they are kept.
    pub workspace: WorkspaceConfig,
    /// What users upload.
    pub uploads: UploadsConfig,
    /// What the tools prompt shows.
    pub tools_prompt: ToolsPromptConfig,
    /// Skills.
    pub skills: SkillsConfig,
    /// Chat endpoints for clients that speak no MCP.
    pub chat: ChatConfig,
    /// MCP servers to connect to, beside those of `connections.json` in the data directory.
    pub connections: BTreeMap<String, ConnectionConfig>,
}

/// Listening, hosts, origins, limits (`[http]`).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Host names besides loopback names and the public URL's host.
    pub allowed_hosts: Vec<String>,
    /// Origins that may call from a browser; none by default.
    pub cors_origins: Vec<String>,
    /// The largest JSON body of `/api`, in bytes.
    pub api_max_body: usize,
    /// The largest body of `/mcp`, in bytes.
    pub mcp_max_body: usize,
    /// The largest library text of `import` and `compose`, in bytes.
    pub library_max_body: usize,
    /// How much memory bodies of more than 64 KiB may take together, in bytes; further ones wait to be read.
    pub body_memory: usize,
    /// How long reading a request, and work under `/api`, may take, in seconds.
    pub timeout_seconds: u64,
    /// How many connections are served at a time; further ones wait to be accepted.
    pub max_connections: usize,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8081)),
            allowed_hosts: Vec::new(),
            cors_origins: Vec::new(),
            api_max_body: 2 << 20,
            mcp_max_body: 8 << 20,
            library_max_body: 16 << 20,
            body_memory: 128 << 20,
            timeout_seconds: 30,
            max_connections: 4096,
        }
    }
}

impl HttpConfig {
    /// How long reading a request, and work under `/api`, may take.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_seconds)
    }
}

/// Keys (`[auth]`).
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuthConfig {
    /// Keys, merged from all the ways in which they can be given.
    pub keys: Vec<KeyConfig>,
}

impl AuthConfig {
    /// The keys that have a value; an empty one is as good as none.
    pub fn set_keys(&self) -> impl Iterator<Item = &KeyConfig> {
        self.keys
            .iter()
            .filter(|key| !key.key.expose().trim().is_empty())
    }
}

/// One key.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyConfig {
    /// What the log calls it.
    pub name: String,
    /// The secret.
    pub key: Secret,
    /// What it opens.
    pub role: Role,
    /// The form of the instructions that holders get; the server's default if unset.
    #[serde(default)]
    pub instructions: Option<Form>,
}

/// What a key opens.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reading and delivery.
    Api,
    /// Everything.
    Admin,
}

/// A secret: prints as `[redacted]`, and only [`Secret::expose`] gives the value.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Keeps `value` from being printed.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("[redacted]")
    }
}

/// How a session is read from a request (`[session]`).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionConfig {
    /// What happens with requests that name no chat, or any.
    pub mode: SessionMode,
    /// Headers that may hold the chat id, the first one that is set wins.
    pub chat_id_headers: Vec<String>,
    /// Whether a chat's files are closed to requests that name no user.
    pub require_owner: bool,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            mode: SessionMode::Lenient,
            chat_id_headers: [
                "X-Chat-Id",
                "X-OpenWebUI-Chat-Id",
                "X-Conversation-Id",
                "X-LibreChat-Conversation-Id",
            ]
            .map(str::to_owned)
            .to_vec(),
            require_owner: false,
        }
    }
}

/// What happens with requests that name no chat, or any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SessionMode {
    /// No chat id means `default`.
    #[default]
    Lenient,
    /// There is one chat, `default`, whatever a request names.
    Single,
    /// A chat id is required.
    Strict,
}

/// The renderer and its cache (`[render]`).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RenderConfig {
    /// How long a render is kept, in seconds, from its completion.
    pub ttl: u64,
    /// How much the cache may hold, in bytes.
    pub cache_bytes: u64,
}

impl Default for RenderConfig {
    fn default() -> Self {
        Self {
            ttl: 60,
            cache_bytes: 64 << 20,
        }
    }
}

impl RenderConfig {
    /// How long a render is kept.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        Duration::from_secs(self.ttl)
    }
}

/// The delivery tiers (`[delivery]`).
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DeliveryConfig {
    /// The form of MCP instructions where neither route nor key says otherwise.
    pub instructions: Form,
}

/// The forms in which a prompt can be had, each complete in itself and true.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
    utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// The rendered text.
    #[default]
    Full,
    /// At most 2,000 UTF-16 code units.
    Brief,
    /// At most 512 UTF-16 code units.
    Hint,
    /// The full text without anything of a session.
    Neutral,
}

/// Capability links (`[links]`).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LinksConfig {
    /// How long an epoch lasts, in seconds; links of this epoch and the one before are valid.
    pub epoch: u64,
}

impl Default for LinksConfig {
    fn default() -> Self {
        Self {
            epoch: 7 * 24 * 60 * 60,
        }
    }
}

/// Chats' files and how long they are kept (`[workspace]`).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WorkspaceConfig {
    /// How long the files of a chat are kept after its last use, in seconds; 0 keeps them for ever.
    pub retention: u64,
}

impl Default for WorkspaceConfig {
    fn default() -> Self {
        Self {
            retention: 7 * 24 * 60 * 60,
        }
    }
}

impl WorkspaceConfig {
    /// How long the files of a chat are kept after its last use; none for ever.
    #[must_use]
    pub fn retention(&self) -> Option<Duration> {
        (self.retention > 0).then(|| Duration::from_secs(self.retention))
    }
}

/// What users upload (`[uploads]`).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UploadsConfig {
    /// The largest file, in bytes.
    pub max_bytes: u64,
    /// How much the files of one chat may take together, in bytes.
    pub max_total_bytes: u64,
    /// The largest file that `resources/read` returns, in bytes.
    pub max_read_bytes: u64,
    /// Whether a request that names no chat may read an upload by its URI, which names one; not in `strict` mode.
    pub uri_without_chat: bool,
}

impl Default for UploadsConfig {
    fn default() -> Self {
        Self {
            max_bytes: 100 << 20,
            max_total_bytes: 1 << 30,
            max_read_bytes: 10 << 20,
            uri_without_chat: true,
        }
    }
}

/// What the tools prompt shows (`[tools_prompt]`).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolsPromptConfig {
    /// Whether prompts describe the tools of connected MCP servers; a profile may leave them out for itself.
    pub enabled: bool,
    /// Whether the parameters of each tool are listed.
    pub include_schemas: bool,
    /// At most so many tools are shown, counted after sorting; 0 shows all.
    pub max_tools: u64,
    /// Whether tools are shown that are not handed on, since the clients have their servers themselves.
    pub include_unexposed: bool,
}

impl Default for ToolsPromptConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            include_schemas: true,
            max_tools: 0,
            include_unexposed: false,
        }
    }
}
