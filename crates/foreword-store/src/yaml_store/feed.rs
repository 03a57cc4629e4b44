//! Tells whoever listens what changed, and remembers the last of it for those who come back.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;
use tokio::sync::broadcast;

use crate::store::{Change, RECENT_CHANGES};

/// The changes of one store.
#[derive(Debug)]
pub(crate) struct Feed {
    sender: broadcast::Sender<Arc<Change>>,
    recent: Mutex<VecDeque<Arc<Change>>>,
}

impl Feed {
    pub(crate) fn new() -> Self {
        Self {
            sender: broadcast::Sender::new(RECENT_CHANGES),
            recent: Mutex::new(VecDeque::with_capacity(RECENT_CHANGES)),
        }
    }

    pub(crate) fn publish(&self, revision: String, at: Timestamp, what: String) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let change = Arc::new(Change {
            id: recent.back().map_or(1, |last| last.id + 1),
            revision,
            at,
            what,
        });
        if recent.len() == RECENT_CHANGES {
            recent.pop_front();
        }
        recent.push_back(Arc::clone(&change));
        // Under the lock, so that the order is the same for both; nobody listening is no error.
        let _ = self.sender.send(change);
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<Change>> {
        self.sender.subscribe()
    }

    pub(crate) fn recent(&self) -> Vec<Arc<Change>> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.iter().cloned().collect()
    }
}
