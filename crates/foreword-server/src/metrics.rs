//! What is counted, with bounded labels: never a chat, an e-mail, a path.

use std::{
    borrow::Cow,
    sync::{Arc, atomic::AtomicU64},
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

use crate::connections::ConnectionState;

/// The media type of [`Metrics::encode`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds of the buckets for tool calls, in seconds.
const SECONDS: [f64; 12] = [
    0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0,
];

/// The counters of one server; cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    inner: Arc<Inner>,
}

struct Inner {
    registry: Registry,
    renders: Family<OutcomeLabel, Counter>,
    cache_hits: Counter,
    cache_bytes: Gauge<u64, AtomicU64>,
    cache_entries: Gauge<u64, AtomicU64>,
    deliveries: Family<TierLabel, Counter>,
    tool_calls: Family<ToolLabels, Counter>,
    tool_seconds: Family<ToolLabels, Histogram, fn() -> Histogram>,
    http_requests: Family<HttpLabels, Counter>,
    connections: Family<StateLabel, Gauge<u64, AtomicU64>>,
}

/// How a render ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenderOutcome {
    /// With all there is.
    Complete,
    /// With something missing.
    Degraded,
    /// Not at all: there is no profile of the name asked for.
    UnknownProfile,
}

/// One of the ways in which a prompt leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// Tier 4: the instructions of the MCP handshake.
    Instructions,
    /// Tier 5: uploads as MCP resources.
    Resources,
    /// Tier 6: `GET /system-prompt`.
    SystemPrompt,
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolOutcome {
    /// With a result.
    Success,
    /// With an error that the model can read.
    Error,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TierLabel {
    tier: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ToolLabels {
    tool: Cow<'static, str>,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HttpLabels {
    route: String,
    status: u16,
}

impl Metrics {
    /// Counters at zero.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("foreword");
        let renders = Family::default();
        registry.register("renders", "Prompts rendered, by outcome", renders.clone());
        let cache_hits = Counter::default();
        registry.register(
            "render_cache_hits",
            "Prompts taken from the render cache",
            cache_hits.clone(),
        );
        let cache_bytes = Gauge::default();
        registry.register_with_unit(
            "render_cache",
            "What the render cache holds, in bytes",
            Unit::Bytes,
            cache_bytes.clone(),
        );
        let cache_entries = Gauge::default();
        registry.register(
            "render_cache_entries",
            "What the render cache holds, in prompts",
            cache_entries.clone(),
        );
        let deliveries = Family::default();
        registry.register(
            "deliveries",
            "Prompts delivered, by tier",
            deliveries.clone(),
        );
        let tool_calls = Family::default();
        registry.register(
            "tool_calls",
            "Tool calls, by tool and outcome",
            tool_calls.clone(),
        );
        let tool_seconds: Family<_, Histogram, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(SECONDS));
        registry.register_with_unit(
            "tool_call_duration",
            "How long tool calls took, by tool and outcome",
            Unit::Seconds,
            tool_seconds.clone(),
        );
        let http_requests = Family::default();
        registry.register(
            "http_requests",
            "HTTP requests, by route and status",
            http_requests.clone(),
        );
        let connections = Family::default();
        registry.register(
            "connections",
            "Connected MCP servers, by state",
            connections.clone(),
        );
        Self {
            inner: Arc::new(Inner {
                registry,
                renders,
                cache_hits,
                cache_bytes,
                cache_entries,
                deliveries,
                tool_calls,
                tool_seconds,
                http_requests,
                connections,
            }),
        }
    }

    /// Counts a render.
    pub fn render(&self, outcome: RenderOutcome) {
        let outcome = match outcome {
            RenderOutcome::Complete => "complete",
            RenderOutcome::Degraded => "degraded",
            RenderOutcome::UnknownProfile => "unknown_profile",
        };
        self.inner
            .renders
            .get_or_create(&OutcomeLabel { outcome })
            .inc();
    }

    /// Counts a prompt that came from the cache.
    pub fn cache_hit(&self) {
        self.inner.cache_hits.inc();
    }

    /// Says what the render cache holds now.
    pub fn cache_size(&self, bytes: u64, entries: u64) {
        self.inner.cache_bytes.set(bytes);
        self.inner.cache_entries.set(entries);
    }

    /// Counts a prompt that left.
    pub fn delivery(&self, tier: Tier) {
        let tier = match tier {
            Tier::Instructions => 4,
            Tier::Resources => 5,
            Tier::SystemPrompt => 6,
        };
        self.inner
            .deliveries
            .get_or_create(&TierLabel { tier })
            .inc();
    }

    /// Says how many connections there are in a state now.
    pub fn connections(&self, state: ConnectionState, count: u64) {
        let state = state.as_str();
        let gauge = self.inner.connections.get_or_create(&StateLabel { state });
        gauge.set(count);
    }

    /// Counts a call of one of our own tools, or of any tool of the connection that is named; callers' names of tools are no labels.
    pub fn tool_call(&self, tool: Cow<'static, str>, outcome: ToolOutcome, seconds: f64) {
        let outcome = match outcome {
            ToolOutcome::Success => "success",
            ToolOutcome::Error => "error",
        };
        let labels = ToolLabels { tool, outcome };
        self.inner.tool_calls.get_or_create(&labels).inc();
        self.inner
            .tool_seconds
            .get_or_create(&labels)
            .observe(seconds);
    }

    /// Counts an answered request under its route's pattern.
    pub(crate) fn http(&self, route: &str, status: u16) {
        let labels = HttpLabels {
            route: route.to_owned(),
            status,
        };
        self.inner.http_requests.get_or_create(&labels).inc();
    }

    /// Everything in the OpenMetrics text format, see [`CONTENT_TYPE`].
    #[must_use]
    pub fn encode(&self) -> String {
        let mut encoded = String::new();
        text::encode(&mut encoded, &self.inner.registry)
            .expect("writing to a string does not fail");
        encoded
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}
