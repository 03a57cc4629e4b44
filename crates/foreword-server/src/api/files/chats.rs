//! Chats as a whole.

use axum::extract::State;
use http::StatusCode;

use crate::{
    api::openapi::FileProblems, app::App, error::ApiError, extract::ChatSession, operations,
};

/// Deletes everything that is kept of a chat: workspace, uploads, outputs.
#[utoipa::path(
    delete, path = "/api/chats/{chat_id}", tag = "files",
    params(("chat_id" = String, Path, description = "The chat")),
    responses((status = 204, description = "Nothing is left of it"), FileProblems),
    security(("admin_key" = []), ("admin_key_header" = [])),
)]
pub(crate) async fn delete_chat(
    State(app): State<App>,
    ChatSession(session): ChatSession,
) -> Result<StatusCode, ApiError> {
    operations::chats::delete_chat(&app, &session.chat_id).await?;
    Ok(StatusCode::NO_CONTENT)
}
