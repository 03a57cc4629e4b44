//! Reads a JSON object field by field, and finds all that is wrong with it rather than the first thing.
//!
//! A field that cannot be read counts as absent, with a fault; so whatever reads the fields goes on to the next.

use std::cmp::Ordering;

use foreword_compose::{Fault, SectionType, nearest};
use serde_json::{Map, Value};

/// The fields of one object. Every read marks the field as known; [`Fields::finish`] refuses the others.
pub(crate) struct Fields<'a> {
    object: Option<&'a Map<String, Value>>,
    pointer: String,
    known: Vec<&'static str>,
    ignored: &'static [&'static str],
    faults: &'a mut Vec<Fault>,
}

impl<'a> Fields<'a> {
    /// The fields of `value`, which should be an object.
    pub(crate) fn new(value: &'a Value, pointer: String, faults: &'a mut Vec<Fault>) -> Self {
        if !value.is_object() {
            note(faults, || wrong_type(&pointer, "an object", value));
        }
        Self {
            object: value.as_object(),
            pointer,
            known: Vec::new(),
            ignored: &[],
            faults,
        }
    }

    /// Accepts `names` without looking at them.
    pub(crate) fn ignore(&mut self, names: &'static [&'static str]) {
        self.ignored = names;
    }

    /// The value of a field, whatever it is.
    pub(crate) fn value(&mut self, name: &'static str) -> Option<&'a Value> {
        if !self.known.contains(&name) {
            self.known.push(name);
        }
        self.object?.get(name)
    }

    /// A field of a JSON Merge Patch: null takes it away, which leaves the default.
    pub(crate) fn patched<T>(
        &mut self,
        name: &'static str,
        default: T,
        read: impl FnOnce(&mut Self, &'static str) -> Option<T>,
    ) -> Option<T> {
        if self.value(name).is_some_and(Value::is_null) {
            return Some(default);
        }
        read(self, name)
    }

    /// Checks that the item has the id of its address, if it names one.
    pub(crate) fn same_id(&mut self, id: &str) {
        if let Some(other) = self.text("id")
            && other != id
        {
            let message = format!("`id` is `{other}`, but the address says `{id}`");
            let hint = "an item keeps its id; leave the field out, or create a new item";
            self.fault("id", "different-id", message, Some(hint.to_owned()));
        }
    }

    /// A text, if the field is there.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        self.typed(name, "a text", |value| value.as_str().map(str::to_owned))
    }

    /// A text that must be there.
    pub(crate) fn required_text(&mut self, name: &'static str) -> String {
        self.require(name, "a text");
        self.text(name).unwrap_or_default()
    }

    /// A text, if the field is there and not null.
    pub(crate) fn nullable_text(&mut self, name: &'static str) -> Option<String> {
        self.value(name).filter(|value| !value.is_null())?;
        self.typed(name, "a text or null", |value| {
            value.as_str().map(str::to_owned)
        })
    }

    /// True or false, if the field is there.
    pub(crate) fn flag(&mut self, name: &'static str) -> Option<bool> {
        self.typed(name, "true or false", Value::as_bool)
    }

    /// True or false, if the field is there and not null.
    pub(crate) fn nullable_flag(&mut self, name: &'static str) -> Option<bool> {
        self.value(name).filter(|value| !value.is_null())?;
        self.typed(name, "true, false or null", Value::as_bool)
    }

    /// A whole number, if the field is there.
    pub(crate) fn number(&mut self, name: &'static str) -> Option<i64> {
        self.typed(name, "a whole number", Value::as_i64)
    }

    /// A section type, if the field is there.
    pub(crate) fn section_type(&mut self, name: &'static str) -> Option<SectionType> {
        let word = self.text(name)?;
        if let Ok(section_type) = word.parse() {
            return Some(section_type);
        }
        let words = SectionType::ALL.map(SectionType::as_str);
        let hint = match nearest(&word, words) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => format!("use one of {}", listed(words)),
        };
        self.fault(
            name,
            "unknown-type",
            format!("unknown section type {}", shown(&Value::String(word))),
            Some(hint),
        );
        None
    }

    /// A list whose entries are read one by one, if the field is there.
    pub(crate) fn list<T>(
        &mut self,
        name: &'static str,
        mut read: impl FnMut(&'a Value, &str, &mut Vec<Fault>) -> T,
    ) -> Option<Vec<T>> {
        let entries = self.typed(name, "a list", Value::as_array)?;
        let entries = entries.iter().enumerate().map(|(at, entry)| {
            let pointer = format!("{}/{at}", self.pointer_to(name));
            read(entry, &pointer, self.faults)
        });
        Some(entries.collect())
    }

    /// Whatever `read` makes of the field; the default where it is absent or null.
    pub(crate) fn read<T: Default>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&'a Value, &str, &mut Vec<Fault>) -> T,
    ) -> T {
        match self.value(name) {
            None | Some(Value::Null) => T::default(),
            Some(value) => read(value, &self.pointer_to(name), self.faults),
        }
    }

    /// A field that may be spelled in two ways, but not in both at once.
    pub(crate) fn either<T>(
        &mut self,
        one: &'static str,
        other: &'static str,
        read: impl Fn(&mut Self, &'static str) -> Option<T>,
    ) -> Option<T> {
        let (first, second) = (read(self, one), read(self, other));
        if first.is_some() && second.is_some() {
            let message = format!("`{one}` and `{other}` say the same thing");
            let hint = "leave one of them out".to_owned();
            self.fault(other, "duplicate-field", message, Some(hint));
        }
        first.or(second)
    }

    /// Adds a fault of the field `name`.
    pub(crate) fn fault(
        &mut self,
        name: &str,
        code: &'static str,
        message: String,
        hint: Option<String>,
    ) {
        let pointer = self.pointer_to(name);
        note(self.faults, || Fault {
            pointer,
            code,
            message,
            hint,
        });
    }

    /// Adds a fault if the field is not there.
    pub(crate) fn require(&mut self, name: &'static str, what: &str) {
        if self.object.is_some() && self.value(name).is_none() {
            self.fault(
                name,
                "missing-field",
                format!("`{name}` is missing"),
                Some(format!("give {what}")),
            );
        }
    }

    /// Refuses the fields that nobody asked for.
    pub(crate) fn finish(self) {
        for name in self.object.iter().flat_map(|object| object.keys()) {
            if self.known.contains(&name.as_str()) || self.ignored.contains(&name.as_str()) {
                continue;
            }
            note(self.faults, || Fault {
                pointer: format!("{}/{}", self.pointer, escaped(name)),
                code: "unknown-field",
                message: format!("unknown field {}", shown(&Value::String(name.clone()))),
                hint: Some(match nearest(name, self.known.iter().copied()) {
                    Some(nearest) => format!("did you mean `{nearest}`?"),
                    None => format!("known fields: {}", listed(self.known.iter().copied())),
                }),
            });
        }
    }

    fn typed<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.value(name)?;
        let read = read(value);
        if read.is_none() {
            let pointer = self.pointer_to(name);
            note(self.faults, || wrong_type(&pointer, expected, value));
        }
        read
    }

    fn pointer_to(&self, name: &str) -> String {
        format!("{}/{}", self.pointer, escaped(name))
    }
}

/// Reads a map from names to texts.
pub(crate) fn read_texts<'a>(
    value: &'a Value,
    pointer: &str,
    faults: &mut Vec<Fault>,
) -> impl Iterator<Item = (String, String)> + 'a {
    if !value.is_object() {
        note(faults, || wrong_type(pointer, "an object of texts", value));
    }
    let entries = value.as_object().into_iter().flatten();
    let texts = entries
        .clone()
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    let others = entries.filter(|(_, value)| !value.is_string());
    for (name, value) in others {
        let pointer = format!("{pointer}/{}", escaped(name));
        note(faults, || wrong_type(&pointer, "a text", value));
    }
    texts
}

/// The most texts of a list, each of which is a part of the prompt.
const MAX_TEXTS: usize = 1_000;

/// Reads a text, or a list of texts.
pub(crate) fn read_text_or_texts(
    value: &Value,
    pointer: &str,
    faults: &mut Vec<Fault>,
) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(entries) if entries.len() > MAX_TEXTS => {
            note(faults, || Fault {
                pointer: pointer.to_owned(),
                code: "too-many-texts",
                message: format!("there are more than {MAX_TEXTS} texts"),
                hint: Some("put some of them together".to_owned()),
            });
            Vec::new()
        }
        Value::Array(entries) => {
            let texts = entries.iter().enumerate().filter_map(|(at, entry)| {
                let text = entry.as_str().map(str::to_owned);
                if text.is_none() {
                    let pointer = format!("{pointer}/{at}");
                    note(faults, || wrong_type(&pointer, "a text", entry));
                }
                text
            });
            texts.collect()
        }
        other => {
            note(faults, || {
                wrong_type(pointer, "a text or a list of texts", other)
            });
            Vec::new()
        }
    }
}

/// How many faults are told; what a hostile body can cause is bounded.
const MOST_FAULTS: usize = 100;

/// Adds a fault, or, once, that there are more than are told.
pub(crate) fn note(faults: &mut Vec<Fault>, fault: impl FnOnce() -> Fault) {
    match faults.len().cmp(&MOST_FAULTS) {
        Ordering::Less => faults.push(fault()),
        Ordering::Equal => faults.push(Fault {
            pointer: String::new(),
            code: "more-faults",
            message: format!("there are more than these {MOST_FAULTS} faults"),
            hint: Some("mend these first".to_owned()),
        }),
        Ordering::Greater => {}
    }
}

/// The fault of a value that is not what it should be.
pub(crate) fn wrong_type(pointer: &str, expected: &str, value: &Value) -> Fault {
    let mut steps = pointer.rsplit('/').map(unescaped);
    let (name, parent) = (steps.next().unwrap_or_default(), steps.next());
    let subject = match parent {
        None => "the body".to_owned(),
        Some(parent) if name.parse::<usize>().is_ok() => format!("an entry of `{parent}`"),
        Some(_) => format!("`{name}`"),
    };
    Fault {
        pointer: pointer.to_owned(),
        code: "wrong-type",
        message: format!("{subject} must be {expected}, not {}", shown_typed(value)),
        hint: None,
    }
}

/// How much of a value a message repeats, in characters.
const SHOWN: usize = 40;

fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) if text.chars().count() > SHOWN => {
            format!("`{}…`", text.chars().take(SHOWN).collect::<String>())
        }
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}

/// The value so that a text can be told from a number or a word.
fn shown_typed(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().count() <= SHOWN => format!("`{value}`"),
        Value::String(_) => "a text".to_owned(),
        other => shown(other),
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
