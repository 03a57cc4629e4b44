//! What JSON-RPC and HTTP ask of an endpoint: codes, statuses, media types.

use http::Method;
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{discover, initialize, legacy, modern, server};
use crate::support::{TestResponse, TestServer};

async fn post(server: &TestServer, body: &str) -> TestResponse {
    server
        .post("/mcp")
        .header("content-type", "application/json")
        .body(body.to_owned())
        .await
}

#[tokio::test]
async fn fault_24_each_fault_has_its_code() {
    let server = server();
    let answers = [
        ("broken JSON", "{\"jsonrpc\":"),
        ("not JSON at all", "hello"),
        ("nothing", ""),
        ("a number", "1"),
        ("no version", r#"{"id":1,"method":"ping"}"#),
        (
            "an old version",
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        ),
        ("no method", r#"{"jsonrpc":"2.0","id":"a"}"#),
        (
            "a method that is a number",
            r#"{"jsonrpc":"2.0","id":1,"method":2}"#,
        ),
        (
            "an unknown method",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/lst"}"#,
        ),
        (
            "a tool without a name",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#,
        ),
        (
            "arguments that are a list",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_me","arguments":[]}}"#,
        ),
        (
            "a handshake without a version",
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
        ),
        ("an answer", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
    ];
    let mut lines = Vec::new();
    for (what, body) in answers {
        let response = post(&server, body).await;
        lines.push(format!("{what}: {}", response.rpc_error()));
    }
    assert_snapshot!(lines.join("\n"), @r#"
    broken JSON: 400 id=null -32700 - the body is not JSON: EOF while parsing a value at line 1 column 11
    not JSON at all: 400 id=null -32700 - the body is not JSON: expected value at line 1 column 1
    nothing: 400 id=null -32700 - the body is not JSON: EOF while parsing a value at line 1 column 0
    a number: 400 id=null -32600 - the message is not a JSON object
    no version: 400 id=1 -32600 - the message needs `"jsonrpc": "2.0"`
    an old version: 400 id=1 -32600 - the message needs `"jsonrpc": "2.0"`
    no method: 400 id="a" -32600 - the message needs a `method`
    a method that is a number: 400 id=1 -32600 - the message needs a `method`
    an unknown method: 200 id=1 -32601 - unknown method `tools/lst`
    a tool without a name: 200 id=1 -32602 - the parameters of `tools/call` are not valid
    arguments that are a list: 200 id=1 -32602 - the parameters of `tools/call` are not valid
    a handshake without a version: 200 id=1 -32602 - the parameters of `initialize` are not valid
    an answer: 400 id=null -32600 - stateless server does not accept JSON-RPC responses
    "#);
}

#[tokio::test]
async fn fault_49_an_id_that_is_no_string_and_no_whole_number_is_an_error() {
    let server = server();
    for id in ["1.5", "null", "true", "[1]", "{}"] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let response = post(&server, &body).await;
        assert_eq!(
            response.rpc_error(),
            "400 id=null -32600 - the id of a request is a string or a whole number",
            "{id}"
        );
    }
    for id in [json!("a"), json!(0), json!(-1)] {
        let response = post(
            &server,
            &json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string(),
        )
        .await;
        assert_eq!(
            (&response.json()["id"], &response.json()["result"]),
            (&id, &json!({}))
        );
    }
}

#[tokio::test]
async fn in_the_latest_revision_an_unknown_method_is_not_found() {
    let response = server()
        .post("/mcp")
        .message(&modern("tools/lst", json!({})))
        .await;
    assert_eq!(
        response.rpc_error(),
        "404 id=1 -32601 - unknown method `tools/lst`"
    );
}

#[tokio::test]
async fn in_the_latest_revision_there_is_no_initialize() {
    let response = server()
        .post("/mcp")
        .message(&modern("initialize", json!({})))
        .await;
    assert_eq!(
        response.rpc_error(),
        "404 id=1 -32601 - unknown method `initialize`"
    );
}

#[tokio::test]
async fn fault_24_whoever_takes_json_or_an_event_stream_is_served() {
    let server = server();
    let accept = |value: &'static str| {
        server
            .post("/mcp")
            .header("accept", value)
            .message(&initialize())
    };
    let without = server.post("/mcp").message(&initialize()).await;
    for value in [
        "application/json",
        "*/*",
        "application/*",
        "text/html, */*;q=0.1",
        "application/json, text/event-stream",
        "text/event-stream, application/json;q=0.5",
    ] {
        let response = accept(value).await;
        assert_eq!(
            response.header("content-type"),
            "application/json",
            "{value}"
        );
        assert_eq!(response.body, without.body);
    }
    for value in [
        "text/event-stream",
        "text/*",
        "text/event-stream, application/json;q=0",
    ] {
        let response = accept(value).await;
        assert_eq!(
            response.header("content-type"),
            "text/event-stream",
            "{value}"
        );
        let event = response
            .text()
            .strip_prefix("event: message\ndata: ")
            .unwrap();
        assert_eq!(event.strip_suffix("\n\n").unwrap(), without.text());
    }
    let neither = accept("text/html").await;
    assert_snapshot!(neither.summary(), @"406 not_acceptable: answers here are `application/json` or `text/event-stream`; let `Accept` name one of them");
}

#[tokio::test]
async fn a_body_that_does_not_claim_to_be_json_is_refused() {
    let response = server()
        .post("/mcp")
        .header("content-type", "text/plain")
        .body(initialize().to_string())
        .await;
    assert_eq!(response.status, 415);
}

#[tokio::test]
async fn there_is_nothing_to_get_and_nothing_to_delete() {
    let server = server();
    for path in ["/mcp", "/mcp/", "/mcp/c/abc"] {
        for method in [Method::GET, Method::DELETE] {
            let response = server.request(method, path).await;
            assert_eq!(
                (response.status.as_u16(), response.header("allow")),
                (405, "POST"),
                "{path}"
            );
            assert!(
                response.text().contains("this is the MCP endpoint"),
                "{path}"
            );
        }
    }
}

#[tokio::test]
async fn a_notification_is_accepted_without_an_answer() {
    let message = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let response = server().post("/mcp").message(&message).await;
    assert_eq!((response.status.as_u16(), response.text()), (202, ""));
}

#[tokio::test]
async fn a_batch_is_answered_in_the_revision_that_has_it() {
    let ping = |id: Value| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let batch = json!([ping(json!(1)), note, ping(json!("b")), {"jsonrpc": "2.0", "id": 3, "method": "x"}, 4, initialize()]);
    let server = server();
    let response = server.post("/mcp").json(batch.clone()).await;
    assert_snapshot!(response.summary(), @r#"
    200
    [
      {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {}
      },
      {
        "jsonrpc": "2.0",
        "id": "b",
        "result": {}
      },
      {
        "jsonrpc": "2.0",
        "id": 3,
        "error": {
          "code": -32601,
          "message": "unknown method `x`"
        }
      },
      {
        "jsonrpc": "2.0",
        "id": null,
        "error": {
          "code": -32600,
          "message": "the message is not a JSON object"
        }
      },
      {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {
          "code": -32600,
          "message": "`initialize` is sent by itself, not in a batch"
        }
      }
    ]
    "#);

    let notes = server.post("/mcp").json(json!([note, note])).await;
    assert_eq!((notes.status.as_u16(), notes.text()), (202, ""));

    let empty = server.post("/mcp").json(json!([])).await;
    assert_eq!(
        empty.rpc_error(),
        "400 id=null -32600 - a batch holds 1 to 100 messages"
    );

    let many = server
        .post("/mcp")
        .json(json!(vec![ping(json!(1)); 101]))
        .await;
    assert_eq!(
        many.rpc_error(),
        "400 id=null -32600 - a batch holds 1 to 100 messages"
    );

    let later = server
        .post("/mcp")
        .header("mcp-protocol-version", "2025-06-18");
    let later = later.json(batch).await;
    assert_eq!(
        later.rpc_error(),
        "400 id=null -32600 - this revision of the protocol has no batches; send each message by itself"
    );
}

#[tokio::test]
async fn headers_that_contradict_the_message_are_refused() {
    let server = server();
    let mismatch = server
        .post("/mcp")
        .message(&discover())
        .header("mcp-method", "tools/list")
        .await;
    assert_eq!(
        (mismatch.status.as_u16(), &mismatch.json()["error"]["code"]),
        (400, &json!(-32020))
    );
}

#[tokio::test]
async fn an_unknown_revision_is_refused_in_json_rpc() {
    let response = server()
        .post("/mcp")
        .message(&legacy("ping", json!({})))
        .header("mcp-protocol-version", "1999-01-01")
        .await;
    assert_eq!(
        response.rpc_error(),
        "400 id=1 -32600 - Unsupported MCP-Protocol-Version: 1999-01-01"
    );
}

#[tokio::test]
async fn prompts_are_not_offered() {
    let server = server();
    for method in ["prompts/list", "prompts/get"] {
        let message = legacy(method, json!({"name": "system"}));
        let response = server.post("/mcp").message(&message).await;
        assert_eq!(response.json()["error"]["code"], -32601, "{method}");
    }
}
