//! Our own errors in the shapes that clients of the two APIs read.

use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde_json::{Value, json};

use crate::error::ApiError;

/// Whose API it is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    /// OpenAI's.
    OpenAi,
    /// Anthropic's.
    Anthropic,
}

/// An error as an answer, in the shape that clients of this path read.
pub(crate) fn refuse(path: &str, error: ApiError) -> Response {
    match Api::of(path) {
        Some(api) => api.refuse(error),
        None => error.into_response(),
    }
}

/// An error in OpenAI's shape.
#[derive(Debug)]
pub(crate) struct OpenAiError(ApiError);

/// An error in Anthropic's shape.
#[derive(Debug)]
pub(crate) struct AnthropicError(ApiError);

impl<E: Into<ApiError>> From<E> for OpenAiError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl<E: Into<ApiError>> From<E> for AnthropicError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for OpenAiError {
    fn into_response(self) -> Response {
        Api::OpenAi.refuse(self.0)
    }
}

impl IntoResponse for AnthropicError {
    fn into_response(self) -> Response {
        Api::Anthropic.refuse(self.0)
    }
}

impl Api {
    /// The one that has such a path.
    fn of(path: &str) -> Option<Self> {
        let below = path.strip_prefix("/v1/")?;
        Some(if below == "messages" || below.starts_with("messages/") {
            Self::Anthropic
        } else {
            Self::OpenAi
        })
    }

    /// The error as an answer.
    pub(crate) fn refuse(self, error: ApiError) -> Response {
        let param = error.faults.first();
        let param = param.map(|fault| fault.pointer.trim_start_matches('/').to_owned());
        let faults = error.faults.iter().map(|fault| fault.detail.as_str());
        let message = match error.faults.len() {
            0 | 1 => error.detail.clone(),
            _ => faults.collect::<Vec<_>>().join("; "),
        };
        let body = self.error(error.status, error.code, &message, param.as_deref());
        let json = [(header::CONTENT_TYPE, "application/json")];
        let mut response = (error.status, json, body.to_string()).into_response();
        response.headers_mut().extend(error.headers);
        response
    }

    /// The error as a body.
    pub(super) fn error(
        self,
        status: StatusCode,
        code: &str,
        message: &str,
        param: Option<&str>,
    ) -> Value {
        match self {
            Self::OpenAi => {
                let kind = match status.as_u16() {
                    401 => "authentication_error",
                    403 => "permission_error",
                    429 => "rate_limit_error",
                    500.. => "server_error",
                    _ => "invalid_request_error",
                };
                json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
            }
            Self::Anthropic => {
                let kind = match status.as_u16() {
                    401 => "authentication_error",
                    403 => "permission_error",
                    404 => "not_found_error",
                    413 => "request_too_large",
                    429 => "rate_limit_error",
                    504 => "timeout_error",
                    500.. => "api_error",
                    _ => "invalid_request_error",
                };
                json!({"type": "error", "error": {"type": kind, "message": message}})
            }
        }
    }
}
