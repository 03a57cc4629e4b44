//! `foreword check`: all mistakes of a library, with their places.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use foreword_compose::{Diagnostic, Severity, lint};
use foreword_store::{LoadError, parse_library, yaml::BUILTIN};
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
    let (errors, diagnostics) = match parse_library(&text) {
        Ok(library) => (Vec::new(), lint(&library)),
        Err(errors) => (errors, Vec::new()),
    };
    if output.json {
        print_json(&json!({
            "file": name,
            "errors": errors.iter().map(error_json).collect::<Vec<_>>(),
            "diagnostics": diagnostics.iter().map(diagnostic_json).collect::<Vec<_>>(),
        }))?;
    } else {
        print(&report(&name, &errors, &diagnostics))?;
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

fn report(file: &Path, errors: &[LoadError], diagnostics: &[Diagnostic]) -> String {
    let file = file.display();
    let mut lines = Vec::new();
    let mut line = |place: String, kind: &str, message: &str, hint: Option<&String>| {
        lines.push(format!("{place}: {kind}: {message}"));
        lines.extend(hint.map(|hint| format!("  hint: {hint}")));
    };
    for error in errors {
        let place = format!("{file}:{}:{}", error.line, error.column);
        line(place, "error", &error.message, error.hint.as_ref());
    }
    for diagnostic in diagnostics {
        let kind = word(diagnostic.severity);
        line(
            file.to_string(),
            kind,
            &diagnostic.message,
            diagnostic.hint.as_ref(),
        );
    }
    let warnings = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Warning)
        .count();
    lines.push(format!(
        "{file}: {}, {}, {}",
        count(errors.len(), "error"),
        count(warnings, "warning"),
        count(diagnostics.len() - warnings, "note")
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
