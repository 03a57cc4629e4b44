//! Says what is wrong with a text that is not YAML, in the words of somebody who writes prompts.

use granit_parser::ErrorKind;

use super::{LoadError, MAX_DEPTH};

/// What the parser found, with what usually causes it.
pub(super) fn syntax_error(at: (usize, usize), kind: &ErrorKind) -> LoadError {
    if matches!(kind, ErrorKind::RecursionLimitExceeded) {
        return too_deep(at);
    }
    let (message, hint) = explain(kind);
    let message = message.map_or_else(|| format!("this is not valid YAML: {kind}"), str::to_owned);
    let error = LoadError::new(at, "syntax", message);
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn explain(kind: &ErrorKind) -> (Option<&'static str>, Option<&'static str>) {
    match kind {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart
        | ErrorKind::TabInPlainScalar => (
            Some("a tab is used where only spaces may stand"),
            Some("indent with spaces"),
        ),
        ErrorKind::UnclosedQuotedScalar => (
            Some("the quote that opens here is never closed"),
            Some("close it, or write the text under a `|`, where quotes are ordinary characters"),
        ),
        ErrorKind::InvalidTrailingSingleQuotedScalar
        | ErrorKind::InvalidTrailingDoubleQuotedScalar => (
            Some("there is text after the closing quote"),
            Some("quotes inside a quoted text are written `\\\"` (or `''` inside single quotes)"),
        ),
        ErrorKind::UnknownQuotedScalarEscape
        | ErrorKind::InvalidQuotedScalarHexEscape
        | ErrorKind::InvalidUnicodeEscape => (
            Some("the backslash in this quoted text does not start a known escape"),
            Some(
                "write `\\\\` for a backslash, or write the text under a `|`, where it is an ordinary character",
            ),
        ),
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement => (
            Some("a colon followed by a space cannot stand here"),
            Some("if it belongs to a text, put the whole text in quotes or under a `|`"),
        ),
        ErrorKind::SimpleKeyExpected
        | ErrorKind::InvalidSimpleKey
        | ErrorKind::ExpectedBlockMappingKey => (
            Some("this line is neither `key: value` nor part of the text above it"),
            Some(
                "check the colon and the indentation; all keys of one item start in the same column",
            ),
        ),
        ErrorKind::ExpectedBlockSequenceEntry
        | ErrorKind::BlockSequenceEntryNotAllowed
        | ErrorKind::InvalidIndentation
        | ErrorKind::InvalidBlockScalarIndent
        | ErrorKind::InvalidFlowScalarIndent
        | ErrorKind::InvalidQuotedScalarIndent => (
            Some("this line does not start in the column in which its neighbours start"),
            Some(
                "start all keys of one item, and every `-` of one list, in the same column; indent texts further",
            ),
        ),
        ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofImplicitFlowMapping => (
            Some("the bracket or brace that opens here is never closed"),
            None,
        ),
        ErrorKind::ExpectedFlowMappingSeparator => (
            Some("between `{` and `}` a comma is missing, or a text needs quotes"),
            None,
        ),
        ErrorKind::ExpectedFlowSequenceSeparator => (
            Some("between `[` and `]` a comma is missing, or a text needs quotes"),
            None,
        ),
        ErrorKind::UnexpectedCharacter { .. } => (
            None,
            Some("a text that starts with this character needs quotes"),
        ),
        ErrorKind::UnknownAnchor => (
            Some("the alias points to an anchor that does not exist above it"),
            Some("name one with `&name`, or quote the text if it only starts with `*`"),
        ),
        ErrorKind::InvalidBlockScalarHeader => (
            Some("text stands on the line of a `|` or `>`"),
            Some("start the text on the next line, indented"),
        ),
        _ => (None, None),
    }
}

/// The text is nested deeper than anybody writes.
pub(super) fn too_deep(at: (usize, usize)) -> LoadError {
    LoadError::new(
        at,
        "too-deep",
        format!("values are nested more than {MAX_DEPTH} levels deep"),
    )
}

/// There is no value in the text at all.
///
/// Read as a library without prompts, it would go live for the moment in which an editor has emptied the file and not
/// written it yet.
pub(super) fn empty_file() -> LoadError {
    LoadError::new((1, 1), "empty-file", "the file holds no library")
        .hint("write `{}` for a library without prompts")
}

/// YAML has no such characters, and parsers differ in what they do about them.
pub(super) fn refuse_control_characters(text: &str) -> Result<(), LoadError> {
    let refused = |byte: &u8| matches!(byte, 0..=8 | 0x0b | 0x0c | 0x0e..=0x1f | 0x7f);
    let Some(at) = text.as_bytes().iter().position(refused) else {
        return Ok(());
    };
    let before = &text[..at];
    let line_start = before.rfind(['\n', '\r']).map_or(0, |at| at + 1);
    let line = 1 + before.matches('\n').count();
    let column = 1 + before[line_start..].chars().count();
    Err(LoadError::new(
        (line, column),
        "control-character",
        format!(
            "the character U+{:04X} cannot stand in a YAML file",
            text.as_bytes()[at]
        ),
    )
    .hint(format!(
        "remove it, or write it as `\\x{:02x}` in double quotes",
        text.as_bytes()[at]
    )))
}
