//! What can be done with a chat as a whole.

use crate::{
    app::App, operations::workspace::entry::sandbox_key, session::ChatId, workspace::WorkspaceError,
};

/// Deletes everything that is kept of a chat; one of which nothing is kept is as good as deleted.
pub async fn delete_chat(app: &App, chat_id: &ChatId) -> Result<(), WorkspaceError> {
    // Whoever works in it is told so, and lets its files go.
    app.sandboxes().stop(&sandbox_key(chat_id)).await;
    app.workspaces().delete(chat_id).await?;
    app.renderer().forget(Some(chat_id)).await;
    Ok(())
}
