//! The library that Foreword ships.

/// The library that is used where there is no file, as the commented YAML text that `foreword init` writes.
pub const BUILTIN: &str = include_str!("builtin.yaml");

/// The text about the workspace where a library has none of its own.
pub const DEFAULT_WORKSPACE_GUIDE: &str = "\
You are in the chat `{chat_id}`; what is said and shared in it belongs to this chat and to no other. Use only tools that \
you were given. Where a task needs a tool or a file that you do not have, say so instead of guessing what it would have \
shown.";
