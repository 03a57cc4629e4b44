//! The prompt of a chat request, as it is put into a conversation.

use super::marker;
use crate::render::{Rendered, SessionPrompt};

/// A prompt, and what is known about it.
#[derive(Debug)]
pub(crate) struct ChatPrompt {
    text: String,
    /// How many leading bytes are the same for all sessions.
    stable: usize,
    is_override: bool,
    /// Of its bytes.
    pub(crate) revision: String,
    /// The profile in force.
    pub(crate) profile_id: Option<String>,
}

impl ChatPrompt {
    /// One that tiers deliver too.
    pub(crate) fn shared(prompt: &SessionPrompt) -> Self {
        Self {
            text: prompt.text(),
            stable: prompt.stable_prefix(),
            is_override: false,
            revision: prompt.revision().to_owned(),
            profile_id: prompt.profile_id().map(str::to_owned),
        }
    }

    /// One that was made for this request.
    pub(crate) fn own(rendered: Rendered, is_override: bool) -> Self {
        Self {
            stable: rendered.composition.stable_prefix,
            text: rendered.composition.text,
            is_override,
            revision: rendered.revision,
            profile_id: rendered.profile_id,
        }
    }

    /// The text with the mark; an override is the caller's text and bears none. None where there is nothing to say.
    pub(crate) fn message(&self) -> Option<String> {
        (!self.text.trim().is_empty()).then(|| self.ended(&self.text))
    }

    /// The same in two pieces, of which the first is the same for all sessions; either may be missing.
    pub(crate) fn blocks(&self) -> (Option<&str>, Option<String>) {
        let (stable, rest) = self.text.split_at(self.stable);
        if stable.trim().is_empty() {
            return (None, self.message());
        }
        let rest = self.ended(rest);
        (Some(stable), (!rest.trim().is_empty()).then_some(rest))
    }

    /// Whether a text that is there already is this prompt, or an earlier one of Foreword's.
    pub(crate) fn replaces(&self, text: &str) -> bool {
        marker::is_marked(text) || (self.is_override && text == self.text)
    }

    fn ended(&self, text: &str) -> String {
        if self.is_override {
            text.to_owned()
        } else {
            marker::marked(text, &self.revision)
        }
    }
}
