//! The chat and the file that a path names.

use std::borrow::Cow;

use axum::extract::{FromRequestParts, MatchedPath};
use http::{StatusCode, request::Parts};
use percent_encoding::percent_decode_str;

use crate::{
    app::App,
    error::ApiError,
    session::{Session, SessionSources},
};

/// The session of a request that names its chat in the path; `single` mode has a word in it.
pub(crate) struct ChatSession(pub(crate) Session);

/// The file that the path names behind its chat, percent-decoded once: bytes, since sandboxes write any.
pub(crate) struct FilePath(pub(crate) Vec<u8>);

impl FromRequestParts<App> for ChatSession {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let segment = chat_segment(parts)?;
        let request = app.sessions().read(SessionSources {
            headers: &parts.headers,
            query: parts.uri.query(),
            path_chat: Some(&segment),
            meta: None,
        })?;
        Ok(Self(request.require()?))
    }
}

impl<S: Sync> FromRequestParts<S> for FilePath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let path = parts.uri.path().splitn(before_chat(parts) + 2, '/').last();
        Ok(Self(percent_decode_str(path.unwrap_or_default()).collect()))
    }
}

/// The chat's place in the path, percent-decoded.
///
/// It is read from the path itself, since axum gives out the values of a path only where all of them are UTF-8.
pub(crate) fn chat_segment(parts: &Parts) -> Result<String, ApiError> {
    let segment = parts.uri.path().split('/').nth(before_chat(parts));
    let decoded = percent_decode_str(segment.unwrap_or_default()).decode_utf8();
    decoded.map(Cow::into_owned).map_err(|_| {
        ApiError::new(
            StatusCode::BAD_REQUEST,
            "invalid_chat_id",
            "the chat id in the path is not UTF-8",
        )
    })
}

/// How many segments stand before the chat in the route's path.
fn before_chat(parts: &Parts) -> usize {
    let route = parts.extensions.get::<MatchedPath>();
    route
        .and_then(|route| {
            let mut segments = route.as_str().split('/');
            segments.position(|segment| segment == "{chat_id}")
        })
        .expect("a route with files names their chat")
}
