//! `foreword check`: all mistakes of a library, with their places.
//!
//! Without a file it looks at the data directory as `serve` does, and refuses what `serve` refuses. Like `doctor` it
//! looks without touching.

mod doubts;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use foreword_compose::{Diagnostic, Severity};
use foreword_store::{
    LoadError, OpenError,
    yaml::{BUILTIN, Document, MAX_ERRORS},
};
use serde_json::{Value, json};

use self::doubts::{Doubt, doubts};
use super::{print, print_json, read_text};
use crate::{
    args::Output,
    config::{Config, Loaded},
    failure::Exit,
    library, link_key,
    terminal::count,
};

pub(crate) fn run(
    loaded: &Loaded,
    file: Option<&Path>,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let (name, text) = match file {
        Some(file) => (file.to_owned(), read_text(file)?),
        None => kept(&loaded.config)?,
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
    if file.is_none() {
        link_key::look(&loaded.config.data_dir)?;
    }
    Ok(if errors.is_empty() {
        ExitCode::SUCCESS
    } else {
        Exit::Failed.into()
    })
}

/// The library of the data directory; the built-in one where there never was a file.
fn kept(config: &Config) -> anyhow::Result<(PathBuf, String)> {
    match library::look(config) {
        Ok(_) | Err(OpenError::Broken { .. }) => {}
        Err(error) => return Err(library::unusable(&error, LoadError::in_full).into()),
    }
    let file = library::file(&config.data_dir);
    if file.exists() {
        let text = read_text(&file)?;
        return Ok((file, text));
    }
    Ok((PathBuf::from("built-in library"), BUILTIN.to_owned()))
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
        let (line, column, message) = (doubt.line, doubt.column, &doubt.message);
        let word = word(doubt.severity);
        lines.push(format!("{file}:{line}:{column}: {word}: {message}"));
        lines.extend(doubt.hint.as_ref().map(|hint| format!("  hint: {hint}")));
    }
    let warnings = doubts
        .iter()
        .filter(|doubt| doubt.severity == Severity::Warning)
        .count();
    // The search ends there.
    let at_least = if errors.len() == MAX_ERRORS {
        "at least "
    } else {
        ""
    };
    lines.push(format!(
        "{file}: {at_least}{}, {}, {}",
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

/// The word that stands for a severity in JSON, as REST has it.
fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
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
        "severity": severity_word(diagnostic.severity),
        "part": diagnostic.part,
        "range": diagnostic.range.as_ref().map(|range| [range.start, range.end]),
        "message": diagnostic.message,
        "hint": diagnostic.hint,
    })
}
