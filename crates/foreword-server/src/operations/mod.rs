//! What can be done. Names neither axum nor rmcp: REST, MCP and the CLI share it.

pub(crate) mod chat;
pub mod chats;
pub mod prompts;
pub mod skills;
pub mod workspace;
