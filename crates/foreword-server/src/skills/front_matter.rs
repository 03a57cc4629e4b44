//! Decides what a `SKILL.md` says of itself: its front matter, in the public format of Agent Skills.
//!
//! ```text
//! ---
//! name: pdf-forms
//! description: Fills PDF forms. Use when the user mentions a form.
//! ---
//! Text.
//! ```
//!
//! Valid YAML is read as YAML 1.2. Many skills are not valid, most often because a description holds a colon, so what is
//! not is read field by field: each one that is valid alone counts as written, and a name or description that is not
//! counts as the text that stands there. So it is with anchors, aliases, tags and values that lie too deep, which are
//! not read as YAML at all: a description that starts with `*` or `!` means those characters.
//!
//! A field that is there twice counts as it stands the last time, and `<<` is a field like others. Deliberately absent:
//! whether the name is allowed, cutting and escaping (`name`, `block`), and what other fields mean.

use std::borrow::Cow;

use foreword_compose::one_line;
use granit_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

#[cfg(test)]
mod tests;

/// How many bytes the front matter may have, without the lines around it.
const FRONT_MATTER_BYTES: usize = 64 << 10;

/// How deep its values may be nested.
const DEPTH: usize = 16;

/// What the lines around it are.
const FENCE: &str = "---";

const NAME: &str = "name";
const DESCRIPTION: &str = "description";

/// What a skill says of itself.
#[derive(Debug, PartialEq)]
pub(super) struct FrontMatter {
    /// What it does and when to use it: trimmed and not blank, with the line breaks that YAML leaves in it.
    pub(super) description: String,
    /// Every field, `name` and `description` too, in the order they are written.
    ///
    /// A whole number that does not fit, and a number that JSON does not have, is the text that stands there. A name and
    /// a description are text however they look: `name: 007` is `007`.
    pub(super) fields: Map<String, Value>,
}

/// Why nothing can be read, and what to write.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum FrontMatterFault {
    /// It does not start with the line above the front matter.
    #[error(
        "`SKILL.md` does not start with a line `---`; write `---`, `name: …`, `description: …` and `---` on lines of \
         their own above its text"
    )]
    Missing,
    /// The line below the front matter is not there.
    #[error(
        "the front matter of `SKILL.md` does not end; write a line `---` between its last field and the text"
    )]
    Unclosed,
    /// It is longer than [`FRONT_MATTER_BYTES`].
    #[error(
        "the front matter of `SKILL.md` is longer than {FRONT_MATTER_BYTES} bytes; write a line `---` below its last \
         field, and long texts below that"
    )]
    TooLong,
    /// It says not what the skill is for.
    #[error(
        "the front matter of `SKILL.md` has no `description`; write `description: …` with what the skill does and when \
         to use it"
    )]
    NoDescription,
    /// A name or description is a list or has fields of its own.
    #[error(
        "`{field}` in the front matter of `SKILL.md` is no text; put all of it in quotes, or indented under \
         `{field}: >-`"
    )]
    NotText { field: &'static str },
    /// It is no YAML, and reading it by lines found no description.
    #[error(
        "the front matter of `SKILL.md` is not valid YAML (line {line}: {problem}), and no line `description: …` was \
         found in it; write one, with its text in quotes"
    )]
    Invalid { line: usize, problem: String },
}

/// Reads the front matter of `text`.
///
/// A byte order mark, blank lines above it, blanks behind `---` and line ends of Windows are accepted.
pub(super) fn read(text: &str) -> Result<FrontMatter, FrontMatterFault> {
    let (front_matter, lines_above) = cut_out(text)?;
    let fields = match fields_of_yaml(front_matter) {
        Ok(fields) => fields,
        Err(NotYaml { line, problem }) => {
            let fields = fields_by_lines(front_matter);
            if text_of(&fields, DESCRIPTION)?.is_none() {
                return Err(FrontMatterFault::Invalid {
                    line: lines_above + line,
                    problem,
                });
            }
            fields
        }
    };
    let description = text_of(&fields, DESCRIPTION)?.ok_or(FrontMatterFault::NoDescription)?;
    // Nobody needs the name, which is the folder's, but one that is no text tells that the rest may be read wrong.
    text_of(&fields, NAME)?;
    Ok(FrontMatter {
        description,
        fields,
    })
}

/// What stands between the two fences, and how many lines stand above that.
fn cut_out(text: &str) -> Result<(&str, usize), FrontMatterFault> {
    let is_fence = |line: &str| line.trim_end() == FENCE;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines_above = 0;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        lines_above += 1;
        start += line.len();
        if is_fence(line) {
            break;
        }
        if !line.trim().is_empty() {
            return Err(FrontMatterFault::Missing);
        }
    }
    let below = &text[start..];
    if !text[..start].trim().starts_with(FENCE) {
        return Err(FrontMatterFault::Missing);
    }
    let mut end = 0;
    for line in below.split_inclusive('\n') {
        if is_fence(line) {
            return Ok((&below[..end], lines_above));
        }
        end += line.len();
        if end > FRONT_MATTER_BYTES {
            return Err(FrontMatterFault::TooLong);
        }
    }
    Err(FrontMatterFault::Unclosed)
}

/// The text of a field; none if it is not there or blank.
fn text_of(
    fields: &Map<String, Value>,
    field: &'static str,
) -> Result<Option<String>, FrontMatterFault> {
    match fields.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => {
            Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
        }
        Some(_) => Err(FrontMatterFault::NotText { field }),
    }
}

/// Why a text is not read as YAML.
struct NotYaml {
    /// Where it stopped, from 1.
    line: usize,
    problem: String,
}

/// Reads `yaml` as one document that is a mapping.
fn fields_of_yaml(yaml: &str) -> Result<Map<String, Value>, NotYaml> {
    let mut options = granit_parser::options! {
        disallow_directives: true,
        flow_nesting_limit: DEPTH,
        block_nesting_limit: DEPTH,
    };
    // Buffering them would limit how many may follow each other.
    options.set_emit_comments(false);
    let mut builder = Builder::default();
    for event in Parser::new_from_str_with_options(yaml, options) {
        let (event, span) = event.map_err(|error| NotYaml {
            line: error.marker().line(),
            problem: one_line(&error.info(), 256),
        })?;
        builder.take(event).map_err(|problem| NotYaml {
            line: span.start.line(),
            problem: problem.to_owned(),
        })?;
    }
    match builder.root {
        Some(Value::Object(fields)) => Ok(fields),
        Some(_) => Err(NotYaml {
            line: 1,
            problem: "there are no fields `key: value`".to_owned(),
        }),
        None => Ok(Map::new()),
    }
}

/// Makes a value of events.
#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    root: Option<Value>,
    has_document: bool,
}

/// A collection whose end was not seen yet.
enum Open {
    Sequence(Vec<Value>),
    Mapping(Map<String, Value>, Option<String>),
}

impl Builder {
    fn take(&mut self, event: Event<'_>) -> Result<(), &'static str> {
        match event {
            Event::DocumentStart(..) if self.has_document => Err("a second document starts here"),
            Event::DocumentStart(..) => {
                self.has_document = true;
                Ok(())
            }
            Event::Alias(_) => Err("aliases are not read"),
            Event::Scalar(_, _, anchor, ref tag)
            | Event::SequenceStart(_, anchor, ref tag)
            | Event::MappingStart(_, anchor, ref tag)
                if anchor != 0 || tag.is_some() =>
            {
                Err("anchors and tags are not read")
            }
            Event::Scalar(text, style, ..) => {
                self.take_scalar(text, style);
                Ok(())
            }
            Event::SequenceStart(..) => self.open(Open::Sequence(Vec::new())),
            Event::MappingStart(..) => self.open(Open::Mapping(Map::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => {
                match self.open.pop() {
                    Some(Open::Sequence(items)) => self.place(Value::Array(items)),
                    Some(Open::Mapping(entries, _)) => self.place(Value::Object(entries)),
                    None => {}
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn take_scalar(&mut self, text: Cow<'_, str>, style: ScalarStyle) {
        let is_text_field = match &mut *self.open {
            [.., Open::Mapping(_, key @ None)] => {
                *key = Some(text.into_owned());
                return;
            }
            [Open::Mapping(_, Some(key))] => matches!(&**key, NAME | DESCRIPTION),
            _ => false,
        };
        let value = match style {
            ScalarStyle::Plain => match plain(&text) {
                Value::Null => Value::Null,
                _ if is_text_field => Value::String(text.into_owned()),
                value => value,
            },
            _ => Value::String(text.into_owned()),
        };
        self.place(value);
    }

    fn open(&mut self, collection: Open) -> Result<(), &'static str> {
        if matches!(self.open.last(), Some(Open::Mapping(_, None))) {
            return Err("a key must be text");
        }
        if self.open.len() == DEPTH {
            return Err("values are nested too deep");
        }
        self.open.push(collection);
        Ok(())
    }

    fn place(&mut self, value: Value) {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Open::Sequence(items)) => items.push(value),
            Some(Open::Mapping(entries, key)) => {
                // A value never comes before its key.
                entries.insert(key.take().unwrap_or_default(), value);
            }
        }
    }
}

/// What YAML 1.2 (core schema) reads where `text` stands without quotes.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    let digits = |digits: &str, radix| {
        // A sign would be accepted there.
        let all_are = digits.chars().all(|digit| digit.is_digit(radix));
        all_are.then(|| u64::from_str_radix(digits, radix).ok())?
    };
    if let Some(octal) = text.strip_prefix("0o") {
        return digits(octal, 8).map(Number::from);
    }
    if let Some(hexadecimal) = text.strip_prefix("0x") {
        return digits(hexadecimal, 16).map(Number::from);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        let whole = text.parse().map(|whole: i64| Number::from(whole));
        return whole.ok().or_else(|| {
            digits(unsigned, 10)
                .filter(|_| !text.starts_with('-'))
                .map(Number::from)
        });
    }
    // Rust also reads words, such as `nan`.
    if text
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
    {
        return Number::from_f64(text.parse().ok()?);
    }
    None
}

/// Reads `front_matter` field by field.
///
/// A field starts with a line `key:` that is not indented further than the first, and ends before the next such line.
fn fields_by_lines(front_matter: &str) -> Map<String, Value> {
    let indentation = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let is_comment = |line: &str| line.trim_start().starts_with('#');
    let mut fields: Vec<Field<'_>> = Vec::new();
    let mut outermost = None;
    for line in front_matter.lines() {
        let is_blank = line.trim().is_empty();
        if outermost.is_none() && !is_blank && !is_comment(line) {
            outermost = Some(indentation(line));
        }
        let is_outer = outermost.is_some_and(|outermost| indentation(line) <= outermost);
        if is_outer && let Some(key) = key(line) {
            let lines = vec![line];
            fields.push(Field { key, lines });
        } else if let Some(field) = fields.last_mut()
            && !(is_outer && is_comment(line))
        {
            // Also one that is not indented: some editors break long lines without a thought for YAML.
            field.lines.push(line);
        }
    }
    fields
        .iter()
        .filter_map(|field| Some((field.key.to_owned(), field.value()?)))
        .collect()
}

/// The key that `line` starts with.
fn key(line: &str) -> Option<&str> {
    let (key, value) = line.split_once(':')?;
    let key = key.trim();
    let bare = ['"', '\'']
        .iter()
        .find_map(|quote| key.strip_prefix(*quote)?.strip_suffix(*quote));
    let key = bare.unwrap_or(key);
    let is_word = !key.is_empty()
        && key
            .chars()
            .all(|character| character.is_alphanumeric() || matches!(character, '-' | '_' | '.'));
    let is_parted = value.is_empty() || value.starts_with([' ', '\t']);
    // The blank is easily forgotten, and these two are certainly meant.
    (is_word && (is_parted || matches!(key, NAME | DESCRIPTION))).then_some(key)
}

/// The lines of one field.
struct Field<'a> {
    key: &'a str,
    lines: Vec<&'a str>,
}

impl Field<'_> {
    /// What it says; none if it is no valid YAML and needs to be.
    fn value(&self) -> Option<Value> {
        let alone = fields_of_yaml(&self.lines.join("\n")).ok();
        alone
            .and_then(|mut fields| fields.remove(self.key))
            .or_else(|| matches!(self.key, NAME | DESCRIPTION).then(|| Value::String(self.text())))
    }

    /// The text that stands there.
    fn text(&self) -> String {
        let mut lines = self.lines.iter().map(|line| line.trim());
        let first = lines.next().and_then(|line| line.split_once(':'));
        let first = first.map_or("", |(_, value)| value.trim());
        let rest: Vec<&str> = lines.collect();
        let is_block = first.strip_prefix(['|', '>']).is_some_and(|header| {
            header
                .chars()
                .all(|character| matches!(character, '+' | '-' | '0'..='9'))
        });
        match (is_block, first.starts_with('|')) {
            (true, true) => rest.join("\n").trim().to_owned(),
            (true, false) => folded(rest.into_iter()),
            (false, _) => without_quotes(&folded([first].into_iter().chain(rest))).to_owned(),
        }
    }
}

/// Lines as one, where blank lines part paragraphs: what YAML makes of them.
fn folded<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    let mut breaks = 0;
    for line in lines {
        if line.is_empty() {
            breaks += 1;
            continue;
        }
        if !text.is_empty() {
            text.push_str(if breaks == 0 { " " } else { "\n" });
            text.extend(std::iter::repeat_n('\n', breaks.max(1) - 1));
        }
        text.push_str(line);
        breaks = 0;
    }
    text
}

/// `text` without the quotes around all of it. It is no valid YAML, so it may hold the same quotes.
fn without_quotes(text: &str) -> &str {
    let inner = |quote: char| Some((quote, text.strip_prefix(quote)?.strip_suffix(quote)?));
    let Some((quote, inner)) = inner('"').or_else(|| inner('\'')) else {
        return text;
    };
    // In `"this" and "that"` the first does not belong to the last: one closes that stands behind a word, not in one.
    let first_closes = inner.split_once(quote).is_some_and(|(before, after)| {
        !before.ends_with(char::is_whitespace) && !after.starts_with(char::is_alphanumeric)
    });
    if first_closes { text } else { inner }
}
