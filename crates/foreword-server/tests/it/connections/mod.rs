//! Connected MCP servers: their tools in every tier, and calls that are handed on.

mod calls;
mod lists;
mod peer;

use std::{collections::BTreeMap, time::Duration};

use foreword_server::{
    config::Secret,
    connections::{ConnectionConfig, ConnectionState, ConnectionStatus},
};
use serde_json::{Value, json};

use crate::{
    mcp::legacy,
    support::{TestResponse, TestServer, TestServerBuilder},
};
use peer::Peer;

/// How long something may take that happens soon.
const PATIENCE: Duration = Duration::from_secs(30);

fn connection(url: String) -> ConnectionConfig {
    ConnectionConfig {
        url: Some(url),
        refresh: 1,
        ..ConnectionConfig::default()
    }
}

/// A server that is connected to `peer` as `name`.
fn connected(name: &str, peer: &Peer) -> TestServerBuilder {
    with(name, connection(peer.url()))
}

fn with(name: &str, connection: ConnectionConfig) -> TestServerBuilder {
    TestServer::builder()
        .library("global_prompt: Be kind.")
        .config(|config| {
            config.connections.insert(name.to_owned(), connection);
        })
}

impl TestServer {
    async fn settled(self) -> Self {
        let settled = self.app.connections().settled();
        tokio::time::timeout(PATIENCE, settled)
            .await
            .expect("connections settle");
        self
    }

    fn status_of(&self, name: &str) -> ConnectionStatus {
        let statuses = self.app.connections().statuses();
        statuses
            .into_iter()
            .find(|status| status.name == name)
            .unwrap()
    }

    async fn prompt(&self) -> String {
        self.get("/system-prompt?chat_id=a").await.text().to_owned()
    }

    async fn tool_names(&self) -> Vec<String> {
        let listed = self
            .post("/mcp")
            .message(&legacy("tools/list", json!({})))
            .await;
        let listed = listed.json();
        let tools = listed["result"]["tools"].as_array().unwrap().iter();
        tools
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    async fn call(&self, tool: &str, arguments: Value) -> TestResponse {
        let params = json!({"name": tool, "arguments": arguments});
        let request = self.post("/mcp").header("x-chat-id", "a");
        let request = request.header("x-user-email", "ann@example.com");
        request.message(&legacy("tools/call", params)).await
    }
}

/// Waits until `holds` says so.
async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .unwrap_or_else(|_| panic!("waited in vain: {what}"));
}

fn texts(response: &TestResponse) -> String {
    let json = response.json();
    let content = json["result"]["content"]
        .as_array()
        .unwrap_or_else(|| panic!("{json}"))
        .iter();
    content
        .filter_map(|block| block["text"].as_str())
        .collect::<Vec<_>>()
        .join("\n")
}

#[tokio::test]
async fn what_is_written_wrong_is_refused_by_name_and_the_others_go_on() {
    let peer = Peer::start(&["one"]).await;
    let good = connection(peer.url());
    let written: BTreeMap<&str, ConnectionConfig> = BTreeMap::from([
        ("good", good.clone()),
        ("a__b", good.clone()),
        (
            "both",
            ConnectionConfig {
                command: Some("cat".to_owned()),
                ..good.clone()
            },
        ),
        ("neither", ConnectionConfig::default()),
        (
            "arguments",
            ConnectionConfig {
                args: vec!["-y".to_owned()],
                ..good.clone()
            },
        ),
        (
            "unset",
            connection("http://127.0.0.1:1/${NOT_SET}".to_owned()),
        ),
        (
            "unclosed",
            connection("http://127.0.0.1:1/${SET".to_owned()),
        ),
        ("scheme", connection("ftp://127.0.0.1/mcp".to_owned())),
        (
            "never",
            ConnectionConfig {
                timeout: 0,
                ..good.clone()
            },
        ),
        (
            "protocol",
            ConnectionConfig {
                headers: BTreeMap::from([("Mcp-Session-Id".to_owned(), Secret::new("x"))]),
                ..good.clone()
            },
        ),
        (
            "off",
            ConnectionConfig {
                disabled: true,
                ..good.clone()
            },
        ),
    ]);
    let server = TestServer::builder().config(|config| {
        for (name, connection) in written {
            config.connections.insert(name.to_owned(), connection);
        }
    });
    let server = server.start().settled().await;
    let statuses = server.app.connections().statuses().into_iter();
    let statuses: Vec<String> = statuses
        .map(|status| {
            let why = status.last_error.unwrap_or_default();
            format!("{} {} {why}", status.name, status.state.as_str())
                .trim()
                .to_owned()
        })
        .collect();
    insta::assert_snapshot!(statuses.join("\n"), @r"
    a__b refused the name has to be 1 to 32 letters, digits, `-` and `_`, without `__`
    arguments refused `args` goes with `command` only
    both refused it has both `command` and `url`: keep one of them
    good ready
    neither refused it needs either `command`, for a program, or `url`, for a server on the network
    never refused `timeout` has to be from 1 to 86400 seconds
    off disabled
    protocol refused `headers` cannot have `Mcp-Session-Id`: the protocol sets it by itself
    scheme refused `url` has to begin with `http://` or `https://`
    unclosed refused `url` has a `${` that is not closed
    unset refused the environment variable `NOT_SET` is not set
    ");
    assert_eq!(server.tool_names().await, ["read_me", "good__one"]);
}

#[tokio::test]
async fn a_server_that_is_down_is_named_and_nothing_waits_for_it() {
    let server = with("gone", connection("http://127.0.0.1:1/mcp".to_owned()));
    let server = server.start().settled().await;
    assert_eq!(server.status_of("gone").state, ConnectionState::Down);
    assert!(server.prompt().await.contains("Be kind."));
    let ready = server.get("/readyz").await;
    assert_eq!(ready.status, 200);
    let text = ready.text();
    assert!(text.contains("`gone` is down: cannot be reached"), "{text}");
    let metrics = server.get("/metrics").await;
    assert!(
        metrics
            .text()
            .contains("foreword_connections{state=\"down\"} 1")
    );
}
