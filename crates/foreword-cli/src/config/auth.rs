//! The ways in which keys can be given, merged into the server's one list.

use foreword_server::config::{AuthConfig, KeyConfig, Role, Secret};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keys (`[auth]`).
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AuthSettings {
    /// Keys for reading and delivery; they may change the library too while there is no admin key.
    pub(crate) api_keys: Vec<Secret>,
    /// Keys for everything.
    pub(crate) admin_keys: Vec<Secret>,
    /// Keys with a name, a role, and a form of instructions of their own.
    pub(crate) keys: Vec<KeyConfig>,
}

impl AuthSettings {
    /// All keys, those without a name called after their role.
    pub(crate) fn merged(&self) -> AuthConfig {
        let unnamed = |role: Role, word: &'static str, keys: &[Secret]| -> Vec<KeyConfig> {
            keys.iter()
                .enumerate()
                .map(|(index, key)| KeyConfig {
                    name: match index {
                        0 => word.to_owned(),
                        index => format!("{word}-{}", index + 1),
                    },
                    key: key.clone(),
                    role,
                    instructions: None,
                })
                .collect()
        };
        let mut keys = self.keys.clone();
        keys.extend(unnamed(Role::Api, "api", &self.api_keys));
        keys.extend(unnamed(Role::Admin, "admin", &self.admin_keys));
        AuthConfig { keys }
    }
}
