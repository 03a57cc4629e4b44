//! Tier 6: the session's prompt over plain HTTP, as text or with all that is known about it.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use foreword_compose::Composition;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use http_body::{Frame, SizeHint};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    api::{
        openapi::ReadProblems,
        prompts::{
            IfNoneMatch,
            compose::{PromptDiagnostic, PromptPart},
        },
    },
    app::App,
    config::Form,
    error::ApiError,
    extract::{Query, accept},
    mcp::instructions::{form_in_query, nobodys_session},
    metrics::Tier,
    render::{Extras, Rendered, Shape},
    session::{Session, SessionRequest, SessionSources},
};

const X_PROMPT_REVISION: HeaderName = HeaderName::from_static("x-prompt-revision");
const X_PROMPT_DEGRADED: HeaderName = HeaderName::from_static("x-prompt-degraded");
const X_PUBLIC_BASE_URL: HeaderName = HeaderName::from_static("x-public-base-url");
const X_FILE_BASE_URL: HeaderName = HeaderName::from_static("x-file-base-url");
const X_ARCHIVE_URL: HeaderName = HeaderName::from_static("x-archive-url");
const X_PREVIEW_URL: HeaderName = HeaderName::from_static("x-preview-url");

/// What the query may ask beside the session and the form.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SystemPromptQuery {
    /// Leave the session's placeholders in place.
    #[serde(default)]
    template: bool,
    /// The shape of the answer; `Accept` decides where it is not given.
    #[param(inline)]
    format: Option<Format>,
    /// How callers of an older system name a chat: by a URL that ends with it.
    file_base_url: Option<String>,
    /// The profile; the library's default without it.
    profile_id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    Text,
    Json,
}

/// Delivers the session's prompt.
///
/// The session is named by headers (see `/mcp-info`) or by the query; headers win.
#[utoipa::path(
    get, path = "/system-prompt", tag = "delivery",
    params(
        ("chat_id" = Option<String>, Query, description = "The chat; `default` without it"),
        ("user_email" = Option<String>, Query, description = "The user's e-mail address"),
        ("user_name" = Option<String>, Query, description = "The user's name"),
        (
            "form" = Option<String>, Query,
            description = "`full` (the default), `brief` (at most 2,000 UTF-16 code units), `hint` (512), or `neutral`, \
                           which holds nothing of a session",
        ),
        SystemPromptQuery,
        IfNoneMatch,
    ),
    responses(
        (status = 200, description = "The prompt", content(
            (String = "text/plain"),
            (SystemPromptAnswer = "application/json"),
        )),
        ReadProblems,
    ),
)]
pub(crate) async fn get_system_prompt(
    State(app): State<App>,
    Query(query): Query<SystemPromptQuery>,
    if_none_match: IfNoneMatch,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let form = form_in_query(uri.query(), "form")
        .map_err(|error| invalid_query(error.to_string()))?
        .unwrap_or(Form::Full);
    let shape = match (query.template, form) {
        (false, form) => Shape::Form(form),
        (true, Form::Full) => Shape::Template,
        (true, _) => {
            let detail = "a template has one form; leave out `form` or `template`";
            return Err(invalid_query(detail));
        }
    };
    let request = read_session(&app, &headers, &uri, query.file_base_url.as_deref())?;
    let session = match form {
        Form::Neutral => {
            let profile_id = query.profile_id.as_deref().map(str::trim);
            nobodys_session(profile_id.filter(|id| !id.is_empty()))
        }
        Form::Full | Form::Brief | Form::Hint => request.require()?,
    };
    let prompt = match query.format.unwrap_or_else(|| preferred_format(&headers)) {
        Format::Text => Prompt::as_text(&app, &session, shape).await?,
        Format::Json => Prompt::as_json(&app, &session, shape).await?,
    };
    app.metrics().delivery(Tier::SystemPrompt);
    let mut response = prompt.unless(&if_none_match);
    let head = response.headers_mut();
    head.insert(header::VARY, app.sessions().vary());
    head.insert(X_PUBLIC_BASE_URL, value(app.links().public_base_url()));
    if form != Form::Neutral {
        let links = app.links().chat(
            &session.chat_id,
            session.prompt_email().map(AsRef::as_ref),
            app.links().epoch(app.clock()),
        );
        head.insert(X_FILE_BASE_URL, value(&links.file_base_url));
        head.insert(X_ARCHIVE_URL, value(&links.archive_url));
        head.insert(X_PREVIEW_URL, value(&links.preview_url));
    }
    Ok(response)
}

/// An answer, before it is known whether the client has it already.
struct Prompt {
    body: Body,
    content_type: &'static str,
    /// The revision where it names this text, else a hash of the body.
    tag: String,
    revision: String,
    degraded: bool,
}

impl Prompt {
    async fn as_text(app: &App, session: &Session, shape: Shape) -> Result<Self, ApiError> {
        let prompt = app.renderer().render(session, shape).await?;
        let revision = prompt.revision().to_owned();
        let tag = match shape {
            Shape::Template | Shape::Bare | Shape::Form(Form::Full | Form::Neutral) => {
                revision.clone()
            }
            // What a short form holds depends on priorities too, which the full text does not show.
            Shape::Form(Form::Brief | Form::Hint) => {
                foreword_compose::revision(&prompt.text(), None)
            }
        };
        Ok(Self {
            body: Body::new(Chunks(prompt.chunks().into())),
            content_type: "text/plain; charset=utf-8",
            tag,
            revision,
            degraded: prompt.is_degraded(),
        })
    }

    async fn as_json(app: &App, session: &Session, shape: Shape) -> Result<Self, ApiError> {
        let extras = Extras::default();
        let rendered = app.renderer().render_with(session, shape, &extras).await?;
        let (revision, degraded) = (rendered.revision.clone(), rendered.degraded);
        let answer = SystemPromptAnswer::new(rendered, session);
        let body = serde_json::to_string(&answer).expect("an answer is plain data");
        Ok(Self {
            tag: foreword_compose::revision(&body, None),
            body: body.into(),
            content_type: "application/json",
            revision,
            degraded,
        })
    }

    fn unless(self, if_none_match: &IfNoneMatch) -> Response {
        let mut response = if if_none_match.holds(Some(&self.tag)) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            let content_type = HeaderValue::from_static(self.content_type);
            ([(header::CONTENT_TYPE, content_type)], self.body).into_response()
        };
        let head = response.headers_mut();
        head.insert(header::ETAG, value(&format!("\"{}\"", self.tag)));
        head.insert(X_PROMPT_REVISION, value(&self.revision));
        head.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("private, no-cache"),
        );
        if self.degraded {
            head.insert(X_PROMPT_DEGRADED, HeaderValue::from_static("true"));
        }
        response
    }
}

/// The session; where nothing else names a chat, the last segment of the legacy URL does.
fn read_session(
    app: &App,
    headers: &HeaderMap,
    uri: &Uri,
    file_base_url: Option<&str>,
) -> Result<SessionRequest, ApiError> {
    let sources = SessionSources::http(headers, uri.query());
    let request = app.sessions().read(sources)?;
    let legacy = file_base_url.and_then(chat_in_url);
    match legacy {
        Some(chat) if !request.as_given().chat_id_given => {
            Ok(app.sessions().read(SessionSources {
                path_chat: Some(&chat),
                ..sources
            })?)
        }
        _ => Ok(request),
    }
}

/// The last segment of the path, without a capability.
fn chat_in_url(url: &str) -> Option<String> {
    let path = url.split(['?', '#']).next()?;
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    let (_, segment) = path.trim_end_matches('/').rsplit_once('/')?;
    let chat = segment.split('~').next()?;
    let chat = percent_decode_str(chat).decode_utf8().ok()?;
    (!chat.is_empty()).then(|| chat.into_owned())
}

/// JSON only where it is wanted more than text: clients that name both, or anything, mean the plain prompt.
fn preferred_format(headers: &HeaderMap) -> Format {
    let json = accept::weight(headers, &["application/json"]);
    if json > accept::weight(headers, &["text/plain", "text/*", "*/*"]) {
        Format::Json
    } else {
        Format::Text
    }
}

fn value(text: &str) -> HeaderValue {
    HeaderValue::try_from(text).expect("URLs, revisions and header names are visible ASCII")
}

fn invalid_query(detail: impl Into<String>) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "invalid_query", detail)
}

/// A prompt with all that is known about it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SystemPromptAnswer {
    /// The prompt.
    system_prompt: String,
    /// The first 16 hex digits of SHA-256 over the full prompt, with its own revision, where it holds it, as zeros.
    revision: String,
    /// The chat in force.
    chat_id: String,
    /// The id of the profile in force; null in a library without profiles.
    profile_id: Option<String>,
    /// What the full prompt is made of, in order.
    parts: Vec<PromptPart>,
    /// Placeholders without a value, in order of first appearance.
    unresolved: Vec<String>,
    /// Problems of this prompt.
    diagnostics: Vec<PromptDiagnostic>,
}

impl SystemPromptAnswer {
    fn new(rendered: Rendered, session: &Session) -> Self {
        let Composition {
            parts,
            unresolved,
            diagnostics,
            ..
        } = rendered.composition;
        Self {
            system_prompt: rendered.text.to_string(),
            revision: rendered.revision,
            chat_id: session.chat_id.to_string(),
            profile_id: rendered.profile_id,
            parts: parts.into_iter().map(Into::into).collect(),
            unresolved,
            diagnostics: diagnostics.into_iter().map(Into::into).collect(),
        }
    }
}

/// A body of pieces that are in memory already; nothing is copied together.
struct Chunks(VecDeque<Bytes>);

impl http_body::Body for Chunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|chunk| chunk.len() as u64).sum())
    }
}
