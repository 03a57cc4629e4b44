//! The tools: the same list, in the same order, for every session.

use std::sync::{Arc, LazyLock};

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::json;

/// The name of the tool that returns the full text.
pub(crate) const READ_ME: &str = "read_me";

/// All tools, in the order in which they are listed.
pub(crate) fn all() -> &'static [Tool] {
    static TOOLS: LazyLock<[Tool; 1]> = LazyLock::new(|| [read_me()]);
    &*TOOLS
}

/// The tool of that name.
pub(crate) fn find(name: &str) -> Option<&'static Tool> {
    all().iter().find(|tool| tool.name == name)
}

/// The channel that no client can skip: where there is no workspace to read a file in, a call returns the text.
fn read_me() -> Tool {
    Tool::new(
        READ_ME,
        "Returns the instructions for this session in full. If you have lost track of them, or were given only a part \
         of them, read them again with this tool.",
        without_arguments(),
    )
    .with_title("Read the instructions")
    .with_annotations(
        ToolAnnotations::new()
            .read_only(true)
            .idempotent(true)
            .open_world(false),
    )
}

fn without_arguments() -> Arc<JsonObject> {
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), json!({}));
    schema.insert("additionalProperties".to_owned(), json!(false));
    Arc::new(schema)
}
