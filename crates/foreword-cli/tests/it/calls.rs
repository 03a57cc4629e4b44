//! Calls that take long: what a client hears meanwhile, and how it ends them.

use std::{fs, io::Write, net::TcpStream, thread, time::Duration};

use reqwest::blocking::{Client, Response};
use serde_json::{Value, json};

use crate::{
    chat::{Chat, read, server},
    support::{PATIENCE, eventually},
};

#[test]
fn fault_45_a_client_that_hangs_up_ends_its_command() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    chat.bash("true");
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "bash_tool", "arguments": { "command": "while true; do date +%s%N > beat.txt; sleep 0.05; done" } },
    })
    .to_string();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-chat-id: c\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    eventually("the command has begun", PATIENCE, || {
        (!chat
            .bash("cat beat.txt 2>/dev/null || true")
            .starts_with("[no"))
        .then_some(())
    });
    drop(stream);
    eventually("the command has ended", PATIENCE, || {
        (chat.bash("cat beat.txt; sleep 0.3") == chat.bash("cat beat.txt")).then_some(())
    });
}

#[test]
fn progress_is_told_to_a_client_that_asks_for_it() {
    let (_place, server) = server();
    let message = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": "bash_tool", "arguments": { "command": "sleep 5; echo done" },
            "_meta": { "progressToken": "p" },
        },
    });
    let request = Client::new()
        .post(server.url("/mcp"))
        .header("x-chat-id", "c");
    let request = request.header("accept", "application/json, text/event-stream");
    let response = request.json(&message).send().unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = response.text().unwrap();
    let told = text.matches("notifications/progress").count();
    assert!((1..=3).contains(&told), "{text}");
    assert!(
        text.contains(r#""progressToken":"p""#) && text.contains("done"),
        "{text}"
    );
}

#[test]
fn whoever_takes_only_json_gets_no_stream_though_it_asked_for_progress() {
    let (_place, server) = server();
    let mut message = bash(json!(1), "sleep 3; echo done");
    message["params"]["_meta"] = json!({ "progressToken": "p" });
    let response = post(
        &server.url("/mcp"),
        &[("accept", "application/json")],
        &message,
    );
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(answer(response), "done");
}

#[test]
fn an_answer_that_takes_over_ten_seconds_is_a_stream_for_whoever_names_streams() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let message = &bash(json!(1), "sleep 10.5; echo done");
    thread::scope(|scope| {
        let both = [("accept", "application/json, text/event-stream")];
        let streamed = scope.spawn(move || post(url, &both, message));
        let whole = scope.spawn(|| post(url, &[("accept", "*/*")], message));
        let streamed = streamed.join().unwrap();
        assert_eq!(streamed.headers()["content-type"], "text/event-stream");
        let text = streamed.text().unwrap();
        let events = text.strip_prefix(": still running\n\n");
        let event = events.unwrap_or_else(|| panic!("{text}")).trim_end();
        let data = event.strip_prefix("event: message\ndata: ").unwrap();
        let event: Value = serde_json::from_str(data).unwrap();
        assert_eq!(event["result"]["content"][0]["text"], "done");
        assert_eq!(answer(whole.join().unwrap()), "done");
    });
}

#[test]
fn a_message_of_its_own_ends_the_call_that_it_means_and_no_other() {
    let (place, server) = server();
    let url = &server.url("/mcp");
    let home = place.path("data/workspaces/c/home");
    let ana = [("x-chat-id", "c"), ("x-user-email", "ana@example.com")];
    let eve = [("x-chat-id", "c"), ("x-user-email", "eve@example.com")];
    let elsewhere = [("x-chat-id", "d"), ("x-user-email", "ana@example.com")];
    let waits =
        |name: &str| format!("touch {name}; until [ -e go ]; do sleep 0.05; done; echo done");
    thread::scope(|scope| {
        let start = |id: Value, name: &str| {
            let message = bash(id, &waits(name));
            scope.spawn(move || answer(post(url, &ana, &message)))
        };
        let (seventh, word) = (start(json!(7), "seventh"), start(json!("7"), "word"));
        let twins = [start(json!(8), "one"), start(json!(8), "two")];
        for name in ["seventh", "word", "one", "two"] {
            let file = home.join(name);
            eventually("the command has begun", PATIENCE, || {
                file.exists().then_some(())
            });
        }
        for (headers, id) in [(&eve, 7), (&elsewhere, 7), (&ana, 8), (&ana, 9), (&ana, 7)] {
            let message = json!({
                "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id, "reason": "enough" },
            });
            assert_eq!(post(url, headers, &message).status(), 202);
        }
        assert_eq!(seventh.join().unwrap(), "cancelled");
        fs::write(home.join("go"), "").unwrap();
        assert_eq!(word.join().unwrap(), "done");
        for twin in twins {
            assert_eq!(twin.join().unwrap(), "done");
        }
    });
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "calls read better with `json!` alone"
)]
fn bash(id: Value, command: &str) -> Value {
    json!({
        "jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": { "name": "bash_tool", "arguments": { "command": command } },
    })
}

fn post(url: &str, headers: &[(&str, &str)], message: &Value) -> Response {
    let client = Client::builder().timeout(Duration::from_mins(2)).build();
    let mut request = client.unwrap().post(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.json(message).send().unwrap()
}

/// The text of an answer.
fn answer(response: Response) -> String {
    let answer = read(response);
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{answer}")).to_owned()
}
