//! Notices changes of the library's file that did not come through the store.
//!
//! One thread of its own, because looking means reading and parsing. It is woken by the operating system, and looks
//! every few seconds in any case: network file systems accept a watch and then report nothing.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{
        Weak,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use notify::{
    EventKind, RecommendedWatcher, RecursiveMode, Watcher as _,
    event::{AccessKind, AccessMode},
};
use tracing::warn;

use super::keeper::Keeper;

/// Looks after the file until it is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    wake: SyncSender<Wake>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wake {
    Look,
    Stop,
}

impl Watch {
    /// Starts to watch on behalf of `keeper`.
    pub(super) fn start(keeper: Weak<Keeper>, every: Duration) -> std::io::Result<Self> {
        // Room for one: a second reason to look adds nothing.
        let (wake, wakes) = sync_channel(1);
        let watcher = watcher(wake.clone());
        thread::Builder::new()
            .name("library-watch".to_owned())
            .spawn(move || run(&keeper, &wakes, watcher, every))?;
        Ok(Self { wake })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // If there is no room, the thread wakes anyway and finds the keeper gone.
        let _ = self.wake.try_send(Wake::Stop);
    }
}

fn run(
    keeper: &Weak<Keeper>,
    wakes: &Receiver<Wake>,
    mut watcher: Option<RecommendedWatcher>,
    every: Duration,
) {
    let mut previous: BTreeSet<PathBuf> = BTreeSet::new();
    while let Some(keeper) = keeper.upgrade() {
        if let Some(watcher) = &mut watcher {
            let directories = keeper.directories();
            for old in previous.difference(&directories) {
                let _ = watcher.unwatch(old);
            }
            // Each time: a directory can be replaced under the same name. One that is watched already stays so.
            for directory in &directories {
                let _ = watcher.watch(directory, RecursiveMode::NonRecursive);
            }
            previous = directories;
        }
        // After the watch is set, so that no change falls between.
        keeper.reload();
        drop(keeper);
        match wakes.recv_timeout(every) {
            Ok(Wake::Look) | Err(RecvTimeoutError::Timeout) => {}
            Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn watcher(wake: SyncSender<Wake>) -> Option<RecommendedWatcher> {
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Reading is an event as well; without this, each look would cause the next.
        let is_read = matches!(&event, Ok(event) if matches!(event.kind, EventKind::Access(kind)
            if kind != AccessKind::Close(AccessMode::Write)));
        if !is_read {
            let _ = wake.try_send(Wake::Look);
        }
    });
    watcher
        .inspect_err(|error| {
            warn!(%error, "The library file cannot be watched; it is looked at every few seconds instead");
        })
        .ok()
}
