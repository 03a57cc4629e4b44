//! Which bytes of a file a request asks for (RFC 9110, ranges and conditions).
//!
//! One range is served as asked; several, or what cannot be read, get the whole file, as the standard allows: whoever asks
//! for many small ranges would only cost more.

use std::time::SystemTime;

use http::{HeaderMap, header};

/// What to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Whole,
    /// From the first byte to the last, both included.
    Part {
        first: u64,
        last: u64,
    },
    /// The range lies behind the end.
    Nothing,
    /// The client has it.
    NotModified,
}

/// Reads the conditions and the range of a request for a file with this tag and time.
pub(super) fn wanted(headers: &HeaderMap, size: u64, tag: &str, modified: SystemTime) -> Wanted {
    if is_known(headers, tag, modified) {
        return Wanted::NotModified;
    }
    let range = text(headers, header::RANGE);
    match range {
        Some(range) if range_is_for(headers, tag, modified) => part(range, size),
        _ => Wanted::Whole,
    }
}

fn part(range: &str, size: u64) -> Wanted {
    let Some(("bytes", range)) = range.split_once('=') else {
        return Wanted::Whole;
    };
    let Some((first, last)) = range.trim().split_once('-') else {
        return Wanted::Whole;
    };
    if range.contains(',') {
        return Wanted::Whole;
    }
    let number = |text: &str| -> Option<u64> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // What is too large for a number is behind any end.
        digits.then(|| text.parse().unwrap_or(u64::MAX))
    };
    match (first, number(first), last, number(last)) {
        ("", None, _, Some(suffix)) => match suffix.min(size) {
            0 => Wanted::Nothing,
            suffix => Wanted::Part {
                first: size - suffix,
                last: size - 1,
            },
        },
        (_, Some(first), "", None) if first < size => Wanted::Part {
            first,
            last: size - 1,
        },
        (_, Some(first), _, Some(last)) if first <= last && first < size => Wanted::Part {
            first,
            last: last.min(size - 1),
        },
        (_, Some(_), "", None) => Wanted::Nothing,
        (_, Some(first), _, Some(last)) if first <= last => Wanted::Nothing,
        _ => Wanted::Whole,
    }
}

fn is_known(headers: &HeaderMap, tag: &str, modified: SystemTime) -> bool {
    if headers.contains_key(header::IF_NONE_MATCH) {
        return headers
            .get_all(header::IF_NONE_MATCH)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(str::trim)
            .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag);
    }
    date(headers, header::IF_MODIFIED_SINCE)
        .is_some_and(|since| seconds(modified) <= seconds(since))
}

/// Whether `If-Range` lets the range count: the file is the one of which the client has another part.
fn range_is_for(headers: &HeaderMap, tag: &str, modified: SystemTime) -> bool {
    match text(headers, header::IF_RANGE) {
        None => !headers.contains_key(header::IF_RANGE),
        Some(known) if known.contains('"') => known.trim() == tag,
        Some(_) => {
            date(headers, header::IF_RANGE).is_some_and(|since| seconds(modified) == seconds(since))
        }
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn date(headers: &HeaderMap, name: header::HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(text(headers, name)?).ok()
}

/// Headers know whole seconds.
fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
