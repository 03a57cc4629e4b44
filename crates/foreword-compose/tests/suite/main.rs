//! The crate through its front door: values go in, and everything that comes out is looked at as a whole.
#![expect(
    clippy::needless_raw_string_hashes,
    reason = "expectations are written by a tool, always in this form"
)]

mod composition;
mod linting;
mod placeholders;
mod properties;
mod support;
mod tools_prompt;
mod validation;
