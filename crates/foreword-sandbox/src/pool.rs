//! Decides which sandboxes run: one for each key, started once however many ask, at most so many at a time.
//!
//! A sandbox is in use while somebody holds a [`Lease`] on it. Over the limit, the one that has been out of use longest is stopped;
//! if all are in use, the newcomer is refused. Deliberately absent: what a sandbox is.

use std::{
    collections::{HashMap, VecDeque},
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use tokio::sync::Mutex as AsyncMutex;

use crate::{command::Restart, error::SandboxError, spec::SandboxKey};

/// What a pool needs to know of a sandbox.
#[async_trait]
pub(crate) trait Life: Send + Sync + 'static {
    /// Whether it still runs.
    fn is_alive(&self) -> bool;

    /// Why it ended, for whoever uses the one that takes its place.
    async fn why_ended(&self) -> Restart;

    /// What its user should be told of if it is stopped now without having been asked for.
    async fn would_lose(&self) -> Option<Restart>;

    /// Ends it and waits until it is gone. May be called more than once.
    async fn stop(&self);

    /// Lets go of one that is not alive, or not the right one, before another takes its place.
    async fn replace(&self) {
        self.stop().await;
    }

    /// Whether it goes on from where one before was, of which nothing was lost.
    fn goes_on(&self) -> bool {
        false
    }
}

/// The sandboxes that run.
pub(crate) struct Pool<S> {
    slots: Mutex<HashMap<SandboxKey, Arc<Slot<S>>>>,
    lost: Mutex<Lost>,
    max_running: usize,
    clock: fn() -> Instant,
}

/// The place of one key: it is in the map while the key has a sandbox or somebody wants it to.
struct Slot<S> {
    /// Held while the sandbox is started or stopped, so neither happens twice at a time.
    sandbox: AsyncMutex<Option<Arc<S>>>,
    use_: Mutex<Use>,
}

struct Use {
    /// Leases, and whoever is about to get one or to stop it. Changes under the lock of the map only.
    users: usize,
    since: Instant,
    /// Counts against the limit; the slot of one that waits for room does not yet.
    admitted: bool,
}

/// A sandbox in use.
pub(crate) struct Lease<S: Life> {
    /// The sandbox.
    pub(crate) sandbox: Arc<S>,
    /// What had to be done for it.
    pub(crate) origin: Origin,
    /// What was lost since the one before, if anybody should be told.
    pub(crate) lost: Option<Restart>,
    _claim: Claim<S>,
}

/// Where a leased sandbox comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It ran.
    Running,
    /// It was started.
    Started,
}

impl<S: Life> Pool<S> {
    pub(crate) fn new(max_running: usize, clock: fn() -> Instant) -> Arc<Self> {
        Arc::new(Self {
            slots: Mutex::default(),
            lost: Mutex::default(),
            max_running,
            clock,
        })
    }

    /// Gives the sandbox of `key`, which `start` makes if there is none that runs and `fits` its workspace.
    pub(crate) async fn lease<F>(
        self: &Arc<Self>,
        key: &SandboxKey,
        fits: impl FnOnce(&S) -> bool + Send,
        start: impl FnOnce() -> F + Send,
    ) -> Result<Lease<S>, SandboxError>
    where
        F: Future<Output = Result<S, SandboxError>> + Send,
    {
        let claim = self.claim(key);
        self.admit(&claim.slot).await?;
        let mut place = claim.slot.sandbox.lock().await;
        if let Some(sandbox) = &*place {
            if sandbox.is_alive() && fits(sandbox) {
                let sandbox = Arc::clone(sandbox);
                drop(place);
                return Ok(Lease {
                    sandbox,
                    origin: Origin::Running,
                    lost: None,
                    _claim: claim,
                });
            }
            let lost = if sandbox.is_alive() {
                Restart::Remade
            } else {
                sandbox.why_ended().await
            };
            self.lost().remember(key.clone(), lost);
            sandbox.replace().await;
            *place = None;
        }
        let sandbox = Arc::new(start().await?);
        let lost = self.lost().take(key).filter(|_| !sandbox.goes_on());
        *place = Some(Arc::clone(&sandbox));
        drop(place);
        Ok(Lease {
            sandbox,
            origin: Origin::Started,
            lost,
            _claim: claim,
        })
    }

    /// Stops the sandbox of `key`; says whether it ran.
    pub(crate) async fn stop(self: &Arc<Self>, key: &SandboxKey) -> bool {
        self.lost().take(key);
        let Some(claim) = self.claim_existing(key) else {
            return false;
        };
        claim.stop().await
    }

    /// Stops `sandbox` if the key still has this one.
    pub(crate) async fn stop_this(self: &Arc<Self>, key: &SandboxKey, sandbox: &Arc<S>) {
        if let Some(claim) = self.claim_existing(key) {
            let mut place = claim.slot.sandbox.lock().await;
            if place
                .as_ref()
                .is_some_and(|current| Arc::ptr_eq(current, sandbox))
            {
                *place = None;
            }
            sandbox.stop().await;
        }
    }

    /// Lets go of `sandbox` if the key still has this one, as before another takes its place.
    pub(crate) async fn replace_this(self: &Arc<Self>, key: &SandboxKey, sandbox: &Arc<S>) {
        if let Some(claim) = self.claim_existing(key) {
            let mut place = claim.slot.sandbox.lock().await;
            if place
                .as_ref()
                .is_some_and(|current| Arc::ptr_eq(current, sandbox))
            {
                *place = None;
            }
            sandbox.replace().await;
        }
    }

    /// Does `work` unless the key has a sandbox; none is started meanwhile.
    pub(crate) async fn unless_there<F: Future<Output = bool>>(
        self: &Arc<Self>,
        key: &SandboxKey,
        work: impl FnOnce() -> F,
    ) -> bool {
        let claim = self.claim(key);
        let place = claim.slot.sandbox.lock().await;
        place.is_none() && work().await
    }

    /// Stops all, at once.
    pub(crate) async fn stop_all(self: &Arc<Self>) {
        let claims: Vec<_> = self
            .keys()
            .iter()
            .filter_map(|key| self.claim_existing(key))
            .collect();
        futures::future::join_all(claims.iter().map(Claim::stop)).await;
    }

    /// Stops what nobody has used since `now - timeout`.
    pub(crate) async fn stop_idle(self: &Arc<Self>, now: Instant, timeout: Duration) -> usize {
        let mut stopped = 0;
        for key in self.keys() {
            let idle = |use_: &Use| {
                use_.users == 0 && now.saturating_duration_since(use_.since) >= timeout
            };
            if let Some(claim) = self.claim_if(&key, idle)
                && claim.stop_if_alone().await
            {
                stopped += 1;
            }
        }
        stopped
    }

    /// How many there are.
    pub(crate) fn running(&self) -> usize {
        self.slots().len()
    }

    /// Lets `slot` in, after stopping the longest idle one if there is no room.
    async fn admit(self: &Arc<Self>, slot: &Arc<Slot<S>>) -> Result<(), SandboxError> {
        loop {
            let victim = {
                let slots = self.slots();
                let admitted = slots
                    .values()
                    .filter(|slot| slot.lock_use().admitted)
                    .count();
                if slot.lock_use().admitted || admitted < self.max_running {
                    slot.lock_use().admitted = true;
                    return Ok(());
                }
                let idle = slots.iter().filter_map(|(key, slot)| {
                    let use_ = slot.lock_use();
                    (use_.users == 0).then_some((use_.since, key, slot))
                });
                let Some((_, key, slot)) = idle.min_by_key(|(since, ..)| *since) else {
                    return Err(SandboxError::Exhausted {
                        limit: self.max_running,
                    });
                };
                slot.lock_use().users += 1;
                Claim {
                    pool: Arc::clone(self),
                    key: key.clone(),
                    slot: Arc::clone(slot),
                }
            };
            victim.stop_if_alone().await;
        }
    }

    fn claim(self: &Arc<Self>, key: &SandboxKey) -> Claim<S> {
        let mut slots = self.slots();
        let slot = slots.entry(key.clone()).or_insert_with(|| {
            Arc::new(Slot {
                sandbox: AsyncMutex::new(None),
                use_: Mutex::new(Use {
                    users: 0,
                    since: (self.clock)(),
                    admitted: false,
                }),
            })
        });
        slot.lock_use().users += 1;
        Claim {
            pool: Arc::clone(self),
            key: key.clone(),
            slot: Arc::clone(slot),
        }
    }

    fn claim_existing(self: &Arc<Self>, key: &SandboxKey) -> Option<Claim<S>> {
        self.claim_if(key, |_| true)
    }

    fn claim_if(
        self: &Arc<Self>,
        key: &SandboxKey,
        wanted: impl FnOnce(&Use) -> bool,
    ) -> Option<Claim<S>> {
        let slots = self.slots();
        let slot = slots.get(key)?;
        let mut use_ = slot.lock_use();
        if !wanted(&use_) {
            return None;
        }
        use_.users += 1;
        drop(use_);
        Some(Claim {
            pool: Arc::clone(self),
            key: key.clone(),
            slot: Arc::clone(slot),
        })
    }

    fn lost(&self) -> MutexGuard<'_, Lost> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn keys(&self) -> Vec<SandboxKey> {
        self.slots().keys().cloned().collect()
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<SandboxKey, Arc<Slot<S>>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What sandboxes that are gone had to say. Of the last [`MOST_LOST`] only: that somebody comes back to more is unlikely.
#[derive(Default)]
struct Lost(VecDeque<(SandboxKey, Restart)>);

const MOST_LOST: usize = 1000;

impl Lost {
    fn remember(&mut self, key: SandboxKey, restart: Restart) {
        self.take(&key);
        self.0.push_back((key, restart));
        if self.0.len() > MOST_LOST {
            self.0.pop_front();
        }
    }

    fn take(&mut self, key: &SandboxKey) -> Option<Restart> {
        let place = self.0.iter().position(|(other, _)| other == key)?;
        self.0.remove(place).map(|(_, restart)| restart)
    }
}

impl<S> Slot<S> {
    fn lock_use(&self) -> MutexGuard<'_, Use> {
        self.use_.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One user of a slot. When the last one leaves a slot without a sandbox, the slot goes, so invented keys leave nothing behind.
struct Claim<S: Life> {
    pool: Arc<Pool<S>>,
    key: SandboxKey,
    slot: Arc<Slot<S>>,
}

impl<S: Life> Claim<S> {
    async fn stop(&self) -> bool {
        let mut place = self.slot.sandbox.lock().await;
        match place.take() {
            Some(sandbox) => {
                sandbox.stop().await;
                true
            }
            None => false,
        }
    }

    /// Stops the sandbox unless somebody came to use it in the meantime.
    async fn stop_if_alone(&self) -> bool {
        let mut place = self.slot.sandbox.lock().await;
        if self.slot.lock_use().users > 1 {
            return false;
        }
        match place.take() {
            Some(sandbox) => {
                if let Some(lost) = sandbox.would_lose().await {
                    self.pool.lost().remember(self.key.clone(), lost);
                }
                sandbox.stop().await;
                true
            }
            None => false,
        }
    }
}

impl<S: Life> Drop for Claim<S> {
    fn drop(&mut self) {
        let mut slots = self.pool.slots();
        let mut use_ = self.slot.lock_use();
        use_.users -= 1;
        use_.since = (self.pool.clock)();
        // Nobody holds the lock of the sandbox without a claim, so with no users left it is free.
        let empty = use_.users == 0
            && self
                .slot
                .sandbox
                .try_lock()
                .is_ok_and(|place| place.is_none());
        drop(use_);
        if empty {
            slots.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    struct Fake {
        alive: AtomicBool,
    }

    #[async_trait]
    impl Life for Fake {
        fn is_alive(&self) -> bool {
            self.alive.load(Ordering::SeqCst)
        }

        async fn why_ended(&self) -> Restart {
            Restart::Ended
        }

        async fn would_lose(&self) -> Option<Restart> {
            Some(Restart::Idle)
        }

        async fn stop(&self) {
            tokio::task::yield_now().await;
            self.alive.store(false, Ordering::SeqCst);
        }
    }

    fn key(word: &str) -> SandboxKey {
        SandboxKey::new(word).unwrap()
    }

    async fn fake() -> Result<Fake, SandboxError> {
        tokio::task::yield_now().await;
        Ok(Fake {
            alive: AtomicBool::new(true),
        })
    }

    async fn lease(pool: &Arc<Pool<Fake>>, word: &str) -> Result<Lease<Fake>, SandboxError> {
        pool.lease(&key(word), |_| true, fake).await
    }

    #[tokio::test]
    async fn a_hundred_callers_start_one_sandbox() {
        let pool = Pool::new(2, Instant::now);
        let starts = AtomicUsize::new(0);
        let (pool, starts) = (&pool, &starts);
        let leases = futures::future::join_all((0..100).map(|_| async move {
            let start = || {
                starts.fetch_add(1, Ordering::SeqCst);
                fake()
            };
            pool.lease(&key("a"), |_| true, start).await.unwrap()
        }))
        .await;
        assert_eq!(starts.load(Ordering::SeqCst), 1);
        assert_eq!(
            leases
                .iter()
                .filter(|lease| lease.origin == Origin::Started)
                .count(),
            1
        );
    }

    #[tokio::test]
    async fn the_longest_idle_one_makes_room() {
        let pool = Pool::new(2, Instant::now);
        let first = lease(&pool, "a").await.unwrap().sandbox;
        let second = lease(&pool, "b").await.unwrap().sandbox;
        drop(lease(&pool, "a").await.unwrap());
        lease(&pool, "c").await.unwrap();
        assert!(first.is_alive());
        assert!(!second.is_alive());
        assert_eq!(pool.running(), 2);
    }

    #[tokio::test]
    async fn a_newcomer_is_refused_when_all_are_busy() {
        let pool = Pool::new(1, Instant::now);
        let busy = lease(&pool, "a").await.unwrap();
        let refused = lease(&pool, "b").await;
        assert!(matches!(refused, Err(SandboxError::Exhausted { limit: 1 })));
        assert_eq!(pool.running(), 1);
        drop(busy);
        assert!(lease(&pool, "b").await.is_ok());
    }

    #[tokio::test]
    async fn only_what_is_idle_long_enough_is_stopped() {
        let pool = Pool::new(4, Instant::now);
        let idle = lease(&pool, "idle").await.unwrap().sandbox;
        let busy = lease(&pool, "busy").await.unwrap();
        let timeout = Duration::from_mins(10);
        assert_eq!(pool.stop_idle(Instant::now(), timeout).await, 0);
        assert_eq!(pool.stop_idle(Instant::now() + timeout, timeout).await, 1);
        assert!(!idle.is_alive() && busy.sandbox.is_alive());
        assert_eq!(pool.running(), 1);
    }

    #[tokio::test]
    async fn one_that_ended_is_replaced_and_said_so() {
        let pool = Pool::new(1, Instant::now);
        let first = lease(&pool, "a").await.unwrap();
        first.sandbox.stop().await;
        drop(first);
        let second = lease(&pool, "a").await.unwrap();
        assert_eq!(second.lost, Some(Restart::Ended));
        drop(second);
        let unfit = pool.lease(&key("a"), |_| false, fake).await.unwrap();
        assert_eq!(unfit.lost, Some(Restart::Remade));
    }

    #[tokio::test]
    async fn what_was_lost_is_told_once_and_not_after_a_stop_that_was_asked_for() {
        let pool = Pool::new(1, Instant::now);
        let lost = async |word| lease(&pool, word).await.unwrap().lost;
        assert_eq!(lost("a").await, None);
        assert_eq!(lost("b").await, None);
        assert_eq!(lost("a").await, Some(Restart::Idle));
        assert!(pool.stop(&key("a")).await);
        assert_eq!(lost("a").await, None);
        assert!(!pool.stop(&key("b")).await);
        assert_eq!(lost("b").await, None);
    }

    #[test]
    fn only_so_many_losses_are_remembered() {
        let mut lost = Lost::default();
        for number in 0..=MOST_LOST {
            lost.remember(key(&number.to_string()), Restart::Idle);
        }
        assert_eq!(lost.0.len(), MOST_LOST);
        assert_eq!(lost.take(&key("0")), None);
        assert_eq!(lost.take(&key("1000")), Some(Restart::Idle));
    }

    #[tokio::test]
    async fn keys_that_never_start_leave_nothing_behind() {
        let pool = Pool::<Fake>::new(1, Instant::now);
        for number in 0..50 {
            let fail = || async { Err(SandboxError::InvalidCommand("was never one")) };
            assert!(
                pool.lease(&key(&format!("k{number}")), |_| true, fail)
                    .await
                    .is_err()
            );
        }
        assert_eq!(pool.running(), 0);
        assert!(!pool.stop(&key("k1")).await);
    }
}
