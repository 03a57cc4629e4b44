//! Pages for people: plain files that are part of the binary, without a build step and without anything from elsewhere.

pub(crate) mod preview;
pub(crate) mod refusal;
