//! What handlers take, with refusals that are problems of our own: bodies, queries, path values.

pub(crate) mod accept;
mod body;
mod chat;
pub(crate) mod fields;

use axum::extract::{
    FromRequest, FromRequestParts, Request, path::ErrorKind, rejection::PathRejection,
};
use http::{HeaderMap, StatusCode, header, request::Parts};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) use body::{BodyMemory, PassedShare, Share, WholeBody};
pub(crate) use chat::{ChatSession, FilePath, chat_segment};

use crate::error::ApiError;

/// From which size on a JSON body, in bytes, is parsed where it holds up nobody.
const LONG_JSON: usize = 256 << 10;

/// Does what takes as long as `bytes` of JSON are long, where it holds up nobody.
pub(crate) async fn work_on<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    if bytes < LONG_JSON {
        return work();
    }
    tokio::task::spawn_blocking(work)
        .await
        .expect("it does not panic, and nobody cancels it")
}

/// A JSON body. Only its syntax is judged here: what its values may be is told with all faults at once, see
/// [`ApiError::invalid`].
pub(crate) struct Json<T>(pub(crate) T);

/// The query; names that `T` does not know are ignored, unless `T` denies unknown fields: then the answer names the
/// nearest known one.
pub(crate) struct Query<T>(pub(crate) T);

/// The values of the path, percent-decoded once.
pub(crate) struct Path<T>(pub(crate) T);

impl<S: Send + Sync> FromRequest<S> for Json<Value> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        require_json(request.headers())?;
        let body = WholeBody::of(request.extensions());
        match work_on(body.len(), move || serde_json::from_slice(&body)).await {
            Ok(value) => Ok(Self(value)),
            Err(error) => Err(broken_json(&error)),
        }
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        let pairs = serde_urlencoded::Deserializer::new(form_urlencoded::parse(query.as_bytes()));
        match serde_path_to_error::deserialize(pairs) {
            Ok(value) => Ok(Self(value)),
            Err(error) => Err(invalid_query(&error)),
        }
    }
}

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(value)) => Ok(Self(value)),
            Err(PathRejection::FailedToDeserializePathParams(error)) => {
                let detail = match error.into_kind() {
                    ErrorKind::InvalidUtf8InPathParam { key } => {
                        format!("the value of `{key}` in the path is not UTF-8")
                    }
                    kind => format!("the path is not valid: {kind}"),
                };
                Err(ApiError::new(
                    StatusCode::BAD_REQUEST,
                    "invalid_path",
                    detail,
                ))
            }
            Err(error) => Err(ApiError::internal(&error)),
        }
    }
}

pub(crate) fn require_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let is_json = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .map(|value| value.split(';').next().unwrap_or_default().trim())
        .is_some_and(|essence| {
            let essence = essence.to_ascii_lowercase();
            essence == "application/json"
                || (essence.starts_with("application/") && essence.ends_with("+json"))
        });
    if is_json {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unsupported_media_type",
        "the body must be JSON: send it with `Content-Type: application/json`",
    ))
}

fn broken_json(error: &serde_json::Error) -> ApiError {
    ApiError::new(
        StatusCode::BAD_REQUEST,
        "invalid_json",
        format!(
            "the body is not JSON: {} at line {}, column {}",
            without_position(error),
            error.line(),
            error.column()
        ),
    )
    .with("line", error.line())
    .with("column", error.column())
}

/// The message without " at line 1 column 2", which `serde_json` adds.
fn without_position(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    match message.strip_suffix(&position) {
        Some(message) => message.to_owned(),
        None => message,
    }
}

fn invalid_query(error: &serde_path_to_error::Error<serde_urlencoded::de::Error>) -> ApiError {
    let message = with_nearest(&error.inner().to_string());
    let detail = match error.path().to_string().as_str() {
        "." => format!("the query is not valid: {message}"),
        parameter => format!("the query parameter `{parameter}` is not valid: {message}"),
    };
    ApiError::new(StatusCode::BAD_REQUEST, "invalid_query", detail)
}

/// Serde lists every known name after an unknown one; the nearest is what the caller wants to read first.
fn with_nearest(message: &str) -> String {
    let mut names = message.split('`').skip(1).step_by(2);
    let (true, Some(unknown)) = (message.starts_with("unknown "), names.next()) else {
        return message.to_owned();
    };
    let nearest = names
        .map(|name| (strsim::normalized_damerau_levenshtein(unknown, name), name))
        .max_by(|one, other| one.0.total_cmp(&other.0));
    match nearest {
        Some((likeness, name)) if likeness >= LIKELY => {
            format!("{message}; did you mean `{name}`?")
        }
        _ => message.to_owned(),
    }
}

/// From which likeness on a name is worth suggesting.
const LIKELY: f64 = 0.5;
