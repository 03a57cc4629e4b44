//! `/api/prompts/global`, `/api/prompts/workspace-guide` and `/api/prompts/variables`.

use axum::extract::State;
use foreword_compose::Fault;
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

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
    extract::{
        Json,
        fields::{Fields, read_texts},
    },
    operations::prompts::{self, Document, Found, Proposal, texts::TextChange},
};

/// The text that comes before every profile's sections.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GlobalPrompt {
    /// The text, with placeholders.
    #[schema(example = "Always be helpful and concise.")]
    content: String,
    /// Whether it is part of compositions. Absent on writing: as it is.
    enabled: bool,
}

/// The text that tells a session's model about its workspace.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WorkspaceGuide {
    /// The text, with placeholders.
    #[schema(example = "Files you make in `/home/assistant/outputs` are at {file_base_url}.")]
    content: String,
    /// Whether sessions get it. Absent on writing: as it is.
    enabled: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GlobalPromptAnswer {
    global_prompt: GlobalPrompt,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WorkspaceGuideAnswer {
    workspace_guide: WorkspaceGuide,
}

/// The names that may stand in braces in prompt text, each with its default value.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VariablesAnswer {
    #[schema(value_type = std::collections::HashMap<String, String>, example = json!({"company": "Example Ltd"}))]
    variables: IndexMap<String, String>,
}

/// Shows the global prompt; an empty one where the library has none.
#[utoipa::path(
    get, path = "/api/prompts/global", tag = "prompts",
    params(IfNoneMatch),
    responses((status = 200, description = "The global prompt", body = GlobalPromptAnswer), ReadProblems),
)]
pub(crate) async fn get_global_prompt(
    State(app): State<App>,
    _: NoQuery,
    if_none_match: IfNoneMatch,
) -> Answer {
    global_prompt(prompts::texts::get_global_prompt(&app)).unless(&if_none_match)
}

/// Changes the global prompt.
#[utoipa::path(
    post, path = "/api/prompts/global/update", tag = "prompts",
    params(IfMatch),
    request_body(content = ref("#/components/schemas/GlobalPromptInput")),
    responses((status = 200, description = "The global prompt as it is kept", body = GlobalPromptAnswer), WriteProblems),
    security(("admin_key" = []), ("admin_key_header" = [])),
)]
pub(crate) async fn update_global_prompt(
    State(app): State<App>,
    _: NoQuery,
    IfMatch(precondition): IfMatch,
    Json(body): Json<Value>,
) -> Result<Answer, ApiError> {
    let proposal = read_wrapped(&body, &GLOBAL_PROMPT, read_text);
    let found = prompts::texts::update_global_prompt(&app, precondition, proposal).await?;
    Ok(global_prompt(found))
}

/// Shows the workspace guide; the one that Foreword ships where the library has none.
#[utoipa::path(
    get, path = "/api/prompts/workspace-guide", tag = "prompts",
    params(IfNoneMatch),
    responses((status = 200, description = "The workspace guide", body = WorkspaceGuideAnswer), ReadProblems),
)]
pub(crate) async fn get_workspace_guide(
    State(app): State<App>,
    _: NoQuery,
    if_none_match: IfNoneMatch,
) -> Answer {
    workspace_guide(prompts::texts::get_workspace_guide(&app)).unless(&if_none_match)
}

/// Replaces the workspace guide.
#[utoipa::path(
    put, path = "/api/prompts/workspace-guide", tag = "prompts",
    params(IfMatch),
    request_body(content = ref("#/components/schemas/WorkspaceGuideInput")),
    responses(
        (status = 200, description = "The workspace guide as it is kept", body = WorkspaceGuideAnswer), WriteProblems,
    ),
    security(("admin_key" = []), ("admin_key_header" = [])),
)]
pub(crate) async fn replace_workspace_guide(
    State(app): State<App>,
    _: NoQuery,
    IfMatch(precondition): IfMatch,
    Json(body): Json<Value>,
) -> Result<Answer, ApiError> {
    let proposal = read_wrapped(&body, &WORKSPACE_GUIDE, read_text);
    let found = prompts::texts::replace_workspace_guide(&app, precondition, proposal).await?;
    Ok(workspace_guide(found))
}

/// Shows the variables.
#[utoipa::path(
    get, path = "/api/prompts/variables", tag = "prompts",
    params(IfNoneMatch),
    responses((status = 200, description = "The variables", body = VariablesAnswer), ReadProblems),
)]
pub(crate) async fn get_variables(
    State(app): State<App>,
    _: NoQuery,
    if_none_match: IfNoneMatch,
) -> Answer {
    variables(prompts::texts::get_variables(&app)).unless(&if_none_match)
}

/// Replaces all variables.
#[utoipa::path(
    put, path = "/api/prompts/variables", tag = "prompts",
    params(IfMatch),
    request_body(content = VariablesAnswer),
    responses((status = 200, description = "The variables as they are kept", body = VariablesAnswer), WriteProblems),
    security(("admin_key" = []), ("admin_key_header" = [])),
)]
pub(crate) async fn replace_variables(
    State(app): State<App>,
    _: NoQuery,
    IfMatch(precondition): IfMatch,
    Json(body): Json<Value>,
) -> Result<Answer, ApiError> {
    let proposal = read_variables(&body);
    let found = prompts::texts::replace_variables(&app, precondition, proposal).await?;
    Ok(variables(found))
}

const GLOBAL_PROMPT: Wrapper = Wrapper {
    name: "global_prompt",
    pointer: "/global_prompt",
    beside: &[],
};

const WORKSPACE_GUIDE: Wrapper = Wrapper {
    name: "workspace_guide",
    pointer: "/workspace_guide",
    beside: &[],
};

fn read_text(fields: &mut Fields<'_>) -> TextChange {
    TextChange {
        content: Some(fields.required_text("content")),
        enabled: fields.flag("enabled"),
    }
}

/// Reads `{"variables": {…}}` or the map by itself; a variable may be called `variables` too, but its value is a text.
fn read_variables(body: &Value) -> Proposal<IndexMap<String, String>> {
    let mut faults: Vec<Fault> = Vec::new();
    let (map, item) = match body.get("variables") {
        Some(map) if !map.is_string() => {
            let mut outer = Fields::new(body, String::new(), &mut faults);
            outer.value("variables");
            outer.finish();
            (map, "/variables")
        }
        _ => (body, ""),
    };
    let value = read_texts(map, item, &mut faults).collect();
    Proposal {
        value,
        document: Document { item, faults },
    }
}

fn global_prompt(found: Found<foreword_compose::GlobalPrompt>) -> Answer {
    let foreword_compose::GlobalPrompt { content, enabled } = found.item;
    let global_prompt = GlobalPrompt { content, enabled };
    let body = GlobalPromptAnswer { global_prompt };
    Answer::item(&body, &found.tag, found.library_revision)
}

fn workspace_guide(found: Found<foreword_compose::WorkspaceGuide>) -> Answer {
    let foreword_compose::WorkspaceGuide { content, enabled } = found.item;
    let workspace_guide = WorkspaceGuide { content, enabled };
    let body = WorkspaceGuideAnswer { workspace_guide };
    Answer::item(&body, &found.tag, found.library_revision)
}

fn variables(found: Found<IndexMap<String, String>>) -> Answer {
    let body = VariablesAnswer {
        variables: found.item,
    };
    Answer::item(&body, &found.tag, found.library_revision)
}
