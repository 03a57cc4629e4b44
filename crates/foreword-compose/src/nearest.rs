//! Decides which known name somebody probably meant.

use strsim::osa_distance;

/// How many guesses are worth their time where many names are wrong.
pub(crate) const MAX_GUESSES: usize = 20;

/// Names that are looked at; beyond it a guess is not worth its time.
const CANDIDATES: usize = 1_000;

/// The longest word that is worth a guess, in bytes.
const LONGEST: usize = 80;

/// The candidate that is closest to `word`, if one is close: equal but for case, or a few slips of the keyboard away.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let tolerance = (word.chars().count() / 3).clamp(1, 3);
    let lower = word.to_lowercase();
    candidates
        .into_iter()
        .take(CANDIDATES)
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= tolerance * 4)
        .map(|candidate| (osa_distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= tolerance)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
