//! `/api/prompts/status`, `/export`, `/import` and `/undo`.

use std::fs;

use insta::assert_snapshot;
use serde_json::json;

use super::{LIBRARY, server};
use crate::support::{TestRequest, TestServer};

impl TestRequest {
    fn yaml(self, text: &str) -> Self {
        self.header("content-type", "application/yaml")
            .body(text.to_owned())
    }
}

#[tokio::test]
async fn the_status_says_how_the_library_is() {
    assert_snapshot!(server().get("/api/prompts/status").await.summary(), @r#"
    200
    {
      "revision": "b1d82721b09ab24d",
      "source": "file",
      "loaded_at": "2026-07-01T12:00:00Z",
      "healthy": true,
      "errors": []
    }
    "#);
}

#[tokio::test]
async fn an_export_is_the_file_byte_for_byte() {
    let server = server();
    let response = server.get("/api/prompts/export").await;
    assert_eq!(response.text(), LIBRARY);
    assert_eq!(response.header("content-type"), "application/yaml");
    let revision = response.header("x-library-revision").to_owned();
    assert_eq!(response.header("etag"), format!("\"{revision}\""));
}

#[tokio::test]
async fn an_import_replaces_the_library_and_shows_the_difference() {
    let server = server();
    let text = LIBRARY.replace("Be brief.", "Be very brief.");
    let dry = server
        .post("/api/prompts/import?dry_run=true")
        .yaml(&text)
        .await;
    assert_snapshot!(dry.summary(), @r#"
    200
    {
      "difference": "--- now\n+++ imported\n@@ -13,7 +13,7 @@\n     type: constraints\n     content: Never print secrets.\n     description: Ask legal first\n-  - {id: tone, content: \"Be brief.\"}\n+  - {id: tone, content: \"Be very brief.\"}\n \n profiles:\n   - id: default\n",
      "revision": "6bc5b7202323c97e",
      "written": false
    }
    "#);
    assert_eq!(server.file(), LIBRARY);
    let done = server.post("/api/prompts/import").yaml(&text).await;
    assert_eq!(done.json()["written"], true);
    assert_eq!(done.json()["difference"], dry.json()["difference"]);
    assert_eq!(server.file(), text);
    let exported = server.get("/api/prompts/export").await;
    assert_eq!(exported.text(), text);
    assert_eq!(
        exported.header("x-library-revision"),
        done.json()["revision"]
    );
}

#[tokio::test]
async fn an_invalid_import_is_refused_with_every_mistake() {
    let server = server();
    let text =
        "profiles:\n  - id: a\n    sections:\n      - {id: x, content: 5}\n      - {use: y}\n";
    let response = server.post("/api/prompts/import").yaml(text).await;
    assert_snapshot!(response.summary(), @r#"
    422 invalid: the request has 2 faults, see `errors`
      "/profiles/0/sections/0/content" `content` must be text, but `5` is a number; put it in quotes: `"5"`
      "/profiles/0/sections/1/use" there is no shared section `y`; add it under `sections`, or write the section here with an `id`
    "#);
    let response = server
        .post("/api/prompts/import")
        .yaml("profiles: [\n")
        .await;
    assert_snapshot!(response.summary(), @r#"
    422 invalid: the bracket or brace that opens here is never closed
      "" the bracket or brace that opens here is never closed
    "#);
    let response = server
        .post("/api/prompts/import")
        .header("content-type", "application/yaml")
        .body(b"\xFF".to_vec())
        .await;
    assert_snapshot!(response.summary(), @"422 invalid: the library is not UTF-8 text");
    assert_eq!(server.file(), LIBRARY);
}

#[tokio::test]
async fn undo_goes_one_edit_back() {
    let server = server();
    server
        .post("/api/prompts/global/update")
        .json(json!({"content": "One."}))
        .await;
    server
        .patch("/api/prompts/sections/tone")
        .json(json!({"content": "Two."}))
        .await;
    let response = server.post("/api/prompts/undo").await;
    assert_snapshot!(response.json()["undone"].as_str().unwrap(), @"changed section `tone`");
    assert!(server.file().contains("One.") && !server.file().contains("Two."));
    server.post("/api/prompts/undo").await;
    assert_eq!(server.file(), LIBRARY);
    assert_snapshot!(server.post("/api/prompts/undo").await.summary(), @"409 nothing_to_undo: there is nothing to undo");
}

#[tokio::test]
async fn a_broken_file_refuses_edits_until_it_is_mended_or_replaced() {
    let server = server();
    let path = server.data.path().join("system_prompts.yaml");
    let broken = "profiles:\n  - id: a\n    nam: A\n";
    fs::write(&path, broken).unwrap();
    let edit = server
        .post("/api/prompts/global/update")
        .json(json!({"content": "x"}))
        .await;
    assert_snapshot!(edit.summary(), @r#"
    409 library_file_broken: the library file is broken, so it cannot be edited: 3:5: unknown-key
      "/profiles/0/nam" unknown key `nam` in a profile; did you mean `name`?
    "#);
    assert_eq!(server.file(), broken);
    assert_snapshot!(server.get("/api/prompts/status").await.json()["healthy"], @"false");
    assert_eq!(server.get("/api/prompts/export").await.text(), LIBRARY);

    let import = server.post("/api/prompts/import").yaml(LIBRARY).await;
    assert_eq!(import.status, 409, "{}", import.summary());
    let import = server
        .post("/api/prompts/import?replace_broken=true")
        .yaml(LIBRARY)
        .await;
    assert_eq!(import.status, 200, "{}", import.summary());
    assert_eq!(server.file(), LIBRARY);
    let kept_as = import.json()["kept_as"].as_str().unwrap().to_owned();
    assert_eq!(
        fs::read_to_string(server.data.path().join(kept_as)).unwrap(),
        broken
    );
}

#[tokio::test]
async fn the_first_edit_of_the_built_in_library_writes_the_file() {
    let server = TestServer::new();
    assert_eq!(
        server.get("/api/prompts/status").await.json()["source"],
        "built-in"
    );
    let response = server
        .post("/api/prompts/global/update")
        .json(json!({"content": "Mine."}))
        .await;
    assert_eq!(response.status, 200);
    assert!(server.file().contains("Mine."));
    assert_eq!(
        server.get("/api/prompts/status").await.json()["source"],
        "file"
    );
}
