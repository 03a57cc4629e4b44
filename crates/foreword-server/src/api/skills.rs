//! `/api/skills` and `/skill-list`: which skills a user has, and which are left out.

use std::fmt::Write;

use axum::{Json, extract::State, response::IntoResponse};
use http::{HeaderMap, Uri, header};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    api::openapi::KeyProblems,
    app::App,
    error::ApiError,
    operations::skills::list_skills,
    session::{Session, SessionSources},
    skills::SkillSet,
};

/// Whose skills.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "it is read with the session's headers, and described here"
)]
pub(crate) struct SkillsQuery {
    /// A user's; what is there for all where it is not given.
    user_email: Option<String>,
}

/// The skills of a user.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SkillsAnswer {
    /// The user's before those for all, then those that are left out.
    skills: Vec<SkillItem>,
    /// Whether a provider of skills is configured.
    provider: bool,
    /// Why something may be missing that will be there later, such as a provider that is down.
    degraded: Option<String>,
}

/// A skill.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SkillItem {
    name: String,
    /// `available`, or `refused`: it is left out.
    state: &'static str,
    /// `user` or `public`.
    group: Option<&'static str>,
    /// `local`, `provider` or `shipped`.
    origin: Option<&'static str>,
    description: Option<String>,
    /// Where its SKILL.md is in the workspace.
    location: Option<String>,
    /// Why it is left out.
    reason: Option<String>,
}

/// Lists the skills of a user, with those that are left out and why.
#[utoipa::path(
    get, path = "/api/skills", tag = "delivery",
    params(SkillsQuery),
    responses((status = 200, description = "The skills", body = SkillsAnswer), KeyProblems),
)]
pub(crate) async fn get_skills(
    State(app): State<App>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Json<SkillsAnswer>, ApiError> {
    let session = session(&app, &headers, &uri)?;
    let set = list_skills(&app, &session).await;
    Ok(Json(SkillsAnswer::new(&set, app.skills().has_provider())))
}

/// Lists the names and descriptions of a user's skills, one a line.
#[utoipa::path(
    get, path = "/skill-list", tag = "delivery",
    params(SkillsQuery),
    responses(
        (status = 200, description = "The skills", body = String, content_type = "text/plain"),
        KeyProblems,
    ),
)]
pub(crate) async fn get_skill_list(
    State(app): State<App>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let session = session(&app, &headers, &uri)?;
    let set = list_skills(&app, &session).await;
    let mut lines = String::new();
    for skill in &set.skills {
        let description = foreword_compose::one_line(skill.description(), MAX_DESCRIPTION);
        let _ = writeln!(lines, "{}: {description}", skill.name);
    }
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], lines))
}

/// The longest description in the plain list, in characters.
const MAX_DESCRIPTION: usize = 1024;

fn session(app: &App, headers: &HeaderMap, uri: &Uri) -> Result<Session, ApiError> {
    let sources = SessionSources::http(headers, uri.query());
    Ok(app.sessions().read(sources)?.as_given().clone())
}

impl SkillsAnswer {
    fn new(set: &SkillSet, provider: bool) -> Self {
        let available = set.skills.iter().map(|skill| SkillItem {
            name: skill.name.to_string(),
            state: "available",
            group: Some(skill.group.as_str()),
            origin: Some(skill.origin.as_str()),
            description: Some(skill.description().to_owned()),
            location: Some(skill.location()),
            reason: None,
        });
        let refused = set.refused.iter().map(|refused| SkillItem {
            name: refused.name.clone(),
            state: "refused",
            group: None,
            origin: None,
            description: None,
            location: None,
            reason: Some(refused.why.clone()),
        });
        Self {
            skills: available.chain(refused).collect(),
            provider,
            degraded: set.degraded.clone(),
        }
    }
}
