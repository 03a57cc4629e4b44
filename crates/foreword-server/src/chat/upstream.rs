//! The APIs that chat requests are passed on to, and what passes: a few headers each way, bytes as they come.
//!
//! Nothing of an answer is kept. Whoever leaves ends the upstream's work: what is not waited for is dropped, and its connection closed.
//! Deliberately absent: what is in the bodies.

use std::{
    convert::Infallible,
    fmt::Write,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::{Bytes, BytesMut};
use foreword_compose::one_line;
use futures::stream;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use http_body::{Frame, SizeHint};
use reqwest::{Client, Url, redirect::Policy};
use tokio::time::timeout;

use super::{config::ChatConfig, errors::Api};
use crate::{
    auth::Keys,
    choose_tls,
    config::{AuthConfig, Secret},
    error::ApiError,
    extract::Share,
};

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
const PASSED_BACK: [&str; 7] = [
    "content-type",
    "content-encoding",
    "cache-control",
    "retry-after",
    "retry-after-ms",
    "request-id",
    "x-should-retry",
];

/// The version of Anthropic's API for callers that name none.
const ANTHROPIC_VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// The most of an answer that is read whole, in bytes.
pub(super) const MAX_WHOLE: usize = 16 << 20;

/// In which pieces a body is sent, in bytes.
const PIECE: usize = 64 << 10;

/// The upstreams of a server.
pub(crate) struct Upstreams {
    /// None where none is set.
    pub(crate) openai: Option<Upstream>,
    /// None where none is set.
    pub(crate) anthropic: Option<Upstream>,
}

/// An API that requests are passed on to.
pub(crate) struct Upstream {
    api: Api,
    client: Client,
    base: Url,
    key: Option<HeaderValue>,
    forward_authorization: bool,
    timeout: Duration,
}

/// An upstream that gave no answer, or none to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// No connection.
    #[error("the upstream cannot be reached: {0}")]
    Unreachable(String),
    /// Nothing came for too long.
    #[error("the upstream said nothing for {} s (`chat.upstream.timeout`)", .0.as_secs())]
    TimedOut(Duration),
    /// It stopped in the middle, or what it says is no HTTP.
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
        let key = key.and_then(|key| key_header(Api::OpenAi, key));
        let other_key = anthropic.api_key.as_ref();
        let other_key = other_key.and_then(|key| key_header(Api::Anthropic, key));
        Self {
            openai: Upstream::new(Api::OpenAi, openai.base_url.as_deref(), key, config),
            anthropic: other_key.and_then(|key| {
                let base_url = anthropic.base_url.as_deref();
                Upstream::new(Api::Anthropic, base_url, Some(key), config)
            }),
        }
    }
}

/// Reads a base URL.
pub(crate) fn parse_base(url: &str) -> Result<Url, &'static str> {
    let base = Url::parse(url.trim())
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let base = base.filter(|url| {
        let has_user = !url.username().is_empty() || url.password().is_some();
        !has_user && url.query().is_none() && url.fragment().is_none()
    });
    base.ok_or(
        "it is a URL such as `https://api.openai.com/v1`, without user name, password, query and fragment",
    )
}

fn key_header(api: Api, key: &Secret) -> Option<HeaderValue> {
    let key = key.expose().trim();
    let value = match api {
        Api::OpenAi => HeaderValue::try_from(format!("Bearer {key}")),
        Api::Anthropic => HeaderValue::try_from(key),
    };
    let mut value = value.ok().filter(|_| !key.is_empty())?;
    value.set_sensitive(true);
    Some(value)
}

impl Upstream {
    /// None without a URL.
    fn new(
        api: Api,
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
            api,
            client: client.expect("a client of these settings can be made"),
            base,
            key,
            forward_authorization: limits.forward_authorization && api == Api::OpenAi,
            timeout: limits.timeout(),
        })
    }

    /// Asks for `path` below the base URL, and waits for the beginning of the answer.
    pub(crate) async fn ask(
        &self,
        method: Method,
        (path, query): (&str, Option<&str>),
        headers: HeaderMap,
        body: impl Into<reqwest::Body>,
    ) -> Result<reqwest::Response, UpstreamError> {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{path}", url.path().trim_end_matches('/')));
        url.set_query(query);
        let request = self.client.request(method, url).headers(headers).body(body);
        let asked = timeout(self.timeout, request.send()).await;
        let asked = asked.map_err(|_| UpstreamError::TimedOut(self.timeout))?;
        let answer = asked.map_err(|error| match innermost(&error) {
            why if error.is_connect() => UpstreamError::Unreachable(why),
            why => UpstreamError::BrokeOff(why),
        })?;
        if answer.status().is_informational() {
            return Err(UpstreamError::BrokeOff("it switches protocols".to_owned()));
        }
        Ok(answer)
    }

    /// The headers of a request that no caller's stands behind.
    pub(crate) fn own_headers(&self) -> HeaderMap {
        self.headers(&HeaderMap::new(), &Keys::new(&AuthConfig::default()))
    }

    /// The headers that pass, with the key. A key of this server's own never passes.
    pub(crate) fn headers(&self, caller: &HeaderMap, keys: &Keys) -> HeaderMap {
        let mut passed = HeaderMap::new();
        for (name, value) in caller {
            let is_listed =
                PASSED_ON.contains(&name.as_str()) || name.as_str().starts_with("openai-");
            if is_listed && !keys.is_within(value) {
                passed.insert(name, value.clone());
            }
        }
        match self.api {
            Api::OpenAi => {
                let own = caller.get(header::AUTHORIZATION).filter(|value| {
                    self.forward_authorization && !value.is_empty() && !keys.is_within(value)
                });
                passed.extend(
                    own.or(self.key.as_ref())
                        .map(|value| (header::AUTHORIZATION, value.clone())),
                );
            }
            Api::Anthropic => {
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
        let mut headers = headers_back(answer.headers());
        let has_events = is_of_events(&headers);
        // As the body is really framed, whatever the upstream's head says; what is said of an error comes on top.
        if let Some(length) = answer.content_length().filter(|_| !has_events) {
            headers.insert(header::CONTENT_LENGTH, length.into());
        }
        let (api, limit) = (self.api, self.timeout);
        let pieces = stream::unfold(Some(answer), move |answer| async move {
            let mut answer = answer?;
            match next_piece(&mut answer, limit).await {
                Ok(piece) => Some((Ok(piece?), Some(answer))),
                Err(error) if has_events => {
                    tracing::warn!("A stream of a chat answer ends early: {error}");
                    Some((Ok(api.event(&error)), None))
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
        while let Some(piece) = next_piece(&mut answer, self.timeout).await? {
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
pub(crate) async fn next_piece(
    answer: &mut reqwest::Response,
    limit: Duration,
) -> Result<Option<Bytes>, UpstreamError> {
    let piece = timeout(limit, answer.chunk()).await;
    let piece = piece.map_err(|_| UpstreamError::TimedOut(limit))?;
    piece.map_err(|error| UpstreamError::BrokeOff(innermost(&error)))
}

/// The headers of an answer that pass.
pub(crate) fn headers_back(headers: &HeaderMap) -> HeaderMap {
    let passes = |name: &str| {
        PASSED_BACK.contains(&name)
            || ["x-ratelimit-", "openai-", "anthropic-"]
                .iter()
                .any(|start| name.starts_with(start))
    };
    let headers = headers.iter().filter(|(name, _)| passes(name.as_str()));
    headers
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Whether an answer is a stream of server-sent events that can be added to.
fn is_of_events(headers: &HeaderMap) -> bool {
    is_of_kind(headers, "text/event-stream") && !headers.contains_key(header::CONTENT_ENCODING)
}

/// Whether a body is of a media type.
pub(crate) fn is_of_kind(headers: &HeaderMap, media_type: &str) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case(media_type)
}

impl Api {
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

/// A body on its way, with its share of the memory, which is given back as soon as it is sent.
pub(crate) struct Passing {
    left: Bytes,
    _share: Arc<Share>,
}

impl Passing {
    /// A body that is accounted for by `share`.
    pub(crate) fn new(body: String, share: Arc<Share>) -> Self {
        Self {
            left: body.into(),
            _share: share,
        }
    }
}

impl http_body::Body for Passing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = self.left.len().min(PIECE);
        let piece = self.left.split_to(length);
        Poll::Ready((length > 0).then_some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.len() as u64)
    }
}

impl From<Passing> for reqwest::Body {
    fn from(body: Passing) -> Self {
        Self::wrap(body)
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
