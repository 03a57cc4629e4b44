//! The page that shows a chat's outputs.
//!
//! One page for all chats: what it shows, it fetches from the routes beside it. It takes nothing from elsewhere, and what a
//! model made runs in a frame without an origin that reaches no network.

use std::sync::LazyLock;

use axum::{
    extract::State,
    response::{Html, IntoResponse, Response},
};
use http::{HeaderValue, header};

use super::refusal;
use crate::{api::openapi::FileProblems, app::App, middleware::reader::Reader};

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
        Ok(_) => page(PAGE.as_str()),
        Err(error) => refusal::page(error.into()),
    }
}

fn page(text: &'static str) -> Response {
    dressed(Html(text).into_response())
}

/// Puts the headers on a page of ours.
pub(super) fn dressed(mut response: Response) -> Response {
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
