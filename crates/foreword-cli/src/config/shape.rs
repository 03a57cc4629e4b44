//! What can be configured, read off the structs: names, types, defaults, descriptions.
//!
//! The JSON schema of [`Config`] is the one source; this module turns it into something that can be walked beside a
//! TOML table, a list of variables or a page of documentation.

use std::sync::LazyLock;

use indexmap::IndexMap;
use serde_json::Value;

use super::Config;

/// What a value looks like.
#[derive(Debug)]
pub(crate) enum Shape {
    /// A section.
    Table(Table),
    /// Any number of `[[…]]` tables.
    Tables(Table),
    /// Any number of sections with names of the operator's choice.
    Named(Table),
    /// Texts that are never shown, by names of the operator's choice.
    NamedSecrets,
    /// A text; with choices, one of these words.
    Text {
        /// The allowed words with their meaning; empty if any text will do.
        choices: Vec<(String, String)>,
    },
    /// A list of texts.
    Texts,
    /// A text that is never shown.
    Secret,
    /// A list of texts that are never shown.
    Secrets,
    /// A whole number.
    Integer {
        /// The smallest allowed one.
        minimum: Option<i64>,
    },
    /// `true` or `false`.
    Boolean,
}

/// The settings of a section, by key, in the order of the struct.
pub(crate) type Table = IndexMap<String, Setting>;

/// One key.
#[derive(Debug)]
pub(crate) struct Setting {
    /// What its value looks like.
    pub(crate) shape: Shape,
    /// What it means.
    pub(crate) description: String,
    /// Its value where nobody sets it; none where it must be given.
    pub(crate) default: Option<Value>,
}

/// All sections and the settings outside of sections.
pub(crate) fn root() -> &'static Table {
    static ROOT: LazyLock<Table> = LazyLock::new(|| {
        let schema = schemars::schema_for!(Config).to_value();
        table(&schema, &schema["$defs"])
    });
    &ROOT
}

/// Every setting that is not a section, with its path, in the order of the structs.
pub(crate) fn settings() -> Vec<(String, &'static Setting)> {
    fn collect(table: &'static Table, parent: &str, into: &mut Vec<(String, &'static Setting)>) {
        for (key, setting) in table {
            let path = super::join(parent, key);
            match &setting.shape {
                Shape::Table(inner) => collect(inner, &path, into),
                _ => into.push((path, setting)),
            }
        }
    }
    let mut settings = Vec::new();
    collect(root(), "", &mut settings);
    settings
}

/// The secret in `table` whose value may come from the file that `key` names.
pub(crate) fn secret_of_file_key<'a>(
    table: &'a Table,
    key: &'a str,
) -> Option<(&'a str, &'a Setting)> {
    let secret = key.strip_suffix("_file")?;
    let setting = table.get(secret)?;
    setting.shape.is_secret().then_some((secret, setting))
}

impl Shape {
    /// Whether values are kept from being shown.
    pub(crate) fn is_secret(&self) -> bool {
        matches!(self, Self::Secret | Self::Secrets)
    }

    /// What a value has to be, in words.
    pub(crate) fn expected(&self) -> String {
        match self {
            Self::Table(_) => "a section".to_owned(),
            Self::Tables(_) => "a list of tables".to_owned(),
            Self::Named(_) => "a table of sections by name".to_owned(),
            Self::NamedSecrets => "a table of texts by name".to_owned(),
            Self::Text { choices } if choices.is_empty() => "a text".to_owned(),
            Self::Text { choices } => {
                let words: Vec<String> = choices
                    .iter()
                    .map(|(word, _)| format!("`{word}`"))
                    .collect();
                match words.split_last() {
                    Some((last, rest)) if !rest.is_empty() => {
                        format!("{} or {last}", rest.join(", "))
                    }
                    _ => words.concat(),
                }
            }
            Self::Secret => "a text".to_owned(),
            Self::Texts | Self::Secrets => "a list of texts".to_owned(),
            Self::Integer {
                minimum: Some(minimum),
            } => format!("a whole number, at least {minimum}"),
            Self::Integer { minimum: None } => "a whole number".to_owned(),
            Self::Boolean => "`true` or `false`".to_owned(),
        }
    }
}

fn table(schema: &Value, definitions: &Value) -> Table {
    schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, schema)| (key.clone(), setting(schema, definitions)))
        .collect()
}

fn setting(schema: &Value, definitions: &Value) -> Setting {
    Setting {
        shape: shape(schema, definitions),
        description: text(&schema["description"]),
        default: schema.get("default").cloned(),
    }
}

fn shape(schema: &Value, definitions: &Value) -> Shape {
    if let Some(name) = reference(schema) {
        return if name == "Secret" {
            Shape::Secret
        } else {
            shape(&definitions[name], definitions)
        };
    }
    if let Some(some) = schema["anyOf"]
        .as_array()
        .and_then(|options| options.first())
    {
        return shape(some, definitions); // `Option<T>` is any of T and null
    }
    if let Some(variants) = schema["oneOf"].as_array() {
        return Shape::Text {
            choices: variants
                .iter()
                .map(|variant| (text(&variant["const"]), text(&variant["description"])))
                .collect(),
        };
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => &kinds[0], // the second is "null"
        kind => kind,
    };
    match kind.as_str() {
        Some("object") => match schema.get("additionalProperties") {
            Some(values @ Value::Object(_)) => match shape(values, definitions) {
                Shape::Table(table) => Shape::Named(table),
                _ => Shape::NamedSecrets,
            },
            _ => Shape::Table(table(schema, definitions)),
        },
        Some("array") => match shape(&schema["items"], definitions) {
            Shape::Table(table) => Shape::Tables(table),
            Shape::Secret => Shape::Secrets,
            _ => Shape::Texts,
        },
        Some("integer") => Shape::Integer {
            minimum: schema["minimum"].as_i64(),
        },
        Some("boolean") => Shape::Boolean,
        _ => Shape::Text {
            choices: Vec::new(),
        },
    }
}

fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/$defs/")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
