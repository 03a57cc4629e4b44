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

use crate::extract::accept;

pub(super) const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// The shapes of an answer that a client takes: one of them at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answers {
    /// It takes JSON, which is what it gets then unless there is something to say before the answer.
    pub(super) json: bool,
    /// How far it takes an event stream.
    pub(super) events: Events,
}

/// How far a client takes an event stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Events {
    /// Not at all.
    Refused,
    /// It says that it takes anything, or nothing: it gets one where it asked for what only a stream can hold.
    Tolerated,
    /// It names them.
    Named,
}

impl Answers {
    /// None where neither shape is taken.
    pub(super) fn accepted(headers: &HeaderMap) -> Option<Self> {
        if !headers.contains_key(header::ACCEPT) {
            return Some(Self {
                json: true,
                events: Events::Tolerated,
            });
        }
        let takes = |ranges: &[&str]| accept::weight(headers, ranges) > 0.0;
        let anything = takes(&["*/*"]);
        let json = anything || takes(&["application/json", "application/*"]);
        let events = if takes(&["text/event-stream", "text/*"]) {
            Events::Named
        } else if anything {
            Events::Tolerated
        } else {
            Events::Refused
        };
        (json || events > Events::Refused).then_some(Self { json, events })
    }
}

/// The same answer as a stream of one event. What is no success stays as it is: its status says all.
pub(super) async fn as_event_stream(response: Response) -> Response {
    if !is_json(&response) || response.status() != StatusCode::OK {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let event = in_event(body).await;
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_TYPE, EVENT_STREAM);
    Response::from_parts(parts, event)
}

/// The body of an answer whose status was sent before it was known, as events.
pub(super) async fn as_event(response: Response) -> Body {
    if is_json(&response) {
        in_event(response.into_body()).await
    } else {
        response.into_body()
    }
}

async fn in_event(json: Body) -> Body {
    let json = to_bytes(json, usize::MAX)
        .await
        .expect("an answer that is in memory already can be read");
    let mut event = BytesMut::with_capacity(json.len() + 32);
    event.extend_from_slice(b"event: message\ndata: ");
    event.extend_from_slice(&json);
    event.extend_from_slice(b"\n\n");
    Body::from(event.freeze())
}

pub(super) fn is_json(response: &Response) -> bool {
    let content_type = response.headers().get(header::CONTENT_TYPE);
    content_type.is_some_and(|value| value == "application/json")
}
