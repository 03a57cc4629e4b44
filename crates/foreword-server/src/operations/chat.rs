//! The prompt of a chat request, for clients that speak no MCP.

use crate::{
    app::App,
    chat::ChatPrompt,
    config::Form,
    render::{Extras, RenderError, Shape},
    session::Session,
};

/// The prompt of a session with what one request adds to it.
///
/// It tells of the workspace, skills and tools only where the settings say that such clients have them, and the request
/// names the chat that they belong to.
pub(crate) async fn prompt_of_chat(
    app: &App,
    session: &Session,
    extras: &Extras,
) -> Result<ChatPrompt, RenderError> {
    let shape = if app.config().chat.include_workspace && session.chat_id_given {
        Shape::Form(Form::Full)
    } else {
        Shape::Bare
    };
    if extras.is_empty() {
        let prompt = app.renderer().render(session, shape).await?;
        return Ok(ChatPrompt::shared(&prompt));
    }
    let overridden = extras.system_override.as_deref();
    let is_override = overridden.is_some_and(|text| !text.trim().is_empty());
    let rendered = app.renderer().render_with(session, shape, extras).await?;
    Ok(ChatPrompt::own(rendered, is_override))
}
