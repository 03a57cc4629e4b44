//! Decides what is a problem of one composition, and says it.
//!
//! Deliberately absent: problems that a library has whatever is asked of it ([`crate::lint()`]).

use std::ops::Range;

use crate::{
    compose::Part,
    diagnostic::{Diagnostic, DiagnosticCode, Severity},
    library::Library,
    nearest::{MAX_GUESSES, nearest},
    request::{Request, SessionName},
};

/// How many undeclared variables are described one by one.
const MAX_UNKNOWN: usize = 100;

/// Request variables that the library does not declare; those beyond [`MAX_UNKNOWN`] are counted only.
pub(crate) fn unknown_variables(library: &Library, request: &Request<'_>) -> Vec<Diagnostic> {
    let declared = &library.draft().variables;
    let known = || {
        let session_names = SessionName::ALL.map(SessionName::as_str);
        let declared = declared.keys().map(String::as_str);
        declared.chain(session_names)
    };
    let warning = |message: String, hint: String| Diagnostic {
        code: DiagnosticCode::UnknownVariable,
        severity: Severity::Warning,
        part: None,
        range: None,
        message,
        hint: Some(hint),
    };
    let mut unknown = request
        .variables
        .keys()
        .filter(|name| !declared.contains_key(*name) && SessionName::from_word(name).is_none());
    let described = unknown.by_ref().take(MAX_UNKNOWN).enumerate();
    let mut diagnostics: Vec<Diagnostic> = described
        .map(|(at, name)| {
            let near = (at < MAX_GUESSES).then(|| nearest(name, known())).flatten();
            warning(
                format!(
                    "the library does not declare a variable `{name}`, so its value is ignored"
                ),
                near.map_or_else(
                    || format!("declare `{name}` under `variables` in the library"),
                    |near| format!("did you mean `{near}`?"),
                ),
            )
        })
        .collect();
    let more = unknown.count();
    if more > 0 {
        diagnostics.push(warning(
            format!(
                "the library does not declare {more} more variables, so their values are ignored"
            ),
            "send only values that the library's texts can use".to_owned(),
        ));
    }
    diagnostics
}

/// A session name that stayed as it is written.
pub(crate) fn unresolved(part: &str, name: SessionName, range: Range<usize>) -> Diagnostic {
    let name = name.as_str();
    Diagnostic {
        code: DiagnosticCode::UnresolvedPlaceholder,
        severity: Severity::Warning,
        part: Some(part.to_owned()),
        range: Some(range),
        message: format!("`{{{name}}}` has no value in this session and stays as it is written"),
        hint: Some(format!(
            "give the request a value for `{name}`, or write `\\{{{name}}}` if the braces are meant as text"
        )),
    }
}

/// A section of which nothing is left.
pub(crate) fn empty_section(id: &str, at: usize) -> Diagnostic {
    Diagnostic {
        code: DiagnosticCode::EmptySection,
        severity: Severity::Info,
        part: Some(id.to_owned()),
        range: Some(at..at),
        message: format!("section `{id}` has no text here and is left out"),
        hint: Some("write a text for it, or disable it".to_owned()),
    }
}

/// A varying value in a part that would otherwise be the same for all sessions.
pub(crate) fn unstable_prefix(part: &str, written: &str, range: Range<usize>) -> Diagnostic {
    Diagnostic {
        code: DiagnosticCode::UnstablePrefix,
        severity: Severity::Warning,
        part: Some(part.to_owned()),
        message: format!(
            "`{written}` in `{part}` makes the prompt differ between sessions from byte {} on",
            range.start
        ),
        range: Some(range),
        hint: Some(
            "move it to the workspace guide, which comes last, so that providers can cache what stands before it"
                .to_owned(),
        ),
    }
}

/// Parts with the text of an earlier part.
pub(crate) fn duplicate_parts(text: &str, parts: &[Part], diagnostics: &mut Vec<Diagnostic>) {
    let text_of = |at: usize| &text[parts[at].range.clone()];
    let mut order: Vec<usize> = (0..parts.len()).collect();
    // Lengths first: most parts then differ without a look at their texts. The sort is stable, so of equal parts the
    // first one leads.
    order.sort_by(|&left, &right| {
        let by_length = parts[left].range.len().cmp(&parts[right].range.len());
        by_length.then_with(|| text_of(left).cmp(text_of(right)))
    });
    let mut repeats: Vec<(usize, usize)> = order
        .chunk_by(|&left, &right| text_of(left) == text_of(right))
        .flat_map(|equal| equal[1..].iter().map(|&repeat| (repeat, equal[0])))
        .collect();
    repeats.sort_unstable();
    diagnostics.extend(repeats.into_iter().map(|(repeat, first)| {
        let (repeat, first) = (&parts[repeat], &parts[first]);
        Diagnostic {
            code: DiagnosticCode::DuplicatePart,
            severity: Severity::Warning,
            part: Some(repeat.id.clone()),
            range: Some(repeat.range.clone()),
            message: format!("`{}` has the same text as `{}`", repeat.id, first.id),
            hint: Some("keep one of the two".to_owned()),
        }
    }));
}

/// A text over the budget.
pub(crate) fn too_long(text: &str, parts: &[Part], budget: Option<usize>) -> Option<Diagnostic> {
    let budget = budget?;
    if text.len() <= budget {
        return None;
    }
    let largest = parts.iter().max_by_key(|part| part.range.len());
    Some(Diagnostic {
        code: DiagnosticCode::TooLong,
        severity: Severity::Warning,
        part: largest.map(|part| part.id.clone()),
        range: Some(text.floor_char_boundary(budget)..text.len()),
        message: format!(
            "the prompt has {} bytes, {} more than the budget of {budget}",
            text.len(),
            text.len() - budget
        ),
        hint: largest.map(|part| {
            format!(
                "shorten or disable a part; the largest is `{}` with {} bytes",
                part.id,
                part.range.len()
            )
        }),
    })
}
