//! Who is calling, and what they may do.
//!
//! Keys are compared as SHA-256 digests, all of them each time, so that neither length nor position of a key shows in the
//! time an answer takes. Deliberately absent: users. Who holds a key is a gateway and is trusted to name any chat.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use crate::{
    config::{AuthConfig, Form, Role},
    error::ApiError,
};

/// The caller of a request, after its key was checked.
#[derive(Debug, Clone)]
pub struct Caller {
    /// What the key opens; without keys every caller is an administrator.
    pub role: Role,
    /// The name of the key, for logs.
    pub key_name: Option<Arc<str>>,
    /// The form of instructions that this key asks for.
    pub instructions: Option<Form>,
}

/// The keys of a server.
pub struct Keys {
    keys: Vec<Key>,
}

struct Key {
    digest: [u8; 32],
    caller: Caller,
}

/// Why a caller was not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// No key.
    #[error(
        "this needs a key: send it as `Authorization: Bearer …`, `X-Foreword-Key` or `x-api-key`"
    )]
    NoKey,
    /// No key in the only header that counts.
    #[error(
        "this needs a key of this server's in `X-Foreword-Key`: `Authorization` is for the upstream"
    )]
    NoKeyInOwnHeader,
    /// A key that opens nothing.
    #[error("the key is not valid here")]
    WrongKey,
    /// A key that does not open this.
    #[error("this needs the admin key")]
    RoleTooSmall,
}

impl Keys {
    /// The keys of `config`. An empty key is no key. Where there is no admin key, the API keys are admin keys too.
    #[must_use]
    pub fn new(config: &AuthConfig) -> Self {
        let has_admin = config.set_keys().any(|key| key.role == Role::Admin);
        let keys = config
            .set_keys()
            .map(|key| Key {
                digest: Sha256::digest(key.key.expose().trim()).into(),
                caller: Caller {
                    role: if has_admin { key.role } else { Role::Admin },
                    key_name: Some(key.name.as_str().into()),
                    instructions: key.instructions,
                },
            })
            .collect();
        Self { keys }
    }

    /// Whether everybody is let in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Who sends these headers.
    pub fn caller(&self, headers: &HeaderMap) -> Result<Caller, Denied> {
        if self.is_empty() {
            return Ok(Caller {
                role: Role::Admin,
                key_name: None,
                instructions: None,
            });
        }
        let mut denied = Denied::NoKey;
        for presented in presented_keys(headers) {
            match self.owner(presented) {
                Some(caller) => return Ok(caller.clone()),
                None => denied = Denied::WrongKey,
            }
        }
        Err(denied)
    }

    /// Who sends these headers, if they may do what needs `role`.
    pub fn caller_with(&self, headers: &HeaderMap, role: Role) -> Result<Caller, Denied> {
        let caller = self.caller(headers)?;
        if caller.role >= role {
            Ok(caller)
        } else {
            Err(Denied::RoleTooSmall)
        }
    }

    /// Whether the value of a header holds one of these keys, whatever stands around it.
    pub(crate) fn is_within(&self, value: &HeaderValue) -> bool {
        if self.is_empty() {
            return false;
        }
        let value = value.as_bytes();
        // A key may have in it what stands between words elsewhere.
        let whole = [Some(value.trim_ascii()), bearer_token(value)];
        if whole
            .into_iter()
            .flatten()
            .any(|key| self.owner(key).is_some())
        {
            return true;
        }
        let is_edge = |byte: &u8| b" \t,;\"'".contains(byte);
        value.split(is_edge).any(|word| {
            let after_name = word.iter().position(|byte| *byte == b'=');
            let after_name = after_name.map_or(word, |at| &word[at + 1..]);
            // `Basic` has two values behind an encoding.
            let pair = BASE64_STANDARD.decode(word).unwrap_or_default();
            let halves = pair.split(|byte| *byte == b':');
            [word, after_name]
                .into_iter()
                .chain(halves)
                .any(|key| !key.is_empty() && self.owner(key).is_some())
        })
    }

    fn owner(&self, presented: &[u8]) -> Option<&Caller> {
        let digest: [u8; 32] = Sha256::digest(presented).into();
        let mut found = None;
        for key in &self.keys {
            let equal: Choice = key.digest.ct_eq(&digest);
            // One value may be listed twice; it opens what its larger role opens.
            if bool::from(equal) && found.is_none_or(|other: &Caller| other.role < key.caller.role)
            {
                found = Some(&key.caller);
            }
        }
        found
    }
}

/// The only header with a key that counts where `Authorization` is for somebody else.
pub(crate) const OWN_HEADER: &str = "x-foreword-key";

/// The keys in the places where they may stand. A proxy's own `Authorization` of another scheme does no harm.
fn presented_keys(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let bearer = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| bearer_token(value.as_bytes()));
    let others = [OWN_HEADER, "x-api-key"]
        .into_iter()
        .filter_map(|name| headers.get(name).map(|value| value.as_bytes().trim_ascii()));
    bearer
        .into_iter()
        .chain(others)
        .filter(|key| !key.is_empty())
}

fn bearer_token(value: &[u8]) -> Option<&[u8]> {
    let at = value.iter().position(|byte| *byte == b' ')?;
    let (scheme, token) = value.split_at(at);
    scheme
        .eq_ignore_ascii_case(b"bearer")
        .then(|| token.trim_ascii())
}

impl From<Denied> for ApiError {
    fn from(denied: Denied) -> Self {
        let detail = denied.to_string();
        match denied {
            Denied::NoKey | Denied::NoKeyInOwnHeader => unauthorized("key_required", detail),
            Denied::WrongKey => unauthorized("key_not_valid", detail),
            Denied::RoleTooSmall => Self::new(StatusCode::FORBIDDEN, "admin_required", detail),
        }
    }
}

fn unauthorized(code: &'static str, detail: String) -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, code, detail)
        .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}

/// The caller that the route's guard let in.
impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let caller = parts.extensions.get::<Self>();
        Ok(caller
            .expect("every route that asks for a caller has a guard in `router.rs`")
            .clone())
    }
}
