//! Answers of the prompts API: JSON with an entity tag, and 304 where the client has it already.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::conditional::IfNoneMatch;
use crate::app::App;

/// The revision of the library that an answer was made from.
const LIBRARY_REVISION: HeaderName = HeaderName::from_static("x-library-revision");

/// What an answer says beside its status and body.
pub(crate) struct Answer {
    status: StatusCode,
    content_type: &'static str,
    body: Vec<u8>,
    tag: Option<String>,
    location: Option<String>,
    library_revision: String,
}

impl Answer {
    /// Something computed, whose tag is the hash of the body.
    pub(super) fn computed(body: &impl Serialize, library_revision: String) -> Self {
        let body = encode(body);
        let tag = hash(&body);
        Self::json(body, library_revision).with_tag(tag)
    }

    /// An item in which everything is editable, so that `tag` covers it all.
    pub(super) fn item(body: &impl Serialize, tag: &str, library_revision: String) -> Self {
        Self::json(encode(body), library_revision).with_tag(tag.to_owned())
    }

    /// An item with computed fields: the tag is that of the item, a dot, and the hash of the body.
    ///
    /// `If-Match` compares the first half, so a change elsewhere does not stand in a writer's way; `If-None-Match`
    /// compares both, so a reader never keeps an old computed field.
    pub(super) fn item_with_computed(
        body: &impl Serialize,
        tag: &str,
        library_revision: String,
    ) -> Self {
        let body = encode(body);
        let tag = format!("{tag}.{}", hash(&body));
        Self::json(body, library_revision).with_tag(tag)
    }

    /// Something that is neither an item nor worth asking for again, such as the report of an import.
    pub(super) fn report(body: &impl Serialize, library_revision: String) -> Self {
        Self::json(encode(body), library_revision)
    }

    /// A text in a format of its own, whose tag is the library's revision.
    pub(super) fn text(content_type: &'static str, text: &str, library_revision: String) -> Self {
        let tag = library_revision.clone();
        Self {
            content_type,
            ..Self::json(text.as_bytes().to_vec(), library_revision)
        }
        .with_tag(tag)
    }

    /// Nothing but the fact that it was done.
    pub(super) fn nothing(library_revision: String) -> Self {
        Self {
            status: StatusCode::NO_CONTENT,
            ..Self::json(Vec::new(), library_revision)
        }
    }

    /// The same answer for something that is new.
    pub(super) fn created(self) -> Self {
        Self {
            status: StatusCode::CREATED,
            ..self
        }
    }

    /// The same answer for something that is new and has a route of its own.
    pub(super) fn created_at(self, location: String) -> Self {
        Self {
            location: Some(location),
            ..self.created()
        }
    }

    /// The same answer, or 304 if the client has it already.
    pub(super) fn unless(mut self, if_none_match: &IfNoneMatch) -> Self {
        if if_none_match.holds(self.tag.as_deref()) {
            self.status = StatusCode::NOT_MODIFIED;
            self.body.clear();
        }
        self
    }

    fn json(body: Vec<u8>, library_revision: String) -> Self {
        Self {
            status: StatusCode::OK,
            content_type: "application/json",
            body,
            tag: None,
            location: None,
            library_revision,
        }
    }

    fn with_tag(self, tag: String) -> Self {
        Self {
            tag: Some(tag),
            ..self
        }
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let has_body = !matches!(
            self.status,
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
        );
        let mut response = (self.status, self.body).into_response();
        let headers = response.headers_mut();
        if has_body {
            let content_type = HeaderValue::from_static(self.content_type);
            headers.insert(header::CONTENT_TYPE, content_type);
        } else {
            headers.remove(header::CONTENT_TYPE);
        }
        let no_cache = HeaderValue::from_static("private, no-cache");
        headers.insert(header::CACHE_CONTROL, no_cache);
        let tag = self.tag.map(|tag| format!("\"{tag}\""));
        let optional = [
            (header::ETAG, tag),
            (header::LOCATION, self.location),
            (LIBRARY_REVISION, Some(self.library_revision)),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                let value = HeaderValue::try_from(value).expect("hex digits and encoded ids");
                headers.insert(name, value);
            }
        }
        response
    }
}

/// Puts the library's revision on answers that do not name the one they were made from: refusals, for the most part.
/// Who has no key is not told when the library changes.
pub(crate) async fn add_library_revision(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = next.run(request).await;
    let known_caller = response.status() != StatusCode::UNAUTHORIZED;
    let headers = response.headers_mut();
    if known_caller && !headers.contains_key(&LIBRARY_REVISION) {
        let revision = app.store().snapshot().revision.clone();
        if let Ok(revision) = HeaderValue::try_from(revision) {
            headers.insert(LIBRARY_REVISION, revision);
        }
    }
    response
}

fn encode(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("answers are plain data with text as keys")
}

fn hash(body: &[u8]) -> String {
    hex::encode(&Sha256::digest(body)[..8])
}
