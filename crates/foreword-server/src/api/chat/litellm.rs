//! `GET /beta/litellm_prompt_management`: LiteLLM takes its prompts from here.
//!
//! LiteLLM keeps an answer for all its users until it is restarted, so it is given the form that holds nothing of a session.

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    api::openapi::ReadProblems, app::App, config::Form, error::ApiError, extract::Query,
    mcp::instructions::nobodys_session,
};

/// Which prompt.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct LiteLlmQuery {
    /// The profile; the library's default without it.
    prompt_id: Option<String>,
}

/// A prompt as LiteLLM reads it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LiteLlmPrompt {
    prompt_id: String,
    prompt_template: Vec<LiteLlmMessage>,
}

/// A message of it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LiteLlmMessage {
    #[schema(example = "system")]
    role: &'static str,
    content: String,
}

/// Gives a profile's prompt to LiteLLM's generic prompt management; parameters that are not known are ignored.
#[utoipa::path(
    get, path = "/beta/litellm_prompt_management", tag = "chat",
    params(LiteLlmQuery),
    responses((status = 200, description = "The prompt", body = LiteLlmPrompt), ReadProblems),
)]
pub(crate) async fn get_litellm_prompt(
    State(app): State<App>,
    Query(query): Query<LiteLlmQuery>,
) -> Result<Json<LiteLlmPrompt>, ApiError> {
    let asked = query.prompt_id.as_deref().map(str::trim);
    let session = nobodys_session(asked.filter(|id| !id.is_empty()));
    let prompt = app.renderer().render(&session, Form::Neutral).await?;
    let prompt_id = prompt.profile_id().or(session.profile_id.as_deref());
    Ok(Json(LiteLlmPrompt {
        prompt_id: prompt_id.unwrap_or_default().to_owned(),
        prompt_template: vec![LiteLlmMessage {
            role: "system",
            content: prompt.text(),
        }],
    }))
}
