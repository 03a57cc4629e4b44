//! Everything that a request may need, put together once at start.

use std::sync::Arc;

use foreword_sandbox::Sandboxes;
use foreword_store::{Clock, Store};
use rmcp::model::Tool;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{
    auth::Keys,
    chat::upstream::Upstreams,
    config::ServerConfig,
    connections::Connections,
    extract::BodyMemory,
    links::Links,
    mcp::tools,
    metrics::Metrics,
    middleware::{Hosts, RequestIds},
    operations::workspace::{entry::Readmes, queue::ChatQueue},
    render::{Renderer, RendererParts, Surroundings},
    session::SessionReader,
    skills::Skills,
    workspace::Workspaces,
};

/// How many whole libraries are read from requests at once: each may take 64 MiB while it is.
const LIBRARY_TEXTS_AT_ONCE: usize = 2;

/// The state shared by all handlers; cheap to clone.
#[derive(Clone)]
pub struct App {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    config: ServerConfig,
    clock: Clock,
    sandboxes: Arc<dyn Sandboxes>,
    surroundings: Surroundings,
    links: Links,
    metrics: Metrics,
    renderer: Renderer,
    workspaces: Workspaces,
    sessions: SessionReader,
    keys: Keys,
    hosts: Hosts,
    request_ids: RequestIds,
    stopping: CancellationToken,
    library_texts: Arc<Semaphore>,
    body_memory: BodyMemory,
    chat_memory: BodyMemory,
    readmes: Readmes,
    edits: ChatQueue,
    tools: Arc<[Tool]>,
    connections: Connections,
    skills: Skills,
    upstreams: Upstreams,
}

/// What [`App::new`] is made of: backends and sources of time, chosen by the caller.
pub struct AppParts {
    /// Keeps the library.
    pub store: Arc<dyn Store>,
    /// The settings, already checked.
    pub config: ServerConfig,
    /// Where the time comes from.
    pub clock: Clock,
    /// Where commands run.
    pub sandboxes: Arc<dyn Sandboxes>,
    /// What the model finds there.
    pub surroundings: Surroundings,
    /// The key that capability links are signed with.
    pub link_key: [u8; 32],
    /// The chats' files.
    pub workspaces: Workspaces,
    /// The MCP servers that this one is a client of.
    pub connections: Connections,
    /// What sessions' sandboxes are given to learn from.
    pub skills: Skills,
}

impl App {
    /// Puts the parts together.
    #[must_use]
    pub fn new(parts: AppParts) -> Self {
        let AppParts {
            store,
            config,
            clock,
            sandboxes,
            surroundings,
            link_key,
            workspaces,
            connections,
            skills,
        } = parts;
        let links = Links::new(&config, link_key);
        let metrics = Metrics::new();
        let renderer = Renderer::new(
            RendererParts {
                store: Arc::clone(&store),
                clock: Arc::clone(&clock),
                links: links.clone(),
                surroundings: surroundings.clone(),
                connections: connections.clone(),
                skills: skills.clone(),
                metrics: metrics.clone(),
            },
            &config.render,
        );
        Self {
            inner: Arc::new(Inner {
                sessions: SessionReader::new(&config.session),
                keys: Keys::new(&config.auth),
                hosts: Hosts::new(&config, links.public_base_url()),
                request_ids: RequestIds::new(clock(), &link_key),
                stopping: CancellationToken::new(),
                library_texts: Arc::new(Semaphore::new(LIBRARY_TEXTS_AT_ONCE)),
                body_memory: BodyMemory::new(config.http.body_memory),
                chat_memory: BodyMemory::new(config.http.body_memory),
                readmes: Readmes::new(),
                edits: ChatQueue::default(),
                tools: tools::all(&surroundings).into(),
                upstreams: Upstreams::new(&config.chat),
                store,
                config,
                clock,
                sandboxes,
                surroundings,
                links,
                metrics,
                renderer,
                workspaces,
                connections,
                skills,
            }),
        }
    }

    /// Keeps the library.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &ServerConfig {
        &self.inner.config
    }

    /// Where the time comes from.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// Our own tools, in the order in which they are listed.
    pub(crate) fn tools(&self) -> &[Tool] {
        &self.inner.tools
    }

    /// Where commands run.
    #[must_use]
    pub fn sandboxes(&self) -> &Arc<dyn Sandboxes> {
        &self.inner.sandboxes
    }

    /// What the model finds around it.
    #[must_use]
    pub fn surroundings(&self) -> &Surroundings {
        &self.inner.surroundings
    }

    /// Makes and checks capability links.
    #[must_use]
    pub fn links(&self) -> &Links {
        &self.inner.links
    }

    /// What is counted.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// The one renderer.
    #[must_use]
    pub fn renderer(&self) -> &Renderer {
        &self.inner.renderer
    }

    /// The chats' files.
    #[must_use]
    pub fn workspaces(&self) -> &Workspaces {
        &self.inner.workspaces
    }

    /// The MCP servers that this one is a client of.
    #[must_use]
    pub fn connections(&self) -> &Connections {
        &self.inner.connections
    }

    /// The skills.
    #[must_use]
    pub fn skills(&self) -> &Skills {
        &self.inner.skills
    }

    /// Where chat requests are passed on to.
    pub(crate) fn upstreams(&self) -> &Upstreams {
        &self.inner.upstreams
    }

    /// Reads sessions from requests.
    #[must_use]
    pub fn sessions(&self) -> &SessionReader {
        &self.inner.sessions
    }

    /// Cancelled when the server stops: answers that would never end by themselves end then.
    #[must_use]
    pub fn stopping(&self) -> &CancellationToken {
        &self.inner.stopping
    }

    /// Permits to read a whole library from a request.
    pub(crate) fn library_texts(&self) -> &Arc<Semaphore> {
        &self.inner.library_texts
    }

    /// Which READMEs are in place.
    pub(crate) fn readmes(&self) -> &Readmes {
        &self.inner.readmes
    }

    /// Who changes files next, chat by chat.
    pub(crate) fn edits(&self) -> &ChatQueue {
        &self.inner.edits
    }

    /// The memory for the bodies of requests.
    pub(crate) fn body_memory(&self) -> &BodyMemory {
        &self.inner.body_memory
    }

    /// The memory for the bodies of chat requests: conversations are large, and are no reason to refuse anything else.
    pub(crate) fn chat_memory(&self) -> &BodyMemory {
        &self.inner.chat_memory
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.inner.keys
    }

    pub(crate) fn hosts(&self) -> &Hosts {
        &self.inner.hosts
    }

    pub(crate) fn request_ids(&self) -> &RequestIds {
        &self.inner.request_ids
    }
}
