//! Every route on one page: path, what it asks of callers, method, handler.
//!
//! What all of them pass on the way is in `middleware.rs`.

use axum::{Router, routing::get};
use http::StatusCode;

use crate::{
    api::health,
    app::App,
    error::ApiError,
    middleware::{self, access::Access},
};

/// The whole service.
pub fn router(app: App) -> Router {
    let open = Access::open(&app);
    let api = Access::api(&app);
    let admin = Access::admin(&app);

    let probes = Router::new()
        .route("/health", open.on(get(health::health)))
        .route("/healthz", open.on(get(health::health)))
        .route("/readyz", open.on(get(health::readyz)))
        .route("/metrics", api.on(get(health::show_metrics)));

    let prompts = Router::new();

    let delivery = Router::new();

    let documentation = Router::new();

    let service = Router::new()
        .merge(prompts)
        .merge(delivery)
        .merge(documentation)
        .fallback(no_such_route);

    let service = middleware::around_service(service, &app);
    let everything = Router::new()
        .merge(probes)
        .merge(service)
        .method_not_allowed_fallback(method_not_allowed);
    middleware::around_everything(everything, &app).with_state(app)
}

async fn no_such_route() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "route_not_found",
        "there is nothing at this path; `/openapi.json` lists what there is",
    )
}

async fn method_not_allowed() -> ApiError {
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        "this path does not take this method; the header `Allow` lists those that it takes",
    )
}
