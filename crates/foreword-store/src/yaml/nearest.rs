//! The valid name that somebody probably meant.

/// The name of `known` that is closest to `word`, if one is close.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Above this, two names have only letters in common.
    const CLOSE: f64 = 0.75;
    let word = word.to_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&word, name), name))
        .filter(|(closeness, _)| *closeness >= CLOSE)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, name)| name)
}
