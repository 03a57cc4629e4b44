//! `/api/prompts/compose`.

use insta::assert_snapshot;
use serde_json::json;

use super::{LIBRARY, server};
use crate::support::TestServer;

#[tokio::test]
async fn a_preview_explains_the_prompt_part_by_part() {
    let server = server();
    let response = server
        .get("/api/prompts/compose?profile_id=developer&additional_context=Use%20Rust.")
        .await;
    assert_snapshot!(response.summary(), @r#"
    200
    {
      "system_prompt": "Be kind to Example Ltd's users.\n\nYou are a senior engineer\nin chat {chat_id}.\n\nUse Rust.",
      "profile_id": "developer",
      "revision": "4daa049159ecd9c8",
      "parts": [
        {
          "source": "global",
          "id": "global",
          "name": "Global prompt",
          "start": 0,
          "end": 31,
          "stability": "static"
        },
        {
          "source": "section",
          "id": "role",
          "name": "role",
          "type": "custom",
          "start": 33,
          "end": 77,
          "stability": "static"
        },
        {
          "source": "context",
          "id": "context-1",
          "name": "Request context",
          "start": 79,
          "end": 88,
          "stability": "session"
        }
      ],
      "stable_prefix": 67,
      "tokens": {
        "estimate": 22,
        "method": "bytes/4"
      },
      "unresolved": [
        "chat_id"
      ],
      "diagnostics": [
        {
          "code": "unresolved-placeholder",
          "severity": "warning",
          "part": "role",
          "start": 67,
          "end": 76,
          "message": "`{chat_id}` has no value in this session and stays as it is written",
          "hint": "give the request a value for `chat_id`, or write `\\{chat_id}` if the braces are meant as text"
        },
        {
          "code": "unstable-prefix",
          "severity": "warning",
          "part": "role",
          "start": 67,
          "end": 76,
          "message": "`{chat_id}` in `role` makes the prompt differ between sessions from byte 67 on",
          "hint": "move it to the workspace guide, which comes last, so that providers can cache what stands before it"
        }
      ]
    }
    "#);
}

#[tokio::test]
async fn without_a_profile_it_is_the_default_one() {
    let response = server().get("/api/prompts/compose").await.json();
    assert_eq!(response["profile_id"], "default");
    assert_snapshot!(response["system_prompt"].as_str().unwrap(), @r"
    Be kind to Example Ltd's users.

    You are a helpful assistant.

    Be brief.
    ");
}

#[tokio::test]
async fn fault_31_an_unknown_profile_is_an_error_that_names_it_and_the_known_ones() {
    let server = server();
    assert_snapshot!(server.get("/api/prompts/compose?profile_id=coder").await.summary(), @r#"
    404 profile_not_found: profile `coder` does not exist; known profiles: `default`, `developer`
      known: ["default","developer"]
    "#);
    let with_chat = server
        .get("/api/prompts/compose?profile_id=coder&chat_id=c1")
        .await;
    assert_snapshot!(with_chat.summary(), @r#"
    404 profile_not_found: profile `coder` does not exist; known profiles: `default`, `developer`
      known: ["default","developer"]
    "#);
    let posted = server
        .post("/api/prompts/compose")
        .json(json!({"profile_id": "coder"}))
        .await;
    assert_snapshot!(posted.summary(), @r#"
    404 profile_not_found: profile `coder` does not exist; known profiles: `default`, `developer`
      known: ["default","developer"]
    "#);
}

#[tokio::test]
async fn fault_40_the_preview_is_what_the_chat_gets() {
    let server = server();
    for profile in ["default", "developer"] {
        let delivered = server
            .get("/system-prompt")
            .header("x-chat-id", "Chat-7")
            .header("x-user-email", "Ann@Example.com")
            .header("x-profile-id", profile)
            .await;
        assert_eq!(delivered.status, 200);
        let query = format!("profile_id={profile}&chat_id=Chat-7&user_email=Ann%40Example.com");
        let preview = server
            .get(&format!("/api/prompts/compose?{query}"))
            .await
            .json();
        assert_eq!(preview["system_prompt"], delivered.text());
        assert_eq!(preview["revision"], delivered.header("x-prompt-revision"));
        let body =
            json!({"profile_id": profile, "chat_id": "Chat-7", "user_email": "Ann@Example.com"});
        let posted = server.post("/api/prompts/compose").json(body).await.json();
        assert_eq!(posted, preview);
    }
}

#[tokio::test]
async fn fault_40_a_preview_of_the_library_that_is_kept_is_the_same_when_it_is_sent_along() {
    let server = server();
    let body = json!({"chat_id": "c1", "profile_id": "developer"});
    let kept = server.post("/api/prompts/compose").json(body).await.json();
    let body = json!({"chat_id": "c1", "profile_id": "developer", "library": LIBRARY});
    let sent = server.post("/api/prompts/compose").json(body).await.json();
    assert_eq!(sent, kept);
}

#[tokio::test]
async fn an_override_is_the_prompt() {
    let server = server();
    let body = json!({"system_override": "  Only {chat_id} this.\n", "chat_id": "c1"});
    let response = server.post("/api/prompts/compose").json(body).await;
    assert_snapshot!(response.summary(), @r#"
    200
    {
      "system_prompt": "  Only {chat_id} this.\n",
      "profile_id": "default",
      "revision": "5e01da8578dd24a9",
      "parts": [
        {
          "source": "override",
          "id": "override",
          "name": "Override",
          "start": 0,
          "end": 23,
          "stability": "session"
        }
      ],
      "stable_prefix": 0,
      "tokens": {
        "estimate": 6,
        "method": "bytes/4"
      },
      "unresolved": [],
      "diagnostics": []
    }
    "#);
    let blank = server
        .get("/api/prompts/compose?system_override=%20")
        .await
        .json();
    assert_eq!(blank["parts"][0]["source"], "global");
}

#[tokio::test]
async fn a_body_can_bring_variables_tools_and_context() {
    let server = server();
    let body = json!({
        "variables": {"company": "Acme", "nobody": "x"},
        "tools": [{"name": "search", "description": "Finds things.", "server": "web"}],
        "additional_context": ["First.", "Second {company}."],
    });
    let response = server.post("/api/prompts/compose").json(body).await.json();
    assert_snapshot!(response["system_prompt"].as_str().unwrap(), @r"
    Be kind to Acme's users.

    ## Tools

    You can call the following tools, each by the name in front of it.

    ### web

    - `search`: Finds things.

    You are a helpful assistant.

    Be brief.

    First.

    Second {company}.
    ");
    assert_snapshot!(response["diagnostics"], @r#"[{"code":"unknown-variable","severity":"warning","part":null,"message":"the library does not declare a variable `nobody`, so its value is ignored","hint":"declare `nobody` under `variables` in the library"},{"code":"unstable-prefix","severity":"warning","part":"global","start":11,"end":15,"message":"`{company}` in `global` makes the prompt differ between sessions from byte 11 on","hint":"move it to the workspace guide, which comes last, so that providers can cache what stands before it"}]"#);
}

#[tokio::test]
async fn an_unsaved_library_is_composed_and_not_kept() {
    let server = server();
    let library = "profiles:\n  - id: draft\n    sections:\n      - {id: a, content: Draft.}\n";
    let response = server
        .post("/api/prompts/compose")
        .json(json!({"library": library}))
        .await;
    assert_eq!(response.json()["system_prompt"], "Draft.");
    assert_eq!(response.json()["profile_id"], "draft");
    assert_eq!(server.file(), LIBRARY);
}

#[tokio::test]
async fn an_unsaved_library_with_mistakes_is_refused_with_all_of_them() {
    let server = server();
    let library = "profile: []\nprofiles:\n  - id: a b\n    sections:\n      - {use: nowhere, enabled: \"no\"}\n";
    let response = server
        .post("/api/prompts/compose")
        .json(json!({"library": library}))
        .await;
    assert_snapshot!(response.summary(), @r#"
    422 invalid: the request has 4 faults, see `errors`
      "/profile" unknown key `profile` in the library; did you mean `profiles`?
      "/profiles/0/id" `a b` cannot be an id; use a letter or digit, then letters, digits, `.`, `_` and `-`, at most 64 in all
      "/profiles/0/sections/0/use" there is no shared section `nowhere`; add it under `sections`, or write the section here with an `id`
      "/profiles/0/sections/0/enabled" `enabled` must be `true` or `false`, but this is the text `no`; write `true` or `false` without quotes
    "#);
}

#[tokio::test]
async fn every_fault_of_a_request_is_told() {
    let server = server();
    let body = json!({
        "profile": "x",
        "chat_id": 7,
        "additional_context": ["a", 1],
        "variables": {"company": 7},
        "tools": [{"description": 3, "inputSchema": {}, "input_schema": {}}, "x"],
        "library": ["a"],
    });
    assert_snapshot!(server.post("/api/prompts/compose").json(body).await.summary(), @r#"
    422 invalid: the request has 9 faults, see `errors`
      "/chat_id" `chat_id` must be a text or null, not `7`
      "/additional_context/1" an entry of `additional_context` must be a text, not `1`
      "/variables/company" `company` must be a text, not `7`
      "/tools/0/name" `name` is missing; give a text
      "/tools/0/description" `description` must be a text or null, not `3`
      "/tools/0/input_schema" `inputSchema` and `input_schema` say the same thing; leave one of them out
      "/tools/1" an entry of `tools` must be an object, not `"x"`
      "/library" `library` must be a text or null, not a list
      "/profile" unknown field `profile`; known fields: `profile_id`, `chat_id`, `user_email`, `user_name`, `additional_context`, `system_override`, `variables`, `tools`, `library`
    "#);
    assert_snapshot!(server.get("/api/prompts/compose?chat_id=a/b").await.summary(), @r"400 invalid_chat_id: the chat id is not valid: a chat id has no `/`, `\` or `~`");
    assert_snapshot!(server.get("/api/prompts/compose?user_email=nobody").await.summary(), @"400 invalid_user_email: the user's e-mail address is not valid: it has one `@`, at most 254 bytes, no spaces, no line breaks and no characters that nobody sees");
}

#[tokio::test]
async fn a_preview_needs_no_chat_where_delivery_does() {
    let server = TestServer::builder()
        .library(LIBRARY)
        .config(|config| config.session.mode = foreword_server::config::SessionMode::Strict)
        .start();
    assert_eq!(server.get("/system-prompt").await.status, 400);
    assert_eq!(server.get("/api/prompts/compose").await.status, 200);
}

#[tokio::test]
async fn in_single_mode_every_chat_is_the_one_that_is_delivered() {
    let server = TestServer::builder()
        .library(LIBRARY)
        .config(|config| config.session.mode = foreword_server::config::SessionMode::Single)
        .start();
    let delivered = server
        .get("/system-prompt")
        .header("x-chat-id", "other")
        .await;
    let preview = server.get("/api/prompts/compose?chat_id=mine").await.json();
    assert_eq!(preview["system_prompt"], delivered.text());
}
