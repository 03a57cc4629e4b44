//! Who may read a chat's outputs: whoever has a key, or a capability in the place of the chat id.

use axum::extract::FromRequestParts;
use http::request::Parts;

use super::access::record;
use crate::{
    app::App,
    config::{Role, SessionMode},
    error::ApiError,
    extract::chat_segment,
    links::{LinkError, Linked, UserTag},
    session::{ChatId, Session, SessionSources},
    workspace::{Workspace, WorkspaceError},
};

/// A caller who may read one chat's outputs, and nothing else by it.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    by: By,
}

#[derive(Debug, Clone)]
enum By {
    Key(Session),
    Capability {
        chat_id: ChatId,
        tag: UserTag,
        segment: String,
    },
}

impl Reader {
    pub(super) fn admit(app: &App, parts: &Parts) -> Result<Self, ApiError> {
        let segment = chat_segment(parts)?;
        let epoch = app.links().epoch(app.clock());
        let by = match app.links().read(&segment, epoch)? {
            Linked::Opened { chat: chat_id, tag } => {
                let is_single = app.config().session.mode == SessionMode::Single;
                if is_single && chat_id != ChatId::default_chat() {
                    return Err(LinkError::Forged.into());
                }
                By::Capability {
                    chat_id,
                    tag,
                    segment,
                }
            }
            Linked::Bare(chat_id) => {
                let caller = app.keys().caller_with(&parts.headers, Role::Api)?;
                record(&caller);
                let request = app.sessions().read(SessionSources {
                    headers: &parts.headers,
                    query: parts.uri.query(),
                    path_chat: Some(chat_id.as_str()),
                    meta: None,
                })?;
                By::Key(request.require()?)
            }
        };
        Ok(Self { by })
    }

    /// The chat in force.
    pub(crate) fn chat_id(&self) -> &ChatId {
        match &self.by {
            By::Key(session) => &session.chat_id,
            By::Capability { chat_id, .. } => chat_id,
        }
    }

    /// The chat's files, if it has any and this caller may see them.
    pub(crate) async fn workspace(&self, app: &App) -> Result<Option<Workspace>, WorkspaceError> {
        let (chat_id, tag) = match &self.by {
            By::Key(session) => return app.workspaces().find_for(session).await,
            By::Capability { chat_id, tag, .. } => (chat_id, tag),
        };
        let found = app.workspaces().find(chat_id).await?;
        match found.as_ref().and_then(Workspace::owner) {
            Some(owner) if !opens_to_owner(app, chat_id, tag, owner) => {
                Err(WorkspaceError::BelongsToAnotherUser)
            }
            _ => Ok(found),
        }
    }

    /// Where this caller finds the files. A capability is handed on as it is: one that renewed itself would never end.
    pub(crate) fn file_base_url(&self, app: &App) -> String {
        match &self.by {
            By::Key(session) => {
                let epoch = app.links().epoch(app.clock());
                let user = session.prompt_email().map(AsRef::as_ref);
                app.links()
                    .chat(&session.chat_id, user, epoch)
                    .file_base_url
            }
            By::Capability { segment, .. } => app.links().file_base_url(segment),
        }
    }
}

/// Whether a link that was made for the user of `tag` opens a chat of `owner`: anybody who may name chats can have a link
/// made for any of them, so the link alone says little.
fn opens_to_owner(app: &App, chat_id: &ChatId, tag: &UserTag, owner: &str) -> bool {
    let links = app.links();
    app.sessions().is_shared(chat_id)
        || links.is_for(tag, Some(owner))
        || (!app.config().session.require_owner && links.is_for(tag, None))
}

/// The reader that the route's guard let in.
impl<S: Sync> FromRequestParts<S> for Reader {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let reader = parts.extensions.get::<Self>();
        Ok(reader
            .expect("every route that asks for a reader has a guard for links in `router.rs`")
            .clone())
    }
}
