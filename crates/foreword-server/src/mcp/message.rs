//! What is refused before a handler sees it, and the JSON-RPC errors that say why.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use rmcp::model::ErrorCode;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::session::SessionError;

use super::instructions::UnknownForm;

/// A JSON-RPC error with status 400.
#[derive(Debug)]
pub(super) struct Refusal {
    id: Value,
    code: ErrorCode,
    message: String,
    /// The stable word that other routes have in `code`.
    word: Option<&'static str>,
}

impl Refusal {
    fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            id: Value::Null,
            code,
            message: message.into(),
            word: None,
        }
    }

    pub(super) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::INVALID_REQUEST, message)
    }

    pub(super) fn invalid_params(word: &'static str, message: impl Into<String>) -> Self {
        Self {
            word: Some(word),
            ..Self::new(ErrorCode::INVALID_PARAMS, message)
        }
    }

    /// The same with the id of the request in `body`, so that the client knows which one failed.
    pub(super) fn in_answer_to(self, body: &[u8]) -> Self {
        let envelope: Envelope = serde_json::from_slice(body).unwrap_or_default();
        Self {
            id: envelope.request_id().unwrap_or_default(),
            ..self
        }
    }

    pub(super) fn into_json(self) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(word) = self.word {
            error["data"] = json!({ "code": word });
        }
        json!({ "jsonrpc": "2.0", "id": self.id, "error": error })
    }
}

impl From<SessionError> for Refusal {
    fn from(error: SessionError) -> Self {
        Self::invalid_params(error.code(), error.to_string())
    }
}

impl From<UnknownForm> for Refusal {
    fn from(error: UnknownForm) -> Self {
        Self::invalid_params("invalid_query", error.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        json_response(StatusCode::BAD_REQUEST, &self.into_json())
    }
}

/// An answer that is JSON.
pub(super) fn json_response(status: StatusCode, value: &Value) -> Response {
    let content_type = HeaderValue::from_static("application/json");
    (
        status,
        [(header::CONTENT_TYPE, content_type)],
        value.to_string(),
    )
        .into_response()
}

/// Whether the body is a list of messages.
pub(super) fn is_batch(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"[")
}

/// Why rmcp could make nothing of `body`.
pub(super) fn why_unreadable(body: &[u8]) -> Refusal {
    let value: Value = match serde_json::from_slice(body) {
        Ok(value) => value,
        Err(error) => {
            let message = format!("the body is not JSON: {error}");
            return Refusal::new(ErrorCode::PARSE_ERROR, message);
        }
    };
    let Ok(envelope) = Envelope::deserialize(&value) else {
        return Refusal::invalid_request("the message is not a JSON object");
    };
    let id = envelope.request_id();
    let message = if envelope.jsonrpc != "2.0" {
        "the message needs `\"jsonrpc\": \"2.0\"`"
    } else if envelope.id.is_some() && id.is_none() {
        "the id of a request is a string or a whole number"
    } else if !envelope.method.is_string() {
        "the message needs a `method`"
    } else {
        "the message is not a valid JSON-RPC request"
    };
    Refusal {
        id: id.unwrap_or_default(),
        ..Refusal::invalid_request(message)
    }
}

/// The members that every message has, unchecked.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Envelope {
    jsonrpc: Value,
    #[serde(deserialize_with = "present")]
    id: Option<Value>,
    method: Value,
}

impl Envelope {
    /// The id, if it is one that may be answered to.
    fn request_id(&self) -> Option<Value> {
        self.id
            .clone()
            .filter(|id| id.is_string() || id.is_i64() || id.is_u64())
    }
}

/// Keeps `null` apart from a member that is not there.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
