//! The server through its front door: the real router, whole answers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

mod mcp;
mod probes;
mod render;
mod session;
mod system_prompt;
