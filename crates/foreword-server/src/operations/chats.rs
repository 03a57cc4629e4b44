//! What can be done with a chat as a whole.

use crate::{app::App, session::ChatId, workspace::WorkspaceError};

/// Deletes everything that is kept of a chat; one of which nothing is kept is as good as deleted.
pub async fn delete_chat(app: &App, chat_id: &ChatId) -> Result<(), WorkspaceError> {
    app.workspaces().delete(chat_id).await?;
    app.renderer().forget(Some(chat_id)).await;
    Ok(())
}
