//! `/api/prompts/compose`.

use insta::assert_snapshot;
use serde_json::json;

use super::{LIBRARY, server};
use crate::support::TestServer;

#[tokio::test]
async fn a_preview_explains_the_prompt_part_by_part() {
    let server = server();
    let response = server
        .get("/api/prompts/compose?profile_id=developer&additional_context=Use%20Rust.")
        .await;
    assert_snapshot!(response.summary(), @"");
}

#[tokio::test]
async fn without_a_profile_it_is_the_default_one() {
    let response = server().get("/api/prompts/compose").await.json();
    assert_eq!(response["profile_id"], "default");
    assert_snapshot!(response["system_prompt"].as_str().unwrap(), @"");
}

#[tokio::test]
async fn fault_31_an_unknown_profile_is_an_error_that_names_it_and_the_known_ones() {
    let server = server();
    assert_snapshot!(server.get("/api/prompts/compose?profile_id=coder").await.summary(), @"");
    let with_chat = server
        .get("/api/prompts/compose?profile_id=coder&chat_id=c1")
        .await;
    assert_snapshot!(with_chat.summary(), @"");
    let posted = server
        .post("/api/prompts/compose")
        .json(json!({"profile_id": "coder"}))
        .await;
    assert_snapshot!(posted.summary(), @"");
}

#[tokio::test]
async fn fault_40_the_preview_is_what_the_chat_gets() {
    let server = server();
    for profile in ["default", "developer"] {
        let delivered = server
            .get("/system-prompt")
            .header("x-chat-id", "Chat-7")
            .header("x-user-email", "Ann@Example.com")
            .header("x-profile-id", profile)
            .await;
        assert_eq!(delivered.status, 200);
        let query = format!("profile_id={profile}&chat_id=Chat-7&user_email=Ann%40Example.com");
        let preview = server
            .get(&format!("/api/prompts/compose?{query}"))
            .await
            .json();
        assert_eq!(preview["system_prompt"], delivered.text());
        assert_eq!(preview["revision"], delivered.header("x-prompt-revision"));
        let body =
            json!({"profile_id": profile, "chat_id": "Chat-7", "user_email": "Ann@Example.com"});
        let posted = server.post("/api/prompts/compose").json(body).await.json();
        assert_eq!(posted, preview);
    }
}

#[tokio::test]
async fn fault_40_a_preview_of_the_library_that_is_kept_is_the_same_when_it_is_sent_along() {
    let server = server();
    let body = json!({"chat_id": "c1", "profile_id": "developer"});
    let kept = server.post("/api/prompts/compose").json(body).await.json();
    let body = json!({"chat_id": "c1", "profile_id": "developer", "library": LIBRARY});
    let sent = server.post("/api/prompts/compose").json(body).await.json();
    assert_eq!(sent, kept);
}

#[tokio::test]
async fn an_override_is_the_prompt() {
    let server = server();
    let body = json!({"system_override": "  Only {chat_id} this.\n", "chat_id": "c1"});
    let response = server.post("/api/prompts/compose").json(body).await;
    assert_snapshot!(response.summary(), @"");
    let blank = server
        .get("/api/prompts/compose?system_override=%20")
        .await
        .json();
    assert_eq!(blank["parts"][0]["source"], "global");
}

#[tokio::test]
async fn a_body_can_bring_variables_tools_and_context() {
    let server = server();
    let body = json!({
        "variables": {"company": "Acme", "nobody": "x"},
        "tools": [{"name": "search", "description": "Finds things.", "server": "web"}],
        "additional_context": ["First.", "Second {company}."],
    });
    let response = server.post("/api/prompts/compose").json(body).await.json();
    assert_snapshot!(response["system_prompt"].as_str().unwrap(), @"");
    assert_snapshot!(response["diagnostics"], @"");
}

#[tokio::test]
async fn an_unsaved_library_is_composed_and_not_kept() {
    let server = server();
    let library = "profiles:\n  - id: draft\n    sections:\n      - {id: a, content: Draft.}\n";
    let response = server
        .post("/api/prompts/compose")
        .json(json!({"library": library}))
        .await;
    assert_eq!(response.json()["system_prompt"], "Draft.");
    assert_eq!(response.json()["profile_id"], "draft");
    assert_eq!(server.file(), LIBRARY);
}

#[tokio::test]
async fn an_unsaved_library_with_mistakes_is_refused_with_all_of_them() {
    let server = server();
    let library = "profile: []\nprofiles:\n  - id: a b\n    sections:\n      - {use: nowhere, enabled: \"no\"}\n";
    let response = server
        .post("/api/prompts/compose")
        .json(json!({"library": library}))
        .await;
    assert_snapshot!(response.summary(), @"");
}

#[tokio::test]
async fn every_fault_of_a_request_is_told() {
    let server = server();
    let body = json!({
        "profile": "x",
        "chat_id": 7,
        "additional_context": ["a", 1],
        "variables": {"company": 7},
        "tools": [{"description": 3, "inputSchema": {}, "input_schema": {}}, "x"],
        "library": ["a"],
    });
    assert_snapshot!(server.post("/api/prompts/compose").json(body).await.summary(), @"");
    assert_snapshot!(server.get("/api/prompts/compose?chat_id=a/b").await.summary(), @"");
    assert_snapshot!(server.get("/api/prompts/compose?user_email=nobody").await.summary(), @"");
}

#[tokio::test]
async fn a_preview_needs_no_chat_where_delivery_does() {
    let server = TestServer::builder()
        .library(LIBRARY)
        .config(|config| config.session.mode = foreword_server::config::SessionMode::Strict)
        .start();
    assert_eq!(server.get("/system-prompt").await.status, 400);
    assert_eq!(server.get("/api/prompts/compose").await.status, 200);
}

#[tokio::test]
async fn in_single_mode_every_chat_is_the_one_that_is_delivered() {
    let server = TestServer::builder()
        .library(LIBRARY)
        .config(|config| config.session.mode = foreword_server::config::SessionMode::Single)
        .start();
    let delivered = server
        .get("/system-prompt")
        .header("x-chat-id", "other")
        .await;
    let preview = server.get("/api/prompts/compose?chat_id=mine").await.json();
    assert_eq!(preview["system_prompt"], delivered.text());
}
