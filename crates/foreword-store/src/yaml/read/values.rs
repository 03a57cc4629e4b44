//! Reads one value after another, and says what is wrong with those that are not what they should be.

use std::{collections::HashMap, fmt::Write as _};

use foreword_compose::nearest;

use super::super::{
    LoadError, MAX_ERRORS,
    fields::{Entry, entries},
    scalar::{Plain, integer, plain},
    tree::{Kind, NodeId, NodeTag, Style, Tree},
};

/// A walk over a tree.
pub(super) struct Reader<'t> {
    pub(super) tree: &'t Tree,
    /// What was found wrong so far.
    pub(super) errors: Vec<LoadError>,
    /// How many ids were made up for items whose own could not be read.
    pub(super) unreadable: usize,
    /// Whether one of them is the id of a shared section.
    pub(super) lost_section_id: bool,
    /// Where the walk is, as a JSON pointer.
    pointer: String,
}

/// The values of the known keys of one mapping, in the order in which the keys are listed.
pub(super) struct Fields {
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

/// Collections.
impl<'t> Reader<'t> {
    pub(super) fn new(tree: &'t Tree) -> Self {
        Self {
            tree,
            errors: Vec::new(),
            unreadable: 0,
            lost_section_id: false,
            pointer: String::new(),
        }
    }

    /// The values of the `known` keys of the mapping at `node`; says which keys are unknown.
    pub(super) fn fields(
        &mut self,
        node: NodeId,
        what: &str,
        known: &'static [&'static str],
    ) -> Fields {
        let mut values = vec![None; known.len()];
        let entries = self.mapping(node, what);
        let readable = entries.is_some();
        let tree = self.tree;
        for Entry { key, value, .. } in entries.unwrap_or_default() {
            let Some(word) = tree.text(key) else {
                continue;
            };
            if let Some(at) = known.iter().position(|known| *known == word) {
                // Of a key that is there twice, the first one is looked into.
                values[at].get_or_insert(value);
                continue;
            }
            if self.errors.len() >= MAX_ERRORS {
                // A guess that nobody sees is not worth its time.
                continue;
            }
            let hint = match nearest(word, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the keys of {what} are {}", list(known)),
            };
            let message = format!("unknown key `{word}` in {what}");
            self.within(word, |reader| {
                reader.error(key, "unknown-key", message, hint);
            });
        }
        Fields {
            known,
            values,
            readable,
        }
    }

    /// The entries of the mapping at `node`, with merges followed; says so if it is none, or has a key twice.
    pub(super) fn mapping(&mut self, node: NodeId, what: &str) -> Option<Vec<Entry>> {
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
        self.check_keys(own);
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

    fn check_keys(&mut self, own: &[(NodeId, NodeId)]) {
        let tree = self.tree;
        let mut lines: HashMap<&str, usize> = HashMap::with_capacity(own.len());
        for &(key, _) in own {
            let Some(word) = tree.text(key) else {
                let message = "a key must be a word, but this is a list or a mapping";
                let hint = "if this belongs to a text, put the text in quotes";
                self.error(key, "wrong-type", message.to_owned(), hint);
                continue;
            };
            if let Some(first) = lines.get(word) {
                let message = format!("the key `{word}` is here twice");
                let hint = format!("it is on line {first} already; remove one of the two");
                self.within(word, |reader| {
                    reader.error(key, "duplicate-key", message, hint);
                });
            } else {
                lines.insert(word, tree.node(key).line);
            }
        }
    }

    /// The same without a word about mistakes.
    pub(super) fn tree_entries(&self, node: NodeId) -> Vec<Entry> {
        let target = self.tree.resolve(node);
        entries(self.tree, target).unwrap_or_else(|_| match &self.tree.node(target).kind {
            Kind::Mapping { entries, .. } => entries
                .iter()
                .enumerate()
                .filter(|(_, (key, _))| !self.tree.is_merge(*key))
                .map(|(row, &(key, value))| Entry {
                    key,
                    value,
                    row,
                    merged_through: None,
                })
                .collect(),
            _ => Vec::new(),
        })
    }

    pub(super) fn list<T>(
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
    pub(super) fn optional<T>(
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

    pub(super) fn optional_text(&mut self, fields: &Fields, key: &str) -> Option<String> {
        self.optional(fields, key, |reader, node| reader.text(node, key))?
    }

    pub(super) fn required_text(
        &mut self,
        node: NodeId,
        fields: &Fields,
        key: &str,
        what: &str,
    ) -> Option<String> {
        if fields.readable && fields.get(key).is_none() {
            let message = format!("{what} needs the key `{key}`");
            let hint = format!("add a line `{key}: …`");
            self.within(key, |reader| {
                reader.error(node, "missing-key", message, hint);
            });
        }
        self.optional_text(fields, key)
    }

    pub(super) fn id(&mut self, node: NodeId, fields: &Fields, key: &str, what: &str) -> String {
        self.required_text(node, fields, key, what)
            .unwrap_or_else(|| self.make_up_id())
    }

    /// An id that no file has, for an item whose own could not be read.
    pub(super) fn make_up_id(&mut self) -> String {
        self.unreadable += 1;
        format!("unreadable.{}", self.unreadable)
    }

    /// The text at `node`, which is the value of `key`; says so if it is none.
    pub(super) fn text(&mut self, node: NodeId, key: &str) -> Option<String> {
        let tree = self.tree;
        let target = tree.resolve(node);
        self.refuse_tag(target, &NodeTag::Text);
        let found = tree.node(target);
        let name = name_of(key);
        let Kind::Scalar { style, text } = &found.kind else {
            let message = format!("{name} must be text, but this is {}", self.describe(node));
            let hint = "put the text in quotes, or under a `|`";
            self.error(node, "wrong-type", message, hint);
            return None;
        };
        let reading = match style {
            _ if found.tag() == Some(&NodeTag::Text) => Plain::Text,
            Style::Plain => plain(text),
            Style::Absent => {
                let hint = match key {
                    "id" | "use" => "write an id behind it",
                    _ => "write `\"\"` for an empty text",
                };
                self.error(node, "wrong-type", format!("{name} has no value"), hint);
                return None;
            }
            _ => Plain::Text,
        };
        if reading == Plain::Text {
            return Some(text.to_string());
        }
        let message = format!(
            "{name} must be text, but `{text}` is {}",
            reading.describe()
        );
        let hint = format!("put it in quotes: `\"{text}\"`");
        self.error(node, "wrong-type", message, hint);
        None
    }

    /// The truth value of `key`, or its default.
    pub(super) fn flag(&mut self, fields: &Fields, key: &str, default: bool) -> bool {
        let flag = self.optional(fields, key, |reader, node| {
            if let Some((Plain::Bool, word)) = reader.plain(node) {
                return word.eq_ignore_ascii_case("true");
            }
            let found = reader.describe(node);
            let message = format!("`{key}` must be `true` or `false`, but this is {found}");
            let hint = "write `true` or `false` without quotes";
            reader.error(node, "wrong-type", message, hint);
            default
        });
        flag.unwrap_or(default)
    }

    /// The number of `key`, or 0.
    pub(super) fn number(&mut self, fields: &Fields, key: &str) -> i64 {
        let number = self.optional(fields, key, |reader, node| {
            if let Some((Plain::Integer, digits)) = reader.plain(node)
                && let Some(number) = integer(digits)
            {
                return number;
            }
            let found = reader.describe(node);
            let message = format!("`{key}` must be a whole number, but this is {found}");
            let hint = "write digits without quotes, such as `10`";
            reader.error(node, "wrong-type", message, hint);
            0
        });
        number.unwrap_or(0)
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
            Some(NodeTag::Other(tag)) => format!("the tag `{tag}` means nothing in a library"),
            Some(tag) if tag != fitting => "this tag is for another kind of value".to_owned(),
            _ => return,
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
    pub(super) fn within<T>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> T) -> T {
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

    pub(super) fn error(
        &mut self,
        node: NodeId,
        code: &'static str,
        message: String,
        hint: impl Into<String>,
    ) {
        if self.errors.len() >= MAX_ERRORS {
            return;
        }
        let node = self.tree.node(node);
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

pub(super) fn list(words: &[&str]) -> String {
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
