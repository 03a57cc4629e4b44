//! What a route asks of its callers: a key, a body of bearable size, and patience only up to a point.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{MatchedPath, Request, State},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::MethodRouter,
};
use http::{HeaderMap, HeaderName, StatusCode};
use tracing::Span;

use crate::{
    app::App,
    auth::{Caller, Denied, OWN_HEADER},
    chat::errors::refuse,
    config::Role,
    error::ApiError,
    extract::{PassedShare, Share, WholeBody},
    pages::refusal,
};

use super::reader::Reader;

/// What a route asks; every route in `router.rs` names one.
#[derive(Clone)]
pub(crate) struct Access {
    app: App,
    opens: Opens,
    reading: Reading,
    max_body: usize,
    work_limit: Option<Duration>,
    /// Whether `Authorization` is for somebody else, so that only our own header counts.
    own_header_only: bool,
    /// Whether the body is passed on, so that its share of the memory is the handler's to give back.
    passes_on: bool,
}

/// Whom a route lets in.
#[derive(Debug, Clone, Copy)]
enum Opens {
    ToAll,
    To(Role),
    /// To whoever has a key, or a capability in the place of the chat id.
    ToLinks,
}

/// What becomes of the body.
#[derive(Debug, Clone, Copy)]
enum Reading {
    /// It is read to its end before the handler runs.
    Whole,
    /// The handler reads it, and bounds what it reads.
    Streamed,
    /// It is not read.
    Never,
}

impl Access {
    /// Open to all; whatever a caller sends along is not read.
    pub(crate) fn open(app: &App) -> Self {
        let http = &app.config().http;
        Self {
            app: app.clone(),
            opens: Opens::ToAll,
            reading: Reading::Never,
            max_body: http.api_max_body,
            work_limit: Some(http.timeout()),
            own_header_only: false,
            passes_on: false,
        }
    }

    /// An API key, a JSON body, an answer in time.
    pub(crate) fn api(app: &App) -> Self {
        Self {
            opens: Opens::To(Role::Api),
            reading: Reading::Whole,
            ..Self::open(app)
        }
    }

    /// The same with an admin key.
    pub(crate) fn admin(app: &App) -> Self {
        Self {
            opens: Opens::To(Role::Admin),
            ..Self::api(app)
        }
    }

    /// An API key or a capability link; nothing is read, and files take as long as they take.
    pub(crate) fn link(app: &App) -> Self {
        Self {
            opens: Opens::ToLinks,
            work_limit: None,
            ..Self::open(app)
        }
    }

    /// The same, where the handler reads the body piece by piece and work takes as long as it takes.
    pub(crate) fn streaming(&self) -> Self {
        Self {
            reading: Reading::Streamed,
            ..self.without_time_limit()
        }
    }

    /// The same, where the body is a whole library.
    pub(crate) fn library_body(&self) -> Self {
        Self {
            max_body: self.app.config().http.library_max_body,
            ..self.clone()
        }
    }

    /// The same, where a JSON body may hold a whole library as a text, most of whose characters may be escaped.
    pub(crate) fn library_in_json(&self) -> Self {
        let library = self.app.config().http.library_max_body;
        Self {
            max_body: library.saturating_mul(2).saturating_add(self.max_body),
            ..self.clone()
        }
    }

    /// The same, where a body may hold an MCP message and work takes as long as it takes.
    pub(crate) fn mcp(&self) -> Self {
        Self {
            max_body: self.app.config().http.mcp_max_body,
            ..self.without_time_limit()
        }
    }

    /// The same, where a body may hold a conversation, work takes as long as it takes, and the caller's `Authorization`
    /// may be for the upstream.
    pub(crate) fn chat(&self) -> Self {
        let chat = &self.app.config().chat;
        Self {
            max_body: chat.max_body,
            own_header_only: chat.upstream.forward_authorization,
            passes_on: true,
            ..self.without_time_limit()
        }
    }

    /// The same, where `Authorization` is never for the upstream.
    pub(crate) fn with_our_keys_only(&self) -> Self {
        Self {
            own_header_only: false,
            ..self.clone()
        }
    }

    /// The same, where work takes as long as it takes.
    pub(crate) fn without_time_limit(&self) -> Self {
        Self {
            work_limit: None,
            ..self.clone()
        }
    }

    /// Puts the guard in front of `routes`.
    pub(crate) fn on(&self, routes: MethodRouter<App>) -> MethodRouter<App> {
        routes.route_layer(from_fn_with_state(self.clone(), guard))
    }
}

/// The key is checked before a byte of the body is read, and the body is read before the time for the work begins.
async fn guard(State(access): State<Access>, request: Request, next: Next) -> Response {
    let refused = refusal_for(&request);
    match admit(&access, request).await {
        Ok((request, _share)) => work(access.work_limit, request, next).await,
        Err(error) => refused(error),
    }
}

/// How to refuse this request: people follow links, and read pages.
fn refusal_for(request: &Request) -> impl FnOnce(ApiError) -> Response + use<> {
    let route = request.extensions().get::<MatchedPath>();
    let is_under = |place| route.is_some_and(|route| route.as_str().starts_with(place));
    let (is_page, is_file) = (is_under("/preview/"), is_under("/files/"));
    let headers = is_file.then(|| request.headers().clone());
    let path = request.uri().path().to_owned();
    move |error| match headers {
        _ if is_page => refusal::page(error),
        Some(headers) => refusal::answer(error, &headers),
        None => refuse(&path, error),
    }
}

/// The request with its body, and the body's share of the memory.
async fn admit(access: &Access, request: Request) -> Result<(Request, Option<Share>), ApiError> {
    let (mut parts, body) = request.into_parts();
    match access.opens {
        Opens::ToAll => {}
        Opens::To(role) => {
            let own_header = access.own_header_only.then(|| only_ours(&parts.headers));
            let headers = own_header.as_ref().unwrap_or(&parts.headers);
            let caller = access.app.keys().caller_with(headers, role);
            let caller = caller.map_err(|denied| match denied {
                Denied::NoKey if access.own_header_only => Denied::NoKeyInOwnHeader,
                denied => denied,
            })?;
            record(&caller);
            parts.extensions.insert(caller);
        }
        Opens::ToLinks => {
            let reader = Reader::admit(&access.app, &parts)?;
            parts.extensions.insert(reader);
        }
    }
    match access.reading {
        Reading::Whole => {}
        Reading::Streamed => return Ok((Request::from_parts(parts, body), None)),
        Reading::Never => return Ok((Request::from_parts(parts, Body::empty()), None)),
    }
    let time_limit = access.app.config().http.timeout();
    let memory = if access.passes_on {
        access.app.chat_memory()
    } else {
        access.app.body_memory()
    };
    let reading = memory.read(body, access.max_body, time_limit);
    let (bytes, share) = reading.await?;
    parts.extensions.insert(WholeBody(bytes.clone()));
    let share = if access.passes_on {
        // The handler gives it back when the body is passed on, which may be long before there is an answer.
        parts.extensions.insert(PassedShare(Arc::new(share)));
        None
    } else {
        Some(share)
    };
    Ok((Request::from_parts(parts, Body::from(bytes)), share))
}

/// The key in our own header, and nothing else.
fn only_ours(headers: &HeaderMap) -> HeaderMap {
    let own = headers.get(OWN_HEADER).cloned();
    own.map(|key| (HeaderName::from_static(OWN_HEADER), key))
        .into_iter()
        .collect()
}

/// Notes who calls, for the log.
pub(super) fn record(caller: &Caller) {
    if let Some(name) = &caller.key_name {
        Span::current().record("key", &**name);
    }
}

async fn work(limit: Option<Duration>, request: Request, next: Next) -> Response {
    let Some(limit) = limit else {
        return next.run(request).await;
    };
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "timed_out",
            format!(
                "the work took longer than {} s and is no longer waited for; a change may still come about: look before \
                 you try again",
                limit.as_secs()
            ),
        )
        .into_response(),
    }
}
