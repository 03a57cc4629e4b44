//! What can be seen of requests: ids and counts.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use insta::assert_snapshot;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::{filter::LevelFilter, fmt::MakeWriter};

use crate::support::TestServer;

#[tokio::test]
async fn every_answer_has_a_request_id() {
    let server = TestServer::with_keys();
    let mut ids = Vec::new();
    for path in ["/health", "/mcp-info", "/nowhere"] {
        ids.push(server.get(path).await.header("x-request-id").to_owned());
    }
    assert_snapshot!(ids.join(" "), @"19acbc29-1 19acbc29-2 19acbc29-3");
}

#[tokio::test]
async fn a_callers_request_id_is_kept_if_it_is_harmless() {
    let server = TestServer::new();
    let answered = async |id: &'static [u8]| {
        let id = http::HeaderValue::from_bytes(id).unwrap();
        let response = server.get("/health").header("x-request-id", id).await;
        response.header("x-request-id").to_owned()
    };
    assert_eq!(answered(b"abc-123_x.y:z").await, "abc-123_x.y:z");
    for harmful in [&b""[..], b"a b", b"{\"a\":1}", b"caf\xc3\xa9", &[b'a'; 129]] {
        let id = answered(harmful).await;
        assert!(id.len() > 8 && id.as_bytes() != harmful, "{id}");
    }
}

#[tokio::test]
async fn requests_are_counted_by_route_and_status() {
    let server = TestServer::with_keys();
    server.get("/health").await;
    server.get("/mcp-info").await;
    server.get("/mcp-info?secret=1").api().await;
    server.post("/mcp/c/private-chat").await;
    server.get("/mcp/c/private-chat").await;
    server.get("/private/path").await;
    server.get("/private/path").await;
    let metrics = server.get("/metrics").api().await;
    assert_eq!(
        metrics.header("content-type"),
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    let mut counted: Vec<&str> = metrics
        .text()
        .lines()
        .filter(|line| line.starts_with("foreword_http_requests_total"))
        .collect();
    counted.sort_unstable();
    assert_snapshot!(counted.join("\n"), @r#"
    foreword_http_requests_total{route="/health",status="200"} 1
    foreword_http_requests_total{route="/mcp-info",status="200"} 1
    foreword_http_requests_total{route="/mcp-info",status="401"} 1
    foreword_http_requests_total{route="/mcp/c/{chat_id}",status="401"} 1
    foreword_http_requests_total{route="/mcp/c/{chat_id}",status="405"} 1
    foreword_http_requests_total{route="none",status="404"} 2
    "#);
}

#[tokio::test]
async fn renders_and_deliveries_are_counted() {
    let server = TestServer::new();
    for chat in ["a", "a", "b"] {
        server.get("/system-prompt").header("x-chat-id", chat).await;
    }
    let metrics = server.get("/metrics").await;
    let counted = |name: &str| {
        let lines = metrics.text().lines().filter(|line| line.starts_with(name));
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_snapshot!(counted("foreword_renders_total"), @r#"foreword_renders_total{outcome="complete"} 2"#);
    assert_snapshot!(counted("foreword_render_cache_hits_total"), @"foreword_render_cache_hits_total 1");
    assert_snapshot!(counted("foreword_deliveries_total"), @r#"foreword_deliveries_total{tier="6"} 3"#);
    assert!(metrics.text().ends_with("# EOF\n"));
}

#[tokio::test]
async fn the_log_has_routes_and_request_ids_and_no_secrets() {
    let log = Log::default();
    let _guard = log.capture();
    let server = TestServer::with_keys();
    server
        .post("/mcp/c/secret-chat?instructions=secret-query")
        .key("secret-key")
        .header("x-user-email", "secret@example.org")
        .header("x-request-id", "the-id")
        .json(serde_json::json!({"secret": "body"}))
        .await;
    let log = log.text();
    assert!(
        log.contains("/mcp/c/{chat_id}") && log.contains("the-id"),
        "{log}"
    );
    assert!(log.contains("Answered 401"), "{log}");
    assert!(!log.contains("secret"), "{log}");
}

#[tokio::test]
async fn a_template_is_warned_about_once_per_header() {
    let log = Log::default();
    let _guard = log.capture();
    let server = TestServer::new();
    for _ in 0..3 {
        server
            .get("/system-prompt")
            .header("x-chat-id", "{{CHAT_ID}}")
            .header("x-user-email", "{{USER_EMAIL}}")
            .await;
    }
    let log = log.text();
    let warnings: Vec<&str> = log
        .lines()
        .filter_map(|line| line.split_once("WARN").map(|(_, warning)| warning))
        .filter_map(|warning| warning.split_once("reader: ").map(|(_, message)| message))
        .collect();
    assert_snapshot!(warnings.join("\n"), @r#"
    The value of `x-chat-id` still holds a template, so it counts as absent: the client does not fill it in source="x-chat-id"
    The value of `x-user-email` still holds a template, so it counts as absent: the client does not fill it in source="x-user-email"
    "#);
}

/// What is logged on this thread, down to the finest level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn capture(&self) -> DefaultGuard {
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .with_ansi(false)
            .with_writer(self.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
