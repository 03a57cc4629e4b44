//! The one renderer: what a session's prompt is, in every tier.
//!
//! A tier never composes; it asks here. Two ways in: [`Renderer::render`] for what tiers deliver, kept for a while and
//! shared, and [`Renderer::render_with`] for a request that adds something of its own or wants to see the parts. Both
//! run the same composition, so a preview is what is sent. Deliberately absent: HTTP, MCP, and reading a session from a
//! request.

mod cache;
mod forms;
mod guide;
mod prompt;
mod rendering;
mod surroundings;

use std::sync::Arc;

use foreword_compose::{Composition, Library, ProfileNotFound};
use foreword_store::{Clock, Store};
use indexmap::IndexMap;

use crate::{
    config::{Form, RenderConfig},
    connections::{Catalog, Connections},
    links::Links,
    metrics::{Metrics, RenderOutcome},
    session::{ChatId, Session},
    skills::{Patience, SkillSet, Skills},
};

pub use cache::CacheUsage;
pub use prompt::SessionPrompt;
pub use surroundings::{README_PATH, Surroundings};

use cache::{Cache, Sources};
use rendering::{MadeOf, Rendering, Subject};

/// Renders sessions' prompts and keeps the results for a while.
pub struct Renderer {
    parts: RendererParts,
    cache: Cache,
}

/// What a renderer asks.
pub struct RendererParts {
    /// Keeps the library.
    pub store: Arc<dyn Store>,
    /// Where the time comes from.
    pub clock: Clock,
    /// Makes links.
    pub links: Links,
    /// What the model finds around it.
    pub surroundings: Surroundings,
    /// Whose tools the prompt describes.
    pub connections: Connections,
    /// Which skills it names.
    pub skills: Skills,
    /// Counts what is rendered.
    pub metrics: Metrics,
}

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

impl Extras {
    /// Whether they add nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.context.is_empty()
            && self.system_override.is_none()
            && self.variables.is_empty()
            && self.tools_prompt.is_none()
    }
}

/// A session's prompt with all that is known about it; made anew for each request.
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

/// What a text is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// A model.
    Form(Form),
    /// An integrator who puts in the session's values: their placeholders stay as they are written.
    Template,
    /// A model that has nothing of ours: neither workspace, skills nor tools are told of.
    Bare,
}

impl Shape {
    /// Whether a text tells of workspace, skills and tools.
    fn has_surroundings(self) -> bool {
        self != Self::Bare
    }

    /// Whether a text may hold anything of a session.
    fn is_of_a_session(self) -> bool {
        !matches!(self, Self::Template | Self::Form(Form::Neutral))
    }
}

impl From<Form> for Shape {
    fn from(form: Form) -> Self {
        Self::Form(form)
    }
}

impl Renderer {
    /// A renderer with an empty cache.
    #[must_use]
    pub fn new(parts: RendererParts, config: &RenderConfig) -> Self {
        Self {
            parts,
            cache: Cache::new(config),
        }
    }

    /// The session's prompt; from the cache where it is there. Waits for skills as long as a handshake may.
    pub async fn render(
        &self,
        session: &Session,
        shape: impl Into<Shape>,
    ) -> Result<SessionPrompt, RenderError> {
        let shape = shape.into();
        let skills = self.skills_of(session, shape, Patience::Handshake).await;
        self.render_showing(session, shape, &skills).await
    }

    /// The session's prompt with these skills, which are the ones that its sandbox is shown.
    pub async fn render_showing(
        &self,
        session: &Session,
        shape: impl Into<Shape>,
        skills: &SkillSet,
    ) -> Result<SessionPrompt, RenderError> {
        let snapshot = self.parts.store.snapshot();
        let catalog = self.parts.connections.catalog();
        let subject = self.subject(session, shape.into(), skills);
        let sources = Sources {
            library: &snapshot,
            tools: catalog.generation,
        };
        let found = self.cache.get_or_render(subject, sources, |subject| {
            self.rendering(
                &snapshot.library,
                &catalog,
                skills,
                subject,
                &Extras::default(),
            )
        });
        // It is large, and everything that waits for a prompt would be moved about with it.
        let found = Box::pin(found).await?;
        if !found.fresh {
            self.parts.metrics.cache_hit();
        }
        Ok(found.prompt)
    }

    /// The session's prompt with what one request adds to it, and with its parts; never cached.
    pub async fn render_with(
        &self,
        session: &Session,
        shape: impl Into<Shape>,
        extras: &Extras,
    ) -> Result<Rendered, RenderError> {
        let snapshot = self.parts.store.snapshot();
        self.render_library(&snapshot.library, session, shape, extras)
            .await
    }

    /// The same from a library that is not, or not yet, the one that is kept.
    pub async fn render_library(
        &self,
        library: &Library,
        session: &Session,
        shape: impl Into<Shape>,
        extras: &Extras,
    ) -> Result<Rendered, RenderError> {
        let shape = shape.into();
        let skills = self.skills_of(session, shape, Patience::Handshake).await;
        let subject = self.subject(session, shape, &skills);
        let catalog = self.parts.connections.catalog();
        let rendering = self.rendering(library, &catalog, &skills, &subject, extras)?;
        Ok(rendering.into_rendered())
    }

    /// Drops what is kept: of one chat, or everything.
    pub async fn forget(&self, chat_id: Option<&ChatId>) {
        self.cache.forget(chat_id).await;
    }

    /// How much is kept, after what is due for eviction has left.
    pub async fn cache_usage(&self) -> CacheUsage {
        self.cache.settle().await;
        self.cache.usage()
    }

    fn rendering(
        &self,
        library: &Library,
        catalog: &Catalog,
        skills: &SkillSet,
        subject: &Subject,
        extras: &Extras,
    ) -> Result<Rendering, RenderError> {
        let made_of = MadeOf {
            library,
            tools_prompt: &catalog.prompt.text,
            skills,
            links: &self.parts.links,
            surroundings: &self.parts.surroundings,
        };
        let rendering = Rendering::new(made_of, subject, extras);
        self.parts.metrics.render(match &rendering {
            Ok(rendering) if rendering.degraded => RenderOutcome::Degraded,
            Ok(_) => RenderOutcome::Complete,
            Err(RenderError::ProfileNotFound(_)) => RenderOutcome::UnknownProfile,
        });
        rendering
    }

    fn subject(&self, session: &Session, shape: Shape, skills: &SkillSet) -> Subject {
        let now = (self.parts.clock)();
        let epoch = self.parts.links.epoch(&self.parts.clock);
        Subject::new(session, shape, skills.revision, now, epoch)
    }

    /// The skills that a text is about: none without a workspace to find them in, and nobody's own in a text that is for all.
    async fn skills_of(
        &self,
        session: &Session,
        shape: Shape,
        patience: Patience,
    ) -> Arc<SkillSet> {
        if !self.parts.surroundings.has_workspace() || !shape.has_surroundings() {
            return Arc::default();
        }
        let email = session.prompt_email().filter(|_| shape.is_of_a_session());
        self.parts.skills.of(email, patience).await
    }
}
