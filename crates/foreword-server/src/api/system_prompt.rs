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
use foreword_compose::{Composition, Diagnostic, Part, SectionType, Severity, Stability, revision};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use http_body::{Frame, SizeHint};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

use crate::{
    app::App,
    config::Form,
    error::ApiError,
    extract::Query,
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
#[derive(Debug, Deserialize)]
pub(crate) struct SystemPromptQuery {
    /// Leave the session's placeholders in place.
    #[serde(default)]
    template: bool,
    /// The shape of the answer; `Accept` decides where it is not given.
    format: Option<Format>,
    /// How callers of an older system name a chat: by a URL that ends with it.
    file_base_url: Option<String>,
    /// The profile of a neutral text, which takes nothing from headers.
    profile_id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    Text,
    Json,
}

/// Delivers the session's prompt.
pub(crate) async fn get_system_prompt(
    State(app): State<App>,
    Query(query): Query<SystemPromptQuery>,
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
        Form::Neutral => nobodys_session(query.profile_id.as_deref()),
        Form::Full | Form::Brief | Form::Hint => request.require()?,
    };
    let prompt = match query.format.unwrap_or_else(|| preferred_format(&headers)) {
        Format::Text => Prompt::as_text(&app, &session, shape).await?,
        Format::Json => Prompt::as_json(&app, &session, shape)?,
    };
    app.metrics().delivery(Tier::SystemPrompt);
    let mut response = prompt.into_response_for(&headers);
    let head = response.headers_mut();
    head.insert(header::VARY, vary(&app));
    head.insert(X_PUBLIC_BASE_URL, value(app.links().public_base_url()));
    if form != Form::Neutral {
        let links = app
            .links()
            .chat(&session.chat_id, app.links().epoch(app.clock()));
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
            Shape::Template | Shape::Form(Form::Full | Form::Neutral) => revision.clone(),
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

    fn as_json(app: &App, session: &Session, shape: Shape) -> Result<Self, ApiError> {
        let rendered = app
            .renderer()
            .render_with(session, shape, &Extras::default())?;
        let body = SystemPromptBody::new(&rendered, session);
        let body = serde_json::to_string(&body).expect("an answer is plain data");
        Ok(Self {
            tag: revision(&body, None),
            body: body.into(),
            content_type: "application/json",
            revision: rendered.revision,
            degraded: rendered.degraded,
        })
    }

    fn into_response_for(self, headers: &HeaderMap) -> Response {
        let tag = format!("\"{}\"", self.tag);
        let mut response = if has_already(headers, &tag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            let content_type = HeaderValue::from_static(self.content_type);
            ([(header::CONTENT_TYPE, content_type)], self.body).into_response()
        };
        let head = response.headers_mut();
        head.insert(header::ETAG, value(&tag));
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
    let accept: Vec<&str> = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .collect();
    let weight = |ranges: &[&str]| {
        let weights = accept.iter().filter_map(|entry| weight_of(entry, ranges));
        weights.fold(0.0, f32::max)
    };
    if weight(&["application/json"]) > weight(&["text/plain", "text/*", "*/*"]) {
        Format::Json
    } else {
        Format::Text
    }
}

fn weight_of(entry: &str, ranges: &[&str]) -> Option<f32> {
    let mut parameters = entry.split(';').map(str::trim);
    let range = parameters.next()?;
    if !ranges.iter().any(|known| known.eq_ignore_ascii_case(range)) {
        return None;
    }
    let weight = parameters.find_map(|parameter| parameter.strip_prefix("q="));
    Some(weight.and_then(|weight| weight.parse().ok()).unwrap_or(1.0))
}

fn has_already(headers: &HeaderMap, tag: &str) -> bool {
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

fn vary(app: &App) -> HeaderValue {
    let names = app.sessions().headers().map(HeaderName::as_str);
    let names: Vec<&str> = names.chain(["accept"]).collect();
    value(&names.join(", "))
}

fn value(text: &str) -> HeaderValue {
    HeaderValue::try_from(text).expect("URLs, revisions and header names are visible ASCII")
}

fn invalid_query(detail: impl Into<String>) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "invalid_query", detail)
}

/// A prompt with all that is known about it.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct SystemPromptBody<'a> {
    /// The text.
    system_prompt: &'a str,
    /// The first 16 hex digits of SHA-256 over the full text.
    revision: &'a str,
    /// The chat in force.
    chat_id: &'a str,
    /// The profile in force.
    profile_id: Option<&'a str>,
    /// What the full text is made of, in order.
    parts: Vec<PartBody<'a>>,
    /// Placeholders without a value, in order of first appearance.
    unresolved: &'a [String],
    /// Problems of this prompt.
    diagnostics: Vec<DiagnosticBody<'a>>,
}

impl<'a> SystemPromptBody<'a> {
    fn new(rendered: &'a Rendered, session: &'a Session) -> Self {
        let Composition {
            parts,
            unresolved,
            diagnostics,
            ..
        } = &rendered.composition;
        Self {
            system_prompt: &rendered.text,
            revision: &rendered.revision,
            chat_id: session.chat_id.as_str(),
            profile_id: rendered.profile_id.as_deref(),
            parts: parts.iter().map(PartBody::from).collect(),
            unresolved,
            diagnostics: diagnostics.iter().map(DiagnosticBody::from).collect(),
        }
    }
}

/// A part of a prompt.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct PartBody<'a> {
    /// `global`, `tools`, `section`, `context` or `override`.
    source: &'static str,
    /// The section's or block's id.
    id: &'a str,
    /// What people call it.
    name: &'a str,
    /// The label, of sections.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    section_type: Option<&'static str>,
    /// The UTF-8 byte offset of its first byte.
    start: usize,
    /// The UTF-8 byte offset behind its last byte.
    end: usize,
    /// `static` where it is the same for all sessions, else `session`.
    stability: &'static str,
}

impl<'a> From<&'a Part> for PartBody<'a> {
    fn from(part: &'a Part) -> Self {
        Self {
            source: part.source.as_str(),
            id: &part.id,
            name: &part.name,
            section_type: part.section_type.map(SectionType::as_str),
            start: part.range.start,
            end: part.range.end,
            stability: match part.stability {
                Stability::Static => "static",
                Stability::Session => "session",
            },
        }
    }
}

/// A problem of a prompt.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct DiagnosticBody<'a> {
    /// What kind of problem, in kebab case.
    code: &'static str,
    /// `info` or `warning`.
    severity: &'static str,
    /// The part or item it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<&'a str>,
    /// Where in the text, as UTF-8 byte offsets.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<[usize; 2]>,
    /// What is wrong.
    message: &'a str,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

impl<'a> From<&'a Diagnostic> for DiagnosticBody<'a> {
    fn from(diagnostic: &'a Diagnostic) -> Self {
        Self {
            code: diagnostic.code.as_str(),
            severity: match diagnostic.severity {
                Severity::Info => "info",
                Severity::Warning => "warning",
            },
            part: diagnostic.part.as_deref(),
            range: diagnostic
                .range
                .as_ref()
                .map(|range| [range.start, range.end]),
            message: &diagnostic.message,
            hint: diagnostic.hint.as_deref(),
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
