//! The one renderer: what a session's prompt is, in every tier.

use std::sync::Arc;

use foreword_compose::{Composition, ProfileNotFound};
use foreword_store::{Clock, Store};
use indexmap::IndexMap;

use crate::{
    config::{Form, ServerConfig},
    links::Links,
    metrics::Metrics,
    session::Session,
};

/// Renders sessions' prompts and keeps the results for a while.
pub struct Renderer {}

/// What to render beyond the session itself; requests with any of these bypass the cache.
#[derive(Debug, Clone, Default)]
pub struct Extras {
    /// Request context, after workspace guide and skills.
    pub context: Vec<String>,
    /// If not blank, it is the prompt.
    pub system_override: Option<String>,
    /// Values for placeholders.
    pub variables: IndexMap<String, String>,
    /// A tools prompt in place of the one of the connected servers.
    pub tools_prompt: Option<String>,
}

/// A session's prompt.
#[derive(Debug)]
pub struct Rendered {
    /// The text in the form asked for.
    pub text: Arc<str>,
    /// The first 16 hex digits of SHA-256 over the full text, see `foreword_compose::revision`.
    pub revision: String,
    /// The id of the profile in force, if the library has any.
    pub profile_id: Option<String>,
    /// The composition behind it; its `text` is the full text.
    pub composition: Composition,
    /// Whether something was missing (a skill provider that is down), so that it is kept only briefly.
    pub degraded: bool,
}

/// Why a prompt could not be rendered.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RenderError {
    /// The session names a profile that does not exist.
    #[error(transparent)]
    ProfileNotFound(#[from] ProfileNotFound),
}

impl Renderer {
    /// A renderer with an empty cache.
    #[must_use]
    pub fn new(
        _store: Arc<dyn Store>,
        _config: &ServerConfig,
        _clock: Clock,
        _links: Links,
        _metrics: Metrics,
    ) -> Self {
        Self {}
    }

    /// The session's prompt in the form asked for; from the cache where it is there.
    #[expect(
        clippy::unused_async,
        reason = "waits for the single flight once the cache is there"
    )]
    pub async fn render(
        &self,
        _session: &Session,
        _form: Form,
    ) -> Result<Arc<Rendered>, RenderError> {
        unimplemented!("written next")
    }

    /// The session's prompt with what one request adds to it; never cached.
    pub fn render_with(
        &self,
        _session: &Session,
        _form: Form,
        _extras: &Extras,
    ) -> Result<Rendered, RenderError> {
        unimplemented!("written next")
    }
}
