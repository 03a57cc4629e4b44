//! The changes of the library, as they happen and as far back as the store remembers.
//!
//! A follower is told each change once, in sequence, or that it missed some; it is never told less in silence. Nothing
//! is buffered per follower: the store's memory is read again whenever it says that there is more.

use std::{collections::VecDeque, fmt, sync::Arc};

use foreword_store::{Change, Store};
use futures::{Stream, stream};
use tokio::sync::broadcast::{self, error::RecvError};

use crate::app::App;

/// What a follower is told.
#[derive(Debug, Clone)]
pub enum LibraryEvent {
    /// The library changed.
    Changed(Arc<Change>),
    /// Changes were missed, so the library has to be read again; this is where it is now.
    Missed(Position),
}

/// How far a follower got: the number of a change, and the revision that it led to.
///
/// Numbers start again with each process, so the revision tells whether it is a change of this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The number of the change.
    pub id: u64,
    /// The revision that it led to.
    pub revision: String,
}

impl Position {
    /// The position of a follower who was told `change`.
    #[must_use]
    pub fn of(change: &Change) -> Self {
        Self {
            id: change.id,
            revision: change.revision.clone(),
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.id, self.revision)
    }
}

/// The changes after `position` (a [`Position`] as text), and from then on each one when it happens; only the latter
/// without a position.
pub fn follow_changes(
    app: &App,
    position: Option<&str>,
) -> impl Stream<Item = LibraryEvent> + Send + use<> {
    // Subscribed before the memory is read, so that nothing falls in between.
    let changes = app.store().changes();
    let follower = Follower::new(Arc::clone(app.store()), changes, position);
    stream::unfold(follower, |mut follower| async move {
        let event = follower.next().await?;
        Some((event, follower))
    })
}

struct Follower {
    store: Arc<dyn Store>,
    changes: broadcast::Receiver<Arc<Change>>,
    /// The number of the last change that was told.
    told: u64,
    pending: VecDeque<LibraryEvent>,
}

impl Follower {
    fn new(
        store: Arc<dyn Store>,
        changes: broadcast::Receiver<Arc<Change>>,
        position: Option<&str>,
    ) -> Self {
        let recent = store.recent_changes();
        let mut follower = Self {
            told: recent.last().map_or(0, |change| change.id),
            store,
            changes,
            pending: VecDeque::new(),
        };
        if let Some(position) = position {
            follower.resume(position, &recent);
        }
        follower
    }

    /// Queues what came after `position`, or that it is not known what did.
    fn resume(&mut self, position: &str, recent: &[Arc<Change>]) {
        let told = recent
            .iter()
            .find(|change| Position::of(change).to_string() == position);
        if let Some(change) = told {
            self.told = change.id;
            self.catch_up(recent);
            return;
        }
        let now = Position {
            id: self.told,
            revision: self.store.snapshot().revision.clone(),
        };
        // Of another process, perhaps, but the library is what it was then.
        if !position.ends_with(&now.revision) {
            self.pending.push_back(LibraryEvent::Missed(now));
        }
    }

    async fn next(&mut self) -> Option<LibraryEvent> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            match self.changes.recv().await {
                Ok(_) | Err(RecvError::Lagged(_)) => {
                    let recent = self.store.recent_changes();
                    self.catch_up(&recent);
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// Queues what of `recent` was not told yet.
    fn catch_up(&mut self, recent: &[Arc<Change>]) {
        let (Some(oldest), Some(newest)) = (recent.first(), recent.last()) else {
            return;
        };
        if oldest.id > self.told + 1 {
            self.pending
                .push_back(LibraryEvent::Missed(Position::of(newest)));
        } else {
            let untold = recent.iter().filter(|change| change.id > self.told);
            self.pending
                .extend(untold.cloned().map(LibraryEvent::Changed));
        }
        self.told = newest.id;
    }
}
