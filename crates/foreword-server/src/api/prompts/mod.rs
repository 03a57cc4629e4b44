//! The prompt library over HTTP: one file per resource, each with its shapes and its handlers.
//!
//! A `PUT` takes what `GET` gave, with or without the wrapper around the item; what only the server knows
//! (`composed_prompt`, `shared`, `used_by`, …) may stand in it and is ignored, other unknown fields are refused.

mod answer;
mod body;
mod conditional;
mod query;

pub(crate) mod compose;
pub(crate) mod events;
pub(crate) mod library;
pub(crate) mod places;
pub(crate) mod profiles;
pub(crate) mod sections;
pub(crate) mod texts;
pub(crate) mod tools;

pub(crate) use answer::add_library_revision;
pub(crate) use conditional::IfNoneMatch;
