//! Names of skills, and of the directories that users' skills lie in.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::session::base32;

/// The longest name of a skill.
pub(super) const MAX_NAME: usize = 64;

/// The longest e-mail address that is the name of a directory as it is.
const MAX_PLAIN_EMAIL: usize = 100;

/// The name of a skill, which is that of its directory: `[a-z0-9][a-z0-9-]{0,63}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SkillName(String);

impl SkillName {
    /// Takes `name` if a skill can be called that.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let safe = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let fits = (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(safe);
        (fits && !name.starts_with('-')).then(|| Self(name.to_owned()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SkillName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The directory of a user's own skills below `data/skills/user`: the e-mail address itself where it is a harmless name, else a hash of
/// it. Addresses come in lower case, as sessions have them; one with a capital letter is hashed, and nobody's.
#[must_use]
pub fn user_directory(email: &str) -> String {
    let safe =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._@+-".contains(&byte);
    let is_plain = (1..=MAX_PLAIN_EMAIL).contains(&email.len())
        && email.bytes().all(safe)
        && email.contains('@')
        && !email.starts_with('.');
    if is_plain {
        email.to_owned()
    } else {
        format!("x-{}", base32(&Sha256::digest(email)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_harmless_path_segment() {
        for good in ["a", "pdf", "my-skill-2", "0", "a-", &"a".repeat(64)] {
            assert!(SkillName::new(good).is_some(), "{good}");
        }
        for bad in [
            "",
            "-a",
            "A",
            "a_b",
            "a.b",
            "..",
            "a/b",
            "ä",
            "a b",
            &"a".repeat(65),
        ] {
            assert!(SkillName::new(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn a_users_directory_is_the_address_or_a_hash_and_never_leads_elsewhere() {
        assert_eq!(user_directory("ann@example.com"), "ann@example.com");
        for odd in [
            "o'neil@example.com",
            "../x@y",
            ".a@b",
            "ä@b",
            "a/b@c",
            "no-at",
        ] {
            let directory = user_directory(odd);
            assert!(
                directory.starts_with("x-") && directory.len() == 54,
                "{directory}"
            );
        }
        assert_ne!(user_directory("ä@b"), user_directory("ö@b"));
    }
}
