//! `foreword config`: the configuration in force, with the origin of each value and no secret.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::{
    Config, Loaded,
    shape::{Shape, Table, settings},
};

/// What is shown in place of a secret.
const REDACTED: &str = "[redacted]";

/// The configuration as TOML that could be a `foreword.toml`, with the origins as comments.
pub(crate) fn text(loaded: &Loaded) -> String {
    let lines: Vec<(String, String)> = effective(loaded)
        .map(|(path, value, origin)| {
            let line = match toml(&value) {
                Some(value) => format!("{path} = {value}"),
                None => format!("# {path} is not set"),
            };
            (line, origin)
        })
        .collect();
    let width = lines
        .iter()
        .map(|(line, _)| line.chars().count())
        .filter(|width| *width <= 60)
        .max()
        .unwrap_or_default();
    let mut text = match &loaded.file {
        Some(file) => format!("# read from {}\n", file.display()),
        None => "# no foreword.toml was found\n".to_owned(),
    };
    for (line, origin) in lines {
        writeln!(text, "{line:width$}  # {origin}").expect("writing to a string cannot fail");
    }
    text
}

/// The same for scripts.
pub(crate) fn json(loaded: &Loaded) -> Value {
    let settings: Map<String, Value> = effective(loaded)
        .map(|(path, value, origin)| (path, json!({ "value": value, "origin": origin })))
        .collect();
    json!({ "file": loaded.file, "settings": settings, "warnings": loaded.warnings })
}

/// The settings in which two configurations differ, by path.
pub(crate) fn differences(one: &Config, other: &Config) -> Vec<String> {
    let (one, other) = (values(one), values(other));
    settings()
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| value(&one, path) != value(&other, path))
        .collect()
}

fn values(config: &Config) -> Value {
    serde_json::to_value(config).expect("the configuration is plain data")
}

fn value<'a>(values: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(values, |section, key| &section[key])
}

/// Every setting with its value in force, as it may be shown, and its origin.
fn effective(loaded: &Loaded) -> impl Iterator<Item = (String, Value, String)> {
    let values = values(&loaded.config);
    settings().into_iter().map(move |(path, setting)| {
        let value = value(&values, &path).clone();
        let origin = loaded
            .origins
            .get(&path)
            .map_or_else(|| "default".to_owned(), ToString::to_string);
        (path, redacted(value, &setting.shape), origin)
    })
}

/// The value without its secrets.
fn redacted(value: Value, shape: &Shape) -> Value {
    match (shape, value) {
        (_, Value::Null) => Value::Null,
        (Shape::Secret, _) => REDACTED.into(),
        (Shape::Secrets, Value::Array(items)) => vec![REDACTED; items.len()].into(),
        (Shape::NamedSecrets, Value::Object(fields)) => {
            let hidden = fields.into_iter().map(|(name, _)| (name, REDACTED.into()));
            hidden.collect::<Map<_, _>>().into()
        }
        (Shape::Named(table), Value::Object(sections)) => {
            let sections = sections.into_iter();
            let sections = sections.map(|(name, section)| (name, redacted_table(section, table)));
            sections.collect::<Map<_, _>>().into()
        }
        (Shape::Tables(table), Value::Array(items)) => items
            .into_iter()
            .map(|item| redacted_table(item, table))
            .collect(),
        (_, value) => value,
    }
}

fn redacted_table(value: Value, table: &Table) -> Value {
    let Value::Object(fields) = value else {
        return value;
    };
    fields
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| match table.get(&key) {
            Some(setting) => (key, redacted(value, &setting.shape)),
            None => (key, value),
        })
        .collect::<Map<_, _>>()
        .into()
}

/// The value as TOML writes it; none for an absent one.
pub(crate) fn toml(value: &Value) -> Option<String> {
    (!value.is_null()).then(|| {
        toml::Value::try_from(value)
            .expect("texts, numbers, lists and tables are TOML too")
            .to_string()
    })
}
