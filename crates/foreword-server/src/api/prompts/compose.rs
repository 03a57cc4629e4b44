//! `/api/prompts/compose`: what a request would be sent, part by part.

use axum::{Extension, extract::State};
use foreword_compose::{Composition, Diagnostic, Part, SectionType, Severity, Stability};
use foreword_store::StoreError;
use form_urlencoded::Serializer;
use http::HeaderMap;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{
    IntoParams, ToSchema,
    openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, Type},
};

use super::{answer::Answer, conditional::IfNoneMatch, query::NoQuery, tools};
use crate::{
    api::openapi::{PreviewProblems, ReadProblems},
    app::App,
    error::ApiError,
    extract::{
        Json, Query, WholeBody,
        fields::{Fields, read_text_or_texts, read_texts},
    },
    operations::prompts::{
        self,
        compose::{Preview, PreviewError, PreviewRequest},
    },
    render::Extras,
    session::{Session, SessionSources},
};

/// What [`preview_prompt`] takes.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PreviewQuery {
    /// The profile; the library's default without it.
    #[param(example = "developer")]
    profile_id: Option<String>,
    /// The chat; with it the answer is what every tier delivers in that chat.
    chat_id: Option<String>,
    /// The user's e-mail address.
    user_email: Option<String>,
    /// The user's name.
    user_name: Option<String>,
    /// Text that comes after everything else.
    additional_context: Option<String>,
    /// If not blank, it is the prompt.
    system_override: Option<String>,
}

/// What [`preview_given_prompt`] takes.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "profile_id": "developer",
    "variables": {"company": "Example Ltd"},
    "additional_context": ["The user prefers short answers."]
}))]
pub(crate) struct PreviewBody {
    /// The profile; the library's default without it.
    profile_id: Option<String>,
    /// The chat; with it the answer is what every tier delivers in that chat.
    chat_id: Option<String>,
    /// The user's e-mail address.
    user_email: Option<String>,
    /// The user's name.
    user_name: Option<String>,
    /// A text, or a list of texts, that come after everything else.
    #[schema(schema_with = text_or_texts)]
    additional_context: Vec<String>,
    /// If not blank, it is the prompt.
    system_override: Option<String>,
    /// Values for placeholders; they win over everything else.
    #[schema(value_type = Option<std::collections::HashMap<String, String>>)]
    variables: IndexMap<String, String>,
    /// Tools in place of those of the connected servers.
    #[schema(schema_with = tools::tool_list)]
    #[serde(skip_serializing)]
    tools: Option<Vec<foreword_compose::ToolServer>>,
    /// A library as YAML, composed in place of the one that is kept.
    library: Option<String>,
}

/// A prompt with everything there is to know about it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PreviewAnswer {
    /// The prompt.
    system_prompt: String,
    /// The id of the profile in force; null in a library without profiles.
    profile_id: Option<String>,
    /// The first 16 hex digits of SHA-256 over the prompt (with its own revision, where it holds it, as zeros).
    revision: String,
    /// What it is made of, in order.
    parts: Vec<PromptPart>,
    /// The number of leading bytes that are the same for all sessions.
    stable_prefix: usize,
    tokens: TokenEstimate,
    /// Placeholders without a value, in order of first appearance.
    unresolved: Vec<String>,
    /// Problems of this composition.
    diagnostics: Vec<PromptDiagnostic>,
}

/// A piece of a prompt.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PromptPart {
    /// `global`, `tools`, `section`, `context` or `override`.
    source: &'static str,
    /// The section's or block's id; a fixed word for the others.
    id: String,
    /// What people call it.
    name: String,
    /// The label, of sections.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    section_type: Option<&'static str>,
    /// Where it starts in the prompt, in UTF-8 bytes.
    start: usize,
    /// Where it ends.
    end: usize,
    /// `static`: the same for all sessions; `session`: made of, or holding, a session or request value.
    stability: &'static str,
}

/// How many tokens the prompt has, roughly.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TokenEstimate {
    estimate: usize,
    /// How it was estimated.
    #[schema(example = "bytes/4")]
    method: &'static str,
}

/// A problem of a prompt, beside it, never instead of it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PromptDiagnostic {
    /// What kind of problem.
    #[schema(example = "unresolved-placeholder")]
    code: &'static str,
    /// `warning` or `info`.
    severity: &'static str,
    /// The id of the part, where there is one.
    part: Option<String>,
    /// Where in the prompt it starts, in UTF-8 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<usize>,
    /// Where it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<usize>,
    /// What is wrong.
    message: String,
    /// What to do about it.
    hint: Option<String>,
}

/// Previews the prompt that a request would be sent.
///
/// With a chat id it is exactly what every tier delivers in that chat. Without one nothing of a session is known: its
/// placeholders stay as they are written and are listed under `unresolved`.
#[utoipa::path(
    get, path = "/api/prompts/compose", tag = "prompts",
    params(PreviewQuery, IfNoneMatch),
    responses((status = 200, description = "The prompt", body = PreviewAnswer), ReadProblems),
)]
pub(crate) async fn preview_prompt(
    State(app): State<App>,
    headers: HeaderMap,
    Query(query): Query<PreviewQuery>,
    if_none_match: IfNoneMatch,
) -> Result<Answer, ApiError> {
    let request = PreviewRequest {
        session: session(
            &app,
            &headers,
            [
                ("profile_id", query.profile_id),
                ("chat_id", query.chat_id),
                ("user_email", query.user_email),
                ("user_name", query.user_name),
            ],
        )?,
        extras: Extras {
            context: query.additional_context.into_iter().collect(),
            system_override: query.system_override,
            ..Extras::default()
        },
        library: None,
    };
    let preview = prompts::compose::preview_prompt(&app, request).await?;
    Ok(answer(preview).unless(&if_none_match))
}

/// Previews the prompt that a request would be sent, from a JSON body.
///
/// With `library` it composes that unsaved text instead of the library that is kept.
#[utoipa::path(
    post, path = "/api/prompts/compose", tag = "prompts",
    request_body(content = PreviewBody),
    responses((status = 200, description = "The prompt", body = PreviewAnswer), PreviewProblems),
)]
pub(crate) async fn preview_given_prompt(
    State(app): State<App>,
    headers: HeaderMap,
    _: NoQuery,
    Extension(WholeBody(sent)): Extension<WholeBody>,
    Json(body): Json<Value>,
) -> Result<Answer, ApiError> {
    let body = PreviewBody::read(&body)?;
    let http = &app.config().http;
    match &body.library {
        // Only a library may be that long.
        None if sent.len() > http.api_max_body => {
            return Err(ApiError::body_too_large(http.api_max_body));
        }
        Some(library) if library.len() > http.library_max_body => {
            return Err(ApiError::body_too_large(http.library_max_body));
        }
        _ => {}
    }
    let request = PreviewRequest {
        session: session(
            &app,
            &headers,
            [
                ("profile_id", body.profile_id),
                ("chat_id", body.chat_id),
                ("user_email", body.user_email),
                ("user_name", body.user_name),
            ],
        )?,
        extras: Extras {
            context: body.additional_context,
            system_override: body.system_override,
            variables: body.variables,
            tools_prompt: body
                .tools
                .map(|servers| prompts::tools::describe_tools(&app, &servers).prompt.text),
        },
        library: body.library,
    };
    let preview = prompts::compose::preview_prompt(&app, request).await?;
    Ok(answer(preview))
}

/// The session that headers and `values` name, read like that of any other request.
///
/// A preview needs no chat, not even where delivery does.
fn session<const N: usize>(
    app: &App,
    headers: &HeaderMap,
    values: [(&str, Option<String>); N],
) -> Result<Session, ApiError> {
    let mut query = Serializer::new(String::new());
    for (name, value) in values {
        if let Some(value) = value {
            query.append_pair(name, &value);
        }
    }
    let query = query.finish();
    let sources = SessionSources::http(headers, Some(&query));
    Ok(app.sessions().read(sources)?.as_given().clone())
}

fn answer(preview: Preview) -> Answer {
    let revision = preview.library_revision.clone();
    Answer::computed(&PreviewAnswer::from(preview), revision)
}

impl PreviewBody {
    fn read(body: &Value) -> Result<Self, ApiError> {
        let mut faults = Vec::new();
        let mut fields = Fields::new(body, String::new(), &mut faults);
        let body = Self {
            profile_id: fields.nullable_text("profile_id"),
            chat_id: fields.nullable_text("chat_id"),
            user_email: fields.nullable_text("user_email"),
            user_name: fields.nullable_text("user_name"),
            additional_context: fields.read("additional_context", read_text_or_texts),
            system_override: fields.nullable_text("system_override"),
            variables: fields.read("variables", |value, pointer, faults| {
                read_texts(value, pointer, faults).collect()
            }),
            tools: fields.read("tools", |value, pointer, faults| {
                Some(tools::read_tools(value, pointer, faults))
            }),
            library: fields.nullable_text("library"),
        };
        fields.finish();
        if faults.is_empty() {
            Ok(body)
        } else {
            Err(ApiError::invalid(
                faults.into_iter().map(Into::into).collect(),
            ))
        }
    }
}

/// One text or a list of texts, as a schema.
pub(crate) fn text_or_texts() -> Schema {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    OneOfBuilder::new()
        .item(text())
        .item(ArrayBuilder::new().items(text()))
        .description(Some(
            "A text, or a list of texts, that come after everything else.",
        ))
        .build()
        .into()
}

impl From<PreviewError> for ApiError {
    fn from(error: PreviewError) -> Self {
        match error {
            PreviewError::ProfileNotFound(error) => error.into(),
            PreviewError::InvalidLibrary(errors) => StoreError::Invalid(errors).into(),
        }
    }
}

impl From<Preview> for PreviewAnswer {
    fn from(preview: Preview) -> Self {
        let Composition {
            text,
            parts,
            stable_prefix,
            unresolved,
            diagnostics,
        } = preview.composition;
        Self {
            tokens: TokenEstimate {
                estimate: text.len().div_ceil(4),
                method: "bytes/4",
            },
            system_prompt: text,
            profile_id: preview.profile_id,
            revision: preview.revision,
            parts: parts.into_iter().map(Into::into).collect(),
            stable_prefix,
            unresolved,
            diagnostics: diagnostics.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<Part> for PromptPart {
    fn from(part: Part) -> Self {
        Self {
            source: part.source.as_str(),
            id: part.id,
            name: part.name,
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

impl From<Diagnostic> for PromptDiagnostic {
    fn from(diagnostic: Diagnostic) -> Self {
        Self {
            code: diagnostic.code.as_str(),
            severity: match diagnostic.severity {
                Severity::Info => "info",
                Severity::Warning => "warning",
            },
            part: diagnostic.part,
            start: diagnostic.range.as_ref().map(|range| range.start),
            end: diagnostic.range.as_ref().map(|range| range.end),
            message: diagnostic.message,
            hint: diagnostic.hint,
        }
    }
}
