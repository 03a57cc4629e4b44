//! Brings a server's news of how a call goes on to whoever waits for that call, in the order they came.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use rmcp::{
    RoleClient,
    model::{JsonRpcMessage, ProgressNotificationParam, ProgressToken, ServerNotification},
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
    pub(super) transport: T,
    pub(super) progress: Progress,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Watched<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.transport.receive().await?;
            let JsonRpcMessage::Notification(notification) = message else {
                return Some(message);
            };
            match notification.notification {
                ServerNotification::ProgressNotification(news) => {
                    self.progress.arrived(news.params)
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
