//! `GET /v1/models`: the upstream's models, and each with each profile where the settings say so.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use foreword_compose::Library;
use http::{HeaderMap, Method, StatusCode, Uri, header};
use serde_json::Value;

use super::{OPENAI, configured, passed_headers, passed_query, profiles};
use crate::{
    api::openapi::ChatProblems,
    app::App,
    chat::{
        Object, entries,
        errors::OpenAiError,
        upstream::{headers_back, is_of_kind},
    },
};

/// How many entries a list with profiles may have: what comes to more is left out, and a list of more models stays as it is.
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
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, OpenAiError> {
    let upstream = configured(app.upstreams().openai.as_ref(), OPENAI)?;
    let headers = passed_headers(&app, upstream, &headers);
    let query = passed_query(&uri);
    let asked = upstream.ask(
        Method::GET,
        ("models", query.as_deref()),
        headers,
        Bytes::new(),
    );
    let answer = asked.await?;
    let (status, headers) = (answer.status(), headers_back(answer.headers()));
    let is_list = status == StatusCode::OK
        && is_of_kind(&headers, "application/json")
        && !headers.contains_key(header::CONTENT_ENCODING);
    if !app.config().chat.list_profiles || !is_list {
        return Ok(upstream.pass_back(answer));
    }
    let list = upstream.whole(answer).await?;
    let library = &app.store().snapshot().library;
    let with_profiles = with_profiles(&list, library).map(Bytes::from);
    Ok((headers, with_profiles.unwrap_or(list)).into_response())
}

/// The list with each model once more for each profile; none where it is not of that shape.
fn with_profiles(list: &Bytes, library: &Library) -> Option<String> {
    let list = Object::parse(list.clone(), &["data"]).ok()?;
    let models = entries(list.get("data")?, MAX_LISTED + 1)?;
    if models.len() > MAX_LISTED {
        return None;
    }
    let mut room = MAX_LISTED - models.len();
    let mut listed: Vec<String> = Vec::new();
    for model in models {
        listed.push(model.to_owned());
        let Ok(object) = Object::parse(Bytes::copy_from_slice(model.as_bytes()), &["id"]) else {
            continue;
        };
        let Some(Value::String(id)) = object.value("id") else {
            continue;
        };
        for profile in profiles(library).take(room) {
            let id = Value::from(format!("{id}@{profile}")).to_string();
            listed.push(object.changed(&[], &[("id", id)]));
            room -= 1;
        }
    }
    let data = format!("[{}]", listed.join(","));
    Some(list.changed(&[], &[("data", data)]))
}
