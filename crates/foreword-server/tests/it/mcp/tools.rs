//! The tools: one list for all, and the text for whoever asks for it.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{initialize, legacy, modern, server};

fn call(name: &str, arguments: Value) -> Value {
    legacy("tools/call", json!({"name": name, "arguments": arguments}))
}

#[tokio::test]
async fn the_list_of_tools_is_the_same_bytes_for_every_session() {
    let server = server();
    let one = server
        .post("/mcp/c/one")
        .header("x-user-email", "ann@example.com")
        .message(&legacy("tools/list", json!({})))
        .await;
    let other = server
        .post("/mcp/c/two")
        .header("x-profile-id", "writer")
        .message(&legacy("tools/list", json!({})))
        .await;
    assert_eq!(one.body, other.body);
    assert_snapshot!(one.summary(), @r#"
    200
    {
      "jsonrpc": "2.0",
      "id": 1,
      "result": {
        "tools": [
          {
            "name": "read_me",
            "title": "Read the instructions",
            "description": "Returns the instructions for this session in full. If you have lost track of them, or were given only a part of them, read them again with this tool.",
            "inputSchema": {
              "type": "object",
              "properties": {},
              "additionalProperties": false
            },
            "annotations": {
              "readOnlyHint": true,
              "idempotentHint": true,
              "openWorldHint": false
            }
          }
        ]
      }
    }
    "#);
}

#[tokio::test]
async fn the_list_of_tools_may_be_kept_for_a_minute_by_everybody() {
    let response = server()
        .post("/mcp")
        .message(&modern("tools/list", json!({})))
        .await;
    let result = &response.json()["result"];
    assert_eq!(
        (&result["ttlMs"], &result["cacheScope"]),
        (&json!(60_000), &json!("public"))
    );
}

#[tokio::test]
async fn a_cursor_that_nobody_gave_out_is_refused() {
    let list = legacy("tools/list", json!({"cursor": "x"}));
    let response = server().post("/mcp").message(&list).await;
    assert_snapshot!(response.rpc_error(), @"200 id=1 -32602 - the cursor is not known; the list of tools has one page");
}

#[tokio::test]
async fn read_me_returns_the_full_text_whatever_form_the_handshake_had() {
    let server = server();
    let handshake = server.post("/mcp/c/abc").message(&initialize()).await;
    for message in [
        call("read_me", json!({})),
        legacy("tools/call", json!({"name": "read_me"})),
        modern("tools/call", json!({"name": "read_me", "arguments": {}})),
    ] {
        let response = server
            .post("/mcp/c/abc?instructions=hint")
            .message(&message)
            .await;
        let result = &response.json()["result"];
        assert_eq!(result["content"][0]["text"], handshake.instructions());
        assert_eq!(result["isError"], false);
    }
}

#[tokio::test]
async fn fault_50_a_text_result_is_sent_once() {
    let response = server()
        .post("/mcp")
        .message(&call("read_me", json!({})))
        .await;
    let result = &response.json()["result"];
    assert_eq!(result["content"].as_array().unwrap().len(), 1);
    assert_eq!(result.get("structuredContent"), None);
}

#[tokio::test]
async fn read_me_says_what_it_cannot_do() {
    let server = server();
    let arguments = call("read_me", json!({"path": "/"}));
    let arguments = server.post("/mcp").message(&arguments).await;
    assert_snapshot!(arguments.json()["result"], @r#"{"content":[{"type":"text","text":"`read_me` takes no arguments; call it with `{}`"}],"isError":true}"#);

    let profile = server.post("/mcp").header("x-profile-id", "nobody");
    let profile = profile.message(&call("read_me", json!({}))).await;
    assert_snapshot!(profile.json()["result"], @r#"{"content":[{"type":"text","text":"profile `nobody` does not exist; known profiles: `default`, `writer`"}],"isError":true}"#);
}

#[tokio::test]
async fn an_unknown_tool_is_invalid_parameters_in_every_revision() {
    let server = server();
    for message in [
        call("bash", json!({})),
        modern("tools/call", json!({"name": "bash", "arguments": {}})),
    ] {
        let response = server.post("/mcp").message(&message).await;
        assert_eq!(
            response.rpc_error(),
            "200 id=1 -32602 - unknown tool `bash`; `tools/list` names those that exist"
        );
    }
}
