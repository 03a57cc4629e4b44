//! A JSON text of which a few places are changed, and all else stays the bytes that were sent: numbers of any length, escapes, white
//! space, the order of members.
//!
//! Only where members and entries begin and end is read. What lies within them is checked for being JSON and is not looked at.

use std::{
    borrow::Cow,
    fmt::{self, Write},
    ops::Range,
};

use bytes::Bytes;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

/// The most members of an object; each costs memory beside the text.
const MAX_MEMBERS: usize = 1_000;

/// An object as it was sent.
#[derive(Debug)]
pub(crate) struct Object {
    text: String,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    name: String,
    /// From the name to the end of the value.
    whole: Range<usize>,
    value: Range<usize>,
}

/// Why a text is no object that can be changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoObject {
    /// It is not JSON, or no object.
    #[error("{0}")]
    Broken(#[from] serde_json::Error),
    /// It is not even text.
    #[error("it is not UTF-8")]
    NotText,
    /// Whoever reads it might take the one or the other.
    #[error("`{0}` is there twice")]
    Twice(String),
}

impl Object {
    /// Reads `text`, in which none of `names` may be twice.
    pub(crate) fn parse(text: Bytes, names: &[&str]) -> Result<Self, NoObject> {
        let text = String::from_utf8(text.into()).map_err(|_| NoObject::NotText)?;
        let whole = text.as_str();
        let Members(found) = serde_json::from_str(whole)?;
        let mut members: Vec<Member> = Vec::with_capacity(found.len());
        for (name, value) in found {
            let (from, value) = (place(whole, name.get()), place(whole, value.get()));
            // One that is no text, with half a surrogate pair, is none that anybody asks for.
            let name: Cow<'_, str> = serde_json::from_str(name.get()).unwrap_or(name.get().into());
            if names.contains(&&*name) && members.iter().any(|member| member.name == name) {
                return Err(NoObject::Twice(name.into_owned()));
            }
            members.push(Member {
                name: name.into_owned(),
                whole: from.start..value.end,
                value,
            });
        }
        Ok(Self { text, members })
    }

    /// All of it.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The text of a member's value.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let member = self.members.iter().find(|member| member.name == name)?;
        self.text.get(member.value.clone())
    }

    /// A member's value, of which nothing is passed on.
    pub(crate) fn value(&self, name: &str) -> Option<Value> {
        serde_json::from_str(self.get(name)?).ok()
    }

    /// The text without the members `removed`, and with other values, or members, `set`.
    pub(crate) fn changed(&self, removed: &[&str], set: &[(&str, String)]) -> String {
        let text = self.text.as_str();
        let open = text.find('{').map_or(0, |at| at + 1);
        let first = self
            .members
            .first()
            .map_or(open, |member| member.whole.start);
        let mut changed = text[..open].to_owned();
        // Each member takes what stands before it along; the first one that stays stands where the first one stood.
        let (mut end, mut before_next) = (open, Some(&text[open..first]));
        for member in &self.members {
            let before = &text[end..member.whole.start];
            end = member.whole.end;
            if removed.contains(&&*member.name) {
                continue;
            }
            changed.push_str(before_next.take().unwrap_or(before));
            changed.push_str(&text[member.whole.start..member.value.start]);
            let other = set.iter().find(|(name, _)| *name == member.name);
            changed.push_str(other.map_or(&text[member.value.clone()], |(_, value)| value));
        }
        let is_new = |name: &str| self.members.iter().all(|member| member.name != name);
        for (name, value) in set.iter().filter(|(name, _)| is_new(name)) {
            changed.push_str(before_next.take().unwrap_or(","));
            let _ = write!(changed, "\"{name}\":{value}");
        }
        changed.push_str(&text[end..]);
        changed
    }
}

/// The first entries of the list that `text` is, at most so many; none where it is none.
pub(crate) fn entries(text: &str, most: usize) -> Option<Vec<&str>> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let entries = Entries(most).deserialize(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    Some(entries.into_iter().map(RawValue::get).collect())
}

/// The list that `text` is, whose first `replaced` entries give way to those of `first`; all else stays.
pub(crate) fn with_first(text: &str, replaced: usize, first: &[String]) -> Option<String> {
    let entries = entries(text, replaced + 1)?;
    let open = text.find('[')? + 1;
    let kept = entries.get(replaced);
    let rest = match kept {
        Some(kept) => &text[place(text, kept).start..],
        None => &text[text.rfind(']')?..],
    };
    let mut changed = text[..open].to_owned();
    changed.push_str(&first.join(","));
    if kept.is_some() && !first.is_empty() {
        changed.push(',');
    }
    changed.push_str(rest);
    Some(changed)
}

/// Where `part`, which is a piece of `whole`, lies in it.
fn place(whole: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - whole.as_ptr().addr();
    start..start + part.len()
}

/// The members of an object, as they are written.
struct Members<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    if members.len() == MAX_MEMBERS {
                        let why = format!("it has more than {MAX_MEMBERS} members");
                        return Err(A::Error::custom(why));
                    }
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

/// Reads so many entries of a list as they are written, and skips the others.
struct Entries(usize);

impl<'de> DeserializeSeed<'de> for Entries {
    type Value = Vec<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while entries.len() < self.0
            && let Some(entry) = list.next_element()?
        {
            entries.push(entry);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn object(text: &str) -> Object {
        Object::parse(text.to_owned().into(), &["a", "b"]).expect("it is an object")
    }

    #[test]
    fn what_is_not_changed_stays_the_bytes_that_were_sent() {
        let text = " {\t\"n\" : 1e400 ,\"b\":[1.00, 12345678901234567890.5],\n \"\\u00e9\":\"\\ud800\", \"a\": null } \n";
        assert_eq!(object(text).changed(&[], &[]), text);
        for (removed, set, expected) in [
            (
                &["a"][..],
                None,
                " {\t\"n\" : 1e400 ,\"b\":[1.00, 12345678901234567890.5],\n \"\\u00e9\":\"\\ud800\" } \n",
            ),
            (
                &["n", "é"],
                None,
                " {\t\"b\":[1.00, 12345678901234567890.5], \"a\": null } \n",
            ),
            (&["n", "b", "é", "a"], None, " { } \n"),
            (&["n", "b", "é", "a"], Some(("c", "1")), " {\t\"c\":1 } \n"),
            (
                &["b", "é"],
                Some(("a", "2")),
                " {\t\"n\" : 1e400, \"a\": 2 } \n",
            ),
            (
                &["b", "é"],
                Some(("c", "2")),
                " {\t\"n\" : 1e400, \"a\": null,\"c\":2 } \n",
            ),
        ] {
            let set: Vec<_> = set
                .into_iter()
                .map(|(name, value)| (name, value.to_owned()))
                .collect();
            let changed = object(text).changed(removed, &set);
            assert_eq!(changed, expected);
            assert!(Object::parse(changed.into(), &[]).is_ok());
        }
        assert_eq!(
            object("{}").changed(&[], &[("c", "1".to_owned())]),
            "{\"c\":1}"
        );
    }

    #[test]
    fn a_name_counts_however_it_is_escaped_and_only_once() {
        assert_eq!(object("{\"\\u0061\":1}").get("a"), Some("1"));
        let twice = |text: &str| Object::parse(text.to_owned().into(), &["a", "b"]);
        assert!(
            matches!(twice("{\"a\":1,\"\\u0061\":2}"), Err(NoObject::Twice(name)) if name == "a")
        );
        assert!(twice("{\"c\":1,\"c\":2}").is_ok());
        for broken in ["", "[]", "{\"a\":}", "{\"a\":1}x", "1"] {
            assert!(
                matches!(twice(broken), Err(NoObject::Broken(_))),
                "{broken}"
            );
        }
        let no_text = Object::parse(Bytes::from_static(b"{\"a\":\"\xff\"}"), &[]);
        assert!(matches!(no_text, Err(NoObject::NotText)));
    }

    #[test]
    fn an_object_may_have_1_000_members_and_no_more() {
        let members = |count: usize| {
            let members: Vec<String> = (0..count).map(|at| format!("\"m{at}\":0")).collect();
            Object::parse(format!("{{{}}}", members.join(",")).into(), &[])
        };
        assert!(members(MAX_MEMBERS).is_ok());
        let refused = members(MAX_MEMBERS + 1).expect_err("it is one too many");
        assert!(
            refused
                .to_string()
                .starts_with("it has more than 1000 members"),
            "{refused}"
        );
    }

    #[test]
    fn of_a_list_only_the_first_entries_are_kept() {
        assert_eq!(entries("[1, [2] ,3]", 2), Some(vec!["1", "[2]"]));
        assert_eq!(entries("[1]", 2), Some(vec!["1"]));
        for broken in ["[1,]", "[1] 2", "{}", "[1,2,}"] {
            assert_eq!(entries(broken, 1), None, "{broken}");
        }
    }

    #[test]
    fn a_list_gets_other_first_entries() {
        let new = || vec!["0".to_owned()];
        for (text, replaced, first, expected) in [
            ("[]", 0, new(), Some("[0]")),
            ("[ ]", 0, vec![], Some("[]")),
            ("[ 1 , 2 ]", 0, new(), Some("[0,1 , 2 ]")),
            ("[ 1 , 2 ]", 1, new(), Some("[0,2 ]")),
            ("[ 1 , [2] ]", 2, new(), Some("[0]")),
            ("[1,2]", 1, vec![], Some("[2]")),
            ("{}", 0, new(), None),
            ("\"[1]\"", 0, new(), None),
        ] {
            assert_eq!(
                with_first(text, replaced, &first).as_deref(),
                expected,
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_stays_means_the_same(members in proptest::collection::vec(("[a-e]{1,2}", any::<i64>(), any::<bool>()), 0..8)) {
            let mut expected = serde_json::Map::new();
            let mut removed = Vec::new();
            let mut text = "{ ".to_owned();
            for (at, (name, value, is_removed)) in members.iter().enumerate() {
                let comma = if at > 0 { " ,\n" } else { "" };
                let _ = write!(text, "{comma}\"{name}{at}\" : {value}");
                if *is_removed {
                    removed.push(format!("{name}{at}"));
                } else {
                    expected.insert(format!("{name}{at}"), (*value).into());
                }
            }
            text.push('}');
            expected.insert("new".to_owned(), true.into());
            let removed: Vec<&str> = removed.iter().map(String::as_str).collect();
            let changed = object(&text).changed(&removed, &[("new", "true".to_owned())]);
            let read: serde_json::Map<String, Value> = serde_json::from_str(&changed).expect("it is JSON");
            prop_assert_eq!(read, expected);
        }
    }
}
