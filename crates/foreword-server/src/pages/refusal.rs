//! The page that says what is wrong, for people who followed a link; programs get the problem itself.

use axum::response::{Html, IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};

use super::preview::dressed;
use crate::{error::ApiError, extract::accept};

/// A page where the client would rather have one, as browsers that are led somewhere would; else the problem.
pub(crate) fn answer(error: ApiError, headers: &HeaderMap) -> Response {
    let mut response = if prefers_page(headers) {
        page(error)
    } else {
        error.into_response()
    };
    let vary = HeaderValue::from_static("accept");
    response.headers_mut().append(header::VARY, vary);
    response
}

/// Says to a person what is wrong.
pub(crate) fn page(error: ApiError) -> Response {
    let page = include_str!("preview/refusal.html")
        .replace("/* style */", include_str!("preview/page.css"))
        .replace("{title}", title(error.code))
        .replace("{detail}", &detail(&error));
    let mut response = dressed((error.status, Html(page)).into_response());
    response.headers_mut().extend(error.headers);
    response
}

fn prefers_page(headers: &HeaderMap) -> bool {
    let problem = ["application/problem+json", "application/json"];
    accept::weight(headers, &["text/html"]) > accept::weight(headers, &problem)
}

fn title(code: &str) -> &'static str {
    match code {
        "link_expired" => "This link has expired",
        "link_not_valid" => "This link is not valid",
        "key_required" => "This page needs a link of its own",
        "chat_belongs_to_another_user" => "This chat belongs to somebody else",
        "file_not_found" => "There is no such file",
        _ => "This page cannot be shown",
    }
}

fn detail(error: &ApiError) -> String {
    match error.code {
        "link_expired" | "link_not_valid" => "Ask in the chat for a fresh one.".to_owned(),
        "key_required" => "Open it by a link from the chat.".to_owned(),
        "chat_belongs_to_another_user" => "Its files are shown to nobody else.".to_owned(),
        "file_not_found" => "It is not, or no longer, among the files of this chat.".to_owned(),
        _ => escaped(&error.detail),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
