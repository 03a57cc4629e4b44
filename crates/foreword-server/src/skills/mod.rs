//! The skills of a session: which there are, where their files lie, and what the prompt says of them.
//!
//! By precedence of names: the user's own, the provider's, those of this server for all, those that come with Foreword. A skill is
//! listed only if its files are here. Nobody waits for the provider longer than [`Patience`] says, and what cannot be had is left
//! out and told. Deliberately absent: which route or tier asks.

mod archive;
mod block;
mod cache;
mod config;
mod front_matter;
mod local;
mod manifest;
mod name;
mod provider;
mod shipped;
mod view;

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    sync::Arc,
};

use foreword_sandbox::SkillsDirectory;
use moka::{future::Cache as Moka, policy::EvictionPolicy, sync::Cache as Remembered};
use tempfile::TempDir;

use crate::{
    operations::workspace::queue::ChatQueue,
    workspace::{Workspace, Workspaces},
};
use foreword_sandbox::SandboxKey;

pub use config::{ProviderConfig, SkillsConfig};
pub use name::{SkillName, user_directory};
pub use provider::{Answered, Patience};

pub(crate) use local::{SKILL_MD, members, open};
pub(crate) use manifest::Manifest;

use front_matter::FrontMatter;
use local::{Directory, Found, LocalSkill};
use provider::{Answer, Provider};

/// How many users' directories are remembered.
const MOST_USERS: u64 = 1_000;

/// How many skills' files are remembered, of each up to 512 names.
const MOST_MANIFESTS: u64 = 1_000;

/// How much the sets that are remembered may take, in bytes.
const SETS_BYTES: u64 = 32 << 20;

/// What a set, and each skill of it, takes beside its block, in bytes.
const SET_OVERHEAD: usize = 512;

/// How many chats' views are remembered; one that is forgotten is compared once more.
const MOST_VIEWS: u64 = 10_000;

/// All skills; cheap to clone.
#[derive(Clone)]
pub struct Skills {
    inner: Arc<Inner>,
}

struct Inner {
    root: Option<PathBuf>,
    public: Arc<Directory>,
    shipped: Found,
    /// Where the shipped skills are, if there is no data directory.
    elsewhere: Option<TempDir>,
    users: Moka<String, Arc<Directory>>,
    provider: Option<Arc<Provider>>,
    sets: Remembered<Option<Arc<str>>, Arc<Made>>,
    manifests: Remembered<String, Arc<Manifest>>,
    views: Remembered<SandboxKey, (u64, Option<view::Stamp>)>,
    showing: ChatQueue,
}

/// A set, and what it was made of.
struct Made {
    own: Arc<Found>,
    public: Arc<Found>,
    answer: Option<Arc<Answer>>,
    set: Arc<SkillSet>,
}

/// The skills of one user.
#[derive(Debug, Default)]
pub struct SkillSet {
    /// The user's before those for all, each by name.
    pub skills: Vec<Arc<Skill>>,
    /// Another number when anything has changed that prompts or sandboxes show of it; what is left out is told only.
    pub revision: u64,
    /// Why something may be missing that will be there later.
    pub degraded: Option<String>,
    /// What is left out, and why.
    pub refused: Vec<Refused>,
    /// What the prompt says; empty without skills.
    pub(crate) block: String,
}

/// A skill that a session has.
#[derive(Debug)]
pub struct Skill {
    /// Its name, by which it is unique within a set.
    pub name: SkillName,
    /// Whose it is.
    pub group: Group,
    /// Where it comes from.
    pub origin: Origin,
    /// What SKILL.md says of itself.
    front_matter: Arc<FrontMatter>,
    /// Where its files lie on this server.
    pub(crate) directory: PathBuf,
    /// Another word when anything in it has changed.
    pub(crate) identity: String,
}

/// Whose a skill is, which is also the directory below `/mnt/skills` that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// The user's.
    User,
    /// For all.
    Public,
}

impl Group {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Public => "public",
        }
    }
}

/// Where a skill comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The data directory.
    Local,
    /// The provider.
    Provider,
    /// This program.
    Shipped,
}

impl Origin {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Provider => "provider",
            Self::Shipped => "shipped",
        }
    }
}

/// A skill that is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its name, as far as it has one.
    pub name: String,
    /// Why.
    pub why: String,
}

impl Refused {
    fn new(name: &str, why: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            why: why.into(),
        }
    }
}

impl Skill {
    fn new(skill: LocalSkill, group: Group, origin: Origin) -> Self {
        Self {
            name: skill.name,
            group,
            origin,
            front_matter: skill.front_matter,
            directory: skill.directory,
            identity: skill.identity,
        }
    }

    /// What it is for, in its own words.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.front_matter.description
    }

    /// Everything that its front matter says.
    pub(crate) fn fields(&self) -> &serde_json::Map<String, serde_json::Value> {
        &self.front_matter.fields
    }

    /// Where its SKILL.md is in the workspace.
    #[must_use]
    pub fn location(&self) -> String {
        block::location(self)
    }
}

/// The directory below the data directory.
const DIRECTORY: &str = "skills";

impl Skills {
    /// None, now and later.
    #[must_use]
    pub fn none() -> Self {
        Self::with(None, Found::default(), None)
    }

    /// The skills of a data directory, for sandboxes of these workspaces. What keeps some of them away is returned beside; the others are
    /// there.
    #[must_use]
    pub fn open(
        config: &SkillsConfig,
        data_dir: &Path,
        workspaces: &Workspaces,
    ) -> (Self, Vec<String>) {
        if let Err(error) = workspaces.check_writable() {
            let why = format!(
                "no skills are offered, since no workspace could be made that shows them: {error}"
            );
            return (Self::none(), vec![why]);
        }
        let root = data_dir.join(DIRECTORY);
        // What is linked into a chat's directory is named from there too.
        let root = std::path::absolute(&root).unwrap_or(root);
        let mut troubles = Vec::new();
        // Who only looks makes no data directory.
        let elsewhere = (!data_dir.is_dir())
            .then(tempfile::tempdir)
            .and_then(Result::ok);
        let place = elsewhere
            .as_ref()
            .map_or(root.as_path(), |elsewhere| elsewhere.path());
        let shipped = if config.shipped {
            shipped::unpack(place).unwrap_or_else(|error| {
                troubles.push(format!(
                    "the skills that come with Foreword are not offered: {error}"
                ));
                Found::default()
            })
        } else {
            Found::default()
        };
        let provider = Provider::new(&config.provider, &root).unwrap_or_else(|why| {
            troubles.push(format!("the provider of skills is not asked: {why}"));
            None
        });
        if let Some(provider) = &provider {
            provider.tidy();
        }
        let mut skills = Self::with(Some(root), shipped, provider);
        if let Some(inner) = Arc::get_mut(&mut skills.inner) {
            inner.elsewhere = elsewhere;
        }
        (skills, troubles)
    }

    fn with(root: Option<PathBuf>, shipped: Found, provider: Option<Provider>) -> Self {
        let public = root.as_deref().unwrap_or(Path::new("")).join("public");
        Self {
            inner: Arc::new(Inner {
                public: Directory::new(public),
                root,
                shipped,
                elsewhere: None,
                users: Moka::new(MOST_USERS),
                provider: provider.map(Arc::new),
                sets: Remembered::builder()
                    .max_capacity(SETS_BYTES)
                    .eviction_policy(EvictionPolicy::lru())
                    .weigher(|_, made: &Arc<Made>| {
                        let bytes =
                            made.set.block.len() + (made.set.skills.len() + 1) * SET_OVERHEAD;
                        u32::try_from(bytes).unwrap_or(u32::MAX)
                    })
                    .build(),
                manifests: Remembered::new(MOST_MANIFESTS),
                views: Remembered::new(MOST_VIEWS),
                showing: ChatQueue::default(),
            }),
        }
    }

    /// Whether there can be any.
    pub(crate) fn are_kept(&self) -> bool {
        self.inner.root.is_some()
    }

    /// Whether a provider is asked.
    pub(crate) fn has_provider(&self) -> bool {
        self.inner.provider.is_some()
    }

    /// The skills of a user, or of a session that has none.
    pub(crate) async fn of(&self, email: Option<&Arc<str>>, patience: Patience) -> Arc<SkillSet> {
        let Some(root) = &self.inner.root else {
            return Arc::default();
        };
        let public = self.inner.public.skills().await;
        let own = match email {
            None => Arc::default(),
            Some(email) => {
                let directory = user_directory(email);
                let path = root.join("user").join(&directory);
                let open = async { Directory::new(path) };
                self.inner
                    .users
                    .get_with(directory, open)
                    .await
                    .skills()
                    .await
            }
        };
        let given = match (&self.inner.provider, email) {
            (Some(provider), Some(email)) => Some(provider.given(email, patience).await),
            _ => None,
        };
        let (answer, trouble) = given.map_or((None, None), |given| (given.answer, given.trouble));
        let is_that = |made: &Made| {
            let same_answer = match (&made.answer, &answer) {
                (None, None) => true,
                (Some(one), Some(other)) => Arc::ptr_eq(one, other),
                _ => false,
            };
            same_answer
                && made.set.degraded == trouble
                && Arc::ptr_eq(&made.own, &own)
                && Arc::ptr_eq(&made.public, &public)
        };
        let key = email.cloned();
        if let Some(made) = self.inner.sets.get(&key).filter(|made| is_that(made)) {
            return Arc::clone(&made.set);
        }
        let set = combine(
            &own,
            answer.as_deref(),
            trouble,
            &public,
            &self.inner.shipped,
        );
        let set = Arc::new(set);
        let made = Made {
            own,
            public,
            answer,
            set: Arc::clone(&set),
        };
        self.inner.sets.insert(key, Arc::new(made));
        set
    }

    /// The files of a skill; none where they cannot be read.
    pub(crate) async fn manifest(&self, skill: &Arc<Skill>) -> Option<Arc<Manifest>> {
        if let Some(manifest) = self.inner.manifests.get(&skill.identity) {
            return Some(manifest);
        }
        let directory = skill.directory.clone();
        let reading = tokio::task::spawn_blocking(move || Manifest::of(&directory));
        let manifest = reading
            .await
            .expect("reading does not panic, and nobody cancels it")?;
        let manifest = Arc::new(manifest);
        self.inner
            .manifests
            .insert(skill.identity.clone(), Arc::clone(&manifest));
        Some(manifest)
    }

    /// Makes the skills that the sandbox of `workspace` sees those of `sets`, the last of which counts where they differ, and names the
    /// directories that it sees.
    pub(crate) async fn show(
        &self,
        sets: &[Arc<SkillSet>],
        workspace: &Workspace,
        key: &SandboxKey,
    ) -> Vec<SkillsDirectory> {
        let root = workspace.skills_path();
        if !self.are_kept() {
            return Vec::new();
        }
        let turn = self.inner.showing.turn(key).await;
        let mut hasher = DefaultHasher::new();
        for set in sets {
            set.revision.hash(&mut hasher);
        }
        let revision = hasher.finish();
        // The stamp tells whether another process has changed it since.
        let stamp = view::stamp(&root);
        if stamp.is_some() && self.inner.views.get(key) == Some((revision, stamp)) {
            return view::directories(&root);
        }
        let skills = sets.iter().flat_map(|set| set.skills.iter().cloned());
        let (shown, place) = (skills.collect::<Vec<_>>(), root.clone());
        // A call that is cancelled leaves it running, and must not leave the chat to be deleted meanwhile.
        let held = workspace.hold();
        let showing = tokio::task::spawn_blocking(move || {
            let _held = (turn, held);
            view::show(&shown, &place)
        });
        let shown = showing
            .await
            .expect("showing does not panic, and nobody cancels it");
        match shown {
            Ok((failed, stamp)) if failed.is_empty() => {
                self.inner.views.insert(key.clone(), (revision, stamp));
            }
            Ok((failed, _)) => failed.into_iter().for_each(|why| tracing::error!("{why}")),
            Err(error) => {
                tracing::error!(%error, "The skills of a chat cannot be shown to its sandbox");
            }
        }
        // Also where it failed: what the sandbox is started with is what it can ever see.
        view::directories(&root)
    }
}

/// What is found where skills come from, without changing anything.
#[derive(Debug)]
pub struct Looked {
    /// How many skills for all lie in the data directory.
    pub public: usize,
    /// Which of them are left out.
    pub refused: Vec<Refused>,
    /// Whether the provider answers, if there is one.
    pub provider: Option<Result<Answered, String>>,
}

/// Looks where skills come from, and asks the provider.
pub async fn look(config: &SkillsConfig, data_dir: &Path) -> Looked {
    let root = data_dir.join(DIRECTORY);
    let found = local::look(&root.join("public"));
    let provider = match Provider::new(&config.provider, &root) {
        Ok(None) => None,
        Ok(Some(provider)) => Some(provider.check().await),
        Err(why) => Some(Err(why)),
    };
    Looked {
        public: found.skills.len(),
        refused: found.refused,
        provider,
    }
}

/// Puts together what a user has: of one name the first counts.
fn combine(
    own: &Found,
    answer: Option<&Answer>,
    degraded: Option<String>,
    public: &Found,
    shipped: &Found,
) -> SkillSet {
    let mut taken = BTreeSet::new();
    let mut skills = Vec::new();
    let mut take = |skill: &LocalSkill, group, origin| {
        if taken.insert(skill.name.clone()) {
            skills.push(Arc::new(Skill::new(skill.clone(), group, origin)));
        }
    };
    let mut refused = own.refused.clone();
    for skill in &own.skills {
        take(skill, Group::User, Origin::Local);
    }
    let of_this_server = || {
        let local = public.skills.iter().map(|skill| (skill, Origin::Local));
        local.chain(shipped.skills.iter().map(|skill| (skill, Origin::Shipped)))
    };
    refused.extend(public.refused.iter().cloned());
    match answer {
        // Without a word of the provider's, what is here is for all.
        None => of_this_server().for_each(|(skill, origin)| take(skill, Group::Public, origin)),
        Some(Answer {
            skills: provided,
            refused: of_provider,
            ..
        }) => {
            refused.extend(of_provider.iter().cloned());
            for skill in provided {
                let group = if skill.is_public {
                    Group::Public
                } else {
                    Group::User
                };
                match &skill.content {
                    Some(content) => take(content, group, Origin::Provider),
                    None => match of_this_server().find(|(here, _)| here.name == skill.name) {
                        Some((here, origin)) => take(here, Group::Public, origin),
                        None => refused.push(Refused::new(
                            skill.name.as_str(),
                            "the provider says that this server has it itself, and it does not",
                        )),
                    },
                }
            }
        }
    }
    skills.sort_by(|left, right| (left.group, &left.name).cmp(&(right.group, &right.name)));
    let block = block::block(skills.iter().map(|skill| &**skill));
    let mut hasher = DefaultHasher::new();
    block.hash(&mut hasher);
    for skill in &skills {
        (&skill.name, skill.group, &skill.identity).hash(&mut hasher);
    }
    degraded.is_some().hash(&mut hasher);
    SkillSet {
        revision: hasher.finish(),
        skills,
        degraded,
        refused,
        block,
    }
}
