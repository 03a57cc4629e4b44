//! The page that shows a chat's outputs.
//!
//! One page for all chats: what it shows, it fetches from the routes beside it. It takes nothing from elsewhere, and what a
//! model made runs in a frame without an origin that reaches no network.

use std::sync::LazyLock;

use axum::{
    extract::State,
    response::{Html, IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};

use crate::{api::openapi::FileProblems, app::App, error::ApiError, middleware::reader::Reader};

/// Frames made of text take the policy of this page and a stricter one of their own, so scripts that stand in a page must
/// be allowed here; the page itself never makes HTML of text.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src 'self' data: blob:; \
                      media-src 'self' data: blob:; font-src data:; connect-src 'self'; frame-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'self'";

static PAGE: LazyLock<String> = LazyLock::new(|| {
    include_str!("preview/page.html")
        .replace("/* style */", include_str!("preview/page.css"))
        .replace("/* script */", include_str!("preview/page.js"))
});

/// Shows a chat's outputs.
#[utoipa::path(
    get, path = "/preview/{chat_id}", tag = "files",
    params(("chat_id" = String, Path, description = "The chat, or a capability for it")),
    responses((status = 200, description = "The page", content_type = "text/html"), FileProblems),
)]
pub(crate) async fn show_preview(State(app): State<App>, reader: Reader) -> Response {
    match reader.workspace(&app).await {
        Ok(_) => page(StatusCode::OK, PAGE.as_str()),
        Err(error) => refusal(error.into()),
    }
}

/// Says to a person what is wrong with a link.
pub(crate) fn refusal(error: ApiError) -> Response {
    let page = include_str!("preview/refusal.html")
        .replace("/* style */", include_str!("preview/page.css"))
        .replace("{title}", title(error.code))
        .replace("{detail}", &detail(&error));
    let mut response = page_with(error.status, page);
    response.headers_mut().extend(error.headers);
    response
}

fn detail(error: &ApiError) -> String {
    match error.code {
        "link_expired" | "link_not_valid" => "Ask in the chat for a fresh one.".to_owned(),
        "key_required" => "Open it by a link from the chat.".to_owned(),
        _ => escaped(&error.detail),
    }
}

fn title(code: &str) -> &'static str {
    match code {
        "link_expired" => "This link has expired",
        "link_not_valid" => "This link is not valid",
        "key_required" => "This page needs a link of its own",
        "chat_belongs_to_another_user" => "This chat belongs to somebody else",
        _ => "This page cannot be shown",
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn page(status: StatusCode, text: &'static str) -> Response {
    dressed((status, Html(text)).into_response())
}

fn page_with(status: StatusCode, text: String) -> Response {
    dressed((status, Html(text)).into_response())
}

fn dressed(mut response: Response) -> Response {
    let head = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "private, no-cache"),
        (header::X_DNS_PREFETCH_CONTROL, "off"),
    ] {
        head.insert(name, HeaderValue::from_static(value));
    }
    response
}
