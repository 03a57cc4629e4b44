//! The service that says which skills a user has, and holds them as archives: who asks it when, and who waits for that.
//!
//! It may be slow, down, wrong, or hostile, and everything works on: what it said last is kept in memory and on disk, its answers are
//! bounded and checked, and nobody waits for it longer than [`Patience`] says. Its URL and key come from the configuration only.

mod answer;
mod archives;
mod kept;
mod list;
mod service;

use std::{
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use moka::{policy::EvictionPolicy, sync::Cache as Moka};
use tokio::{
    sync::{OnceCell, Semaphore, watch},
    time::{Instant, timeout_at},
};

use super::{cache::Cache, config::ProviderConfig};
use answer::Answering;
use archives::Archives;
use kept::Kept;
use list::List;
use service::{Fault, LIST_WITHIN, Service};

pub(super) use answer::Answer;

/// How long an answer is good.
const GOOD_FOR: Duration = Duration::from_mins(1);

/// When it is asked for anew in the background, so that nobody waits when it is no longer good.
const REFRESH_AFTER: Duration = Duration::from_secs(40);

/// How long to wait after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// How many users are asked for at once.
const USERS_AT_ONCE: usize = 16;

/// How much what is remembered of users may take, in bytes; who is forgotten is looked up on disk.
const USERS_BYTES: u64 = 64 << 20;

/// What a user takes beside the answer, in bytes.
const USER_BYTES: usize = 1 << 10;

/// How often archives are removed that nobody has any more.
const TIDY_EACH: Duration = Duration::from_hours(24);

/// Why something may be missing of an answer.
const INCOMPLETE: &str = "some skills could not be fetched yet";

/// An address that is nobody's.
const NOBODY: &str = "doctor@foreword.invalid";

/// How long somebody waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Not at all where there is anything at hand, else for the time that is set for handshakes.
    Handshake,
    /// As long as the list of skills may take: what is said and what is there are to be the same.
    Call,
}

/// How a provider answers whoever only looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// With a list.
    WithAList,
    /// That it does not know somebody who is nobody; so does a server that is no provider.
    NotFound,
}

/// The provider.
pub(super) struct Provider {
    service: Service,
    handshake_wait: Duration,
    cache: Cache,
    archives: Archives,
    kept: Kept,
    users: Moka<Arc<str>, Arc<User>>,
    /// Until when it counts as down, for users who were never seen before too.
    down_until: Mutex<Option<Instant>>,
    /// When archives were removed last that nobody has.
    tidied: Mutex<Instant>,
    asking: Semaphore,
}

/// One user, as far as the provider has spoken of them.
struct User {
    state: Mutex<State>,
    /// Set when it was looked for what was kept.
    looked_up: OnceCell<()>,
    /// Counts what came of asking.
    asked: watch::Sender<u64>,
    /// What it takes in memory.
    bytes: AtomicU32,
}

#[derive(Default)]
struct State {
    answer: Option<Arc<Answer>>,
    answered: Option<Instant>,
    failed: Option<(Instant, String)>,
    is_asking: bool,
    /// When it was asked for that is being asked for, or was last.
    asked: Option<Instant>,
}

/// What there is for a user now.
pub(super) struct Given {
    /// None where the provider never said anything.
    pub(super) answer: Option<Arc<Answer>>,
    /// Why it may be old, or is missing.
    pub(super) trouble: Option<String>,
}

impl Provider {
    /// None where none is configured.
    pub(super) fn new(config: &ProviderConfig, directory: &Path) -> Result<Option<Self>, String> {
        let Some(service) = Service::new(config)? else {
            return Ok(None);
        };
        let cache = Cache::new(directory.join("cache"));
        Ok(Some(Self {
            service,
            handshake_wait: config.handshake_wait(),
            archives: Archives::new(cache.clone()),
            cache,
            kept: Kept::new(directory.join("provider")),
            users: Moka::builder()
                .max_capacity(USERS_BYTES)
                .weigher(|_, user: &Arc<User>| user.bytes.load(Ordering::Relaxed))
                .eviction_policy(EvictionPolicy::lru())
                .build(),
            down_until: Mutex::new(None),
            tidied: Mutex::new(Instant::now()),
            asking: Semaphore::new(USERS_AT_ONCE),
        }))
    }

    /// Removes what an earlier process left half done, and archives that nobody has any more.
    pub(super) fn tidy(&self) {
        match self.kept.archives() {
            Ok(wanted) => self.cache.tidy(&wanted),
            Err(error) => {
                tracing::warn!(%error, "What users have of the provider cannot be read; no archive is removed");
            }
        }
    }

    /// Asks for the skills of somebody who has none, to see whether it answers.
    pub(super) async fn check(&self) -> Result<Answered, String> {
        match self.service.list(NOBODY).await {
            Ok(Some(_)) => Ok(Answered::WithAList),
            Ok(None) => Ok(Answered::NotFound),
            Err(fault) => Err(fault.to_string()),
        }
    }

    /// What there is for a user now, after waiting as long as `patience` says.
    pub(super) async fn given(self: &Arc<Self>, email: &Arc<str>, patience: Patience) -> Given {
        let user = self.users.get_with(Arc::clone(email), Arc::default);
        let most = match patience {
            Patience::Handshake => self.handshake_wait,
            Patience::Call => LIST_WITHIN,
        };
        let deadline = Instant::now() + most;
        let _ = timeout_at(deadline, self.look_up(&user, email)).await;
        let mut asked = user.asked.subscribe();
        let until = {
            let mut state = user.state();
            let failed_just_now = state
                .failed
                .as_ref()
                .is_some_and(|(at, _)| at.elapsed() < AFTER_FAILURE);
            if !state.is_asking && !failed_just_now && !state.is_younger_than(REFRESH_AFTER) {
                state.is_asking = true;
                state.asked = Some(Instant::now());
                tokio::spawn(Arc::clone(self).ask(Arc::clone(&user), Arc::clone(email)));
            }
            match patience {
                _ if !state.is_asking || state.is_younger_than(GOOD_FOR) => None,
                // From when it was asked: archives that take longer are waited for by nobody.
                Patience::Call => state.asked.map(|asked| asked + LIST_WITHIN),
                Patience::Handshake if state.answer.is_some() || self.is_down() => None,
                Patience::Handshake => Some(deadline),
            }
        };
        if let Some(until) = until {
            let answered =
                async { while asked.changed().await.is_ok() && user.state().is_asking {} };
            // Over that time, with what there is.
            let _ = timeout_at(until, answered).await;
        }
        let state = user.state();
        let trouble = match (&state.failed, &state.answer) {
            (Some((_, why)), _) => Some(why.clone()),
            (None, None) => Some("the provider has not answered yet".to_owned()),
            (None, Some(answer)) if answer.is_incomplete => Some(INCOMPLETE.to_owned()),
            (None, Some(_)) if !state.is_younger_than(GOOD_FOR) => {
                Some("this is what the provider said before; it is being asked again".to_owned())
            }
            (None, Some(_)) => None,
        };
        Given {
            answer: state.answer.clone(),
            trouble,
        }
    }

    fn is_down(&self) -> bool {
        locked(&self.down_until).is_some_and(|until| Instant::now() < until)
    }

    /// Reads what was kept of a user, once.
    async fn look_up(&self, user: &Arc<User>, email: &Arc<str>) {
        let looking = async {
            let (kept, cache, whose) = (self.kept.clone(), self.cache.clone(), Arc::clone(email));
            let reading = tokio::task::spawn_blocking(move || kept.read(&whose, &cache));
            let kept = reading
                .await
                .expect("reading does not panic, and nobody cancels it");
            if let Some(kept) = kept {
                let bytes = kept.bytes();
                // Somebody may have asked meanwhile.
                user.state().answer.get_or_insert_with(|| Arc::new(kept));
                self.weigh(user, email, bytes);
            }
        };
        user.looked_up.get_or_init(|| looking).await;
    }

    /// Makes it what the user has now.
    fn tell(&self, user: &Arc<User>, email: &Arc<str>, answer: Answer) {
        let bytes = answer.bytes();
        user.state().answer = Some(Arc::new(answer));
        self.weigh(user, email, bytes);
    }

    fn weigh(&self, user: &Arc<User>, email: &Arc<str>, bytes: usize) {
        let bytes = u32::try_from(bytes + USER_BYTES).unwrap_or(u32::MAX);
        user.bytes.store(bytes, Ordering::Relaxed);
        // It is weighed when it is put there.
        self.users.insert(Arc::clone(email), Arc::clone(user));
    }

    /// Asks the provider, and keeps what it says.
    async fn ask(self: Arc<Self>, user: Arc<User>, email: Arc<str>) {
        let _asking = Asking(&user);
        let has_to_queue = self.asking.available_permits() == 0;
        let permit = self.asking.acquire().await;
        // Those before found out: a queue of many users is over as soon as the first of them is.
        let listed = if has_to_queue && self.is_down() {
            Err(Fault::Silent("it did not answer others either".to_owned()))
        } else {
            self.service.list(&email).await
        };
        drop(permit);
        match listed {
            Ok(list) => {
                *locked(&self.down_until) = None;
                self.answer(&user, &email, list).await;
                self.tidy_now_and_then();
            }
            Err(fault) => self.failed(&user, &fault),
        }
    }

    async fn answer(&self, user: &Arc<User>, email: &Arc<str>, list: Option<List>) {
        // A user whom the provider does not know leaves nothing behind.
        let is_known = list.is_some();
        let list = list.unwrap_or_default();
        let before = user.state().answer.clone();
        let (service, archives) = (&self.service, &self.archives);
        let answering = Answering::begin(email, service, archives, list, before.as_deref()).await;
        self.tell(user, email, answering.so_far());
        let answer = answering.finish(|so_far| self.tell(user, email, so_far));
        let answer = answer.await;
        let (kept, whose, said) = (self.kept.clone(), Arc::clone(email), answer.clone());
        let writing = tokio::task::spawn_blocking(move || {
            if is_known {
                kept.write(&whose, &said);
            } else {
                kept.forget(&whose);
            }
        });
        let _ = writing.await;
        let is_incomplete = answer.is_incomplete;
        self.tell(user, email, answer);
        let mut state = user.state();
        // What is missing is asked for again as soon as after a failure.
        state.answered = (!is_incomplete).then(Instant::now);
        state.failed = is_incomplete.then(|| (Instant::now(), INCOMPLETE.to_owned()));
    }

    fn failed(&self, user: &User, fault: &Fault) {
        let why = fault.to_string();
        // Said once, not each few seconds: silence for all users, what is wrong for each.
        if let Fault::Silent(_) = fault {
            let until = Instant::now() + AFTER_FAILURE;
            if locked(&self.down_until).replace(until).is_none() {
                tracing::warn!("The provider of skills cannot be asked: {why}");
            }
        } else {
            let state = user.state();
            if state.failed.as_ref().is_none_or(|(_, said)| *said != why) {
                tracing::warn!("The provider's list of a user's skills cannot be had: {why}");
            }
        }
        user.state().failed = Some((Instant::now(), why));
    }

    /// [`Self::tidy`], if that was long ago.
    fn tidy_now_and_then(self: &Arc<Self>) {
        let mut tidied = locked(&self.tidied);
        if tidied.elapsed() >= TIDY_EACH {
            *tidied = Instant::now();
            let provider = Arc::clone(self);
            tokio::task::spawn_blocking(move || provider.tidy());
        }
    }
}

impl Default for User {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            looked_up: OnceCell::new(),
            asked: watch::Sender::new(0),
            bytes: AtomicU32::new(u32::try_from(USER_BYTES).unwrap_or(u32::MAX)),
        }
    }
}

impl User {
    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

impl State {
    fn is_younger_than(&self, age: Duration) -> bool {
        self.answered.is_some_and(|at| at.elapsed() < age)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Somebody who asks for a user; however that ends, those who wait go on.
struct Asking<'a>(&'a User);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.state().is_asking = false;
        self.0.asked.send_modify(|count| *count += 1);
    }
}
