//! `/api/prompts/profiles/{id}/sections/{section}` and `/api/prompts/profiles/{id}/order`.
//!
//! A place is part of its profile: these routes answer with the profile and its tag, and `If-Match` compares that one.

use axum::extract::State;
use foreword_compose::{Fault, SectionType};
use foreword_store::edit::{PlaceInput, PlacePatch};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::{
    answer::Answer,
    body::{Wrapper, read_bare, read_wrapped},
    conditional::IfMatch,
    profiles::{ProfileAnswer, answer},
    query::NoQuery,
};
use crate::{
    api::openapi::WriteProblems,
    app::App,
    error::ApiError,
    extract::{
        Json, Path,
        fields::{Fields, note, wrong_type},
    },
    operations::prompts::{self, profiles::PlacedSection},
};

/// A section in its place in a profile.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PromptSection {
    /// `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`; unique in its profile.
    #[schema(example = "identity", pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    id: String,
    /// What people call it; the id by default.
    name: String,
    /// A label; it never changes order or text. `custom` by default.
    #[serde(rename = "type")]
    #[schema(inline, schema_with = super::sections::section_type_schema)]
    section_type: &'static str,
    /// The text, with placeholders.
    #[schema(example = "You are a helpful AI assistant.")]
    content: String,
    /// Whether it is part of compositions; true by default.
    enabled: bool,
    /// Ascending; equal orders keep the order of the file. 0 by default.
    order: i64,
    /// Higher goes first when a short form has no room for everything; 0 by default.
    priority: i64,
    /// Whether the text is that of a shared section.
    #[schema(read_only)]
    shared: bool,
}

/// All sections of a profile, each once, in the order wanted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SectionOrder {
    #[schema(example = json!(["role", "safety"]))]
    sections: Vec<String>,
}

/// Where a place is.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct PlacePath {
    /// The id of the profile.
    id: String,
    /// The id of the section.
    section: String,
}

/// Adds a place to a profile, or replaces the one that has the section's id.
///
/// If a shared section has the id, it is a place of that section. Without `order`, a place that exists keeps its own and
/// a new one comes last.
#[utoipa::path(
    put, path = "/api/prompts/profiles/{id}/sections/{section}", tag = "prompts",
    params(PlacePath, IfMatch),
    request_body(content = ref("#/components/schemas/PromptSectionInput")),
    responses(
        (status = 200, description = "Replaced: the profile as it is kept", body = ProfileAnswer),
        (status = 201, description = "Added: the profile as it is kept", body = ProfileAnswer),
        WriteProblems,
    ),
    security(("admin_key" = []), ("admin_key_header" = [])),
)]
pub(crate) async fn put_place(
    State(app): State<App>,
    Path(path): Path<PlacePath>,
    _: NoQuery,
    IfMatch(precondition): IfMatch,
    Json(body): Json<Value>,
) -> Result<Answer, ApiError> {
    let proposal = read_wrapped(&body, &SECTION, |fields| {
        fields.same_id(&path.section);
        read_place(fields, path.section.clone())
    });
    let (found, added) = prompts::places::put_place(&app, &path.id, precondition, proposal).await?;
    let answer = answer(found);
    Ok(if added { answer.created() } else { answer })
}

/// Changes some fields of one place (JSON Merge Patch, RFC 7386).
///
/// `content`, `name` and `type` are those of an inline section; a shared one is changed at its own route.
#[utoipa::path(
    patch, path = "/api/prompts/profiles/{id}/sections/{section}", tag = "prompts",
    params(PlacePath, IfMatch),
    request_body(
        content = ref("#/components/schemas/PromptSectionPatch"), content_type = "application/merge-patch+json",
    ),
    responses((status = 200, description = "The profile as it is kept", body = ProfileAnswer), WriteProblems),
    security(("admin_key" = []), ("admin_key_header" = [])),
)]
pub(crate) async fn patch_place(
    State(app): State<App>,
    Path(path): Path<PlacePath>,
    _: NoQuery,
    IfMatch(precondition): IfMatch,
    Json(body): Json<Value>,
) -> Result<Answer, ApiError> {
    let PlacePath { id, section } = path;
    let proposal = read_wrapped(&body, &SECTION, |fields| {
        fields.same_id(&section);
        read_patch(fields, &section)
    });
    let found = prompts::places::patch_place(&app, &id, &section, precondition, proposal).await?;
    Ok(answer(found))
}

/// Removes one place from a profile; a shared section itself stays.
#[utoipa::path(
    delete, path = "/api/prompts/profiles/{id}/sections/{section}", tag = "prompts",
    params(PlacePath, IfMatch),
    responses((status = 204, description = "It is gone"), WriteProblems),
    security(("admin_key" = []), ("admin_key_header" = [])),
)]
pub(crate) async fn remove_place(
    State(app): State<App>,
    Path(PlacePath { id, section }): Path<PlacePath>,
    _: NoQuery,
    IfMatch(precondition): IfMatch,
) -> Result<Answer, ApiError> {
    let found = prompts::places::remove_place(&app, &id, &section, precondition).await?;
    Ok(Answer::nothing(found.library_revision))
}

/// Numbers the sections of a profile from 0 in the order given; no line of the file moves.
#[utoipa::path(
    put, path = "/api/prompts/profiles/{id}/order", tag = "prompts",
    params(("id" = String, Path, description = "The id of the profile"), IfMatch),
    request_body(content = SectionOrder),
    responses((status = 200, description = "The profile as it is kept", body = ProfileAnswer), WriteProblems),
    security(("admin_key" = []), ("admin_key_header" = [])),
)]
pub(crate) async fn order_places(
    State(app): State<App>,
    Path(id): Path<String>,
    _: NoQuery,
    IfMatch(precondition): IfMatch,
    Json(body): Json<Value>,
) -> Result<Answer, ApiError> {
    let proposal = read_bare(&body, |fields| {
        fields.require("sections", "the ids of all sections of the profile");
        fields.list("sections", read_id).unwrap_or_default()
    });
    let found = prompts::places::order_places(&app, &id, precondition, proposal).await?;
    Ok(answer(found))
}

const SECTION: Wrapper = Wrapper {
    name: "section",
    pointer: "/section",
    beside: &[],
};

/// What a section in its place shows that nobody can write.
const READ_ONLY: &[&str] = &["shared", "inline", "used_by"];

/// Reads one entry of a profile's sections.
pub(super) fn read_entry(entry: &Value, pointer: &str, faults: &mut Vec<Fault>) -> PlaceInput {
    let mut fields = Fields::new(entry, pointer.to_owned(), faults);
    let id = fields.required_text("id");
    let place = read_place(&mut fields, id);
    fields.finish();
    place
}

fn read_place(fields: &mut Fields<'_>, id: String) -> PlaceInput {
    fields.ignore(READ_ONLY);
    PlaceInput {
        id,
        name: fields.text("name"),
        section_type: fields.section_type("type"),
        content: fields.text("content"),
        enabled: fields.flag("enabled").unwrap_or(true),
        order: fields.number("order"),
        priority: fields.number("priority").unwrap_or(0),
    }
}

fn read_patch(fields: &mut Fields<'_>, id: &str) -> PlacePatch {
    fields.ignore(READ_ONLY);
    PlacePatch {
        name: fields.patched("name", id.to_owned(), Fields::text),
        section_type: fields.patched("type", SectionType::default(), Fields::section_type),
        content: fields.text("content"),
        enabled: fields.patched("enabled", true, Fields::flag),
        order: fields.patched("order", 0, Fields::number),
        priority: fields.patched("priority", 0, Fields::number),
    }
}

fn read_id(entry: &Value, pointer: &str, faults: &mut Vec<Fault>) -> String {
    if entry.as_str().is_none() {
        note(faults, || wrong_type(pointer, "the id of a section", entry));
    }
    entry.as_str().unwrap_or_default().to_owned()
}

impl From<PlacedSection> for PromptSection {
    fn from(placed: PlacedSection) -> Self {
        let PlacedSection {
            section,
            shared,
            enabled,
            order,
            priority,
        } = placed;
        Self {
            id: section.id,
            name: section.name,
            section_type: section.section_type.as_str(),
            content: section.content,
            enabled,
            order,
            priority,
            shared,
        }
    }
}
