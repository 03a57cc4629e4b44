//! Decides whether a draft is a library: every fault, each with a JSON pointer to where it lies.

use crate::library::LibraryDraft;

/// One thing that makes a draft unusable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// A JSON pointer (RFC 6901) into the library as its file writes it, such as `/profiles/0/sections/2/use`.
    pub pointer: String,
    /// A stable word for the kind of fault, in kebab case.
    pub code: &'static str,
    /// What is wrong, with the value in backticks.
    pub message: String,
    /// What to do about it, such as the nearest valid name.
    pub hint: Option<String>,
}

/// Every fault of `draft`, in the order of its parts.
pub(crate) fn faults(_draft: &LibraryDraft) -> Vec<Fault> {
    Vec::new()
}
