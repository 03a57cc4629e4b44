//! HTTP shapes: decode, call one operation, encode.

pub(crate) mod health;
pub(crate) mod mcp_info;
pub(crate) mod render_cache;
pub(crate) mod system_prompt;
