//! The Skills extension (SEP-2640): the skills of the session's prompt, with the files that its sandbox sees.
//!
//! For clients of 2026-07-28; those of older revisions have no extensions. Deliberately absent: reading directories, since `skills/get`
//! lists all files.

use base64::{Engine, prelude::BASE64_STANDARD};
use percent_encoding::{percent_decode_str, utf8_percent_encode};
use rmcp::{
    ErrorData, RoleServer,
    model::{
        GetSkillResult, ListSkillsResult, PaginatedRequestParams, ReadResourceResult,
        ResourceContents, SKILLS_EXTENSION_ID, ServerCapabilities, Skill as McpSkill,
        SkillFrontmatter, SkillResource, SkillResources,
    },
    service::RequestContext,
};
use serde_json::{Map, json};

use super::{handler::speaks_2026, resources::not_found};
use crate::{
    app::App,
    links::UNRESERVED,
    operations::skills::{DescribedSkill, SkillPlace, get_skill, page_skills, read_skill_file},
    session::Session,
    skills::{Group, SKILL_MD, SkillName},
    workspace::{media, name::UploadName},
};

/// What the URIs of skills begin with.
pub(super) const SCHEME: &str = "skill://";

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

/// Whether the client may use the extension: its revision has extensions, and it does not say that it knows others only. One that names
/// none at all is answered: whether it knows this one cannot be told, and it asks.
pub(super) fn are_negotiated(context: &RequestContext<RoleServer>) -> bool {
    let capabilities = context.client_capabilities();
    let extensions = capabilities.and_then(|capabilities| capabilities.extensions);
    speaks_2026(context)
        && extensions.is_none_or(|extensions| extensions.contains_key(SKILLS_EXTENSION_ID))
}

/// The session's skills.
pub(super) async fn list(
    app: &App,
    session: &Session,
    request: Option<PaginatedRequestParams>,
) -> Result<ListSkillsResult, ErrorData> {
    let cursor = request.and_then(|request| request.cursor);
    let after = cursor.as_deref().map(behind).transpose()?;
    let page = page_skills(app, session, after.as_ref()).await;
    let skills = page.skills.iter().filter_map(skill).collect();
    let mut result = ListSkillsResult::with_all_items(skills);
    result.next_cursor = page.more_after.as_ref().map(base);
    Ok(result)
}

/// One of them, by the URI of its SKILL.md.
pub(super) async fn get(
    app: &App,
    session: &Session,
    uri: &str,
) -> Result<GetSkillResult, ErrorData> {
    let found = match parse(uri) {
        Some((place, SKILL_MD)) => get_skill(app, session, &place).await,
        _ => None,
    };
    let described = found.as_ref().and_then(skill).ok_or_else(|| {
        ErrorData::invalid_params(
            format!("there is no skill `{uri}`"),
            Some(json!({ "uri": uri })),
        )
    })?;
    Ok(GetSkillResult::new(described))
}

/// Reads a file of a skill.
pub(super) async fn read(
    app: &App,
    session: &Session,
    uri: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let named = parse(uri).and_then(|(place, path)| {
        let path: Vec<u8> = percent_decode_str(path).collect();
        Some((place, UploadName::parse(&path).ok()?))
    });
    let (place, name) = named.ok_or_else(|| not_found(uri))?;
    let bytes = read_skill_file(app, session, &place, &name).await;
    let contents = match String::from_utf8(bytes.ok_or_else(|| not_found(uri))?) {
        Ok(text) => ResourceContents::text(text, uri),
        Err(error) => ResourceContents::blob(BASE64_STANDARD.encode(error.as_bytes()), uri),
    };
    let media_type = media::media_type(name.as_path());
    Ok(ReadResourceResult::new(vec![
        contents.with_mime_type(media_type),
    ]))
}

/// The skill behind which a page begins.
fn behind(cursor: &str) -> Result<SkillPlace, ErrorData> {
    let parsed = parse(cursor).filter(|(_, path)| path.is_empty());
    let (place, _) = parsed.ok_or_else(|| {
        let message = "the cursor is not known; begin again without one";
        ErrorData::invalid_params(message, None)
    })?;
    Ok(place)
}

/// The skill of a URI, and the path within it.
fn parse(uri: &str) -> Option<(SkillPlace, &str)> {
    let (group, rest) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    let (name, path) = rest.split_once('/')?;
    let mut groups = [Group::User, Group::Public].into_iter();
    let place = SkillPlace {
        group: groups.find(|known| known.as_str() == group)?,
        name: SkillName::new(name)?,
    };
    Some((place, path))
}

/// What the URIs of a skill's files begin with; also the cursor behind it.
fn base(place: &SkillPlace) -> String {
    format!("{SCHEME}{}/{}/", place.group.as_str(), place.name)
}

/// The skill as the protocol has it; none where it may not be called that there.
fn skill(described: &DescribedSkill) -> Option<McpSkill> {
    let DescribedSkill { skill, manifest } = described;
    let base = base(&SkillPlace::of(skill));
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
    let skill = McpSkill::new(format!("{base}{SKILL_MD}"), front_matter, resources);
    skill.validate().is_ok().then_some(skill)
}
