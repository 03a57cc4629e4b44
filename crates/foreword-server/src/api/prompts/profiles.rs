//! `/api/prompts/profiles`.

use axum::extract::State;
use foreword_store::edit::{PlaceInput, ProfileInput, ProfilePatch};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::{
    answer::Answer,
    body::{Wrapper, read_wrapped},
    conditional::{IfMatch, IfNoneMatch},
    places::{self, PromptSection},
    query::NoQuery,
};
use crate::{
    api::{
        openapi::{ReadProblems, WriteProblems},
        page::{Page, paginate},
    },
    app::App,
    error::ApiError,
    extract::{Json, Path, Query, fields::Fields},
    operations::prompts::{
        self, Found,
        profiles::{ProfileDetail, ProfileSummary},
    },
};

/// A profile in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PromptProfileSummary {
    /// Its id.
    #[schema(example = "developer")]
    id: String,
    /// What people call it.
    #[schema(example = "Developer")]
    name: String,
    /// A note for people; never part of a prompt.
    description: Option<String>,
    /// Whether requests get it that name no profile.
    is_default: bool,
    /// How many sections it has.
    sections_count: usize,
    /// How many of them are part of compositions.
    enabled_sections: usize,
}

/// A page of profiles, in the order of the library.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProfileList {
    profiles: Vec<PromptProfileSummary>,
    /// How many there are in all.
    total: usize,
    /// Give it as `cursor` to get the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A named list of sections for one use.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "developer",
    "name": "Developer",
    "description": "Writes and reviews code",
    "is_default": false,
    "tools_prompt": true,
    "sections": [
        {"id": "role", "name": "Role", "type": "persona", "content": "You are a senior engineer.", "enabled": true,
         "order": 0, "priority": 0, "shared": false},
        {"id": "safety", "name": "Safety", "type": "constraints", "content": "Never print secrets.", "enabled": true,
         "order": 10, "priority": 5, "shared": true}
    ]
}))]
pub(crate) struct PromptProfile {
    /// `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`; compared exactly.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    id: String,
    /// What people call it; the id by default.
    name: String,
    /// A note for people; never part of a prompt.
    description: Option<String>,
    /// Whether requests get it that name no profile. Absent on writing: as it is.
    is_default: bool,
    /// Whether the tools prompt is part of its compositions; true by default.
    tools_prompt: bool,
    /// Its sections in the order of the file, disabled ones too.
    sections: Vec<PromptSection>,
}

/// A profile and what it composes to.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProfileAnswer {
    profile: PromptProfile,
    /// What the composition gives for this profile outside any session, with the tools now connected.
    composed_prompt: String,
    /// The first 16 hex digits of SHA-256 over `composed_prompt`.
    revision: String,
}

/// What [`list_profiles`] takes.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListProfilesQuery {
    /// How many at most; 1,000 by default, and at most.
    #[param(value_type = Option<usize>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Lists the profiles.
#[utoipa::path(
    get, path = "/api/prompts/profiles", tag = "prompts",
    params(ListProfilesQuery, IfNoneMatch),
    responses((status = 200, description = "A page of profiles", body = ProfileList), ReadProblems),
)]
pub(crate) async fn list_profiles(
    State(app): State<App>,
    Query(query): Query<ListProfilesQuery>,
    if_none_match: IfNoneMatch,
) -> Result<Answer, ApiError> {
    let (profiles, snapshot) = prompts::profiles::list_profiles(&app);
    let Page {
        items,
        total,
        next_cursor,
    } = paginate(
        profiles,
        query.limit.as_deref(),
        query.cursor.as_deref(),
        |profile| profile.id.as_bytes(),
    )?;
    let list = ProfileList {
        profiles: items.into_iter().map(Into::into).collect(),
        total,
        next_cursor,
    };
    Ok(Answer::computed(&list, snapshot.revision.clone()).unless(&if_none_match))
}

/// Shows a profile with its sections and what it composes to.
#[utoipa::path(
    get, path = "/api/prompts/profiles/{id}", tag = "prompts",
    params(("id" = String, Path, description = "The id of the profile"), IfNoneMatch),
    responses((status = 200, description = "The profile", body = ProfileAnswer), ReadProblems),
)]
pub(crate) async fn get_profile(
    State(app): State<App>,
    Path(id): Path<String>,
    _: NoQuery,
    if_none_match: IfNoneMatch,
) -> Result<Answer, ApiError> {
    let found = prompts::profiles::get_profile(&app, &id)?;
    Ok(answer(found).unless(&if_none_match))
}

/// Adds a profile after the others.
#[utoipa::path(
    post, path = "/api/prompts/profiles", tag = "prompts",
    request_body(content = ref("#/components/schemas/NewPromptProfile")),
    responses(
        (status = 201, description = "The profile as it is kept", body = ProfileAnswer,
         headers(("Location" = String, description = "Where it is"))),
        WriteProblems,
    ),
    security(("admin_key" = []), ("admin_key_header" = [])),
)]
pub(crate) async fn create_profile(
    State(app): State<App>,
    _: NoQuery,
    Json(body): Json<Value>,
) -> Result<Answer, ApiError> {
    let mut id = String::new();
    let proposal = read_wrapped(&body, &PROFILE, |fields| {
        id = fields.required_text("id");
        read_profile(fields)
    });
    let found = prompts::profiles::create_profile(&app, &id, proposal).await?;
    let location = location_of(&id);
    Ok(answer(found).created_at(location))
}

/// Replaces a profile with its sections.
///
/// Takes what `GET` gave, wrapper or bare. An entry whose id is that of a shared section is a place of that section; its
/// `name`, `type` and `content` may be absent or as they are.
#[utoipa::path(
    put, path = "/api/prompts/profiles/{id}", tag = "prompts",
    params(("id" = String, Path, description = "The id of the profile"), IfMatch),
    request_body(content = ref("#/components/schemas/PromptProfileInput")),
    responses((status = 200, description = "The profile as it is kept", body = ProfileAnswer), WriteProblems),
    security(("admin_key" = []), ("admin_key_header" = [])),
)]
pub(crate) async fn replace_profile(
    State(app): State<App>,
    Path(id): Path<String>,
    _: NoQuery,
    IfMatch(precondition): IfMatch,
    Json(body): Json<Value>,
) -> Result<Answer, ApiError> {
    let proposal = read_wrapped(&body, &PROFILE, |fields| {
        fields.same_id(&id);
        fields.require(
            "sections",
            "all its sections, or send a `PATCH` to leave them as they are",
        );
        read_profile(fields)
    });
    let found = prompts::profiles::replace_profile(&app, &id, precondition, proposal).await?;
    Ok(answer(found))
}

/// Changes some fields of a profile (JSON Merge Patch, RFC 7386).
#[utoipa::path(
    patch, path = "/api/prompts/profiles/{id}", tag = "prompts",
    params(("id" = String, Path, description = "The id of the profile"), IfMatch),
    request_body(
        content = ref("#/components/schemas/PromptProfilePatch"), content_type = "application/merge-patch+json",
    ),
    responses((status = 200, description = "The profile as it is kept", body = ProfileAnswer), WriteProblems),
    security(("admin_key" = []), ("admin_key_header" = [])),
)]
pub(crate) async fn patch_profile(
    State(app): State<App>,
    Path(id): Path<String>,
    _: NoQuery,
    IfMatch(precondition): IfMatch,
    Json(body): Json<Value>,
) -> Result<Answer, ApiError> {
    let proposal = read_wrapped(&body, &PROFILE, |fields| {
        fields.same_id(&id);
        read_patch(fields, &id)
    });
    let found = prompts::profiles::patch_profile(&app, &id, precondition, proposal).await?;
    Ok(answer(found))
}

/// Deletes a profile; the default one only if it is the last.
#[utoipa::path(
    delete, path = "/api/prompts/profiles/{id}", tag = "prompts",
    params(("id" = String, Path, description = "The id of the profile"), IfMatch),
    responses((status = 204, description = "It is gone"), WriteProblems),
    security(("admin_key" = []), ("admin_key_header" = [])),
)]
pub(crate) async fn delete_profile(
    State(app): State<App>,
    Path(id): Path<String>,
    _: NoQuery,
    IfMatch(precondition): IfMatch,
) -> Result<Answer, ApiError> {
    let snapshot = prompts::profiles::delete_profile(&app, &id, precondition).await?;
    Ok(Answer::nothing(snapshot.revision.clone()))
}

/// Makes a profile the one that requests get that name none.
#[utoipa::path(
    post, path = "/api/prompts/profiles/{id}/default", tag = "prompts",
    params(("id" = String, Path, description = "The id of the profile"), IfMatch),
    responses((status = 200, description = "The profile as it is kept", body = ProfileAnswer), WriteProblems),
    security(("admin_key" = []), ("admin_key_header" = [])),
)]
pub(crate) async fn set_default_profile(
    State(app): State<App>,
    Path(id): Path<String>,
    _: NoQuery,
    IfMatch(precondition): IfMatch,
) -> Result<Answer, ApiError> {
    let found = prompts::profiles::set_default_profile(&app, &id, precondition).await?;
    Ok(answer(found))
}

/// The answer that shows a profile, whichever route it is of.
pub(super) fn answer(found: Found<ProfileDetail>) -> Answer {
    let Found {
        item,
        tag,
        library_revision,
    } = found;
    Answer::item_with_computed(&ProfileAnswer::from(item), &tag, library_revision)
}

const PROFILE: Wrapper = Wrapper {
    name: "profile",
    pointer: "/profile",
    beside: &["composed_prompt", "revision"],
};

/// What a profile shows that nobody can write.
const READ_ONLY: &[&str] = &[
    "composed_prompt",
    "revision",
    "sections_count",
    "enabled_sections",
];

fn read_profile(fields: &mut Fields<'_>) -> ProfileInput {
    fields.ignore(READ_ONLY);
    ProfileInput {
        name: fields.text("name"),
        description: fields.nullable_text("description"),
        is_default: fields.flag("is_default"),
        tools_prompt: fields.flag("tools_prompt").unwrap_or(true),
        sections: read_sections(fields, "sections").unwrap_or_default(),
    }
}

fn read_patch(fields: &mut Fields<'_>, id: &str) -> ProfilePatch {
    fields.ignore(READ_ONLY);
    ProfilePatch {
        name: fields.patched("name", id.to_owned(), Fields::text),
        description: fields.patched("description", None, |fields, name| {
            fields.text(name).map(Some)
        }),
        is_default: fields.flag("is_default"),
        tools_prompt: fields.patched("tools_prompt", true, Fields::flag),
        sections: fields.patched("sections", Vec::new(), read_sections),
    }
}

fn read_sections(fields: &mut Fields<'_>, name: &'static str) -> Option<Vec<PlaceInput>> {
    fields.list(name, places::read_entry)
}

fn location_of(id: &str) -> String {
    format!("/api/prompts/profiles/{id}")
}

impl From<ProfileSummary> for PromptProfileSummary {
    fn from(summary: ProfileSummary) -> Self {
        let ProfileSummary {
            id,
            name,
            description,
            is_default,
            sections_count,
            enabled_sections,
        } = summary;
        Self {
            id,
            name,
            description,
            is_default,
            sections_count,
            enabled_sections,
        }
    }
}

impl From<ProfileDetail> for ProfileAnswer {
    fn from(detail: ProfileDetail) -> Self {
        Self {
            profile: PromptProfile {
                id: detail.id,
                name: detail.name,
                description: detail.description,
                is_default: detail.is_default,
                tools_prompt: detail.tools_prompt,
                sections: detail.sections.into_iter().map(Into::into).collect(),
            },
            composed_prompt: detail.composed_prompt,
            revision: detail.revision,
        }
    }
}
