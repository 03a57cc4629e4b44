//! What can be done with a chat as a whole.

use std::{pin::pin, time::Duration};

use tokio::time::timeout;

use crate::{
    app::App, operations::workspace::entry::sandbox_key, session::ChatId, workspace::WorkspaceError,
};

/// How long to wait for a chat before what was started in it meanwhile is ended too.
const PATIENCE: Duration = Duration::from_secs(1);

/// Deletes everything that is kept of a chat; one of which nothing is kept is as good as deleted.
pub async fn delete_chat(app: &App, chat_id: &ChatId) -> Result<(), WorkspaceError> {
    let (sandboxes, key) = (app.sandboxes(), sandbox_key(chat_id));
    let mut excluding = pin!(app.workspaces().exclude(chat_id));
    let excluded = loop {
        // Whoever works in it is told so, and lets its files go.
        sandboxes.stop(&key).await;
        if let Ok(excluded) = timeout(PATIENCE, &mut excluding).await {
            break excluded?;
        }
    };
    if let Some(excluded) = excluded {
        // A call in between may have come and gone, and have left a sandbox that runs on these files.
        sandboxes.forget(&key).await;
        excluded.discard().await?;
    }
    app.renderer().forget(Some(chat_id)).await;
    Ok(())
}
