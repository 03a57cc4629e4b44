//! The only place where an error becomes a status.
//!
//! Answers say what happened and what to do next; they never hold internals or paths of the host. A cause that only the
//! operator can act on is logged here, once.

use axum::response::{IntoResponse, Response};
use foreword_compose::{Fault, ProfileNotFound};
use foreword_store::{EditError, LoadError, StoreError};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use crate::{
    links::LinkError,
    render::RenderError,
    session::SessionError,
    workspace::{WorkspaceError, name::InvalidName, uploads::UploadError},
};

/// An answer of `application/problem+json` (RFC 9457).
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
    pub extra: Vec<(&'static str, Value)>,
    /// Further headers.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// One fault of a body.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
pub struct FaultItem {
    /// A JSON pointer to the value; empty for the whole.
    pub pointer: String,
    /// What is wrong, and what to do.
    pub detail: String,
    /// The line in a YAML text, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The column in a YAML text, in characters from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
}

impl FaultItem {
    /// A fault of the value at `pointer`.
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            detail: detail.into(),
            line: None,
            column: None,
        }
    }
}

impl ApiError {
    /// An error without faults, members or headers of its own.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            code,
            detail: detail.into(),
            faults: Vec::new(),
            extra: Vec::new(),
            headers: Vec::new(),
        }
    }

    /// The same error with `faults`.
    #[must_use]
    pub fn with_faults(mut self, faults: Vec<FaultItem>) -> Self {
        self.faults = faults;
        self
    }

    /// The same error with one more member of the problem object.
    #[must_use]
    pub fn with(mut self, member: &'static str, value: impl Into<Value>) -> Self {
        self.extra.push((member, value.into()));
        self
    }

    /// The same error with one more header.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// A body that reads as JSON and says something that cannot be: 422 with every fault.
    #[must_use]
    pub fn invalid(faults: Vec<FaultItem>) -> Self {
        let detail = match faults.as_slice() {
            [only] => only.detail.clone(),
            faults => format!("the request has {} faults, see `errors`", faults.len()),
        };
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail).with_faults(faults)
    }

    /// More bytes than are read here: 413.
    pub(crate) fn body_too_large(limit: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            format!("the body is larger than the {limit} bytes that are read here"),
        )
    }

    /// A failure that is ours: the cause goes to the log, not to the caller.
    pub fn internal(cause: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(error = cause, "A request failed inside");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "something went wrong inside; the server's log has the cause under this request's `X-Request-Id`",
        )
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or("Error");
        let mut problem = json!({
            "type": "about:blank",
            "title": title,
            "status": self.status.as_u16(),
            "detail": self.detail,
            "code": self.code,
        });
        if !self.faults.is_empty() {
            problem["errors"] = json!(self.faults);
        }
        for (member, value) in self.extra {
            problem[member] = value;
        }
        let content_type = HeaderValue::from_static("application/problem+json");
        let mut response = (self.status, problem.to_string()).into_response();
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, content_type);
        response.headers_mut().extend(self.headers);
        response
    }
}

impl From<SessionError> for ApiError {
    fn from(error: SessionError) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error.code(), error.to_string())
    }
}

impl From<ProfileNotFound> for ApiError {
    fn from(error: ProfileNotFound) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "profile_not_found",
            error.to_string(),
        )
        .with("known", error.known)
    }
}

impl From<RenderError> for ApiError {
    fn from(error: RenderError) -> Self {
        match error {
            RenderError::ProfileNotFound(error) => error.into(),
        }
    }
}

impl From<WorkspaceError> for ApiError {
    fn from(error: WorkspaceError) -> Self {
        let (status, code) = match &error {
            WorkspaceError::Off => (StatusCode::NOT_FOUND, "no_workspace"),
            WorkspaceError::BelongsToAnotherUser => {
                (StatusCode::FORBIDDEN, "chat_belongs_to_another_user")
            }
            WorkspaceError::UserRequired => (StatusCode::FORBIDDEN, "user_required"),
            WorkspaceError::InUse => (StatusCode::CONFLICT, "chat_in_use"),
            WorkspaceError::BelongToAnotherUid { .. } => {
                (StatusCode::CONFLICT, "files_of_another_uid")
            }
            WorkspaceError::Failed(cause) => return cause.into(),
        };
        Self::new(status, code, error.to_string())
    }
}

impl From<InvalidName> for ApiError {
    fn from(error: InvalidName) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "invalid_file_name",
            error.to_string(),
        )
    }
}

impl From<LinkError> for ApiError {
    fn from(error: LinkError) -> Self {
        let (status, code) = match error {
            LinkError::InvalidChatId(_) => (StatusCode::BAD_REQUEST, "invalid_chat_id"),
            LinkError::Expired => (StatusCode::FORBIDDEN, "link_expired"),
            LinkError::Forged => (StatusCode::FORBIDDEN, "link_not_valid"),
        };
        Self::new(status, code, error.to_string())
    }
}

impl From<UploadError> for ApiError {
    fn from(error: UploadError) -> Self {
        let detail = error.to_string();
        match error {
            UploadError::FileTooLarge { max_bytes } => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "file_too_large", detail)
                    .with("max_bytes", max_bytes)
            }
            UploadError::TotalTooLarge {
                needed,
                max_total_bytes,
            } => Self::new(StatusCode::PAYLOAD_TOO_LARGE, "uploads_too_large", detail)
                .with("needed_bytes", needed)
                .with("max_total_bytes", max_total_bytes),
            UploadError::IsDirectory => Self::new(StatusCode::CONFLICT, "is_directory", detail),
            UploadError::InsideFile => Self::new(StatusCode::CONFLICT, "inside_file", detail),
            UploadError::NotFound => Self::new(StatusCode::NOT_FOUND, "file_not_found", detail),
            UploadError::Failed(cause) => (&cause).into(),
        }
    }
}

impl From<&std::io::Error> for ApiError {
    fn from(cause: &std::io::Error) -> Self {
        match cause.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                tracing::error!(error = cause as &dyn std::error::Error, "The disk is full");
                Self::new(
                    StatusCode::INSUFFICIENT_STORAGE,
                    "storage_full",
                    "there is no room for files right now; nothing was kept",
                )
            }
            _ => Self::internal(cause),
        }
    }
}

impl From<EditError> for ApiError {
    fn from(error: EditError) -> Self {
        let detail = error.to_string();
        match error {
            EditError::NotFound { kind, .. } => {
                let code = match kind {
                    "profile" => "profile_not_found",
                    "section" => "section_not_found",
                    _ => "not_found",
                };
                Self::new(StatusCode::NOT_FOUND, code, detail)
            }
            EditError::AlreadyExists { .. } => {
                Self::new(StatusCode::CONFLICT, "already_exists", detail)
            }
            EditError::Stale { current } => {
                let error = Self::new(
                    StatusCode::PRECONDITION_FAILED,
                    "stale",
                    format!("{detail}; read it again and repeat the change"),
                );
                match HeaderValue::try_from(format!("\"{current}\"")) {
                    Ok(tag) => error.with_header(header::ETAG, tag),
                    Err(_) => error,
                }
            }
            EditError::InUse { profiles, .. } => {
                Self::new(StatusCode::CONFLICT, "section_in_use", detail).with("profiles", profiles)
            }
            EditError::IsDefault { .. } => {
                Self::new(StatusCode::CONFLICT, "default_profile", detail)
            }
            EditError::Invalid(faults) => {
                Self::invalid(faults.into_iter().map(Into::into).collect())
            }
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let detail = error.to_string();
        match error {
            StoreError::Refused(error) => error.into(),
            StoreError::Broken(errors) => {
                Self::new(StatusCode::CONFLICT, "library_file_broken", detail)
                    .with_faults(errors.into_iter().map(Into::into).collect())
            }
            StoreError::Invalid(errors) => {
                Self::invalid(errors.into_iter().map(Into::into).collect())
            }
            StoreError::Aliased { anchor } => {
                Self::new(StatusCode::CONFLICT, "value_is_aliased", detail).with("anchor", anchor)
            }
            StoreError::Conflict => Self::new(StatusCode::CONFLICT, "conflict", detail),
            StoreError::NothingToUndo => Self::new(StatusCode::CONFLICT, "nothing_to_undo", detail),
            StoreError::Unwritable(_) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "unwritable", detail)
            }
            StoreError::Unconfirmed(cause) => {
                tracing::error!(
                    error = &cause as &dyn std::error::Error,
                    "A change of the library may not last"
                );
                Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "change_unconfirmed",
                    format!("{detail}; it is in force now, so do not send it again"),
                )
            }
            StoreError::Unavailable(cause) => {
                tracing::error!(
                    error = &*cause as &dyn std::error::Error,
                    "The library cannot be stored"
                );
                Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "store_unavailable",
                    format!("{detail}; nothing was changed, try again later"),
                )
            }
        }
    }
}

impl From<Fault> for FaultItem {
    fn from(fault: Fault) -> Self {
        Self::new(fault.pointer, with_hint(fault.message, fault.hint))
    }
}

impl From<LoadError> for FaultItem {
    fn from(error: LoadError) -> Self {
        Self {
            pointer: error.pointer.unwrap_or_default(),
            detail: with_hint(error.message, error.hint),
            line: Some(error.line),
            column: Some(error.column),
        }
    }
}

fn with_hint(message: String, hint: Option<String>) -> String {
    match hint {
        Some(hint) => format!("{message}; {hint}"),
        None => message,
    }
}
