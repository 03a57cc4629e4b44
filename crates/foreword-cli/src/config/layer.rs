//! One source's values, and how sources are laid over each other.

use std::{collections::HashMap, fmt, path::PathBuf};

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::Mistake;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The default of the command that runs, with the reason.
    CommandDefault(&'static str),
    /// A line of a file.
    File {
        /// The file.
        file: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    /// A variable.
    Variable(String),
    /// A flag.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandDefault(reason) => write!(formatter, "default of {reason}"),
            Self::File { file, line, column } => {
                write!(formatter, "{}:{line}:{column}", file.display())
            }
            Self::Variable(name) => write!(formatter, "environment {name}"),
            Self::Flag(flag) => write!(formatter, "flag {flag}"),
        }
    }
}

/// What one source says.
#[derive(Debug, Default)]
pub(crate) struct Layer {
    /// The values, by path; sections are taken apart, lists are whole.
    values: IndexMap<String, Value>,
    /// The origins, also of what lies inside lists of tables (`auth.keys[0].role`).
    origins: HashMap<String, Origin>,
    /// What is wrong with it.
    pub(super) mistakes: Vec<Mistake>,
    /// What the operator should know.
    pub(super) warnings: Vec<String>,
}

impl Layer {
    /// Takes a value in.
    pub(super) fn set(&mut self, path: &str, value: Value, origin: Origin) {
        self.locate(path, origin);
        self.values.insert(path.to_owned(), value);
    }

    /// Notes where something was written that is not a value of its own.
    pub(super) fn locate(&mut self, path: &str, origin: Origin) {
        self.origins.insert(path.to_owned(), origin);
    }

    /// Takes in what the table at `path` of a list says; its values become one value, which is returned.
    pub(super) fn adopt(&mut self, table: Self, path: &str) -> Value {
        let mut value = Value::Object(Map::new());
        for (inner, inner_value) in table.values {
            insert(&mut value, &inner[path.len() + 1..], inner_value);
        }
        self.origins.extend(table.origins);
        self.mistakes.extend(table.mistakes);
        self.warnings.extend(table.warnings);
        value
    }

    /// Notes a mistake.
    pub(super) fn mistake(&mut self, origin: Origin, message: String, hint: Option<String>) {
        self.mistakes.push(Mistake {
            origin: Some(origin),
            message,
            hint,
        });
    }
}

/// A layer of values that need no checking.
pub(super) fn of_values(
    values: &[(&'static str, Value, &'static str)],
    origin: impl Fn(&'static str) -> Origin,
) -> Layer {
    let mut layer = Layer::default();
    for (path, value, source) in values {
        layer.set(path, value.clone(), origin(source));
    }
    layer
}

/// All layers as one.
#[derive(Debug, Default)]
pub(super) struct Merged {
    pub(super) tree: Value,
    pub(super) origins: HashMap<String, Origin>,
    pub(super) mistakes: Vec<Mistake>,
    pub(super) warnings: Vec<String>,
}

/// Lays each layer over those before it.
pub(super) fn merge(layers: Vec<Layer>) -> Merged {
    let mut merged = Merged {
        tree: Value::Object(Map::new()),
        ..Merged::default()
    };
    for layer in layers {
        for (path, value) in layer.values {
            let inside = format!("{path}[");
            merged
                .origins
                .retain(|known, _| !known.starts_with(&inside));
            insert(&mut merged.tree, &path, value);
        }
        merged.origins.extend(layer.origins);
        merged.mistakes.extend(layer.mistakes);
        merged.warnings.extend(layer.warnings);
    }
    merged
}

/// The origin of `path`, or of the nearest thing around it that has one.
pub(super) fn nearest_origin<'a>(
    origins: &'a HashMap<String, Origin>,
    path: &str,
) -> Option<&'a Origin> {
    let mut path = path;
    loop {
        if let Some(origin) = origins.get(path) {
            return Some(origin);
        }
        path = &path[..path.rfind(['.', '['])?];
    }
}

/// Takes out the value in which `path` lies; false if there is none.
pub(super) fn remove(tree: &mut Value, path: &str) -> bool {
    let path = path.split('[').next().unwrap_or(path);
    let (parent, key) = path.rsplit_once('.').unwrap_or(("", path));
    let parent = parent
        .split('.')
        .filter(|step| !step.is_empty())
        .try_fold(tree, |table, step| table.get_mut(step));
    parent
        .and_then(Value::as_object_mut)
        .and_then(|table| table.remove(key))
        .is_some()
}

fn insert(tree: &mut Value, path: &str, value: Value) {
    let mut place = tree;
    for step in path.split('.') {
        place = &mut place[step]; // makes what is missing
    }
    *place = value;
}
