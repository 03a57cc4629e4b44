//! What a client would rather have, by its `Accept`.

use http::{HeaderMap, header};

/// How much the client wants any of `ranges`, from 0 to 1; what it does not name it does not want.
pub(crate) fn weight(headers: &HeaderMap, ranges: &[&str]) -> f32 {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|entry| weight_of(entry, ranges))
        .fold(0.0, f32::max)
}

fn weight_of(entry: &str, ranges: &[&str]) -> Option<f32> {
    let mut parameters = entry.split(';').map(str::trim);
    let range = parameters.next()?;
    if !ranges.iter().any(|known| known.eq_ignore_ascii_case(range)) {
        return None;
    }
    let weight = parameters.find_map(|parameter| parameter.strip_prefix("q="));
    Some(weight.and_then(|weight| weight.parse().ok()).unwrap_or(1.0))
}
