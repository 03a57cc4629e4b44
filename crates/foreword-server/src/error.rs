//! The only place where an error becomes a status.

use axum::response::{IntoResponse, Response};
use http::StatusCode;

/// An answer of `application/problem+json`.
#[derive(Debug)]
pub struct ApiError {
    /// The HTTP status.
    pub status: StatusCode,
    /// A stable word, in snake case.
    pub code: &'static str,
    /// What happened and what to do next.
    pub detail: String,
    /// Every fault of a body, with a JSON pointer.
    pub faults: Vec<FaultItem>,
    /// Further members of the problem object.
    pub extra: serde_json::Map<String, serde_json::Value>,
    /// Further headers.
    pub headers: http::HeaderMap,
}

/// One fault of a body.
#[derive(Debug, Clone, serde::Serialize, utoipa::ToSchema)]
pub struct FaultItem {
    /// A JSON pointer to the value.
    pub pointer: String,
    /// What is wrong, and what to do.
    pub detail: String,
}

impl ApiError {
    /// An error without faults, members or headers of its own.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            code,
            detail: detail.into(),
            faults: Vec::new(),
            extra: serde_json::Map::new(),
            headers: http::HeaderMap::new(),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.status.into_response()
    }
}
