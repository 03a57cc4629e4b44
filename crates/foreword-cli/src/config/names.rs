//! The names under which a setting can be given, besides its key in the file.
//!
//! This table drives the reading of the environment and the reference page; a name that is not here (and not made by
//! [`full`]) does not exist.

/// What the names of all our variables begin with.
pub(crate) const PREFIX: &str = "FOREWORD_";

/// Variables besides the full names. Of one setting's names the first that is set wins, the full name before all.
pub(crate) const SHORT: &[ShortName] = &[
    ShortName::new("FOREWORD_API_KEY", "auth.api_keys"),
    ShortName::new("FOREWORD_ADMIN_KEY", "auth.admin_keys"),
    ShortName::new("MCP_API_KEY", "auth.api_keys"),
    ShortName::new("PUBLIC_BASE_URL", "public_base_url"),
    ShortName {
        writing: Writing::Words(&[("true", "single"), ("false", "strict")]),
        ..ShortName::new("SINGLE_USER_MODE", "session.mode")
    },
    ShortName::new("COMMAND_TIMEOUT", "sandbox.command_timeout_max_seconds"),
    ShortName::new("CONTAINER_IDLE_TIMEOUT", "sandbox.idle_timeout_seconds"),
    ShortName {
        writing: Writing::DockerSize,
        ..ShortName::new("CONTAINER_MEM_LIMIT", "sandbox.memory_bytes")
    },
    ShortName {
        writing: Writing::Processors,
        ..ShortName::new("CONTAINER_CPU_LIMIT", "sandbox.cpu_percent")
    },
    ShortName::new("DOCKER_IMAGE", "sandbox.docker.image"),
    ShortName::new("DOCKER_HOST", "sandbox.docker.host"),
    ShortName::new("DOCKER_CERT_PATH", "sandbox.docker.cert_path"),
    ShortName {
        writing: Writing::Words(&[("true", "host"), ("false", "none")]),
        ..ShortName::new("ENABLE_NETWORK", "sandbox.network")
    },
    ShortName::new("MCP_TOKENS_URL", "skills.provider.url"),
    ShortName::new("MCP_TOKENS_API_KEY", "skills.provider.key"),
];

/// Flags that set a setting.
pub(crate) const FLAGS: &[(&str, &str)] = &[
    ("--data", "data_dir"),
    ("--listen", "http.listen"),
    ("--sandbox", "sandbox.backend"),
    ("--log-format", "log.format"),
];

/// Variables of the system that Foreword succeeds, for what this version does not have: said, not swallowed.
pub(crate) const NOT_YET: &[(&str, &str)] = &[];

/// A documented variable besides the full name.
#[derive(Debug)]
pub(crate) struct ShortName {
    /// The variable.
    pub(crate) name: &'static str,
    /// The setting.
    pub(crate) path: &'static str,
    /// How the value is written in it.
    pub(crate) writing: Writing,
}

/// How a value is written in a variable.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Writing {
    /// As under the full name.
    AsItIs,
    /// One of these words, and what each means for the setting.
    Words(&'static [(&'static str, &'static str)]),
    /// Bytes as Docker writes them: `512m`, `2g`.
    DockerSize,
    /// Processors, of which a part may be had: `1.5`.
    Processors,
}

impl ShortName {
    const fn new(name: &'static str, path: &'static str) -> Self {
        Self {
            name,
            path,
            writing: Writing::AsItIs,
        }
    }
}

/// The full name of the variable of a setting: `http.listen` is `FOREWORD_HTTP__LISTEN`.
pub(crate) fn full(path: &str) -> String {
    format!("{PREFIX}{}", path.replace('.', "__").to_uppercase())
}
