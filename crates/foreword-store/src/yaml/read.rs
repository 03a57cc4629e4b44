//! Decides what a tree says as a library, and names everything in it that says nothing.
//!
//! The reader goes on after a mistake, so that one look at the file finds all of them. It checks the form: keys, kinds of
//! values, aliases and merges. What only makes sense of the library as a whole (references, unique ids, two defaults) is
//! [`Library::new`](foreword_compose::Library::new)'s business; the draft keeps every item in its place, so that a
//! pointer into the draft is one into the tree.

use std::{collections::HashSet, fmt::Write as _};

use foreword_compose::{
    GlobalPrompt, LibraryDraft, Profile, Section, SectionType, SharedSection, WorkspaceGuide,
    library::{Place, PlaceContent},
};
use indexmap::IndexMap;

use super::{
    LoadError, MAX_ERRORS,
    fields::{Entry, entries},
    nearest::nearest,
    scalar::{Plain, plain},
    tree::{Kind, NodeId, NodeTag, Style, Tree},
};

/// The keys of the library itself.
const LIBRARY_KEYS: &[&str] = &[
    "global_prompt",
    "variables",
    "sections",
    "profiles",
    "workspace_guide",
];
const PROMPT_KEYS: &[&str] = &["content", "enabled"];
const SHARED_SECTION_KEYS: &[&str] = &["id", "name", "type", "content", "description"];
const PROFILE_KEYS: &[&str] = &[
    "id",
    "name",
    "description",
    "is_default",
    "sections",
    "section_ids",
    "tools_prompt",
];
const INLINE_KEYS: &[&str] = &[
    "id", "name", "type", "content", "enabled", "order", "priority",
];
const USE_KEYS: &[&str] = &["use", "enabled", "order", "priority"];

/// A library as far as it could be read.
#[derive(Debug)]
pub(super) struct Reading {
    /// The values; whatever could not be read is its default.
    pub(super) draft: LibraryDraft,
    /// What could not be read, in the order of the walk, at most [`MAX_ERRORS`].
    pub(super) errors: Vec<LoadError>,
    /// Whether the id of a shared section could not be read, so that references to it seem broken.
    pub(super) lost_section_id: bool,
}

/// Reads the library that `tree` holds.
pub(super) fn read(tree: &Tree) -> Reading {
    let mut reader = Reader {
        tree,
        pointer: String::new(),
        errors: Vec::new(),
        unreadable: 0,
        lost_section_id: false,
    };
    let draft = reader.library(tree.root());
    Reading {
        draft,
        errors: reader.errors,
        lost_section_id: reader.lost_section_id,
    }
}

struct Reader<'t> {
    tree: &'t Tree,
    /// Where the walk is, as a JSON pointer.
    pointer: String,
    errors: Vec<LoadError>,
    /// How many ids were made up for items whose own could not be read.
    unreadable: usize,
    lost_section_id: bool,
}

impl Reader<'_> {
    fn library(&mut self, root: NodeId) -> LibraryDraft {
        let fields = self.fields(root, "the library", LIBRARY_KEYS);
        LibraryDraft {
            global_prompt: self.optional(&fields, "global_prompt", |reader, node| {
                reader.global_prompt(node)
            }),
            variables: self
                .optional(&fields, "variables", Self::variables)
                .unwrap_or_default(),
            sections: self.list(&fields, "sections", Self::shared_section),
            profiles: self.list(&fields, "profiles", Self::profile),
            workspace_guide: self.optional(&fields, "workspace_guide", |reader, node| {
                let (content, enabled) = reader.prompt(node, "the workspace guide");
                WorkspaceGuide { content, enabled }
            }),
        }
    }

    fn global_prompt(&mut self, node: NodeId) -> GlobalPrompt {
        if matches!(
            self.tree.node(self.tree.resolve(node)).kind,
            Kind::Scalar { .. }
        ) {
            return GlobalPrompt {
                content: self.text(node, "global_prompt").unwrap_or_default(),
                enabled: true,
            };
        }
        let (content, enabled) = self.prompt(node, "the global prompt");
        GlobalPrompt { content, enabled }
    }

    fn prompt(&mut self, node: NodeId, what: &str) -> (String, bool) {
        let fields = self.fields(node, what, PROMPT_KEYS);
        (
            self.required_text(node, &fields, "content", what)
                .unwrap_or_default(),
            self.flag(&fields, "enabled", true),
        )
    }

    fn variables(&mut self, node: NodeId) -> IndexMap<String, String> {
        let mut variables = IndexMap::new();
        let Some(entries) = self.mapping(node, "`variables`") else {
            return variables;
        };
        for Entry { key, value, .. } in entries {
            let Some(name) = self.tree.text(key).map(str::to_owned) else {
                continue;
            };
            let default = self.within(&name, |reader| reader.text(value, &name));
            variables.insert(name, default.unwrap_or_default());
        }
        variables
    }

    fn shared_section(&mut self, node: NodeId) -> SharedSection {
        let fields = self.fields(node, "a shared section", SHARED_SECTION_KEYS);
        let made_up = self.unreadable;
        let section = self.section(node, &fields, "a shared section");
        self.lost_section_id |= self.unreadable > made_up;
        SharedSection {
            section,
            description: self.optional_text(&fields, "description"),
        }
    }

    fn section(&mut self, node: NodeId, fields: &Fields, what: &str) -> Section {
        let id = self.id(node, fields, "id", what);
        Section {
            name: self
                .optional_text(fields, "name")
                .unwrap_or_else(|| id.clone()),
            section_type: self
                .optional(fields, "type", Self::section_type)
                .unwrap_or_default(),
            content: self
                .required_text(node, fields, "content", what)
                .unwrap_or_default(),
            id,
        }
    }

    fn section_type(&mut self, node: NodeId) -> SectionType {
        let Some(word) = self.text(node, "type") else {
            return SectionType::default();
        };
        word.parse().unwrap_or_else(|_| {
            let known = SectionType::ALL.map(SectionType::as_str);
            let hint = match nearest(&word, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the types are {}", list(&known)),
            };
            self.error(
                node,
                "unknown-type",
                format!("unknown section type `{word}`"),
                hint,
            );
            SectionType::default()
        })
    }

    fn profile(&mut self, node: NodeId) -> Profile {
        let fields = self.fields(node, "a profile", PROFILE_KEYS);
        let id = self.id(node, &fields, "id", "a profile");
        Profile {
            name: self
                .optional_text(&fields, "name")
                .unwrap_or_else(|| id.clone()),
            description: self.optional_text(&fields, "description"),
            is_default: self.flag(&fields, "is_default", false),
            tools_prompt: self.flag(&fields, "tools_prompt", true),
            places: self.list(&fields, "sections", Self::place),
            section_ids: self.list(&fields, "section_ids", |reader, node| {
                reader
                    .text(node, "an entry of `section_ids`")
                    .unwrap_or_else(|| reader.make_up_id())
            }),
            id,
        }
    }

    fn place(&mut self, node: NodeId) -> Place {
        let shared = self
            .tree_entries(node)
            .iter()
            .any(|entry| self.tree.text(entry.key) == Some("use"));
        let (fields, content) = if shared {
            let fields = self.fields(node, "an entry with `use`", USE_KEYS);
            let id = self.id(node, &fields, "use", "an entry with `use`");
            (fields, PlaceContent::Shared(id))
        } else {
            let fields = self.fields(node, "a section", INLINE_KEYS);
            let section = self.section(node, &fields, "a section");
            (fields, PlaceContent::Inline(section))
        };
        Place {
            content,
            enabled: self.flag(&fields, "enabled", true),
            order: self.number(&fields, "order"),
            priority: self.number(&fields, "priority"),
        }
    }
}

/// The values of the known keys of one mapping, in the order in which the keys are listed.
struct Fields {
    known: &'static [&'static str],
    values: Vec<Option<NodeId>>,
    /// Whether it was a mapping at all; if not, what it lacks was said already.
    readable: bool,
}

impl Fields {
    fn get(&self, key: &str) -> Option<NodeId> {
        let at = self.known.iter().position(|known| *known == key)?;
        self.values[at]
    }
}

/// Reading one value.
impl Reader<'_> {
    fn fields(&mut self, node: NodeId, what: &str, known: &'static [&'static str]) -> Fields {
        let mut values = vec![None; known.len()];
        let entries = self.mapping(node, what);
        let readable = entries.is_some();
        for Entry { key, value, .. } in entries.unwrap_or_default() {
            let Some(word) = self.tree.text(key) else {
                continue;
            };
            if let Some(at) = known.iter().position(|known| *known == word) {
                values[at] = Some(value);
                continue;
            }
            let (word, tree) = (word.to_owned(), self.tree);
            let hint = match nearest(&word, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the keys of {what} are {}", list(known)),
            };
            let message = format!("unknown key `{word}` in {what}");
            self.within(&word, |reader| {
                reader.error_at(tree, key, "unknown-key", message, hint);
            });
        }
        Fields {
            known,
            values,
            readable,
        }
    }

    /// The entries of the mapping at `node`, with merges followed; says so if it is none, or has a key twice.
    fn mapping(&mut self, node: NodeId, what: &str) -> Option<Vec<Entry>> {
        let target = self.tree.resolve(node);
        let Kind::Mapping { entries: own, .. } = &self.tree.node(target).kind else {
            let hint = if what == "a profile" || what == "a section" || what == "a shared section" {
                "write it as keys with values, starting with `id:`"
            } else {
                "write it as keys with values, one `key: value` on each line"
            };
            let message = format!("{what} must have keys, but this is {}", self.describe(node));
            self.error(node, "wrong-type", message, hint);
            return None;
        };
        self.refuse_tag(target, &NodeTag::Mapping);
        let mut seen: HashSet<&str> = HashSet::with_capacity(own.len());
        let tree = self.tree;
        for (key, _) in own {
            match tree.text(*key) {
                None => self.error(
                    *key,
                    "wrong-type",
                    "a key must be a word, but this is a list or a mapping".to_owned(),
                    "if this belongs to a text, put the text in quotes",
                ),
                Some(word) => {
                    if !seen.insert(word) {
                        let first = own
                            .iter()
                            .find(|(other, _)| tree.text(*other) == Some(word))
                            .map_or(0, |(first, _)| tree.node(*first).line);
                        let message = format!("the key `{word}` is here twice");
                        let word = word.to_owned();
                        self.within(&word, |reader| {
                            reader.error_at(
                                tree,
                                *key,
                                "duplicate-key",
                                message,
                                format!("it is on line {first} already; remove one of the two"),
                            );
                        });
                    }
                }
            }
        }
        match entries(self.tree, target) {
            Ok(entries) => Some(entries),
            Err(at) => {
                self.error(
                    at,
                    "wrong-type",
                    "`<<` takes the keys of another mapping, but this is none".to_owned(),
                    "write an alias of a mapping, such as `<<: *base`",
                );
                Some(self.tree_entries(node))
            }
        }
    }

    /// The same without a word about mistakes.
    fn tree_entries(&self, node: NodeId) -> Vec<Entry> {
        let target = self.tree.resolve(node);
        entries(self.tree, target).unwrap_or_else(|_| match &self.tree.node(target).kind {
            Kind::Mapping { entries, .. } => entries
                .iter()
                .filter(|(key, _)| !self.tree.is_merge(*key))
                .map(|(key, value)| Entry {
                    key: *key,
                    value: *value,
                    merged_through: None,
                })
                .collect(),
            _ => Vec::new(),
        })
    }

    fn list<T>(
        &mut self,
        fields: &Fields,
        key: &str,
        mut item: impl FnMut(&mut Self, NodeId) -> T,
    ) -> Vec<T> {
        self.optional(fields, key, |reader, node| {
            let target = reader.tree.resolve(node);
            let Kind::Sequence { items, .. } = &reader.tree.node(target).kind else {
                let message = format!(
                    "`{key}` must be a list, but this is {}",
                    reader.describe(node)
                );
                reader.error(
                    node,
                    "wrong-type",
                    message,
                    "start every item on its own line with `- `",
                );
                return Vec::new();
            };
            reader.refuse_tag(target, &NodeTag::Sequence);
            items
                .iter()
                .enumerate()
                .map(|(at, node)| reader.within_index(at, |reader| item(reader, *node)))
                .collect()
        })
        .unwrap_or_default()
    }

    /// Reads the value of `key` if there is one that is not null.
    fn optional<T>(
        &mut self,
        fields: &Fields,
        key: &str,
        read: impl FnOnce(&mut Self, NodeId) -> T,
    ) -> Option<T> {
        let node = fields.get(key)?;
        if self.tree.is_null(node) && nullable(key) {
            return None;
        }
        Some(self.within(key, |reader| read(reader, node)))
    }

    fn optional_text(&mut self, fields: &Fields, key: &str) -> Option<String> {
        self.optional(fields, key, |reader, node| reader.text(node, key))?
    }

    fn required_text(
        &mut self,
        node: NodeId,
        fields: &Fields,
        key: &str,
        what: &str,
    ) -> Option<String> {
        if fields.readable && fields.get(key).is_none() {
            self.error(
                node,
                "missing-key",
                format!("{what} needs the key `{key}`"),
                format!("add a line `{key}: …`"),
            );
        }
        self.optional_text(fields, key)
    }

    fn id(&mut self, node: NodeId, fields: &Fields, key: &str, what: &str) -> String {
        self.required_text(node, fields, key, what)
            .unwrap_or_else(|| self.make_up_id())
    }

    /// An id that no file has, for an item whose own could not be read.
    fn make_up_id(&mut self) -> String {
        self.unreadable += 1;
        format!("unreadable.{}", self.unreadable)
    }

    fn text(&mut self, node: NodeId, key: &str) -> Option<String> {
        let target = self.tree.resolve(node);
        self.refuse_tag(target, &NodeTag::Text);
        let found = self.tree.node(target);
        let name = name_of(key);
        match &found.kind {
            Kind::Scalar { style, text } => {
                let reading = match style {
                    _ if found.tag() == Some(&NodeTag::Text) => Plain::Text,
                    Style::Plain => plain(text),
                    Style::Absent => Plain::Null,
                    _ => Plain::Text,
                };
                match reading {
                    Plain::Text => return Some(text.to_string()),
                    Plain::Null if *style == Style::Absent => self.error(
                        node,
                        "wrong-type",
                        format!("{name} has no value"),
                        "write `\"\"` for an empty text",
                    ),
                    other => {
                        let message =
                            format!("{name} must be text, but `{text}` is {}", other.describe());
                        self.error(
                            node,
                            "wrong-type",
                            message,
                            format!("put it in quotes: `\"{text}\"`"),
                        );
                    }
                }
            }
            _ => {
                let message = format!("{name} must be text, but this is {}", self.describe(node));
                self.error(
                    node,
                    "wrong-type",
                    message,
                    "put the text in quotes, or under a `|`",
                );
            }
        }
        None
    }

    fn flag(&mut self, fields: &Fields, key: &str, default: bool) -> bool {
        self.optional(fields, key, |reader, node| {
            let value = reader.plain(node);
            match value {
                Some((Plain::Bool, word)) => word.eq_ignore_ascii_case("true"),
                _ => {
                    let message = format!(
                        "`{key}` must be `true` or `false`, but this is {}",
                        reader.describe(node)
                    );
                    reader.error(
                        node,
                        "wrong-type",
                        message,
                        "write `true` or `false` without quotes",
                    );
                    default
                }
            }
        })
        .unwrap_or(default)
    }

    fn number(&mut self, fields: &Fields, key: &str) -> i64 {
        self.optional(fields, key, |reader, node| {
            let number = match reader.plain(node) {
                Some((Plain::Integer, digits)) => integer(digits),
                _ => None,
            };
            number.unwrap_or_else(|| {
                let message = format!(
                    "`{key}` must be a whole number, but this is {}",
                    reader.describe(node)
                );
                reader.error(
                    node,
                    "wrong-type",
                    message,
                    "write digits without quotes, such as `10`",
                );
                0
            })
        })
        .unwrap_or(0)
    }

    /// A scalar that may be something else than text, with what it may be.
    fn plain(&mut self, node: NodeId) -> Option<(Plain, &str)> {
        let target = self.tree.resolve(node);
        self.refuse_tag(target, &NodeTag::Plain);
        let found = self.tree.node(target);
        match &found.kind {
            Kind::Scalar { style, text } => {
                let may_be = matches!(found.tag(), Some(NodeTag::Plain))
                    || (*style == Style::Plain && found.tag().is_none());
                Some((if may_be { plain(text) } else { Plain::Text }, &**text))
            }
            _ => None,
        }
    }

    fn refuse_tag(&mut self, node: NodeId, fitting: &NodeTag) {
        let message = match self.tree.node(node).tag() {
            None => return,
            Some(tag) if tag == fitting => return,
            Some(NodeTag::Other(tag)) => format!("the tag `{tag}` means nothing in a library"),
            // A tag for another kind of value is refused with the value itself.
            Some(_) => return,
        };
        self.error(node, "unknown-tag", message, "remove it");
    }

    fn describe(&self, node: NodeId) -> String {
        let found = self.tree.node(self.tree.resolve(node));
        match &found.kind {
            Kind::Sequence { .. } => "a list".to_owned(),
            Kind::Mapping { .. } => "a mapping with keys of its own".to_owned(),
            Kind::Alias(_) => "an alias".to_owned(),
            Kind::Scalar { .. } if self.tree.is_null(node) => "empty".to_owned(),
            Kind::Scalar { style, text } => {
                let reading = if *style == Style::Plain {
                    plain(text)
                } else {
                    Plain::Text
                };
                match reading {
                    Plain::Text => format!("the text `{}`", shortened(text)),
                    other => format!("{} (`{text}`)", other.describe()),
                }
            }
        }
    }
}

/// Where the walk is, and what it found there.
impl Reader<'_> {
    fn within<T>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.pointer.len();
        self.pointer.push('/');
        for character in key.chars() {
            match character {
                '~' => self.pointer.push_str("~0"),
                '/' => self.pointer.push_str("~1"),
                other => self.pointer.push(other),
            }
        }
        let value = read(self);
        self.pointer.truncate(length);
        value
    }

    fn within_index<T>(&mut self, at: usize, read: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.pointer.len();
        write!(self.pointer, "/{at}").expect("a string takes everything");
        let value = read(self);
        self.pointer.truncate(length);
        value
    }

    fn error(
        &mut self,
        node: NodeId,
        code: &'static str,
        message: String,
        hint: impl Into<String>,
    ) {
        self.error_at(self.tree, node, code, message, hint);
    }

    fn error_at(
        &mut self,
        tree: &Tree,
        node: NodeId,
        code: &'static str,
        message: String,
        hint: impl Into<String>,
    ) {
        if self.errors.len() >= MAX_ERRORS {
            return;
        }
        let node = tree.node(node);
        let mut error = LoadError::new((node.line, node.column), code, message).hint(hint);
        error.pointer = Some(self.pointer.clone());
        self.errors.push(error);
    }
}

/// Keys that may stand without a value, as `profiles:` does when all profiles are commented out.
fn nullable(key: &str) -> bool {
    matches!(
        key,
        "global_prompt"
            | "variables"
            | "sections"
            | "profiles"
            | "workspace_guide"
            | "description"
            | "section_ids"
    )
}

fn name_of(key: &str) -> String {
    if key.contains('`') {
        key.to_owned()
    } else {
        format!("`{key}`")
    }
}

fn integer(digits: &str) -> Option<i64> {
    if let Some(octal) = digits.strip_prefix("0o") {
        return i64::from_str_radix(octal, 8).ok();
    }
    if let Some(hexadecimal) = digits.strip_prefix("0x") {
        return i64::from_str_radix(hexadecimal, 16).ok();
    }
    digits.parse().ok()
}

fn list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}

/// The first words of a text, for a message.
fn shortened(text: &str) -> String {
    const LIMIT: usize = 40;
    let line = text.lines().next().unwrap_or_default();
    if line.len() == text.len() && line.chars().count() <= LIMIT {
        return text.to_owned();
    }
    let start: String = line.chars().take(LIMIT).collect();
    format!("{start}…")
}
