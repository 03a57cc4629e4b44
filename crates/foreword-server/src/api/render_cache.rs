//! Dropping what the renderer keeps.

use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;

use crate::{
    app::App,
    error::ApiError,
    extract::Query,
    session::{ChatId, SessionError},
};

/// Whose prompts to drop.
#[derive(Debug, Deserialize)]
pub(crate) struct RenderCacheQuery {
    /// One chat's; everybody's where it is not given.
    chat_id: Option<String>,
}

/// Drops rendered prompts, of one chat or all.
pub(crate) async fn delete_render_cache(
    State(app): State<App>,
    Query(query): Query<RenderCacheQuery>,
) -> Result<StatusCode, ApiError> {
    let chat_id = query
        .chat_id
        .map(|chat_id| ChatId::parse(&chat_id))
        .transpose()
        .map_err(SessionError::from)?;
    app.renderer().forget(chat_id.as_ref()).await;
    Ok(StatusCode::NO_CONTENT)
}
