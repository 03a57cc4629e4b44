//! Traces arrive at a real HTTP collector, and hold nothing that they should not.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::mpsc::{Receiver, channel},
    thread,
};

use crate::support::{PATIENCE, Place};

/// What the collector was sent.
struct Export {
    head: String,
    body: Vec<u8>,
}

/// A collector that takes everything.
fn collector() -> (String, Receiver<Export>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, exports) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let sender = sender.clone();
            thread::spawn(move || {
                let mut reader = BufReader::new(stream);
                loop {
                    let mut head = String::new();
                    while reader.read_line(&mut head).is_ok_and(|length| length > 2) {}
                    let Some(length) = head
                        .lines()
                        .filter_map(|line| line.split_once(':'))
                        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                        .and_then(|(_, value)| value.trim().parse().ok())
                    else {
                        return;
                    };
                    let mut body = vec![0; length];
                    reader.read_exact(&mut body).unwrap();
                    let _ = sender.send(Export { head, body });
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
                    reader.get_mut().write_all(answer).unwrap();
                }
            });
        }
    });
    (address, exports)
}

#[cfg(unix)]
#[test]
fn traces_are_sent_to_a_collector_and_hold_no_query_path_or_prompt() {
    let (address, exports) = collector();
    let place = Place::new().with("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("http://{address}"));
    let mut server = place.serve(&[]);
    let client = reqwest::blocking::Client::new();
    for path in [
        "/system-prompt?chat_id=hidden-chat&user_email=hidden@example.com",
        "/nowhere/hidden-path",
    ] {
        client.get(server.url(path)).send().unwrap();
    }
    client
        .post(server.url("/mcp/c/hidden-chat"))
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .body(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hidden-tool","arguments":{"a":"hidden"}}}"#)
        .send()
        .unwrap();
    server.signal(rustix::process::Signal::TERM); // what waits is sent at the end
    assert_eq!(server.wait(), Some(0));

    let first = exports.recv_timeout(PATIENCE).unwrap();
    assert!(
        first.head.starts_with("POST /v1/traces HTTP/1.1"),
        "{}",
        first.head
    );
    assert!(
        first.head.contains("application/x-protobuf"),
        "{}",
        first.head
    );
    let mut sent = first.body;
    for export in exports.try_iter() {
        sent.extend(export.body);
    }
    let holds = |text: &str| {
        sent.windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    for expected in [
        "service.name",
        "foreword",
        "request",
        "http.route",
        "/system-prompt",
    ] {
        assert!(holds(expected), "no `{expected}`");
    }
    for secret in ["hidden", "example.com", "nowhere", "You work for"] {
        assert!(!holds(secret), "holds `{secret}`");
    }
}

#[test]
fn a_collector_behind_tls_is_refused_rather_than_never_reached() {
    let place = Place::new().with("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector.example");
    let ran = place.run(&["--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("without TLS only"), "{ran}");
}
