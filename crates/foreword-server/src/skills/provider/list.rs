//! The list of a user's skills as the provider writes it, entry by entry: one that cannot be read costs that skill alone.

use foreword_compose::one_line;
use serde::Deserialize;
use serde_json::Value;

use crate::skills::{
    Refused,
    cache::Digest,
    local::MAX_SKILLS,
    name::{MAX_NAME, SkillName},
};

/// The list.
#[derive(Default, Deserialize)]
pub(super) struct List {
    enabled_skills: Vec<Value>,
}

/// A skill that a user has.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    pub(super) name: SkillName,
    pub(super) is_public: bool,
    /// Of its archive, where the list tells it.
    pub(super) digest: Option<Digest>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    category: Option<String>,
    zip_sha256: Option<String>,
}

impl List {
    pub(super) fn is_too_long(&self) -> bool {
        self.enabled_skills.len() > MAX_SKILLS
    }

    /// The entries by name, each name once, and what is left out.
    pub(super) fn sorted_out(self) -> (Vec<Listed>, Vec<Refused>) {
        let (mut listed, mut refused) = (Vec::new(), Vec::new());
        for entry in self.enabled_skills {
            match read(entry) {
                Ok(entry) => listed.push(entry),
                Err(why) => refused.push(why),
            }
        }
        listed.sort_by(|left, right| left.name.cmp(&right.name));
        listed.dedup_by(|left, right| left.name == right.name);
        (listed, refused)
    }
}

fn read(entry: Value) -> Result<Listed, Refused> {
    let called = entry.get("name").and_then(Value::as_str);
    let called = one_line(called.unwrap_or_default(), MAX_NAME);
    let refuse = |why: String| Refused::new(&called, why);
    let entry: Entry = serde_json::from_value(entry)
        .map_err(|error| refuse(format!("its entry cannot be read: {error}")))?;
    let name = SkillName::new(&entry.name)
        .ok_or_else(|| refuse("a skill is called by 1 to 64 of `a-z`, `0-9` and `-`".to_owned()))?;
    let digest = match entry.zip_sha256.filter(|text| !text.is_empty()) {
        None => None,
        Some(text) => Some(
            Digest::parse(&text)
                .ok_or_else(|| refuse("its `zip_sha256` is no SHA-256 in hex digits".to_owned()))?,
        ),
    };
    Ok(Listed {
        name,
        is_public: entry.category.as_deref() == Some("public"),
        digest,
    })
}
