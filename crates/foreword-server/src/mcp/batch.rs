//! Several messages in one body: the revision 2025-03-26 has it, those after it took it away.

use axum::{body::to_bytes, response::Response};
use bytes::Bytes;
use http::{StatusCode, request::Parts};
use serde_json::Value;

use super::{
    endpoint::Endpoint,
    message::{Refusal, json_response, why_unreadable},
};

/// The largest number of messages in a batch: one answer can be large, and a body of 8 MiB could ask for 100,000.
const MAX_MESSAGES: usize = 100;

/// The revisions in which a server takes batches. A request that names none is of 2025-03-26.
const WITH_BATCHES: [&str; 2] = ["2024-11-05", "2025-03-26"];

/// Answers one message after the other.
pub(super) async fn answer(
    endpoint: &Endpoint,
    parts: Parts,
    body: &[u8],
) -> Result<Response, Refusal> {
    let Ok(messages) = serde_json::from_slice::<Vec<Value>>(body) else {
        return Err(why_unreadable(body));
    };
    let takes_batches = parts
        .headers
        .get("mcp-protocol-version")
        .is_none_or(|version| WITH_BATCHES.iter().any(|known| version == known));
    if !takes_batches {
        let message = "this revision of the protocol has no batches; send each message by itself";
        return Err(Refusal::invalid_request(message));
    }
    if messages.is_empty() || messages.len() > MAX_MESSAGES {
        let message = format!("a batch holds 1 to {MAX_MESSAGES} messages");
        return Err(Refusal::invalid_request(message));
    }
    let mut answers = Vec::new();
    for message in messages {
        answers.extend(answer_one(endpoint, &parts, &message).await);
    }
    Ok(if answers.is_empty() {
        accepted()
    } else {
        json_response(StatusCode::OK, &Value::Array(answers))
    })
}

/// The answer to one message of a batch; none to a notification.
async fn answer_one(endpoint: &Endpoint, parts: &Parts, message: &Value) -> Option<Value> {
    let body = Bytes::from(message.to_string());
    if message["method"] == "initialize" {
        let refusal = Refusal::invalid_request("`initialize` is sent by itself, not in a batch");
        return Some(refusal.in_answer_to(&body).into_json());
    }
    let response = endpoint.answer(parts.clone(), body).await;
    let answer = to_bytes(response.into_body(), usize::MAX).await.ok()?;
    serde_json::from_slice(&answer).ok()
}

fn accepted() -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}
