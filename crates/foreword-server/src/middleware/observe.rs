//! What can be seen of a request: an id, a span, a line in the log, a count. Routes appear as patterns only, since a path
//! can hold a capability and a query a prompt.

use std::{
    any::Any,
    sync::atomic::{AtomicU64, Ordering},
};

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderName, HeaderValue, StatusCode};
use jiff::Timestamp;
use sha2::Sha256;
use tokio::time::Instant;
use tracing::{Instrument, debug, field, info_span};

use crate::{app::App, error::ApiError};

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The largest length of a request id that a caller may choose.
const MAX_REQUEST_ID_LENGTH: usize = 128;

/// Stands for the route of requests that no route takes.
const NO_ROUTE: &str = "none";

/// Makes the ids of requests that bring none: eight digits for this start of this server, and a count.
pub(crate) struct RequestIds {
    prefix: String,
    next: AtomicU64,
}

impl RequestIds {
    /// Ids that differ from those of every other start and every other server.
    pub(crate) fn new(started: Timestamp, key: &[u8]) -> Self {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
        mac.update(b"request ids\n");
        mac.update(&started.as_nanosecond().to_be_bytes());
        Self {
            prefix: hex::encode(&mac.finalize().into_bytes()[..4]),
            next: AtomicU64::new(1),
        }
    }

    fn next(&self) -> HeaderValue {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        HeaderValue::try_from(format!("{}-{number}", self.prefix))
            .expect("hex digits and decimal digits are visible ASCII")
    }
}

/// The outermost layer.
pub(super) async fn observe(State(app): State<App>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = match request.headers().get(X_REQUEST_ID) {
        Some(id) if is_request_id(id) => id.clone(),
        _ => app.request_ids().next(),
    };
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.as_ref().map_or(NO_ROUTE, MatchedPath::as_str);
    let span = info_span!(
        "request",
        request_id = id.to_str().unwrap_or_default(),
        http.request.method = request.method().as_str(),
        http.route = route,
        http.response.status_code = field::Empty,
        key = field::Empty,
    );
    let mut response = next.run(request).instrument(span.clone()).await;
    let status = response.status().as_u16();
    span.record("http.response.status_code", status);
    span.in_scope(|| {
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        debug!(duration_ms, "Answered {status}");
    });
    app.metrics().http(route, status);
    response.headers_mut().insert(X_REQUEST_ID, id);
    response
}

/// The answer in place of a handler that panicked. What it said is left to the panic hook: it may hold prompt text.
pub(super) fn panicked(_panic: Box<dyn Any + Send + 'static>) -> Response {
    tracing::error!("A handler panicked; this is a bug");
    ApiError::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal",
        "something went wrong inside; the server's log has the cause under this request's `X-Request-Id`",
    )
    .into_response()
}

/// Ids of others go into logs and headers as they are, so they hold nothing that could mean something there.
fn is_request_id(value: &HeaderValue) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-:/+=".contains(byte);
    (1..=MAX_REQUEST_ID_LENGTH).contains(&value.len()) && value.as_bytes().iter().all(allowed)
}
