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
        name: "SINGLE_USER_MODE",
        path: "session.mode",
        words: &[("true", "single"), ("false", "strict")],
    },
];

/// Flags that set a setting.
pub(crate) const FLAGS: &[(&str, &str)] = &[
    ("--data", "data_dir"),
    ("--listen", "http.listen"),
    ("--sandbox", "sandbox.backend"),
    ("--log-format", "log.format"),
];

/// Variables of the system that Foreword succeeds, for what this version does not have: said, not swallowed.
pub(crate) const NOT_YET: &[(&str, &str)] = &[
    ("COMMAND_TIMEOUT", NO_SANDBOX),
    ("DOCKER_IMAGE", NO_SANDBOX),
    ("CONTAINER_MEM_LIMIT", NO_SANDBOX),
    ("CONTAINER_CPU_LIMIT", NO_SANDBOX),
    ("CONTAINER_IDLE_TIMEOUT", NO_SANDBOX),
    ("ENABLE_NETWORK", NO_SANDBOX),
    ("MCP_TOKENS_URL", NO_SKILLS),
    ("MCP_TOKENS_API_KEY", NO_SKILLS),
];

const NO_SANDBOX: &str = "sandboxes have settings of their own, under `[sandbox]`";
const NO_SKILLS: &str = "this version has no skills yet";

/// A documented variable besides the full name.
#[derive(Debug)]
pub(crate) struct ShortName {
    /// The variable.
    pub(crate) name: &'static str,
    /// The setting.
    pub(crate) path: &'static str,
    /// If not empty, the words that may stand in the variable, and what each means for the setting.
    pub(crate) words: &'static [(&'static str, &'static str)],
}

impl ShortName {
    const fn new(name: &'static str, path: &'static str) -> Self {
        Self {
            name,
            path,
            words: &[],
        }
    }
}

/// The full name of the variable of a setting: `http.listen` is `FOREWORD_HTTP__LISTEN`.
pub(crate) fn full(path: &str) -> String {
    format!("{PREFIX}{}", path.replace('.', "__").to_uppercase())
}
