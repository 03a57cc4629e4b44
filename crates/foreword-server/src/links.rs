//! Every URL that a browser sees, and the capabilities in them.
//!
//! A capability stands in a path as `{chat_id}~{tag}{signature}` and opens one chat's outputs for reading: so a link that the
//! model writes just opens, and guessing a chat id opens nothing. The tag says for which user it was made, so that it opens no
//! more than that user may see. Deliberately absent: where the key is kept, and whose a chat is.

use std::net::{IpAddr, SocketAddr};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use foreword_store::Clock;
use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};

use crate::{
    auth::Keys,
    config::ServerConfig,
    session::{ChatId, InvalidChatId},
};

/// The length of a tag: 6 base64url characters are 36 bits, and nobody can try them out without the key.
const TAG_LENGTH: usize = 6;

/// The length of a signature: 16 base64url characters are 96 bits.
const SIGNATURE_LENGTH: usize = 16;

/// Stands between chat id and capability; chat ids cannot hold it.
const SEPARATOR: char = '~';

/// How many epochs back a signature is recognised as one of ours that is too old.
const RECOGNISED_EPOCHS: u64 = 8;

/// What may stand in a path segment as it is.
pub(crate) const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// Makes and checks links.
#[derive(Clone)]
pub struct Links {
    base: String,
    epoch_seconds: u64,
    /// None where no keys are set: everything is open then, and links need no capability.
    signer: Option<Hmac<Sha256>>,
}

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

/// What the chat's place in a path says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Linked {
    /// A chat id alone: a key is needed where keys are set.
    Bare(ChatId),
    /// A chat id with a valid capability.
    Opened {
        /// The chat.
        chat: ChatId,
        /// For whom the link was made.
        tag: UserTag,
    },
}

/// For which user a link was made, in a form that does not tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserTag(String);

/// Why a link does not open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The chat id cannot be one.
    #[error("the chat id is not valid: {0}")]
    InvalidChatId(#[from] InvalidChatId),
    /// A signature of ours, of an epoch that is over.
    #[error("this link has expired; ask in the chat for a fresh one")]
    Expired,
    /// Not a signature of ours.
    #[error("this link is not valid; ask in the chat for a fresh one")]
    Forged,
}

impl Links {
    /// Reads the public URL, the epoch and whether keys are set.
    #[must_use]
    pub fn new(config: &ServerConfig, key: [u8; 32]) -> Self {
        let base = match &config.public_base_url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => derived_base_url(config.http.listen),
        };
        let signer = (!Keys::new(&config.auth).is_empty())
            .then(|| Hmac::new_from_slice(&key).expect("HMAC takes keys of any length"));
        Self {
            base,
            epoch_seconds: config.links.epoch.max(1),
            signer,
        }
    }

    /// The epoch at this moment; links change when it does.
    #[must_use]
    pub fn epoch(&self, clock: &Clock) -> u64 {
        u64::try_from(clock().as_second()).unwrap_or(0) / self.epoch_seconds
    }

    /// The public base URL, without a final slash.
    #[must_use]
    pub fn public_base_url(&self) -> &str {
        &self.base
    }

    /// The URLs of one chat for the user with this e-mail address, as [`crate::Session::prompt_email`] gives it.
    #[must_use]
    pub fn chat(&self, chat: &ChatId, user: Option<&str>, epoch: u64) -> ChatLinks {
        let base = &self.base;
        let mut segment = utf8_percent_encode(chat.as_str(), UNRESERVED).to_string();
        if let Some(signer) = &self.signer {
            segment.push(SEPARATOR);
            let tag = tag(signer, user);
            segment.push_str(&tag.0);
            segment.push_str(&signature(signer, chat, &tag, epoch));
        }
        ChatLinks {
            file_base_url: format!("{base}/files/{segment}"),
            archive_url: format!("{base}/files/{segment}/archive"),
            preview_url: format!("{base}/preview/{segment}"),
        }
    }

    /// Where the outputs are served under `segment`, which [`Links::read`] took, without a final slash.
    #[must_use]
    pub fn file_base_url(&self, segment: &str) -> String {
        let (chat, signature) = match segment.split_once(SEPARATOR) {
            Some((chat, signature)) => (chat, Some(signature)),
            None => (segment, None),
        };
        let chat = utf8_percent_encode(chat, UNRESERVED);
        let base = &self.base;
        match signature {
            Some(signature) => format!("{base}/files/{chat}{SEPARATOR}{signature}"),
            None => format!("{base}/files/{chat}"),
        }
    }

    /// Whether `tag` is that of the user with this e-mail address, or that of nobody.
    #[must_use]
    pub fn is_for(&self, presented: &UserTag, user: Option<&str>) -> bool {
        self.signer
            .as_ref()
            .is_some_and(|signer| tag(signer, user) == *presented)
    }

    /// Reads the chat's place in a path, percent-decoded: `{chat_id}` or `{chat_id}~{tag}{signature}`.
    pub fn read(&self, segment: &str, epoch: u64) -> Result<Linked, LinkError> {
        let Some((chat, presented)) = segment.split_once(SEPARATOR) else {
            return Ok(Linked::Bare(ChatId::parse(segment)?));
        };
        let chat = ChatId::parse(chat)?;
        let Some(signer) = &self.signer else {
            // A link from before the keys were taken away: all is open now.
            return Ok(Linked::Bare(chat));
        };
        let Some((tag, presented)) = presented.split_at_checked(TAG_LENGTH) else {
            return Err(LinkError::Forged);
        };
        let tag = UserTag(tag.to_owned());
        let was_signed_in = |past: u64| -> Choice {
            match epoch.checked_sub(past) {
                Some(epoch) => signature(signer, &chat, &tag, epoch)
                    .as_bytes()
                    .ct_eq(presented.as_bytes()),
                None => Choice::from(0),
            }
        };
        let valid = was_signed_in(0) | was_signed_in(1);
        let expired = (2..=RECOGNISED_EPOCHS).fold(Choice::from(0), |expired, past| {
            expired | was_signed_in(past)
        });
        match (bool::from(valid), bool::from(expired)) {
            (true, _) => Ok(Linked::Opened { chat, tag }),
            (false, true) => Err(LinkError::Expired),
            (false, false) => Err(LinkError::Forged),
        }
    }
}

fn tag(signer: &Hmac<Sha256>, user: Option<&str>) -> UserTag {
    let user = user.unwrap_or_default();
    UserTag(keyed(signer, &format!("user\n{user}"), TAG_LENGTH))
}

fn signature(signer: &Hmac<Sha256>, chat: &ChatId, UserTag(tag): &UserTag, epoch: u64) -> String {
    // Neither the scope nor an epoch holds a line break, and tags have one length, so no two links sign the same bytes.
    keyed(
        signer,
        &format!("read\n{epoch}\n{tag}\n{chat}"),
        SIGNATURE_LENGTH,
    )
}

/// The first `length` characters of the text's HMAC.
fn keyed(signer: &Hmac<Sha256>, text: &str, length: usize) -> String {
    let mut mac = signer.clone();
    mac.update(text.as_bytes());
    let mut code = BASE64_URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
    code.truncate(length);
    code
}

fn derived_base_url(listen: SocketAddr) -> String {
    let port = listen.port();
    match listen.ip() {
        ip if ip.is_unspecified() => format!("http://localhost:{port}"),
        IpAddr::V4(ip) => format!("http://{ip}:{port}"),
        IpAddr::V6(ip) => format!("http://[{ip}]:{port}"),
    }
}
