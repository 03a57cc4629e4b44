//! Long lists in pages, by `limit` and `cursor`.
//!
//! A cursor names the last item of the page before, so a list that changes in between neither repeats nor skips others.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::StatusCode;

use crate::error::ApiError;

/// The most that one page holds, and what it holds where nobody says otherwise.
const LARGEST_PAGE: usize = 1_000;

/// A page of a list.
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// How many there are in all.
    pub(crate) total: usize,
    /// Leads to the next page; none on the last one.
    pub(crate) next_cursor: Option<String>,
}

/// Cuts the page out of `items` that `limit` and `cursor` ask for; `id` tells items apart.
pub(crate) fn paginate<T>(
    items: Vec<T>,
    limit: Option<&str>,
    cursor: Option<&str>,
    id: impl Fn(&T) -> &[u8],
) -> Result<Page<T>, ApiError> {
    let limit = match limit.map(str::parse::<usize>) {
        None => LARGEST_PAGE,
        Some(Ok(limit @ 1..=LARGEST_PAGE)) => limit,
        Some(_) => {
            let detail =
                format!("the query parameter `limit` is a whole number from 1 to {LARGEST_PAGE}");
            return Err(refusal("invalid_query", detail));
        }
    };
    let total = items.len();
    let start = match cursor {
        None => 0,
        Some(cursor) => start_after(&items, cursor, &id).ok_or_else(|| {
            refusal(
                "invalid_cursor",
                "the cursor leads nowhere; start again without it".to_owned(),
            )
        })?,
    };
    let mut items: Vec<T> = items.into_iter().skip(start).take(limit + 1).collect();
    let has_more = items.len() > limit;
    items.truncate(limit);
    let last = items.last().filter(|_| has_more);
    let next_cursor = last.map(|item| URL_SAFE_NO_PAD.encode(id(item)));
    Ok(Page {
        items,
        total,
        next_cursor,
    })
}

fn start_after<T>(items: &[T], cursor: &str, id: impl Fn(&T) -> &[u8]) -> Option<usize> {
    let last = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let position = items.iter().position(|item| id(item) == last)?;
    Some(position + 1)
}

fn refusal(code: &'static str, detail: String) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, code, detail)
}
