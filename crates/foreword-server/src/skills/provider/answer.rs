//! From the provider's list to what a user has: first what is at hand, so that what was switched off is off at once, then skill by
//! skill what had to be fetched, so that one which hangs holds up no other.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use tokio::time::Instant;

use super::{
    archives::{Archives, Content, NotHad},
    list::{List, Listed},
    service::Service,
};
use crate::skills::{
    Refused,
    local::{LocalSkill, MAX_SKILLS},
    name::SkillName,
};

/// How long all archives of a user may take together.
const WITHIN: Duration = Duration::from_secs(30);

/// What a skill takes of an answer, in bytes.
const SKILL_BYTES: usize = 512;

/// What the provider said of a user, as far as it could be had.
#[derive(Debug, Clone, Default)]
pub(in crate::skills) struct Answer {
    pub(in crate::skills) skills: Vec<Provided>,
    pub(in crate::skills) refused: Vec<Refused>,
    /// Whether something is missing that may be had later.
    pub(in crate::skills) is_incomplete: bool,
}

/// A skill that the provider gives a user.
#[derive(Debug, Clone)]
pub(in crate::skills) struct Provided {
    pub(in crate::skills) name: SkillName,
    pub(in crate::skills) is_public: bool,
    /// None for one that this server has itself.
    pub(in crate::skills) content: Option<LocalSkill>,
}

impl Answer {
    /// What it takes in memory, about.
    pub(super) fn bytes(&self) -> usize {
        let refused = self.refused.iter();
        let refused = refused.map(|refused| refused.name.len() + refused.why.len());
        refused.sum::<usize>() + (self.skills.len() + self.refused.len() + 1) * SKILL_BYTES
    }
}

/// An answer that is being put together.
pub(super) struct Answering<'a> {
    email: &'a Arc<str>,
    service: &'a Service,
    archives: &'a Archives,
    skills: BTreeMap<SkillName, Provided>,
    refused: Vec<Refused>,
    missing: Vec<Listed>,
    is_incomplete: bool,
}

impl<'a> Answering<'a> {
    /// Begins with what is at hand, and of the rest with what was had `before`.
    pub(super) async fn begin(
        email: &'a Arc<str>,
        service: &'a Service,
        archives: &'a Archives,
        list: List,
        before: Option<&Answer>,
    ) -> Self {
        let (listed, refused) = list.sorted_out();
        let mut answering = Self {
            email,
            service,
            archives,
            skills: BTreeMap::new(),
            refused,
            missing: Vec::new(),
            is_incomplete: false,
        };
        for listed in listed {
            if let Some(had) = archives.at_hand(email, &listed).await {
                answering.take(&listed, had);
                continue;
            }
            let before = before.into_iter().flat_map(|before| &before.skills);
            let before = before.into_iter().find(|skill| skill.name == listed.name);
            if let Some(before) = before {
                let before = Provided {
                    is_public: listed.is_public,
                    ..before.clone()
                };
                answering.skills.insert(listed.name.clone(), before);
            }
            answering.missing.push(listed);
        }
        answering
    }

    /// What there is before anything is fetched.
    pub(super) fn so_far(&self) -> Answer {
        let is_there = |listed: &Listed| self.skills.contains_key(&listed.name);
        let mut answer = self.answer();
        answer.is_incomplete |= !self.missing.iter().all(is_there);
        answer
    }

    /// Fetches what is missing, and gives what there is to `tell` whenever that is more.
    pub(super) async fn finish(mut self, tell: impl Fn(Answer)) -> Answer {
        let deadline = Instant::now() + WITHIN;
        let (email, service, archives) = (self.email, self.service, self.archives);
        let missing = std::mem::take(&mut self.missing);
        let mut left = missing.len();
        let fetching = missing.into_iter().map(|listed| async move {
            let fetched = archives.fetch(service, email, &listed, deadline).await;
            (listed, fetched)
        });
        // All of them wait at once, in the order in which those of all users came.
        let fetching = stream::iter(fetching).buffer_unordered(MAX_SKILLS);
        let mut fetching = std::pin::pin!(fetching.ready_chunks(MAX_SKILLS));
        while let Some(fetched) = fetching.next().await {
            left -= fetched.len();
            for (listed, fetched) in fetched {
                self.take(&listed, fetched);
            }
            if left > 0 {
                tell(Answer {
                    is_incomplete: true,
                    ..self.answer()
                });
            }
        }
        self.answer()
    }

    fn take(&mut self, listed: &Listed, had: Result<Content, NotHad>) {
        let name = listed.name.clone();
        match had {
            Ok(content) => {
                let provided = Provided {
                    name: name.clone(),
                    is_public: listed.is_public,
                    content,
                };
                self.skills.insert(name, provided);
            }
            Err(NotHad::Refused(why)) => {
                self.skills.remove(&name);
                self.refused.push(Refused::new(name.as_str(), why));
            }
            Err(NotHad::Later(why)) => {
                self.is_incomplete = true;
                // What was had before is better than nothing.
                if !self.skills.contains_key(&name) {
                    self.refused.push(Refused::new(name.as_str(), why));
                }
            }
        }
    }

    fn answer(&self) -> Answer {
        let mut refused = self.refused.clone();
        // Not in the order in which they came.
        refused.sort_by(|left, right| left.name.cmp(&right.name));
        Answer {
            skills: self.skills.values().cloned().collect(),
            refused,
            is_incomplete: self.is_incomplete,
        }
    }
}
