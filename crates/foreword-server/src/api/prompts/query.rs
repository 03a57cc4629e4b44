//! The query of routes that take none: anything in it is a mistake worth telling.

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::Deserialize;

use crate::{error::ApiError, extract::Query};

/// No query at all.
pub(crate) struct NoQuery;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

impl<S: Send + Sync> FromRequestParts<S> for NoQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Query(Nothing {}) = Query::from_request_parts(parts, state).await?;
        Ok(Self)
    }
}
