//! What a body may be.

use std::convert::Infallible;

use axum::body::Body;
use futures::stream;
use insta::assert_snapshot;
use serde_json::json;

use crate::support::{TestResponse, TestServer};

const ROUTE: &str = "/api/prompts/mcp-tools";

async fn post(content_type: &'static str, body: impl Into<Body>) -> TestResponse {
    let server = TestServer::new();
    let request = server.post(ROUTE).header("content-type", content_type);
    request.body(body).await
}

#[tokio::test]
async fn a_body_is_json_by_its_content_type() {
    for accepted in [
        "application/json",
        "Application/JSON; charset=utf-8",
        "application/merge-patch+json",
    ] {
        assert_eq!(
            post(accepted, r#"{"tools": []}"#).await.status,
            200,
            "{accepted}"
        );
    }
    for refused in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "text/json",
        "multipart/form-data",
        "",
    ] {
        assert_eq!(
            post(refused, r#"{"tools": []}"#).await.status,
            415,
            "{refused}"
        );
    }
    let without = TestServer::new().post(ROUTE).body(r#"{"tools": []}"#).await;
    assert_snapshot!(without.summary(), @"415 unsupported_media_type: the body must be JSON: send it with `Content-Type: application/json`");
}

#[tokio::test]
async fn broken_json_is_told_with_line_and_column() {
    let broken = async |body: &'static [u8]| post("application/json", body).await.summary();
    assert_snapshot!(broken(b"").await, @r"
    400 invalid_json: the body is not JSON: EOF while parsing a value at line 1, column 0
      line: 1
      column: 0
    ");
    assert_snapshot!(broken(b"{\n  \"tools\": [}").await, @r"
    400 invalid_json: the body is not JSON: expected value at line 2, column 13
      line: 2
      column: 13
    ");
    assert_snapshot!(broken(b"{\"tools\": []} x").await, @r"
    400 invalid_json: the body is not JSON: trailing characters at line 1, column 15
      line: 1
      column: 15
    ");
    assert_snapshot!(broken(b"{\"tools\": \"\xff\"}").await, @r"
    400 invalid_json: the body is not JSON: invalid unicode code point at line 1, column 12
      line: 1
      column: 12
    ");
    assert_snapshot!(broken("[".repeat(100_000).leak().as_bytes()).await, @r"
    400 invalid_json: the body is not JSON: recursion limit exceeded at line 1, column 128
      line: 1
      column: 128
    ");
}

#[tokio::test]
async fn a_body_over_the_limit_of_its_route_is_refused() {
    let three_mib = vec![b' '; 3 << 20];
    assert_snapshot!(post("application/json", three_mib.clone()).await.summary(), @"413 body_too_large: the body is larger than the 2097152 bytes that are read here");
    let server = TestServer::new();
    let mcp = server
        .post("/mcp")
        .header("content-type", "application/json");
    assert_ne!(mcp.body(three_mib.clone()).await.status, 413);
    let mcp = server
        .post("/mcp")
        .header("content-type", "application/json");
    assert_eq!(mcp.body(vec![b' '; 9 << 20]).await.status, 413);
    let library = server
        .post("/api/prompts/import")
        .header("content-type", "application/yaml");
    assert_ne!(library.body(three_mib).await.status, 413);
    let library = server
        .post("/api/prompts/import")
        .header("content-type", "application/yaml");
    assert_eq!(library.body(vec![b' '; 17 << 20]).await.status, 413);
}

#[tokio::test]
async fn a_preview_may_be_as_long_as_a_library_where_it_holds_one() {
    let server = TestServer::builder()
        .config(|config| {
            config.http.api_max_body = 1 << 10;
            config.http.library_max_body = 64 << 10;
        })
        .start();
    let preview = async |body: serde_json::Value| {
        let request = server.post("/api/prompts/compose");
        request.json(body).await.summary()
    };
    // Each line end is two bytes in JSON.
    let lines = |count: usize| "\n".repeat(count);
    let composed = preview(json!({"library": lines(64 << 10)})).await;
    assert!(composed.starts_with("422 invalid: "), "{composed}");
    assert_snapshot!(preview(json!({"library": lines((64 << 10) + 1)})).await, @"413 body_too_large: the body is larger than the 65536 bytes that are read here");
    assert_snapshot!(preview(json!({"system_override": lines(1 << 10)})).await, @"413 body_too_large: the body is larger than the 1024 bytes that are read here");
}

#[tokio::test]
async fn an_unknown_query_parameter_is_refused_with_the_nearest_one() {
    let server = TestServer::new();
    let query = async |query: &str| {
        let path = format!("/api/prompts/compose?{query}");
        server.get(&path).await.summary()
    };
    assert_snapshot!(query("profileid=developer").await, @"400 invalid_query: the query parameter `profileid` is not valid: unknown field `profileid`, expected one of `profile_id`, `chat_id`, `user_email`, `user_name`, `additional_context`, `system_override`; did you mean `profile_id`?");
    assert_snapshot!(query("colour=red").await, @"400 invalid_query: the query parameter `colour` is not valid: unknown field `colour`, expected one of `profile_id`, `chat_id`, `user_email`, `user_name`, `additional_context`, `system_override`");
    assert_snapshot!(server.get("/api/prompts/profiles?limit=many").await.summary(), @"400 invalid_query: the query parameter `limit` is a whole number from 1 to 1000");
    assert_snapshot!(server.get("/api/prompts/global?content=x").await.summary(), @"400 invalid_query: this route takes no query parameters, so `content` has no meaning here");
}

#[tokio::test]
async fn a_path_that_is_not_utf8_is_refused() {
    let server = TestServer::new();
    assert_snapshot!(server.get("/api/prompts/profiles/%FF").await.summary(), @"400 invalid_path: the value of `id` in the path is not UTF-8");
}

#[tokio::test]
async fn whatever_answers_get_answers_head() {
    let server = TestServer::new();
    for path in [
        "/health",
        "/metrics",
        "/system-prompt",
        "/mcp-info",
        "/api/prompts/profiles",
        "/docs",
        "/openapi.json",
    ] {
        let get = server.get(path).await;
        let head = server.request(http::Method::HEAD, path).await;
        assert_eq!(head.status, get.status, "{path}");
        assert!(head.body.is_empty(), "{path}");
        assert_eq!(
            head.header("content-type"),
            get.header("content-type"),
            "{path}"
        );
    }
}

/// A body that arrives byte by byte, so that every character of more than one byte is cut.
fn in_single_bytes(text: &str) -> Body {
    let bytes = text.as_bytes().to_vec();
    let chunks = bytes
        .into_iter()
        .map(|byte| Ok::<_, Infallible>(vec![byte]));
    Body::from_stream(stream::iter(chunks))
}

#[tokio::test]
async fn fault_28_a_character_that_is_cut_by_a_chunk_arrives_whole() {
    let server = TestServer::new();
    let words = "Grüße — 你好 🙂 ключ";

    let body = json!({ "system_override": words }).to_string();
    let composed = server
        .post("/api/prompts/compose")
        .header("content-type", "application/json")
        .body(in_single_bytes(&body))
        .await;
    assert_eq!(composed.json()["system_prompt"], words);

    let imported = server
        .post("/api/prompts/import")
        .header("content-type", "application/yaml")
        .body(in_single_bytes(&format!("global_prompt: {words}\n")))
        .await;
    assert_eq!(imported.json()["written"], true);
    let prompt = server.get("/system-prompt").await;
    assert!(prompt.text().starts_with(words), "{}", prompt.text());
}
