//! `/api/prompts/sections`: all sections to look at, the shared ones to edit.

use axum::extract::State;
use foreword_compose::SectionType;
use foreword_store::edit::{SectionInput, SectionPatch};
use serde::Serialize;
use serde_json::Value;
use utoipa::{
    ToSchema,
    openapi::schema::{ObjectBuilder, Schema, Type},
};

use super::{
    answer::Answer,
    body::{Wrapper, read_wrapped},
    conditional::{IfMatch, IfNoneMatch},
    query::NoQuery,
};
use crate::{
    api::openapi::{ReadProblems, WriteProblems},
    app::App,
    error::ApiError,
    extract::{Json, Path, fields::Fields},
    operations::prompts::{
        self, Found,
        sections::{SectionDetail, Use},
    },
};

/// A section by itself.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LibrarySection {
    /// `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`; compared exactly.
    #[schema(example = "safety", pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    id: String,
    /// What people call it; the id by default.
    name: String,
    /// A label; it never changes order or text. `custom` by default.
    #[serde(rename = "type")]
    #[schema(inline, schema_with = section_type_schema)]
    section_type: &'static str,
    /// The text, with placeholders.
    #[schema(example = "Never print secrets.")]
    content: String,
    /// A note for authors; never part of a prompt.
    description: Option<String>,
    /// Where it stands.
    #[schema(read_only)]
    used_by: Vec<SectionUse>,
    /// Whether it is written in the one profile that uses it, where it is edited too.
    #[schema(read_only)]
    inline: bool,
}

/// One place where a section stands.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SectionUse {
    /// The id of the profile.
    profile: String,
    /// Whether it is part of compositions there.
    enabled: bool,
    /// The order in force there.
    order: i64,
}

/// All sections: the shared ones, then the inline ones profile by profile.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SectionList {
    sections: Vec<LibrarySection>,
}

/// One shared section.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SectionAnswer {
    section: LibrarySection,
}

/// Lists all sections, shared and inline.
#[utoipa::path(
    get, path = "/api/prompts/sections", tag = "prompts",
    params(IfNoneMatch),
    responses((status = 200, description = "All sections", body = SectionList), ReadProblems),
)]
pub(crate) async fn list_sections(
    State(app): State<App>,
    _: NoQuery,
    if_none_match: IfNoneMatch,
) -> Answer {
    let (sections, snapshot) = prompts::sections::list_sections(&app);
    let list = SectionList {
        sections: sections.into_iter().map(Into::into).collect(),
    };
    Answer::computed(&list, snapshot.revision.clone()).unless(&if_none_match)
}

/// Shows a shared section.
#[utoipa::path(
    get, path = "/api/prompts/sections/{id}", tag = "prompts",
    params(("id" = String, Path, description = "The id of the section"), IfNoneMatch),
    responses((status = 200, description = "The section", body = SectionAnswer), ReadProblems),
)]
pub(crate) async fn get_section(
    State(app): State<App>,
    Path(id): Path<String>,
    _: NoQuery,
    if_none_match: IfNoneMatch,
) -> Result<Answer, ApiError> {
    let found = prompts::sections::get_section(&app, &id)?;
    Ok(answer(found).unless(&if_none_match))
}

/// Adds a shared section after the others.
#[utoipa::path(
    post, path = "/api/prompts/sections", tag = "prompts",
    request_body(content = ref("#/components/schemas/NewLibrarySection")),
    responses(
        (status = 201, description = "The section as it is kept", body = SectionAnswer,
         headers(("Location" = String, description = "Where it is"))),
        WriteProblems,
    ),
    security(("admin_key" = []), ("admin_key_header" = [])),
)]
pub(crate) async fn create_section(
    State(app): State<App>,
    _: NoQuery,
    Json(body): Json<Value>,
) -> Result<Answer, ApiError> {
    let mut id = String::new();
    let proposal = read_wrapped(&body, &SECTION, |fields| {
        id = fields.required_text("id");
        read_section(fields)
    });
    let found = prompts::sections::create_section(&app, &id, proposal).await?;
    Ok(answer(found).created_at(format!("/api/prompts/sections/{id}")))
}

/// Replaces a shared section, in every profile that uses it.
#[utoipa::path(
    put, path = "/api/prompts/sections/{id}", tag = "prompts",
    params(("id" = String, Path, description = "The id of the section"), IfMatch),
    request_body(content = ref("#/components/schemas/LibrarySectionInput")),
    responses((status = 200, description = "The section as it is kept", body = SectionAnswer), WriteProblems),
    security(("admin_key" = []), ("admin_key_header" = [])),
)]
pub(crate) async fn replace_section(
    State(app): State<App>,
    Path(id): Path<String>,
    _: NoQuery,
    IfMatch(precondition): IfMatch,
    Json(body): Json<Value>,
) -> Result<Answer, ApiError> {
    let proposal = read_wrapped(&body, &SECTION, |fields| {
        fields.same_id(&id);
        read_section(fields)
    });
    let found = prompts::sections::replace_section(&app, &id, precondition, proposal).await?;
    Ok(answer(found))
}

/// Changes some fields of a shared section (JSON Merge Patch, RFC 7386).
#[utoipa::path(
    patch, path = "/api/prompts/sections/{id}", tag = "prompts",
    params(("id" = String, Path, description = "The id of the section"), IfMatch),
    request_body(
        content = ref("#/components/schemas/LibrarySectionPatch"), content_type = "application/merge-patch+json",
    ),
    responses((status = 200, description = "The section as it is kept", body = SectionAnswer), WriteProblems),
    security(("admin_key" = []), ("admin_key_header" = [])),
)]
pub(crate) async fn patch_section(
    State(app): State<App>,
    Path(id): Path<String>,
    _: NoQuery,
    IfMatch(precondition): IfMatch,
    Json(body): Json<Value>,
) -> Result<Answer, ApiError> {
    let proposal = read_wrapped(&body, &SECTION, |fields| {
        fields.same_id(&id);
        read_patch(fields, &id)
    });
    let found = prompts::sections::patch_section(&app, &id, precondition, proposal).await?;
    Ok(answer(found))
}

/// Deletes a shared section that no profile uses.
#[utoipa::path(
    delete, path = "/api/prompts/sections/{id}", tag = "prompts",
    params(("id" = String, Path, description = "The id of the section"), IfMatch),
    responses((status = 204, description = "It is gone"), WriteProblems),
    security(("admin_key" = []), ("admin_key_header" = [])),
)]
pub(crate) async fn delete_section(
    State(app): State<App>,
    Path(id): Path<String>,
    _: NoQuery,
    IfMatch(precondition): IfMatch,
) -> Result<Answer, ApiError> {
    let snapshot = prompts::sections::delete_section(&app, &id, precondition).await?;
    Ok(Answer::nothing(snapshot.revision.clone()))
}

fn answer(found: Found<SectionDetail>) -> Answer {
    let Found {
        item,
        tag,
        library_revision,
    } = found;
    let section = LibrarySection::from(item);
    Answer::item_with_computed(&SectionAnswer { section }, &tag, library_revision)
}

const SECTION: Wrapper = Wrapper {
    name: "section",
    pointer: "/section",
    beside: &[],
};

/// What a section shows that nobody can write.
const READ_ONLY: &[&str] = &["used_by", "inline"];

fn read_section(fields: &mut Fields<'_>) -> SectionInput {
    fields.ignore(READ_ONLY);
    SectionInput {
        name: fields.text("name"),
        section_type: fields.section_type("type").unwrap_or_default(),
        content: fields.required_text("content"),
        description: fields.nullable_text("description"),
    }
}

fn read_patch(fields: &mut Fields<'_>, id: &str) -> SectionPatch {
    fields.ignore(READ_ONLY);
    SectionPatch {
        name: fields.patched("name", id.to_owned(), Fields::text),
        section_type: fields.patched("type", SectionType::default(), Fields::section_type),
        content: fields.text("content"),
        description: fields.patched("description", None, |fields, name| {
            fields.text(name).map(Some)
        }),
    }
}

/// The seven types as a schema.
pub(super) fn section_type_schema() -> Schema {
    let words = SectionType::ALL.map(SectionType::as_str);
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(words))
        .description(Some(
            "A label; it never changes order or text. `custom` by default.",
        ))
        .build()
        .into()
}

impl From<SectionDetail> for LibrarySection {
    fn from(detail: SectionDetail) -> Self {
        let SectionDetail {
            section,
            description,
            used_by,
            inline,
        } = detail;
        Self {
            id: section.id,
            name: section.name,
            section_type: section.section_type.as_str(),
            content: section.content,
            description,
            used_by: used_by.into_iter().map(Into::into).collect(),
            inline,
        }
    }
}

impl From<Use> for SectionUse {
    fn from(place: Use) -> Self {
        let Use {
            profile,
            enabled,
            order,
        } = place;
        Self {
            profile,
            enabled,
            order,
        }
    }
}
