//! Where the prompt goes in a request of OpenAI's shape: before all other messages, in the place of an earlier prompt of ours.

use serde::Deserialize;
use serde_json::json;

use super::{
    config::SystemRole,
    object::{entries, with_first},
    prompt::ChatPrompt,
};

/// As much of a message as is looked at.
#[derive(Deserialize)]
struct Message {
    role: String,
    content: Content,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
struct Part {
    text: Option<String>,
}

/// The list `messages` with the prompt before it; none where it is no list.
pub(crate) fn with_prompt(messages: &str, prompt: &ChatPrompt, role: SystemRole) -> Option<String> {
    let is_ours = entries(messages, 1)?
        .first()
        .is_some_and(|first| system_text(first).is_some_and(|text| prompt.replaces(&text)));
    let message = prompt.message().map(|text| message(role.as_str(), &text));
    let first: Vec<String> = message.into_iter().collect();
    with_first(messages, usize::from(is_ours), &first)
}

/// A message with this text.
pub(crate) fn message(role: &str, text: &str) -> String {
    json!({"role": role, "content": text}).to_string()
}

/// What a system message says; none where it is another one, or more than a text.
fn system_text(message: &str) -> Option<String> {
    let message: Message = serde_json::from_str(message).ok()?;
    if !matches!(message.role.as_str(), "system" | "developer") {
        return None;
    }
    match message.content {
        Content::Text(text) => Some(text),
        Content::Parts(mut parts) if parts.len() == 1 => parts.pop()?.text,
        Content::Parts(_) => None,
    }
}
