//! `POST /v1/messages`, in Anthropic's shape.

use axum::{Extension, extract::State, response::Response};
use http::{HeaderMap, Method, Uri};

use super::{ChatFields, configured, name_prompt, prepared};
use crate::{
    api::openapi::ChatProblems,
    app::App,
    chat::{anthropic, errors::AnthropicError},
    error::{ApiError, FaultItem},
    extract::{WholeBody, work_on},
};

/// Answers a conversation of Anthropic's shape: puts the prompt before its `system` and passes it on to the upstream.
///
/// The part of the prompt that is the same for all sessions is a block of its own, with `cache_control` where the request leaves room for
/// that. All else passes as it is, in both directions.
#[utoipa::path(
    post, path = "/v1/messages", tag = "chat",
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
) -> Result<Response, AnthropicError> {
    let upstream = app.upstreams().anthropic.as_ref();
    let upstream = configured(
        upstream,
        "chat.anthropic.base_url` and `chat.anthropic.api_key",
    )?;
    let sent = body.clone();
    let (request, prompt) = prepared(&app, &uri, &headers, body).await?;
    let placing = work_on(sent.len(), move || {
        let may_cache = str::from_utf8(&sent).is_ok_and(anthropic::leaves_room);
        let system = anthropic::with_prompt(request.get("system"), &prompt, may_cache)?;
        Some((request.passed_on("system", system), prompt))
    });
    let (body, prompt) = placing.await.ok_or_else(no_system)?;
    let headers = upstream.headers(&headers, app.keys());
    let asked = upstream.ask(Method::POST, "v1/messages", headers, body.into());
    let answer = asked.await?;
    Ok(name_prompt(upstream.pass_back(answer), &prompt))
}

fn no_system() -> ApiError {
    ApiError::invalid(vec![FaultItem::new(
        "/system",
        "`system` must be a text or a list of blocks",
    )])
}
