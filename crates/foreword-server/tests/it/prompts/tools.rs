//! `/api/prompts/mcp-tools`.

use insta::assert_snapshot;
use serde_json::json;

use super::server;

#[tokio::test]
async fn without_connected_servers_there_is_no_tools_prompt() {
    assert_snapshot!(server().get("/api/prompts/mcp-tools").await.summary(), @"");
}

#[tokio::test]
async fn a_given_list_is_described_with_both_spellings_of_its_keys() {
    let server = server();
    let schema = json!({
        "type": "object",
        "properties": {"query": {"type": "string", "description": "What to look for"}},
        "required": ["query"],
    });
    let body = json!({"tools": [
        {"name": "web__search", "description": "Finds pages.", "inputSchema": schema, "server": "web",
         "annotations": {"readOnlyHint": true}},
        {"name": "files__grep", "description": "Finds lines.", "input_schema": schema, "server_name": "files"},
    ]});
    let response = server.post("/api/prompts/mcp-tools").json(body).await;
    assert_snapshot!(response.json()["mcp_tools_prompt"].as_str().unwrap(), @"");
    assert_snapshot!(response.json()["servers"], @"");
    assert_eq!(response.json()["tools_count"], 2);
}

#[tokio::test]
async fn tools_need_no_server() {
    let server = server();
    let body = json!({"tools": [{"name": "search"}]});
    let response = server.post("/api/prompts/mcp-tools").json(body).await;
    assert_snapshot!(response.summary(), @"");
}

#[tokio::test]
async fn an_empty_list_gives_an_empty_prompt() {
    let server = server();
    let response = server
        .post("/api/prompts/mcp-tools")
        .json(json!({"tools": []}))
        .await;
    assert_snapshot!(response.summary(), @"");
}

#[tokio::test]
async fn every_fault_of_a_list_is_told() {
    let server = server();
    let body = json!({"tools": [{"nam": "x"}, 3, {"name": "a", "server": "s", "server_name": "s"}], "tool": []});
    assert_snapshot!(server.post("/api/prompts/mcp-tools").json(body).await.summary(), @"");
    assert_snapshot!(server.post("/api/prompts/mcp-tools").json(json!({})).await.summary(), @"");
    assert_snapshot!(server.post("/api/prompts/mcp-tools").json(json!({"tools": {}})).await.summary(), @"");
}
