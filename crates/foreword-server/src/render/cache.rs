//! Keeps rendered prompts for a while, bounded by the bytes that they really own.
//!
//! What sessions of one profile have in common, the head of their prompts, is owned by one place only; their entries
//! point to it weakly. So the bound is exact whoever is evicted first, and an entry whose head is gone is made anew.
//! One render runs per key, however many requests wait for it.

use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use arc_swap::ArcSwapOption;
use foreword_store::Snapshot;
use moka::{Expiry, future::Cache as Moka, policy::EvictionPolicy};

use crate::{config::RenderConfig, session::ChatId};

use super::{
    RenderError, SessionPrompt, Shape,
    prompt::{Head, Own},
    rendering::{Rendering, Subject},
};

/// How long a prompt that lacks something is kept at most.
const DEGRADED_TTL: Duration = Duration::from_secs(5);

/// What an entry costs beside its texts: the cache's own nodes and the allocations of key and value.
const ENTRY_OVERHEAD: usize = 768;

/// Shorter beginnings are not worth sharing.
const SMALLEST_HEAD: usize = 512;

/// The prompts that were rendered lately.
///
/// What was used last stays, not what was used most: the prompts of a library before the last change are never asked for
/// again, however popular they were.
pub(super) struct Cache {
    prompts: Moka<Key, Kept>,
    heads: Moka<HeadKey, Head>,
    seen: ArcSwapOption<Seen>,
}

/// What all prompts of a time are made of, whoever they are for.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    pub(super) library: &'a Snapshot,
    /// The generation of the connected servers' tools.
    pub(super) tools: u64,
}

/// How much the cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheUsage {
    /// Prompts.
    pub entries: u64,
    /// Bytes, shared beginnings included.
    pub bytes: u64,
}

impl Cache {
    /// An empty cache; a quarter of its bytes is for shared heads.
    pub(super) fn new(config: &RenderConfig) -> Self {
        let for_heads = config.cache_bytes / 4;
        let prompts = Moka::builder()
            .max_capacity(config.cache_bytes - for_heads)
            .weigher(|key: &Key, kept: &Kept| weight(key.text_bytes() + kept.own.tail.len()))
            .expire_after(Freshness { ttl: config.ttl() })
            .eviction_policy(EvictionPolicy::lru())
            .build();
        let heads = Moka::builder()
            .max_capacity(for_heads)
            .weigher(|_: &HeadKey, head: &Head| weight(head.len()))
            .eviction_policy(EvictionPolicy::lru())
            .build();
        Self {
            prompts,
            heads,
            seen: ArcSwapOption::empty(),
        }
    }

    /// The prompt of `subject`; `render` runs if it is not here, once for all who wait.
    pub(super) async fn get_or_render(
        &self,
        subject: Subject,
        sources: Sources<'_>,
        render: impl Fn(&Subject) -> Result<Rendering, RenderError>,
    ) -> Result<Found, RenderError> {
        let key = Key {
            sources: self.generation(sources),
            subject,
        };
        loop {
            // Holds the head until it is handed out, even if it is evicted at once.
            let mut made = None;
            let rendered = async {
                let rendering = render(&key.subject)?;
                let head = self.head(&key, rendering.head()).await;
                Ok(Kept::new(rendering, made.insert(head)))
            };
            let entry = self
                .prompts
                .entry_by_ref(&key)
                .or_try_insert_with(rendered)
                .await
                .map_err(|error: Arc<RenderError>| RenderError::clone(&error))?;
            let fresh = entry.is_fresh();
            if let Some(prompt) = entry.into_value().prompt() {
                return Ok(Found { prompt, fresh });
            }
            // The head was evicted since; whoever comes first makes the entry anew, and the others wait for it.
            self.prompts.invalidate(&key).await;
        }
    }

    /// Drops the prompts of one chat, or all.
    pub(super) async fn forget(&self, chat_id: Option<&ChatId>) {
        let Some(chat_id) = chat_id else {
            self.prompts.invalidate_all();
            self.heads.invalidate_all();
            return self.settle().await;
        };
        for (key, _) in &self.prompts {
            if key.is_of(chat_id) {
                self.prompts.invalidate(&*key).await;
            }
        }
    }

    /// Lets what is due for eviction leave.
    pub(super) async fn settle(&self) {
        self.prompts.run_pending_tasks().await;
        self.heads.run_pending_tasks().await;
    }

    /// How much is kept, as of a moment ago.
    pub(super) fn usage(&self) -> CacheUsage {
        CacheUsage {
            entries: self.prompts.entry_count(),
            bytes: self.prompts.weighted_size() + self.heads.weighted_size(),
        }
    }

    /// The shared copy of `text`. Compared byte by byte: a head that differs is never handed to another session.
    async fn head(&self, key: &Key, text: &str) -> Head {
        if text.is_empty() {
            return Head::default();
        }
        let head_key = HeadKey {
            sources: key.sources,
            shape: key.subject.shape,
            profile_id: key.subject.profile_id.clone(),
        };
        if let Some(head) = self.heads.get(&head_key).await
            && **head == *text
        {
            return head;
        }
        let head = Head::new(text.into());
        self.heads.insert(head_key, Head::clone(&head)).await;
        head
    }

    /// Counts the sources seen, so that a key never meets a text of others.
    ///
    /// The old ones' texts leave when their time is up or room is needed: to throw thousands out at once would take a
    /// while, at the cost of the request that happens to come first.
    fn generation(&self, sources: Sources<'_>) -> u64 {
        loop {
            let seen = self.seen.load();
            if let Some(seen) = &*seen
                && seen.revision == sources.library.revision
                && seen.tools == sources.tools
            {
                return seen.generation;
            }
            let generation = seen.as_ref().map_or(0, |seen| seen.generation) + 1;
            let next = Arc::new(Seen {
                revision: sources.library.revision.clone(),
                tools: sources.tools,
                generation,
            });
            let before = self.seen.compare_and_swap(&*seen, Some(next));
            // Of several requests that see them first, one counts them: their prompts have one key.
            if before.as_ref().map(Arc::as_ptr) == seen.as_ref().map(Arc::as_ptr) {
                return generation;
            }
        }
    }
}

/// A prompt, and whether it was made for this request.
pub(super) struct Found {
    pub(super) prompt: SessionPrompt,
    pub(super) fresh: bool,
}

/// Everything that the renderer may read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    sources: u64,
    subject: Subject,
}

impl Key {
    fn is_of(&self, chat_id: &ChatId) -> bool {
        let session = self.subject.session.as_ref();
        session.is_some_and(|session| session.chat_id == *chat_id)
    }

    fn text_bytes(&self) -> usize {
        let session = self.subject.session.as_ref().map_or(0, |session| {
            session.chat_id.as_str().len()
                + session.user_email.as_deref().map_or(0, str::len)
                + session.user_name.as_deref().map_or(0, str::len)
        });
        session + self.subject.profile_id.as_deref().map_or(0, str::len)
    }
}

/// What sessions with the same head have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct HeadKey {
    sources: u64,
    shape: Shape,
    profile_id: Option<Arc<str>>,
}

/// What was seen last.
struct Seen {
    revision: String,
    tools: u64,
    generation: u64,
}

/// A prompt without its head.
#[derive(Clone)]
struct Kept {
    /// None where there is no head to speak of.
    head: Option<Weak<Box<str>>>,
    own: Arc<Own>,
}

impl Kept {
    fn new(rendering: Rendering, head: &Head) -> Self {
        Self {
            head: (!head.is_empty()).then(|| Arc::downgrade(head)),
            own: Arc::new(rendering.into_own()),
        }
    }

    /// The whole prompt, if the head is still there.
    fn prompt(self) -> Option<SessionPrompt> {
        let head = match self.head {
            None => Head::default(),
            Some(head) => head.upgrade()?,
        };
        Some(SessionPrompt {
            head,
            own: self.own,
        })
    }
}

impl Rendering {
    /// What other sessions have too; empty where that is too little to share.
    fn head(&self) -> &str {
        match (&self.short, self.composition.stable_prefix) {
            (None, prefix @ SMALLEST_HEAD..) => &self.composition.text[..prefix],
            _ => "",
        }
    }

    /// The rest, and what is known about the whole.
    fn into_own(self) -> Own {
        let head = self.head().len();
        // A short form is another text.
        let stable_prefix = match &self.short {
            None => self.composition.stable_prefix,
            Some(_) => 0,
        };
        let text = self.short.unwrap_or(self.composition.text);
        Own {
            tail: text[head..].into(),
            revision: self.revision,
            profile_id: self.profile_id,
            degraded: self.degraded,
            stable_prefix,
        }
    }
}

/// Decides how long a prompt is kept, counted from the end of its rendering.
struct Freshness {
    ttl: Duration,
}

impl Expiry<Key, Kept> for Freshness {
    fn expire_after_create(&self, _key: &Key, kept: &Kept, _now: Instant) -> Option<Duration> {
        Some(if kept.own.degraded {
            self.ttl.min(DEGRADED_TTL)
        } else {
            self.ttl
        })
    }
}

fn weight(text_bytes: usize) -> u32 {
    u32::try_from(text_bytes + ENTRY_OVERHEAD).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Form;

    fn kept_for(degraded: bool, ttl: u64) -> Option<Duration> {
        let key = Key {
            sources: 1,
            subject: Subject {
                shape: Shape::Form(Form::Neutral),
                skills: 0,
                profile_id: None,
                session: None,
            },
        };
        let own = Own {
            tail: "Be kind.".into(),
            revision: String::new(),
            profile_id: None,
            degraded,
            stable_prefix: 0,
        };
        let kept = Kept {
            head: None,
            own: Arc::new(own),
        };
        let ttl = Duration::from_secs(ttl);
        Freshness { ttl }.expire_after_create(&key, &kept, Instant::now())
    }

    #[test]
    fn a_prompt_that_lacks_something_is_kept_for_five_seconds_at_most() {
        assert_eq!(kept_for(false, 60), Some(Duration::from_mins(1)));
        assert_eq!(kept_for(true, 60), Some(DEGRADED_TTL));
        assert_eq!(kept_for(true, 1), Some(Duration::from_secs(1)));
    }
}
