//! The service that says which skills a user has, and holds them as archives.
//!
//! It may be slow, down, wrong, or hostile, and everything works on: what it said last is kept in memory and on disk, its answers are
//! bounded and checked, and nobody waits for it longer than [`Patience`] says. Its URL and key come from the configuration only.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs, io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use foreword_compose::one_line;
use futures::{StreamExt, stream};
use http::{HeaderName, HeaderValue, StatusCode, header};
use moka::{policy::EvictionPolicy, sync::Cache as Moka};
use percent_encoding::utf8_percent_encode;
use reqwest::{Client, Response, Url, redirect::Policy};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::{
    io::AsyncWriteExt,
    sync::{OnceCell, Semaphore, watch},
    time::{timeout, timeout_at},
};

use super::{
    Refused,
    cache::{Cache, Digest, NotKept},
    config::ProviderConfig,
    local::LocalSkill,
    name::{SkillName, user_directory},
};
use crate::{choose_tls, links::UNRESERVED};

/// How long an answer is good.
const GOOD_FOR: Duration = Duration::from_mins(1);

/// When it is asked for anew in the background, so that nobody waits when it is no longer good.
const REFRESH_AFTER: Duration = Duration::from_secs(40);

/// How long to wait after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// How long the list of a user's skills may take.
const LIST_WITHIN: Duration = Duration::from_secs(5);

/// How long an archive may take.
const ARCHIVE_WITHIN: Duration = Duration::from_secs(30);

/// The largest list, in bytes.
const MAX_LIST_BYTES: usize = 1 << 20;

/// The most skills of a user.
const MAX_SKILLS: usize = 1_000;

/// The largest archive, in bytes.
const MAX_ARCHIVE_BYTES: u64 = 50 << 20;

/// How many archives are fetched at once, for all users together.
const ARCHIVES_AT_ONCE: usize = 4;

/// How many users are asked for at once.
const USERS_AT_ONCE: usize = 16;

/// How many users are remembered.
const MOST_USERS: u64 = 1_000;

/// How many refused archives are remembered.
const MOST_REFUSALS: u64 = 1_000;

/// Why something may be missing of an answer.
const INCOMPLETE: &str = "some skills could not be fetched yet";

/// How long an archive that did not come is not asked for again.
const LATE_FOR: Duration = Duration::from_mins(1);

/// How many of those are remembered.
const MOST_LATE: u64 = 1_000;

/// An address that is nobody's.
const NOBODY: &str = "doctor@foreword.invalid";

/// The header of the key.
const KEY_HEADER: HeaderName = HeaderName::from_static("x-internal-api-key");

/// How long somebody waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Not at all where there is anything at hand, else for the time that is set for handshakes.
    Handshake,
    /// As long as the list of skills may take: what is said and what is there are to be the same.
    Call,
}

/// The provider.
pub(super) struct Provider {
    client: Client,
    base: Url,
    handshake_wait: Duration,
    cache: Cache,
    /// What was said last, user by user.
    kept: PathBuf,
    users: Moka<Arc<str>, Arc<User>>,
    /// Archives that are not unpacked again to be refused again.
    refusals: Moka<Digest, String>,
    /// Archives that did not come in time, by name and by hash or user.
    late: Moka<String, ()>,
    /// Until when it counts as down, for users who were never seen before too.
    down_until: Mutex<Option<Instant>>,
    archives: Semaphore,
    asking: Semaphore,
}

/// One user, as far as the provider has spoken of them.
struct User {
    state: Mutex<State>,
    /// Set when it was looked for what was kept.
    looked_up: OnceCell<()>,
    /// Counts what came of asking.
    asked: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    answer: Option<Arc<Answer>>,
    answered: Option<Instant>,
    failed: Option<(Instant, String)>,
    is_asking: bool,
    /// When it was asked for that is being asked for, or was last.
    asked: Option<Instant>,
    /// What is known of archives whose hash the list does not tell.
    unhashed: BTreeMap<SkillName, Unhashed>,
}

#[derive(Clone)]
struct Unhashed {
    digest: Digest,
    etag: Option<HeaderValue>,
    at: Instant,
}

/// What the provider said of a user, as far as it could be had.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) skills: Vec<Provided>,
    pub(super) refused: Vec<Refused>,
    /// Whether something is missing that may be had later.
    pub(super) is_incomplete: bool,
}

/// A skill that the provider gives a user.
#[derive(Debug, Clone)]
pub(super) struct Provided {
    pub(super) name: SkillName,
    pub(super) is_public: bool,
    /// None for one that this server has itself.
    pub(super) content: Option<LocalSkill>,
}

/// What there is for a user now.
pub(super) struct Given {
    /// None where the provider never said anything.
    pub(super) answer: Option<Arc<Answer>>,
    /// Why it may be old, or is missing.
    pub(super) trouble: Option<String>,
}

/// The list as the provider writes it.
#[derive(Deserialize)]
struct List {
    enabled_skills: Vec<Value>,
}

#[derive(Clone, Deserialize)]
struct Listed {
    name: String,
    category: Option<String>,
    zip_sha256: Option<String>,
}

/// The answer as it is kept on disk.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    skills: Vec<KeptSkill>,
    /// Whether something is missing.
    #[serde(default)]
    incomplete: bool,
}

#[derive(Serialize, Deserialize)]
struct KeptSkill {
    name: String,
    public: bool,
    /// None for one that this server has itself.
    sha256: Option<String>,
}

impl Provider {
    /// None where none is configured.
    pub(super) fn new(
        config: &ProviderConfig,
        directory: &std::path::Path,
    ) -> Result<Option<Self>, String> {
        let Some(url) = config.url.as_deref().filter(|url| !url.trim().is_empty()) else {
            return Ok(None);
        };
        let base = Url::parse(url).ok().filter(|url| {
            matches!(url.scheme(), "http" | "https") && url.has_host() && !url.cannot_be_a_base()
        });
        let base = base.ok_or("`skills.provider.url` has to begin with `http://` or `https://`")?;
        choose_tls();
        let mut headers = http::HeaderMap::new();
        if let Some(key) = &config.key {
            let mut value = HeaderValue::try_from(key.expose())
                .map_err(|_| "`skills.provider.key` has characters that no header may have")?;
            value.set_sensitive(true);
            headers.insert(KEY_HEADER, value);
        }
        let client = Client::builder()
            .user_agent(concat!("foreword/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .connect_timeout(LIST_WITHIN)
            // The key must not follow a redirect.
            .redirect(Policy::none())
            .build()
            .map_err(|error| error.to_string())?;
        let cache = Cache::new(directory.join("cache"));
        Ok(Some(Self {
            client,
            base,
            handshake_wait: config.handshake_wait(),
            cache,
            kept: directory.join("provider"),
            users: Moka::builder()
                .max_capacity(MOST_USERS)
                .eviction_policy(EvictionPolicy::lru())
                .build(),
            refusals: Moka::new(MOST_REFUSALS),
            late: Moka::builder()
                .max_capacity(MOST_LATE)
                .time_to_live(LATE_FOR)
                .build(),
            down_until: Mutex::new(None),
            archives: Semaphore::new(ARCHIVES_AT_ONCE),
            asking: Semaphore::new(USERS_AT_ONCE),
        }))
    }

    /// Removes what an earlier process left half done.
    pub(super) fn tidy(&self) {
        self.cache.tidy();
    }

    /// Asks for the skills of somebody who has none, to see whether it answers.
    pub(super) async fn check(&self) -> Result<(), String> {
        self.list(NOBODY).await.map(drop)
    }

    /// What there is for a user now, after waiting as long as `patience` says.
    pub(super) async fn given(self: &Arc<Self>, email: &Arc<str>, patience: Patience) -> Given {
        let user = self.users.get_with(Arc::clone(email), || {
            Arc::new(User {
                state: Mutex::default(),
                looked_up: OnceCell::new(),
                asked: watch::Sender::new(0),
            })
        });
        let most = match patience {
            Patience::Handshake => self.handshake_wait,
            Patience::Call => LIST_WITHIN,
        };
        let _ = timeout(most, self.look_up(&user, email)).await;
        let mut asked = user.asked.subscribe();
        let wait = {
            let mut state = user.state();
            let age = state.answered.map(|at| at.elapsed());
            let is_good = age.is_some_and(|age| age < GOOD_FOR);
            let failed_just_now = state
                .failed
                .as_ref()
                .is_some_and(|(at, _)| at.elapsed() < AFTER_FAILURE);
            let is_fresh = age.is_some_and(|age| age < REFRESH_AFTER);
            if !state.is_asking && !failed_just_now && !is_fresh {
                state.is_asking = true;
                state.asked = Some(Instant::now());
                tokio::spawn(Arc::clone(self).ask(Arc::clone(&user), Arc::clone(email)));
            }
            match patience {
                _ if is_good || !state.is_asking => None,
                // From when it was asked: archives that take longer are waited for by nobody.
                Patience::Call => {
                    let since = state.asked.map_or(LIST_WITHIN, |asked| asked.elapsed());
                    LIST_WITHIN.checked_sub(since)
                }
                Patience::Handshake if state.answer.is_some() || self.is_down() => None,
                Patience::Handshake => Some(self.handshake_wait),
            }
        };
        if let Some(wait) = wait {
            let answered =
                async { while asked.changed().await.is_ok() && user.state().is_asking {} };
            // Over that time, with what there is.
            let _ = timeout(wait, answered).await;
        }
        let state = user.state();
        let is_good = state.answered.is_some_and(|at| at.elapsed() < GOOD_FOR);
        let trouble = match (&state.failed, &state.answer) {
            (Some((_, why)), _) => Some(why.clone()),
            (None, None) => Some("the provider has not answered yet".to_owned()),
            (None, Some(answer)) if answer.is_incomplete => Some(INCOMPLETE.to_owned()),
            (None, Some(_)) if !is_good && patience == Patience::Call => {
                Some("the provider has not answered in time".to_owned())
            }
            (None, Some(_)) => None,
        };
        Given {
            answer: state.answer.clone(),
            trouble,
        }
    }

    fn is_down(&self) -> bool {
        let until = self
            .down_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Reads what was kept of a user, once.
    async fn look_up(&self, user: &User, email: &str) {
        let looking = async {
            let (path, cache) = (self.kept_of(email), self.cache.clone());
            let reading = tokio::task::spawn_blocking(move || read_kept(&path, &cache));
            let kept = reading
                .await
                .expect("reading does not panic, and nobody cancels it");
            let mut state = user.state();
            if state.answer.is_none() {
                state.answer = kept.map(Arc::new);
            }
        };
        user.looked_up.get_or_init(|| looking).await;
    }

    fn kept_of(&self, email: &str) -> PathBuf {
        self.kept.join(format!("{}.json", user_directory(email)))
    }

    /// Asks the provider, and keeps what it says.
    async fn ask(self: Arc<Self>, user: Arc<User>, email: Arc<str>) {
        let _asking = Asking(&user);
        let has_to_queue = self.asking.available_permits() == 0;
        let permit = self.asking.acquire().await;
        // Those before found out: a queue of many users is over as soon as the first of them is.
        let listed = if has_to_queue && self.is_down() {
            Err(format!("{NO_ANSWER} others either"))
        } else {
            self.list(&email).await
        };
        match listed {
            Ok(list) => {
                // A user whom the provider does not know leaves nothing behind.
                let is_known = list.is_some();
                let list = list.unwrap_or_default();
                *self
                    .down_until
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner) = None;
                drop(permit);
                // What was switched off is off at once, however long the archives of others take.
                let at_hand = Arc::new(self.at_hand(&user, &list).await);
                user.state().answer = Some(Arc::clone(&at_hand));
                let answer = self.fetch(&user, &email, list, &at_hand).await;
                let is_incomplete = answer.is_incomplete;
                let answer = Arc::new(answer);
                if is_known {
                    let (path, kept) = (self.kept_of(&email), Kept::of(&answer));
                    let _ = tokio::task::spawn_blocking(move || write_kept(&path, &kept)).await;
                }
                let mut state = user.state();
                state.answer = Some(answer);
                // What is missing is asked for again as soon as after a failure.
                state.answered = (!is_incomplete).then(Instant::now);
                state.failed = is_incomplete.then(|| (Instant::now(), INCOMPLETE.to_owned()));
            }
            Err(why) => {
                // A list that cannot be read is one user's trouble.
                if why.starts_with(UNREACHABLE) || why.starts_with(NO_ANSWER) {
                    let until = Instant::now() + AFTER_FAILURE;
                    let mut down = self
                        .down_until
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner);
                    if down.replace(until).is_none() {
                        tracing::warn!("The provider of skills cannot be asked: {why}");
                    }
                } else {
                    tracing::warn!("The provider's list of a user's skills cannot be had: {why}");
                }
                user.state().failed = Some((Instant::now(), why));
            }
        }
    }

    /// None for a user whom the provider does not know.
    async fn list(&self, email: &str) -> Result<Option<Vec<Entry>>, String> {
        let asking = async {
            let url = self.url(&["api", "internal", "user-config", email], email);
            let answer = self
                .client
                .get(url)
                .send()
                .await
                .map_err(|error| said(&error))?;
            let status = answer.status();
            if status == StatusCode::NOT_FOUND {
                return Ok(None);
            }
            if !status.is_success() {
                return Err(format!("it answers with HTTP {}", status.as_u16()));
            }
            let body = read_bounded(answer, MAX_LIST_BYTES).await?;
            let list: List = serde_json::from_slice(&body)
                .map_err(|error| format!("its list cannot be read: {error}"))?;
            if list.enabled_skills.len() > MAX_SKILLS {
                return Err(format!("it lists more than {MAX_SKILLS} skills"));
            }
            Ok(Some(list.enabled_skills.into_iter().map(listed).collect()))
        };
        timeout(LIST_WITHIN, asking)
            .await
            .map_err(|_| format!("{NO_ANSWER} within {} s", LIST_WITHIN.as_secs()))?
    }

    /// Fetches what is not there yet, and gives each skill to the user as it comes: one that hangs holds up no other.
    async fn fetch(&self, user: &User, email: &str, list: Vec<Entry>, at_hand: &Answer) -> Answer {
        let deadline = tokio::time::Instant::now() + ARCHIVE_WITHIN;
        let (named, mut refused) = sorted_out(list);
        let mut skills: BTreeMap<SkillName, Provided> = at_hand
            .skills
            .iter()
            .map(|skill| (skill.name.clone(), skill.clone()))
            .collect();
        let mut is_incomplete = false;
        let fetching = stream::iter(named.into_iter().map(|(name, listed)| async move {
            let fetching = self.content(user, email, &name, &listed);
            let fetched = timeout_at(deadline, fetching).await;
            let fetched = fetched.unwrap_or_else(|_| {
                self.late.insert(which(&name, &listed, email), ());
                Err(late())
            });
            (name, listed, fetched)
        }));
        let mut fetching = std::pin::pin!(fetching.buffer_unordered(ARCHIVES_AT_ONCE));
        while let Some((name, listed, fetched)) = fetching.next().await {
            match fetched {
                Ok(content) => {
                    let is_public = listed.category.as_deref() == Some("public");
                    let provided = Provided {
                        name: name.clone(),
                        is_public,
                        content,
                    };
                    let before = skills.insert(name, provided);
                    if at_hand.is_incomplete && before.is_none() {
                        let so_far = Answer {
                            skills: skills.values().cloned().collect(),
                            refused: refused.clone(),
                            is_incomplete: true,
                        };
                        user.state().answer = Some(Arc::new(so_far));
                    }
                }
                Err(NotHad::Refused(why)) => {
                    tracing::warn!("The skill `{name}` of the provider is refused: {why}");
                    skills.remove(&name);
                    refused.push(Refused::new(name.as_str(), why));
                }
                Err(NotHad::Later(why)) => {
                    tracing::warn!("The skill `{name}` of the provider cannot be fetched: {why}");
                    is_incomplete = true;
                    // What was had before is better than nothing.
                    if !skills.contains_key(&name) {
                        refused.push(Refused::new(name.as_str(), why));
                    }
                }
            }
        }
        // Not in the order in which they came.
        refused.sort_by(|left, right| left.name.cmp(&right.name));
        Answer {
            skills: skills.into_values().collect(),
            refused,
            is_incomplete,
        }
    }

    /// What the list comes to before anything is fetched: what is here, and of the rest what was had before.
    async fn at_hand(&self, user: &User, list: &[Entry]) -> Answer {
        let (named, refused) = sorted_out(list.to_vec());
        let mut answer = Answer {
            refused,
            ..Answer::default()
        };
        let before = user.state().answer.clone();
        for (name, listed) in named {
            let digest = listed.zip_sha256.as_deref().and_then(Digest::parse);
            let here = match &digest {
                Some(digest) => self.find(&name, digest).await,
                None => None,
            };
            let is_public = listed.category.as_deref() == Some("public");
            let before = before.iter().flat_map(|before| &before.skills);
            let before = before.into_iter().find(|skill| skill.name == name);
            match (here, before) {
                (Some(content), _) => answer.skills.push(Provided {
                    name,
                    is_public,
                    content: Some(content),
                }),
                (None, Some(before)) => answer.skills.push(before.clone()),
                (None, None) => answer.is_incomplete = true,
            }
        }
        answer
    }

    /// The skill's files; none where it is one that this server has itself.
    async fn content(
        &self,
        user: &User,
        email: &str,
        name: &SkillName,
        listed: &Listed,
    ) -> Result<Option<LocalSkill>, NotHad> {
        let expected = match listed.zip_sha256.as_deref().filter(|text| !text.is_empty()) {
            None => None,
            Some(text) => Some(Digest::parse(text).ok_or_else(|| {
                NotHad::Refused("its `zip_sha256` is no SHA-256 in hex digits".to_owned())
            })?),
        };
        if let Some(digest) = &expected
            && let Some(why) = self.refusals.get(digest)
        {
            return Err(NotHad::Refused(why));
        }
        // What was had without a hash says nothing about one.
        let known = user.state().unhashed.get(name).cloned();
        let known = known.filter(|_| expected.is_none());
        match (&expected, &known) {
            (Some(digest), _) => {
                if let Some(skill) = self.find(name, digest).await {
                    return Ok(Some(skill));
                }
            }
            (None, Some(known)) if known.at.elapsed() < REFRESH_AFTER => {
                if let Some(skill) = self.find(name, &known.digest).await {
                    return Ok(Some(skill));
                }
            }
            (None, _) => {}
        }
        if self.late.contains_key(&which(name, listed, email)) {
            return Err(late());
        }
        // Until it is unpacked: that takes a thread, memory and the disk.
        let _permit = self.archives.acquire().await;
        let downloaded = self.download(email, name, known.as_ref()).await;
        if let (Err(NotHad::Refused(why)), Some(digest)) = (&downloaded, &expected) {
            self.refusals.insert(digest.clone(), why.clone());
        }
        let downloaded = downloaded?;
        let (file, digest, etag) = match downloaded {
            Download::Native if expected.is_some() => {
                return Err(NotHad::Later(
                    "it came as JSON, though it has a hash".to_owned(),
                ));
            }
            Download::Native => return Ok(None),
            Download::AsKnown => {
                let known = known.expect("only what is known is asked for in that way");
                let skill = self.find(name, &known.digest).await;
                let known = Unhashed {
                    at: Instant::now(),
                    ..known
                };
                if skill.is_some() {
                    user.state().unhashed.insert(name.clone(), known);
                } else {
                    user.state().unhashed.remove(name);
                }
                let gone = || NotHad::Later("it is gone from the cache".to_owned());
                return skill.map(Some).ok_or_else(gone);
            }
            Download::Archive { file, digest, etag } => (file, digest, etag),
        };
        if let Some(expected) = &expected
            && *expected != digest
        {
            // The list may be ahead of the archive, or the other way round.
            return Err(NotHad::Later(format!(
                "its bytes have the SHA-256 {}, not {}",
                digest.as_str(),
                expected.as_str()
            )));
        }
        let (cache, kept_name, kept_digest) = (self.cache.clone(), name.clone(), digest.clone());
        let mut file = file;
        let keeping =
            tokio::task::spawn_blocking(move || cache.keep(&kept_name, &kept_digest, &mut file));
        let kept = keeping
            .await
            .unwrap_or_else(|_| Err(NotKept::Refused("it cannot be unpacked".to_owned())));
        let skill = kept.map_err(|not_kept| match not_kept {
            NotKept::Refused(why) => {
                self.refusals.insert(digest.clone(), why.clone());
                NotHad::Refused(why)
            }
            NotKept::Failed(why) => NotHad::Later(why),
        })?;
        if expected.is_none() {
            let known = Unhashed {
                digest,
                etag,
                at: Instant::now(),
            };
            user.state().unhashed.insert(name.clone(), known);
        }
        Ok(Some(skill))
    }

    async fn find(&self, name: &SkillName, digest: &Digest) -> Option<LocalSkill> {
        let (cache, name, digest) = (self.cache.clone(), name.clone(), digest.clone());
        let finding = tokio::task::spawn_blocking(move || cache.find(&name, &digest));
        finding
            .await
            .expect("looking does not panic, and nobody cancels it")
    }

    async fn download(
        &self,
        email: &str,
        name: &SkillName,
        known: Option<&Unhashed>,
    ) -> Result<Download, NotHad> {
        let url = self.url(
            &["api", "internal", "skills", name.as_str(), "download"],
            email,
        );
        let mut request = self.client.get(url);
        if let Some(etag) = known.and_then(|known| known.etag.clone()) {
            request = request.header(header::IF_NONE_MATCH, etag);
        }
        let later = |why: String| NotHad::Later(why);
        let mut answer = request.send().await.map_err(|error| later(said(&error)))?;
        let status = answer.status();
        if status == StatusCode::NOT_MODIFIED && known.is_some() {
            return Ok(Download::AsKnown);
        }
        if !status.is_success() {
            return Err(later(format!("it answers with HTTP {}", status.as_u16())));
        }
        let kind = answer.headers().get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("application/json") {
            return Ok(Download::Native);
        }
        let too_large = || {
            let most = MAX_ARCHIVE_BYTES >> 20;
            NotHad::Refused(format!("it has more than {most} MiB"))
        };
        if answer
            .content_length()
            .is_some_and(|length| length > MAX_ARCHIVE_BYTES)
        {
            return Err(too_large());
        }
        let etag = answer.headers().get(header::ETAG).cloned();
        let failed = |error: io::Error| NotHad::Later(format!("it cannot be kept: {error}"));
        let receiving = self.cache.receive().map_err(failed)?;
        let mut file = tokio::fs::File::from_std(receiving.reopen().map_err(failed)?);
        let (mut hasher, mut bytes) = (Sha256::new(), 0);
        while let Some(chunk) = answer.chunk().await.map_err(|error| later(said(&error)))? {
            bytes += chunk.len() as u64;
            if bytes > MAX_ARCHIVE_BYTES {
                return Err(too_large());
            }
            hasher.update(&chunk);
            file.write_all(&chunk).await.map_err(failed)?;
        }
        file.flush().await.map_err(failed)?;
        Ok(Download::Archive {
            file: receiving.reopen().map_err(failed)?,
            digest: Digest::of(&hasher.finalize()),
            etag,
        })
    }

    fn url(&self, path: &[&str], email: &str) -> Url {
        let mut url = self.base.clone();
        let mut whole = url.path().trim_end_matches('/').to_owned();
        for segment in path {
            let _ = write!(whole, "/{}", utf8_percent_encode(segment, UNRESERVED));
        }
        url.set_path(&whole);
        url.query_pairs_mut().append_pair("email", email);
        url
    }
}

impl User {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who asks for a user; however that ends, those who wait go on.
struct Asking<'a>(&'a User);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.state().is_asking = false;
        self.0.asked.send_modify(|count| *count += 1);
    }
}

/// The archive that is meant: by its hash, or by whose it is.
fn which(name: &SkillName, listed: &Listed, email: &str) -> String {
    format!("{name} {}", listed.zip_sha256.as_deref().unwrap_or(email))
}

fn late() -> NotHad {
    let seconds = ARCHIVE_WITHIN.as_secs();
    NotHad::Later(format!("it did not come within {seconds} s"))
}

/// What a download came to.
enum Download {
    Archive {
        file: fs::File,
        digest: Digest,
        etag: Option<HeaderValue>,
    },
    /// The archive that is known already.
    AsKnown,
    /// One that this server has itself.
    Native,
}

/// Why a skill could not be had.
enum NotHad {
    /// It is not allowed, now or later.
    Refused(String),
    /// It may be had another time.
    Later(String),
}

async fn read_bounded(mut answer: Response, most: usize) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| said(&error))? {
        if body.len() + chunk.len() > most {
            return Err(format!("its list has more than {most} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The innermost cause; outer ones hold the URL, and with it the user.
fn said(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    if error.is_timeout() {
        format!("{NO_ANSWER} in time")
    } else if std::error::Error::source(error).is_some() {
        format!("{UNREACHABLE}: {}", one_line(&cause.to_string(), 200))
    } else {
        UNREACHABLE.to_owned()
    }
}

/// What errors begin with that are about the provider as a whole.
const UNREACHABLE: &str = "it cannot be reached";
const NO_ANSWER: &str = "it did not answer";

/// An entry of a list, or why it is none.
type Entry = Result<Listed, Refused>;

fn listed(entry: Value) -> Entry {
    let name = entry
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let name = one_line(name, 64);
    serde_json::from_value(entry)
        .map_err(|error| Refused::new(&name, format!("its entry cannot be read: {error}")))
}

/// The entries by name, each name once, and what is left out.
fn sorted_out(list: Vec<Entry>) -> (Vec<(SkillName, Listed)>, Vec<Refused>) {
    let (mut named, mut refused) = (Vec::new(), Vec::new());
    for entry in list {
        match entry.map(|listed| (SkillName::new(&listed.name), listed)) {
            Ok((Some(name), listed)) => named.push((name, listed)),
            Ok((None, listed)) => refused.push(Refused::new(
                &one_line(&listed.name, 64),
                "a skill is called by 1 to 64 of `a-z`, `0-9` and `-`",
            )),
            Err(unreadable) => refused.push(unreadable),
        }
    }
    named.sort_by(|(left, _), (right, _)| left.cmp(right));
    named.dedup_by(|(left, _), (right, _)| left == right);
    (named, refused)
}

impl Kept {
    fn of(answer: &Answer) -> Self {
        let skills = answer.skills.iter().map(|skill| KeptSkill {
            name: skill.name.to_string(),
            public: skill.is_public,
            sha256: skill.content.as_ref().map(|content| {
                let identity = content.identity.strip_prefix("sha256-");
                identity.unwrap_or(&content.identity).to_owned()
            }),
        });
        Self {
            skills: skills.collect(),
            incomplete: answer.is_incomplete,
        }
    }
}

fn read_kept(path: &std::path::Path, cache: &Cache) -> Option<Answer> {
    let text = fs::read(path).ok()?;
    let kept: Kept = serde_json::from_slice(&text).ok()?;
    let mut answer = Answer {
        is_incomplete: kept.incomplete,
        ..Answer::default()
    };
    for skill in kept.skills {
        let Some(name) = SkillName::new(&skill.name) else {
            continue;
        };
        let content = match &skill.sha256 {
            None => None,
            Some(digest) => {
                let found = Digest::parse(digest).and_then(|digest| cache.find(&name, &digest));
                let Some(found) = found else {
                    answer.is_incomplete = true;
                    continue;
                };
                Some(found)
            }
        };
        answer.skills.push(Provided {
            name,
            is_public: skill.public,
            content,
        });
    }
    Some(answer)
}

fn write_kept(path: &std::path::Path, kept: &Kept) {
    let writing = || -> io::Result<()> {
        let directory = path.parent().expect("it lies in a directory");
        fs::create_dir_all(directory)?;
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        serde_json::to_writer(&mut file, kept)?;
        file.persist(path)?;
        Ok(())
    };
    if let Err(error) = writing() {
        tracing::warn!(%error, "What the provider of skills said cannot be kept");
    }
}
