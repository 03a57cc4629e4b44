//! `/api/prompts/mcp-tools`.

use insta::assert_snapshot;
use serde_json::json;

use super::server;

#[tokio::test]
async fn without_connected_servers_there_is_no_tools_prompt() {
    assert_snapshot!(server().get("/api/prompts/mcp-tools").await.summary(), @r#"
    200
    {
      "mcp_tools_prompt": "",
      "tools_count": 0,
      "servers": [],
      "errors": []
    }
    "#);
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
    assert_snapshot!(response.json()["mcp_tools_prompt"].as_str().unwrap(), @r"
    ## Tools

    You can call the following tools, each by the name in front of it.

    ### files

    - `files__grep`: Finds lines.
      - `query` (string, required): What to look for

    ### web

    - `web__search`: Finds pages.
      - `query` (string, required): What to look for
    ");
    assert_snapshot!(response.json()["servers"], @r#"[{"name":"files","tools":1},{"name":"web","tools":1}]"#);
    assert_eq!(response.json()["tools_count"], 2);
}

#[tokio::test]
async fn tools_need_no_server() {
    let server = server();
    let body = json!({"tools": [{"name": "search"}]});
    let response = server.post("/api/prompts/mcp-tools").json(body).await;
    assert_snapshot!(response.summary(), @r###"
    200
    {
      "mcp_tools_prompt": "## Tools\n\nYou can call the following tools, each by the name in front of it.\n\n- `search`",
      "tools_count": 1,
      "servers": []
    }
    "###);
}

#[tokio::test]
async fn an_empty_list_gives_an_empty_prompt() {
    let server = server();
    let response = server
        .post("/api/prompts/mcp-tools")
        .json(json!({"tools": []}))
        .await;
    assert_snapshot!(response.summary(), @r#"
    200
    {
      "mcp_tools_prompt": "",
      "tools_count": 0,
      "servers": []
    }
    "#);
}

#[tokio::test]
async fn every_fault_of_a_list_is_told() {
    let server = server();
    let body = json!({"tools": [{"nam": "x"}, 3, {"name": "a", "server": "s", "server_name": "s"}], "tool": []});
    assert_snapshot!(server.post("/api/prompts/mcp-tools").json(body).await.summary(), @r#"
    422 invalid: the request has 5 faults, see `errors`
      "/tools/0/name" `name` is missing; give a text
      "/tools/0/nam" unknown field `nam`; did you mean `name`?
      "/tools/1" an entry of `tools` must be an object, not `3`
      "/tools/2/server_name" `server` and `server_name` say the same thing; leave one of them out
      "/tool" unknown field `tool`; did you mean `tools`?
    "#);
    assert_snapshot!(server.post("/api/prompts/mcp-tools").json(json!({})).await.summary(), @r#"
    422 invalid: `tools` is missing; give a list of tools, which may be empty
      "/tools" `tools` is missing; give a list of tools, which may be empty
    "#);
    assert_snapshot!(server.post("/api/prompts/mcp-tools").json(json!({"tools": {}})).await.summary(), @r#"
    422 invalid: `tools` must be a list of tools, not an object
      "/tools" `tools` must be a list of tools, not an object
    "#);
}

#[tokio::test]
async fn of_a_great_many_faults_the_first_hundred_are_told() {
    let server = server();
    let body = json!({"tools": vec![1; 100_000]});
    let response = server.post("/api/prompts/mcp-tools").json(body).await;
    let faults = response.json()["errors"].as_array().unwrap().clone();
    assert_eq!(faults.len(), 101);
    assert_snapshot!(faults[100]["detail"].as_str().unwrap(), @"there are more than these 100 faults; mend these first");
}
