//! The server through its front door: the real router, whole answers.

mod support;

mod probes;
mod session;
