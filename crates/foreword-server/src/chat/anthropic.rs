//! Where the prompt goes in a request of Anthropic's shape: into `system`, as blocks before the caller's own, the part that is the
//! same for all sessions in one of its own that may be cached.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
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

/// Whether the request leaves room for one more place that may be cached; what it leaves out of `system` does not count.
pub(crate) fn leaves_room(body: &[u8]) -> bool {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let mut marked = 0;
    // What cannot be counted is left alone.
    Count(&mut marked).deserialize(&mut deserializer).is_ok() && marked < MAX_CACHED
}

fn block(text: &str) -> String {
    json!({"type": "text", "text": text}).to_string()
}

/// Counts the members of that name, wherever they are; a tool that has a parameter of that name counts too.
struct Count<'a>(&'a mut usize);

impl<'de> DeserializeSeed<'de> for Count<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Count<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            *self.0 += usize::from(name == CACHE_CONTROL);
            map.next_value_seed(Count(self.0))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Count(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
