//! Chats beside each other, and how their sandboxes and files come and go.

use std::{
    fs,
    io::Write,
    net::TcpStream,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use expect_test::expect;
use reqwest::blocking::Client;
use serde_json::{Value, json};

use crate::{
    chat::{Chat, server},
    support::{PATIENCE, Place, eventually},
};

#[test]
fn fault_08_two_first_calls_at_once_share_one_sandbox() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let answers: Vec<String> = thread::scope(|scope| {
        let calls: Vec<_> = (0..8)
            .map(|at| {
                scope.spawn(move || {
                    let chat = Chat { url, id: "c" };
                    chat.bash(&format!("echo {at} >> together.txt; sleep 0.3; cat /proc/sys/kernel/random/boot_id >/dev/null; readlink /proc/self/ns/pid"))
                })
            })
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert!(
        answers.iter().all(|answer| *answer == answers[0]),
        "{answers:?}"
    );
    let chat = Chat { url, id: "c" };
    assert_eq!(chat.bash("sort together.txt | tr -d '\\n'"), "01234567");
}

#[test]
fn fault_41_one_chat_does_not_wait_for_another() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let ended = &AtomicUsize::new(0);
    thread::scope(|scope| {
        for busy in 0..12 {
            scope.spawn(move || {
                let id = format!("busy-{busy}");
                Chat { url, id: &id }.bash("sleep 12");
                ended.fetch_add(1, Ordering::Relaxed);
            });
        }
        let chat = Chat { url, id: "quick" };
        assert_eq!(chat.bash("echo quick"), "quick");
        assert_eq!(ended.load(Ordering::Relaxed), 0, "the busy ones came first");
    });
}

#[test]
fn chats_do_not_see_each_other() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let one = Chat { url, id: "one" };
    let other = Chat { url, id: "other" };
    one.bash("echo secret > secret.txt; (sleep 300 &) ");
    assert!(other.view("secret.txt").starts_with("[isError] "));
    assert_eq!(
        other.bash("ps ax 2>/dev/null | grep -c '[s]leep 300' || true"),
        "0"
    );
    assert!(
        other
            .bash("ls /home; ls /root /var /data 2>&1 | head -3")
            .starts_with("assistant\n")
    );
}

#[test]
fn a_workspace_belongs_to_its_first_user() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    let command = json!({ "command": "echo hi" });
    let ann = [("x-user-email", "ann@example.com")];
    let bob = [("x-user-email", "bob@example.com")];
    assert_eq!(chat.call_as("bash_tool", &command, &ann).to_string(), "hi");
    let refused = chat.call_as("bash_tool", &command, &bob);
    assert!(
        refused.is_error && refused.text.contains("another user"),
        "{refused}"
    );
    assert_eq!(chat.call("bash_tool", command).to_string(), "hi");
}

#[test]
fn a_request_that_names_no_chat_is_told_so() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let nobody = Chat { url, id: "" };
    let answer = nobody.bash("echo hi");
    assert!(
        answer.starts_with("hi\n---\n[This request names no chat"),
        "{answer}"
    );
    assert!(answer.contains("`X-Chat-Id`"), "{answer}");
}

#[test]
fn a_server_killed_in_the_middle_of_twenty_commands_leaves_no_process_no_mount_and_no_half_file() {
    const CHATS: usize = 20;
    let (place, server) = server();
    let url = &server.url("/mcp");
    let mark = format!("{}", std::process::id() * 7 + 300_000);
    // It says that it is longer than what comes.
    let mut upload = TcpStream::connect(server.address()).unwrap();
    let head = "PUT /api/uploads/k0/half.bin HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n";
    upload.write_all(head.as_bytes()).unwrap();
    upload.write_all(&vec![7; 500_000]).unwrap();
    thread::scope(|scope| {
        for at in 0..CHATS {
            let mark = &mark;
            scope.spawn(move || {
                let message = json!({
                    "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                    "params": { "name": "bash_tool", "arguments": { "command": format!("sleep {mark} & sleep {mark}") } },
                });
                let request = Client::builder().timeout(None).build().unwrap().post(url);
                let request = request.header("accept", "application/json");
                let answer = request.header("x-chat-id", format!("k{at}")).json(&message).send();
                assert!(answer.is_err(), "the server was killed before it could answer");
            });
        }
        eventually("all commands run", PATIENCE, || {
            (processes_with(&mark) == 2 * CHATS).then_some(())
        });
        server.signal(rustix::process::Signal::KILL);
    });
    eventually("no process is left", PATIENCE, || {
        (processes_with(&mark) == 0).then_some(())
    });
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let data = place.path("data");
    assert!(!mounts.contains(&data.display().to_string()));
    let server = place.serve(&["--sandbox", "namespace"]);
    for list in ["/api/uploads/k0/list", "/api/outputs/k0"] {
        let list: Value = reqwest::blocking::get(server.url(list))
            .unwrap()
            .json()
            .unwrap();
        assert_eq!(list["total"], 0, "{list}");
    }
    let url = &server.url("/mcp");
    let left = Chat { url, id: "k0" }
        .bash("ls -A /mnt/user-data/uploads /mnt/user-data/outputs; ls -A | grep -v README.md");
    assert!(!left.contains("half") && !left.contains("tmp"), "{left}");
}

#[test]
fn deleting_a_chat_ends_what_runs_in_it_and_takes_its_files() {
    let (place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    let mark = format!("{}", std::process::id() * 7 + 400_000);
    chat.bash(&format!("(sleep {mark} &); echo kept > kept.txt"));
    assert_eq!(processes_with(&mark), 1);
    let delete = Client::new().delete(server.url("/api/chats/c"));
    assert_eq!(delete.send().unwrap().status(), 204);
    assert_eq!(processes_with(&mark), 0);
    assert!(!place.path("data/workspaces/c").exists());
    assert!(chat.bash("cat kept.txt").starts_with("[isError] "));
}

#[test]
fn deleting_a_chat_ends_the_command_that_runs_in_it() {
    let (place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    thread::scope(|scope| {
        let running = scope.spawn(|| chat.bash("touch begun; sleep 300"));
        let begun = place.path("data/workspaces/c/home/begun");
        eventually("the command runs", PATIENCE, || {
            begun.exists().then_some(())
        });
        let delete = Client::new().delete(server.url("/api/chats/c"));
        assert_eq!(delete.send().unwrap().status(), 204);
        let ended = running.join().unwrap();
        assert!(ended.starts_with("[isError] "), "{ended}");
    });
    assert!(!place.path("data/workspaces/c").exists());
}

#[test]
fn a_workspace_that_another_hand_deleted_is_made_anew() {
    let (place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    chat.bash("echo kept > kept.txt");
    fs::remove_dir_all(place.path("data/workspaces/c")).unwrap();
    expect![[r#"
        README.md
        [the workspace, or a part of it, was deleted and made again before this; what ran in it was ended]"#]]
    .assert_eq(&chat.bash("ls"));
    assert_eq!(
        chat.bash("echo again > again.txt; ls"),
        "README.md\nagain.txt"
    );
}

#[test]
fn fault_07_two_hundred_first_calls_at_once_all_find_the_readme() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let answers: Vec<String> = thread::scope(|scope| {
        let calls: Vec<_> = (0..200)
            .map(|_| scope.spawn(move || Chat { url, id: "c" }.bash("head -c 8 README.md")))
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert_eq!(answers, vec!["Be kind."; 200]);
}

#[test]
fn fault_17_the_servers_clock_decides_what_is_idle() {
    let place = Place::new();
    place.write("foreword.toml", "sandbox.idle_timeout_seconds = 1\n");
    let server = place.serve(&["--sandbox", "namespace"]);
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    let mark = format!("{}", std::process::id() * 7 + 500_000);
    // A running command counts as use, however long it takes; a background process does not.
    assert_eq!(chat.bash("sleep 7; echo done"), "done");
    chat.bash(&format!("(sleep {mark} &); echo kept > kept.txt"));
    eventually("the idle sandbox is stopped", PATIENCE, || {
        (processes_with(&mark) == 0).then_some(())
    });
    expect![[r#"
        kept
        [the workspace was stopped while it was not in use: background processes and what was in /tmp are gone, files are still there]"#]]
    .assert_eq(&chat.bash("cat kept.txt"));
    assert_eq!(chat.bash("cat kept.txt"), "kept");
}

#[test]
fn fault_29_no_key_is_written_where_the_model_can_read_it() {
    let key = "a-key-that-is-nowhere-on-disk";
    let place = Place::new().with("FOREWORD_API_KEY", key);
    let server = place.serve(&["--sandbox", "namespace"]);
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    let authorization = format!("Bearer {key}");
    let headers = [("authorization", &*authorization)];
    let look = json!({ "command": "env; cat /proc/[0-9]*/environ 2>/dev/null; grep -rsF a-key-that / --exclude-dir=proc --exclude-dir=usr" });
    let seen = chat.call_as("bash_tool", &look, &headers);
    assert!(seen.text.contains("HOME=/home/assistant"), "{seen}");
    assert!(!seen.text.contains(key), "{seen}");
    let kept = files_below(&place.path("data"));
    assert!(kept.len() > 5);
    for path in kept {
        let bytes = fs::read(&path).unwrap();
        assert!(
            !bytes
                .windows(key.len())
                .any(|window| window == key.as_bytes()),
            "{}",
            path.display()
        );
    }
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let (directories, files): (Vec<_>, Vec<_>) =
        entries.partition(|entry| entry.file_type().unwrap().is_dir());
    let below = directories
        .iter()
        .flat_map(|entry| files_below(&entry.path()));
    let files = files
        .iter()
        .filter(|entry| entry.file_type().unwrap().is_file());
    files.map(std::fs::DirEntry::path).chain(below).collect()
}

/// Processes of this machine whose command line holds `word`.
fn processes_with(word: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap();
    let lines = entries.filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    lines
        .filter(|line| line.starts_with(b"sleep\0") && String::from_utf8_lossy(line).contains(word))
        .count()
}

#[test]
fn files_of_another_uid_are_named_with_what_to_do() {
    let place = Place::new();
    let call = |uid: &str| {
        place.write("foreword.toml", &format!("[sandbox]\nhost_uid = {uid}\n"));
        let server = place.serve(&["--sandbox", "namespace"]);
        let url = &server.url("/mcp");
        Chat { url, id: "c" }.bash("echo works")
    };
    assert_eq!(call("64000"), "works");
    let said = call("64001");
    if rustix::process::geteuid().is_root() {
        assert!(
            said.starts_with("[isError] this chat's files belong to user 64000"),
            "{said}"
        );
    } else {
        assert_eq!(said, "works", "the setting is for root");
    }
}
