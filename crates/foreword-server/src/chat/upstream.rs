//! The APIs that chat requests are passed on to, and what passes: a few headers each way, bytes as they come.
//!
//! Nothing of an answer is kept. Whoever leaves ends the upstream's work: what is not waited for is dropped, and its connection closed.
//! Deliberately absent: what is in the bodies.

use std::{fmt::Write, io, time::Duration};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::{Bytes, BytesMut};
use foreword_compose::one_line;
use futures::stream;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use reqwest::{Client, Url, redirect::Policy};
use tokio::time::timeout;

use super::config::ChatConfig;
use crate::{auth::Keys, choose_tls, config::Secret, error::ApiError};

/// What passes to an upstream, beside a few by the beginning of their names.
const PASSED_ON: [&str; 6] = [
    "content-type",
    "accept",
    "anthropic-version",
    "anthropic-beta",
    "idempotency-key",
    "traceparent",
];

/// What passes back, beside a few by the beginning of their names.
const PASSED_BACK: [&str; 8] = [
    "content-type",
    "content-encoding",
    "content-length",
    "cache-control",
    "retry-after",
    "retry-after-ms",
    "request-id",
    "x-should-retry",
];

/// The version of Anthropic's API for callers that name none.
const ANTHROPIC_VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// The most of an answer that is read whole, in bytes.
const MAX_WHOLE: usize = 16 << 20;

/// The upstreams of a server.
pub(crate) struct Upstreams {
    /// None where none is set.
    pub(crate) openai: Option<Upstream>,
    /// None where none is set.
    pub(crate) anthropic: Option<Upstream>,
}

/// An API that requests are passed on to.
pub(crate) struct Upstream {
    shape: Shape,
    client: Client,
    base: Url,
    key: Option<HeaderValue>,
    forward_authorization: bool,
    timeout: Duration,
}

/// Whose API it is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// OpenAI's.
    OpenAi,
    /// Anthropic's.
    Anthropic,
}

/// An upstream that gave no answer, or none to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// No connection, or none that lasted.
    #[error("the upstream cannot be reached: {0}")]
    Unreachable(String),
    /// Nothing came for too long.
    #[error("the upstream said nothing for {} s (`chat.upstream.timeout`)", .0.as_secs())]
    TimedOut(Duration),
    /// It stopped in the middle.
    #[error("the upstream broke off its answer: {0}")]
    BrokeOff(String),
    /// More than is read.
    #[error("the upstream's answer has more than {MAX_WHOLE} bytes")]
    TooLarge,
}

impl Upstreams {
    /// Those of `config`, whose URLs were checked.
    pub(crate) fn new(config: &ChatConfig) -> Self {
        let (openai, anthropic) = (&config.upstream, &config.anthropic);
        let key = openai.api_key.as_ref();
        let key = key.and_then(|key| key_header(Shape::OpenAi, key));
        let other_key = anthropic.api_key.as_ref();
        let other_key = other_key.and_then(|key| key_header(Shape::Anthropic, key));
        Self {
            openai: Upstream::new(Shape::OpenAi, openai.base_url.as_deref(), key, config),
            anthropic: other_key.and_then(|key| {
                let base_url = anthropic.base_url.as_deref();
                Upstream::new(Shape::Anthropic, base_url, Some(key), config)
            }),
        }
    }
}

/// Reads a base URL.
pub(crate) fn parse_base(url: &str) -> Result<Url, &'static str> {
    let base = Url::parse(url.trim()).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https") && url.has_host() && url.username().is_empty()
    });
    let base = base.filter(|url| url.query().is_none() && url.fragment().is_none());
    base.ok_or(
        "it is a URL such as `https://api.openai.com/v1`, without user name, query and fragment",
    )
}

fn key_header(shape: Shape, key: &Secret) -> Option<HeaderValue> {
    let key = key.expose().trim();
    let value = match shape {
        Shape::OpenAi => HeaderValue::try_from(format!("Bearer {key}")),
        Shape::Anthropic => HeaderValue::try_from(key),
    };
    let mut value = value.ok().filter(|_| !key.is_empty())?;
    value.set_sensitive(true);
    Some(value)
}

impl Upstream {
    /// None without a URL.
    fn new(
        shape: Shape,
        base_url: Option<&str>,
        key: Option<HeaderValue>,
        config: &ChatConfig,
    ) -> Option<Self> {
        let base = parse_base(base_url.filter(|url| !url.trim().is_empty())?).ok()?;
        let limits = &config.upstream;
        choose_tls();
        let client = Client::builder()
            .user_agent(concat!("foreword/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(limits.connect_timeout())
            // Keys must not follow a redirect.
            .redirect(Policy::none())
            .build();
        Some(Self {
            shape,
            client: client.expect("a client of these settings can be made"),
            base,
            key,
            forward_authorization: limits.forward_authorization && shape == Shape::OpenAi,
            timeout: limits.timeout(),
        })
    }

    /// Asks for `path` below the base URL, and waits for the beginning of the answer.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<reqwest::Response, UpstreamError> {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{path}", url.path().trim_end_matches('/')));
        let request = self.client.request(method, url).headers(headers).body(body);
        let asked = timeout(self.timeout, request.send()).await;
        let asked = asked.map_err(|_| UpstreamError::TimedOut(self.timeout))?;
        asked.map_err(|error| UpstreamError::Unreachable(innermost(&error)))
    }

    /// The headers that pass, with the key. A key of this server's own never passes.
    pub(crate) fn headers(&self, caller: &HeaderMap, keys: &Keys) -> HeaderMap {
        let mut passed = HeaderMap::new();
        for (name, value) in caller {
            let passes = PASSED_ON.contains(&name.as_str()) || name.as_str().starts_with("openai-");
            if passes && !keys.is_one(value.as_bytes()) {
                passed.append(name, value.clone());
            }
        }
        match self.shape {
            Shape::OpenAi => {
                let own = caller
                    .get(header::AUTHORIZATION)
                    .filter(|value| self.forward_authorization && !keys.is_in_authorization(value));
                passed.extend(
                    own.or(self.key.as_ref())
                        .map(|value| (header::AUTHORIZATION, value.clone())),
                );
            }
            Shape::Anthropic => {
                passed
                    .entry("anthropic-version")
                    .or_insert(ANTHROPIC_VERSION);
                let name = HeaderName::from_static("x-api-key");
                passed.extend(self.key.clone().map(|value| (name, value)));
            }
        }
        passed
    }

    /// The answer as it comes. One of events that breaks off ends with an event that says so; any other ends the connection.
    pub(crate) fn pass_back(&self, answer: reqwest::Response) -> Response {
        let status = answer.status();
        let passes = |name: &HeaderName| {
            let name = name.as_str();
            PASSED_BACK.contains(&name)
                || ["x-ratelimit-", "openai-", "anthropic-"]
                    .iter()
                    .any(|start| name.starts_with(start))
        };
        let headers = answer.headers().iter().filter(|(name, _)| passes(name));
        let headers: HeaderMap = headers
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let has_events = is_of_events(&headers);
        let (shape, limit) = (self.shape, self.timeout);
        let pieces = stream::unfold(Some(answer), move |answer| async move {
            let mut answer = answer?;
            match next(&mut answer, limit).await {
                Ok(piece) => Some((Ok(piece?), Some(answer))),
                Err(error) if has_events => {
                    tracing::warn!("A stream of a chat answer ends early: {error}");
                    Some((Ok(shape.event(&error)), None))
                }
                Err(error) => Some((Err(io::Error::other(error.to_string())), None)),
            }
        });
        (status, headers, Body::from_stream(pieces)).into_response()
    }

    /// The whole body of an answer.
    pub(crate) async fn whole(
        &self,
        mut answer: reqwest::Response,
    ) -> Result<Bytes, UpstreamError> {
        let mut whole = BytesMut::new();
        while let Some(piece) = next(&mut answer, self.timeout).await? {
            if whole.len() + piece.len() > MAX_WHOLE {
                return Err(UpstreamError::TooLarge);
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    }

    /// How long it may be silent.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }
}

/// The next piece of an answer; none at its end.
pub(crate) async fn next(
    answer: &mut reqwest::Response,
    limit: Duration,
) -> Result<Option<Bytes>, UpstreamError> {
    let piece = timeout(limit, answer.chunk()).await;
    let piece = piece.map_err(|_| UpstreamError::TimedOut(limit))?;
    piece.map_err(|error| UpstreamError::BrokeOff(innermost(&error)))
}

/// Whether an answer is a stream of server-sent events.
pub(crate) fn is_of_events(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.starts_with("text/event-stream")
}

impl Shape {
    /// An event that ends a stream which broke off; what was half sent before it is ended first.
    fn event(self, error: &UpstreamError) -> Bytes {
        let mut event = "\n\n".to_owned();
        let body = self.error(error.status(), error.code(), &error.to_string(), None);
        if self == Self::Anthropic {
            event.push_str("event: error\n");
        }
        let _ = write!(event, "data: {body}\n\n");
        event.into()
    }
}

impl UpstreamError {
    /// The status that says so.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::TimedOut(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::Unreachable(_) | Self::BrokeOff(_) | Self::TooLarge => StatusCode::BAD_GATEWAY,
        }
    }

    /// A stable word for it.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "upstream_unreachable",
            Self::TimedOut(_) => "upstream_timed_out",
            Self::BrokeOff(_) => "upstream_broke_off",
            Self::TooLarge => "upstream_answer_too_large",
        }
    }
}

impl From<UpstreamError> for ApiError {
    fn from(error: UpstreamError) -> Self {
        tracing::warn!("A chat request was not answered: {error}");
        Self::new(error.status(), error.code(), error.to_string())
    }
}

/// The innermost cause; outer ones hold the URL.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    one_line(&cause.to_string(), 200)
}
