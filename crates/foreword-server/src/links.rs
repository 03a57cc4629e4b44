//! Every URL that a browser sees, and the capabilities in them.

use foreword_store::Clock;

use crate::{config::ServerConfig, session::ChatId};

/// Makes and checks links.
#[derive(Clone)]
pub struct Links {}

/// The URLs of one chat, with a capability where keys are set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatLinks {
    /// Where the outputs are served, without a final slash.
    pub file_base_url: String,
    /// The outputs as one ZIP.
    pub archive_url: String,
    /// The page that shows them.
    pub preview_url: String,
}

impl Links {
    /// Reads the public URL, the epoch and whether keys are set.
    #[must_use]
    pub fn new(_config: &ServerConfig, _key: [u8; 32]) -> Self {
        Self {}
    }

    /// The epoch at this moment; links change when it does.
    #[must_use]
    pub fn epoch(&self, _clock: &Clock) -> u64 {
        0
    }

    /// The public base URL, without a final slash.
    #[must_use]
    pub fn public_base_url(&self) -> &str {
        ""
    }

    /// The URLs of one chat.
    #[must_use]
    pub fn chat(&self, _chat: &ChatId, _epoch: u64) -> ChatLinks {
        ChatLinks {
            file_base_url: String::new(),
            archive_url: String::new(),
            preview_url: String::new(),
        }
    }
}
