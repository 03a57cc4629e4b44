//! Chat requests of clients that speak no MCP: the prompt is put into them, and the rest passes byte for byte.
//!
//! Deliberately absent: the routes (`api/chat`), and what a prompt is made of (`render`).

pub(crate) mod anthropic;
mod config;
pub(crate) mod errors;
mod marker;
mod object;
pub(crate) mod openai;
mod prompt;
pub(crate) mod request;
pub(crate) mod upstream;

pub use config::{AnthropicConfig, ChatConfig, SystemRole, UpstreamConfig};

pub(crate) use object::{Object, entries};
pub(crate) use prompt::ChatPrompt;
pub(crate) use request::{ChatRequest, Named};
