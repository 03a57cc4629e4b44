//! Connected MCP servers as an operator has them: a file, programs, and what is said about them.

use std::{fs, time::Duration};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Place, Server, eventually};

const SOON: Duration = Duration::from_secs(30);

/// A place whose `connections.json` has these servers.
fn place(servers: &Value) -> Place {
    let place = Place::new();
    place.write("tiny.sh", include_str!("tiny.sh"));
    write(&place, servers);
    place
}

fn write(place: &Place, servers: &Value) {
    let text = json!({"mcpServers": servers}).to_string();
    // In one step, as editors do.
    place.write("data/new.json", &text);
    fs::rename(
        place.path("data/new.json"),
        place.path("data/connections.json"),
    )
    .unwrap();
}

/// The shell's server, with these fields beside.
fn tiny(place_of: &Place, more: &Value) -> Value {
    let args = [place_of.path("tiny.sh"), place_of.path("pid")];
    let mut server = json!({"command": "/bin/sh", "args": args});
    for (key, value) in more.as_object().unwrap() {
        server[key] = value.clone();
    }
    server
}

fn with_tiny(more: &Value) -> Place {
    let place = place(&json!({}));
    let server = tiny(&place, more);
    write(&place, &json!({"tiny": server}));
    place
}

fn shown(server: &Server) -> Value {
    reqwest::blocking::get(server.url("/api/prompts/mcp-tools"))
        .unwrap()
        .json()
        .unwrap()
}

fn state_of(server: &Server, name: &str) -> String {
    let shown = shown(server);
    let mut servers = shown["servers"].as_array().unwrap().iter();
    let found = servers.rfind(|server| server["name"] == name);
    found.map_or("absent".to_owned(), |server| {
        server["state"].as_str().unwrap().to_owned()
    })
}

#[track_caller]
fn wait_for(server: &Server, name: &str, state: &str) {
    eventually(&format!("{name} is {state}"), SOON, || {
        (state_of(server, name) == state).then_some(())
    });
}

fn call(server: &Server, tool: &str) -> String {
    let message = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}},
    });
    let answer = reqwest::blocking::Client::new()
        .post(server.url("/mcp"))
        .header("accept", "application/json, text/event-stream")
        .json(&message)
        .send()
        .unwrap();
    let answer: Value = answer.json().unwrap();
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"))
        .to_owned()
}

#[test]
fn the_file_is_followed_while_the_server_runs() {
    let place = place(&json!({}));
    let server = place.serve(&["--sandbox", "none"]);
    assert_eq!(shown(&server)["servers"], json!([]));
    write(&place, &json!({"tiny": tiny(&place, &json!({}))}));
    wait_for(&server, "tiny", "ready");
    let prompt = || {
        reqwest::blocking::get(server.url("/system-prompt"))
            .unwrap()
            .text()
            .unwrap()
    };
    assert!(prompt().contains("`tiny__environment`"));
    // A file that cannot be read changes nothing, and is told.
    place.write(
        "data/connections.json",
        "{\"mcpServers\": {\n  \"tiny\": }}",
    );
    let error = eventually("the mistake is told", SOON, || {
        shown(&server)["errors"][0].as_str().map(str::to_owned)
    });
    assert_eq!(
        error,
        "`connections.json`: no valid JSON: expected value at line 2 column 11"
    );
    assert_eq!(state_of(&server, "tiny"), "ready");
    write(
        &place,
        &json!({"tiny": tiny(&place, &json!({"disabled": true}))}),
    );
    wait_for(&server, "tiny", "disabled");
    assert!(!prompt().contains("tiny__"));
    assert_eq!(shown(&server)["errors"], json!([]));
    fs::remove_file(place.path("data/connections.json")).unwrap();
    wait_for(&server, "tiny", "absent");
}

#[test]
fn a_program_gets_what_is_configured_and_nothing_of_ours() {
    let place = with_tiny(&json!({"env": {"GIVEN": "a ${WORD}"}}))
        .with("FOREWORD_API_KEY", "")
        .with("FOREWORD_AUTH__ADMIN_KEYS", "")
        .with("WORD", "word");
    let mut server = place.serve(&["--sandbox", "none"]);
    wait_for(&server, "tiny", "ready");
    let home = place.path("home");
    assert_eq!(
        call(&server, "tiny__environment"),
        format!(
            " HOME={} GIVEN=a word FOREWORD_API_KEY=unset",
            home.display()
        )
    );
    let line = server.wait_for_line("tiny speaks");
    assert!(line.contains("connection=\"tiny\""), "{line}");
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_of_a_program_outlives_a_server_that_was_killed() {
    for signal in [Signal::KILL, Signal::TERM] {
        let place = with_tiny(&json!({}));
        let mut server = place.serve(&["--sandbox", "none"]);
        wait_for(&server, "tiny", "ready");
        assert_eq!(call(&server, "tiny__linger"), "left");
        let left = place.read("pid").trim().to_owned();
        assert!(fs::exists(format!("/proc/{left}")).unwrap());
        server.signal(signal);
        server.wait();
        eventually("what it left is gone", SOON, || {
            let status = fs::read_to_string(format!("/proc/{left}/status")).unwrap_or_default();
            (status.is_empty() || status.contains("zombie")).then_some(())
        });
    }
}

#[test]
fn the_start_doctor_and_compose_tell_of_connections() {
    let place = place(&json!({}));
    write(
        &place,
        &json!({
            "tiny": tiny(&place, &json!({"tols": ["environment"]})),
            "quiet": tiny(&place, &json!({"expose": false})),
            "secret": {"url": "http://127.0.0.1:1/${NOT_SET}"},
            "old": {"type": "sse", "url": "http://127.0.0.1:1/sse"},
            "typo": {"command": "/bin/sh", "args": "none"},
        }),
    );
    let mut server = place.serve(&["--sandbox", "none"]);
    server.wait_for_line("servers");
    server.wait_for_line("the MCP server `typo` is left out");
    let printed = server.printed();
    let start: Vec<&str> = printed
        .lines()
        .filter(|line| line.starts_with("  "))
        .collect();
    let start = start.join("\n");
    assert!(
        start.contains("  servers    tools handed on to clients: tiny; not handed on: quiet"),
        "{printed}"
    );
    for warning in [
        "the MCP server `old` is left out: servers of the older HTTP+SSE transport are not spoken to",
        "the MCP server `secret` is left out: the environment variable `NOT_SET` is not set",
        "the MCP server `typo` is left out: `args`: expected a list",
    ] {
        assert!(start.contains(warning), "{printed}");
    }
    let doctor = place
        .run(&["doctor", "--listen", "127.0.0.1:0", "--sandbox", "none"])
        .stdout;
    for found in [
        "ok     connection     `quiet` has 2 tools",
        "ok     connection     `tiny` has 2 tools",
        "note   connection     `tiny`: `tols` is not known and has no effect; did you mean `tools`?",
        "note   connection     `secret`: the environment variable `NOT_SET` is not set",
    ] {
        assert!(doctor.contains(found), "{doctor}");
    }
    let composed = place.run(&["compose", "--chat", "a"]);
    assert!(
        composed
            .stdout
            .contains("`tiny__environment`: Tells its environment."),
        "{composed}"
    );
    let shown = shown(&server);
    let tiny = shown["servers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|server| server["name"] == "tiny");
    assert_eq!(
        tiny.unwrap()["problems"],
        json!(["`tols` is not known and has no effect; did you mean `tools`?"])
    );
}

#[test]
fn a_connection_of_the_configuration_counts_before_one_of_the_file() {
    let place = with_tiny(&json!({}));
    place.write(
        "foreword.toml",
        "[connections.tiny]\nurl = \"http://127.0.0.1:1/mcp\"\nheaders = { Authorization = \"Bearer abc\" }\n",
    );
    let shown_config = place.run(&["config"]).ok();
    assert!(
        shown_config.contains("Authorization = \"[redacted]\""),
        "{shown_config}"
    );
    assert!(!shown_config.contains("abc"));
    let server = place.serve(&["--sandbox", "none"]);
    wait_for(&server, "tiny", "down");
    assert_eq!(
        shown(&server)["errors"],
        json!([
            "`tiny` is in `connections.json` and in the configuration, which counts; rename one of them"
        ])
    );
}

/// A program that is dropped while it runs leaves a handler for the ends of programs behind, which interrupts whoever waits.
#[test]
fn an_edit_while_a_server_connects_costs_no_sandbox() {
    let place = place(&json!({"slow": {"command": "/bin/sleep", "args": ["100"]}}));
    let server = place.serve(&["--sandbox", "namespace"]);
    wait_for(&server, "slow", "connecting");
    write(&place, &json!({}));
    wait_for(&server, "slow", "absent");
    let url = server.url("/mcp");
    for chat in 0..12 {
        let id = format!("chat-{chat}");
        let chat = crate::chat::Chat { url: &url, id: &id };
        assert_eq!(chat.bash("echo fine"), "fine");
    }
}

#[test]
fn what_other_clients_write_switches_off_here_too() {
    let place = place(&json!({}));
    let off = tiny(&place, &json!({"enabled": false}));
    let some = tiny(&place, &json!({"disabledTools": ["linger"]}));
    write(&place, &json!({"off": off, "some": some}));
    let server = place.serve(&["--sandbox", "none"]);
    wait_for(&server, "off", "disabled");
    wait_for(&server, "some", "refused");
}

#[test]
fn a_connection_to_this_server_itself_has_its_own_tools_and_no_end_of_them() {
    let place = with_tiny(&json!({}));
    let server = place.serve(&["--sandbox", "none"]);
    wait_for(&server, "tiny", "ready");
    let itself = json!({"url": server.url("/mcp"), "refresh": 1});
    write(
        &place,
        &json!({"tiny": tiny(&place, &json!({})), "itself": itself}),
    );
    wait_for(&server, "itself", "ready");
    let first = shown(&server)["servers"][0]["last_refresh"].clone();
    eventually("it is listed again", SOON, || {
        (shown(&server)["servers"][0]["last_refresh"] != first).then_some(())
    });
    let shown = shown(&server);
    assert_eq!(shown["servers"][0]["tools"], 1, "{shown}");
    assert_eq!(shown["tools_count"], 3);
}
