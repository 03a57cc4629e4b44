//! `POST /v1/messages`, in Anthropic's shape.

use axum::{Extension, extract::State, response::Response};
use http::{HeaderMap, Method, Uri};

use super::{ChatFields, configured, name_prompt, passed_headers, passed_query, prepared};
use crate::{
    api::openapi::{ChatProblems, SessionParameters},
    app::App,
    chat::{
        anthropic::{self, NoSystem},
        errors::AnthropicError,
        upstream::Passing,
    },
    error::{ApiError, FaultItem},
    extract::{PassedShare, WholeBody, work_on},
};

/// Answers a conversation of Anthropic's shape: puts the prompt before its `system` and passes it on to the upstream.
///
/// The part of the prompt that is the same for all sessions is a block of its own, with `cache_control` where the request leaves room for
/// that. All else passes as it is, in both directions.
#[utoipa::path(
    post, path = "/v1/messages", tag = "chat",
    params(SessionParameters),
    request_body(content = ChatFields, description = "A request of the Anthropic API, with fields of Foreword's beside"),
    responses(
        (status = 200, description = "The upstream's answer, also as a stream of events", body = Object),
        ChatProblems,
    ),
)]
pub(crate) async fn create_message(
    State(app): State<App>,
    uri: Uri,
    headers: HeaderMap,
    Extension(WholeBody(body)): Extension<WholeBody>,
    Extension(PassedShare(share)): Extension<PassedShare>,
) -> Result<Response, AnthropicError> {
    let upstream = app.upstreams().anthropic.as_ref();
    let upstream = configured(
        upstream,
        &["chat.anthropic.base_url", "chat.anthropic.api_key"],
    )?;
    let bytes = body.len();
    let (request, prompt) = prepared(&app, &uri, &headers, body).await?;
    let placing = work_on(bytes, move || {
        let system = anthropic::with_prompt(request.body(), &prompt)?;
        Ok((request.passed_on("system", system), prompt))
    });
    let (body, prompt) = placing.await.map_err(no_system)?;
    let headers = passed_headers(&app, upstream, &headers);
    let query = passed_query(&uri);
    let body = Passing::new(body, share);
    let asked = upstream.ask(
        Method::POST,
        ("v1/messages", query.as_deref()),
        headers,
        body,
    );
    let answer = asked.await?;
    Ok(name_prompt(upstream.pass_back(answer), &prompt))
}

fn no_system(_: NoSystem) -> ApiError {
    ApiError::invalid(vec![FaultItem::new(
        "/system",
        "`system` must be a text or a list of blocks",
    )])
}
