//! Where the prompt goes in a request of Anthropic's shape: into `system`, as blocks before the caller's own, the part that is the
//! same for all sessions in one of its own that may be cached.

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};

use super::{
    marker::is_whole,
    object::{Object, entries, with_first},
    prompt::ChatPrompt,
};

/// How many places of a request may be marked for caching.
const MAX_CACHED: usize = 4;

const CACHE_CONTROL: &str = "cache_control";

/// How long a place is kept, where that is said.
const TTL: &str = "ttl";

/// A block of `system`, as much of it as is looked at.
#[derive(Deserialize)]
struct Block {
    text: Option<String>,
    cache_control: Option<IgnoredAny>,
}

/// A `system` that is neither a text nor a list.
#[derive(Debug)]
pub(crate) struct NoSystem;

/// The value of `system` in the request `body` with the prompt before what the caller has there; none where there was none and the
/// prompt is empty.
pub(crate) fn with_prompt(body: &Object, prompt: &ChatPrompt) -> Result<Option<String>, NoSystem> {
    let caller = match body.get("system") {
        None | Some("null") => "[]".to_owned(),
        Some(system) => match serde_json::from_str::<String>(system) {
            Ok(text) if text.is_empty() || prompt.replaces(&text) => "[]".to_owned(),
            // As it is written.
            _ if system.starts_with('"') => format!(r#"[{{"type":"text","text":{system}}}]"#),
            _ => system.to_owned(),
        },
    };
    let earlier = earlier(&caller, prompt).ok_or(NoSystem)?;
    // What gives way leaves its place.
    let leaving = earlier.iter().map(|block| names(block, CACHE_CONTROL));
    let marked = names(body.as_str(), CACHE_CONTROL) - leaving.sum::<usize>();
    let mark = (marked < MAX_CACHED).then(|| mark(body)).flatten();
    let (stable, rest) = prompt.blocks();
    let stable = stable.map(|text| {
        let mut block = json!({"type": "text", "text": text});
        if let Some(mark) = &mark {
            block[CACHE_CONTROL] = mark.clone();
        }
        block.to_string()
    });
    let rest = rest.map(|text| block(&text));
    let ours: Vec<String> = stable.into_iter().chain(rest).collect();
    if ours.is_empty() && earlier.is_empty() {
        return Ok(body.get("system").map(str::to_owned));
    }
    with_first(&caller, earlier.len(), &ours)
        .map(Some)
        .ok_or(NoSystem)
}

/// How our place is marked. What is kept for an hour must not come after what is kept for less, and ours comes after the caller's
/// tools and before all else: so it is kept as long as theirs, or not marked where tools may be kept for less.
fn mark(body: &Object) -> Option<Value> {
    let in_tools = body
        .get("tools")
        .map_or(0, |tools| names(tools, CACHE_CONTROL));
    match names(body.as_str(), TTL) {
        0 => Some(json!({"type": "ephemeral"})),
        _ if in_tools == 0 => Some(json!({"type": "ephemeral", "ttl": "1h"})),
        _ => None,
    }
}

/// The blocks at the beginning that are an earlier prompt.
fn earlier<'a>(system: &'a str, prompt: &ChatPrompt) -> Option<Vec<&'a str>> {
    let mut first = entries(system, 2)?;
    let read: Vec<Option<Block>> = first
        .iter()
        .map(|block| serde_json::from_str(block).ok())
        .collect();
    let is_ours = |at: usize| {
        let text = read.get(at).and_then(Option::as_ref)?.text.as_deref()?;
        Some(prompt.replaces(text))
    };
    // Before the block with the mark stands one that may be cached, or one that makes it the whole that the mark names.
    let is_stable = || match &read[..] {
        [Some(first), Some(second)] => {
            let texts = first.text.as_ref().zip(second.text.as_ref());
            first.cache_control.is_some()
                || texts.is_some_and(|(first, second)| is_whole(&format!("{first}{second}")))
        }
        _ => false,
    };
    first.truncate(match (is_ours(0), is_ours(1)) {
        (Some(true), _) => 1,
        (_, Some(true)) if is_stable() => 2,
        _ => 0,
    });
    Some(first)
}

/// How many members have that name, wherever they are: a parameter of a tool that is called so counts too.
fn names(json: &str, name: &str) -> usize {
    let mut count = 0;
    let mut rest = json;
    while let Some((text, after)) = next_text(rest) {
        let is_name = after.trim_ascii_start().starts_with(':');
        let is_that = || serde_json::from_str::<String>(text).is_ok_and(|text| text == name);
        count += usize::from(is_name && is_that());
        rest = after;
    }
    count
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
        let with = |count: usize| {
            let marks = vec![r#"{"cache_control" : {"type":"ephemeral"}}"#; count].join(",");
            format!(
                r#"{{"x":1e400,"y":"\"cache_control\": \\","z":"cache_control","messages":[{marks}]}}"#
            )
        };
        let marks = |json: &str| names(json, CACHE_CONTROL);
        assert_eq!((marks("{}"), marks(&with(3))), (0, 3));
        assert_eq!(marks(&with(4).replace("cache", "\\u0063ache")), 4);
    }
}
