//! What is logged, and how: `tracing` to stderr, and to an OpenTelemetry collector where one is named.
//!
//! Of the libraries that Foreword is made of only warnings and errors are logged, whatever `log.level` says: at other
//! levels they write out requests, which hold prompts and keys.

use anstream::{AutoStream, ColorChoice};
use tracing::{Level, Metadata};
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::{FilterExt, filter_fn},
    layer::SubscriberExt,
    reload,
    util::SubscriberInitExt,
};

use crate::{
    config::{LogConfig, LogFormat},
    failure::{Exit, Failure},
    telemetry::Traces,
};

/// The logging of this process.
pub(crate) struct Logging {
    level: reload::Handle<EnvFilter, Registry>,
    traces: Option<Traces>,
}

impl Logging {
    /// Starts logging; once in a process.
    pub(crate) fn start(config: &LogConfig, traces: Option<Traces>) -> Result<Self, Failure> {
        let (level, handle) = reload::Layer::new(directives(&config.level)?);
        let ours = level.and(filter_fn(ours_or_serious));
        let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
        let lines = match config.format {
            LogFormat::Text => lines
                .with_ansi(AutoStream::choice(&std::io::stderr()) != ColorChoice::Never)
                .with_filter(ours)
                .boxed(),
            LogFormat::Json => lines.json().flatten_event(true).with_filter(ours).boxed(),
        };
        tracing_subscriber::registry()
            .with(lines)
            .with(traces.as_ref().map(Traces::layer))
            .init();
        Ok(Self {
            level: handle,
            traces,
        })
    }

    /// Logs at another level from now on.
    pub(crate) fn set_level(&self, level: &str) -> Result<(), Failure> {
        self.level.reload(directives(level)?).map_err(|error| {
            Failure::new(
                Exit::Failed,
                format!("the log level stays as it is: {error}"),
            )
        })
    }

    /// Sends what is still waiting to be sent.
    pub(crate) fn finish(self) {
        if let Some(traces) = self.traces {
            traces.flush();
        }
    }
}

fn directives(level: &str) -> Result<EnvFilter, Failure> {
    // What a client gets wrong is a warning there, with the names and values that the client sent, however long they are.
    // Of connections the keeper says what is wrong with them; rmcp would say it too, with their URLs.
    EnvFilter::try_new(format!("rmcp=error,rmcp::transport::worker=off,{level}")).map_err(|error| {
        Failure::new(Exit::Unusable, format!("`log.level` is `{level}`: {error}"))
            .hint("write `error`, `warn`, `info`, `debug` or `trace`, or directives such as `info,foreword_store=debug`")
    })
}

fn ours_or_serious(metadata: &Metadata<'_>) -> bool {
    is_ours(metadata) || *metadata.level() <= Level::WARN
}

/// Whether something was logged by one of our crates.
pub(crate) fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("foreword")
}
