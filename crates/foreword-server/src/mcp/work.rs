//! A tool call in a workspace: decode, do, encode; progress on the way, and an end when nobody waits any more.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use foreword_sandbox::SandboxError;
use rmcp::{
    RoleServer,
    model::{CallToolResult, ContentBlock, JsonObject, ProgressNotificationParam},
    service::RequestContext,
};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::{
    app::App,
    config::SessionMode,
    operations::workspace::{
        Outcome, Place,
        bash::{self, Timeouts},
        edit,
        entry::{self, EntryError},
        view::{self, Seen},
    },
    session::Session,
    workspace::WorkspaceError,
};

use super::{arguments::Call, handler::progress_token};

/// How often a client that asked for it hears that a command still runs.
const PROGRESS: Duration = Duration::from_secs(2);

/// Does what the model asks for. What goes wrong is a result that the model can read.
pub(super) async fn call(
    app: &App,
    session: &Session,
    name: &str,
    arguments: Option<JsonObject>,
    context: &RequestContext<RoleServer>,
) -> CallToolResult {
    let timeouts = app.surroundings().timeouts();
    let timeouts = timeouts.expect("the tools of a workspace are there only with one");
    let seen = match Call::read(name, arguments, timeouts) {
        Err(fault) => failed(fault),
        Ok(call) => tokio::select! {
            seen = Box::pin(work(app, session, call, timeouts)) => {
                seen.unwrap_or_else(|error| Seen::Text(error.into()))
            }
            () = context.ct.cancelled() => failed("cancelled"),
            never = progress(context) => match never {},
        },
    };
    encode(seen, note(app, session))
}

async fn work(
    app: &App,
    session: &Session,
    call: Call,
    timeouts: Timeouts,
) -> Result<Seen, EntryError> {
    let entered = entry::enter(app, session).await?;
    let place = Place {
        sandboxes: &**app.sandboxes(),
        spec: &entered.spec,
    };
    Ok(match call {
        Call::Bash { command, timeout } => {
            Seen::Text(bash::run(place, command, timeout, timeouts).await?)
        }
        Call::View { path, range } => view::view(place, path, range).await?,
        Call::CreateFile { path, text } => {
            let _turn = app.edits().turn(&place.spec.key).await;
            Seen::Text(edit::create_file(place, path, text).await?)
        }
        Call::StrReplace { path, old, new } => {
            let _turn = app.edits().turn(&place.spec.key).await;
            Seen::Text(edit::str_replace(place, path, &old, &new).await?)
        }
    })
}

/// Says now and then that there is nothing new yet, if the client asked for it; never ends.
async fn progress(context: &RequestContext<RoleServer>) -> std::convert::Infallible {
    let Some(token) = progress_token(context) else {
        return std::future::pending().await;
    };
    let started = Instant::now();
    let mut ticks = interval_at(started + PROGRESS, PROGRESS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let seconds = started.elapsed().as_secs();
        #[expect(clippy::cast_precision_loss, reason = "nothing runs for that long")]
        let mut progress = ProgressNotificationParam::new(token.clone(), seconds as f64);
        progress.message = Some(format!("running for {seconds} s"));
        // A client that does not listen any more is seen by the transport.
        let _ = context.peer.notify_progress(progress).await;
    }
}

impl From<EntryError> for Outcome {
    fn from(error: EntryError) -> Self {
        match error {
            EntryError::Sandbox(error) => return error.into(),
            EntryError::Workspace(WorkspaceError::Failed(_))
            | EntryError::Readme(SandboxError::Backend { .. }) => tracing::error!(
                error = &error as &dyn std::error::Error,
                "A workspace cannot be entered"
            ),
            _ => {}
        }
        Self {
            text: error.to_string(),
            is_error: true,
        }
    }
}

/// What stands under each result where requests that name no chat share one.
fn note(app: &App, session: &Session) -> Option<String> {
    let lenient = app.config().session.mode == SessionMode::Lenient;
    (lenient && !session.chat_id_given).then(|| {
        let header = app.sessions().preferred_header();
        format!(
            "[This request names no chat, so it works in the chat `default`, which it shares with all others that name none; \
             the client can name its own in the header `{header}`.]"
        )
    })
}

fn encode(seen: Seen, note: Option<String>) -> CallToolResult {
    let (mut content, is_error) = match seen {
        Seen::Text(Outcome { text, is_error }) => (vec![ContentBlock::text(text)], is_error),
        Seen::Picture {
            bytes,
            mime_type,
            note,
        } => {
            let data = BASE64_STANDARD.encode(bytes);
            let mut content = vec![ContentBlock::image(data, mime_type)];
            content.extend(note.map(ContentBlock::text));
            (content, false)
        }
    };
    content.extend(note.map(ContentBlock::text));
    if is_error {
        CallToolResult::error(content)
    } else {
        CallToolResult::success(content)
    }
}

fn failed(text: impl Into<String>) -> Seen {
    Seen::Text(Outcome {
        text: text.into(),
        is_error: true,
    })
}
