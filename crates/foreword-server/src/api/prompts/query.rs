//! The query of routes that take none: anything in it is a mistake worth telling.

use axum::extract::FromRequestParts;
use http::{StatusCode, request::Parts};

use crate::error::ApiError;

/// No query at all.
pub(crate) struct NoQuery;

impl<S: Sync> FromRequestParts<S> for NoQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        match form_urlencoded::parse(query.as_bytes()).next() {
            None => Ok(Self),
            Some((name, _)) => Err(ApiError::new(
                StatusCode::BAD_REQUEST,
                "invalid_query",
                format!("this route takes no query parameters, so `{name}` has no meaning here"),
            )),
        }
    }
}
