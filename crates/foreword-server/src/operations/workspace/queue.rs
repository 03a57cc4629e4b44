//! Lets work of one kind happen one after another in each chat, and never wait for another chat.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use foreword_sandbox::SandboxKey;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// Whose turn it is, chat by chat. Chats in which nobody waits take no room.
#[derive(Default)]
pub(crate) struct ChatQueue(Mutex<HashMap<SandboxKey, Weak<Turn<()>>>>);

impl ChatQueue {
    /// Waits until what came before in this chat is done; the next may begin when the guard is dropped.
    pub(crate) async fn turn(&self, key: &SandboxKey) -> OwnedMutexGuard<()> {
        self.of(key).lock_owned().await
    }

    fn of(&self, key: &SandboxKey) -> Arc<Turn<()>> {
        let mut chats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = chats.get(key).and_then(Weak::upgrade) {
            return turn;
        }
        chats.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::new(Turn::new(()));
        chats.insert(key.clone(), Arc::downgrade(&turn));
        turn
    }
}
