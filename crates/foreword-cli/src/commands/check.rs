//! `foreword check`: all mistakes of a library, with their places.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    process::ExitCode,
};

use foreword_compose::{
    Diagnostic, DiagnosticCode, Library, Severity, library::PlaceContent, lint,
};
use foreword_store::{
    LoadError,
    yaml::{BUILTIN, Document},
};
use serde_json::{Value, json};

use super::{count, print, print_json, read_text};
use crate::{args::Output, config::Loaded, failure::Exit, library};

pub(crate) fn run(
    loaded: &Loaded,
    file: Option<&Path>,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let (name, text) = match file {
        Some(file) => (file.to_owned(), read_text(file)?),
        None => kept(&loaded.config.data_dir)?,
    };
    let (errors, doubts) = match Document::parse(text.into()) {
        Ok(document) => (Vec::new(), doubts(&document)),
        Err(errors) => (errors, Vec::new()),
    };
    if output.json {
        print_json(&json!({
            "file": name,
            "errors": errors.iter().map(error_json).collect::<Vec<_>>(),
            "diagnostics": doubts.iter().map(Doubt::json).collect::<Vec<_>>(),
        }))?;
    } else {
        print(&report(&name, &errors, &doubts))?;
    }
    Ok(if errors.is_empty() {
        ExitCode::SUCCESS
    } else {
        Exit::Failed.into()
    })
}

/// The library of the data directory; the built-in one where there is none.
fn kept(data_dir: &Path) -> anyhow::Result<(PathBuf, String)> {
    let file = library::file(data_dir);
    if file.exists() {
        let text = read_text(&file)?;
        return Ok((file, text));
    }
    Ok((PathBuf::from("built-in library"), BUILTIN.to_owned()))
}

/// A diagnostic with its place in the file.
struct Doubt {
    diagnostic: Diagnostic,
    line: usize,
    column: usize,
}

impl Doubt {
    fn json(&self) -> Value {
        let mut value = diagnostic_json(&self.diagnostic);
        value["line"] = self.line.into();
        value["column"] = self.column.into();
        value
    }
}

/// What is doubtful about a library, from its first line to its last.
fn doubts(document: &Document) -> Vec<Doubt> {
    let library = document.library();
    let mut taken = HashSet::new();
    let mut doubts: Vec<Doubt> = lint(library)
        .into_iter()
        .map(|diagnostic| {
            let pointer = pointers(library, &diagnostic)
                .into_iter()
                .find(|pointer| taken.insert((diagnostic.code, pointer.clone())));
            let (line, column) = document.position(&pointer.unwrap_or_default());
            Doubt {
                diagnostic,
                line,
                column,
            }
        })
        .collect();
    doubts.sort_by_key(|doubt| (doubt.line, doubt.column));
    doubts
}

/// JSON pointers to all that a diagnostic may be about; several where profiles have sections of one id.
fn pointers(library: &Library, diagnostic: &Diagnostic) -> Vec<String> {
    let draft = library.draft();
    let id = diagnostic.part.as_deref().unwrap_or_default();
    if diagnostic.code == DiagnosticCode::UnusedVariable {
        return vec![format!("/variables/{id}")];
    }
    let shared = draft
        .sections
        .iter()
        .position(|shared| shared.section.id == id)
        .map(|at| format!("/sections/{at}"));
    let profiles = draft.profiles.iter().enumerate();
    let inline = profiles.flat_map(|(profile, written)| {
        let places = written.places.iter().enumerate();
        places
            .filter(|(_, place)| match &place.content {
                PlaceContent::Inline(section) => {
                    section.id == id && section.content.trim().is_empty()
                }
                PlaceContent::Shared(_) => false,
            })
            .map(move |(at, _)| format!("/profiles/{profile}/sections/{at}"))
    });
    shared.into_iter().chain(inline).collect()
}

fn report(file: &Path, errors: &[LoadError], doubts: &[Doubt]) -> String {
    let file = file.display();
    let mut lines = Vec::new();
    for error in errors {
        let (line, column, message) = (error.line, error.column, &error.message);
        lines.push(format!("{file}:{line}:{column}: error: {message}"));
        lines.extend(error.hint.as_ref().map(|hint| format!("  hint: {hint}")));
    }
    for doubt in doubts {
        let (line, column, diagnostic) = (doubt.line, doubt.column, &doubt.diagnostic);
        let (word, message) = (word(diagnostic.severity), &diagnostic.message);
        lines.push(format!("{file}:{line}:{column}: {word}: {message}"));
        lines.extend(
            diagnostic
                .hint
                .as_ref()
                .map(|hint| format!("  hint: {hint}")),
        );
    }
    let warnings = doubts
        .iter()
        .filter(|doubt| doubt.diagnostic.severity == Severity::Warning)
        .count();
    lines.push(format!(
        "{file}: {}, {}, {}",
        count(errors.len(), "error"),
        count(warnings, "warning"),
        count(doubts.len() - warnings, "note")
    ));
    lines.join("\n")
}

/// The word that stands for a severity.
pub(super) fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "note",
        Severity::Warning => "warning",
    }
}

fn error_json(error: &LoadError) -> Value {
    json!({
        "line": error.line,
        "column": error.column,
        "pointer": error.pointer,
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
    })
}

/// A diagnostic as REST shows it.
pub(super) fn diagnostic_json(diagnostic: &Diagnostic) -> Value {
    json!({
        "code": diagnostic.code.as_str(),
        "severity": match diagnostic.severity {
            Severity::Info => "info",
            Severity::Warning => "warning",
        },
        "part": diagnostic.part,
        "range": diagnostic.range.as_ref().map(|range| [range.start, range.end]),
        "message": diagnostic.message,
        "hint": diagnostic.hint,
    })
}
