//! Chat endpoints for clients that speak no MCP: the shapes of OpenAI, of Anthropic, of LiteLLM, and a small one of our own.

pub(crate) mod completions;
pub(crate) mod litellm;
pub(crate) mod messages;
pub(crate) mod models;
pub(crate) mod turn;

use axum::response::Response;
use bytes::Bytes;
use foreword_compose::Library;
use form_urlencoded::Serializer;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use indexmap::IndexMap;
use utoipa::ToSchema;

use crate::{
    app::App,
    chat::{ChatPrompt, ChatRequest, Named, upstream::Upstream},
    error::ApiError,
    extract::{require_json, work_on},
    operations::chat::prompt_of_chat,
    session::{Session, SessionSources},
};

const X_PROMPT_REVISION: HeaderName = HeaderName::from_static("x-prompt-revision");
const X_PROFILE_ID: HeaderName = HeaderName::from_static("x-profile-id");

/// What a body may hold for Foreword, beside what it holds for the upstream; it is not passed on.
#[derive(Debug, ToSchema)]
#[expect(
    dead_code,
    reason = "`chat::ChatRequest` reads them among all others; this describes them"
)]
pub(crate) struct ChatFields {
    /// The profile; it counts before one behind the model's name (`MODEL@PROFILE`).
    profile_id: Option<String>,
    /// If not blank, it is the prompt.
    system_override: Option<String>,
    /// A text, or a list of texts, that come after everything else: memory, retrieved text.
    #[schema(schema_with = crate::api::prompts::compose::text_or_texts, required = false)]
    additional_context: Option<Vec<String>>,
    /// Values for placeholders; they win over everything else.
    #[schema(value_type = Option<std::collections::HashMap<String, String>>)]
    variables: Option<IndexMap<String, String>>,
    /// The chat.
    chat_id: Option<String>,
    /// The user's e-mail address.
    user_email: Option<String>,
}

/// Reads a request and makes its prompt.
async fn prepared(
    app: &App,
    uri: &Uri,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<(ChatRequest, ChatPrompt), ApiError> {
    require_json(headers)?;
    let mut request = work_on(body.len(), move || ChatRequest::read(body)).await?;
    request.split_model(&app.store().snapshot().library);
    let session = session(app, uri, headers, &request.named)?;
    let prompt = prompt_of_chat(app, &session, &request.extras).await?;
    Ok((request, prompt))
}

/// The session that headers, body and query name: headers win over both, the body over the query. A chat is never required here.
fn session(app: &App, uri: &Uri, headers: &HeaderMap, named: &Named) -> Result<Session, ApiError> {
    let mut query = Serializer::new(String::new());
    for (name, value) in [
        ("profile_id", &named.profile_id),
        ("chat_id", &named.chat_id),
        ("user_email", &named.user_email),
    ] {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    let named = query.finish();
    let query = [&named, uri.query().unwrap_or_default()].join("&");
    let sources = SessionSources::http(headers, Some(&query));
    Ok(app.sessions().read(sources)?.as_given().clone())
}

/// The upstream, or that there is none, and what to set.
fn configured<'a>(upstream: Option<&'a Upstream>, setting: &str) -> Result<&'a Upstream, ApiError> {
    upstream.ok_or_else(|| {
        ApiError::new(
            StatusCode::NOT_IMPLEMENTED,
            "no_upstream",
            format!("this server passes such requests on to nobody; set `{setting}`"),
        )
    })
}

/// Names the prompt in the head of an answer.
fn name_prompt(mut response: Response, prompt: &ChatPrompt) -> Response {
    let values = [
        (X_PROMPT_REVISION, Some(&prompt.revision)),
        (X_PROFILE_ID, prompt.profile_id.as_ref()),
    ];
    for (name, value) in values {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// The ids of all profiles.
fn profiles(library: &Library) -> impl Iterator<Item = &str> {
    library
        .draft()
        .profiles
        .iter()
        .map(|profile| profile.id.as_str())
}
