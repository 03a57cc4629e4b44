//! `/api/prompts/status`, `/export`, `/import` and `/undo`: the library as a whole.

use axum::extract::{FromRequest, Request, State};
use foreword_store::{Health, Import, ImportReport, LoadError, Source, Status, Undone};
use http::{HeaderMap, StatusCode, header};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{answer::Answer, conditional::IfNoneMatch, query::NoQuery};
use crate::{
    api::openapi::{ReadProblems, WriteProblems},
    app::App,
    error::ApiError,
    extract::{Query, WholeBody},
    operations::prompts,
};

/// How the library is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LibraryStatus {
    /// The first 16 hex digits of SHA-256 over the library's file.
    revision: String,
    /// `file`, or `built-in` while nothing was written yet.
    source: &'static str,
    /// When it was loaded or written, RFC 3339.
    #[schema(format = "date-time")]
    loaded_at: String,
    /// Whether the file can be read as it is now; if not, this is the last good library and edits are refused.
    healthy: bool,
    /// What is wrong with the file.
    errors: Vec<LibraryError>,
}

/// One mistake in a library's text.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LibraryError {
    /// The line, from 1.
    line: usize,
    /// The column in characters, from 1.
    column: usize,
    /// A JSON pointer to the value, where the text could be read that far.
    pointer: Option<String>,
    /// What kind of mistake.
    #[schema(example = "unknown-key")]
    code: &'static str,
    /// What is wrong.
    message: String,
    /// What to do about it.
    hint: Option<String>,
}

/// What an import did, or would do.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LibraryImport {
    /// A unified difference between the old text and the new one; empty if they are equal.
    difference: String,
    /// The revision after it.
    revision: String,
    /// Whether it was written.
    written: bool,
    /// The name of the file that keeps the broken library, where one was replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_as: Option<String>,
}

/// What an undo did.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LibraryUndo {
    /// What was taken back.
    #[schema(example = "replaced profile `developer`")]
    undone: String,
    /// The revision after it.
    revision: String,
}

/// What [`import_library`] takes beside the text.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ImportQuery {
    /// Only say what would change.
    #[serde(default)]
    #[param(required = false)]
    dry_run: bool,
    /// Replace a file that cannot be read; it is kept under another name.
    #[serde(default)]
    #[param(required = false)]
    replace_broken: bool,
}

/// Shows how the library is.
#[utoipa::path(
    get, path = "/api/prompts/status", tag = "prompts",
    params(IfNoneMatch),
    responses((status = 200, description = "How it is", body = LibraryStatus), ReadProblems),
)]
pub(crate) async fn get_status(
    State(app): State<App>,
    _: NoQuery,
    if_none_match: IfNoneMatch,
) -> Answer {
    let status = prompts::library::get_status(&app);
    let revision = status.revision.clone();
    Answer::computed(&LibraryStatus::from(status), revision).unless(&if_none_match)
}

/// Gives the whole library as YAML, byte for byte as it is kept.
#[utoipa::path(
    get, path = "/api/prompts/export", tag = "prompts",
    params(IfNoneMatch),
    responses(
        (status = 200, description = "The library", body = Object, content_type = "application/yaml"), ReadProblems,
    ),
)]
pub(crate) async fn export_library(
    State(app): State<App>,
    _: NoQuery,
    if_none_match: IfNoneMatch,
) -> Answer {
    let snapshot = prompts::library::export_library(&app);
    Answer::text(
        "application/yaml",
        &snapshot.text,
        snapshot.revision.clone(),
    )
    .unless(&if_none_match)
}

/// Replaces the whole library by a YAML text, or only says what that would change.
#[utoipa::path(
    post, path = "/api/prompts/import", tag = "prompts",
    params(ImportQuery),
    request_body(content = Object, content_type = "application/yaml", description = "The library as YAML"),
    responses((status = 200, description = "What was, or would be, changed", body = LibraryImport), WriteProblems),
    security(("admin_key" = []), ("admin_key_header" = [])),
)]
pub(crate) async fn import_library(
    State(app): State<App>,
    Query(ImportQuery {
        dry_run,
        replace_broken,
    }): Query<ImportQuery>,
    Yaml(text): Yaml,
) -> Result<Answer, ApiError> {
    let import = Import {
        text,
        dry_run,
        replace_broken,
    };
    let report = prompts::library::import_library(&app, import).await?;
    let revision = app.store().snapshot().revision.clone();
    Ok(Answer::report(&LibraryImport::from(report), revision))
}

/// Goes one edit back.
#[utoipa::path(
    post, path = "/api/prompts/undo", tag = "prompts",
    responses((status = 200, description = "What was taken back", body = LibraryUndo), WriteProblems),
    security(("admin_key" = []), ("admin_key_header" = [])),
)]
pub(crate) async fn undo_edit(State(app): State<App>, _: NoQuery) -> Result<Answer, ApiError> {
    let undone = prompts::library::undo_edit(&app).await?;
    let revision = undone.revision.clone();
    Ok(Answer::report(&LibraryUndo::from(undone), revision))
}

/// The media types under which YAML is sent.
const YAML: [&str; 5] = [
    "application/yaml",
    "application/x-yaml",
    "text/yaml",
    "text/x-yaml",
    "text/plain",
];

/// A YAML body.
pub(crate) struct Yaml(String);

impl<S: Send + Sync> FromRequest<S> for Yaml {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        if !is_yaml(request.headers()) {
            return Err(ApiError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                "the body must be YAML: send it with `Content-Type: application/yaml`",
            ));
        }
        match str::from_utf8(&WholeBody::of(request.extensions())) {
            Ok(text) => Ok(Self(text.to_owned())),
            Err(_) => Err(ApiError::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "invalid",
                "the library is not UTF-8 text",
            )),
        }
    }
}

fn is_yaml(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .is_some_and(|essence| {
            let essence = essence.trim();
            YAML.iter().any(|yaml| yaml.eq_ignore_ascii_case(essence))
        })
}

impl From<Status> for LibraryStatus {
    fn from(status: Status) -> Self {
        let (healthy, errors) = match status.health {
            Health::Healthy => (true, Vec::new()),
            Health::Degraded(errors) => (false, errors),
        };
        Self {
            revision: status.revision,
            source: match status.source {
                Source::BuiltIn => "built-in",
                // Where on the host it lies is nobody's business here.
                Source::File(_) => "file",
            },
            loaded_at: status.loaded_at.to_string(),
            healthy,
            errors: errors.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<LoadError> for LibraryError {
    fn from(error: LoadError) -> Self {
        let LoadError {
            line,
            column,
            pointer,
            code,
            message,
            hint,
        } = error;
        Self {
            line,
            column,
            pointer,
            code,
            message,
            hint,
        }
    }
}

impl From<ImportReport> for LibraryImport {
    fn from(report: ImportReport) -> Self {
        let ImportReport {
            difference,
            revision,
            written,
            kept_as,
        } = report;
        Self {
            difference,
            revision,
            written,
            kept_as,
        }
    }
}

impl From<Undone> for LibraryUndo {
    fn from(undone: Undone) -> Self {
        let Undone { what, revision } = undone;
        Self {
            undone: what,
            revision,
        }
    }
}
