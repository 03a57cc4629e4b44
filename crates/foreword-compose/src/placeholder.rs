//! Decides what in a prompt text is a placeholder: `{name}` where the name is known.
//!
//! All other braces are text, so JSON, JSX and format strings pass through untouched; a backslash directly before a
//! placeholder makes it text too. One pass from left to right, linear in the text. Deliberately absent: what a
//! placeholder's value is; callers say which names are known and what they mean.

use memchr::memchr;

/// A piece of a prompt text; pieces of text may be empty.
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

/// Gives the pieces of `text` to `take`, in order; `meaning_of` answers for known names only.
///
/// Put together again, the pieces are the text, less the backslashes that made a placeholder text.
pub(crate) fn split<'t, M>(
    text: &'t str,
    meaning_of: impl Fn(&'t str) -> Option<M>,
    mut take: impl FnMut(Segment<'t, M>),
) {
    // What stands before `start` was taken, what stands before `from` was looked at.
    let (mut start, mut from) = (0, 0);
    while let Some(offset) = memchr(b'{', &text.as_bytes()[from..]) {
        let brace = from + offset;
        from = brace + 1;
        let Some(name) = name_after(text, brace) else {
            continue;
        };
        let Some(meaning) = meaning_of(name) else {
            continue;
        };
        from += name.len() + 1;
        let before = &text[start..brace];
        if let Some(before) = before.strip_suffix('\\') {
            take(Segment::Text(before));
            start = brace;
        } else {
            take(Segment::Text(before));
            let written = &text[brace..from];
            take(Segment::Placeholder { written, meaning });
            start = from;
        }
    }
    take(Segment::Text(&text[start..]));
}

/// The name in a `{name}` whose brace is at `brace`, known or not.
fn name_after(text: &str, brace: usize) -> Option<&str> {
    let start = brace + 1;
    let rest = &text.as_bytes()[start..];
    if !rest.first()?.is_ascii_lowercase() {
        return None;
    }
    let length = rest.iter().position(|byte| !is_name_byte(*byte))?;
    (rest[length] == b'}').then(|| &text[start..start + length])
}

/// Whether `word` can be the name of a placeholder: `[a-z][a-z0-9_]*`.
pub(crate) fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_lowercase()) && word.bytes().all(is_name_byte)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::{Segment, split};

    #[expect(
        clippy::needless_pass_by_value,
        reason = "the macro `expect!` makes a value"
    )]
    fn check(text: &str, expect: Expect) {
        let known = |name| (name == "a" || name == "chat_id").then_some(());
        let mut pieces = Vec::new();
        split(text, known, |segment| match segment {
            Segment::Text("") => {}
            Segment::Text(text) => pieces.push(format!("text {text}")),
            Segment::Placeholder { written, .. } => pieces.push(format!("name {written}")),
        });
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
