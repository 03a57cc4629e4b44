//! A prompt as it is kept and handed out: a head that sessions share, and a tail of its own.

use std::{fmt, sync::Arc};

use bytes::Bytes;

/// A session's prompt, cheap to clone.
///
/// Its bytes lie in two pieces, so that sessions whose prompts begin alike keep that beginning once.
#[derive(Clone)]
pub struct SessionPrompt {
    pub(super) head: Head,
    pub(super) tail: Arc<str>,
    pub(super) revision: Arc<str>,
    pub(super) profile_id: Option<Arc<str>>,
    pub(super) degraded: bool,
}

/// The beginning of a prompt, shared by all sessions for which it is the same.
///
/// Two pointers deep on purpose: a [`std::sync::Weak`] to the outer one keeps a few bytes alive, not the text.
pub(super) type Head = Arc<Box<str>>;

impl SessionPrompt {
    /// The whole text, in one piece of its own.
    #[must_use]
    pub fn text(&self) -> String {
        [&self.head, &*self.tail].concat()
    }

    /// The whole text in the pieces in which it is kept; nothing is copied.
    #[must_use]
    pub fn chunks(&self) -> [Bytes; 2] {
        [
            Bytes::from_owner(HeadBytes(Arc::clone(&self.head))),
            Bytes::from_owner(TailBytes(Arc::clone(&self.tail))),
        ]
    }

    /// The first 16 hex digits of SHA-256 over the full text, whatever the form.
    #[must_use]
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// The id of the profile in force, if the library has any.
    #[must_use]
    pub fn profile_id(&self) -> Option<&str> {
        self.profile_id.as_deref()
    }

    /// Whether something was missing when it was made.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.degraded
    }
}

/// Prompt text is never logged, so neither is it here.
impl fmt::Debug for SessionPrompt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SessionPrompt")
            .field("revision", &self.revision)
            .field("profile_id", &self.profile_id)
            .field("bytes", &(self.head.len() + self.tail.len()))
            .finish_non_exhaustive()
    }
}

struct HeadBytes(Head);

impl AsRef<[u8]> for HeadBytes {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

struct TailBytes(Arc<str>);

impl AsRef<[u8]> for TailBytes {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}
