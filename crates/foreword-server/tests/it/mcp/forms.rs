//! The forms of the instructions, chosen by route, key or configuration, never by who the client seems to be.

use foreword_server::config::{Form, KeyConfig, Role, Secret};
use insta::assert_snapshot;

use super::{LIBRARY, discover, initialize, server};
use crate::support::TestServer;

fn utf16(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Sections of about 700 bytes each, of which two fit into the brief form beside the global prompt.
fn long_library() -> String {
    let section = |id: &str, priority: i64, word: &str| {
        let content = vec![word; 700 / (word.len() + 1)].join(" ");
        format!("      - {{id: {id}, priority: {priority}, content: '{content}'}}\n")
    };
    format!(
        "global_prompt: Be kind.\nprofiles:\n  - id: default\n    sections:\n{}{}{}{}",
        section("first", 0, "first"),
        section("second", 5, "second"),
        section("third", 9, "third"),
        "      - {id: short, content: A short one.}\n",
    )
}

#[tokio::test]
async fn the_hint_is_the_static_line_with_a_revision() {
    let server = server();
    let full = server.get("/system-prompt").await;
    let hint = server
        .post("/mcp?instructions=hint")
        .message(&initialize())
        .await
        .instructions();
    let revision = full.header("x-prompt-revision");
    assert!(hint.contains(&format!("`{revision}`")));
    assert!(utf16(&hint) <= 512);
    assert_snapshot!(hint.replace(revision, "[revision]"), @"Foreword keeps the instructions for this session. If you do not see them, or have lost track of them, call the tool `read_me`: it returns them in full. Revision of the full text: `[revision]`.");
}

#[tokio::test]
async fn the_brief_form_holds_whole_parts_by_priority_in_the_order_of_the_prompt() {
    let server = TestServer::builder().library(&long_library()).start();
    let response = server
        .post("/mcp?instructions=brief")
        .message(&initialize())
        .await;
    let brief = response.instructions();
    assert!(utf16(&brief) <= 2_000, "{}", utf16(&brief));
    let shortened = ["first", "second", "third"]
        .into_iter()
        .fold(brief, |text, word| {
            let words = format!("{word} ").repeat(700 / (word.len() + 1));
            text.replace(words.trim_end(), &format!("[{word} …]"))
        });
    let revision = server
        .get("/system-prompt")
        .await
        .header("x-prompt-revision")
        .to_owned();
    assert_snapshot!(shortened.replace(&revision, "[revision]"), @r#"
    This is the short form of this session's instructions, revision `[revision]`. The tool `read_me` returns them in full; call it before you begin.

    Be kind.

    [second …]

    [third …]

    A short one.

    Left out or cut here: 2 of 6 parts. Read them with `read_me`.
    "#);
}

#[tokio::test]
async fn a_brief_form_into_which_no_part_fits_holds_the_beginning_of_the_first() {
    let library = format!(
        "global_prompt: |\n  One.\n\n  Two 😀😀.\n\n  {}\nworkspace_guide: {{enabled: false, content: none}}\n",
        "long ".repeat(500)
    );
    let server = TestServer::builder().library(&library).start();
    let brief = server
        .post("/mcp?instructions=brief")
        .message(&initialize())
        .await
        .instructions();
    assert!(utf16(&brief) <= 2_000);
    assert!(
        brief.contains("\n\nOne.\n\nTwo 😀😀.\n\nLeft out or cut here: 1 of 1 parts."),
        "{brief}"
    );
}

#[tokio::test]
async fn a_part_of_one_endless_word_is_cut_between_characters() {
    let paragraph = "\u{3000}\u{3000}请用简体中文回答。".to_owned() + &"请".repeat(3_000);
    for endless in ["😀".repeat(3_000), paragraph] {
        let library = format!("global_prompt: '{endless}'\n");
        let server = TestServer::builder().library(&library).start();
        let brief = server
            .post("/mcp?instructions=brief")
            .message(&initialize())
            .await
            .instructions();
        assert!(
            (1_900..=2_000).contains(&utf16(&brief)),
            "{}",
            utf16(&brief)
        );
    }
}

#[tokio::test]
async fn the_neutral_form_is_the_same_bytes_for_everybody() {
    let server = server();
    let ask = |chat: &'static str, email: &'static str, profile: &'static str| {
        server
            .post("/mcp?instructions=neutral")
            .header("x-chat-id", chat)
            .header("x-user-email", email)
            .header("x-profile-id", profile)
            .message(&discover())
    };
    let ann = ask("one", "ann@example.com", "default")
        .await
        .instructions();
    let bob = ask("two", "bob@example.com", "writer").await.instructions();
    assert_eq!(ann, bob);
    assert_snapshot!(ann, @r#"
    Be kind.

    You help.

    These instructions are the same for every session; the tool `read_me` returns those of yours, with its values filled in.

    This is (known at call time) of (known at call time). Files are at (known at call time).
    "#);
}

#[tokio::test]
async fn an_unknown_form_is_refused() {
    let response = server()
        .post("/mcp?instructions=short")
        .message(&initialize())
        .await;
    assert_snapshot!(response.rpc_error(), @"400 id=1 -32602 invalid_query `short` is not a form of instructions; there are `full`, `brief`, `hint` and `neutral`");
}

#[tokio::test]
async fn the_form_comes_from_the_route_else_the_key_else_the_configuration() {
    let server = TestServer::builder()
        .library(LIBRARY)
        .config(|config| {
            config.delivery.instructions = Form::Brief;
            for (name, instructions) in [("gateway", Some(Form::Hint)), ("plain", None)] {
                config.auth.keys.push(KeyConfig {
                    name: name.to_owned(),
                    key: Secret::new(name),
                    role: Role::Api,
                    instructions,
                });
            }
        })
        .start();
    let ask = |path: &str, key: &str| server.post(path).key(key).message(&initialize());
    let by_configuration = ask("/mcp", "plain").await.instructions();
    assert!(by_configuration.starts_with("This is the short form"));
    let by_key = ask("/mcp", "gateway").await.instructions();
    assert!(by_key.starts_with("Foreword keeps the instructions"));
    let by_route = ask("/mcp?instructions=full", "gateway")
        .await
        .instructions();
    assert!(by_route.starts_with("Be kind."));
}
