//! What holds for every route: queries, bodies, methods, keys, headers.

use http::Method;
use insta::assert_snapshot;
use serde_json::json;

use super::{LIBRARY, server};
use crate::support::TestServer;

#[tokio::test]
async fn an_unknown_query_parameter_is_refused_with_the_nearest_known_one() {
    let server = server();
    assert_snapshot!(server.get("/api/prompts/compose?profil_id=x").await.summary(), @"400 invalid_query: the query parameter `profil_id` is not valid: unknown field `profil_id`, expected one of `profile_id`, `chat_id`, `user_email`, `user_name`, `additional_context`, `system_override`; did you mean `profile_id`?");
    assert_snapshot!(server.get("/api/prompts/global?verbose=1").await.summary(), @"400 invalid_query: this route takes no query parameters, so `verbose` has no meaning here");
    assert_snapshot!(server.post("/api/prompts/import?dryrun=true").header("content-type", "text/yaml").await.summary(), @"400 invalid_query: the query parameter `dryrun` is not valid: unknown field `dryrun`, expected `dry_run` or `replace_broken`; did you mean `dry_run`?");
    let edit = server
        .post("/api/prompts/global/update?force=1")
        .json(json!({"content": "x"}))
        .await;
    assert_eq!(edit.status, 400);
    assert_eq!(server.file(), LIBRARY);
}

#[tokio::test]
async fn broken_json_is_refused_with_line_and_column() {
    let server = server();
    let response = server
        .post("/api/prompts/global/update")
        .header("content-type", "application/json")
        .body("{\n  \"content\": \"x\",\n}")
        .await;
    assert_snapshot!(response.summary(), @r"
    400 invalid_json: the body is not JSON: trailing comma at line 3, column 1
      line: 3
      column: 1
    ");
}

#[tokio::test]
async fn a_body_in_another_format_is_refused() {
    let server = server();
    let form = server
        .post("/api/prompts/global/update")
        .header("content-type", "application/x-www-form-urlencoded")
        .body("content=x")
        .await;
    assert_snapshot!(form.summary(), @"415 unsupported_media_type: the body must be JSON: send it with `Content-Type: application/json`");
    let import = server
        .post("/api/prompts/import")
        .header("content-type", "application/json")
        .body("{}")
        .await;
    assert_snapshot!(import.summary(), @"415 unsupported_media_type: the body must be YAML: send it with `Content-Type: application/yaml`");
}

#[tokio::test]
async fn a_body_over_2_mib_is_refused_unless_it_may_hold_a_library() {
    let server = server();
    let large = "x".repeat(3 << 20);
    let response = server
        .post("/api/prompts/global/update")
        .json(json!({"content": large}))
        .await;
    assert_snapshot!(response.summary(), @"413 body_too_large: the body is larger than the 2097152 bytes that are read here");
    assert_eq!(server.file(), LIBRARY);
    let library = format!("global_prompt: {large}\n");
    let response = server
        .post("/api/prompts/compose")
        .json(json!({"library": library}))
        .await;
    assert_eq!(response.status, 200);
}

#[tokio::test]
async fn a_method_that_a_route_does_not_take_is_told_those_that_it_takes() {
    let server = server();
    let response = server.delete("/api/prompts/global").await;
    assert_snapshot!(response.summary_with(&["allow"]), @r"
    405 method_not_allowed: this path does not take this method; the header `Allow` lists those that it takes
    allow: GET,HEAD
    ");
    let response = server.post("/api/prompts/profiles/default").await;
    assert_snapshot!(response.summary_with(&["allow"]), @r"
    405 method_not_allowed: this path does not take this method; the header `Allow` lists those that it takes
    allow: GET,HEAD,PUT,PATCH,DELETE
    ");
}

#[tokio::test]
async fn head_answers_like_get_without_a_body() {
    let server = server();
    for path in [
        "/api/prompts/profiles",
        "/api/prompts/profiles/default",
        "/api/prompts/export",
    ] {
        let get = server.get(path).await;
        let head = server.request(Method::HEAD, path).await;
        assert_eq!(head.status, 200, "{path}");
        assert_eq!(head.header("etag"), get.header("etag"), "{path}");
        assert!(head.body.is_empty(), "{path}");
    }
}

#[tokio::test]
async fn reading_takes_an_api_key_and_writing_an_admin_key() {
    let server = TestServer::builder().keys().library(LIBRARY).start();
    let reads = [
        "profiles",
        "profiles/default",
        "global",
        "sections",
        "sections/tone",
        "compose",
        "mcp-tools",
        "workspace-guide",
        "variables",
        "status",
        "export",
    ];
    for path in reads {
        let path = format!("/api/prompts/{path}");
        assert_eq!(server.get(&path).await.status, 401, "{path}");
        assert_eq!(server.get(&path).api().await.status, 200, "{path}");
        assert_eq!(server.get(&path).admin().await.status, 200, "{path}");
    }
    for path in ["compose", "mcp-tools"] {
        let path = format!("/api/prompts/{path}");
        let body = json!({"tools": []});
        assert_eq!(
            server.post(&path).json(body.clone()).await.status,
            401,
            "{path}"
        );
        assert_eq!(
            server.post(&path).json(body).api().await.status,
            200,
            "{path}"
        );
    }
    let writes = [
        (Method::POST, "profiles"),
        (Method::PUT, "profiles/default"),
        (Method::PATCH, "profiles/default"),
        (Method::DELETE, "profiles/default"),
        (Method::POST, "profiles/default/default"),
        (Method::PUT, "profiles/default/sections/x"),
        (Method::PATCH, "profiles/default/sections/identity"),
        (Method::DELETE, "profiles/default/sections/identity"),
        (Method::PUT, "profiles/default/order"),
        (Method::POST, "global/update"),
        (Method::POST, "sections"),
        (Method::PUT, "sections/tone"),
        (Method::PATCH, "sections/tone"),
        (Method::DELETE, "sections/tone"),
        (Method::PUT, "workspace-guide"),
        (Method::PUT, "variables"),
        (Method::POST, "import"),
        (Method::POST, "undo"),
    ];
    for (method, path) in writes {
        let path = format!("/api/prompts/{path}");
        let refused = server
            .request(method.clone(), &path)
            .api()
            .json(json!({}))
            .await;
        assert_eq!(refused.status, 403, "{method} {path}");
        let refused = server.request(method.clone(), &path).json(json!({})).await;
        assert_eq!(refused.status, 401, "{method} {path}");
    }
    assert_eq!(server.file(), LIBRARY);
}

#[tokio::test]
async fn every_answer_names_the_revision_of_the_library() {
    let server = server();
    let revision = server.get("/api/prompts/status").await.json()["revision"].clone();
    for path in [
        "profiles",
        "profiles/nobody",
        "compose?x=1",
        "global",
        "export",
    ] {
        let response = server.get(&format!("/api/prompts/{path}")).await;
        assert_eq!(response.header("x-library-revision"), revision, "{path}");
    }
    let edited = server
        .post("/api/prompts/global/update")
        .json(json!({"content": "x"}))
        .await;
    let now = server.get("/api/prompts/status").await.json()["revision"].clone();
    assert_ne!(now, revision);
    assert_eq!(edited.header("x-library-revision"), now);
}

#[tokio::test]
async fn who_has_no_key_is_not_told_when_the_library_changes() {
    let server = TestServer::builder().keys().library(LIBRARY).start();
    let response = server.get("/api/prompts/global").await;
    assert_eq!(response.status, 401);
    assert_eq!(response.header("x-library-revision"), "");
}

#[tokio::test]
async fn ids_in_paths_are_decoded_once() {
    let server = server();
    let response = server.get("/api/prompts/profiles/de%66ault").await;
    assert_eq!(response.status, 200);
    let response = server.get("/api/prompts/profiles/de%2566ault").await;
    assert_snapshot!(response.summary(), @"404 profile_not_found: profile `de%66ault` does not exist; did you mean `default`?");
    let response = server.get("/api/prompts/profiles/%FF").await;
    assert_eq!(response.status, 400);
}
