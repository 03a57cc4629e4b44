//! Where the prompt goes in a request of Anthropic's shape: into `system`, as blocks before the caller's own, the part that is the
//! same for all sessions in one of its own that may be cached.

use serde::{Deserialize, de::IgnoredAny};
use serde_json::json;

use super::{
    object::{entries, with_first},
    prompt::ChatPrompt,
};

/// How many places of a request may be marked for caching.
const MAX_CACHED: usize = 4;

const CACHE_CONTROL: &str = "cache_control";

/// A block of `system`, as much of it as is looked at.
#[derive(Deserialize)]
struct Block {
    text: Option<String>,
    cache_control: Option<IgnoredAny>,
}

/// The value of `system` with the prompt before what the caller has there; none where that is neither a text nor a list.
/// `may_cache` says whether one more place may be marked for caching.
pub(crate) fn with_prompt(
    system: Option<&str>,
    prompt: &ChatPrompt,
    may_cache: bool,
) -> Option<String> {
    let (stable, rest) = prompt.blocks();
    let stable = stable.map(|text| {
        let mut block = json!({"type": "text", "text": text});
        if may_cache {
            block[CACHE_CONTROL] = json!({"type": "ephemeral"});
        }
        block.to_string()
    });
    let rest = rest.map(|text| block(&text));
    let ours: Vec<String> = stable.into_iter().chain(rest).collect();
    let caller = match system.map(serde_json::from_str::<String>) {
        None => "[]".to_owned(),
        Some(Ok(text)) if text.is_empty() || prompt.replaces(&text) => "[]".to_owned(),
        Some(Ok(text)) => format!("[{}]", block(&text)),
        Some(Err(_)) => match system? {
            "null" => "[]".to_owned(),
            list => list.to_owned(),
        },
    };
    with_first(&caller, earlier(&caller, prompt)?, &ours)
}

/// How many blocks at the beginning are an earlier prompt.
fn earlier(system: &str, prompt: &ChatPrompt) -> Option<usize> {
    let first = entries(system)?.into_iter().take(2);
    let first: Vec<Option<Block>> = first
        .map(|block| serde_json::from_str(block).ok())
        .collect();
    let is_ours = |at: usize| {
        let text = first.get(at).and_then(Option::as_ref)?.text.as_deref()?;
        Some(prompt.replaces(text))
    };
    let is_stable = || {
        let block = first.first().and_then(Option::as_ref);
        block.is_some_and(|block| {
            block.cache_control.is_some() || block.text.as_deref() == prompt.blocks().0
        })
    };
    Some(match (is_ours(0), is_ours(1)) {
        (Some(true), _) => 1,
        (_, Some(true)) if is_stable() => 2,
        _ => 0,
    })
}

/// Whether the request leaves room for one more place that may be cached. A member of that name counts wherever it is, also
/// where a tool has a parameter that is called so.
pub(crate) fn leaves_room(body: &str) -> bool {
    let mut marked = 0;
    let mut rest = body;
    while let Some((text, after)) = next_text(rest) {
        let is_name = after.trim_ascii_start().starts_with(':');
        let is_marked =
            is_name && serde_json::from_str::<String>(text).is_ok_and(|name| name == CACHE_CONTROL);
        marked += usize::from(is_marked);
        rest = after;
    }
    marked < MAX_CACHED
}

/// The next text in what is left of JSON, in its quotes, and what is after it.
fn next_text(json: &str) -> Option<(&str, &str)> {
    let start = json.find('"')?;
    let mut end = start + 1;
    loop {
        end += json.get(end..)?.find(['"', '\\'])?;
        if json[end..].starts_with('"') {
            return Some((&json[start..=end], &json[end + 1..]));
        }
        // What is escaped ends nothing.
        end += 2;
    }
}

fn block(text: &str) -> String {
    json!({"type": "text", "text": text}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_by_their_name_whatever_else_the_body_holds() {
        let marks = |count: usize| {
            let marks = vec![r#"{"cache_control" : {"type":"ephemeral"}}"#; count].join(",");
            format!(
                r#"{{"x":1e400,"y":"\"cache_control\": \\","z":"cache_control","messages":[{marks}]}}"#
            )
        };
        assert!(leaves_room("{}") && leaves_room(&marks(3)));
        assert!(!leaves_room(&marks(4)));
        assert!(!leaves_room(&marks(4).replace("cache", "\\u0063ache")));
    }
}
