//! Dropping what the renderer keeps.

use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::{
    api::openapi::AdminProblems,
    app::App,
    error::ApiError,
    extract::Query,
    session::{ChatId, SessionError},
};

/// Whose prompts to drop.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RenderCacheQuery {
    /// One chat's; everybody's where it is not given.
    chat_id: Option<String>,
}

/// Drops rendered prompts, of one chat or all.
#[utoipa::path(
    delete, path = "/api/render-cache", tag = "delivery",
    params(RenderCacheQuery),
    responses((status = 204, description = "They are gone"), AdminProblems),
    security(("admin_key" = []), ("admin_key_header" = [])),
)]
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
