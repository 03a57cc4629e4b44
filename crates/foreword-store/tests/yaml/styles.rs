//! Writes a library as YAML in every manner that people use, chosen at random.

use std::fmt::Write as _;

use foreword_compose::{
    LibraryDraft, Profile, Section, SectionType, SharedSection,
    library::{Place, PlaceContent},
};
use proptest::{collection::vec, prelude::*};

/// Decisions, taken one after another; when they run out, all others are the plainest.
#[derive(Debug, Clone)]
pub(crate) struct Choices {
    bytes: Vec<u8>,
    taken: usize,
}

/// Any decisions.
pub(crate) fn choices() -> impl Strategy<Value = Choices> {
    vec(any::<u8>(), 0..200).prop_map(|bytes| Choices { bytes, taken: 0 })
}

impl Choices {
    /// One of `count`; 0 is the plainest.
    fn of(&mut self, count: u8) -> u8 {
        let byte = self.bytes.get(self.taken).copied().unwrap_or_default();
        self.taken += 1;
        byte % count
    }

    fn rarely(&mut self) -> bool {
        self.of(5) == 4
    }
}

/// What `draft` looks like in a file of somebody who decides like `choices`.
pub(crate) fn write(draft: &LibraryDraft, choices: &mut Choices) -> String {
    let dash = [2, 0, 4][usize::from(choices.of(3))];
    let item = [2, 4][usize::from(choices.of(2))];
    let mut writer = Writer {
        choices,
        out: String::new(),
        dash,
        item,
        comments: 0,
        last: Last::Line,
    };
    writer.library(draft);
    let may_end_early = writer.last == Last::Line;
    let mut text = writer.out;
    match choices.of(8) {
        5 => text.insert(0, '\u{feff}'),
        6 => text.insert_str(0, "---\n"),
        7 if may_end_early => text.truncate(text.trim_end().len()),
        _ => {}
    }
    if choices.of(4) == 3 {
        text = text.replace('\n', "\r\n");
    }
    text
}

enum Node {
    Text(String),
    Word(String),
    Map(Vec<(String, Node)>),
    List(Vec<Node>),
}

struct Writer<'c> {
    choices: &'c mut Choices,
    out: String,
    dash: usize,
    item: usize,
    comments: usize,
    last: Last,
}

/// What was written last, and so what may follow.
#[derive(PartialEq)]
enum Last {
    Line,
    /// A text under a `|`: without its line break, parsers would differ about it.
    Text,
    /// One that takes the blank lines behind it in.
    OpenText,
}

impl Writer<'_> {
    fn library(&mut self, draft: &LibraryDraft) {
        let mut fields = Vec::new();
        if let Some(prompt) = &draft.global_prompt {
            if prompt.enabled && self.choices.of(3) == 1 {
                fields.push((
                    "global_prompt".to_owned(),
                    Node::Text(prompt.content.clone()),
                ));
            } else {
                fields.push((
                    "global_prompt".to_owned(),
                    self.prompt(&prompt.content, prompt.enabled),
                ));
            }
        }
        if !draft.variables.is_empty() || self.choices.rarely() {
            let variables = draft
                .variables
                .iter()
                .map(|(name, text)| (name.clone(), Node::Text(text.clone())))
                .collect();
            fields.push(("variables".to_owned(), Node::Map(variables)));
        }
        if !draft.sections.is_empty() || self.choices.rarely() {
            let sections = draft
                .sections
                .iter()
                .map(|section| self.shared_section(section))
                .collect();
            fields.push(("sections".to_owned(), Node::List(sections)));
        }
        if !draft.profiles.is_empty() || self.choices.rarely() {
            let profiles = draft
                .profiles
                .iter()
                .map(|profile| self.profile(profile))
                .collect();
            fields.push(("profiles".to_owned(), Node::List(profiles)));
        }
        if let Some(guide) = &draft.workspace_guide {
            fields.push((
                "workspace_guide".to_owned(),
                self.prompt(&guide.content, guide.enabled),
            ));
        }
        let count = fields.len().max(1);
        fields.rotate_left(usize::from(self.choices.of(5)) % count);
        if self.choices.rarely() {
            self.comment(0);
            self.out.push('\n');
        }
        if fields.is_empty() {
            self.out.push_str("{}\n");
        }
        self.entries(fields, 0, false);
    }

    fn prompt(&mut self, content: &str, enabled: bool) -> Node {
        let mut fields = vec![("content".to_owned(), Node::Text(content.to_owned()))];
        self.flag(&mut fields, "enabled", enabled, true);
        Node::Map(fields)
    }

    fn section(&mut self, section: &Section) -> Vec<(String, Node)> {
        let mut fields = vec![("id".to_owned(), Node::Text(section.id.clone()))];
        if section.name != section.id || self.choices.rarely() {
            fields.push(("name".to_owned(), Node::Text(section.name.clone())));
        }
        if section.section_type != SectionType::Custom || self.choices.rarely() {
            fields.push((
                "type".to_owned(),
                Node::Word(section.section_type.to_string()),
            ));
        }
        fields.push(("content".to_owned(), Node::Text(section.content.clone())));
        fields
    }

    fn shared_section(&mut self, shared: &SharedSection) -> Node {
        let mut fields = self.section(&shared.section);
        if let Some(description) = &shared.description {
            fields.push(("description".to_owned(), Node::Text(description.clone())));
        }
        self.shuffled(fields)
    }

    fn profile(&mut self, profile: &Profile) -> Node {
        let mut fields = vec![("id".to_owned(), Node::Text(profile.id.clone()))];
        if profile.name != profile.id || self.choices.rarely() {
            fields.push(("name".to_owned(), Node::Text(profile.name.clone())));
        }
        if let Some(description) = &profile.description {
            fields.push(("description".to_owned(), Node::Text(description.clone())));
        }
        self.flag(&mut fields, "is_default", profile.is_default, false);
        self.flag(&mut fields, "tools_prompt", profile.tools_prompt, true);
        if !profile.places.is_empty() || self.choices.rarely() {
            let places = profile
                .places
                .iter()
                .map(|place| self.place(place))
                .collect();
            fields.push(("sections".to_owned(), Node::List(places)));
        }
        if !profile.section_ids.is_empty() || self.choices.rarely() {
            let ids = profile
                .section_ids
                .iter()
                .cloned()
                .map(Node::Text)
                .collect();
            fields.push(("section_ids".to_owned(), Node::List(ids)));
        }
        self.shuffled(fields)
    }

    fn place(&mut self, place: &Place) -> Node {
        let mut fields = match &place.content {
            PlaceContent::Inline(section) => self.section(section),
            PlaceContent::Shared(id) => vec![("use".to_owned(), Node::Text(id.clone()))],
        };
        self.flag(&mut fields, "enabled", place.enabled, true);
        self.number(&mut fields, "order", place.order);
        self.number(&mut fields, "priority", place.priority);
        self.shuffled(fields)
    }

    fn flag(&mut self, fields: &mut Vec<(String, Node)>, key: &str, value: bool, default: bool) {
        if value != default || self.choices.rarely() {
            fields.push((key.to_owned(), Node::Word(value.to_string())));
        }
    }

    fn number(&mut self, fields: &mut Vec<(String, Node)>, key: &str, value: i64) {
        if value != 0 || self.choices.rarely() {
            fields.push((key.to_owned(), Node::Word(value.to_string())));
        }
    }

    /// Most people start with the id; some do not.
    fn shuffled(&mut self, mut fields: Vec<(String, Node)>) -> Node {
        if self.choices.rarely() {
            let count = fields.len();
            fields.rotate_left(usize::from(self.choices.of(4)) % count);
        }
        Node::Map(fields)
    }

    fn entries(&mut self, fields: Vec<(String, Node)>, column: usize, mut behind_dash: bool) {
        for (key, value) in fields {
            if !behind_dash {
                self.around(column);
                self.indent(column);
            }
            behind_dash = false;
            write!(self.out, "{key}:").unwrap();
            self.value(value, column);
        }
    }

    fn value(&mut self, value: Node, column: usize) {
        let in_flow = self.choices.of(4) == 3;
        match value {
            Node::Map(fields) if fields.is_empty() && self.choices.of(2) == 0 => self.end_line(""),
            Node::List(items) if items.is_empty() && self.choices.of(2) == 0 => self.end_line(""),
            Node::Map(fields) if !fields.is_empty() && !in_flow => {
                self.end_line("");
                self.entries(fields, column + 2, false);
            }
            Node::List(items) if !items.is_empty() && !in_flow => {
                self.end_line("");
                for item in items {
                    self.item(item, column + self.dash);
                }
            }
            Node::Text(text) => self.text(&text, column),
            other => {
                let flow = self.flow(other, column + 1);
                self.end_line(&format!(" {flow}"));
            }
        }
    }

    fn item(&mut self, item: Node, column: usize) {
        self.around(column);
        self.indent(column);
        self.out.push('-');
        let in_flow = self.choices.of(4) == 3;
        match item {
            Node::Map(fields) if !in_flow => {
                if self.choices.rarely() {
                    self.end_line("");
                    self.entries(fields, column + self.item, false);
                } else {
                    self.indent(self.item - 1);
                    self.entries(fields, column + self.item, true);
                }
            }
            other => {
                let flow = self.flow(other, column + 1);
                self.end_line(&format!(" {flow}"));
            }
        }
        if self.choices.rarely() {
            self.comment(column + 1);
        }
    }

    /// Inside brackets and braces; sometimes over several lines.
    fn flow(&mut self, value: Node, column: usize) -> String {
        let (open, parts, close) = match value {
            Node::Text(text) => return self.on_one_line(&text, true),
            Node::Word(word) => return word,
            Node::Map(fields) => {
                let parts: Vec<String> = fields
                    .into_iter()
                    .map(|(key, value)| format!("{key}: {}", self.flow(value, column)))
                    .collect();
                ('{', parts, '}')
            }
            Node::List(items) => {
                let parts: Vec<String> = items
                    .into_iter()
                    .map(|item| self.flow(item, column))
                    .collect();
                ('[', parts, ']')
            }
        };
        let indentation = " ".repeat(column + 1);
        match self.choices.of(6) {
            4 if !parts.is_empty() => {
                format!(
                    "{open}\n{indentation}{},\n{indentation}{close}",
                    parts.join(&format!(",\n{indentation}"))
                )
            }
            5 if !parts.is_empty() => {
                let comment = self.comments;
                self.comments += parts.len();
                let mut lines = String::new();
                for (at, part) in parts.iter().enumerate() {
                    writeln!(lines, "{indentation}{part}, # flow c{}c", comment + at).unwrap();
                }
                format!("{open}\n{lines}{indentation}{close}")
            }
            _ => format!("{open}{}{close}", parts.join(", ")),
        }
    }

    fn text(&mut self, text: &str, column: usize) {
        let can_be_block = !text.trim_matches([' ', '\t', '\n']).is_empty()
            && !text.trim_end_matches('\n').ends_with([' ', '\t'])
            && text
                .chars()
                .all(|character| character == '\n' || character == '\t' || !is_odd(character));
        let style = self.choices.of(6);
        if !can_be_block || (style > 2 && !text.contains('\n')) || style == 5 {
            let line = self.on_one_line(text, false);
            if style == 4 && self.choices.of(2) == 1 {
                self.end_line("");
                self.indent(column + 2);
                self.end_line(&line);
            } else {
                self.end_line(&format!(" {line}"));
            }
            return;
        }
        let step = [2, 4, 1][usize::from(self.choices.of(3))];
        let content = text.trim_end_matches('\n');
        let indicator = if text.starts_with([' ', '\t', '\n']) || self.choices.rarely() {
            step.to_string()
        } else {
            String::new()
        };
        let folded = style == 2 && !content.contains('\n') && !content.contains('\t');
        let chomp = match text.len() - content.len() {
            0 => "-",
            1 => "",
            _ => "+",
        };
        let body = text.strip_suffix('\n').unwrap_or(text);
        let mark = if folded { '>' } else { '|' };
        if self.choices.rarely() {
            let comment = self.next_comment();
            writeln!(self.out, " {mark}{indicator}{chomp}  # header {comment}").unwrap();
        } else {
            writeln!(self.out, " {mark}{indicator}{chomp}").unwrap();
        }
        for line in body.split('\n') {
            if !line.is_empty() {
                self.indent(column + step);
                self.out.push_str(line);
            }
            self.out.push('\n');
        }
        self.last = if chomp == "+" {
            Last::OpenText
        } else {
            Last::Text
        };
    }

    fn on_one_line(&mut self, text: &str, in_flow: bool) -> String {
        let plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
            && text
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || character == ' ')
            && !text.ends_with(' ')
            && !["y", "n", "yes", "no", "on", "off", "true", "false", "null"]
                .contains(&text.to_lowercase().as_str());
        let single = !text
            .chars()
            .any(|character| character == '\n' || character == '\t' || is_odd(character));
        match self.choices.of(3) {
            0 if plain && in_flow => text.to_owned(),
            0 if plain => text.to_owned(),
            1 if single => format!("'{}'", text.replace('\'', "''")),
            _ => quoted(text),
        }
    }

    fn end_line(&mut self, line: &str) {
        self.out.push_str(line);
        if self.choices.rarely() {
            let comment = self.next_comment();
            write!(self.out, "  # trailing {comment}").unwrap();
        }
        self.out.push('\n');
        self.last = Last::Line;
    }

    /// What stands above an entry or item: blank lines, comments.
    fn around(&mut self, column: usize) {
        match self.choices.of(8) {
            4 | 6 if self.last == Last::OpenText => {}
            4 => self.out.push('\n'),
            5 => self.comment(column),
            6 => {
                self.out.push('\n');
                self.comment(column);
            }
            7 => {
                self.comment(column);
                self.out.push('\n');
            }
            _ => {}
        }
    }

    fn comment(&mut self, column: usize) {
        let comment = self.next_comment();
        self.indent(column);
        writeln!(self.out, "# note {comment}: - not |+ yaml").unwrap();
        self.last = Last::Line;
    }

    /// A mark that is in no text, so that it can be found again.
    fn next_comment(&mut self) -> String {
        self.comments += 1;
        format!("c{}c", self.comments)
    }

    fn indent(&mut self, column: usize) {
        self.out.extend(std::iter::repeat_n(' ', column));
    }
}

fn is_odd(character: char) -> bool {
    (character.is_control() && character != '\n' && character != '\t')
        || matches!(
            character,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{ffff}' | '\u{fffe}'
        )
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => write!(quoted, "\\{character}").unwrap(),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            odd if is_odd(odd) => write!(quoted, "\\u{:04x}", u32::from(odd)).unwrap(),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
