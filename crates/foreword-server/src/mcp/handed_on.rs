//! A call of a tool that a connected server has: handed on with its arguments, and what comes back handed back as it is.

use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResult, ContentBlock, JsonObject, ResultType},
    service::RequestContext,
};

use super::handler::progress_token;
use crate::{
    app::App,
    connections::{Call, Route},
    session::Session,
    workspace::WorkspaceError,
};

/// Under this servers of 2026-07-28 say in each result who they are.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// Calls the tool at `route`.
pub(super) async fn call(
    app: &App,
    session: &Session,
    route: &Route,
    arguments: Option<JsonObject>,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    // A chat whose files are another user's is not spoken for. Unlike a call of our own tools this makes nobody its owner.
    match app.workspaces().find_for(session).await {
        Ok(_) | Err(WorkspaceError::Off) => {}
        Err(error) => {
            let why = ContentBlock::text(error.to_string());
            return Ok(CallToolResult::error(vec![why]));
        }
    }
    let snapshot = app.store().snapshot();
    let profile_id = session.profile_id.as_deref().or_else(|| {
        let default = snapshot.library.default_profile();
        default.map(|profile| profile.id.as_str())
    });
    let call = Call {
        arguments,
        session,
        profile_id,
        cancelled: &context.ct,
    };
    let token = progress_token(context);
    let called = app.connections().call(route, call, |mut step| {
        let token = token.clone();
        async move {
            if let Some(token) = token {
                step.progress_token = token;
                // A client that does not listen any more is seen by the transport.
                let _ = context.peer.notify_progress(step).await;
            }
        }
    });
    let mut result = called.await?;
    // Who answered the client is this server.
    if let Some(meta) = &mut result.meta {
        meta.remove(SERVER_INFO);
    }
    result.meta = result.meta.filter(|meta| !meta.is_empty());
    // Servers of older revisions do not say it, and clients of the newest need it; rmcp takes it out for the others.
    result.result_type.get_or_insert(ResultType::COMPLETE);
    Ok(result)
}
