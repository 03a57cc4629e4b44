//! Tier 4: the prompt in `initialize` and in `server/discover`.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{discover, initialize, legacy, server};
use crate::support::TestServer;

#[tokio::test]
async fn initialize_carries_the_prompt_of_its_session() {
    let response = server()
        .post("/mcp")
        .header("x-chat-id", "abc")
        .header("x-user-email", "ann@example.com")
        .message(&initialize())
        .await;
    assert_snapshot!(response.summary(), @r#"
    200
    {
      "jsonrpc": "2.0",
      "id": 1,
      "result": {
        "protocolVersion": "2025-11-25",
        "capabilities": {
          "completions": {},
          "resources": {},
          "tools": {}
        },
        "serverInfo": {
          "name": "foreword",
          "title": "Foreword",
          "version": "0.1.0"
        },
        "instructions": "Be kind.\n\nYou help.\n\nThese instructions as a whole, what stands before this line too, are also what the tool `read_me` returns, revision `4fcf61916b8e76dc`; call it again if you lose track.\n\nThis is abc of ann@example.com. Files are at http://127.0.0.1:8081/files/abc."
      }
    }
    "#);
}

#[tokio::test]
async fn discover_carries_the_prompt_of_its_session_and_may_not_be_kept() {
    let response = server()
        .post("/mcp")
        .header("x-chat-id", "abc")
        .header("x-user-email", "ann@example.com")
        .message(&discover())
        .await;
    assert_snapshot!(response.summary(), @r#"
    200
    {
      "jsonrpc": "2.0",
      "id": 1,
      "result": {
        "resultType": "complete",
        "supportedVersions": [
          "2024-11-05",
          "2025-03-26",
          "2025-06-18",
          "2025-11-25",
          "2026-07-28"
        ],
        "capabilities": {
          "extensions": {
            "io.modelcontextprotocol/skills": {}
          },
          "completions": {},
          "resources": {
            "listChanged": true
          },
          "tools": {
            "listChanged": true
          }
        },
        "instructions": "Be kind.\n\nYou help.\n\nThese instructions as a whole, what stands before this line too, are also what the tool `read_me` returns, revision `4fcf61916b8e76dc`; call it again if you lose track.\n\nThis is abc of ann@example.com. Files are at http://127.0.0.1:8081/files/abc.",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {
          "io.modelcontextprotocol/serverInfo": {
            "name": "foreword",
            "title": "Foreword",
            "version": "0.1.0"
          }
        }
      }
    }
    "#);
}

#[tokio::test]
async fn every_revision_with_a_handshake_gets_the_prompt() {
    let server = server();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut message = initialize();
        message["params"]["protocolVersion"] = version.into();
        let response = server.post("/mcp").message(&message).await;
        assert_eq!(response.json()["result"]["protocolVersion"], version);
        assert!(response.instructions().starts_with("Be kind."), "{version}");
    }
}

#[tokio::test]
async fn the_handshake_keeps_no_session_of_the_transport() {
    let response = server().post("/mcp").message(&initialize()).await;
    assert!(!response.headers.contains_key("mcp-session-id"));
}

#[tokio::test]
async fn fault_6_any_replica_answers_any_request() {
    let (one, other) = (server(), server());
    let ask = |server: &TestServer| {
        server
            .post("/mcp")
            .header("x-chat-id", "abc")
            .message(&initialize())
    };
    let first = ask(&one).await.instructions();
    let second = ask(&other).await.instructions();
    assert_eq!(first, second);
    let tools = legacy("tools/list", json!({}));
    let listed = other.post("/mcp").message(&tools).await;
    assert_eq!(listed.json()["result"]["tools"][0]["name"], "read_me");
}

#[tokio::test]
async fn an_unknown_profile_is_an_error_in_the_handshake() {
    let server = server();
    for message in [initialize(), discover()] {
        let response = server
            .post("/mcp")
            .header("x-profile-id", "writr")
            .message(&message)
            .await;
        assert_eq!(
            response.rpc_error(),
            "200 id=1 -32602 profile_not_found profile `writr` does not exist; known profiles: `default`, `writer`"
        );
    }
}

#[tokio::test]
async fn the_profile_of_the_session_is_composed() {
    let response = server()
        .post("/mcp")
        .header("x-profile-id", "writer")
        .message(&initialize())
        .await;
    assert!(response.instructions().contains("You write."));
}

#[tokio::test]
async fn only_what_is_offered_is_declared() {
    let server = server();
    let older = ["completions", "resources", "tools"];
    let newest = ["extensions", "completions", "resources", "tools"];
    for (message, expected) in [(initialize(), &older[..]), (discover(), &newest)] {
        let response = server.post("/mcp").message(&message).await;
        let capabilities: Value = response.json()["result"]["capabilities"].clone();
        let names: Vec<&String> = capabilities.as_object().unwrap().keys().collect();
        assert_eq!(names, expected);
    }
}
