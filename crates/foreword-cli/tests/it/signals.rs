//! What signals do to a running server.
#![cfg(unix)]

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::support::{Place, get};

/// A request that is not finished yet: its body is still to come.
fn unfinished_request(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n",
        PING.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The server asks for the body once it works on the request.
    let mut continued = [0; 25];
    stream.read_exact(&mut continued).unwrap();
    assert!(continued.starts_with(b"HTTP/1.1 100"));
    stream
}

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

#[test]
fn a_signal_ends_an_idle_server_with_exit_code_0() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = Place::new().serve(&[]);
        assert_eq!(get(&server.url("/health")).0, 200);
        server.signal(signal);
        assert_eq!(server.wait(), Some(0));
    }
}

#[test]
fn a_running_request_may_finish() {
    let mut server = Place::new().serve(&[]);
    let mut stream = unfinished_request(server.address());
    server.signal(Signal::TERM);
    server.wait_for_line("Stopping");
    stream.write_all(PING.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn a_request_that_never_ends_is_ended_after_ten_seconds() {
    let mut server = Place::new().serve(&[]);
    let _stream = unfinished_request(server.address());
    server.signal(Signal::TERM);
    let started = Instant::now();
    assert_eq!(server.wait(), Some(0));
    assert!(
        started.elapsed() >= Duration::from_secs(9),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn a_second_signal_ends_at_once() {
    let mut server = Place::new().serve(&[]);
    let _stream = unfinished_request(server.address());
    server.signal(Signal::TERM);
    server.wait_for_line("Stopping");
    let started = Instant::now();
    server.signal(Signal::INT);
    assert_eq!(server.wait(), Some(1));
    assert!(started.elapsed() < Duration::from_secs(9));
}

#[test]
fn hang_up_reads_the_configuration_again() {
    let place = Place::new();
    let mut server = place.serve(&[]);
    place.write("foreword.toml", "log.level = \"debug\"\nrender.ttl = 5\n");
    server.signal(Signal::HUP);
    let line = server.wait_for_line("Read the configuration again");
    assert!(
        line.contains("a restart is needed for render.ttl"),
        "{line}"
    );
    get(&server.url("/system-prompt"));
    server.wait_for_line("Answered 200"); // logged at the level `debug`

    place.write("foreword.toml", "log.levle = \"info\"\n");
    server.signal(Signal::HUP);
    let line = server.wait_for_line("stays as it is");
    assert!(line.contains("foreword.toml:1:5"), "{line}");
    assert_eq!(get(&server.url("/health")).0, 200);
}
