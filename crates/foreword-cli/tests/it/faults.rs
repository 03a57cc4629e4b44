//! Faults of the systems that Foreword succeeds, through the binary: each would fail if we had it.

use std::{fs, io};

use expect_test::expect;
use reqwest::blocking::Client;
use serde_json::{Value, json};

use crate::{
    chat::{Chat, server},
    support::Place,
};

#[test]
fn fault_10_in_single_mode_the_text_speaks_of_the_chat_whose_files_are_worked_on() {
    let place = Place::new();
    place.write("foreword.toml", "[session]\nmode = \"single\"\n");
    place.write(
        "data/system_prompts.yaml",
        "global_prompt: 'Files: {file_base_url}/'\n",
    );
    let server = place.serve(&["--sandbox", "namespace"]);
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "another" };
    chat.bash("echo made > /mnt/user-data/outputs/made.txt");
    let readme = chat.bash("cat README.md");
    let link = readme
        .split_once("Files: ")
        .and_then(|(_, rest)| rest.split_once('/').map(|_| rest.lines().next().unwrap()))
        .unwrap();
    assert!(link.ends_with("/files/default/"), "{link}");
    let made = reqwest::blocking::get(format!("{link}made.txt")).unwrap();
    assert_eq!(made.text().unwrap(), "made\n");
    assert!(!place.path("data/workspaces/another").exists());
}

#[test]
fn fault_14_a_range_has_the_numbers_of_the_file_and_an_empty_file_is_no_error() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    chat.bash("seq -f 'line %g' 12 > lines.txt; touch empty.txt");
    let view = |range: Value| {
        let answer = chat.call("view", json!({ "path": "lines.txt", "view_range": range }));
        answer.to_string()
    };
    let numbers = |shown: &str| -> Vec<(u32, String)> {
        let lines = shown.lines().filter_map(|line| {
            let (number, text) = line.trim_start().split_once(char::is_whitespace)?;
            Some((number.parse().ok()?, text.trim_start().to_owned()))
        });
        lines.collect()
    };
    let of = |range| numbers(&view(range));
    let expected: Vec<(u32, String)> = (9..=11).map(|n| (n, format!("line {n}"))).collect();
    assert_eq!(of(json!([9, 11])), expected);
    assert_eq!(of(json!([12, -1])), [(12, "line 12".to_owned())]);
    let empty = chat.call("view", json!({ "path": "empty.txt" }));
    assert!(!empty.is_error);
    expect!["`empty.txt` is empty"].assert_eq(&empty.text);
}

#[test]
fn fault_16_large_outputs_and_archives_are_never_whole_in_memory() {
    const LARGE: u64 = 300 << 20;
    let (_place, server) = server();
    let url = &server.url("/mcp");
    Chat { url, id: "c" }.bash("head -c 300M /dev/urandom > /mnt/user-data/outputs/large.bin");
    let before = server.peak_memory();
    for (path, least) in [("/files/c/large.bin", LARGE), ("/files/c/archive", LARGE)] {
        let mut response = Client::builder()
            .timeout(None)
            .build()
            .unwrap()
            .get(server.url(path))
            .send()
            .unwrap();
        let bytes = response.copy_to(&mut io::sink()).unwrap();
        assert!(bytes >= least, "{path}: {bytes}");
    }
    let body = reqwest::blocking::Body::new(io::Read::take(io::repeat(7), 90 << 20));
    let request = Client::new()
        .put(server.url("/api/uploads/c/up"))
        .body(body);
    assert_eq!(request.send().unwrap().status(), 201);
    let grown = server.peak_memory() - before;
    assert!(grown < 20 << 20, "{grown} bytes");
}

#[test]
fn fault_50_what_a_tool_says_is_said_once() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let ask = |method: &str, params: Value| -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let request = Client::new().post(url).header("accept", "application/json");
        request.json(&message).send().unwrap().json().unwrap()
    };
    for (name, arguments) in [
        (
            "bash_tool",
            json!({ "command": "echo once > once.txt; cat once.txt" }),
        ),
        ("view", json!({ "path": "once.txt" })),
        (
            "create_file",
            json!({ "path": "other.txt", "file_text": "once" }),
        ),
        (
            "str_replace",
            json!({ "path": "once.txt", "old_str": "once", "new_str": "twice" }),
        ),
        ("view", json!({ "path": "missing.txt" })),
    ] {
        let answer = ask(
            "tools/call",
            json!({ "name": name, "arguments": arguments }),
        );
        let result = answer["result"].as_object().unwrap();
        assert!(
            !result.contains_key("structuredContent"),
            "{name}: {answer}"
        );
    }
    for tool in ask("tools/list", json!({}))["result"]["tools"]
        .as_array()
        .unwrap()
    {
        assert_eq!(tool.get("outputSchema"), None, "{tool}");
    }
}

#[test]
fn fault_52_a_range_has_the_limit_of_a_whole_file_and_a_bad_one_is_explained() {
    let (place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    chat.bash("true");
    let long = format!("{}\n", "x".repeat(999)).repeat(2_700);
    fs::write(place.path("data/workspaces/c/home/long.txt"), long).unwrap();
    let view = |range: Value| chat.call("view", json!({ "path": "long.txt", "view_range": range }));
    let ranged = view(json!([1, 2_700]));
    let characters = ranged.text.chars().count();
    assert!((20_000..31_000).contains(&characters), "{characters}");
    for (range, said) in [
        (
            json!([20, 10]),
            "ends with line 10, before it begins with line 20",
        ),
        (json!([0, 10]), "lines are counted from 1"),
        (json!([10]), "`view_range` is a list of two whole numbers"),
        (
            json!([1.5, 2]),
            "`view_range` is a list of two whole numbers",
        ),
        (json!([4_000, -1]), "2700 lines"),
    ] {
        let answer = view(range.clone());
        assert!(
            answer.is_error && answer.text.contains(said),
            "{range}: {answer}"
        );
    }
}
