//! Calls that are handed on, and what comes back.

use std::collections::BTreeMap;

use foreword_server::{config::Secret, connections::ConnectionConfig};
use serde_json::{Value, json};

use super::{connected, connection, peer::Peer, texts, with};
use crate::mcp::{legacy, modern};

#[tokio::test]
async fn arguments_go_there_and_the_result_comes_back_as_it_is() {
    let peer = Peer::start(&["echo", "fail", "refuse"]).await;
    let server = connected("peer", &peer).start().settled().await;
    let arguments = json!({"text": "ä\n", "number": 9_007_199_254_740_993_i64, "list": [null, {}]});
    let result = server.call("peer__echo", arguments.clone()).await.json()["result"].clone();
    assert_eq!(
        result,
        json!({
            "content": [
                {"type": "text", "text": "echo"},
                {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"},
            ],
            "structuredContent": arguments,
            "isError": false,
        })
    );
    let failed = server.call("peer__fail", json!({})).await.json()["result"].clone();
    assert_eq!(failed["isError"], true);
    assert_eq!(failed["content"][0]["text"], "it failed");
    let refused = server.call("peer__refuse", json!({})).await.json()["error"].clone();
    assert_eq!(
        refused,
        json!({"code": -32099, "message": "not that one", "data": {"why": "so"}})
    );
    let message = modern("tools/call", json!({"name": "peer__echo", "arguments": {}}));
    let newest = server
        .post("/mcp")
        .header("x-chat-id", "a")
        .message(&message)
        .await;
    assert_eq!(newest.json()["result"]["resultType"], "complete");
    let metrics = server.get("/metrics").await;
    let counted = "foreword_tool_calls_total{tool=\"peer__*\",outcome=\"success\"} 2";
    assert!(metrics.text().contains(counted), "{}", metrics.text());
}

#[tokio::test]
async fn progress_comes_back_in_order_under_the_callers_token() {
    let peer = Peer::start(&["steps"]).await;
    let server = connected("peer", &peer).start().settled().await;
    let params = json!({"name": "peer__steps", "_meta": {"progressToken": "mine"}});
    let request = server
        .post("/mcp")
        .header("accept", "application/json, text/event-stream");
    let answer = request.message(&legacy("tools/call", params)).await;
    let events = answer
        .text()
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    let messages: Vec<Value> = events
        .filter_map(|data| serde_json::from_str(data).ok())
        .collect();
    let steps = messages
        .iter()
        .filter(|message| message["method"] == "notifications/progress");
    let steps: Vec<_> = steps
        .map(|step| {
            (
                step["params"]["progressToken"].clone(),
                step["params"]["progress"].as_f64(),
            )
        })
        .collect();
    let expected = [1.0, 2.0, 3.0].map(|step| (json!("mine"), Some(step)));
    assert_eq!(steps, expected);
}

#[tokio::test]
async fn who_hangs_up_cancels_the_call_at_the_server() {
    let peer = Peer::start(&["wait"]).await;
    let server = connected("peer", &peer).start().settled().await;
    let calling = server.call("peer__wait", json!({}));
    tokio::select! {
        _ = calling => panic!("it does not answer by itself"),
        () = peer.call_begun() => {}
    }
    let cancelled = tokio::time::timeout(super::PATIENCE, peer.call_cancelled());
    cancelled.await.expect("the server hears of it");
}

#[tokio::test]
async fn a_call_that_takes_too_long_ends_with_the_name_of_the_server() {
    let peer = Peer::start(&["wait"]).await;
    let config = ConnectionConfig {
        timeout: 1,
        ..connection(peer.url())
    };
    let server = with("peer", config).start().settled().await;
    let late = server.call("peer__wait", json!({})).await;
    assert_eq!(
        texts(&late),
        "the MCP server `peer` did not answer within 1 s; the call of `wait` may or may not have had its effect"
    );
    assert_eq!(late.json()["result"]["isError"], true);
    let cancelled = tokio::time::timeout(super::PATIENCE, peer.call_cancelled());
    cancelled.await.expect("the server hears of it");
}

#[tokio::test]
async fn headers_of_a_session_go_with_its_calls_only() {
    let peer = Peer::start(&["echo"]).await;
    let headers = [
        ("X-Fixed", "Bearer ${SET}"),
        ("X-Who", "{user_email}; in {chat_id}"),
    ];
    let config = ConnectionConfig {
        headers: headers
            .map(|(name, value)| (name.to_owned(), Secret::new(value)))
            .into_iter()
            .collect::<BTreeMap<_, _>>(),
        ..connection(peer.url())
    };
    let server = with("peer", config).start().settled().await;
    let listed = peer.headers_of("tools/list");
    assert_eq!(listed["x-fixed"], "Bearer from the environment");
    assert!(!listed.contains_key("x-who"));
    server.call("peer__echo", json!({})).await;
    let called = peer.headers_of("tools/call");
    assert_eq!(called["x-fixed"], "Bearer from the environment");
    assert_eq!(called["x-who"], "ann@example.com; in a");
    // What a user calls itself cannot add to the header.
    let request = server.post("/mcp").header("x-chat-id", "a,b;c=\"d");
    let request = request.header("x-user-email", "o'neil,x@example.com");
    let params = json!({"name": "peer__echo"});
    request.message(&legacy("tools/call", params.clone())).await;
    let called = peer.headers_of("tools/call");
    assert_eq!(
        called["x-who"],
        "o%27neil%2Cx@example.com; in a%2Cb%3Bc%3D%22d"
    );
    // Without a user there is nothing to say.
    let request = server.post("/mcp").header("x-chat-id", "a");
    request.message(&legacy("tools/call", params)).await;
    assert!(!peer.headers_of("tools/call").contains_key("x-who"));
}

#[tokio::test]
async fn whose_profile_or_address_is_not_named_may_not_call() {
    let peer = Peer::start(&["echo"]).await;
    let config = ConnectionConfig {
        profiles: vec!["writer".to_owned()],
        users: vec!["*@example.com".to_owned()],
        ..connection(peer.url())
    };
    let server = with("peer", config)
        .library(crate::mcp::LIBRARY)
        .start()
        .settled()
        .await;
    let call = |profile: &'static str, email: &'static str| {
        let request = server.post("/mcp").header("x-chat-id", "default");
        let request = request
            .header("x-profile-id", profile)
            .header("x-user-email", email);
        request.message(&legacy("tools/call", json!({"name": "peer__echo"})))
    };
    let told = async |profile, email| texts(&call(profile, email).await);
    assert_eq!(told("writer", "ann@example.com").await, "echo");
    assert_eq!(
        told("default", "ann@example.com").await,
        "the tool `echo` of the MCP server `peer` is not for this session: the profile in use (`default`) may not call it"
    );
    assert_eq!(
        told("", "ann@example.com").await,
        "the tool `echo` of the MCP server `peer` is not for this session: the profile in use (`default`) may not call it"
    );
    assert_eq!(
        told("writer", "bob@elsewhere.test").await,
        "the tool `echo` of the MCP server `peer` is not for this session: this user may not call it"
    );
    assert_eq!(
        told("writer", "").await,
        "the tool `echo` of the MCP server `peer` is not for this session: only some users may call it, and the request names none"
    );
}
