//! Reads the environment: full names, short names, and the names of the system that Foreword succeeds.
//!
//! An empty variable counts as unset. A name with `__` that is no setting is a mistake; any other `FOREWORD_` name
//! (Kubernetes injects some) is only a warning.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::Path,
};

use foreword_compose::nearest;
use serde_json::Value;

use super::{
    layer::{Layer, Origin},
    names::{NOT_YET, PREFIX, SHORT, Writing, full},
    secret_file,
    shape::{Setting, Shape, settings},
};

/// The variables that are set, by name.
type Set<'a> = BTreeMap<&'a str, &'a OsStr>;

/// Reads all settings that the environment gives.
pub(super) fn read(environment: &[(OsString, OsString)]) -> Layer {
    let set: Set<'_> = environment
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .filter_map(|(name, value)| Some((name.to_str()?, value.as_os_str())))
        .collect();
    let mut layer = Layer::default();
    let mut known = Vec::new();
    for (path, setting) in settings() {
        let variables = variables(&path, setting);
        take(&path, setting, &variables, &set, &mut layer);
        known.extend(variables.into_iter().map(|variable| variable.name));
    }
    report_unknown(&set, &known, &mut layer);
    report_not_yet(&set, &mut layer);
    layer
}

/// One variable of a setting.
pub(super) struct Variable {
    /// Its name.
    pub(super) name: String,
    /// Whether it names a file that holds the value.
    is_file: bool,
    /// How the value is written in it.
    writing: Writing,
}

/// The variables of a setting, the strongest first; none for what only a file can hold.
pub(super) fn variables(path: &str, setting: &Setting) -> Vec<Variable> {
    if is_of_files(&setting.shape) {
        return Vec::new();
    }
    let short = SHORT
        .iter()
        .filter(|short| short.path == path)
        .map(|short| (short.name.to_owned(), short.writing));
    std::iter::once((full(path), Writing::AsItIs))
        .chain(short)
        .flat_map(|(name, writing)| {
            let file = setting.shape.is_secret().then(|| Variable {
                name: format!("{name}_FILE"),
                is_file: true,
                writing,
            });
            let plain = Variable {
                name,
                is_file: false,
                writing,
            };
            std::iter::once(plain).chain(file)
        })
        .collect()
}

/// Takes the first of the setting's variables that is set, and says which others have no effect.
fn take(path: &str, setting: &Setting, variables: &[Variable], set: &Set<'_>, layer: &mut Layer) {
    let mut given = variables
        .iter()
        .filter_map(|variable| Some((variable, *set.get(variable.name.as_str())?)));
    let Some((variable, value)) = given.next() else {
        return;
    };
    for (other, _) in given {
        layer.warnings.push(format!(
            "`{}` has no effect, because `{}` is set too",
            other.name, variable.name
        ));
    }
    let origin = Origin::Variable(variable.name.clone());
    if variable.is_file {
        if let Some(value) = secret_file::read(Path::new(value), &setting.shape, &origin, layer) {
            layer.set(path, value, origin);
        }
        return;
    }
    match parse(value, &setting.shape, variable.writing) {
        Ok(value) => layer.set(path, value, origin),
        Err(Wrong { expected, hint }) => {
            let found = match value.to_str() {
                Some(text) if !setting.shape.is_secret() => format!(", not `{text}`"),
                _ => String::new(),
            };
            layer.mistake(origin, format!("has to be {expected}{found}"), hint);
        }
    }
}

/// What a variable's text should have been.
struct Wrong {
    expected: String,
    hint: Option<String>,
}

/// Bytes, with or without one of Docker's units.
fn docker_size(text: &str) -> Option<i64> {
    let text = text.to_ascii_lowercase();
    let number = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let shift = match &text[number.len()..] {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return None,
    };
    number.parse::<i64>().ok()?.checked_mul(1 << shift)
}

/// Hundredths; more digits than that are of no use here.
fn percent(processors: &str) -> Option<i64> {
    let (whole, part) = processors.split_once('.').unwrap_or((processors, ""));
    let part = format!("{part:0<2}");
    let digits = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| text.parse::<i64>().ok())?
    };
    let (whole, part) = (digits(whole)?, digits(part.get(..2)?)?);
    whole.checked_mul(100)?.checked_add(part)
}

/// Makes a value of a variable's text.
fn parse(value: &OsStr, shape: &Shape, writing: Writing) -> Result<Value, Wrong> {
    let wrong = |expected: String| Wrong {
        expected,
        hint: None,
    };
    let text = value
        .to_str()
        .ok_or_else(|| wrong("UTF-8".to_owned()))?
        .trim();
    match writing {
        Writing::AsItIs => {}
        Writing::Words(words) => {
            let known = words.iter().find(|(word, _)| *word == text);
            return known.map(|(_, meaning)| (*meaning).into()).ok_or_else(|| {
                let words: Vec<String> =
                    words.iter().map(|(word, _)| format!("`{word}`")).collect();
                wrong(words.join(" or "))
            });
        }
        Writing::DockerSize => {
            let bytes = docker_size(text).map(Value::from);
            return bytes.ok_or_else(|| wrong("a size such as `512m` or `2g`".to_owned()));
        }
        Writing::Processors => {
            let percent = percent(text).map(Value::from);
            return percent
                .ok_or_else(|| wrong("a number of processors such as `1` or `1.5`".to_owned()));
        }
    }
    let parsed = match shape {
        Shape::Text { choices } if !choices.is_empty() => {
            if !choices.iter().any(|(word, _)| word == text) {
                let words = choices.iter().map(|(word, _)| word.as_str());
                return Err(Wrong {
                    expected: shape.expected(),
                    hint: nearest(text, words).map(|word| format!("did you mean `{word}`?")),
                });
            }
            Some(text.into())
        }
        Shape::Text { .. } | Shape::Secret => Some(text.into()),
        Shape::Texts | Shape::Secrets => {
            let items: Vec<&str> = text
                .split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty())
                .collect();
            (!items.is_empty()).then(|| items.into())
        }
        Shape::Integer { minimum } => text
            .parse::<i64>()
            .ok()
            .filter(|number| minimum.is_none_or(|minimum| *number >= minimum))
            .map(Value::from),
        Shape::Boolean => text.parse::<bool>().ok().map(Value::from),
        Shape::Table(_) | Shape::Tables(_) | Shape::Named(_) | Shape::NamedSecrets => None,
    };
    parsed.ok_or_else(|| {
        wrong(match shape {
            Shape::Texts | Shape::Secrets => {
                format!("{}, separated by commas", shape.expected())
            }
            _ => shape.expected(),
        })
    })
}

/// Reports names that look like ours and are no settings.
fn report_unknown(set: &Set<'_>, known: &[String], layer: &mut Layer) {
    let unknown = set
        .keys()
        .filter(|name| name.starts_with(PREFIX) && !known.iter().any(|known| known == *name));
    let (settings, other): (Vec<_>, Vec<_>) =
        unknown.partition(|name| name[PREFIX.len()..].contains("__"));
    for name in settings {
        let hint = if is_table_list(name) {
            Some("a list of tables can only be given in `foreword.toml`".to_owned())
        } else {
            nearest(name, known.iter().map(String::as_str))
                .map(|name| format!("did you mean `{name}`?"))
        };
        layer.mistake(
            Origin::Variable((*name).to_owned()),
            "no such setting".to_owned(),
            hint,
        );
    }
    if !other.is_empty() {
        let names: Vec<String> = other.iter().map(|name| format!("`{name}`")).collect();
        layer.warnings.push(format!(
            "no such setting, so without effect: {} (`foreword config --reference` lists the names)",
            names.join(", ")
        ));
    }
}

fn is_table_list(name: &str) -> bool {
    settings()
        .iter()
        .any(|(path, setting)| is_of_files(&setting.shape) && full(path) == name)
}

/// Whether only a file can hold it: lists of tables, and tables with names of their own.
fn is_of_files(shape: &Shape) -> bool {
    matches!(
        shape,
        Shape::Tables(_) | Shape::Named(_) | Shape::NamedSecrets
    )
}

/// Reports names of the system we succeed for what this version does not have.
fn report_not_yet(set: &Set<'_>, layer: &mut Layer) {
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, reason) in NOT_YET {
        if set.contains_key(name) {
            by_reason
                .entry(reason)
                .or_default()
                .push(format!("`{name}`"));
        }
    }
    for (reason, names) in by_reason {
        layer
            .warnings
            .push(format!("{reason}, so without effect: {}", names.join(", ")));
    }
}
