//! The server through its front door: the real router, whole answers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

mod access;
mod bodies;
mod chat;
mod chats;
mod config;
mod connections;
mod failures;
mod files;
mod links;
mod mcp;
mod observed;
mod openapi;
mod probes;
mod prompts;
mod render;
mod session;
mod skills;
mod sockets;
mod system_prompt;
mod workspace;
