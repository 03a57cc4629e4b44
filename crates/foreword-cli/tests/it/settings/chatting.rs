//! The settings of the chat endpoints.

use std::time::Duration;

use reqwest::blocking::RequestBuilder;
use serde_json::{Value, json};

use super::{Running, Servers};

/// What `look` sees where nothing but the upstreams is set, and where all else is set otherwise.
fn chatting(servers: &Servers, look: impl Fn(&Running) -> String) -> (String, String) {
    (look(&servers.chatting), look(&servers.chatting_otherwise))
}

fn complete(running: &Running, body: &Value) -> RequestBuilder {
    running.post("/v1/chat/completions").body(body.to_string())
}

fn status(request: RequestBuilder) -> String {
    match request.timeout(Duration::from_secs(4)).send() {
        Ok(answer) => answer.status().as_u16().to_string(),
        Err(_) => "waits".to_owned(),
    }
}

/// The value of a header in the upstream's last request.
fn passed(servers: &Servers, header: &str) -> Option<String> {
    let asked = servers.upstream.asked();
    let start = format!("{header}: ");
    let mut lines = asked.lines();
    Some(
        lines
            .find_map(|line| line.strip_prefix(&*start))?
            .to_owned(),
    )
}

pub(super) fn default_model(servers: &mut Servers) -> (String, String) {
    chatting(servers, |running| {
        let request = running.post("/api/chat").body(r#"{"message":"Hi."}"#);
        let answer = request.send().unwrap();
        let status = answer.status().as_u16();
        let answer: Value = answer.json().unwrap();
        format!("{status} {}", answer["model"].as_str().unwrap_or_default())
            .trim()
            .to_owned()
    })
}

/// The first message that the upstream was sent.
fn first_message(servers: &Servers, running: &Running) -> Value {
    let body = json!({"messages": [], "chat_id": "c"});
    assert_eq!(status(complete(running, &body)), "200");
    let asked = servers.upstream.asked();
    let (_, body) = asked.split_once("\r\n\r\n").unwrap();
    serde_json::from_str::<Value>(body).unwrap()["messages"][0].clone()
}

pub(super) fn system_role(servers: &mut Servers) -> (String, String) {
    chatting(servers, |running| {
        let role = first_message(servers, running)["role"].clone();
        role.as_str().unwrap().to_owned()
    })
}

pub(super) fn include_workspace(servers: &mut Servers) -> (String, String) {
    chatting(servers, |running| {
        let text = first_message(servers, running).to_string();
        let has_guide = text.contains("These instructions as a whole");
        if has_guide { "a guide" } else { "no guide" }.to_owned()
    })
}

pub(super) fn list_profiles(servers: &mut Servers) -> (String, String) {
    chatting(servers, |running| {
        let list: Value = running.get("/v1/models").send().unwrap().json().unwrap();
        let models = list["data"].as_array().unwrap().iter();
        let ids = models.map(|model| model["id"].as_str().unwrap());
        ids.collect::<Vec<_>>().join(", ")
    })
}

pub(super) fn chat_body(servers: &mut Servers) -> (String, String) {
    let body = json!({"messages": [], "x": "x".repeat(200)});
    chatting(servers, |running| status(complete(running, &body)))
}

pub(super) fn upstream_url(servers: &mut Servers) -> (String, String) {
    let body = json!({"messages": []});
    (
        status(complete(&servers.by_default, &body)),
        status(complete(&servers.chatting, &body)),
    )
}

pub(super) fn upstream_key(servers: &mut Servers) -> (String, String) {
    chatting(servers, |running| {
        status(complete(running, &json!({"messages": []})));
        let key = passed(servers, "authorization");
        key.map_or("no key".to_owned(), |key| key.replace("Bearer ", ""))
    })
}

pub(super) fn forward_authorization(servers: &mut Servers) -> (String, String) {
    chatting(servers, |running| {
        status(complete(running, &json!({"messages": []})).bearer_auth("theirs"));
        let key = passed(servers, "authorization");
        key.map_or("no key".to_owned(), |key| key.replace("Bearer ", ""))
    })
}

pub(super) fn upstream_timeout(servers: &mut Servers) -> (String, String) {
    let body = json!({"model": "silent", "messages": []});
    chatting(servers, |running| status(complete(running, &body)))
}

pub(super) fn upstream_connect_timeout(servers: &mut Servers) -> (String, String) {
    let (by_default, otherwise) = &servers.unconnected;
    let body = json!({"messages": []});
    (
        status(complete(by_default, &body)),
        status(complete(otherwise, &body)),
    )
}

fn message(running: &Running) -> RequestBuilder {
    running.post("/v1/messages").body(r#"{"messages":[]}"#)
}

pub(super) fn anthropic_url(servers: &mut Servers) -> (String, String) {
    (
        status(message(&servers.by_default)),
        status(message(&servers.chatting_otherwise)),
    )
}

pub(super) fn anthropic_key(servers: &mut Servers) -> (String, String) {
    chatting(servers, |running| match status(message(running)).as_str() {
        "200" => passed(servers, "x-api-key").unwrap_or_default(),
        other => other.to_owned(),
    })
}
