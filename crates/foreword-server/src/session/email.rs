//! Which e-mail addresses name a user, and how they are compared. One rule, for requests and for who prepares something for a user.

use std::sync::Arc;

use foreword_compose::is_hidden;

/// The largest length of an e-mail address, in bytes.
const MAX_EMAIL_LENGTH: usize = 254;

/// Why a text names no user. The messages do not repeat it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEmail {
    /// It looks otherwise.
    #[error(
        "it has one `@`, at most {MAX_EMAIL_LENGTH} bytes, no spaces, no line breaks and no characters that nobody sees"
    )]
    Malformed,
    /// A request that says this counts as saying nothing.
    #[error(
        "it holds no `{{{{`, `}}}}` or `${{`, which are left of a template that was not filled in"
    )]
    Template,
}

/// The address in the form in which sessions have it: without blanks around it, in lower case.
pub fn parse_email(text: &str) -> Result<Arc<str>, InvalidEmail> {
    let text = trim(text);
    let is_one = text.len() <= MAX_EMAIL_LENGTH
        && text.matches('@').count() == 1
        && !text.contains(|c: char| c.is_whitespace() || is_hidden(c) || is_ascii_in_lower_case(c));
    if !is_one {
        return Err(InvalidEmail::Malformed);
    }
    if is_template(text) {
        return Err(InvalidEmail::Template);
    }
    let address = text.to_lowercase();
    if address.len() > MAX_EMAIL_LENGTH {
        return Err(InvalidEmail::Malformed);
    }
    Ok(address.into())
}

/// Whether it becomes a letter of ASCII, and so another address, as the sign for Kelvin becomes `k`.
fn is_ascii_in_lower_case(character: char) -> bool {
    !character.is_ascii() && character.to_lowercase().any(|lower| lower.is_ascii())
}

/// Whether a client has failed to fill it in.
pub(super) fn is_template(text: &str) -> bool {
    ["{{", "}}", "${"].iter().any(|mark| text.contains(mark))
}

/// Other white space is no padding: in a value it is a fault, and must not make it count as absent.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}
