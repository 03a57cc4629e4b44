//! Problems as data, beside the text, never instead of it.

use std::ops::Range;

/// One problem of a library or a composition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// What kind of problem.
    pub code: DiagnosticCode,
    /// How bad it is.
    pub severity: Severity,
    /// The id of the part or of the item of the library, where there is one.
    pub part: Option<String>,
    /// Where in the composed text, as UTF-8 byte offsets; none for problems of the library.
    pub range: Option<Range<usize>>,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Probably not what the author wanted.
    Warning,
}

/// The kinds of problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DiagnosticCode {
    /// A placeholder was recognised but had no value.
    UnresolvedPlaceholder,
    /// A request variable that the library does not declare.
    UnknownVariable,
    /// Two parts with equal text.
    DuplicatePart,
    /// A section without text.
    EmptySection,
    /// A declared variable that no text uses.
    UnusedVariable,
    /// A shared section that no profile uses.
    UnusedSection,
    /// A session or request value inside a part that would otherwise be the same for all sessions.
    UnstablePrefix,
    /// The text is over the caller's budget.
    TooLong,
    /// Something could not be had when the text was made. Never found here: who makes the text says it.
    Degraded,
}

impl DiagnosticCode {
    /// The word that stands for it in answers, in kebab case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnresolvedPlaceholder => "unresolved-placeholder",
            Self::UnknownVariable => "unknown-variable",
            Self::DuplicatePart => "duplicate-part",
            Self::EmptySection => "empty-section",
            Self::UnusedVariable => "unused-variable",
            Self::UnusedSection => "unused-section",
            Self::UnstablePrefix => "unstable-prefix",
            Self::TooLong => "too-long",
            Self::Degraded => "degraded",
        }
    }
}
