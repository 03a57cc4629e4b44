//! MCP over stdin and stdout: the same handler, for one session that the command line names.

use std::sync::Arc;

use foreword_sandbox::stop_idle_sandboxes;
use rmcp::{
    model::RequestMetaObject,
    service::{ServerInitializeError, serve_server_with_ct},
};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    app::App,
    serve::IDLE_CHECK,
    session::{SessionError, SessionReader, SessionRequest, SessionSources},
    workspace::keep_sweeping,
};

use super::handler::Handler;

/// Whose session it is, where a request's `_meta` does not say otherwise.
#[derive(Debug, Clone, Default)]
pub struct StdioSession {
    /// The chat id.
    pub chat_id: Option<String>,
    /// The user's e-mail address.
    pub user_email: Option<String>,
    /// The profile.
    pub profile_id: Option<String>,
}

impl StdioSession {
    /// The session of one request. There are no headers here, so the values are read as if `_meta` had held them.
    pub(super) fn read(
        &self,
        reader: &SessionReader,
        meta: &RequestMetaObject,
    ) -> Result<SessionRequest, SessionError> {
        let mut values: Map<String, Value> = [
            ("foreword/chat_id", &self.chat_id),
            ("foreword/user_email", &self.user_email),
            ("foreword/profile_id", &self.profile_id),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), Value::from(value.as_deref()?))))
        .collect();
        values.extend(
            meta.iter()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        reader.read(SessionSources {
            headers: &http::HeaderMap::new(),
            query: None,
            path_chat: None,
            meta: Some(&values),
        })
    }
}

/// Why a client on stdin was not served.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// The first thing it said was neither of the two handshakes.
    #[error("the client did not begin with `initialize` or `server/discover`")]
    NoHandshake,
    /// Its handshake was answered with an error.
    #[error("the handshake failed: {0}")]
    Refused(String),
    /// An answer could not be written.
    #[error("the client cannot be answered")]
    Unanswered(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Serves one client on `input` and `output` until it closes them or the app stops.
pub async fn serve_stdio(
    app: App,
    session: StdioSession,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), StdioError> {
    let stopping = app.stopping().clone();
    let sweeping = keep_sweeping(app.workspaces().clone(), stopping.clone());
    let sweeping = AbortOnDropHandle::new(tokio::spawn(sweeping));
    let sandboxes = Arc::clone(app.sandboxes());
    let connections = app.connections().clone();
    let idle = stop_idle_sandboxes(Arc::downgrade(&sandboxes), IDLE_CHECK);
    let idle = AbortOnDropHandle::new(tokio::spawn(idle));
    let handler = Handler::for_stdio(app, session);
    let served = serve_server_with_ct(handler, (input, output), stopping).await;
    let ended = match served {
        Ok(client) => {
            // How it ended is nobody's business any more.
            let _ = client.waiting().await;
            Ok(())
        }
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            Ok(())
        }
        Err(ServerInitializeError::InitializeFailed(error)) => {
            Err(StdioError::Refused(error.message.into_owned()))
        }
        Err(ServerInitializeError::TransportError { error, .. }) => {
            Err(StdioError::Unanswered(error.error))
        }
        Err(_) => Err(StdioError::NoHandshake),
    };
    drop((sweeping, idle));
    tokio::join!(sandboxes.stop_all(), connections.close());
    ended
}
