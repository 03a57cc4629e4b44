//! `foreword compose`: the same text that tiers deliver.

use expect_test::expect;

use crate::support::{Place, get};

const LIBRARY: &str = "\
global_prompt: Be brief, {user_email}.
sections:
  - {id: safety, name: Safety, type: constraints, content: Be safe.}
profiles:
  - id: default
    sections:
      - {use: safety, order: 1}
      - {id: identity, content: You are Ada.}
  - id: empty
";

fn place() -> Place {
    let place = Place::new();
    place.write("data/system_prompts.yaml", LIBRARY);
    place
}

#[test]
fn without_a_chat_it_prints_what_the_library_gives() {
    expect![[r#"
        exit 0
        --- stdout
        Be brief, {user_email}.

        You are Ada.

        Be safe.
        --- stderr
        warning: `{user_email}` has no value in this session and stays as it is written
        warning: `{user_email}` in `global` makes the prompt differ between sessions from byte 10 on
    "#]]
    .assert_eq(&place().run(&["compose"]).to_string());
    expect![[r#"
        exit 0
        --- stdout
        Be brief, {user_email}.
        --- stderr
        warning: `{user_email}` has no value in this session and stays as it is written
        warning: `{user_email}` in `global` makes the prompt differ between sessions from byte 10 on
    "#]]
    .assert_eq(&place().run(&["compose", "--profile", "empty"]).to_string());
}

#[test]
fn explain_shows_part_by_part_where_it_comes_from() {
    expect![[r#"
        exit 0
        --- stdout
        profile default, revision c01f46aa812cca75: 47 bytes, about 12 tokens (bytes/4, an estimate)

        FROM     ID        TYPE         FOR        BYTES  SHARE
        global   global                 everybody  23     48.9 %
        section  identity  custom       everybody  12     25.5 %
        section  safety    constraints  everybody  8      17.0 %

        the first 10 bytes (21.3 %) are the same for every session
        without a value: user_email
        warning: `{user_email}` has no value in this session and stays as it is written
        warning: `{user_email}` in `global` makes the prompt differ between sessions from byte 10 on
        --- stderr
        note: chats get more: the workspace guide, skills, tools of connected servers; `--chat ID` counts those too
    "#]]
    .assert_eq(&place().run(&["compose", "--explain"]).to_string());
}

#[test]
fn scripts_get_json() {
    insta::assert_snapshot!(place().run(&["compose", "--json"]).ok());
}

#[test]
fn with_a_chat_it_prints_exactly_what_the_server_delivers() {
    let place = place();
    let server = place.serve(&["--listen", "127.0.0.1:0"]);
    // The address is part of the links in a prompt.
    place.write(
        "foreword.toml",
        &format!("http.listen = \"{}\"\n", server.address()),
    );
    for (arguments, query) in [
        (&["--chat", "a-chat"][..], "chat_id=a-chat"),
        (
            &["--chat", "A-Chat", "--email", "ada@example.com"],
            "chat_id=a-chat&user_email=ada@example.com",
        ),
        (
            &["--chat", "x", "--profile", "empty"],
            "chat_id=x&profile_id=empty",
        ),
    ] {
        let delivered = get(&server.url(&format!("/system-prompt?{query}")));
        let arguments: Vec<&str> = ["compose"]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        assert_eq!(delivered, (200, place.run(&arguments).ok()), "{query}");
    }
}

#[test]
fn an_unknown_profile_or_an_impossible_chat_is_an_error() {
    expect![[r#"
        exit 1
        --- stderr
        error: profile `nobody` does not exist; known profiles: `default`, `empty`
    "#]]
    .assert_eq(&place().run(&["compose", "--profile", "nobody"]).to_string());
    expect![[r#"
        exit 1
        --- stderr
        error: profile `nobody` does not exist; known profiles: `default`, `empty`
    "#]]
    .assert_eq(
        &place()
            .run(&["compose", "--chat", "x", "--profile", "nobody"])
            .to_string(),
    );
    expect![[r#"
        exit 1
        --- stderr
        error: the chat id is not valid: a chat id has no `/`, `\` or `~`
    "#]]
    .assert_eq(&place().run(&["compose", "--chat", "a/b"]).to_string());
}

#[test]
fn a_data_directory_that_leads_nowhere_is_not_the_built_in_library() {
    let place = Place::new();
    std::os::unix::fs::symlink("nowhere", place.path("data")).unwrap();
    place.write("file", "no directory");
    for arguments in [&["export"][..], &["--data", "file/sub", "export"]] {
        let ran = place.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran}");
    }
}

#[test]
fn a_note_that_cannot_be_written_fails_nothing() {
    let place = Place::new();
    let shell = ["/bin/sh", "-c", "exec \"$0\" \"$@\" 2>/dev/full"];
    let place = place.through(&shell);
    assert!(place.run(&["export"]).ok().contains("profiles:"));
    let said = place.run(&["guide", "disable"]).ok();
    assert!(
        said.starts_with("switched off the workspace guide"),
        "{said}"
    );
}

#[test]
fn reading_makes_no_data_directory() {
    let place = Place::new();
    for arguments in [
        &["compose"][..],
        &["compose", "--chat", "x"],
        &["export"],
        &["profiles", "list"],
        &["sections", "list"],
        &["variables", "list"],
        &["global", "show"],
        &["guide", "show"],
    ] {
        let ran = place.run(arguments);
        assert_eq!(
            (ran.code, ran.stderr.as_str()),
            (
                Some(0),
                "note: there is no `./data/system_prompts.yaml`, so this is the built-in library\n"
            ),
            "{arguments:?}"
        );
        assert!(!place.path("data").exists(), "{arguments:?}");
    }
}

#[test]
fn a_profile_that_was_mistyped_comes_with_the_nearest() {
    for chat in [&[][..], &["--chat", "x"]] {
        let arguments = [&["compose", "--profile", "defualt"], chat].concat();
        let ran = place().run(&arguments);
        assert_eq!(ran.code, Some(1), "{ran}");
        assert!(
            ran.stderr.ends_with("hint: did you mean `default`?\n"),
            "{ran}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn on_a_terminal_a_line_break_follows_the_prompt_and_in_a_pipe_nothing_does() {
    use std::process::{Command, Stdio};

    let place = place();
    let piped = place.run(&["compose", "--profile", "empty"]).ok();
    assert_eq!(piped, "Be brief, {user_email}.");

    // `script` gives its command a terminal.
    let typed = format!(
        "{} compose --profile empty 2>/dev/null",
        env!("CARGO_BIN_EXE_foreword")
    );
    let shown = Command::new("script")
        .args(["--quiet", "--return", "--command", &typed, "/dev/null"])
        .current_dir(place.path(""))
        .stdin(Stdio::null())
        .output()
        .expect("this test needs `script`, of util-linux");
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("Be brief, {user_email}.\r\n"), "{shown:?}");
}
