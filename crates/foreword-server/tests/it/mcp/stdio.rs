//! MCP on stdin and stdout: the same handler for one session.

use foreword_server::{StdioSession, serve_stdio};
use insta::assert_snapshot;
use rmcp::{
    model::ClientConfig,
    service::{ClientLifecycleMode, serve_client_with_lifecycle},
};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split,
};

use super::{discover, initialize, legacy, modern, server};
use crate::support::TestServer;

/// A client that writes lines and reads lines.
struct Lines {
    input: WriteHalf<DuplexStream>,
    output: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
}

impl Lines {
    fn connect(server: &TestServer, session: StdioSession) -> Self {
        let (ours, theirs) = duplex(1 << 16);
        let (output, input) = split(ours);
        let (their_input, their_output) = split(theirs);
        tokio::spawn(serve_stdio(
            server.app.clone(),
            session,
            their_input,
            their_output,
        ));
        Self {
            input,
            output: BufReader::new(output).lines(),
        }
    }

    async fn send(&mut self, message: &Value) {
        self.input
            .write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
    }

    async fn ask(&mut self, message: &Value) -> Value {
        self.send(message).await;
        let line = self.output.next_line().await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

fn session() -> StdioSession {
    StdioSession {
        chat_id: Some("from-command-line".to_owned()),
        user_email: Some("ann@example.com".to_owned()),
        profile_id: None,
    }
}

#[tokio::test]
async fn the_session_of_the_command_line_gets_its_prompt() {
    let server = server();
    let mut client = Lines::connect(&server, session());
    let answer = client.ask(&initialize()).await;
    let instructions = answer["result"]["instructions"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(instructions.contains("This is from-command-line of ann@example.com."));
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .await;
    let called = client
        .ask(&legacy("tools/call", json!({"name": "read_me"})))
        .await;
    assert_eq!(called["result"]["content"][0]["text"], instructions);
}

#[tokio::test]
async fn meta_of_a_request_beats_the_command_line() {
    let server = server();
    let mut client = Lines::connect(&server, session());
    let plain = client.ask(&discover()).await;
    let plain = plain["result"]["instructions"].as_str().unwrap().to_owned();
    assert!(plain.contains("This is from-command-line of ann@example.com."));
    let meta = json!({"foreword/chat_id": "from-meta", "foreword/profile_id": "writer"});
    let named = client
        .ask(&modern("server/discover", json!({"_meta": meta})))
        .await;
    let named = named["result"]["instructions"].as_str().unwrap();
    assert!(named.contains("This is from-meta of ann@example.com."));
    assert!(named.contains("You write."));
}

#[tokio::test]
async fn an_invalid_chat_id_in_meta_is_an_error_there_too() {
    let server = server();
    let mut client = Lines::connect(&server, session());
    let meta = json!({"foreword/chat_id": "a\nb"});
    let answer = client
        .ask(&modern("server/discover", json!({"_meta": meta})))
        .await;
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["data"]["code"]),
        (&json!(-32602), &json!("invalid_chat_id"))
    );
}

#[tokio::test]
async fn who_says_all_at_once_and_hangs_up_still_gets_the_answers() {
    let server = server();
    let mut client = Lines::connect(&server, session());
    client.send(&initialize()).await;
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    client.send(&initialized).await;
    client.send(&legacy("tools/list", json!({}))).await;
    client.input.shutdown().await.unwrap();
    let mut answers = 0;
    while client.output.next_line().await.unwrap().is_some() {
        answers += 1;
    }
    assert_eq!(answers, 2);
}

#[tokio::test]
async fn who_hangs_up_before_saying_anything_is_no_error() {
    let server = server();
    let end = serve_stdio(
        server.app.clone(),
        session(),
        tokio::io::empty(),
        tokio::io::sink(),
    );
    assert!(end.await.is_ok());
}

#[tokio::test]
async fn a_handshake_that_fails_ends_it_and_says_why() {
    let server = server();
    let session = StdioSession {
        profile_id: Some("nobody".to_owned()),
        ..session()
    };
    let hello = std::io::Cursor::new(format!("{}\n", initialize()).into_bytes());
    let end = serve_stdio(server.app.clone(), session, hello, tokio::io::sink());
    assert_snapshot!(
        end.await.unwrap_err(),
        @"the handshake failed: profile `nobody` does not exist; known profiles: `default`, `writer`"
    );
}

#[tokio::test]
async fn rmcps_client_talks_over_stdio() {
    let server = server();
    let (ours, theirs) = duplex(1 << 16);
    let (their_input, their_output) = split(theirs);
    let running = tokio::spawn(serve_stdio(
        server.app.clone(),
        session(),
        their_input,
        their_output,
    ));
    let client = serve_client_with_lifecycle(
        ClientConfig::default(),
        split(ours),
        ClientLifecycleMode::Initialize,
    )
    .await
    .unwrap();
    let instructions = client.peer_info().unwrap().instructions.clone().unwrap();
    assert!(instructions.contains("This is from-command-line of ann@example.com."));
    client.cancel().await.unwrap();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn fault_11_a_client_on_stdio_hears_of_an_upload() {
    let server = server();
    let mut client = Lines::connect(&server, session());
    let answer = client.ask(&initialize()).await;
    let resources = &answer["result"]["capabilities"]["resources"];
    assert_eq!(resources, &json!({"listChanged": true}));
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .await;
    client.ask(&legacy("ping", json!({}))).await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let path = "/api/uploads/from-command-line/a.txt";
    server.put(path).body("text").await;
    let line = client.output.next_line();
    let line = tokio::time::timeout(std::time::Duration::from_secs(20), line).await;
    let heard: Value = serde_json::from_str(&line.unwrap().unwrap().unwrap()).unwrap();
    assert_eq!(heard["method"], "notifications/resources/list_changed");
    let listed = client.ask(&legacy("resources/list", json!({}))).await;
    let resources = listed["result"]["resources"].as_array().unwrap();
    assert_eq!(resources.len(), 1);
}
