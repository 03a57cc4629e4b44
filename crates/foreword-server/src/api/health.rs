//! Whether the server lives, can serve, and what it counted.

use axum::{Json, extract::State, response::IntoResponse};
use foreword_sandbox::SandboxesState;
use foreword_store::Health;
use http::{HeaderMap, header};
use serde::Serialize;

use crate::{
    api::openapi::KeyProblems, app::App, connections::ConnectionState, error::FaultItem, metrics,
};

/// The process lives: what a supervisor asks before it restarts it.
#[utoipa::path(
    get, path = "/health", tag = "system", security(()),
    responses((status = 200, description = "It lives", body = Readiness)),
)]
pub(crate) async fn health() -> impl IntoResponse {
    Json(Readiness {
        status: ComponentStatus::Ok,
        components: None,
    })
}

/// Whether prompts can be served. Names and errors are for those who hold a key.
///
/// A library whose file is broken is `degraded` and no more: the last good one is served, so no traffic need be sent
/// elsewhere.
#[utoipa::path(
    get, path = "/readyz", tag = "system", security(()),
    responses((status = 200, description = "Prompts can be served", body = Readiness)),
)]
pub(crate) async fn readyz(State(app): State<App>, headers: HeaderMap) -> impl IntoResponse {
    let library = match app.store().status().health {
        Health::Healthy => Component {
            name: "library",
            status: ComponentStatus::Ok,
            errors: Vec::new(),
        },
        Health::Degraded(errors) => Component {
            name: "library",
            status: ComponentStatus::Degraded,
            errors: errors.into_iter().map(Into::into).collect(),
        },
    };
    let mut components = vec![library];
    let SandboxesState {
        backend,
        unavailable,
        ..
    } = app.sandboxes().state();
    // Where none are wanted there is nothing to say.
    if backend != "none" || unavailable.is_some() {
        components.push(Component {
            name: "sandbox",
            status: match &unavailable {
                None => ComponentStatus::Ok,
                Some(_) => ComponentStatus::Degraded,
            },
            errors: unavailable
                .into_iter()
                .map(|unavailable| FaultItem::new("", unavailable.to_string()))
                .collect(),
        });
    }
    components.extend(connections(&app));
    let all_well = |component: &Component| matches!(component.status, ComponentStatus::Ok);
    Json(Readiness {
        status: if components.iter().all(all_well) {
            ComponentStatus::Ok
        } else {
            ComponentStatus::Degraded
        },
        components: app.keys().caller(&headers).is_ok().then_some(components),
    })
}

/// The MCP servers that this one is a client of, if there are any; those that are down are named.
fn connections(app: &App) -> Option<Component> {
    let statuses = app.connections().statuses();
    let of_file = app.connections().errors();
    if statuses.is_empty() && of_file.is_empty() {
        return None;
    }
    let missing = statuses.iter().filter_map(|status| match status.state {
        ConnectionState::Ready | ConnectionState::Disabled => None,
        ConnectionState::Connecting | ConnectionState::Down | ConnectionState::Refused => {
            let why = status.last_error.as_deref().unwrap_or("not connected yet");
            Some(format!(
                "`{}` is {}: {why}",
                status.name,
                status.state.as_str()
            ))
        }
    });
    let errors: Vec<_> = missing
        .chain(of_file)
        .map(|error| FaultItem::new("", error))
        .collect();
    Some(Component {
        name: "connections",
        status: if errors.is_empty() {
            ComponentStatus::Ok
        } else {
            ComponentStatus::Degraded
        },
        errors,
    })
}

/// The counters, for Prometheus.
#[utoipa::path(
    get, path = "/metrics", tag = "system",
    responses(
        (status = 200, description = "The counters in the text format", body = String, content_type = "text/plain"),
        KeyProblems,
    ),
)]
pub(crate) async fn show_metrics(State(app): State<App>) -> impl IntoResponse {
    let cache = app.renderer().cache_usage().await;
    app.metrics().cache_size(cache.bytes, cache.entries);
    let statuses = app.connections().statuses();
    for state in ConnectionState::ALL {
        let count = statuses.iter().filter(|status| status.state == state);
        app.metrics().connections(state, count.count() as u64);
    }
    (
        [(header::CONTENT_TYPE, metrics::CONTENT_TYPE)],
        app.metrics().encode(),
    )
}

/// What the probes answer.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Readiness {
    status: ComponentStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    components: Option<Vec<Component>>,
}

/// A part of the server that can fail by itself.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Component {
    name: &'static str,
    status: ComponentStatus,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FaultItem>,
}

/// How a part is.
#[derive(Debug, Clone, Copy, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ComponentStatus {
    /// All is well.
    Ok,
    /// It works, with less than it should have.
    Degraded,
}
