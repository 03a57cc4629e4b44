//! What the command line says when something did not work: what happened, what to do, and with which exit code.
//!
//! A [`Failure`] travels inside `anyhow::Error`; any other error is reported with its causes and exit code 1.

use std::{fmt, process::ExitCode};

use crate::terminal;

/// The exit codes besides 0, as `--help` documents them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// What was asked for could not be done, or `check` found errors.
    Failed = 1,
    /// The command line, the configuration or the library cannot be used as it is.
    Unusable = 2,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// A failure that knows what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    what: String,
    hint: Option<String>,
}

impl Failure {
    /// A failure that is described by `what`, several lines if there are several mistakes.
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self {
            exit,
            what: what.into(),
            hint: None,
        }
    }

    /// What to do about it, where that is known.
    pub(crate) fn cure(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The same with what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.what)
    }
}

impl std::error::Error for Failure {}

/// Tells the user about `error` on stderr.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    let known = error.downcast_ref::<Failure>();
    let what = known.map_or_else(|| format!("{error:#}"), Failure::to_string);
    for line in what.lines() {
        terminal::say(terminal::ERROR, "error", line);
    }
    if let Some(hint) = known.and_then(|failure| failure.hint.as_ref()) {
        terminal::say(terminal::HINT, "hint", hint);
    }
    known.map_or(Exit::Failed, |failure| failure.exit).into()
}
