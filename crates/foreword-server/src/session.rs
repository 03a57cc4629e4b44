//! A session: whose chat a request belongs to.
//!
//! Inside, a [`ChatId`] is always valid and no value of a session holds a line break; [`SessionReader`] sees to that once,
//! at the edge. Deliberately absent: whom a chat's files belong to (`workspace/`).

mod chat_id;
mod email;
mod reader;

use std::sync::Arc;

pub(crate) use chat_id::base32;
pub use chat_id::{ChatId, InvalidChatId};
pub use email::{InvalidEmail, parse_email};
pub use reader::{SessionError, SessionReader, SessionRequest, SessionSources};

/// One chat of one user, as a request named it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Session {
    /// The chat in force.
    pub chat_id: ChatId,
    /// Whether the request (or `single` mode) settled the chat, rather than falling back to `default`.
    pub chat_id_given: bool,
    /// Whether the chat belongs to nobody in particular: `channel:…`, and `default` outside `single` mode.
    pub shared: bool,
    /// The user's e-mail address, lower-cased.
    pub user_email: Option<Arc<str>>,
    /// The user's name, on one line.
    pub user_name: Option<Arc<str>>,
    /// The profile asked for.
    pub profile_id: Option<Arc<str>>,
}

impl Session {
    /// The same user in another chat, of which a URI spoke.
    #[must_use]
    pub(crate) fn in_chat(&self, chat_id: ChatId) -> Self {
        Self {
            shared: chat_id.is_channel() || chat_id == ChatId::default_chat(),
            chat_id,
            chat_id_given: true,
            ..self.clone()
        }
    }

    /// The e-mail address that may stand in this chat's prompt and choose its skills: none in a shared chat, whose
    /// prompt others read too.
    #[must_use]
    pub fn prompt_email(&self) -> Option<&Arc<str>> {
        self.user_email.as_ref().filter(|_| !self.shared)
    }
}
