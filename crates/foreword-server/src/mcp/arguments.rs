//! Reads what the model gives a tool, and says all that is wrong with it in words that the model can act on.

use std::{path::PathBuf, time::Duration};

use foreword_compose::nearest;
use rmcp::model::JsonObject;
use serde_json::Value;

use crate::operations::workspace::{bash::Timeouts, view::ViewRange};

use super::tools;

/// The longest path, in bytes.
const MAX_PATH: usize = 4_096;

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Call {
    Bash {
        command: String,
        timeout: Duration,
    },
    View {
        path: PathBuf,
        range: Option<ViewRange>,
    },
    CreateFile {
        path: PathBuf,
        text: String,
    },
    StrReplace {
        path: PathBuf,
        old: String,
        new: String,
    },
}

impl Call {
    /// Reads a call of the tool `name`, which exists.
    pub(super) fn read(
        name: &str,
        arguments: Option<JsonObject>,
        timeouts: Timeouts,
    ) -> Result<Self, String> {
        let mut arguments = Arguments {
            given: arguments.unwrap_or_default(),
            known: vec!["description"],
            faults: Vec::new(),
        };
        let call = match name {
            tools::BASH => Self::Bash {
                command: arguments.text("command", true),
                timeout: arguments.timeout(timeouts),
            },
            tools::VIEW => Self::View {
                path: arguments.path(),
                range: arguments.range(),
            },
            tools::CREATE_FILE => Self::CreateFile {
                path: arguments.path(),
                text: arguments.text("file_text", true),
            },
            _ => Self::StrReplace {
                path: arguments.path(),
                old: arguments.text("old_str", true),
                new: arguments.text("new_str", false),
            },
        };
        arguments.finish(name).map(|()| call)
    }
}

struct Arguments {
    given: JsonObject,
    known: Vec<&'static str>,
    faults: Vec<String>,
}

impl Arguments {
    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.given.remove(name).filter(|value| !value.is_null())
    }

    fn text(&mut self, name: &'static str, required: bool) -> String {
        match self.take(name) {
            Some(Value::String(text)) => return text,
            Some(_) => self.faults.push(format!("`{name}` is a text")),
            None if required => self.faults.push(format!("`{name}` is missing")),
            None => {}
        }
        String::new()
    }

    fn path(&mut self) -> PathBuf {
        let before = self.faults.len();
        let text = self.text("path", true);
        if self.faults.len() > before {
            return PathBuf::new();
        }
        let fault = if text.is_empty() {
            "`path` is empty"
        } else if text.contains('\0') {
            "`path` has a NUL character, which no path has"
        } else if text.len() > MAX_PATH {
            "`path` is longer than the 4096 bytes that a path can have"
        } else {
            return match text.strip_prefix("~/") {
                Some(below_home) => below_home.into(),
                None if text == "~" => foreword_sandbox::HOME.into(),
                None => text.into(),
            };
        };
        self.faults.push(fault.to_owned());
        PathBuf::new()
    }

    fn timeout(&mut self, timeouts: Timeouts) -> Duration {
        let seconds = match self.take("timeout") {
            None => return timeouts.default,
            Some(value) => value.as_f64().filter(|seconds| *seconds > 0.0),
        };
        if let Some(timeout) =
            seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds.min(1e9)).ok())
        {
            return timeout;
        }
        self.faults
            .push("`timeout` is a number of seconds above 0".to_owned());
        Duration::default()
    }

    fn range(&mut self) -> Option<ViewRange> {
        let value = self.take("view_range")?;
        let numbers: Option<Vec<i64>> = value
            .as_array()
            .map(|numbers| numbers.iter().map(Value::as_i64).collect())
            .unwrap_or_default();
        if let Some([first, last]) = numbers.as_deref() {
            return Some([*first, *last]);
        }
        self.faults.push(
            "`view_range` is a list of two whole numbers, first and last line, such as [1, 50] or [20, -1]"
                .to_owned(),
        );
        None
    }

    fn finish(mut self, tool: &str) -> Result<(), String> {
        let known = &self.known;
        let unknown: Vec<String> = self
            .given
            .keys()
            .filter(|name| *name != "description")
            .take(10)
            .map(|name| match nearest(name, known.iter().copied()) {
                Some(near) => format!("`{name}` is not an argument; did you mean `{near}`?"),
                None => format!("`{name}` is not an argument"),
            })
            .collect();
        self.faults.extend(unknown);
        if self.faults.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = self.known.iter().map(|name| format!("`{name}`")).collect();
        Err(format!(
            "nothing was done: {}. The arguments of `{tool}` are {}",
            self.faults.join("; "),
            names.join(", ")
        ))
    }
}
