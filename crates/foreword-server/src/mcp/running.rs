//! The tool calls that run, so that `notifications/cancelled` of the older revisions finds the one it means.
//!
//! Over HTTP that notification comes as a request of its own, and the ids in it are the client's: two clients both call their
//! first request 1. So a call is known by its key, chat, user and id together; and where two still agree, none is cancelled,
//! since ending the wrong one would be worse than ending none.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use rmcp::model::RequestId;
use tokio_util::sync::CancellationToken;

use crate::session::{ChatId, Session};

/// By what a client knows its call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct CallName {
    key_name: Option<Arc<str>>,
    chat_id: ChatId,
    user_email: Option<Arc<str>>,
    request_id: RequestId,
}

impl CallName {
    pub(super) fn new(
        key_name: Option<Arc<str>>,
        session: &Session,
        request_id: RequestId,
    ) -> Self {
        Self {
            key_name,
            chat_id: session.chat_id.clone(),
            user_email: session.user_email.clone(),
            request_id,
        }
    }
}

/// The calls that run now: never more than there are connections.
#[derive(Default)]
pub(super) struct RunningCalls {
    namesakes: Mutex<HashMap<CallName, Vec<Running>>>,
    numbers: AtomicU64,
}

struct Running {
    number: u64,
    cancel: CancellationToken,
}

impl RunningCalls {
    /// Lists a call for as long as the guard lives.
    pub(super) fn enter(
        self: &Arc<Self>,
        name: CallName,
        cancel: CancellationToken,
    ) -> RunningCall {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let running = Running { number, cancel };
        self.lock().entry(name.clone()).or_default().push(running);
        RunningCall {
            calls: Arc::clone(self),
            name,
            number,
        }
    }

    /// Ends the call of that name, if there is exactly one.
    pub(super) fn cancel(&self, name: &CallName) {
        match self.lock().get(name).map(Vec::as_slice) {
            Some([only]) => only.cancel.cancel(),
            Some(_) => tracing::debug!(
                "Several calls have the name of one that was cancelled; none was ended"
            ),
            // It has ended meanwhile, which is usual.
            None => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CallName, Vec<Running>>> {
        self.namesakes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call in the list.
pub(super) struct RunningCall {
    calls: Arc<RunningCalls>,
    name: CallName,
    number: u64,
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        let mut calls = self.calls.lock();
        if let Some(namesakes) = calls.get_mut(&self.name) {
            namesakes.retain(|running| running.number != self.number);
            if namesakes.is_empty() {
                calls.remove(&self.name);
            }
        }
    }
}
