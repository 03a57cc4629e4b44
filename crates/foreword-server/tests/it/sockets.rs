//! Real connections: what a single client can hold, and how the server stops.

use std::{net::SocketAddr, time::Duration};

use insta::assert_snapshot;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

use crate::support::{Listening, TestServer};

/// A server that waits no longer than a second for a request.
fn impatient() -> TestServer {
    TestServer::builder()
        .config(|config| config.http.timeout_seconds = 1)
        .start()
}

/// A connection, spoken by hand.
struct Raw(TcpStream);

impl Raw {
    async fn connect(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).await.unwrap())
    }

    async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Everything until the server closes the connection.
    async fn receive_all(&mut self) -> String {
        let mut received = Vec::new();
        // A reset after the last byte is as good as a close.
        let _ = self.0.read_to_end(&mut received).await;
        String::from_utf8(received).unwrap()
    }

    /// One answer with an empty or short body.
    async fn receive_some(&mut self) -> String {
        let mut buffer = vec![0; 64 << 10];
        let length = self.0.read(&mut buffer).await.unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }
}

const GET_HEALTH: &str = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";

async fn stop(server: Listening) -> Duration {
    let started = Instant::now();
    server.shutdown.cancel();
    server.served.await.unwrap();
    started.elapsed()
}

#[tokio::test]
async fn a_client_that_sends_a_byte_now_and_then_is_cut() {
    let server = impatient().listen().await;
    let mut client = Raw::connect(server.address).await;
    let started = Instant::now();
    let sending = async {
        for byte in GET_HEALTH.bytes().cycle() {
            if client.0.write_all(&[byte]).await.is_err() {
                return;
            }
            sleep(Duration::from_millis(200)).await;
        }
    };
    timeout(Duration::from_secs(20), sending).await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_body_that_comes_too_slowly_is_answered_and_cut() {
    let server = impatient().listen().await;
    let mut client = Raw::connect(server.address).await;
    client
        .send(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
        )
        .await;
    let answer = timeout(Duration::from_secs(20), client.receive_all())
        .await
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains(r#""code":"request_timed_out""#), "{answer}");
}

#[tokio::test]
async fn a_probe_is_answered_without_the_body_that_somebody_sends_along() {
    let server = TestServer::with_keys().listen().await;
    let mut client = Raw::connect(server.address).await;
    client
        .send("GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n{")
        .await;
    let answer = timeout(Duration::from_secs(20), client.receive_some()).await;
    let answer = answer.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let server = TestServer::new().listen().await;
    let mut client = Raw::connect(server.address).await;
    let value = "a".repeat(200 << 10);
    client
        .send(format!(
            "GET /health HTTP/1.1\r\nHost: localhost\r\nX-Large: {value}\r\n\r\n"
        ))
        .await;
    let answer = timeout(Duration::from_secs(20), client.receive_some()).await;
    assert!(answer.unwrap().starts_with("HTTP/1.1 431 "));
}

#[tokio::test]
async fn a_body_over_the_limit_is_answered_though_it_is_sent_whole() {
    let server = TestServer::builder()
        .config(|config| config.http.mcp_max_body = 1 << 20)
        .start()
        .listen()
        .await;
    let response = reqwest::Client::new()
        .post(format!("http://{}/mcp", server.address))
        .header("content-type", "application/json")
        .body(vec![b' '; 3 << 20])
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 413);
    assert_snapshot!(response.text().await.unwrap(), @r#"{"type":"about:blank","title":"Payload Too Large","status":413,"detail":"the body is larger than the 1048576 bytes that are read here","code":"body_too_large"}"#);
}

#[tokio::test]
async fn further_connections_wait_until_there_is_room() {
    let server = TestServer::builder()
        .config(|config| config.http.max_connections = 1)
        .start()
        .listen()
        .await;
    let mut first = Raw::connect(server.address).await;
    first.send(GET_HEALTH).await;
    assert!(first.receive_some().await.starts_with("HTTP/1.1 200 OK"));
    let mut second = Raw::connect(server.address).await;
    second.send(GET_HEALTH).await;
    let unanswered = timeout(Duration::from_millis(200), second.receive_some()).await;
    assert!(unanswered.is_err());
    drop(first);
    let answer = timeout(Duration::from_secs(20), second.receive_some())
        .await
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}

#[tokio::test]
async fn stopping_closes_idle_connections_at_once_and_accepts_no_more() {
    let server = TestServer::new().listen().await;
    let address = server.address;
    let mut idle = Raw::connect(address).await;
    idle.send(GET_HEALTH).await;
    idle.receive_some().await;
    assert!(stop(server).await < Duration::from_secs(5));
    assert_eq!(idle.receive_all().await, "");
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_request_that_is_being_sent_is_answered_before_the_server_stops() {
    let server = TestServer::new().listen().await;
    let mut client = Raw::connect(server.address).await;
    client
        .send("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        .await;
    // The server has begun with the request when it asks for the body.
    assert!(
        client
            .receive_some()
            .await
            .starts_with("HTTP/1.1 100 Continue")
    );
    server.shutdown.cancel();
    sleep(Duration::from_millis(100)).await;
    assert!(!server.served.is_finished());
    client.send("{}").await;
    let answer = client.receive_all().await;
    assert!(answer.starts_with("HTTP/1.1 415 "), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    timeout(Duration::from_secs(5), server.served)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answers_is_cut() {
    const ASKED: usize = 16;
    const PROMPT: usize = 4 << 20;
    let server = TestServer::builder()
        .config(|config| config.http.timeout_seconds = 1)
        .library(&format!(
            "global_prompt:\n  content: {}\n",
            "a".repeat(PROMPT)
        ))
        .start()
        .listen()
        .await;
    let mut client = Raw::connect(server.address).await;
    let request = "GET /system-prompt HTTP/1.1\r\nHost: localhost\r\n\r\n";
    client.send(request.repeat(ASKED)).await;
    // Nobody reads, so the answers fill the buffers of the system, then the server waits, and then no longer.
    sleep(Duration::from_secs(4)).await;
    let received = client.receive_all().await.len();
    assert!(received < ASKED * PROMPT, "{received}");
}

#[tokio::test]
async fn an_answer_without_an_end_ends_when_the_server_stops() {
    let server = TestServer::new().listen().await;
    let mut client = Raw::connect(server.address).await;
    client
        .send("GET /api/prompts/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    assert!(client.receive_some().await.starts_with("HTTP/1.1 200 OK"));
    assert!(stop(server).await < Duration::from_secs(5));
}

#[tokio::test]
async fn what_does_not_finish_within_ten_seconds_is_cut() {
    let server = TestServer::new().listen().await;
    let mut client = Raw::connect(server.address).await;
    client.send("GET /health HTTP/1.1\r\nHost: local").await;
    // One answered request later, the half request has surely been read.
    let mut other = Raw::connect(server.address).await;
    other.send(GET_HEALTH).await;
    other.receive_some().await;
    let stopping = stop(server).await;
    assert!(stopping >= Duration::from_secs(9), "{stopping:?}");
    assert!(stopping < Duration::from_secs(15), "{stopping:?}");
    assert_eq!(client.receive_all().await, "");
}
