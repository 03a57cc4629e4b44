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
    let last = text.trim_end().lines().next_back().unwrap_or_default();
    let revision = last
        .strip_prefix(BEFORE)
        .and_then(|rest| rest.strip_suffix(AFTER));
    revision.is_some_and(|revision| {
        revision.len() == REVISION_LENGTH && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
