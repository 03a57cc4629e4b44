//! HTTP shapes: decode, call one operation, encode.

pub(crate) mod chat;
pub(crate) mod docs;
pub(crate) mod files;
pub(crate) mod health;
pub(crate) mod mcp_info;
pub(crate) mod openapi;
pub(crate) mod page;
pub(crate) mod prompts;
pub(crate) mod render_cache;
pub(crate) mod skills;
pub(crate) mod system_prompt;
