//! The mark that Foreword leaves behind a prompt in a conversation, by which it knows its own again: the last line,
//! `<!-- foreword REVISION -->`. The filter for Open WebUI writes the same one.

use foreword_compose::revision::REVISION_LENGTH;

const BEFORE: &str = "<!-- foreword ";
const AFTER: &str = " -->";

/// The prompt with the mark behind it.
pub(crate) fn marked(prompt: &str, revision: &str) -> String {
    format!("{prompt}\n{BEFORE}{revision}{AFTER}")
}

/// Whether Foreword put this text there, whatever its revision was.
pub(crate) fn is_marked(text: &str) -> bool {
    split(text).is_some()
}

/// Whether this is all of what its mark names.
pub(crate) fn is_whole(text: &str) -> bool {
    let Some((prompt, revision)) = split(text) else {
        return false;
    };
    let is_it = |own| foreword_compose::revision(prompt, own) == revision;
    // A prompt may hold its own revision, in one place.
    let places = prompt.match_indices(revision).take(MOST_PLACES);
    let mut places = places.map(|(at, digits)| at..at + digits.len());
    is_it(None) || places.any(|own| is_it(Some(own)))
}

/// How many places are tried.
const MOST_PLACES: usize = 4;

/// The prompt and the revision that its mark names.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_end();
    let (prompt, last) = text.rsplit_once('\n').unwrap_or(("", text));
    let revision = last.strip_prefix(BEFORE)?.strip_suffix(AFTER)?;
    let is_one =
        revision.len() == REVISION_LENGTH && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then_some((prompt, revision))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_the_whole_before_it() {
        let revision = foreword_compose::revision("Be kind.\n", None);
        let whole = marked("Be kind.\n", &revision);
        assert!(is_whole(&whole) && is_whole(&format!("{whole}\n")));
        assert!(!is_whole(&whole[3..]) && !is_whole("Be kind."));
        let zeros = "I am 0000000000000000.";
        let own = foreword_compose::revision(zeros, Some(5..21));
        assert!(is_whole(&marked(
            &zeros.replace("0000000000000000", &own),
            &own
        )));
    }

    #[test]
    fn only_a_last_line_of_ours_counts() {
        let marked = marked("Be kind.\n", "0123456789abcdef");
        assert_eq!(marked, "Be kind.\n\n<!-- foreword 0123456789abcdef -->");
        assert!(is_marked(&marked) && is_marked(&format!("{marked}\r\n ")));
        for text in [
            "",
            "Be kind.",
            "<!-- foreword 0123456789abcdef -->\nMore.",
            "See <!-- foreword 0123456789abcdef -->",
            "<!-- foreword 0123456789abcde -->",
            "<!-- foreword 0123456789abcdeg -->",
        ] {
            assert!(!is_marked(text), "{text}");
        }
    }
}
