//! What the model can do in its workspace, and what it is told about it.
//!
//! Everything is done inside the sandbox, through [`Sandboxes`], so nothing here can follow a link out of it. What goes wrong
//! is an answer for the model: what happened, and what to do next. Deliberately absent: MCP, and how a workspace is found.

pub mod bash;
pub mod edit;
pub mod entry;
mod image;
mod output;
pub(crate) mod queue;
mod scan;
pub mod view;

use foreword_sandbox::{FileError, NotFound, SandboxError, SandboxSpec, Sandboxes};

pub use output::MAX_CHARACTERS;

/// What a tool says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// For the model.
    pub text: String,
    /// Whether the work was not done.
    pub is_error: bool,
}

impl Outcome {
    fn done(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_error: false,
        }
    }

    fn failed(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_error: true,
        }
    }
}

impl From<SandboxError> for Outcome {
    fn from(error: SandboxError) -> Self {
        match error {
            SandboxError::File(FileError::NotFound(missing)) => {
                Self::failed(describe_missing(&missing))
            }
            SandboxError::File(FileError::ReadOnly(path)) => Self::failed(format!(
                "`{}` is in a place that cannot be written to; write below {} or {}",
                path.display(),
                foreword_sandbox::HOME,
                foreword_sandbox::OUTPUTS
            )),
            SandboxError::Backend { backend, source } => {
                tracing::error!(
                    error = &*source as &dyn std::error::Error,
                    backend,
                    "A sandbox failed"
                );
                Self::failed(
                    "the workspace failed for a reason of its own; try again, and tell the user if it fails again",
                )
            }
            other => Self::failed(other.to_string()),
        }
    }
}

/// How many names are suggested for one that does not exist.
const MOST_NAMES: usize = 3;

/// From which likeness on a name is worth suggesting.
const LIKELY: f64 = 0.5;

fn describe_missing(missing: &NotFound) -> String {
    let path = missing.path.display();
    let nearest = missing.nearest.display();
    let wanted = missing
        .path
        .strip_prefix(&missing.nearest)
        .ok()
        .and_then(|rest| rest.components().next())
        .map(|first| first.as_os_str().to_string_lossy().into_owned())
        .unwrap_or_default();
    let mut close: Vec<(f64, &String)> = missing
        .names
        .iter()
        .map(|name| {
            let likeness = strsim::normalized_damerau_levenshtein(
                &wanted.to_lowercase(),
                &name.to_lowercase(),
            );
            (likeness, name)
        })
        .filter(|(likeness, _)| *likeness >= LIKELY)
        .collect();
    close.sort_by(|one, other| other.0.total_cmp(&one.0));
    let close: Vec<String> = close
        .into_iter()
        .take(MOST_NAMES)
        .map(|(_, name)| format!("`{name}`"))
        .collect();
    if !close.is_empty() {
        return format!(
            "`{path}` does not exist; in {nearest} there is {}",
            close.join(", ")
        );
    }
    if missing.names.is_empty() {
        return format!("`{path}` does not exist; {nearest} exists, and is empty");
    }
    format!(
        "`{path}` does not exist; the nearest directory that exists is {nearest}: look there with `view`"
    )
}

/// Where the tools work: the sandboxes, and which of them.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// All sandboxes.
    pub sandboxes: &'a dyn Sandboxes,
    /// This chat's.
    pub spec: &'a SandboxSpec,
}
