//! The `foreword` binary through its front door: what it prints, its exit code, and what it answers while it serves.

mod check;
mod configuration;
mod documents;
mod edits;
mod help;
mod prompts;
mod serving;
mod signals;
mod stdio;
mod support;
mod traces;
