//! Everything that a request may need, put together once at start.

use std::sync::Arc;

use foreword_store::{Clock, Store};

use crate::{config::ServerConfig, links::Links, metrics::Metrics, render::Renderer};

/// The state shared by all handlers; cheap to clone.
#[derive(Clone)]
pub struct App {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    config: ServerConfig,
    clock: Clock,
    links: Links,
    metrics: Metrics,
    renderer: Renderer,
}

/// What [`App::new`] is made of: backends and sources of time, chosen by the caller.
pub struct AppParts {
    /// Keeps the library.
    pub store: Arc<dyn Store>,
    /// The settings, already checked.
    pub config: ServerConfig,
    /// Where the time comes from.
    pub clock: Clock,
    /// The key that capability links are signed with.
    pub link_key: [u8; 32],
}

impl App {
    /// Puts the parts together.
    #[must_use]
    pub fn new(parts: AppParts) -> Self {
        let AppParts {
            store,
            config,
            clock,
            link_key,
        } = parts;
        let links = Links::new(&config, link_key);
        let metrics = Metrics::new();
        let renderer = Renderer::new(
            Arc::clone(&store),
            &config,
            Arc::clone(&clock),
            links.clone(),
            metrics.clone(),
        );
        Self {
            inner: Arc::new(Inner {
                store,
                config,
                clock,
                links,
                metrics,
                renderer,
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
}
