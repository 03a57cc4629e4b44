//! `If-Match` and `If-None-Match` (RFC 9110), read once and strictly: a tag that cannot be read is refused, not skipped.

use axum::extract::FromRequestParts;
use http::{HeaderMap, HeaderName, StatusCode, header, request::Parts};
use utoipa::{
    IntoParams, PartialSchema,
    openapi::{
        Required,
        path::{Parameter, ParameterBuilder, ParameterIn},
    },
};

use crate::{error::ApiError, operations::prompts::tags::Precondition};

/// What must hold for a write. `If-None-Match` is refused there: to skip it would be to write against the caller's wish.
pub(crate) struct IfMatch(pub(crate) Precondition);

/// What the client has already.
pub(crate) struct IfNoneMatch(Option<Tags>);

impl IfNoneMatch {
    /// Whether the client has the answer with this tag.
    pub(crate) fn holds(&self, tag: Option<&str>) -> bool {
        match (&self.0, tag) {
            (Some(Tags::Any), Some(_)) => true,
            (Some(Tags::List(tags)), Some(tag)) => tags.iter().any(|known| known.value == tag),
            _ => false,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        if parts.headers.contains_key(header::IF_NONE_MATCH) {
            return Err(ApiError::new(
                StatusCode::BAD_REQUEST,
                "invalid_precondition",
                "`if-none-match` is for reading; writes take `if-match`, and `POST` creates only what does not exist yet",
            ));
        }
        let precondition = match tags(&parts.headers, &header::IF_MATCH)? {
            None => Precondition::None,
            Some(Tags::Any) => Precondition::Exists,
            // The second half of a tag is about computed fields, which nobody can mean to change. A weak tag never
            // matches here.
            Some(Tags::List(tags)) => Precondition::OneOf(
                tags.into_iter()
                    .filter(|tag| !tag.weak)
                    .map(|tag| match tag.value.split_once('.') {
                        Some((item, _)) => item.to_owned(),
                        None => tag.value,
                    })
                    .collect(),
            ),
        };
        Ok(Self(precondition))
    }
}

impl<S: Sync> FromRequestParts<S> for IfNoneMatch {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        tags(&parts.headers, &header::IF_NONE_MATCH).map(Self)
    }
}

impl IntoParams for IfMatch {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![header_parameter(
            "If-Match",
            "Write only if the item is still in one of these states: `ETag` values, or `*`; otherwise 412",
        )]
    }
}

impl IntoParams for IfNoneMatch {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![header_parameter(
            "If-None-Match",
            "Answer 304 if the client has it already: `ETag` values, or `*`",
        )]
    }
}

fn header_parameter(name: &str, description: &str) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(String::schema()))
        .build()
}

enum Tags {
    Any,
    List(Vec<Tag>),
}

struct Tag {
    weak: bool,
    value: String,
}

fn tags(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Tags>, ApiError> {
    let mut tags = Vec::new();
    let mut present = false;
    for value in headers.get_all(name) {
        present = true;
        let value = value.to_str().map_err(|_| unreadable(name))?.trim();
        if value == "*" {
            return Ok(Some(Tags::Any));
        }
        parse_list(value, &mut tags).ok_or_else(|| unreadable(name))?;
    }
    Ok(present.then_some(Tags::List(tags)))
}

/// Reads `W/"a", "b"` to its end, or not at all.
fn parse_list(mut rest: &str, tags: &mut Vec<Tag>) -> Option<()> {
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() {
            return Some(());
        }
        let (weak, quoted) = match rest.strip_prefix("W/") {
            Some(quoted) => (true, quoted),
            None => (false, rest),
        };
        let (value, after) = quoted.strip_prefix('"')?.split_once('"')?;
        tags.push(Tag {
            weak,
            value: value.to_owned(),
        });
        rest = after.trim_start();
        if !rest.is_empty() && !rest.starts_with(',') {
            return None;
        }
    }
}

fn unreadable(name: &HeaderName) -> ApiError {
    ApiError::new(
        StatusCode::BAD_REQUEST,
        "invalid_entity_tag",
        format!(
            "`{name}` is not a list of entity tags; send the `ETag` of an answer, quotes included, or `*`"
        ),
    )
}
