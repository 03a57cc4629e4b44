//! Every route on one page: path, what it asks of callers, method, handler.
//!
//! What all of them pass on the way is in `middleware.rs`.

use axum::{
    Router,
    routing::{delete, get, post},
};
use http::StatusCode;

use crate::{
    api::{health, mcp_info, render_cache, system_prompt},
    app::App,
    error::ApiError,
    mcp,
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

    let mcp = mcp::Endpoint::new(app.clone());
    let mcp = api.mcp().on(post(mcp::deliver).with_state(mcp));
    let delivery = Router::new()
        .route("/mcp", mcp.clone())
        .route("/mcp/", mcp.clone())
        .route("/mcp/c/{chat_id}", mcp)
        .route("/mcp-info", api.on(get(mcp_info::get_mcp_info)))
        .route(
            "/system-prompt",
            api.on(get(system_prompt::get_system_prompt)),
        )
        .route(
            "/api/render-cache",
            admin.on(delete(render_cache::delete_render_cache)),
        );

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
