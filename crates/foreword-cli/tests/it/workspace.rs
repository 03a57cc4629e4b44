//! The four tools, as a model uses them: over MCP, in a real sandbox of the real binary.
//!
//! A machine whose kernel refuses namespaces fails these tests; `foreword doctor` says what to change there.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use expect_test::expect;
use reqwest::blocking::Client;
use serde_json::{Value, json};

use crate::{
    chat::{Chat, server},
    support::{PATIENCE, Place, eventually},
};

#[test]
fn fault_13_a_command_says_how_it_ended() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    expect![[r#"
        hello"#]]
    .assert_eq(&chat.bash("echo hello"));
    expect![[r#"
        [no output]
        [exit code 0]"#]]
    .assert_eq(&chat.bash("true"));
    expect![[r#"
        [isError] a
        b
        [exit code 3]"#]]
    .assert_eq(&chat.bash("echo a; echo b >&2; exit 3"));
    expect![[r#"
        [isError] [no output]
        [exit code 1]"#]]
    .assert_eq(&chat.bash("false"));
    expect![[r#"
        [no output]
        [exit code 1: no line matched]"#]]
    .assert_eq(&chat.bash("grep xyzzy README.md"));
    expect![[r#"
        [isError] [no output]
        [exit code 2]"#]]
    .assert_eq(&chat.bash("grep nothing missing 2>/dev/null"));
    expect![[r#"
        [isError] [no output]
        [ended by signal 9 (SIGKILL)]"#]]
    .assert_eq(&chat.bash("kill -9 $$"));
    expect![[r#"
        [isError] begun
        [timed out after 1 s: the command and all that it started were ended. For long work give a larger `timeout`, or run it in the background and look later: `nohup COMMAND > log.txt 2>&1 &`]"#]]
    .assert_eq(&chat.call("bash_tool", json!({ "command": "echo begun; sleep 60", "timeout": 1 })).to_string());
}

#[test]
fn another_server_that_cannot_see_this_one_leaves_its_control_groups_alone() {
    let (_place, server) = server();
    let apart = [
        "/usr/bin/unshare",
        "--map-root-user",
        "--pid",
        "--fork",
        "--mount-proc",
    ];
    let limits = Place::new().run(&["doctor"]).ok();
    assert!(
        limits.contains("kept by control groups"),
        "there are none to leave alone: {limits}"
    );
    Place::new().through(&apart).run(&["doctor"]).ok();
    let url = &server.url("/mcp");
    assert_eq!(Chat { url, id: "c" }.bash("echo hello"), "hello");
}

#[test]
fn fault_47_output_comes_in_the_order_in_which_it_was_written() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    let mixed = chat.bash("for i in 1 2 3; do echo out$i; echo err$i >&2; done");
    assert_eq!(mixed, "out1\nerr1\nout2\nerr2\nout3\nerr3");
}

#[test]
fn fault_28_bytes_that_are_no_text_do_not_spoil_the_rest() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    assert_eq!(
        chat.bash(r"printf 'a\xff\xc3\xa9\xe2\x82'"),
        "a\u{FFFD}é\u{FFFD}"
    );
}

#[test]
fn files_and_background_processes_stay_between_calls_and_shells_do_not() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    chat.bash("cd /tmp; X=1; echo kept > ~/kept.txt");
    assert_eq!(
        chat.bash("pwd; echo \"[$X]\"; cat kept.txt"),
        "/home/assistant\n[]\nkept"
    );
    chat.bash("mkdir site; echo served > site/index.html; cd site; nohup python3 -m http.server 8000 > ~/log.txt 2>&1 &");
    let heard = eventually("the server in the background answers", PATIENCE, || {
        let answer = chat.bash("python3 -c 'import urllib.request as u; print(u.urlopen(\"http://127.0.0.1:8000/\").read().decode().strip())'");
        (answer == "served").then_some(answer)
    });
    assert_eq!(heard, "served");
}

#[test]
fn fault_44_a_command_ends_when_it_ends_whoever_holds_its_output() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    let started = Instant::now();
    let answer = chat.bash("sleep 300 & echo done");
    assert!(started.elapsed() < Duration::from_mins(1));
    assert!(
        answer.starts_with("done\n[something in the background still holds the output"),
        "{answer}"
    );
}

#[test]
fn fault_46_a_command_may_have_a_mebibyte() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    let long = format!("echo {} | wc -c", "x".repeat(1_000_000));
    assert_eq!(chat.bash(&long), "1000001");
    let too_long = format!("echo {}", "x".repeat(1 << 20));
    let refused = chat.bash(&too_long);
    assert!(refused.starts_with("[isError] the command "), "{refused}");
}

#[test]
fn fault_43_of_a_flood_both_ends_are_shown_and_the_beginning_is_kept_in_a_file() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    let answer = chat.bash("seq 1 100000");
    assert!(answer.starts_with("1\n2\n3\n"));
    assert!(answer.ends_with("\n99999\n100000"));
    assert!(answer.contains(
        "characters left out here; the whole output is in /home/assistant/.foreword/output-1.txt …]"
    ));
    assert!(answer.chars().count() < 31_000);
    assert_eq!(
        chat.bash("seq 1 100000 | cmp - .foreword/output-1.txt && echo same"),
        "same"
    );
    let flood = chat.bash("head -c 300000000 /dev/zero | tr '\\0' x");
    assert!(
        flood.contains("the first 10 MiB are in /home/assistant/.foreword/output-2.txt"),
        "{}",
        &flood[15_000..15_300]
    );
    assert_eq!(
        chat.bash("stat -c %s .foreword/output-2.txt"),
        (10 << 20).to_string()
    );
    for _ in 3..=7 {
        chat.bash("seq 1 100000");
    }
    assert_eq!(
        chat.bash("ls .foreword"),
        "output-3.txt\noutput-4.txt\noutput-5.txt\noutput-6.txt\noutput-7.txt"
    );
}

#[test]
fn files_are_created_changed_and_viewed() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    let create = |path: &str, text: &str| {
        chat.call("create_file", json!({ "path": path, "file_text": text }))
            .to_string()
    };
    assert_eq!(
        create("a/b/run.sh", "#!/bin/sh\necho ran\n"),
        "created `a/b/run.sh`: 2 lines, executable"
    );
    assert_eq!(chat.bash("a/b/run.sh; stat -c %a a/b/run.sh"), "ran\n755");
    assert_eq!(
        create("note.txt", "one\ntwo\nthree"),
        "created `note.txt`: 3 lines"
    );
    assert_eq!(
        create("note.txt", "one\ntwo\nthree\nfour\n"),
        "replaced `note.txt`: 4 lines"
    );
    let replace = |old: &str, new: &str| {
        chat.call(
            "str_replace",
            json!({ "path": "~/note.txt", "old_str": old, "new_str": new }),
        )
        .to_string()
    };
    expect![[r#"
        changed `note.txt`:
             1	one
             2	2
             3	and a half
             4	three
             5	four"#]]
    .assert_eq(&replace("two", "2\nand a half"));
    expect!["[isError] `old_str` does not stand in `note.txt`; at line 1 it does, but with other upper and lower case"].assert_eq(&replace("ONE", "x"));
    expect!["[isError] `old_str` does not stand in `note.txt`; around line 3 it does, but with other white space (spaces, tabs, line ends): view those lines and copy them exactly"].assert_eq(&replace("and  a half\n\nthree", "x"));
    expect!["[isError] `old_str` does not stand in `note.txt`; the closest line is 4: `three`"]
        .assert_eq(&replace("threex", "x"));
    expect!["[isError] `old_str` stands in several places, at lines 1, 4, 4: add lines before or after it until it is unique"].assert_eq(&replace("e", "x"));
    expect!["[isError] `old_str` and `new_str` are the same, so there is nothing to change"]
        .assert_eq(&replace("one", "one"));
    let lines = json!({ "path": "note.txt", "view_range": [2, 3] });
    assert_eq!(
        chat.call("view", lines).to_string(),
        "     2\t2\n     3\tand a half"
    );
    for (range, fault) in [
        (json!([0, 3]), "begins with line 0"),
        (json!([3, 2]), "before it begins with line 3"),
        (
            json!([9, -1]),
            "begins with line 9, but `note.txt` has 5 lines",
        ),
        (json!([1]), "is a list of two whole numbers"),
        (json!("1-2"), "is a list of two whole numbers"),
    ] {
        let answer = chat.call("view", json!({ "path": "note.txt", "view_range": range }));
        assert!(answer.is_error && answer.text.contains(fault), "{answer}");
    }
    chat.bash(": > empty.txt");
    assert_eq!(chat.view("empty.txt"), "`empty.txt` is empty");
    // Its size is said to be 0.
    let processors = chat.view("/proc/cpuinfo");
    assert!(processors.contains("processor"), "{processors}");
    expect![[r#"
        ., two levels deep, without hidden files:
                      a/
                      a/b/
             0 bytes  empty.txt
            28 bytes  note.txt"#]]
    .assert_eq(
        &chat
            .view(".")
            .lines()
            .filter(|line| !line.contains("README"))
            .collect::<Vec<_>>()
            .join("\n"),
    );
    expect!["[isError] `/home/assistant/notes.txt` does not exist; in /home/assistant there is `note.txt`"].assert_eq(&chat.view("notes.txt"));
}

#[test]
fn fault_15_what_is_not_changed_stays_byte_for_byte() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    chat.bash(r"printf '\xef\xbb\xbfone\r\ntwo\r\n\xff\xfe\r\nlast' > f.txt; chmod 640 f.txt");
    let answer = chat.call(
        "str_replace",
        json!({ "path": "f.txt", "old_str": "two", "new_str": "zwei" }),
    );
    assert!(!answer.is_error, "{answer}");
    assert_eq!(
        chat.bash("xxd -p f.txt || od -An -tx1 f.txt; stat -c %a f.txt")
            .replace([' ', '\n'], ""),
        "efbbbf6f6e650d0a7a7765690d0afffe0d0a6c617374640"
    );
}

#[test]
fn fault_05_a_picture_is_seen_as_a_picture() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    let make = r#"python3 - <<'P'
import struct, zlib
def png(name, width, height):
    rows = b"".join(b"\0" + b"\x20\x80\xff" * width for _ in range(height))
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    open(name, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
png("small.png", 20, 10)
png("large.png", 4000, 1000)
def claim(name, width, height):
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    kind = b"IHDR"
    open(name, "wb").write(b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + kind + head + struct.pack(">I", zlib.crc32(kind + head)) + b"\0" * 100)
claim("huge.png", 30000, 30000)
claim("broken.png", 10, 10)
P"#;
    let drawn = chat.bash(make);
    assert!(drawn.starts_with("[no output]"), "{drawn}");
    let small = chat.call("view", json!({ "path": "small.png" }));
    assert_eq!(small.content[0]["type"], "image");
    assert_eq!(small.content[0]["mimeType"], "image/png");
    let bytes = BASE64_STANDARD
        .decode(small.content[0]["data"].as_str().unwrap())
        .unwrap();
    let length = chat.bash("stat -c %s small.png");
    assert_eq!(bytes.len().to_string(), length, "unchanged");
    let large = chat.call("view", json!({ "path": "large.png" }));
    let bytes = BASE64_STANDARD
        .decode(large.content[0]["data"].as_str().unwrap())
        .unwrap();
    let side = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!((side(16), side(20)), (1568, 392));
    expect!["[shown at 1568 × 392 pixels; `large.png` has 4000 × 1000]"].assert_eq(&large.text);
    for (name, fault) in [
        ("huge.png", "larger than 16384 × 16384 pixels"),
        ("broken.png", "it cannot be read"),
    ] {
        let answer = chat.call("view", json!({ "path": name }));
        assert!(answer.is_error && answer.text.contains(fault), "{answer}");
    }
}

#[test]
fn long_outputs_that_end_together_are_kept_in_files_of_their_own() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    chat.bash("true");
    let words = ["north", "south", "east", "west"];
    thread::scope(|scope| {
        let ran = words.map(|word| {
            let command = format!("yes {word} | head -c 40000");
            scope.spawn(move || (word, Chat { url, id: "c" }.bash(&command)))
        });
        let mut files = Vec::new();
        for ran in ran {
            let (word, said) = ran.join().unwrap();
            let (_, after) = said.split_once("the whole output is in ").unwrap();
            let (file, _) = after.split_once(' ').unwrap();
            assert_eq!(
                chat.bash(&format!("head -1 {file}; stat -c %s {file}")),
                format!("{word}\n40000")
            );
            files.push(file.to_owned());
        }
        files.sort();
        files.dedup();
        assert_eq!(files.len(), words.len());
    });
}

#[test]
fn the_most_that_a_command_may_run_is_said_everywhere_as_it_is() {
    let place = Place::new();
    place.write(
        "foreword.toml",
        "[sandbox]\ncommand_timeout_max_seconds = 1\n",
    );
    let server = place.serve(&["--sandbox", "namespace"]);
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    expect!["[isError] [no output]\n[timed out after 1 s: the command and all that it started were ended. That is the most that a command may run: for longer work run it in the background and look later: `nohup COMMAND > log.txt 2>&1 &`]"]
        .assert_eq(&chat.bash("sleep 60"));
    assert!(
        chat.bash("cat README.md")
            .contains("A command may run for 1 s. Longer work")
    );
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let request = Client::new().post(url).header("accept", "application/json");
    let list = request.json(&list).send().unwrap().text().unwrap();
    assert!(list.contains("1 by default, at most 1."), "{list}");
}

#[test]
fn where_no_sandbox_works_that_is_said_and_prompts_are_served() {
    let place = Place::new();
    place.write("foreword.toml", "[sandbox]\nrootfs = \"/nonexistent\"\n");
    let server = place.serve(&[]);
    let ready: Value = reqwest::blocking::get(server.url("/readyz"))
        .unwrap()
        .json()
        .unwrap();
    assert_eq!(ready["status"], "degraded");
    assert_eq!(ready["components"][1]["name"], "sandbox");
    assert_eq!(ready["components"][1]["status"], "degraded");
    let info = reqwest::blocking::get(server.url("/mcp-info"))
        .unwrap()
        .text()
        .unwrap();
    assert!(
        info.contains("read_me") && !info.contains("bash_tool"),
        "{info}"
    );
}

#[test]
fn bad_arguments_are_said_all_at_once_and_nothing_is_done() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    expect!["[isError] nothing was done: `command` is missing; `timeout` is a number of seconds above 0; `comand` is not an argument; did you mean `command`?. The arguments of `bash_tool` are `description`, `command`, `timeout`"].assert_eq(&chat.call("bash_tool", json!({ "comand": "touch x", "timeout": -1 })).to_string());
    for path in ["", "a\0b", &"x/".repeat(3_000)] {
        let answer = chat.call("create_file", json!({ "path": path, "file_text": "" }));
        assert!(answer.is_error, "{answer}");
    }
    for path in [
        "/etc/passwd",
        "/usr/x",
        "/",
        "/mnt/user-data/uploads/x",
        "../../../etc/x",
    ] {
        let answer = chat.call("create_file", json!({ "path": path, "file_text": "x" }));
        assert!(answer.is_error, "{path}: {answer}");
    }
    let newline = chat.call(
        "create_file",
        json!({ "path": "new\nline", "file_text": "x" }),
    );
    assert!(!newline.is_error, "{newline}");
}

#[test]
fn fault_19_the_readme_is_the_prompt_of_the_session_whatever_happened_to_it() {
    let (place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    let prompt = |chat: &str| {
        let request = Client::new()
            .get(server.url("/system-prompt"))
            .header("x-chat-id", chat);
        request.send().unwrap().text().unwrap()
    };
    let readme = || {
        // The file on the host, since reading it with a tool would mend it first.
        chat.bash("true");
        fs::read_to_string(place.path("data/workspaces/c/home/README.md")).unwrap()
    };
    assert_eq!(readme(), prompt("c"));
    assert!(readme().contains("the file /home/assistant/README.md in your workspace"));
    chat.bash("echo spoilt > README.md");
    assert_eq!(readme(), prompt("c"));
    chat.bash("touch -r README.md kept; printf x | dd of=README.md conv=notrunc status=none; touch -r kept README.md");
    assert_eq!(readme(), prompt("c"), "of the same size and time");
    chat.bash("rm README.md; ln -s /etc/passwd README.md");
    assert_eq!(readme(), prompt("c"));
    chat.bash("echo mine > other.md; rm README.md; ln -s other.md README.md");
    assert_eq!(readme(), prompt("c"));
    assert_eq!(chat.bash("cat other.md"), "mine");
    chat.bash("rm README.md; mkdir README.md; echo inside > README.md/file; chmod 500 .");
    assert_eq!(readme(), prompt("c"));
    assert_eq!(chat.bash("cat README.md.moved-1/file"), "inside");
    place.write("data/system_prompts.yaml", "global_prompt: Be brief.\n");
    eventually("the new prompt is live", PATIENCE, || {
        prompt("c").starts_with("Be brief.").then_some(())
    });
    assert!(readme().starts_with("Be brief."));
}

#[test]
fn a_full_workspace_refuses_files_until_it_is_emptied() {
    let place = Place::new();
    place.write("foreword.toml", "sandbox.workspace_quota_bytes = 2097152\n");
    let server = place.serve(&["--sandbox", "namespace"]);
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    chat.bash("head -c 1536K /dev/zero | tee one > two");
    let create = || {
        let arguments = json!({ "path": "note.txt", "file_text": "a note" });
        chat.call("create_file", arguments).to_string()
    };
    let refusal = eventually("it is counted", PATIENCE, || {
        Some(create()).filter(|answer| answer.starts_with("[isError]"))
    });
    expect!["[isError] the workspace holds 4 MiB of the 2 MiB it may hold; delete what is not needed, then write again"]
        .assert_eq(&refusal);
    expect![[r#"
        [no output]
        [exit code 0]"#]]
    .assert_eq(&chat.bash("rm -f one two note.txt"));
    expect!["created `note.txt`: 1 line"].assert_eq(&create());
}

#[test]
fn a_text_that_is_looked_for_in_vain_holds_nobody_up() {
    let (place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    chat.bash("true");
    let write = |name: &str, text: &str| {
        fs::write(place.path("data/workspaces/c/home").join(name), text).unwrap();
    };
    write("words.txt", &"a ".repeat(3_000_000));
    let lines: String = (0..20_000)
        .flat_map(|line| [format!("{line:0>290}"), "\n".to_owned()])
        .collect();
    write("lines.txt", &lines);
    // Each took minutes, during which nobody was answered.
    for (name, wanted) in [
        ("words.txt", format!("{}b a", "a ".repeat(1_000_000))),
        ("lines.txt", "0123456789".repeat(29)),
    ] {
        let replace = json!({ "path": name, "old_str": wanted, "new_str": "x" });
        let answer = chat.call("str_replace", replace);
        assert!(
            answer.is_error && answer.text.contains("does not stand in"),
            "{name}: {answer}"
        );
    }
}

#[test]
fn a_chat_whose_readme_is_kept_away_gets_it_all_the_same() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    chat.bash("for i in $(seq 1 99); do : > README.md.moved-$i; done; rm README.md; mkdir README.md; : > README.md/x");
    assert_eq!(chat.bash("test -f README.md && echo back"), "back");
}
