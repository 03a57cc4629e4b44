//! The stack that every request passes, in order, with reasons.
//!
//! What a single route asks of its callers (key, size, time) stands beside the route, see [`access::Access`].

pub(crate) mod access;
mod hosts;
mod observe;
pub(crate) mod reader;

use axum::{Router, middleware::from_fn_with_state};
use http::{HeaderName, HeaderValue, Method, header};
use tower::ServiceBuilder;
use tower_http::{
    catch_panic::CatchPanicLayer,
    cors::{AllowHeaders, AllowOrigin, CorsLayer},
};

pub(crate) use hosts::Hosts;
pub(crate) use observe::RequestIds;

use crate::app::App;

/// What every route passes, probes too. From the outside in:
///
/// 1. request id, span, access log and metrics, so that whatever happens further in is seen;
/// 2. a panic becomes an answer, and is seen by the layer outside of it.
pub(crate) fn around_everything(router: Router<App>, app: &App) -> Router<App> {
    router.layer(
        ServiceBuilder::new()
            .layer(from_fn_with_state(app.clone(), observe::observe))
            .layer(CatchPanicLayer::custom(observe::panicked)),
    )
}

/// What every route but health and metrics passes (those are asked by IP address, from inside the cluster). From the
/// outside in:
///
/// 1. `Host` and `Origin`, before anything is read or done: a page that was rebound to this address gets nothing;
/// 2. CORS, only where origins are named; preflights carry no key, so they are answered before a key is asked for.
pub(crate) fn around_service(router: Router<App>, app: &App) -> Router<App> {
    router.layer(
        ServiceBuilder::new()
            .layer(from_fn_with_state(app.clone(), hosts::check))
            .option_layer(cors(&app.config().http.cors_origins)),
    )
}

fn cors(origins: &[String]) -> Option<CorsLayer> {
    // A wildcard is refused by the configuration check; here it would be a panic.
    let origins: Vec<HeaderValue> = origins
        .iter()
        .filter(|origin| *origin != "*")
        .filter_map(|origin| HeaderValue::from_str(origin).ok())
        .collect();
    if origins.is_empty() {
        return None;
    }
    let cors = CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods([
            Method::GET,
            Method::HEAD,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
        ])
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([
            header::ETAG,
            header::LOCATION,
            HeaderName::from_static("mcp-protocol-version"),
            HeaderName::from_static("x-library-revision"),
            HeaderName::from_static("x-profile-id"),
            HeaderName::from_static("x-prompt-revision"),
            HeaderName::from_static("x-request-id"),
        ]);
    Some(cors)
}
