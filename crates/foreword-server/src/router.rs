//! Every route on one page: path, what it asks of callers, method, handler.
//!
//! What all of them pass on the way is in `middleware.rs`.

use axum::{
    Router,
    extract::DefaultBodyLimit,
    middleware::from_fn_with_state,
    response::Response,
    routing::{delete, get, post, put},
};
use http::{StatusCode, Uri};

use crate::{
    api::{
        chat::{completions, litellm, messages, models, turn},
        docs,
        files::{archive, chats, download, outputs, uploads},
        health, mcp_info, openapi,
        prompts::{
            add_library_revision, compose, events, library, places, profiles, sections, texts,
            tools,
        },
        render_cache, skills, system_prompt,
    },
    app::App,
    chat::errors::refuse,
    error::ApiError,
    mcp,
    middleware::{self, access::Access},
    pages::preview,
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

    let prompts = Router::new().nest("/api/prompts", prompts(&app, &api, &admin));

    let mcp = mcp::Endpoint::new(app.clone());
    let mcp = api
        .mcp()
        .on(post(mcp::endpoint::deliver).with_state(mcp))
        .fallback(only_mcp_messages);
    let delivery = Router::new()
        .route("/mcp", mcp.clone())
        .route("/mcp/", mcp.clone())
        .route("/mcp/c/{chat_id}", mcp)
        .route("/mcp-info", api.on(get(mcp_info::get_mcp_info)))
        .route("/api/skills", api.on(get(skills::get_skills)))
        .route("/skill-list", api.on(get(skills::get_skill_list)))
        .route(
            "/system-prompt",
            api.on(get(system_prompt::get_system_prompt)),
        )
        .route(
            "/api/render-cache",
            admin.on(delete(render_cache::delete_render_cache)),
        );

    let service = Router::new()
        .merge(prompts)
        .merge(delivery)
        .merge(chat(&api))
        .merge(files(&app, &api, &admin))
        .merge(documentation(&open))
        .fallback(no_such_route)
        .method_not_allowed_fallback(method_not_allowed);

    let everything = Router::new()
        .merge(probes.method_not_allowed_fallback(method_not_allowed))
        .merge(middleware::around_service(service, &app));
    middleware::around_everything(everything, &app).with_state(app)
}

/// The prompts API. Each resource has one line per audience: who may read it, and who may change it.
fn prompts(app: &App, api: &Access, admin: &Access) -> Router<App> {
    Router::new()
        .route("/profiles", api.on(get(profiles::list_profiles)))
        .route("/profiles", admin.on(post(profiles::create_profile)))
        .route("/profiles/{id}", api.on(get(profiles::get_profile)))
        .route(
            "/profiles/{id}",
            admin.on(put(profiles::replace_profile)
                .patch(profiles::patch_profile)
                .delete(profiles::delete_profile)),
        )
        .route(
            "/profiles/{id}/default",
            admin.on(post(profiles::set_default_profile)),
        )
        .route(
            "/profiles/{id}/sections/{section}",
            admin.on(put(places::put_place)
                .patch(places::patch_place)
                .delete(places::remove_place)),
        )
        .route("/profiles/{id}/order", admin.on(put(places::order_places)))
        .route("/global", api.on(get(texts::get_global_prompt)))
        .route(
            "/global/update",
            admin.on(post(texts::update_global_prompt)),
        )
        .route("/sections", api.on(get(sections::list_sections)))
        .route("/sections", admin.on(post(sections::create_section)))
        .route("/sections/{id}", api.on(get(sections::get_section)))
        .route(
            "/sections/{id}",
            admin.on(put(sections::replace_section)
                .patch(sections::patch_section)
                .delete(sections::delete_section)),
        )
        .route("/workspace-guide", api.on(get(texts::get_workspace_guide)))
        .route(
            "/workspace-guide",
            admin.on(put(texts::replace_workspace_guide)),
        )
        .route("/variables", api.on(get(texts::get_variables)))
        .route("/variables", admin.on(put(texts::replace_variables)))
        .route("/compose", api.on(get(compose::preview_prompt)))
        .route(
            "/compose",
            api.library_in_json()
                .on(post(compose::preview_given_prompt)),
        )
        .route(
            "/mcp-tools",
            api.on(get(tools::get_tools_prompt).post(tools::make_tools_prompt)),
        )
        .route("/status", api.on(get(library::get_status)))
        .route("/export", api.on(get(library::export_library)))
        .route(
            "/import",
            admin.library_body().on(post(library::import_library)),
        )
        .route("/undo", admin.on(post(library::undo_edit)))
        .route(
            "/events",
            api.without_time_limit().on(get(events::follow_changes)),
        )
        .layer(from_fn_with_state(app.clone(), add_library_revision))
}

/// Clients that speak no MCP: conversations in, with the prompt put into them, and the upstream's answers out.
fn chat(api: &Access) -> Router<App> {
    let openai = api.chat();
    let other = openai.with_our_keys_only();
    let small = api.without_time_limit();
    Router::new()
        .route(
            "/v1/chat/completions",
            openai.on(post(completions::create_completion)),
        )
        .route("/v1/models", openai.on(get(models::list_models)))
        .route("/v1/messages", other.on(post(messages::create_message)))
        .route("/api/chat", small.on(post(turn::answer_message)))
        .route(
            "/beta/litellm_prompt_management",
            api.on(get(litellm::get_litellm_prompt)),
        )
}

/// What is the same for every server of a version, so that no key is asked for.
fn documentation(open: &Access) -> Router<App> {
    Router::new()
        .route("/", open.on(get(docs::redirect_to_docs)))
        .route("/docs", open.on(get(docs::show_docs)))
        .route("/openapi.json", open.on(get(openapi::show_openapi)))
}

/// Uploads in, outputs out. Files pass in pieces, so nothing here reads a body whole or ends work after a time; a name that
/// is also the name of a route is a file where the method says so.
fn files(app: &App, api: &Access, admin: &Access) -> Router<App> {
    let link = Access::link(app);
    let streaming = api.streaming();
    let changes = || {
        put(uploads::put_upload)
            .post(uploads::post_upload)
            .delete(uploads::delete_upload)
            .layer(DefaultBodyLimit::disable())
    };
    Router::new()
        .route(
            "/api/uploads/{chat_id}",
            streaming.on(get(uploads::list_uploads_of_chat)),
        )
        .route(
            "/api/uploads/{chat_id}/list",
            streaming.on(changes().get(uploads::list_uploads)),
        )
        .route(
            "/api/uploads/{chat_id}/manifest",
            streaming.on(changes().get(uploads::get_manifest)),
        )
        .route("/api/uploads/{chat_id}/{*path}", streaming.on(changes()))
        .route(
            "/api/outputs/{chat_id}",
            link.on(get(outputs::list_outputs)),
        )
        .route(
            "/files/{chat_id}/archive",
            link.on(get(archive::get_archive)),
        )
        .route("/files/{chat_id}/{*path}", link.on(get(download::get_file)))
        .route("/preview/{chat_id}", link.on(get(preview::show_preview)))
        .route("/api/chats/{chat_id}", admin.on(delete(chats::delete_chat)))
}

async fn no_such_route(uri: Uri) -> Response {
    let error = ApiError::new(
        StatusCode::NOT_FOUND,
        "route_not_found",
        "there is nothing at this path; `/openapi.json` lists what there is",
    );
    refuse(uri.path(), error)
}

async fn only_mcp_messages() -> ApiError {
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        "this is the MCP endpoint (Streamable HTTP): MCP clients send it JSON-RPC messages by `POST`, and there is nothing \
         to get; `/mcp-info` describes it, `/docs` describes the other routes",
    )
}

async fn method_not_allowed(uri: Uri) -> Response {
    let error = ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        "this path does not take this method; the header `Allow` lists those that it takes",
    );
    refuse(uri.path(), error)
}
