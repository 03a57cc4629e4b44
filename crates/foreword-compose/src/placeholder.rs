//! Decides what in a prompt text is a placeholder: `{name}` where the name is known.
//!
//! All other braces are text, so JSON, JSX and format strings pass through untouched; a backslash directly before a
//! placeholder makes it text too. One pass from left to right, linear in the text. Deliberately absent: what a
//! placeholder's value is; callers say which names are known and what they mean.

use memchr::memchr;

/// A piece of a prompt text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Segment<'t, M> {
    /// Text to be kept as it is.
    Text(&'t str),
    /// A placeholder.
    Placeholder {
        /// The placeholder as it is written, braces included.
        written: &'t str,
        /// What the caller said about its name.
        meaning: M,
    },
}

/// Splits `text` into pieces; `meaning_of` answers for known names only.
///
/// Put together again, the pieces are the text, less the backslashes that made a placeholder text.
pub(crate) fn segments<'t, M>(
    text: &'t str,
    meaning_of: impl Fn(&'t str) -> Option<M>,
) -> impl Iterator<Item = Segment<'t, M>> {
    Segments {
        text,
        start: 0,
        search_from: 0,
        placeholder: None,
        meaning_of,
    }
}

/// The name in the `{name}` that `text` starts with, known or not.
fn leading_name(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('{')?;
    let end = inner.bytes().position(|byte| !is_name_byte(byte))?;
    let name = &inner[..end];
    (inner.as_bytes()[end] == b'}' && is_name(name)).then_some(name)
}

/// Whether `word` can be the name of a placeholder: `[a-z][a-z0-9_]*`.
pub(crate) fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_lowercase()) && word.bytes().all(is_name_byte)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'
}

struct Segments<'t, M, F> {
    text: &'t str,
    /// Where the text begins that was not yielded yet.
    start: usize,
    /// Where the search for the next brace goes on.
    search_from: usize,
    /// A placeholder found behind text that had to be yielded first.
    placeholder: Option<Segment<'t, M>>,
    meaning_of: F,
}

impl<'t, M, F: Fn(&'t str) -> Option<M>> Iterator for Segments<'t, M, F> {
    type Item = Segment<'t, M>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(placeholder) = self.placeholder.take() {
            return Some(placeholder);
        }
        let bytes = self.text.as_bytes();
        while let Some(offset) = memchr(b'{', &bytes[self.search_from..]) {
            let brace = self.search_from + offset;
            self.search_from = brace + 1;
            let Some(name) = leading_name(&self.text[brace..]) else {
                continue;
            };
            let Some(meaning) = (self.meaning_of)(name) else {
                continue;
            };
            let before = &self.text[self.start..brace];
            let end = brace + name.len() + 2;
            self.search_from = end;
            if let Some(kept) = before.strip_suffix('\\') {
                self.start = brace;
                return Some(Segment::Text(kept));
            }
            self.start = end;
            let placeholder = Segment::Placeholder {
                written: &self.text[brace..end],
                meaning,
            };
            if before.is_empty() {
                return Some(placeholder);
            }
            self.placeholder = Some(placeholder);
            return Some(Segment::Text(before));
        }
        let rest = &self.text[self.start..];
        self.start = self.text.len();
        self.search_from = self.start;
        (!rest.is_empty()).then_some(Segment::Text(rest))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::{Segment, segments};

    #[expect(
        clippy::needless_pass_by_value,
        reason = "the macro `expect!` makes a value"
    )]
    fn check(text: &str, expect: Expect) {
        let known = |name| (name == "a" || name == "chat_id").then_some(());
        let pieces: Vec<String> = segments(text, known)
            .map(|segment| match segment {
                Segment::Text(text) => format!("text {text}"),
                Segment::Placeholder { written, .. } => format!("name {written}"),
            })
            .collect();
        expect.assert_eq(&pieces.join("\n"));
    }

    #[test]
    fn only_known_names_are_placeholders() {
        check(
            "x {a} {b} {A} { a } {a",
            expect![[r"
                text x 
                name {a}
                text  {b} {A} { a } {a"]],
        );
    }

    #[test]
    fn the_inner_of_two_braces_is_the_placeholder() {
        check(
            "{{chat_id}}{{{a}}}",
            expect![[r"
                text {
                name {chat_id}
                text }{{
                name {a}
                text }}"]],
        );
    }

    #[test]
    fn a_backslash_makes_a_placeholder_text_and_stays_before_anything_else() {
        check(
            r"\{a} \{b} \\{a} \{a}{a}",
            expect![[r"
                text 
                text {a} \{b} \
                text {a} 
                text {a}
                name {a}"]],
        );
    }

    #[test]
    fn adjacent_placeholders_have_no_text_between_them() {
        check(
            "{a}{chat_id}",
            expect![[r"
                name {a}
                name {chat_id}"]],
        );
    }
}
