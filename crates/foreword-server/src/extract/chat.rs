//! The chat and the file that a path names.

use axum::extract::{FromRequestParts, MatchedPath, RawPathParams};
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
        let segment = chat_segment(parts).await?;
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
        let route = parts.extensions.get::<MatchedPath>();
        let before = route
            .and_then(|route| {
                let mut segments = route.as_str().split('/');
                segments.position(|segment| segment == "{chat_id}")
            })
            .expect("a route with files names their chat first");
        let path = parts.uri.path().splitn(before + 2, '/').last();
        Ok(Self(percent_decode_str(path.unwrap_or_default()).collect()))
    }
}

/// The chat's place in the path, percent-decoded.
pub(crate) async fn chat_segment(parts: &mut Parts) -> Result<String, ApiError> {
    let parameters = RawPathParams::from_request_parts(parts, &()).await;
    let parameters = parameters.map_err(|_| {
        ApiError::new(
            StatusCode::BAD_REQUEST,
            "invalid_path",
            "the path is not UTF-8",
        )
    })?;
    let segment = parameters
        .iter()
        .find(|(name, _)| *name == "chat_id")
        .expect("a route with files names their chat");
    Ok(segment.1.to_owned())
}
