//! Turns a library of prompts and a request into a system prompt and a list of problems.
//!
//! Everything that varies comes in as a value and leaves as a value: the same [`Library`] and the same [`Request`]
//! always give the same [`Composition`]. Deliberately absent: files, network, clock, environment, async. Callers that
//! want today's date in a prompt pass it in.

mod assembly;
pub mod compose;
pub mod diagnostic;
mod findings;
mod foreign;
pub mod library;
pub mod lint;
mod nearest;
mod placeholder;
pub mod request;
pub mod revision;
pub mod tools;
pub mod validate;

pub use compose::{Composition, Part, PartSource, ProfileNotFound, Stability, compose};
pub use diagnostic::{Diagnostic, DiagnosticCode, Severity};
pub use foreign::{is_hidden, one_line};
pub use library::{
    GlobalPrompt, Library, LibraryDraft, Place, Profile, ResolvedPlace, Section, SectionType,
    SharedSection, WorkspaceGuide,
};
pub use lint::lint;
pub use nearest::nearest;
pub use request::{ContextBlock, Request, SessionName, SessionValues, Trust};
pub use revision::revision;
pub use tools::{Tool, ToolServer, ToolsPrompt, ToolsPromptOptions, tools_prompt};
pub use validate::Fault;
