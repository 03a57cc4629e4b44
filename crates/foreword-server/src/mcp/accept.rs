//! Which of the two shapes of an answer a client takes.
//!
//! The protocol asks clients to take both JSON and event streams; many say less, or nothing. Whoever takes one of the two
//! is served with it.

use axum::{
    body::{Body, to_bytes},
    response::Response,
};
use bytes::BytesMut;
use http::{HeaderMap, HeaderValue, StatusCode, header};

/// The shape of a single answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    Json,
    EventStream,
}

impl Answers {
    /// JSON where it is taken; none where neither is.
    pub(super) fn accepted(headers: &HeaderMap) -> Option<Self> {
        if !headers.contains_key(header::ACCEPT) {
            return Some(Self::Json);
        }
        if accepts(headers, ["application/json", "application/*", "*/*"]) {
            Some(Self::Json)
        } else if accepts(headers, ["text/event-stream", "text/*", "*/*"]) {
            Some(Self::EventStream)
        } else {
            None
        }
    }
}

/// Whether one of `ranges` stands in `Accept` and is not ruled out by a weight of zero.
fn accepts(headers: &HeaderMap, ranges: [&str; 3]) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|entry| {
            let mut parameters = entry.split(';').map(str::trim);
            let range = parameters.next().unwrap_or_default();
            ranges.iter().any(|known| known.eq_ignore_ascii_case(range))
                && !parameters.any(is_zero_weight)
        })
}

fn is_zero_weight(parameter: &str) -> bool {
    parameter
        .strip_prefix("q=")
        .and_then(|weight| weight.parse().ok())
        .is_some_and(|weight: f32| weight <= 0.0)
}

/// The same answer as a stream of one event. What is no success stays as it is: its status says all.
pub(super) async fn as_event_stream(response: Response) -> Response {
    if !is_json(&response) || response.status() != StatusCode::OK {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let json = to_bytes(body, usize::MAX)
        .await
        .expect("an answer that is in memory already can be read");
    let mut event = BytesMut::with_capacity(json.len() + 32);
    event.extend_from_slice(b"event: message\ndata: ");
    event.extend_from_slice(&json);
    event.extend_from_slice(b"\n\n");
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    Response::from_parts(parts, Body::from(event.freeze()))
}

pub(super) fn is_json(response: &Response) -> bool {
    let content_type = response.headers().get(header::CONTENT_TYPE);
    content_type.is_some_and(|value| value == "application/json")
}
