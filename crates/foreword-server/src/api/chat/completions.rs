//! `POST /v1/chat/completions`, in OpenAI's shape.

use axum::{Extension, extract::State, response::Response};
use http::{HeaderMap, Method, Uri};

use super::{ChatFields, OPENAI, configured, name_prompt, passed_headers, passed_query, prepared};
use crate::{
    api::openapi::{ChatProblems, SessionParameters},
    app::App,
    chat::{errors::OpenAiError, openai, upstream::Passing},
    error::{ApiError, FaultItem},
    extract::{PassedShare, WholeBody, work_on},
};

/// Answers a conversation: puts the prompt before its messages and passes it on to the upstream.
///
/// All else passes as it is, in both directions: fields, numbers, images, tools, streams. A prompt that Foreword put there earlier is
/// replaced. `model` may name a profile behind its last `@`.
#[utoipa::path(
    post, path = "/v1/chat/completions", tag = "chat",
    params(SessionParameters),
    request_body(content = ChatFields, description = "A request of the OpenAI API, with fields of Foreword's beside"),
    responses(
        (status = 200, description = "The upstream's answer, also as a stream of events", body = Object),
        ChatProblems,
    ),
)]
pub(crate) async fn create_completion(
    State(app): State<App>,
    uri: Uri,
    headers: HeaderMap,
    Extension(WholeBody(body)): Extension<WholeBody>,
    Extension(PassedShare(share)): Extension<PassedShare>,
) -> Result<Response, OpenAiError> {
    let upstream = configured(app.upstreams().openai.as_ref(), OPENAI)?;
    let bytes = body.len();
    let (request, prompt) = prepared(&app, &uri, &headers, body).await?;
    let role = app.config().chat.system_role;
    let placing = work_on(bytes, move || {
        let messages = request.body().get("messages").unwrap_or_default();
        let messages = openai::with_prompt(messages, &prompt, role)?;
        Some((request.passed_on("messages", Some(messages)), prompt))
    });
    let (body, prompt) = placing.await.ok_or_else(no_messages)?;
    let headers = passed_headers(&app, upstream, &headers);
    let query = passed_query(&uri);
    let body = Passing::new(body, share);
    let asked = upstream.ask(
        Method::POST,
        ("chat/completions", query.as_deref()),
        headers,
        body,
    );
    let answer = asked.await?;
    Ok(name_prompt(upstream.pass_back(answer), &prompt))
}

fn no_messages() -> ApiError {
    ApiError::invalid(vec![FaultItem::new(
        "/messages",
        "`messages` must be a list of messages",
    )])
}
