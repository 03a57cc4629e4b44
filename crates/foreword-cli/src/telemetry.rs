//! Traces to an OpenTelemetry collector, over HTTP with protobuf, where `OTEL_EXPORTER_OTLP_ENDPOINT` names one.
//!
//! The other standard variables (`OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_TIMEOUT`, `OTEL_SERVICE_NAME`,
//! `OTEL_RESOURCE_ATTRIBUTES`, …) are read by the SDK. Deliberately absent: TLS to the collector, metrics (`/metrics` has
//! them), and anything that libraries trace by themselves, which may hold prompts.

use std::ffi::OsString;

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tracing::{Level, Subscriber};
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

use crate::{
    config::variable,
    failure::{Exit, Failure},
    logging::is_ours,
};

const SERVICE_NAME: &str = "foreword";

/// The traces of this process.
pub(crate) struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Starts sending traces, where the environment names a collector.
    pub(crate) fn start(environment: &[(OsString, OsString)]) -> Result<Option<Self>, Failure> {
        let endpoint = [
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
        ]
        .into_iter()
        .find_map(|name| Some((name, variable(environment, name)?)));
        let Some((name, endpoint)) = endpoint else {
            return Ok(None);
        };
        let failure = |what: String| {
            Failure::new(Exit::Unusable, format!("`{name}`: {what}"))
                .hint("name a collector as `http://host:4318`, or unset the variable")
        };
        if !endpoint.to_string_lossy().starts_with("http://") {
            return Err(failure(format!(
                "`{}` is not an `http://` URL; traces are sent without TLS only",
                endpoint.display()
            )));
        }
        let exporter = SpanExporter::builder()
            .with_http()
            .build()
            .map_err(|error| failure(error.to_string()))?;
        let mut resource = Resource::builder();
        if variable(environment, "OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name(SERVICE_NAME);
        }
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.build())
            .with_batch_exporter(exporter)
            .build();
        Ok(Some(Self { provider }))
    }

    /// Takes our spans, and what is logged in them.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer(SERVICE_NAME))
            .with_filter(filter_fn(|metadata| {
                is_ours(metadata) && *metadata.level() <= Level::INFO
            }))
    }

    /// Sends what is still waiting to be sent; takes at most five seconds.
    pub(crate) fn flush(&self) {
        if let Err(error) = self.provider.shutdown() {
            tracing::warn!("The last traces could not be sent: {error}");
        }
    }
}
