//! Which skills there are for a user, and what lies in them.

use std::{io::Read, path::Path, sync::Arc};

use crate::{
    app::App,
    session::Session,
    skills::{self, Group, Manifest, Patience, Skill, SkillName, SkillSet},
    workspace::name::UploadName,
};

/// How many skills a page holds; for each, all its files are read once.
const PAGE: usize = 50;

/// What names a skill to its session, and orders all of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SkillPlace {
    pub(crate) group: Group,
    pub(crate) name: SkillName,
}

impl SkillPlace {
    pub(crate) fn of(skill: &Skill) -> Self {
        Self {
            group: skill.group,
            name: skill.name.clone(),
        }
    }
}

/// A skill and its files.
pub(crate) struct DescribedSkill {
    pub(crate) skill: Arc<Skill>,
    pub(crate) manifest: Arc<Manifest>,
}

/// Some of a session's skills.
pub(crate) struct SkillPage {
    /// Without those whose files cannot be read.
    pub(crate) skills: Vec<DescribedSkill>,
    /// The last that was looked at, if there are more.
    pub(crate) more_after: Option<SkillPlace>,
}

/// The skills of the session's user, whichever chat it is about.
pub async fn list_skills(app: &App, session: &Session) -> Arc<SkillSet> {
    app.skills()
        .of(session.user_email.as_ref(), Patience::Call)
        .await
}

/// The skills of the session's prompt, a page of them; the first, or what comes after a skill that need not be there any more.
pub(crate) async fn page_skills(
    app: &App,
    session: &Session,
    after: Option<&SkillPlace>,
) -> SkillPage {
    let set = of_prompt(app, session).await;
    let first = after.map_or(0, |after| {
        set.skills
            .partition_point(|skill| SkillPlace::of(skill) <= *after)
    });
    let rest = &set.skills[first..];
    let page = &rest[..rest.len().min(PAGE)];
    let mut skills = Vec::new();
    for skill in page {
        skills.extend(described(app, skill).await);
    }
    let has_more = page.len() < rest.len();
    SkillPage {
        skills,
        more_after: page
            .last()
            .filter(|_| has_more)
            .map(|skill| SkillPlace::of(skill)),
    }
}

/// One of them.
pub(crate) async fn get_skill(
    app: &App,
    session: &Session,
    place: &SkillPlace,
) -> Option<DescribedSkill> {
    let skill = find(app, session, place).await?;
    described(app, &skill).await
}

/// What a file of one of them holds; none where there is no such file, or it has more than `uploads.max_read_bytes`.
pub(crate) async fn read_skill_file(
    app: &App,
    session: &Session,
    place: &SkillPlace,
    name: &UploadName,
) -> Option<Vec<u8>> {
    let skill = find(app, session, place).await?;
    let max = app.config().uploads.max_read_bytes;
    let path = name.as_path().to_owned();
    let reading = tokio::task::spawn_blocking(move || read_file(&skill, &path, max));
    reading
        .await
        .expect("reading does not panic, and nobody cancels it")
}

/// Only what the skill's listing has can be read: no link is followed, and nothing else lies there.
fn read_file(skill: &Skill, path: &Path, max: u64) -> Option<Vec<u8>> {
    let members = skills::members(&skill.directory).ok()?;
    let (_, metadata) = members.iter().find(|(member, _)| member == path)?;
    if metadata.len() > max {
        return None;
    }
    let file = skills::open(&skill.directory.join(path)).ok()?;
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

async fn described(app: &App, skill: &Arc<Skill>) -> Option<DescribedSkill> {
    let manifest = app.skills().manifest(skill).await?;
    let skill = Arc::clone(skill);
    Some(DescribedSkill { skill, manifest })
}

async fn find(app: &App, session: &Session, place: &SkillPlace) -> Option<Arc<Skill>> {
    let set = of_prompt(app, session).await;
    let mut skills = set.skills.iter();
    let found = skills.find(|skill| SkillPlace::of(skill) == *place);
    found.cloned()
}

async fn of_prompt(app: &App, session: &Session) -> Arc<SkillSet> {
    app.skills()
        .of(session.prompt_email(), Patience::Handshake)
        .await
}
