//! Previews: what a request would be sent, without sending it.
//!
//! With a chat it is the renderer's answer, the very text that every tier delivers. Without one it is the plain
//! composition without the guide: of a session at most the user's e-mail and name are known, so the other placeholders of
//! sessions stay as they are written and are reported.

use std::sync::Arc;

use foreword_compose::{
    Composition, ContextBlock, Library, ProfileNotFound, Request, SessionName, SessionValues,
    Trust, compose, revision,
};
use foreword_store::{LoadError, parse_library};

use crate::{
    app::App,
    config::Form,
    render::{Extras, RenderError, Rendered},
    session::Session,
};

/// What to preview.
#[derive(Debug, Clone)]
pub struct PreviewRequest {
    /// Whose request it would be.
    pub session: Session,
    /// What the request itself brings.
    pub extras: Extras,
    /// YAML to compose in place of the library that is kept.
    pub library: Option<String>,
}

/// A prompt with everything there is to know about it.
#[derive(Debug)]
pub struct Preview {
    /// The composition.
    pub composition: Composition,
    /// The revision of its text.
    pub revision: String,
    /// The id of the profile in force, if the library has any.
    pub profile_id: Option<String>,
    /// The revision of the library that is kept.
    pub library_revision: String,
}

/// Why there is no preview.
#[derive(Debug, thiserror::Error)]
pub enum PreviewError {
    /// The profile asked for does not exist.
    #[error(transparent)]
    ProfileNotFound(#[from] ProfileNotFound),
    /// The text given as library is not one.
    #[error("the library is not valid")]
    InvalidLibrary(Vec<LoadError>),
}

impl From<RenderError> for PreviewError {
    fn from(error: RenderError) -> Self {
        match error {
            RenderError::ProfileNotFound(error) => error.into(),
        }
    }
}

/// Composes what `request` would be sent.
pub async fn preview_prompt(app: &App, request: PreviewRequest) -> Result<Preview, PreviewError> {
    let PreviewRequest {
        session,
        extras,
        library,
    } = request;
    let snapshot = app.store().snapshot();
    let unsaved = match library {
        Some(text) => Some(read_library(app, text).await?),
        None => None,
    };
    let library = unsaved.as_ref().unwrap_or(&snapshot.library);
    let library_revision = snapshot.revision.clone();
    if session.chat_id_given {
        let Rendered {
            composition,
            revision,
            profile_id,
            ..
        } = app
            .renderer()
            .render_library(library, &session, Form::Full, &extras)
            .await?;
        return Ok(Preview {
            composition,
            revision,
            profile_id,
            library_revision,
        });
    }
    let composition = compose_without_chat(app, library, &session, &extras)?;
    let profile_id = session.profile_id.as_deref().map(str::to_owned);
    Ok(Preview {
        revision: revision(&composition.text, None),
        composition,
        profile_id: profile_id.or_else(|| library.default_profile().map(|it| it.id.clone())),
        library_revision,
    })
}

fn compose_without_chat(
    app: &App,
    library: &Library,
    session: &Session,
    extras: &Extras,
) -> Result<Composition, ProfileNotFound> {
    let catalog = app.connections().catalog();
    let connected = &catalog.prompt;
    let context = extras
        .context
        .iter()
        .enumerate()
        .map(|(at, text)| ContextBlock {
            id: format!("context-{}", at + 1).into(),
            name: "Request context".into(),
            text: text.into(),
            trust: Trust::Foreign,
        });
    let request = Request {
        profile_id: session.profile_id.as_deref(),
        session: SessionValues::default()
            .with(SessionName::UserEmail, session.user_email.as_deref())
            .with(SessionName::UserName, session.user_name.as_deref()),
        variables: extras.variables.clone(),
        tools_prompt: extras.tools_prompt.as_deref().unwrap_or(&connected.text),
        context: context.collect(),
        system_override: extras.system_override.as_deref(),
        budget: None,
    };
    compose(library, &request)
}

/// Reads an unsaved library where it holds up nobody: off the async threads, with few others at a time.
async fn read_library(app: &App, text: String) -> Result<Library, PreviewError> {
    let permit = Arc::clone(app.library_texts()).acquire_owned().await;
    let reading = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        parse_library(&text)
    });
    reading
        .await
        .expect("reading a library does not panic, and nobody cancels it")
        .map_err(PreviewError::InvalidLibrary)
}
