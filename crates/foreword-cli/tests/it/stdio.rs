//! `foreword stdio`: MCP on stdin and stdout.

use serde_json::{Value, json};

use crate::support::{Place, Ran};

fn initialize() -> Value {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        },
    })
}

/// What is answered to one request.
fn answer(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{ran}");
    serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap()
}

fn instructions(place: &Place, arguments: &[&str]) -> String {
    let arguments: Vec<&str> = ["stdio"]
        .into_iter()
        .chain(arguments.iter().copied())
        .collect();
    let ran = place.run_with_input(&arguments, &format!("{}\n", initialize()));
    answer(&ran)["result"]["instructions"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn the_instructions_are_those_of_the_chat_that_was_named() {
    let place = Place::new();
    let ran = place.run_with_input(
        &["stdio", "--chat", "My-Chat"],
        &format!("{}\n", initialize()),
    );
    let answered = answer(&ran).to_string();
    assert!(answered.contains("`my-chat`"), "{answered}");
    assert!(
        ran.stderr
            .contains("Serves chat my-chat, library: built in"),
        "{ran}"
    );
}

#[test]
fn without_a_name_the_chat_stands_for_the_working_directory() {
    let place = Place::new();
    let name = place
        .path("")
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_lowercase();
    let name = name.trim_start_matches('.').replace('.', "-");
    let text = instructions(&place, &[]);
    let chat = text
        .split('`')
        .find(|word| word.starts_with(&format!("{name}-")))
        .unwrap_or_else(|| panic!("{text}"));
    let digits = &chat[name.len() + 1..];
    assert!(
        digits.len() == 8 && digits.chars().all(|digit| digit.is_ascii_hexdigit()),
        "{chat}"
    );
    assert_eq!(
        instructions(&place, &[]),
        text,
        "the same directory is the same chat"
    );
}

#[test]
fn the_home_directory_is_the_default_chat() {
    let place = Place::new();
    let home = place.path("");
    let home = home.to_str().unwrap().trim_end_matches('/');
    let place = place.with("HOME", home);
    assert!(instructions(&place, &[]).contains("`default`"));
}

#[test]
fn data_is_kept_in_the_users_data_directory_unless_told_otherwise() {
    let place = Place::new();
    instructions(&place, &[]);
    assert!(place.path("home/.local/share/foreword/VERSION").exists());
    assert!(!place.path("data").exists());
    let elsewhere = Place::new().with("XDG_DATA_HOME", "share");
    instructions(&elsewhere, &[]);
    assert!(elsewhere.path("share/foreword/VERSION").exists());
    let told = Place::new();
    instructions(&told, &["--data", "mine"]);
    assert!(told.path("mine/VERSION").exists());
}

#[test]
fn only_protocol_is_written_to_stdout() {
    let place = Place::new().with("FOREWORD_LOG__LEVEL", "trace");
    let ran = place.run_with_input(&["stdio"], &format!("{}\n", initialize()));
    for line in ran.stdout.lines() {
        serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
    }
}

#[test]
fn there_need_be_no_sandbox() {
    let with = instructions(&Place::new(), &["--sandbox", "namespace"]);
    assert!(with.contains("`bash_tool`"), "{with}");
    let without = instructions(&Place::new(), &["--sandbox", "none"]);
    assert!(!without.contains("`bash_tool`"), "{without}");
}

#[test]
fn what_a_client_asks_in_vain_is_not_logged() {
    let place = Place::new();
    let call = json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "secret_tool", "arguments": {} },
    });
    let ran = place.run_with_input(&["stdio"], &format!("{}\n{call}\n", initialize()));
    assert!(ran.stdout.contains("unknown tool `secret_tool`"), "{ran}");
    assert!(!ran.stderr.contains("secret_tool"), "{ran}");
}

#[test]
fn an_impossible_chat_is_refused() {
    let ran = Place::new().run(&["stdio", "--chat", "a/b"]);
    assert_eq!(ran.code, Some(2), "{ran}");
    assert_eq!(ran.stdout, "");
}
