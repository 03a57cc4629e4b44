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
use percent_encoding::percent_decode_str;
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

/// How a chat request is refused, in OpenAI's shape; `/v1/messages` refuses in Anthropic's: `type`, and `error` with `type` and `message`.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "`chat::errors` writes it; this describes it")]
pub(crate) struct ChatRefusal {
    error: ChatRefusalReason,
}

/// Why.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "`chat::errors` writes it; this describes it")]
pub(crate) struct ChatRefusalReason {
    /// What happened, and what to do next.
    message: String,
    /// The kind of error, as the API's clients know it.
    r#type: String,
    /// The field that is meant, if one is.
    param: Option<String>,
    /// A stable word for programs, in snake case.
    code: String,
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

/// The session that headers, body, query and model name, in this order where they differ. A chat is never required here.
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
    let of_body = query.finish();
    let mut query = Serializer::new(String::new());
    if let Some(profile) = &named.profile_of_model {
        query.append_pair("profile_id", profile);
    }
    let of_model = query.finish();
    let query = [&of_body, uri.query().unwrap_or_default(), &of_model].join("&");
    let sources = SessionSources::http(headers, Some(&query));
    Ok(app.sessions().read(sources)?.as_given().clone())
}

/// The upstream, or that there is none, and what to set.
fn configured<'a>(
    upstream: Option<&'a Upstream>,
    settings: &[&str],
) -> Result<&'a Upstream, ApiError> {
    upstream.ok_or_else(|| {
        let settings: Vec<String> = settings.iter().map(|name| format!("`{name}`")).collect();
        let settings = settings.join(" and ");
        ApiError::new(
            StatusCode::NOT_IMPLEMENTED,
            "no_upstream",
            format!("this server passes such requests on to nobody; set {settings}"),
        )
    })
}

/// What `/v1/chat/completions`, `/v1/models` and `/api/chat` need.
const OPENAI: &[&str] = &["chat.upstream.base_url"];

/// The headers of a caller that pass: none of those that name a session, whatever they are called here.
fn passed_headers(app: &App, upstream: &Upstream, headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for name in app.sessions().headers() {
        headers.remove(name);
    }
    upstream.headers(&headers, app.keys())
}

/// The query that passes: all but what names a session.
fn passed_query(uri: &Uri) -> Option<String> {
    let is_ours = |pair: &&str| {
        let name = percent_decode_str(pair.split('=').next().unwrap_or_default());
        let name = name.decode_utf8_lossy();
        ["chat_id", "user_email", "user_name", "profile_id"].contains(&&*name)
    };
    let pairs = uri.query()?.split('&').filter(|pair| !is_ours(pair));
    let query = pairs.collect::<Vec<_>>().join("&");
    (!query.is_empty()).then_some(query)
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
