//! Watches what a workspace takes on disk: each second while a command runs, and exactly after it.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::{
    command::Ending,
    state::Usage,
    workspace::{LEAST_BYTES, measure},
};

/// How often is looked while a command runs. A walk that takes long is followed by a rest of ten times as long.
pub(super) const SAMPLE_PERIOD: Duration = Duration::from_secs(1);
const REST_FACTOR: u32 = 10;

/// What a workspace holds.
pub(super) struct UsageWatch {
    directories: Vec<PathBuf>,
    quota: u64,
    min_free: u64,
    counted: Mutex<Option<u64>>,
    counting: AtomicBool,
}

impl UsageWatch {
    /// `quota` 0 is without limit.
    pub(super) fn new(directories: Vec<PathBuf>, quota: u64, min_free: u64) -> Arc<Self> {
        let quota = if quota == 0 { u64::MAX } else { quota };
        Arc::new(Self {
            directories,
            quota,
            min_free,
            counted: Mutex::new(None),
            counting: AtomicBool::new(false),
        })
    }

    /// What is used, if it is more than the quota, as last counted.
    pub(super) fn over_quota(&self) -> Option<Usage> {
        let used = (*self.counted())?;
        (used > self.quota).then_some(Usage {
            used,
            limit: self.quota,
        })
    }

    /// Counts in the background, unless that is being done already.
    pub(super) fn recount(self: &Arc<Self>) {
        if self.is_idle() || self.counting.swap(true, Ordering::SeqCst) {
            return;
        }
        let watch = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            watch.count();
            watch.counting.store(false, Ordering::SeqCst);
        });
    }

    /// Looks again and again, and comes back when the command has to end. Only growth counts: what was too large before may be made smaller.
    pub(super) async fn wait_for_too_much(self: Arc<Self>) -> Ending {
        if self.is_idle() {
            return std::future::pending().await;
        }
        let mut before = *self.counted();
        let mut rest = SAMPLE_PERIOD;
        loop {
            tokio::time::sleep(rest).await;
            let started = tokio::time::Instant::now();
            let Some((used, free)) = Arc::clone(&self).sample().await else {
                continue;
            };
            rest = SAMPLE_PERIOD.max(started.elapsed() * REST_FACTOR);
            let grown = used > *before.get_or_insert(used);
            if grown && used > self.quota {
                return Ending::Quota(Usage {
                    used,
                    limit: self.quota,
                });
            }
            if grown && free < self.min_free {
                return Ending::DiskFull {
                    free,
                    min_free: self.min_free,
                };
            }
        }
    }

    /// Counts, unless another command's watch is counting now; then what was counted last has to do.
    async fn sample(self: Arc<Self>) -> Option<(u64, u64)> {
        let watch = Arc::clone(&self);
        if self.counting.swap(true, Ordering::SeqCst) {
            let used = *self.counted();
            let free = tokio::task::spawn_blocking(move || watch.free())
                .await
                .ok()?;
            return Some((used?, free));
        }
        // The mark goes with the work, also if nobody waits for it any more.
        let work = move || {
            let sample = (watch.count(), watch.free());
            watch.counting.store(false, Ordering::SeqCst);
            sample
        };
        tokio::task::spawn_blocking(work).await.ok()
    }

    fn is_idle(&self) -> bool {
        self.quota == u64::MAX && self.min_free == 0
    }

    fn count(&self) -> u64 {
        let used = self
            .directories
            .iter()
            .filter_map(|directory| measure(directory).ok())
            .sum();
        *self.counted() = Some(used);
        used
    }

    /// Bytes that are free; fewer if there are few places for files left, since each file takes one.
    fn free(&self) -> u64 {
        let free = |directory: &PathBuf| {
            let disk = rustix::fs::statvfs(directory).ok()?;
            let bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
            let files = if disk.f_files == 0 {
                u64::MAX
            } else {
                disk.f_favail
            };
            Some(bytes.min(files.saturating_mul(LEAST_BYTES)))
        };
        self.directories
            .iter()
            .filter_map(free)
            .min()
            .unwrap_or(u64::MAX)
    }

    fn counted(&self) -> MutexGuard<'_, Option<u64>> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
