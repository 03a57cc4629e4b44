//! The Skills extension (SEP-2640): the skills of the session's prompt, with the files that its sandbox sees.
//!
//! For clients of 2026-07-28; those of older revisions have no extensions. Deliberately absent: reading directories, since `skills/get`
//! lists all files.

use std::{io::Read, path::Path, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use percent_encoding::{percent_decode_str, utf8_percent_encode};
use rmcp::{
    ErrorData,
    model::{
        GetSkillResult, ListSkillsResult, PaginatedRequestParams, ReadResourceResult,
        ResourceContents, SKILLS_EXTENSION_ID, ServerCapabilities, Skill as McpSkill,
        SkillFrontmatter, SkillResource, SkillResources,
    },
};
use serde_json::{Map, json};

use super::resources::not_found;
use crate::{
    app::App,
    links::UNRESERVED,
    session::Session,
    skills::{self, Patience, SKILL_MD, Skill, SkillSet},
    workspace::{media, name::UploadName},
};

/// What the URIs of skills begin with.
pub(super) const SCHEME: &str = "skill://";

/// How many skills a page holds; for each, all its files are read once.
const PAGE: usize = 50;

/// Says that there are skills, where there are resources to read them by.
pub(super) fn declare(app: &App, capabilities: &mut ServerCapabilities) {
    if capabilities.resources.is_some() && app.skills().are_kept() {
        let extensions = capabilities.extensions.get_or_insert_default();
        extensions.insert(SKILLS_EXTENSION_ID.to_owned(), Map::new());
    }
}

/// Takes that back for revisions that have no extensions.
pub(super) fn retract(capabilities: &mut ServerCapabilities) {
    capabilities.extensions = None;
}

/// The session's skills.
pub(super) async fn list(
    app: &App,
    session: &Session,
    request: Option<PaginatedRequestParams>,
) -> Result<ListSkillsResult, ErrorData> {
    let set = set_of(app, session).await;
    let cursor = request.and_then(|request| request.cursor);
    let first = match &cursor {
        None => 0,
        Some(cursor) => {
            1 + set
                .skills
                .iter()
                .position(|skill| base(skill) == *cursor)
                .ok_or_else(|| {
                    ErrorData::invalid_params(
                        "the cursor is not known; begin again without one",
                        None,
                    )
                })?
        }
    };
    let mut listed = Vec::new();
    for skill in set.skills.iter().skip(first).take(PAGE) {
        listed.extend(described(app, skill).await);
    }
    let mut result = ListSkillsResult::with_all_items(listed);
    if set.skills.len() > first + PAGE {
        result.next_cursor = set.skills.get(first + PAGE - 1).map(|skill| base(skill));
    }
    Ok(result)
}

/// One of them, by the URI of its SKILL.md.
pub(super) async fn get(
    app: &App,
    session: &Session,
    uri: &str,
) -> Result<GetSkillResult, ErrorData> {
    let unknown = || {
        ErrorData::invalid_params(
            format!("there is no skill `{uri}`"),
            Some(json!({ "uri": uri })),
        )
    };
    let set = set_of(app, session).await;
    let skill = set
        .skills
        .iter()
        .find(|skill| format!("{}{SKILL_MD}", base(skill)) == uri);
    let described = described(app, skill.ok_or_else(unknown)?).await;
    Ok(GetSkillResult::new(described.ok_or_else(unknown)?))
}

/// Reads a file of a skill.
pub(super) async fn read(
    app: &App,
    session: &Session,
    uri: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let set = set_of(app, session).await;
    let found = set.skills.iter().find_map(|skill| {
        let path = uri.strip_prefix(&base(skill))?;
        let path: Vec<u8> = percent_decode_str(path).collect();
        Some((Arc::clone(skill), UploadName::parse(&path).ok()?))
    });
    let (skill, name) = found.ok_or_else(|| not_found(uri))?;
    let max = app.config().uploads.max_read_bytes;
    let path = name.as_path().to_owned();
    let reading = tokio::task::spawn_blocking(move || read_file(&skill, &path, max));
    let bytes = reading
        .await
        .expect("reading does not panic, and nobody cancels it");
    let bytes = bytes.ok_or_else(|| not_found(uri))?;
    let media_type = media::media_type(name.as_path());
    let contents = match String::from_utf8(bytes) {
        Ok(text) => ResourceContents::text(text, uri),
        Err(error) => ResourceContents::blob(BASE64_STANDARD.encode(error.as_bytes()), uri),
    };
    Ok(ReadResourceResult::new(vec![
        contents.with_mime_type(media_type),
    ]))
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

async fn set_of(app: &App, session: &Session) -> Arc<SkillSet> {
    app.skills()
        .of(session.prompt_email(), Patience::Handshake)
        .await
}

/// What the URIs of a skill's files begin with.
fn base(skill: &Skill) -> String {
    format!("{SCHEME}{}/{}/", skill.group.as_str(), skill.name)
}

/// The skill as the protocol has it; none where it may not be called that there, or its files cannot be read.
async fn described(app: &App, skill: &Arc<Skill>) -> Option<McpSkill> {
    let manifest = app.skills().manifest(skill).await?;
    let base = base(skill);
    let resources = match &manifest.files {
        None => SkillResources::Dynamic,
        Some(files) => SkillResources::Files(
            files
                .iter()
                .map(|file| {
                    let path = file
                        .path
                        .split('/')
                        .map(|segment| utf8_percent_encode(segment, UNRESERVED).to_string());
                    let path = path.collect::<Vec<_>>().join("/");
                    SkillResource::new(format!("{base}{path}"), file.digest.clone(), file.size)
                })
                .collect(),
        ),
    };
    let mut front_matter = SkillFrontmatter::new(skill.name.as_str(), skill.description());
    for (key, value) in skill.fields() {
        if key != "name" && key != "description" {
            front_matter = front_matter.with_field(key, value.clone());
        }
    }
    let described = McpSkill::new(format!("{base}{SKILL_MD}"), front_matter, resources);
    described.validate().is_ok().then_some(described)
}
