//! MCP shapes: what the protocol's messages say, over HTTP and over stdio.
//!
//! Both eras live on one endpoint, without sessions of the transport: any request can be answered by any replica. rmcp
//! speaks the protocol; here is only what it leaves open. Deliberately absent: composing (the renderer does) and prompts
//! as MCP prompts, a primitive that users pick and that knows no system role.

mod accept;
mod arguments;
mod batch;
mod changes;
pub(crate) mod endpoint;
mod handed_on;
mod handler;
pub(crate) mod instructions;
mod message;
mod patience;
mod resources;
mod running;
mod skills;
mod stdio;
pub(crate) mod tools;
mod work;

pub(crate) use endpoint::Endpoint;
pub use stdio::{StdioError, StdioSession, serve_stdio};
