//! A session, read once at the edge: whose chat a request belongs to.
//!
//! Inside, a [`ChatId`] is always valid. Deliberately absent: the workspace and its owner.

use std::{fmt, sync::Arc};

/// One chat of one user, as a request named it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Session {
    /// The chat in force.
    pub chat_id: ChatId,
    /// Whether the request named it, rather than falling back to `default`.
    pub chat_id_given: bool,
    /// The user's e-mail address, lower-cased.
    pub user_email: Option<Arc<str>>,
    /// The user's name, on one line.
    pub user_name: Option<Arc<str>>,
    /// The profile asked for.
    pub profile_id: Option<Arc<str>>,
}

/// A checked chat id: lower case, 1–128 characters 0x21–0x7E without `/`, `\`, `~`, not `.`, without `..`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChatId(Arc<str>);

/// A text that cannot be a chat id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct InvalidChatId {
    /// What is wrong with it and what is right, without repeating the value.
    pub reason: String,
}

impl ChatId {
    /// The chat of requests that name none.
    pub const DEFAULT: &'static str = "default";

    /// Trims, lower-cases and checks `text`.
    pub fn parse(text: &str) -> Result<Self, InvalidChatId> {
        Ok(Self(text.trim().to_ascii_lowercase().into()))
    }

    /// The id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ChatId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
