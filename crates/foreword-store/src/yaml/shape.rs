//! What a file should say: a library's values as keys and lists, in the order in which they are documented.
//!
//! The one module that knows how a library is laid out in a file when it is written. Whether a key whose value is the
//! default is there is up to the file; here it is only said which keys may be left out.

use std::collections::HashMap;

use foreword_compose::{
    LibraryDraft, Profile, Section, SectionType, SharedSection,
    library::{Place, PlaceContent},
};

/// A value to be said.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value<'a> {
    /// What the file says now.
    Unchanged,
    /// A text.
    Text(&'a str),
    /// `true` or `false`.
    Flag(bool),
    /// A whole number.
    Number(i64),
    /// Keys and values. Keys of the file that are not among them go.
    Map(Vec<Field<'a>>),
    /// A text with a switch, which may be written as the text alone while the switch is on.
    Prompt {
        /// The text.
        content: &'a str,
        /// The switch.
        enabled: bool,
    },
    /// Items.
    List(Vec<Item<'a>>),
}

impl Value<'_> {
    /// Whether it has no parts.
    pub(super) fn is_leaf(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Flag(_) | Self::Number(_))
    }

    /// Whether blank lines behind it, once it is written, may become a part of it.
    pub(super) fn may_keep_blank_lines(&self) -> bool {
        match self {
            Self::Text(text) | Self::Prompt { content: text, .. } => text.ends_with("\n\n"),
            Self::Map(fields) => fields
                .iter()
                .any(|field| field.value.may_keep_blank_lines()),
            Self::List(items) => items.iter().any(|item| item.value.may_keep_blank_lines()),
            Self::Unchanged | Self::Flag(_) | Self::Number(_) => false,
        }
    }
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field<'a> {
    /// The key.
    pub(super) key: &'a str,
    /// The value.
    pub(super) value: Value<'a>,
    /// Whether leaving the key out says the same.
    pub(super) optional: bool,
}

/// An item of a list.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item<'a> {
    /// Where it stands in the file's list now; none if it is new.
    pub(super) from: Option<usize>,
    /// Its value.
    pub(super) value: Value<'a>,
}

/// `draft` as a whole, for a file that says `now`.
pub(super) fn library<'a>(now: &LibraryDraft, draft: &'a LibraryDraft) -> Value<'a> {
    let mut fields = Fields::default();
    if let Some(prompt) = &draft.global_prompt {
        fields.unless(
            now.global_prompt.as_ref() == Some(prompt),
            "global_prompt",
            || Value::Prompt {
                content: &prompt.content,
                enabled: prompt.enabled,
            },
        );
    }
    let variables = draft.variables.iter().map(|(name, default)| Field {
        key: name,
        value: Value::Text(default),
        optional: false,
    });
    fields.optional(
        "variables",
        Value::Map(variables.collect()),
        draft.variables.is_empty(),
    );
    fields.list(
        "sections",
        items(
            &now.sections,
            &draft.sections,
            |section| (false, &section.section.id),
            |_, section| shared_section(section),
        ),
    );
    fields.list(
        "profiles",
        items(
            &now.profiles,
            &draft.profiles,
            |profile| (false, &profile.id),
            profile,
        ),
    );
    if let Some(guide) = &draft.workspace_guide {
        fields.unless(
            now.workspace_guide.as_ref() == Some(guide),
            "workspace_guide",
            || {
                let mut fields = Fields::default();
                fields.text("content", &guide.content);
                fields.flag("enabled", guide.enabled, true);
                fields.map()
            },
        );
    }
    fields.map()
}

fn shared_section(shared: &SharedSection) -> Value<'_> {
    let mut fields = Fields::default();
    fields.section(&shared.section);
    if let Some(description) = &shared.description {
        fields.text("description", description);
    }
    fields.map()
}

fn profile<'a>(now: Option<&Profile>, profile: &'a Profile) -> Value<'a> {
    let none = Vec::new();
    let mut fields = Fields::default();
    fields.text("id", &profile.id);
    fields.name(&profile.name, &profile.id);
    if let Some(description) = &profile.description {
        fields.text("description", description);
    }
    fields.flag("is_default", profile.is_default, false);
    fields.flag("tools_prompt", profile.tools_prompt, true);
    fields.list(
        "sections",
        items(
            now.map_or(&none, |now| &now.places),
            &profile.places,
            |place| (matches!(place.content, PlaceContent::Shared(_)), place.id()),
            |_, place| self::place(place),
        ),
    );
    let no_ids = Vec::new();
    fields.list(
        "section_ids",
        items(
            now.map_or(&no_ids, |now| &now.section_ids),
            &profile.section_ids,
            |id| (true, id),
            |_, id| Value::Text(id),
        ),
    );
    fields.map()
}

fn place(place: &Place) -> Value<'_> {
    let mut fields = Fields::default();
    match &place.content {
        PlaceContent::Shared(id) => fields.text("use", id),
        PlaceContent::Inline(section) => fields.section(section),
    }
    fields.flag("enabled", place.enabled, true);
    fields.number("order", place.order);
    fields.number("priority", place.priority);
    fields.map()
}

/// The items of a list, matched with the ones that are there now by their id and by whether they only refer to it.
///
/// Ids are unique in a checked library; where a broken one has an id twice, the first one is matched.
fn items<'a, T: PartialEq>(
    now: &[T],
    wanted: &'a [T],
    key: impl Fn(&T) -> (bool, &str),
    value: impl Fn(Option<&T>, &'a T) -> Value<'a>,
) -> Vec<Item<'a>> {
    let mut places: HashMap<(bool, &str), usize> = HashMap::with_capacity(now.len());
    for (at, item) in now.iter().enumerate() {
        places.entry(key(item)).or_insert(at);
    }
    wanted
        .iter()
        .map(|item| {
            let from = places.remove(&key(item));
            let before = from.map(|at| &now[at]);
            Item {
                from,
                value: if before == Some(item) {
                    Value::Unchanged
                } else {
                    value(before, item)
                },
            }
        })
        .collect()
}

/// The fields of one mapping as they are collected.
#[derive(Default)]
struct Fields<'a>(Vec<Field<'a>>);

impl<'a> Fields<'a> {
    fn map(self) -> Value<'a> {
        Value::Map(self.0)
    }

    fn optional(&mut self, key: &'a str, value: Value<'a>, optional: bool) {
        self.0.push(Field {
            key,
            value,
            optional,
        });
    }

    fn unless(&mut self, same: bool, key: &'a str, value: impl FnOnce() -> Value<'a>) {
        let value = if same { Value::Unchanged } else { value() };
        self.optional(key, value, false);
    }

    fn text(&mut self, key: &'a str, text: &'a str) {
        self.optional(key, Value::Text(text), false);
    }

    fn flag(&mut self, key: &'a str, flag: bool, default: bool) {
        self.optional(key, Value::Flag(flag), flag == default);
    }

    fn number(&mut self, key: &'a str, number: i64) {
        self.optional(key, Value::Number(number), number == 0);
    }

    fn name(&mut self, name: &'a str, id: &str) {
        self.optional("name", Value::Text(name), name == id);
    }

    fn list(&mut self, key: &'a str, items: Vec<Item<'a>>) {
        let optional = items.is_empty();
        self.optional(key, Value::List(items), optional);
    }

    fn section(&mut self, section: &'a Section) {
        self.text("id", &section.id);
        self.name(&section.name, &section.id);
        self.optional(
            "type",
            Value::Text(section.section_type.as_str()),
            section.section_type == SectionType::default(),
        );
        self.text("content", &section.content);
    }
}
