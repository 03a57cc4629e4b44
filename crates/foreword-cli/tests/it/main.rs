//! The `foreword` binary through its front door: what it prints, its exit code, and what it answers while it serves.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "this is how `UPDATE_EXPECT=1` writes them"
)]
#![expect(
    clippy::unwrap_used,
    reason = "what the tests share is not inside of `#[test]`"
)]

#[cfg(unix)]
mod backups;
mod bad_input;
mod calls;
mod chat;
mod chats;
mod check;
mod configuration;
#[cfg(unix)]
mod connections;
mod documents;
mod edits;
#[cfg(unix)]
mod examples;
mod faults;
mod help;
mod prompts;
mod serving;
mod settings;
mod signals;
#[cfg(unix)]
mod skills;
mod stdio;
mod support;
mod traces;
mod upstream;
mod upstreams;
mod workspace;
