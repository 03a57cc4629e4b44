//! A call of a tool that a connected server has: handed on with its arguments, and what comes back handed back as it is.

use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResult, JsonObject, ResultType},
    service::RequestContext,
};

use super::handler::progress_token;
use crate::{
    app::App,
    connections::{Call, Route},
    session::Session,
};

/// Calls the tool at `route`.
pub(super) async fn call(
    app: &App,
    session: &Session,
    route: &Route,
    arguments: Option<JsonObject>,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
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
    // Servers of older revisions do not say it, and clients of the newest need it; rmcp takes it out for the others.
    result.result_type.get_or_insert(ResultType::COMPLETE);
    Ok(result)
}
