//! The tools: the same list, in the same order, for every session.

use std::sync::{Arc, LazyLock};

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::{operations::workspace::bash::Timeouts, render::Surroundings};

/// The name of the tool that returns the full text, where there is no workspace.
pub(crate) const READ_ME: &str = "read_me";
/// The name of the tool that runs commands.
pub(crate) const BASH: &str = "bash_tool";
/// The name of the tool that shows files.
pub(crate) const VIEW: &str = "view";
/// The name of the tool that writes files.
pub(crate) const CREATE_FILE: &str = "create_file";
/// The name of the tool that changes files.
pub(crate) const STR_REPLACE: &str = "str_replace";

/// Tier 1: the last words of the two tools that are called most. A hint for later, never "read this first".
const RECOVERY: &str = "If you have lost track of your environment (chat id, file URLs, skills), read \
                        /home/assistant/README.md again.";

/// All tools, in the order in which they are listed.
pub(crate) fn all(surroundings: &Surroundings) -> Vec<Tool> {
    match surroundings.timeouts() {
        Some(timeouts) => vec![bash_tool(timeouts), view(), create_file(), str_replace()],
        None => vec![read_me()],
    }
}

/// The channel that no client can skip: where there is no workspace to read a file in, a call returns the text.
fn read_me() -> Tool {
    Tool::new(
        READ_ME,
        "Returns the instructions for this session in full. If you have lost track of them, or were given only a part \
         of them, read them again with this tool.",
        schema(&json!({}), &[]),
    )
    .with_title("Read the instructions")
    .with_annotations(
        ToolAnnotations::new()
            .read_only(true)
            .idempotent(true)
            .open_world(false),
    )
}

fn bash_tool(timeouts: Timeouts) -> Tool {
    let properties = json!({
        "command": {
            "type": "string",
            "description": "What bash runs, in /home/assistant with a fresh shell. May have several lines."
        },
        "description": DESCRIPTION.clone(),
        "timeout": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": format!(
                "How many seconds it may run: {} by default, at most {}. Put what takes longer into the background: \
                 `nohup COMMAND > log.txt 2>&1 &`.",
                timeouts.default.as_secs(),
                timeouts.most.as_secs(),
            )
        }
    });
    Tool::new(
        BASH,
        format!(
            "Runs a command with bash in your workspace and returns what it writes, standard output and standard error in the \
             order they came, and its exit code unless that is 0 and something was written. Files stay between calls, and so do background processes. \
             {RECOVERY}"
        ),
        schema(&properties, &["command"]),
    )
    .with_title("Run a command")
    .with_annotations(ToolAnnotations::new().destructive(true).open_world(true))
}

fn view() -> Tool {
    let properties = json!({
        "path": path("The file or directory; relative paths are below /home/assistant."),
        "description": DESCRIPTION.clone(),
        "view_range": {
            "type": "array",
            "items": { "type": "integer" },
            "minItems": 2,
            "maxItems": 2,
            "description": "First and last line of a text file, counted from 1; -1 as last is the end of the file."
        }
    });
    Tool::new(
        VIEW,
        format!(
            "Shows a text file with line numbers, a directory two levels deep, or a picture (PNG, JPEG, GIF, WebP) as a \
             picture. {RECOVERY}"
        ),
        schema(&properties, &["path"]),
    )
    .with_title("View a file")
    .with_annotations(
        ToolAnnotations::new()
            .read_only(true)
            .idempotent(true)
            .open_world(false),
    )
}

fn create_file() -> Tool {
    let properties = json!({
        "path": path("The file; relative paths are below /home/assistant. Missing directories are made."),
        "file_text": {
            "type": "string",
            "description": "All that the file is to hold. With `#!` at its beginning the file becomes executable."
        },
        "description": DESCRIPTION.clone(),
    });
    Tool::new(
        CREATE_FILE,
        "Creates a file with the given text, or replaces the whole file if there is one. Files for the user belong into \
         /mnt/user-data/outputs.",
        schema(&properties, &["path", "file_text"]),
    )
    .with_title("Create a file")
    .with_annotations(
        ToolAnnotations::new()
            .destructive(true)
            .idempotent(true)
            .open_world(false),
    )
}

fn str_replace() -> Tool {
    let properties = json!({
        "path": path("The file; relative paths are below /home/assistant."),
        "old_str": {
            "type": "string",
            "description": "The text that is to be replaced, exactly as it stands in the file, white space included; it must \
                            stand there once."
        },
        "new_str": {
            "type": "string",
            "default": "",
            "description": "What stands there instead; left out, the text is deleted."
        },
        "description": DESCRIPTION.clone(),
    });
    Tool::new(
        STR_REPLACE,
        "Replaces a text that stands exactly once in a file. Everything else of the file stays byte for byte. Shows the \
         changed lines.",
        schema(&properties, &["path", "old_str"]),
    )
    .with_title("Change a file")
    .with_annotations(ToolAnnotations::new().destructive(true).open_world(false))
}

/// An argument that every tool takes, for those who watch.
static DESCRIPTION: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "type": "string",
        "description": "Why you make this call, in a few words; for people who watch."
    })
});

fn path(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn schema(properties: &Value, required: &[&str]) -> Arc<JsonObject> {
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), properties.clone());
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.insert("additionalProperties".to_owned(), json!(false));
    Arc::new(schema)
}
