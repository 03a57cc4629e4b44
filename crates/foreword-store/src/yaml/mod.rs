//! The library as a YAML file: pure functions from text to library and from a changed library to a changed text.
//!
//! One spanned parse (`tree`) serves both. Reading (`read`) walks the tree and names all mistakes at once. Rewriting
//! compares what the file says with what it should say (`shape`), changes as few bytes as that takes (`reorder`,
//! `rewrite`, `rows`, `flow`), reads the result again and compares.
//!
//! The editor is our own because no other was found that keeps all foreign bytes and gets all texts right: of those that
//! were tried, some changed the values of texts or took comments of neighbours along, one is right but too slow for
//! large files, and serde stops at the first mistake. One of them serves as a second opinion in the tests.
//!
//! Deliberately absent: files, watching and history (`yaml_store`), and what makes a library valid as a whole
//! ([`foreword_compose::validate`]).

mod builtin;
mod document;
mod emit;
mod fields;
mod flow;
mod layout;
mod lines;
mod print;
mod read;
mod reorder;
mod rewrite;
mod rows;
mod scalar;
mod shape;
mod splice;
mod syntax;
mod tree;

use std::fmt;

use foreword_compose::Library;

pub use self::{
    builtin::{BUILTIN, DEFAULT_WORKSPACE_GUIDE},
    document::{Document, RewriteError},
    print::print_library,
};

/// The largest file that is read, in bytes.
pub const MAX_FILE_BYTES: usize = 16 << 20;
/// The most that a file may come to once its aliases are followed, in bytes.
pub const MAX_EXPANDED_BYTES: u64 = 64 << 20;
/// The most keys and values that a file may have.
pub const MAX_NODES: usize = 1_000_000;
/// How deep values may be nested.
pub const MAX_DEPTH: usize = 64;
/// The most mistakes that are reported of one file.
pub const MAX_ERRORS: usize = 500;

/// One mistake in a library file.
///
/// It displays as its place and its code, which hold no word of the file, so that it can be logged;
/// [`LoadError::in_full`] is for those who may read the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// A JSON pointer to the value, where the file could be read that far.
    pub pointer: Option<String>,
    /// A stable word for the kind of mistake, in kebab case.
    pub code: &'static str,
    /// What is wrong, with the value in backticks.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl LoadError {
    /// The place, what is wrong and what to do about it, with words of the file.
    #[must_use]
    pub fn in_full(&self) -> String {
        let Self {
            line,
            column,
            message,
            ..
        } = self;
        match &self.hint {
            Some(hint) => format!("{line}:{column}: {message}; {hint}"),
            None => format!("{line}:{column}: {message}"),
        }
    }

    fn new((line, column): (usize, usize), code: &'static str, message: impl Into<String>) -> Self {
        Self {
            line,
            column,
            pointer: None,
            code,
            message: message.into(),
            hint: None,
        }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.line, self.column, self.code)
    }
}

/// Reads a library from YAML.
///
/// # Errors
///
/// Every mistake of the text, in the order of its lines; a syntax error ends the reading, so it is one per text.
pub fn parse_library(text: &str) -> Result<Library, Vec<LoadError>> {
    document::load(text).map(|(_, library)| library)
}
