//! What a route asks of its callers: a key, a body of bearable size, and patience only up to a point.

use std::time::Duration;

use axum::{
    body::Body,
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::MethodRouter,
};
use http::StatusCode;
use tracing::Span;

use crate::{
    app::App,
    config::Role,
    error::ApiError,
    extract::{Share, WholeBody},
};

/// What a route asks; every route in `router.rs` names one.
#[derive(Clone)]
pub(crate) struct Access {
    app: App,
    role: Option<Role>,
    max_body: usize,
    work_limit: Option<Duration>,
}

impl Access {
    /// Open to all; whatever a caller sends along is not read.
    pub(crate) fn open(app: &App) -> Self {
        let http = &app.config().http;
        Self {
            app: app.clone(),
            role: None,
            max_body: http.api_max_body,
            work_limit: Some(http.timeout()),
        }
    }

    /// An API key, a JSON body, an answer in time.
    pub(crate) fn api(app: &App) -> Self {
        Self {
            role: Some(Role::Api),
            ..Self::open(app)
        }
    }

    /// The same with an admin key.
    pub(crate) fn admin(app: &App) -> Self {
        Self {
            role: Some(Role::Admin),
            ..Self::open(app)
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
    match admit(&access, request).await {
        Ok((request, _share)) => work(access.work_limit, request, next).await,
        Err(error) => error.into_response(),
    }
}

/// The request with its body, and the body's share of the memory.
async fn admit(access: &Access, request: Request) -> Result<(Request, Option<Share>), ApiError> {
    let (mut parts, body) = request.into_parts();
    let Some(role) = access.role else {
        return Ok((Request::from_parts(parts, Body::empty()), None));
    };
    let caller = access.app.keys().caller_with(&parts.headers, role)?;
    if let Some(name) = &caller.key_name {
        Span::current().record("key", &**name);
    }
    parts.extensions.insert(caller);
    let time_limit = access.app.config().http.timeout();
    let reading = access
        .app
        .body_memory()
        .read(body, access.max_body, time_limit);
    let (bytes, share) = reading.await?;
    parts.extensions.insert(WholeBody(bytes.clone()));
    Ok((Request::from_parts(parts, Body::from(bytes)), Some(share)))
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
