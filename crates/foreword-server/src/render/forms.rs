//! The short forms of a prompt, for clients that cut what they get without a word.
//!
//! Each is complete in itself and true: it says which text it is the short form of, what it leaves out, and where the
//! rest can be read. Lengths are counted in UTF-16 code units, as the clients count them.

use std::cmp::Reverse;

use foreword_compose::{Composition, Part, PartSource};

use super::surroundings::Surroundings;

/// Claude Code cuts at 2,048.
const BRIEF_LIMIT: usize = 2_000;

/// Some clients rely on the first 512.
const HINT_LIMIT: usize = 512;

/// What stands between two paragraphs.
const BREAK: &str = "\n\n";

/// The words of tier 3 with the revision of this session's text.
pub(super) fn hint(revision: &str, surroundings: &Surroundings) -> String {
    let words = surroundings.static_instructions();
    let hint = format!("{words} Revision of the full text: `{revision}`.");
    debug_assert!(length(&hint) <= HINT_LIMIT, "the words of tier 3 are short");
    hint
}

/// As many whole parts as fit, the most important first, printed in the order of the composition.
pub(super) fn brief(
    composition: &Composition,
    revision: &str,
    surroundings: &Surroundings,
) -> String {
    let opening = surroundings.brief_opening(revision);
    let left_out = |missing: usize, all: usize| {
        let how = surroundings.how_to_read_on();
        format!("Left out or cut here: {missing} of {all} parts. {how}")
    };
    let parts = &composition.parts;
    let closing = left_out(parts.len(), parts.len());
    let mut room = BRIEF_LIMIT - length(&opening) - length(BREAK) - length(&closing);

    let mut ranked: Vec<usize> = (0..parts.len())
        .filter(|at| parts[*at].source != PartSource::Context)
        .collect();
    ranked.sort_by_key(|at| rank(&parts[*at]));

    let mut chosen = Vec::new();
    for at in &ranked {
        let needed = length(text_of(composition, *at)) + length(BREAK);
        if needed <= room {
            room -= needed;
            chosen.push(*at);
        }
    }
    let mut printed = vec![opening];
    if let (true, Some(first)) = (chosen.is_empty(), ranked.first()) {
        let room = room.saturating_sub(length(BREAK));
        printed.push(cut(text_of(composition, *first), room).to_owned());
    }
    let missing = parts.len() - chosen.len();
    chosen.sort_unstable();
    printed.extend(
        chosen
            .into_iter()
            .map(|at| text_of(composition, at).to_owned()),
    );
    if missing > 0 {
        printed.push(left_out(missing, parts.len()));
    }
    printed.join(BREAK)
}

/// Global before all, then higher priority first, then position (the sort is stable).
fn rank(part: &Part) -> (bool, Reverse<i64>) {
    (part.source != PartSource::Global, Reverse(part.priority))
}

fn text_of(composition: &Composition, at: usize) -> &str {
    &composition.text[composition.parts[at].range.clone()]
}

/// The longest beginning of `text` that fits into `room` and ends with a paragraph, else with a word, else anywhere: in
/// scripts without spaces the last white space may stand far too early.
fn cut(text: &str, room: usize) -> &str {
    let mut used = 0;
    let end = text
        .char_indices()
        .find(|(_, character)| {
            used += character.len_utf16();
            used > room
        })
        .map_or(text.len(), |(at, _)| at);
    let fitting = &text[..end];
    if end == text.len() {
        return fitting;
    }
    let word = || {
        let last = fitting.rfind(char::is_whitespace);
        last.filter(|at| *at >= end / 2)
    };
    let end = fitting
        .rfind(BREAK)
        .filter(|at| !fitting[..*at].trim().is_empty())
        .or_else(word)
        .unwrap_or(end);
    fitting[..end].trim_end()
}

fn length(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}
