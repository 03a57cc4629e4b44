//! A pattern of e-mail addresses: `*` stands for any characters, all else for itself, in any case.

/// Which users are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern(Vec<String>);

impl Pattern {
    pub(super) fn new(pattern: &str) -> Self {
        Self(
            pattern
                .trim()
                .to_lowercase()
                .split('*')
                .map(str::to_owned)
                .collect(),
        )
    }

    pub(super) fn matches(&self, email: &str) -> bool {
        let email = email.to_lowercase();
        let (first, rest) = self.0.split_first().expect("a split has a first piece");
        let Some(mut left) = email.strip_prefix(first.as_str()) else {
            return false;
        };
        let Some((last, middle)) = rest.split_last() else {
            return left.is_empty();
        };
        // The earliest place of each piece leaves the most room for those after it.
        for piece in middle {
            let Some(at) = left.find(piece.as_str()) else {
                return false;
            };
            left = &left[at + piece.len()..];
        }
        left.ends_with(last.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, email, expected) in [
            ("alice@example.com", "alice@example.com", true),
            ("Alice@Example.com", "alice@example.com", true),
            ("*@example.com", "alice@example.com", true),
            ("*@example.com", "alice@example.com.evil.test", false),
            ("*@example.com", "alice@notexample.com", false),
            ("al*@*.com", "alice@example.com", true),
            ("a*a@x", "a@x", false),
            ("*", "anyone@anywhere", true),
            ("", "anyone@anywhere", false),
            ("alice", "alice@example.com", false),
        ] {
            assert_eq!(
                Pattern::new(pattern).matches(email),
                expected,
                "{pattern} {email}"
            );
        }
    }
}
