//! What a chat id is, and the name under which its files are kept.

use std::{fmt, sync::Arc};

use sha2::{Digest, Sha256};

/// The largest length of a chat id.
const MAX_LENGTH: usize = 128;

/// The largest length at which a chat id is its own file name.
const MAX_PLAIN_LENGTH: usize = 100;

/// What the file names of all other chat ids begin with.
const HASHED_PREFIX: &str = "x-";

/// The number of base32 digits of a SHA-256.
const HASH_DIGITS: usize = 52;

/// A checked chat id: lower case, 1–128 characters 0x21–0x7E without `/`, `\`, `~`, not `.`, without `..`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChatId(Arc<str>);

/// A text that cannot be a chat id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct InvalidChatId {
    /// What is wrong with it and what is right, without repeating the value.
    pub reason: &'static str,
}

impl ChatId {
    /// The chat of requests that name none.
    pub const DEFAULT: &'static str = "default";

    /// Trims, lower-cases and checks `text`.
    ///
    /// Only spaces and tabs are trimmed: a line break is a fault wherever it stands, also at the end.
    pub fn parse(text: &str) -> Result<Self, InvalidChatId> {
        let text = text.trim_matches([' ', '\t']);
        let reason = if text.is_empty() {
            "a chat id has at least one character"
        } else if text.len() > MAX_LENGTH {
            "a chat id has at most 128 characters"
        } else if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            "a chat id has only visible ASCII characters, without spaces and line breaks"
        } else if text.contains(['/', '\\', '~']) {
            "a chat id has no `/`, `\\` or `~`"
        } else if text == "." || text.contains("..") {
            "a chat id is not `.` and has no `..`"
        } else {
            return Ok(Self(text.to_ascii_lowercase().into()));
        };
        Err(InvalidChatId { reason })
    }

    /// The chat of requests that name none.
    #[must_use]
    pub fn default_chat() -> Self {
        Self(Self::DEFAULT.into())
    }

    /// The id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A name for files, volumes and containers that no other chat id has: `[a-z0-9._-]{1,100}`, no dot in front.
    ///
    /// It is the id itself where that is such a name, else `x-` and its SHA-256 in base32. An id that looks like such
    /// a hash is hashed as well, so that nobody can choose the name of another chat.
    #[must_use]
    pub fn file_name(&self) -> String {
        if is_plain(&self.0) && !is_hashed(&self.0) {
            return self.as_str().to_owned();
        }
        format!("{HASHED_PREFIX}{}", base32(&Sha256::digest(&*self.0)))
    }

    /// Whether the chat belongs to all its readers, whichever mode is in force.
    pub(super) fn is_channel(&self) -> bool {
        self.0.starts_with("channel:")
    }
}

impl fmt::Display for ChatId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

fn is_plain(id: &str) -> bool {
    let allowed = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
    id.len() <= MAX_PLAIN_LENGTH && !id.starts_with('.') && id.bytes().all(allowed)
}

fn is_hashed(name: &str) -> bool {
    name.strip_prefix(HASHED_PREFIX).is_some_and(|digits| {
        digits.len() == HASH_DIGITS && digits.bytes().all(|byte| BASE32.contains(&byte))
    })
}

const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// RFC 4648 in lower case, without padding.
pub(crate) fn base32(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(bytes.len().div_ceil(5) * 8);
    let (mut buffer, mut bits) = (0_u32, 0);
    for byte in bytes {
        buffer = (buffer << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            digits.push(digit(buffer >> bits));
        }
    }
    if bits > 0 {
        digits.push(digit(buffer << (5 - bits)));
    }
    digits
}

fn digit(value: u32) -> char {
    char::from(BASE32[(value & 31) as usize])
}

#[cfg(test)]
mod tests {
    use super::base32;

    #[test]
    fn base32_is_that_of_rfc_4648() {
        let encoded = ["", "f", "fo", "foo", "foob", "fooba", "foobar"]
            .map(|text| base32(text.as_bytes()))
            .join(" ");
        assert_eq!(encoded, " my mzxq mzxw6 mzxw6yq mzxw6ytb mzxw6ytboi");
    }
}
