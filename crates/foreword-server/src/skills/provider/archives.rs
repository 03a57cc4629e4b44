//! The archives of the provider's skills: which are here, which are asked for, and which not again for a while.
//!
//! One whose hash the list tells is fetched once. One without is asked for again after [`GOOD_FOR`], by its `ETag`. What is refused is
//! not fetched again to be refused again; what could not be had is left alone for a while that doubles.

use std::{hash::Hash, sync::Arc, time::Duration};

use http::HeaderValue;
use moka::{
    policy::EvictionPolicy,
    sync::{Cache as Moka, CacheBuilder},
};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};

use super::{
    list::Listed,
    service::{Download, Service},
};
use crate::skills::{
    archive::PACKED_BYTES,
    cache::{Cache, Digest, NotKept},
    local::LocalSkill,
    name::SkillName,
};

/// How long what came without a hash is good.
const GOOD_FOR: Duration = Duration::from_mins(1);

/// How long one that could not be had is left alone, at first.
const LEAST_PAUSE: Duration = Duration::from_secs(5);

/// How long it is at last, and at once after one that took all the time there is.
const MOST_PAUSE: Duration = Duration::from_mins(1);

/// How many are fetched at once, for all users together.
const AT_ONCE: usize = 4;

/// How many archives are remembered for being refused, for being late, and for having no hash: of each kind as many.
const MOST_REMEMBERED: u64 = 10_000;

/// The archives.
pub(super) struct Archives {
    cache: Cache,
    refused: Moka<Digest, Arc<str>>,
    pauses: Moka<Which, Pause>,
    unhashed: Moka<Which, Unhashed>,
    fetching: Semaphore,
}

/// An archive as it is asked for: by its hash, or by whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Which {
    name: SkillName,
    of: Of,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Of {
    Digest(Digest),
    User(Arc<str>),
}

/// Until when an archive is not asked for.
#[derive(Debug, Clone)]
struct Pause {
    until: Instant,
    length: Duration,
    why: String,
}

/// What an archive without a hash was when it was asked for last.
#[derive(Debug, Clone)]
struct Unhashed {
    was: Was,
    etag: Option<HeaderValue>,
    at: Instant,
}

#[derive(Debug, Clone)]
enum Was {
    Kept(Digest),
    Native,
    Refused(Arc<str>),
}

/// A skill's files; none where it is one that this server has itself.
pub(super) type Content = Option<LocalSkill>;

/// Why a skill could not be had.
#[derive(Debug)]
pub(super) enum NotHad {
    /// It is not allowed, now or later.
    Refused(String),
    /// It may be had another time.
    Later(String),
}

impl Archives {
    pub(super) fn new(cache: Cache) -> Self {
        Self {
            cache,
            refused: remembered().build(),
            // Longer than any pause, so that one which fails again waits longer.
            pauses: remembered().time_to_live(5 * MOST_PAUSE).build(),
            unhashed: remembered().build(),
            fetching: Semaphore::new(AT_ONCE),
        }
    }

    /// What the skill comes to without asking; none where it has to be asked for.
    pub(super) async fn at_hand(
        &self,
        email: &Arc<str>,
        listed: &Listed,
    ) -> Option<Result<Content, NotHad>> {
        if let Some(digest) = &listed.digest {
            return self.kept(&listed.name, digest).await;
        }
        let known = self.unhashed.get(&which(email, listed))?;
        if known.at.elapsed() < GOOD_FOR {
            self.what_was(&listed.name, &known.was).await
        } else {
            None
        }
    }

    /// What the skill comes to after asking for it, unless that is to wait. Who does not even come to ask before `deadline` may ask
    /// at once the next time.
    pub(super) async fn fetch(
        &self,
        service: &Service,
        email: &Arc<str>,
        listed: &Listed,
        deadline: Instant,
    ) -> Result<Content, NotHad> {
        let which = which(email, listed);
        let pause = self.pauses.get(&which);
        if let Some(pause) = pause.filter(|pause| Instant::now() < pause.until) {
            return Err(NotHad::Later(pause.why));
        }
        // Until it is unpacked: that takes a thread, memory and the disk.
        let permit = timeout_at(deadline, self.fetching.acquire()).await;
        if permit.is_err() || Instant::now() >= deadline {
            let why = "other archives took all the time that there is";
            return Err(NotHad::Later(why.to_owned()));
        }
        // Others may have fetched it meanwhile.
        if let Some(had) = self.at_hand(email, listed).await {
            return had;
        }
        let fetching = async {
            match &listed.digest {
                Some(digest) => {
                    self.fetch_hashed(service, email, &listed.name, digest)
                        .await
                }
                None => self.fetch_unhashed(service, email, listed).await,
            }
        };
        let Ok(fetched) = timeout_at(deadline, fetching).await else {
            let why = "it did not come in time";
            self.pause(which, MOST_PAUSE, why);
            return Err(NotHad::Later(why.to_owned()));
        };
        match &fetched {
            Ok(_) => self.pauses.invalidate(&which),
            Err(NotHad::Later(why)) => self.pause(which, LEAST_PAUSE, why),
            Err(NotHad::Refused(why)) => {
                tracing::warn!(
                    "The skill `{}` of the provider is refused: {why}",
                    listed.name
                );
            }
        }
        fetched
    }

    fn pause(&self, which: Which, least: Duration, why: &str) {
        let before = self.pauses.get(&which);
        if before.as_ref().is_none_or(|before| before.why != why) {
            let name = &which.name;
            tracing::warn!("The skill `{name}` of the provider cannot be fetched: {why}");
        }
        let length = before.map_or(least, |before| (2 * before.length).clamp(least, MOST_PAUSE));
        let pause = Pause {
            until: Instant::now() + length,
            length,
            why: why.to_owned(),
        };
        self.pauses.insert(which, pause);
    }

    async fn fetch_hashed(
        &self,
        service: &Service,
        email: &str,
        name: &SkillName,
        digest: &Digest,
    ) -> Result<Content, NotHad> {
        match service.download(name, email, None, &self.cache).await? {
            Download::Archive {
                file, digest: got, ..
            } if got == *digest => {
                self.cache
                    .keep(name, digest, file)
                    .await
                    .map(Some)
                    .map_err(|not_kept| {
                        if let NotKept::Refused(why) = &not_kept {
                            self.refused.insert(digest.clone(), why.as_str().into());
                        }
                        not_kept.into()
                    })
            }
            // The list may be ahead of the archive, or the other way round.
            Download::Archive { digest: got, .. } => Err(NotHad::Later(format!(
                "its bytes have the SHA-256 {}, not {}",
                got.as_str(),
                digest.as_str()
            ))),
            Download::Native | Download::AsKnown => Err(NotHad::Later(
                "it came as JSON, though it has a hash".to_owned(),
            )),
            Download::TooLarge => {
                self.refused.insert(digest.clone(), too_large().into());
                Err(NotHad::Refused(too_large()))
            }
        }
    }

    async fn fetch_unhashed(
        &self,
        service: &Service,
        email: &Arc<str>,
        listed: &Listed,
    ) -> Result<Content, NotHad> {
        let which = which(email, listed);
        let known = self.unhashed.get(&which);
        // By its ETag only where what it was of is still here.
        let known = match known {
            Some(known) => {
                let content = self.what_was(&listed.name, &known.was).await;
                content.map(|content| (known, content))
            }
            None => None,
        };
        let etag = known.as_ref().and_then(|(known, _)| known.etag.clone());
        let download = service
            .download(&listed.name, email, etag, &self.cache)
            .await?;
        let (was, etag, content) = match (download, known) {
            (Download::AsKnown, Some((known, content))) => (known.was, known.etag, content),
            (Download::AsKnown, None) => {
                let why = "it answers that nothing changed, of what was never had";
                return Err(NotHad::Later(why.to_owned()));
            }
            (Download::Native, _) => (Was::Native, None, Ok(None)),
            (Download::TooLarge, _) => {
                let was = Was::Refused(too_large().into());
                (was, None, Err(NotHad::Refused(too_large())))
            }
            (Download::Archive { file, digest, etag }, _) => {
                match self.cache.keep(&listed.name, &digest, file).await {
                    Ok(skill) => (Was::Kept(digest), etag, Ok(Some(skill))),
                    Err(NotKept::Refused(why)) => {
                        let was = Was::Refused(why.as_str().into());
                        (was, etag, Err(NotHad::Refused(why)))
                    }
                    Err(failed) => return Err(failed.into()),
                }
            }
        };
        let at = Instant::now();
        self.unhashed.insert(which, Unhashed { was, etag, at });
        content
    }

    async fn what_was(&self, name: &SkillName, was: &Was) -> Option<Result<Content, NotHad>> {
        match was {
            Was::Native => Some(Ok(None)),
            Was::Refused(why) => Some(Err(NotHad::Refused(why.to_string()))),
            Was::Kept(digest) => self.kept(name, digest).await,
        }
    }

    async fn kept(&self, name: &SkillName, digest: &Digest) -> Option<Result<Content, NotHad>> {
        if let Some(why) = self.refused.get(digest) {
            return Some(Err(NotHad::Refused(why.to_string())));
        }
        Some(Ok(Some(self.cache.find(name, digest).await?)))
    }
}

fn remembered<K, V>() -> CacheBuilder<K, V, Moka<K, V>>
where
    K: Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    let builder = Moka::builder().max_capacity(MOST_REMEMBERED);
    builder.eviction_policy(EvictionPolicy::lru())
}

fn which(email: &Arc<str>, listed: &Listed) -> Which {
    let of = match &listed.digest {
        Some(digest) => Of::Digest(digest.clone()),
        None => Of::User(Arc::clone(email)),
    };
    Which {
        name: listed.name.clone(),
        of,
    }
}

fn too_large() -> String {
    format!("it has more than {} MiB", PACKED_BYTES >> 20)
}

impl From<super::service::Fault> for NotHad {
    fn from(fault: super::service::Fault) -> Self {
        Self::Later(fault.to_string())
    }
}

impl From<NotKept> for NotHad {
    fn from(not_kept: NotKept) -> Self {
        match not_kept {
            NotKept::Refused(why) => Self::Refused(why),
            NotKept::Failed(why) => Self::Later(why),
        }
    }
}
