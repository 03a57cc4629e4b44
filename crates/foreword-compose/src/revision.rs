//! The name of a text by its content.

use std::ops::Range;

use sha2::{Digest, Sha256};

/// The number of hex digits in a revision.
pub const REVISION_LENGTH: usize = 16;

/// The digits that stand for a text's own revision while it is hashed.
pub const ZERO_REVISION: &str = "0000000000000000";

/// The first 16 hex digits of SHA-256 over `text`.
///
/// Where the text carries its own revision at `own` (byte range of the 16 digits), it is hashed with those digits
/// written as zeros. Equal revisions, equal prompt.
///
/// # Panics
///
/// If `own` does not lie in the text.
#[must_use]
pub fn revision(text: &str, own: Option<Range<usize>>) -> String {
    let mut hasher = Sha256::new();
    match own {
        None => hasher.update(text),
        Some(own) => {
            hasher.update(&text[..own.start]);
            hasher.update(ZERO_REVISION);
            hasher.update(&text[own.end..]);
        }
    }
    hex::encode(&hasher.finalize()[..REVISION_LENGTH / 2])
}
