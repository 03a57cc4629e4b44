//! The commands of `docs/backup.md`, run as they stand there: a copy that is weeks old comes back whole, elsewhere.

use std::{fs, path::Path, process::Command};

use reqwest::blocking::Client;
use rustix::process::Signal;

use crate::{chat::Chat, support::Place};

const CONFIGURATION: &str = "\
public_base_url = \"https://foreword.example\"
[auth]
api_keys = [\"0123456789abcdef\"]
";

/// The blocks of commands in a section of the page.
fn commands(heading: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/backup.md");
    let page = fs::read_to_string(page).unwrap();
    let section = page.split("\n## ").find(|text| text.starts_with(heading));
    let blocks = section.unwrap().split("\n```\n").skip(1).step_by(2);
    blocks.map(str::to_owned).collect()
}

#[track_caller]
fn run(place: &Place, commands: &str) {
    let binary = Path::new(env!("CARGO_BIN_EXE_foreword")).parent().unwrap();
    let output = Command::new("sh")
        .args(["-ec", commands])
        .current_dir(place.path("."))
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", binary.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{commands}: {output:?}");
}

fn get(url: &str) -> (u16, String) {
    let request = Client::new().get(url).bearer_auth("0123456789abcdef");
    let response = request.header("x-user-email", "ann@example.com").send();
    let response = response.unwrap();
    (response.status().as_u16(), response.text().unwrap())
}

#[test]
fn a_backup_of_weeks_ago_is_restored_elsewhere_with_chats_links_skills_and_history() {
    let place = Place::new();
    place
        .write("foreword.toml", CONFIGURATION)
        .write("data/system_prompts.yaml", "global_prompt: Be kind.\n")
        .write("data/connections.json", r#"{"mcpServers": {}}"#)
        .write(
            "data/skills/public/pdf/SKILL.md",
            "---\nname: pdf\ndescription: Reads PDF.\n---\n\nDo it.\n",
        );
    let mut server = place.serve(&["--sandbox", "namespace"]);
    let headers = [
        ("authorization", "Bearer 0123456789abcdef"),
        ("x-user-email", "ann@example.com"),
    ];
    let bash = |url: &str, command: &str| {
        let chat = Chat { url, id: "chat-1" };
        let arguments = serde_json::json!({"command": command});
        chat.call_as("bash_tool", &arguments, &headers).to_string()
    };
    bash(
        &server.url("/mcp"),
        "echo result > /mnt/user-data/outputs/a.txt; echo note > ~/note.txt; mkdir -p ~/project/skills; echo own > ~/project/skills/x",
    );
    place.run(&["global", "set", "--content", "Be brief."]).ok();
    let prompt = "/system-prompt?chat_id=chat-1";
    let before = crate::support::eventually("the edit", crate::support::PATIENCE, || {
        let (_, prompt) = get(&server.url(prompt));
        prompt.starts_with("Be brief.").then_some(prompt)
    });
    let link = before.split("https://foreword.example").nth(1).unwrap();
    let link = link.split("/NAME").next().unwrap();
    assert!(link.starts_with("/files/chat-1~"), "{before}");
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));

    let [copy, restore] = &commands("A copy, and back")[..] else {
        panic!("the page has other commands than this test knows");
    };
    run(&place, "touch -d '20 days ago' data/workspaces/*/used");
    run(&place, copy);
    let elsewhere = Place::new();
    let archive = "foreword-backup.tar.gz";
    fs::copy(place.path(archive), elsewhere.path(archive)).unwrap();
    drop(place);
    run(&elsewhere, restore);

    let server = elsewhere.serve(&["--sandbox", "namespace"]);
    assert_eq!(get(&server.url(prompt)).1, before, "the same, skills too");
    // The link alone, without a key.
    let opened = crate::support::get(&server.url(&format!("{link}/a.txt")));
    assert_eq!(opened, (200, "result\n".to_owned()));
    let found = bash(
        &server.url("/mcp"),
        "cat ~/note.txt ~/project/skills/x; ls /mnt/skills/public",
    );
    assert!(
        found.starts_with("note\nown\n") && found.contains("pdf"),
        "{found}"
    );
    elsewhere.run(&["undo"]).ok();
    assert_eq!(
        elsewhere.read("data/system_prompts.yaml"),
        "global_prompt: Be kind.\n"
    );
}
