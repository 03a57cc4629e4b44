//! Watches what a workspace takes on disk: each second while a command runs, and exactly after it.
//!
//! A walk finds files that have a name. What is written to one that was deleted while it is open shows as free space only, of which
//! nobody knows who took it: whoever runs while it falls again and again below the minimum has to end.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::timeout;

use crate::{
    command::Ending,
    state::Usage,
    workspace::{LEAST_BYTES, measure},
};

/// How often is looked while a command runs. A walk that takes long is followed by a rest of ten times as long.
pub(crate) const SAMPLE_PERIOD: Duration = Duration::from_secs(1);
pub(crate) const REST_FACTOR: u32 = 10;
/// When is looked first at a command that begins over the quota: short ones could else write again and again.
const SOON: Duration = Duration::from_millis(100);
/// How long an answer may wait for a count that spares the model a wrong note.
const COUNT_PATIENCE: Duration = Duration::from_millis(500);
/// A fall of free space that is worth a second look.
const NOTICED_BYTES: u64 = 16 << 20;
/// So many samples without a fall, and the falls before are forgotten.
const QUIET_SAMPLES: u32 = 3;

/// What a workspace holds.
pub(crate) struct UsageWatch {
    directories: Vec<PathBuf>,
    quota: u64,
    min_free: u64,
    disk: Arc<Disk>,
    counted: Mutex<Option<u64>>,
    /// Held by whoever counts.
    counting: Arc<tokio::sync::Mutex<()>>,
}

/// What is free of a disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Free {
    /// Bytes; fewer if there are few places for files left, since each file takes one.
    pub(crate) bytes: u64,
    /// A number that gets smaller whatever is written, bytes or empty files; only its changes mean something.
    pub(crate) room: u64,
}

/// What the workspaces of one backend have in common.
#[derive(Default)]
pub(crate) struct Disk {
    /// How many were ended because they filled it.
    ended: AtomicU64,
}

impl UsageWatch {
    /// `quota` 0 is without limit.
    pub(crate) fn new(
        directories: Vec<PathBuf>,
        quota: u64,
        min_free: u64,
        disk: Arc<Disk>,
    ) -> Arc<Self> {
        let quota = if quota == 0 { u64::MAX } else { quota };
        Arc::new(Self {
            directories,
            quota,
            min_free,
            disk,
            counted: Mutex::new(None),
            counting: Arc::default(),
        })
    }

    /// What is used, if it is more than the quota, as last counted.
    pub(crate) fn over_quota(&self) -> Option<Usage> {
        self.beyond_quota((*self.counted())?)
    }

    /// The same, counted anew if it is: what was too much may have been deleted. If counting takes long, the last count is said.
    pub(crate) async fn over_quota_now(self: &Arc<Self>) -> Option<Usage> {
        self.over_quota()?;
        let watch = Arc::clone(self);
        let count = async move {
            let turn = Arc::clone(&watch.counting).lock_owned().await;
            let work = move || {
                watch.count();
                drop(turn);
            };
            tokio::task::spawn_blocking(work).await
        };
        // What has begun goes on in the background.
        let _ = timeout(COUNT_PATIENCE, count).await;
        self.over_quota()
    }

    /// `used`, if it is more than the quota.
    pub(crate) fn beyond_quota(&self, used: u64) -> Option<Usage> {
        (used > self.quota).then_some(Usage {
            used,
            limit: self.quota,
        })
    }

    /// Counts in the background, unless that is being done already.
    pub(crate) fn recount(self: &Arc<Self>) {
        if self.is_idle() {
            return;
        }
        if let Ok(turn) = Arc::clone(&self.counting).try_lock_owned() {
            let watch = Arc::clone(self);
            tokio::task::spawn_blocking(move || {
                watch.count();
                drop(turn);
            });
        }
    }

    /// What was counted last, if nobody is counting anew.
    pub(crate) fn settled(&self) -> Option<u64> {
        let _turn = self.counting.try_lock().ok()?;
        *self.counted()
    }

    /// Looks again and again, and comes back when the command has to end. Only growth counts: what was too large before may be made
    /// smaller.
    pub(crate) async fn wait_for_too_much(self: Arc<Self>) -> Ending {
        if self.is_idle() {
            return std::future::pending().await;
        }
        let mut before = *self.counted();
        let mut falling = Falling::from(self.free().room, &self.disk);
        let mut rest = if self.over_quota().is_some() {
            SOON
        } else {
            SAMPLE_PERIOD
        };
        loop {
            tokio::time::sleep(rest).await;
            let started = tokio::time::Instant::now();
            let Some((used, free)) = Arc::clone(&self).sample().await else {
                continue;
            };
            rest = SAMPLE_PERIOD.max(started.elapsed() * REST_FACTOR);
            let grown = used > *before.get_or_insert(used);
            if let Some(usage) = self.beyond_quota(used).filter(|_| grown) {
                return Ending::Quota(usage);
            }
            let fall = falling.look(free.room, self.is_low(free), &self.disk);
            if self.is_low(free) && (grown || fall == Fall::Again) {
                self.disk.note_end();
                return Ending::DiskFull {
                    free: free.bytes,
                    min_free: self.min_free,
                };
            }
        }
    }

    /// Whether less is free than has to stay free.
    pub(crate) fn is_low(&self, free: Free) -> bool {
        free.bytes < self.min_free
    }

    /// The disk, which others have as well.
    pub(crate) fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Counts, unless another command's watch is counting now; then what was counted last has to do.
    pub(crate) async fn sample(self: Arc<Self>) -> Option<(u64, Free)> {
        let watch = Arc::clone(&self);
        let Ok(turn) = Arc::clone(&self.counting).try_lock_owned() else {
            let used = *self.counted();
            let free = tokio::task::spawn_blocking(move || watch.free())
                .await
                .ok()?;
            return Some((used?, free));
        };
        // The turn goes with the work, also if nobody waits for it any more.
        let work = move || {
            let sample = (watch.count(), watch.free());
            drop(turn);
            sample
        };
        tokio::task::spawn_blocking(work).await.ok()
    }

    /// Whether there is nothing to watch.
    pub(crate) fn is_idle(&self) -> bool {
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

    /// What is free of the disk.
    pub(crate) fn free(&self) -> Free {
        let free = |directory: &PathBuf| {
            let disk = rustix::fs::statvfs(directory).ok()?;
            let bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
            let files = (disk.f_files > 0).then(|| disk.f_favail.saturating_mul(LEAST_BYTES));
            Some(Free {
                bytes: bytes.min(files.unwrap_or(u64::MAX)),
                room: bytes.saturating_add(files.unwrap_or(0)),
            })
        };
        self.directories
            .iter()
            .filter_map(free)
            .min_by_key(|free| free.bytes)
            .unwrap_or(Free {
                bytes: u64::MAX,
                room: u64::MAX,
            })
    }

    fn counted(&self) -> MutexGuard<'_, Option<u64>> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk {
    /// Somebody who filled it was ended.
    pub(crate) fn note_end(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }
}

/// Follows free space from sample to sample.
pub(crate) struct Falling {
    /// The most that was free since it last fell.
    mark: u64,
    /// How often it fell while it was low.
    falls: u32,
    quiet: u32,
    ended: u64,
}

/// What free space did since the sample before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fall {
    No,
    Once,
    /// For the second time shortly one after another, while it was low and nobody else was ended for it.
    Again,
}

impl Falling {
    pub(crate) fn from(free: u64, disk: &Disk) -> Self {
        Self {
            mark: free,
            falls: 0,
            quiet: 0,
            ended: disk.ended(),
        }
    }

    /// Takes a sample.
    pub(crate) fn look(&mut self, free: u64, is_low: bool, disk: &Disk) -> Fall {
        let ended = disk.ended();
        if self.ended != ended {
            // It may have been theirs.
            self.ended = ended;
            self.falls = 0;
        }
        if free.saturating_add(NOTICED_BYTES) > self.mark {
            self.mark = self.mark.max(free);
            self.quiet += 1;
            if self.quiet > QUIET_SAMPLES {
                self.falls = 0;
            }
            return Fall::No;
        }
        self.mark = free;
        self.quiet = 0;
        self.falls = if is_low { self.falls + 1 } else { 0 };
        if self.falls > 1 {
            Fall::Again
        } else {
            Fall::Once
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of these samples, in MiB, of which less than a hundred is low.
    fn falls(samples: &[u64]) -> Vec<Fall> {
        let disk = Disk::default();
        let mut falling = Falling::from(samples[0] << 20, &disk);
        samples[1..]
            .iter()
            .map(|free| falling.look(free << 20, *free < 100, &disk))
            .collect()
    }

    #[test]
    fn free_space_falls_again_only_while_it_is_low() {
        use Fall::{Again, No, Once};
        assert_eq!(falls(&[90, 70, 60, 50, 50]), [Once, No, Again, No]);
        assert_eq!(falls(&[200, 180, 160, 90, 70]), [Once, Once, Once, Again]);
        assert_eq!(
            falls(&[90, 70, 70, 70, 70, 70, 50]),
            [Once, No, No, No, No, Once]
        );
        assert_eq!(falls(&[90, 70, 95, 79]), [Once, No, Again]);
    }

    #[test]
    fn a_fall_that_another_was_ended_for_does_not_count() {
        let disk = Disk::default();
        let mut falling = Falling::from(90 << 20, &disk);
        assert_eq!(falling.look(70 << 20, true, &disk), Fall::Once);
        disk.note_end();
        assert_eq!(falling.look(50 << 20, true, &disk), Fall::Once);
        assert_eq!(falling.look(30 << 20, true, &disk), Fall::Again);
    }
}
