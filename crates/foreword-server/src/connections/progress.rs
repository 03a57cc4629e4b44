//! What is done with a server's messages before rmcp sees them: news of how a call goes on are brought to whoever waits for that
//! call, in the order they came, and what answers a question that was given up is dropped.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use rmcp::{
    RoleClient,
    model::{
        ClientRequest, JsonRpcMessage, ProgressNotificationParam, ProgressToken, RequestId,
        ServerNotification,
    },
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::sync::mpsc;

/// How many are kept for a call that does not read them; further ones are dropped, since newer ones follow.
const WAITING: usize = 64;

/// How many are kept that came before their call was known here: a server may be that quick.
const EARLY: usize = 64;

/// Who waits for news.
#[derive(Clone, Default)]
pub(super) struct Progress(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    calls: HashMap<ProgressToken, mpsc::Sender<ProgressNotificationParam>>,
    early: VecDeque<ProgressNotificationParam>,
}

/// The news of one call, as long as it is wanted.
pub(super) struct Subscription {
    token: ProgressToken,
    progress: Progress,
    pub(super) news: mpsc::Receiver<ProgressNotificationParam>,
}

impl Progress {
    /// News of the call with `token`, those included that have come already.
    pub(super) fn subscribe(&self, token: ProgressToken) -> Subscription {
        let (sender, news) = mpsc::channel(WAITING);
        let mut state = self.state();
        state.early.retain(|early| {
            let is_its = early.progress_token == token;
            if is_its {
                let _ = sender.try_send(early.clone());
            }
            !is_its
        });
        state.calls.insert(token.clone(), sender);
        drop(state);
        Subscription {
            token,
            progress: self.clone(),
            news,
        }
    }

    fn arrived(&self, news: ProgressNotificationParam) {
        let mut state = self.state();
        if let Some(call) = state.calls.get(&news.progress_token) {
            let _ = call.try_send(news);
            return;
        }
        if state.early.len() == EARLY {
            state.early.pop_front();
        }
        state.early.push_back(news);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.progress.state().calls.remove(&self.token);
    }
}

/// A transport that takes the news out of what it receives: handled as messages they could come after their call's answer.
pub(super) struct Watched<T> {
    transport: T,
    progress: Progress,
    /// The question of the newest revision, by its id.
    discovery: Option<RequestId>,
    /// The same once the question of the older ones was put: a server that took its time to start answers both, and rmcp would take
    /// the one for the other.
    given_up: Option<RequestId>,
}

impl<T> Watched<T> {
    pub(super) fn new(transport: T, progress: Progress) -> Self {
        Self {
            transport,
            progress,
            discovery: None,
            given_up: None,
        }
    }

    fn is_given_up(&self, message: &RxJsonRpcMessage<RoleClient>) -> bool {
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        id.is_some() && id == self.given_up.as_ref()
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Watched<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &item {
            match &request.request {
                ClientRequest::DiscoverRequest(_) => self.discovery = Some(request.id.clone()),
                ClientRequest::InitializeRequest(_) => self.given_up = self.discovery.take(),
                _ => {}
            }
        }
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.transport.receive().await?;
            if self.is_given_up(&message) {
                continue;
            }
            let JsonRpcMessage::Notification(notification) = message else {
                return Some(message);
            };
            match notification.notification {
                ServerNotification::ProgressNotification(news) => {
                    self.progress.arrived(news.params);
                }
                // Asked for by nobody, and however many there are.
                ServerNotification::LoggingMessageNotification(_) => {}
                _ => return Some(JsonRpcMessage::Notification(notification)),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}
