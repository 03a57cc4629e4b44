//! The examples do what their pages say: each is copied, checked, and used through the real binary.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use reqwest::{
    Method,
    blocking::{Client, RequestBuilder},
};
use serde_json::{Value, json};

use crate::{
    chat::Chat,
    support::{PATIENCE, Place, Server, eventually, get},
    upstream::Upstream,
};

/// A place with a copy of what git has of an example, in `to`.
fn copied(example: &str, to: &str) -> Place {
    let place = Place::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    copy(&examples.join(example), &place.path(to));
    place
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if is_ignored(&entry.path()) {
            continue; // somebody used the example where it lies
        }
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to.join(name));
        } else {
            fs::copy(entry.path(), to.join(name)).unwrap();
        }
    }
}

fn is_ignored(path: &Path) -> bool {
    let patterns = include_str!("../../../../examples/.gitignore").lines();
    let mut names = patterns.map(|line| line.trim_start_matches("**/").trim_end_matches('/'));
    names.any(|name| path.ends_with(name))
}

/// Neither mistakes nor anything that might be one.
#[track_caller]
fn check(place: &Place, arguments: &[&str]) {
    let said = place.run(&[arguments, &["check"]].concat());
    assert!(said.stderr.is_empty(), "{said}");
    let said = said.ok();
    assert!(
        said.ends_with(": 0 errors, 0 warnings, 0 notes\n"),
        "{said}"
    );
}

fn profiles(server: &Server) -> Vec<String> {
    let (_, answer) = get(&server.url("/api/prompts/profiles"));
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let profiles = answer["profiles"].as_array().unwrap().iter();
    profiles
        .map(|profile| profile["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_small_team_has_three_profiles_that_share_sections() {
    let place = copied("small-team", "team");
    let data = ["--data", "team"];
    check(&place, &data);
    let compose = |more: &[&str]| place.run(&[&data, more].concat()).ok();
    let assistant = compose(&["compose"]);
    assert!(assistant.starts_with("You work for Second Spin, a shop for used bicycles"));
    assert!(assistant.contains("Write plainly."));
    let support = compose(&["compose", "--profile", "support"]);
    assert!(support.contains("within 30 days") && support.contains("help@secondspin.example"));
    assert!(
        !support.contains("Write plainly."),
        "it is switched off there"
    );
    let parts = compose(&["compose", "--profile", "support", "--json"]);
    let parts: Value = serde_json::from_str(&parts).unwrap();
    let ids = parts["parts"].as_array().unwrap().iter();
    let ids: Vec<&str> = ids.map(|part| part["id"].as_str().unwrap()).collect();
    assert_eq!(
        ids,
        [
            "global",
            "role",
            "rules",
            "task",
            "limits",
            "private-data",
            "examples"
        ]
    );

    let server = place.serve(&[&data[..], &["--sandbox", "none"]].concat());
    assert_eq!(profiles(&server), ["assistant", "support", "developer"]);
    let (_, brief) = get(&server.url("/system-prompt?profile_id=support&form=brief"));
    assert!(brief.encode_utf16().count() <= 2_000);
    assert!(
        brief.contains("Promise nothing beyond"),
        "it has a priority"
    );
    assert!(!brief.contains("The brakes squeal"), "it has none");

    compose(&["variables", "set", "shop", "Second Wheel"]);
    eventually("the new name", PATIENCE, || {
        let (_, prompt) = get(&server.url("/system-prompt"));
        prompt
            .starts_with("You work for Second Wheel")
            .then_some(())
    });
    assert!(
        place
            .read("team/system_prompts.yaml")
            .contains("  # Answers of the support name this")
    );
    compose(&["undo"]);
    assert_eq!(compose(&["compose"]), assistant);
}

#[test]
fn computer_use_has_a_guide_of_its_own_and_a_skill_that_runs() {
    let place = copied("computer-use", "computer");
    let data = ["--data", "computer"];
    check(&place, &data);
    let server = place.serve(&[&data[..], &["--sandbox", "namespace"]].concat());
    assert_eq!(profiles(&server), ["operator", "researcher"]);
    let (_, prompt) = get(&server.url("/system-prompt?chat_id=chat-1"));
    assert!(prompt.contains("## Your computer") && !prompt.contains("## Your workspace"));
    assert!(
        prompt.contains(&server.url("/files/chat-1/NAME")),
        "{prompt}"
    );
    assert!(prompt.contains("/mnt/skills/public/monthly-report/SKILL.md"));

    let export = place.read("computer/sales.csv");
    let upload = Client::new().put(server.url("/api/uploads/chat-1/sales.csv"));
    assert_eq!(upload.body(export).send().unwrap().status(), 201);
    let url = server.url("/mcp");
    let chat = Chat {
        url: &url,
        id: "chat-1",
    };
    assert_eq!(chat.bash("cat ~/README.md"), prompt);
    let script = "sh /mnt/skills/public/monthly-report/scripts/by-region.sh";
    let output = "/mnt/user-data/outputs/report.csv";
    chat.bash(&format!(
        "{script} /mnt/user-data/uploads/sales.csv > {output}"
    ));
    assert_eq!(
        get(&server.url("/files/chat-1/report.csv")).1,
        "region,amount\nSouth,1874.75\nNorth,1610.75\nWest,95.00\ntotal,3580.50\n"
    );
    // What it cannot read it names, and it refuses another table.
    chat.bash("printf 'date,region,amount\\r\\nx,North,1.5\\r\\nx,West,much\\r\\n' > own.csv; echo id,region > other.csv");
    let said = chat.bash(&format!("{script} own.csv"));
    assert!(
        said.contains("line 3 cannot be read: x,West,much"),
        "{said}"
    );
    assert!(said.contains("North,1.50\ntotal,1.50"), "{said}");
    let said = chat.bash(&format!("{script} other.csv; echo $?"));
    assert!(
        said.ends_with("the first line is not date,region,amount\n1"),
        "{said}"
    );
}

const CALLERS: [&str; 4] = ["chat-platform", "litellm", "admin", "upstream"];

/// The lines of a start that say where it listens; the example asks for JSON.
const AS_TEXT: [&str; 2] = ["--log-format", "text"];

/// The key that a test gives to a caller.
fn key(caller: &str) -> String {
    format!("{caller}-0123456789abcdef")
}

fn gateway() -> Place {
    let place = copied("gateway", ".");
    for caller in CALLERS {
        let path = format!("secrets/{caller}.key");
        place.write(&path, &format!("{}\n", key(caller)));
        fs::set_permissions(place.path(&path), fs::Permissions::from_mode(0o600)).unwrap();
    }
    place.with("SEARCH_TOKEN", "token-0123456789")
}

fn ask(server: &Server, method: Method, path: &str, caller: &str) -> RequestBuilder {
    let request = Client::new().request(method, server.url(path));
    request.bearer_auth(key(caller))
}

fn prompt(server: &Server, query: &str) -> String {
    let request = ask(
        server,
        Method::GET,
        &format!("/system-prompt?{query}"),
        "chat-platform",
    );
    request.send().unwrap().text().unwrap()
}

/// A message of MCP for the chat, from its user.
fn message(server: &Server, caller: &str, message: &Value) -> RequestBuilder {
    ask(server, Method::POST, "/mcp/c/chat-1", caller)
        .header("accept", "application/json, text/event-stream")
        .header("x-user-email", "ann@example.com")
        .json(message)
}

fn instructions(server: &Server, caller: &str) -> String {
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    });
    let answer = crate::chat::read(message(server, caller, &initialize).send().unwrap());
    answer["result"]["instructions"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn the_settings_of_the_gateway_are_taken() {
    let place = gateway().with("SEARCH_URL", "http://127.0.0.1:9100/mcp");
    check(&place, &[]);
    let settings = place.run(&["config", "--json"]).json();
    let value = |path: &str| settings["settings"][path]["value"].clone();
    assert_eq!(value("public_base_url"), "https://foreword.example");
    assert_eq!(value("http.allowed_hosts"), json!(["foreword"]));
    assert_eq!(value("session.mode"), "strict");
    assert_eq!(value("sandbox.backend"), "none");
    assert_eq!(value("auth.keys")[1]["instructions"], "neutral");
    assert_eq!(value("chat.upstream.api_key"), "[redacted]");
}

#[test]
fn without_its_keys_the_gateway_does_not_start() {
    let ran = copied("gateway", ".").run(&[]);
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("secrets/chat-platform.key"), "{ran}");
}

#[test]
fn the_gateway_tells_callers_apart() {
    let place = gateway();
    let server = place.serve(&AS_TEXT);
    let status = |request: RequestBuilder| request.send().unwrap().status().as_u16();
    let prompts = |query: &str| {
        ask(
            &server,
            Method::GET,
            &format!("/system-prompt{query}"),
            "chat-platform",
        )
    };
    assert_eq!(get(&server.url("/system-prompt?chat_id=chat-1")).0, 401);
    assert_eq!(status(prompts("")), 400, "a chat has to be named");
    assert_eq!(
        status(prompts("?chat_id=chat-1").header("host", "foreword:8081")),
        200
    );
    assert_eq!(
        status(prompts("?chat_id=chat-1").header("host", "elsewhere:8081")),
        403
    );

    let own = instructions(&server, "chat-platform");
    assert!(
        own.starts_with("You are the assistant of Example Ltd."),
        "{own}"
    );
    assert!(
        own.contains("- Conversation: chat-1\n- Signed in as: ann@example.com\n"),
        "{own}"
    );
    let neutral = instructions(&server, "litellm");
    assert!(
        neutral.contains("- Conversation: (known at call time)\n"),
        "{neutral}"
    );
    assert!(
        !neutral.contains("chat-1") && !neutral.contains("ann@"),
        "{neutral}"
    );
    // Up to what belongs to a session, they are the same.
    let stable = own.find("\n\nThese instructions as a whole").unwrap();
    assert!(neutral.starts_with(&own[..stable]), "{neutral}");

    let change = |caller| {
        let request = ask(&server, Method::POST, "/api/prompts/global/update", caller);
        status(request.json(&json!({"content": "Be brief."})))
    };
    assert_eq!(change("chat-platform"), 403);
    assert_eq!(change("admin"), 200);
}

#[test]
fn the_gateway_puts_a_profile_into_chats() {
    let upstream = Upstream::start();
    let base_url = format!("http://{}/v1", upstream.address);
    let place = gateway().with("FOREWORD_CHAT__UPSTREAM__BASE_URL", &base_url);
    let server = place.serve(&AS_TEXT);
    let message = json!({"role": "user", "content": "Who are you?"});
    let body = json!({"model": "m@support", "messages": [message]});
    let request = ask(
        &server,
        Method::POST,
        "/v1/chat/completions",
        "chat-platform",
    );
    let answer = request.json(&body).send().unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["x-profile-id"], "support");
    let asked = upstream.asked();
    assert!(
        asked.contains(&format!("Bearer {}", key("upstream"))),
        "{asked}"
    );
    assert!(
        asked.contains("You are the first help for devices and accounts."),
        "{asked}"
    );
    assert!(!asked.contains(&key("chat-platform")), "{asked}");
    let models = ask(&server, Method::GET, "/v1/models", "chat-platform")
        .send()
        .unwrap();
    assert!(models.text().unwrap().contains("\"m@research\""));
}

#[test]
fn the_gateway_hands_the_search_to_one_profile() {
    // Another Foreword stands for the search: it has one tool, which says who asks.
    let search_place = Place::new().with("FOREWORD_API_KEY", "token-0123456789");
    let library = "global_prompt: Searched for {user_email}.\n";
    search_place.write("data/system_prompts.yaml", library);
    let search = search_place.serve(&["--sandbox", "none"]);
    let place = gateway().with("SEARCH_URL", &search.url("/mcp"));
    let server = place.serve(&AS_TEXT);
    eventually("the tools of the search", PATIENCE, || {
        let prompt = prompt(&server, "chat_id=chat-1&profile_id=research");
        prompt.contains("search__read_me").then_some(())
    });
    let without = prompt(&server, "chat_id=chat-1&profile_id=support");
    assert!(!without.contains("search__read_me"), "{without}");
    let call = |profile: &str| {
        let call = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "search__read_me", "arguments": {}},
        });
        let request = message(&server, "chat-platform", &call);
        crate::chat::read(request.header("x-profile-id", profile).send().unwrap())
    };
    let refused = call("support");
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    let found = call("research");
    let text = found["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("Searched for ann@example.com."), "{found}");
}
