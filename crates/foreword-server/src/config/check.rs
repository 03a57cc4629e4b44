//! Decides whether the settings can be served, and what an operator should know about them.

use std::net::SocketAddr;

use http::{HeaderName, HeaderValue, Uri, uri::Authority};

use super::{Role, Secret, ServerConfig};
use crate::chat::upstream::parse_base;

/// Something that works and that an operator should know about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// A stable word, in snake case.
    pub code: &'static str,
    /// What it is and what to set.
    pub message: String,
}

/// Settings that cannot be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Everybody on the network could read and change the prompts.
    #[error(
        "listening on `{0}` without a key would let everybody on the network read and change the prompts; set \
         `FOREWORD_API_KEY`, or listen on `127.0.0.1`, or start with `--allow-unauthenticated`"
    )]
    OpenToTheNetwork(SocketAddr),
    /// An admin key without an API key.
    #[error(
        "there is an admin key but no API key, so nobody but admins could use the server; set `FOREWORD_API_KEY` too"
    )]
    AdminKeyAlone,
    /// A key that no header can carry.
    #[error("the key `{0}` has spaces or characters that a header cannot hold; choose another")]
    UnusableKey(String),
    /// One of the settings has a value that it cannot have.
    #[error("`{setting}` cannot be `{value}`: {reason}")]
    Invalid {
        /// The setting's name.
        setting: &'static str,
        /// Its value.
        value: String,
        /// What is wrong and what is right.
        reason: &'static str,
    },
}

/// Keys of fewer characters are warned about.
const LONG_ENOUGH: usize = 16;

impl ServerConfig {
    /// Checks the settings as a whole.
    ///
    /// `allow_unauthenticated` is the operator's word that everybody who can connect may do everything.
    pub fn check(&self, allow_unauthenticated: bool) -> Result<Vec<Warning>, ConfigError> {
        let mut warnings = self.check_keys(allow_unauthenticated)?;
        warnings.extend(self.check_public_url()?);
        warnings.extend(self.check_host_names());
        self.check_names()?;
        self.check_limits()?;
        self.check_upstreams()?;
        warnings.extend(self.half_upstreams());
        Ok(warnings)
    }

    fn check_keys(&self, allow_unauthenticated: bool) -> Result<Vec<Warning>, ConfigError> {
        for key in self.auth.set_keys() {
            let bytes = key.key.expose().trim().bytes();
            if !bytes.into_iter().all(|byte| byte.is_ascii_graphic()) {
                return Err(ConfigError::UnusableKey(key.name.clone()));
            }
        }
        let has = |role| self.auth.set_keys().any(|key| key.role == role);
        if has(Role::Admin) && !has(Role::Api) {
            return Err(ConfigError::AdminKeyAlone);
        }
        if has(Role::Api) {
            return Ok(self.doubtful_keys(has(Role::Admin)));
        }
        let listen = self.http.listen;
        let message = if listen.ip().is_loopback() {
            "no key is set: every process on this machine may read and change the prompts; set `FOREWORD_API_KEY`"
                .to_owned()
        } else if allow_unauthenticated {
            format!(
                "no key is set and the server listens on `{listen}`: everybody who can connect may read and change the \
                 prompts; set `FOREWORD_API_KEY`"
            )
        } else {
            return Err(ConfigError::OpenToTheNetwork(listen));
        };
        Ok(vec![Warning {
            code: "no_key",
            message,
        }])
    }

    /// What an operator may not expect of keys that work.
    fn doubtful_keys(&self, has_admin: bool) -> Vec<Warning> {
        let short: Vec<String> = self
            .auth
            .set_keys()
            .filter(|key| key.key.expose().trim().len() < LONG_ENOUGH)
            .map(|key| format!("`{}`", key.name))
            .collect();
        let short = (!short.is_empty()).then(|| Warning {
            code: "short_key",
            message: format!(
                "shorter than {LONG_ENOUGH} characters, so perhaps to be guessed: the key {}; `openssl rand -hex 32` makes \
                 a good one",
                short.join(", ")
            ),
        });
        let admin = (!has_admin).then(|| Warning {
            code: "api_key_is_admin",
            message: "there is no admin key, so whoever holds the API key may change the prompts too; set \
                      `FOREWORD_ADMIN_KEY` to keep that apart"
                .to_owned(),
        });
        admin.into_iter().chain(short).collect()
    }

    /// Whether a server that listens to others knows the names under which they ask for it.
    fn check_host_names(&self) -> Option<Warning> {
        let address = self.http.listen.ip();
        let named = self.public_base_url.is_some() || !self.http.allowed_hosts.is_empty();
        if address.is_loopback() || named {
            return None;
        }
        let known = if address.is_unspecified() {
            "`localhost` and loopback addresses".to_owned()
        } else {
            format!("`localhost`, loopback addresses and `{address}`")
        };
        Some(Warning {
            code: "no_host_names",
            message: format!(
                "only requests for {known} are answered, all others get 403 `host_not_allowed`; name the hosts under \
                 which the server is asked for in `http.allowed_hosts`, or set `public_base_url`"
            ),
        })
    }

    fn check_public_url(&self) -> Result<Option<Warning>, ConfigError> {
        let Some(url) = &self.public_base_url else {
            return Ok(Some(Warning {
                code: "no_public_base_url",
                message: "`public_base_url` is not set, so links in prompts open on this machine only; set \
                          `FOREWORD_PUBLIC_BASE_URL` to the address under which browsers reach the server"
                    .to_owned(),
            }));
        };
        let invalid = |reason| ConfigError::Invalid {
            setting: "public_base_url",
            value: url.clone(),
            reason,
        };
        let is_http = url.starts_with("http://") || url.starts_with("https://");
        let parsed = url.parse::<Uri>().ok().filter(|_| is_http);
        let authority = parsed.as_ref().and_then(Uri::authority);
        match authority {
            None => Err(invalid(
                "it is a URL such as `https://foreword.example` or `https://example/foreword`",
            )),
            Some(authority) if authority.as_str().contains('@') => {
                Err(invalid("it has no user name and password"))
            }
            Some(_) if url.contains(['?', '#']) => Err(invalid("it has no query and no fragment")),
            Some(_) => Ok(None),
        }
    }

    fn check_names(&self) -> Result<(), ConfigError> {
        for host in &self.http.allowed_hosts {
            if host.contains(['@', '/', '*']) || host.parse::<Authority>().is_err() {
                return Err(ConfigError::Invalid {
                    setting: "http.allowed_hosts",
                    value: host.clone(),
                    reason: "each is a host name, with or without a port",
                });
            }
        }
        for origin in &self.http.cors_origins {
            let host = origin.split_once("://").map(|(_scheme, host)| host);
            let is_origin = host.is_some_and(|host| host.parse::<Authority>().is_ok());
            if !is_origin || origin.contains('*') || HeaderValue::from_str(origin).is_err() {
                return Err(ConfigError::Invalid {
                    setting: "http.cors_origins",
                    value: origin.clone(),
                    reason: "each is an origin such as `https://chat.example`, without a path; there is no wildcard",
                });
            }
        }
        for header in &self.session.chat_id_headers {
            if header.parse::<HeaderName>().is_err() {
                return Err(ConfigError::Invalid {
                    setting: "session.chat_id_headers",
                    value: header.clone(),
                    reason: "each is the name of a header",
                });
            }
        }
        Ok(())
    }

    /// Upstreams of which only a part is set, so that they are none.
    fn half_upstreams(&self) -> Option<Warning> {
        let (openai, anthropic) = (&self.chat.upstream, &self.chat.anthropic);
        let has_url =
            |url: &Option<String>| url.as_deref().is_some_and(|url| !url.trim().is_empty());
        let has_key = |key: &Option<Secret>| {
            key.as_ref()
                .is_some_and(|key| !key.expose().trim().is_empty())
        };
        let missing = match (has_url(&anthropic.base_url), has_key(&anthropic.api_key)) {
            (true, false) => "chat.anthropic.api_key",
            (false, true) => "chat.anthropic.base_url",
            _ if has_key(&openai.api_key) && !has_url(&openai.base_url) => "chat.upstream.base_url",
            _ => return None,
        };
        Some(Warning {
            code: "half_an_upstream",
            message: format!(
                "`{missing}` is not set, so chat requests to that upstream are answered with 501; set it, or none of the two"
            ),
        })
    }

    fn check_upstreams(&self) -> Result<(), ConfigError> {
        let (openai, anthropic) = (&self.chat.upstream, &self.chat.anthropic);
        let urls = [
            ("chat.upstream.base_url", &openai.base_url),
            ("chat.anthropic.base_url", &anthropic.base_url),
        ];
        for (setting, url) in urls {
            let Some(url) = url.as_deref().filter(|url| !url.trim().is_empty()) else {
                continue;
            };
            parse_base(url).map_err(|reason| ConfigError::Invalid {
                setting,
                value: url.to_owned(),
                reason,
            })?;
        }
        let keys = [
            ("chat.upstream.api_key", &openai.api_key),
            ("chat.anthropic.api_key", &anthropic.api_key),
        ];
        for (setting, key) in keys {
            let is_usable = |key: &Secret| {
                key.expose()
                    .trim()
                    .bytes()
                    .all(|byte| byte.is_ascii_graphic())
            };
            if key.as_ref().is_some_and(|key| !is_usable(key)) {
                return Err(ConfigError::UnusableKey(setting.to_owned()));
            }
        }
        Ok(())
    }

    fn check_limits(&self) -> Result<(), ConfigError> {
        let at_least_one = [
            ("http.api_max_body", self.http.api_max_body as u64),
            ("http.mcp_max_body", self.http.mcp_max_body as u64),
            ("http.library_max_body", self.http.library_max_body as u64),
            ("http.body_memory", self.http.body_memory as u64),
            ("http.timeout_seconds", self.http.timeout_seconds),
            ("http.max_connections", self.http.max_connections as u64),
            ("links.epoch", self.links.epoch),
            ("chat.max_body", self.chat.max_body as u64),
            ("chat.upstream.timeout", self.chat.upstream.timeout),
            (
                "chat.upstream.connect_timeout",
                self.chat.upstream.connect_timeout,
            ),
            ("uploads.max_bytes", self.uploads.max_bytes),
            ("uploads.max_total_bytes", self.uploads.max_total_bytes),
            ("uploads.max_read_bytes", self.uploads.max_read_bytes),
        ];
        match at_least_one.into_iter().find(|(_, value)| *value == 0) {
            None => Ok(()),
            Some((setting, _)) => Err(ConfigError::Invalid {
                setting,
                value: "0".to_owned(),
                reason: "it is at least 1",
            }),
        }
    }
}
