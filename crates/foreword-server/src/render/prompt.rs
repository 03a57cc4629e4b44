//! A prompt as it is kept and handed out: a head that sessions share, and a tail of its own.

use std::{fmt, sync::Arc};

use bytes::Bytes;

/// A session's prompt, cheap to clone.
///
/// Its bytes lie in two pieces, so that sessions whose prompts begin alike keep that beginning once.
#[derive(Clone)]
pub struct SessionPrompt {
    pub(super) head: Head,
    pub(super) own: Arc<Own>,
}

/// The beginning of a prompt, shared by all sessions for which it is the same.
///
/// Two pointers deep on purpose: a [`std::sync::Weak`] to the outer one keeps a few bytes alive, not the text.
pub(super) type Head = Arc<Box<str>>;

/// What a prompt does not share.
pub(super) struct Own {
    pub(super) tail: Box<str>,
    pub(super) revision: String,
    pub(super) profile_id: Option<String>,
    pub(super) degraded: bool,
    /// How many bytes at the beginning of the whole are the same for all sessions.
    pub(super) stable_prefix: usize,
}

impl SessionPrompt {
    /// The whole text, in one piece of its own.
    #[must_use]
    pub fn text(&self) -> String {
        [&**self.head, &*self.own.tail].concat()
    }

    /// The whole text in the pieces in which it is kept; nothing is copied.
    #[must_use]
    pub fn chunks(&self) -> [Bytes; 2] {
        [
            Bytes::from_owner(HeadBytes(Arc::clone(&self.head))),
            Bytes::from_owner(TailBytes(Arc::clone(&self.own))),
        ]
    }

    /// The first 16 hex digits of SHA-256 over the full text, whatever the form.
    #[must_use]
    pub fn revision(&self) -> &str {
        &self.own.revision
    }

    /// The id of the profile in force, if the library has any.
    #[must_use]
    pub fn profile_id(&self) -> Option<&str> {
        self.own.profile_id.as_deref()
    }

    /// How many bytes at its beginning are the same for all sessions; what of it is kept for all together may be less.
    #[must_use]
    pub fn stable_prefix(&self) -> usize {
        self.own.stable_prefix
    }

    /// Whether something was missing when it was made.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.own.degraded
    }
}

/// Prompt text is never logged, so neither is it here.
impl fmt::Debug for SessionPrompt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SessionPrompt")
            .field("revision", &self.own.revision)
            .field("profile_id", &self.own.profile_id)
            .field("bytes", &(self.head.len() + self.own.tail.len()))
            .finish_non_exhaustive()
    }
}

struct HeadBytes(Head);

impl AsRef<[u8]> for HeadBytes {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

struct TailBytes(Arc<Own>);

impl AsRef<[u8]> for TailBytes {
    fn as_ref(&self) -> &[u8] {
        self.0.tail.as_bytes()
    }
}
