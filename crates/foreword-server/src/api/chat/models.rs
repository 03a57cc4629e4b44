//! `GET /v1/models`: the upstream's models, and each with each profile where the settings say so.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use foreword_compose::Library;
use http::{HeaderMap, Method, header};
use serde_json::Value;

use super::{configured, profiles};
use crate::{
    api::openapi::ChatProblems,
    app::App,
    chat::{Object, entries, errors::OpenAiError},
};

/// How many entries a list may have; those with profiles behind them that come to more are left out.
const MAX_LISTED: usize = 10_000;

/// Lists the models of the upstream, with `chat.list_profiles` each also as `MODEL@PROFILE`.
#[utoipa::path(
    get, path = "/v1/models", tag = "chat",
    responses(
        (status = 200, description = "The upstream's answer", body = Object),
        ChatProblems,
    ),
)]
pub(crate) async fn list_models(
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<Response, OpenAiError> {
    let upstream = configured(app.upstreams().openai.as_ref(), "chat.upstream.base_url")?;
    let headers = upstream.headers(&headers, app.keys());
    let asked = upstream.ask(Method::GET, "models", headers, Bytes::new());
    let answer = asked.await?;
    if !app.config().chat.list_profiles || !answer.status().is_success() {
        return Ok(upstream.pass_back(answer));
    }
    let list = upstream.whole(answer).await?;
    let library = &app.store().snapshot().library;
    let with_profiles = with_profiles(&list, library).map(Bytes::from);
    let json = [(header::CONTENT_TYPE, "application/json")];
    Ok((json, with_profiles.unwrap_or(list)).into_response())
}

/// The list with each model once more for each profile; none where it is not of that shape.
fn with_profiles(list: &Bytes, library: &Library) -> Option<String> {
    let list = Object::parse(list.clone(), &["data"]).ok()?;
    let models = entries(list.get("data")?)?;
    let mut listed: Vec<String> = Vec::new();
    for model in models {
        listed.push(model.to_owned());
        let Ok(object) = Object::parse(Bytes::copy_from_slice(model.as_bytes()), &["id"]) else {
            continue;
        };
        let Some(Value::String(id)) = object.value("id") else {
            continue;
        };
        for profile in profiles(library) {
            if listed.len() >= MAX_LISTED {
                break;
            }
            let id = Value::from(format!("{id}@{profile}")).to_string();
            listed.push(object.changed(&[], &[("id", id)]));
        }
    }
    let data = format!("[{}]", listed.join(","));
    Some(list.changed(&[], &[("data", data)]))
}
