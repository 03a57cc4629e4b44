//! Reads `foreword.toml`: every unknown key and wrong type of it, each with its line.

use std::{
    ffi::OsString,
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use foreword_compose::nearest;
use serde_json::Value;
use toml::{
    Spanned,
    de::{DeArray, DeString, DeTable, DeValue},
};

use super::{
    FILE, join,
    layer::{Layer, Origin},
    secret_file,
    shape::{Setting, Shape, Table, root, secret_of_file_key},
    variable,
};
use crate::failure::{Exit, Failure};

/// The file to read: the one asked for, else the one here, else the user's own; there need not be one.
pub(super) fn find(
    asked: Option<&Path>,
    environment: &[(OsString, OsString)],
) -> Result<Option<PathBuf>, Failure> {
    if let Some(path) = asked {
        if path.is_file() {
            return Ok(Some(path.to_owned()));
        }
        return Err(Failure::new(
            Exit::Unusable,
            format!("there is no configuration file `{}`", path.display()),
        )
        .hint("give `--config` an existing file, or leave it out to run on defaults"));
    }
    let user = variable(environment, "XDG_CONFIG_HOME")
        .map(Path::to_owned)
        .or_else(|| Some(variable(environment, "HOME")?.join(".config")))
        .map(|directory| directory.join("foreword").join(FILE));
    Ok([Some(PathBuf::from(FILE)), user]
        .into_iter()
        .flatten()
        .find(|path| path.is_file()))
}

/// Reads the values of `path`.
pub(super) fn read(path: &Path) -> Result<Layer, Failure> {
    let text = fs::read_to_string(path).map_err(|error| {
        Failure::new(
            Exit::Unusable,
            format!("could not read `{}`: {error}", path.display()),
        )
        .hint("make the file readable as UTF-8, or name another with `--config`")
    })?;
    let (document, errors) = DeTable::parse_recoverable(&text);
    let mut reader = Reader {
        file: path,
        text: &text,
        layer: Layer::default(),
    };
    for error in &errors {
        let place = reader.origin(error.span().unwrap_or_default());
        let message = error.message().trim_end().replace('\n', ", ");
        reader.layer.mistake(place, message, None);
    }
    if errors.is_empty() {
        reader.table(document.get_ref(), root(), "");
    }
    Ok(reader.layer)
}

struct Reader<'a> {
    file: &'a Path,
    text: &'a str,
    layer: Layer,
}

impl Reader<'_> {
    /// Takes the values of a section.
    fn table(&mut self, table: &DeTable<'_>, known: &Table, parent: &str) {
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let path = join(parent, name);
            if let Some(setting) = known.get(name) {
                self.setting(&path, value, setting);
            } else if let Some((secret, setting)) = secret_of_file_key(known, name) {
                if table.contains_key(secret) {
                    self.both(key, secret, name);
                } else if let Some(value) = self.secret_file(&path, value, setting) {
                    self.layer
                        .set(&join(parent, secret), value, self.origin(key.span()));
                }
            } else {
                self.unknown(key, &path, known);
            }
        }
    }

    /// Takes one value, or the values of the section that it is.
    fn setting(&mut self, path: &str, value: &Spanned<DeValue<'_>>, setting: &Setting) {
        match (&setting.shape, value.get_ref()) {
            (Shape::Table(known), DeValue::Table(table)) => self.table(table, known, path),
            (Shape::Tables(known), DeValue::Array(items)) => {
                if let Some(list) = self.tables(path, items, known) {
                    self.layer.set(path, list, self.origin(value.span()));
                }
            }
            (Shape::Named(known), DeValue::Table(sections)) => {
                if let Some(sections) = self.named(path, sections, known) {
                    self.layer.set(path, sections, self.origin(value.span()));
                }
            }
            (shape, found) => {
                let origin = self.origin(value.span());
                match plain(shape, found) {
                    Some(value) if shape.is_secret() && is_blank(&value) => self.layer.mistake(
                        origin,
                        format!("`{path}` is empty"),
                        Some("give a key, or take the line out".to_owned()),
                    ),
                    Some(value) => self.layer.set(path, value, origin),
                    None => self.layer.mistake(
                        origin,
                        format!(
                            "`{path}` has to be {}, not {}",
                            shape.expected(),
                            describe(
                                found,
                                shape.is_secret() || matches!(shape, Shape::NamedSecrets)
                            )
                        ),
                        unknown_word(shape, found),
                    ),
                }
            }
        }
    }

    /// The tables of a `[[list]]`; none if one of them is not a table.
    fn tables(&mut self, path: &str, items: &DeArray<'_>, known: &Table) -> Option<Value> {
        let mut list = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let path = format!("{path}[{index}]");
            list.push(self.item(&path, item, known));
        }
        list.into_iter().collect()
    }

    /// The sections of a table whose keys are names; none if one of them is no section.
    fn named(&mut self, path: &str, sections: &DeTable<'_>, known: &Table) -> Option<Value> {
        let (mut named, mut whole) = (serde_json::Map::new(), true);
        for (name, section) in sections {
            let name = name.get_ref().as_ref();
            // The mistakes of the others are told too.
            match self.item(&join(path, name), section, known) {
                Some(section) => _ = named.insert(name.to_owned(), section),
                None => whole = false,
            }
        }
        whole.then(|| named.into())
    }

    /// One table of several; its values become one table rather than settings of their own.
    fn item(&mut self, path: &str, item: &Spanned<DeValue<'_>>, known: &Table) -> Option<Value> {
        let DeValue::Table(table) = item.get_ref() else {
            let origin = self.origin(item.span());
            let found = describe(item.get_ref(), true);
            let message = format!("`{path}` has to be a table, not {found}");
            self.layer.mistake(origin, message, None);
            return None;
        };
        let mut reader = Reader {
            file: self.file,
            text: self.text,
            layer: Layer::default(),
        };
        reader.table(table, known, path);
        self.layer.locate(path, self.origin(item.span()));
        Some(self.layer.adopt(reader.layer, path))
    }

    fn secret_file(
        &mut self,
        path: &str,
        value: &Spanned<DeValue<'_>>,
        setting: &Setting,
    ) -> Option<Value> {
        let origin = self.origin(value.span());
        let DeValue::String(file) = value.get_ref() else {
            let found = describe(value.get_ref(), false);
            self.layer.mistake(
                origin,
                format!("`{path}` has to be the path of a file, not {found}"),
                None,
            );
            return None;
        };
        secret_file::read(
            Path::new(file.as_ref()),
            &setting.shape,
            &origin,
            &mut self.layer,
        )
    }

    fn both(&mut self, key: &Spanned<DeString<'_>>, secret: &str, file_key: &str) {
        let origin = self.origin(key.span());
        self.layer.mistake(
            origin,
            format!("both `{secret}` and `{file_key}` are given"),
            Some("keep one of them".to_owned()),
        );
    }

    fn unknown(&mut self, key: &Spanned<DeString<'_>>, path: &str, known: &Table) {
        let origin = self.origin(key.span());
        let file_keys: Vec<String> = known
            .iter()
            .filter(|(_, setting)| setting.shape.is_secret())
            .map(|(key, _)| format!("{key}_file"))
            .collect();
        let names = known.keys().chain(&file_keys).map(String::as_str);
        let hint = match nearest(key.get_ref(), names.clone()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("known here: {}", names.collect::<Vec<_>>().join(", ")),
        };
        self.layer
            .mistake(origin, format!("unknown key `{path}`"), Some(hint));
    }

    fn origin(&self, span: Range<usize>) -> Origin {
        let before = &self.text[..span.start.min(self.text.len())];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Origin::File {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// The value, if it has the shape.
fn plain(shape: &Shape, found: &DeValue<'_>) -> Option<Value> {
    match (shape, found) {
        (Shape::Text { choices }, DeValue::String(text)) => {
            let known = choices.is_empty() || choices.iter().any(|(word, _)| word == text);
            known.then(|| text.as_ref().into())
        }
        (Shape::Secret, DeValue::String(text)) => Some(text.as_ref().into()),
        (Shape::Texts | Shape::Secrets, DeValue::Array(items)) => items
            .iter()
            .map(|item| item.get_ref().as_str().map(Value::from))
            .collect(),
        (Shape::Integer { minimum }, DeValue::Integer(number)) => {
            let digits = number.as_str();
            let number = i64::from_str_radix(digits, number.radix()).ok()?;
            minimum
                .is_none_or(|minimum| number >= minimum)
                .then(|| number.into())
        }
        (Shape::Boolean, DeValue::Boolean(value)) => Some((*value).into()),
        (Shape::NamedSecrets, DeValue::Table(table)) => {
            let texts = table.iter().map(|(name, text)| {
                let text = text.get_ref().as_str()?;
                Some((name.get_ref().to_string(), Value::from(text)))
            });
            texts
                .collect::<Option<serde_json::Map<_, _>>>()
                .map(Value::from)
        }
        _ => None,
    }
}

/// Whether a secret, or one of a list, is no secret at all.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(is_blank),
        value => value.as_str().is_some_and(|text| text.trim().is_empty()),
    }
}

/// What was found, in words; of a secret only the type.
fn describe(found: &DeValue<'_>, secret: bool) -> String {
    match found {
        DeValue::String(_) if secret => "a text".to_owned(),
        DeValue::String(text) => format!("the text `{text}`"),
        DeValue::Integer(_) | DeValue::Float(_) if secret => "a number".to_owned(),
        DeValue::Integer(number) => format!("the number `{number}`"),
        DeValue::Float(number) => format!("the number `{number}`"),
        DeValue::Boolean(value) => format!("`{value}`"),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list of something else".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

fn unknown_word(shape: &Shape, found: &DeValue<'_>) -> Option<String> {
    match (shape, found) {
        (Shape::Text { choices }, DeValue::String(text)) => {
            nearest(text, choices.iter().map(|(word, _)| word.as_str()))
                .map(|word| format!("did you mean `{word}`?"))
        }
        (Shape::Texts | Shape::Secrets, DeValue::String(_)) => {
            Some("put it in brackets: [\"…\"]".to_owned())
        }
        _ => None,
    }
}
