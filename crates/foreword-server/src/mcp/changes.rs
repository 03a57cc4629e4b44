//! Tells clients what is other than it was: the list of tools, and the session's uploads.
//!
//! Clients of 2026-07-28 listen where they want to know; those of older revisions are told on stdio, and over HTTP cannot
//! be told at all, so to them it is not declared.

use std::{future::pending, time::Duration};

use rmcp::{
    ErrorData, Peer, RoleServer,
    model::{ServerCapabilities, SubscriptionFilter},
    service::SubscriptionContext,
};
use tokio::{sync::watch, time::sleep};

use super::resources;
use crate::{
    app::App,
    session::{ChatId, Session},
    workspace::uploads::Stamp,
};

/// How often to look whether the uploads of a chat have changed: they may come through another process.
const LOOK: Duration = Duration::from_secs(1);

/// Says that changes are told, of what there is.
pub(super) fn declare(capabilities: &mut ServerCapabilities) {
    set(capabilities, Some(true));
}

/// Takes back what the older revisions could not receive over HTTP: without sessions there is nothing to send it on.
pub(super) fn retract(capabilities: &mut ServerCapabilities) {
    set(capabilities, None);
}

fn set(capabilities: &mut ServerCapabilities, told: Option<bool>) {
    if let Some(tools) = &mut capabilities.tools {
        tools.list_changed = told;
    }
    if let Some(resources) = &mut capabilities.resources {
        resources.list_changed = told;
    }
}

/// What can be listened to.
pub(super) fn subscription(app: &App) -> SubscriptionFilter {
    let tools = SubscriptionFilter::builder().tools_list_changed();
    if app.workspaces().are_kept() {
        tools.resources_list_changed().build()
    } else {
        tools.build()
    }
}

/// Tells of changes until the client or the server ends it; not of those to a chat that is another user's.
pub(super) async fn listen(
    app: &App,
    session: &Session,
    subscription: &SubscriptionContext,
) -> Result<(), ErrorData> {
    let accepted = subscription.accepted();
    let wants_tools = accepted.tools_list_changed == Some(true);
    let wants_resources = accepted.resources_list_changed == Some(true);
    let mut news = News::default();
    if wants_tools {
        news.tools = Some(app.connections().changes());
    }
    let telling = async {
        if wants_resources {
            let found = app.workspaces().find_for(session).await;
            found.map_err(|error| resources::refused(&error))?;
            news.uploads = Some(Uploads::of(app, &session.chat_id).await);
        }
        loop {
            let told = match news.next().await {
                Changed::Tools => subscription.sink().notify_tool_list_changed().await,
                Changed::Uploads => subscription.sink().notify_resource_list_changed().await,
            };
            if told.is_err() {
                return Ok(());
            }
        }
    };
    tokio::select! {
        told = telling => told,
        () = subscription.cancelled() => Ok(()),
        () = app.stopping().cancelled() => Ok(()),
    }
}

/// Tells a client of changes as long as it is there.
pub(super) fn tell(app: App, session: Session, peer: Peer<RoleServer>) {
    // It ends with its connection, of which stdio has one.
    tokio::spawn(async move {
        let telling = async {
            let mut news = News {
                tools: Some(app.connections().changes()),
                uploads: None,
            };
            if app.workspaces().are_kept() {
                news.uploads = Some(Uploads::of(&app, &session.chat_id).await);
            }
            loop {
                let told = match news.next().await {
                    Changed::Tools => peer.notify_tool_list_changed().await,
                    Changed::Uploads => peer.notify_resource_list_changed().await,
                };
                if told.is_err() {
                    return;
                }
            }
        };
        let closed = async {
            while !peer.is_transport_closed() {
                sleep(LOOK).await;
            }
        };
        tokio::select! {
            () = telling => {}
            () = closed => {}
            () = app.stopping().cancelled() => {}
        }
    });
}

/// What is other than it was.
enum Changed {
    Tools,
    Uploads,
}

/// What somebody wants to hear of.
#[derive(Default)]
struct News<'a> {
    tools: Option<watch::Receiver<u64>>,
    uploads: Option<Uploads<'a>>,
}

impl News<'_> {
    /// Waits for the next of them.
    async fn next(&mut self) -> Changed {
        let tools = async {
            let changed = match &mut self.tools {
                Some(tools) => tools.changed().await.is_ok(),
                None => false,
            };
            // The sender lives as long as the server.
            if !changed {
                pending::<()>().await;
            }
        };
        let uploads = async {
            match &mut self.uploads {
                Some(uploads) => uploads.changed().await,
                None => pending::<()>().await,
            }
        };
        tokio::select! {
            () = tools => Changed::Tools,
            () = uploads => Changed::Uploads,
        }
    }
}

/// The uploads of a chat, looked at now and then.
struct Uploads<'a> {
    app: &'a App,
    chat_id: &'a ChatId,
    known: Stamp,
}

impl<'a> Uploads<'a> {
    async fn of(app: &'a App, chat_id: &'a ChatId) -> Self {
        let known = app.workspaces().uploads_stamp(chat_id).await;
        Self {
            app,
            chat_id,
            known,
        }
    }

    /// Waits for the next change.
    async fn changed(&mut self) {
        loop {
            sleep(LOOK).await;
            let stamp = self.app.workspaces().uploads_stamp(self.chat_id).await;
            if stamp != self.known {
                self.known = stamp;
                return;
            }
        }
    }
}
