//! `/api/prompts/profiles`.

use insta::assert_snapshot;
use serde_json::json;

use super::{LIBRARY, server};
use crate::support::TestServer;

#[tokio::test]
async fn profiles_are_listed_with_what_they_hold() {
    let response = server().get("/api/prompts/profiles").await;
    assert_snapshot!(response.summary_with(&["etag", "x-library-revision", "cache-control"]), @r#"
    200
    {
      "profiles": [
        {
          "id": "default",
          "name": "Default Assistant",
          "description": null,
          "is_default": true,
          "sections_count": 3,
          "enabled_sections": 2
        },
        {
          "id": "developer",
          "name": "Developer",
          "description": "Writes and reviews code",
          "is_default": false,
          "sections_count": 1,
          "enabled_sections": 1
        }
      ],
      "total": 2
    }
    etag: "1c95ea1cd4cef4bd"
    x-library-revision: b1d82721b09ab24d
    cache-control: private, no-cache
    "#);
}

#[tokio::test]
async fn a_long_list_comes_in_pages_with_the_whole_total() {
    let server = server();
    let first = server.get("/api/prompts/profiles?limit=1").await;
    let cursor = first.json()["next_cursor"].as_str().unwrap().to_owned();
    let second = server
        .get(&format!("/api/prompts/profiles?limit=1&cursor={cursor}"))
        .await;
    let ids = |page: &serde_json::Value| {
        let (id, total, next) = (
            &page["profiles"][0]["id"],
            &page["total"],
            &page["next_cursor"],
        );
        format!("{id} of {total}, next: {next}")
    };
    assert_snapshot!(ids(&first.json()), @r#""default" of 2, next: "ZGVmYXVsdA""#);
    assert_snapshot!(ids(&second.json()), @r#""developer" of 2, next: null"#);
}

#[tokio::test]
async fn a_page_must_be_asked_for_with_sense() {
    let server = server();
    for query in [
        "limit=0",
        "limit=1001",
        "limit=ten",
        "cursor=bm9ib2R5",
        "cursor=*",
    ] {
        let response = server.get(&format!("/api/prompts/profiles?{query}")).await;
        insta::allow_duplicates! {
            assert_eq!(response.status, 400, "{query}: {}", response.summary());
        }
    }
    assert_snapshot!(server.get("/api/prompts/profiles?limit=0").await.summary(), @"400 invalid_query: the query parameter `limit` is a whole number from 1 to 1000");
    assert_snapshot!(server.get("/api/prompts/profiles?limit=ten").await.summary(), @"400 invalid_query: the query parameter `limit` is a whole number from 1 to 1000");
    assert_snapshot!(server.get("/api/prompts/profiles?cursor=bm9ib2R5").await.summary(), @"400 invalid_cursor: the cursor leads nowhere; start again without it");
}

#[tokio::test]
async fn a_profile_shows_its_sections_and_what_it_composes_to() {
    let response = server().get("/api/prompts/profiles/default").await;
    assert_snapshot!(response.summary(), @r#"
    200
    {
      "profile": {
        "id": "default",
        "name": "Default Assistant",
        "description": null,
        "is_default": true,
        "tools_prompt": true,
        "sections": [
          {
            "id": "identity",
            "name": "identity",
            "type": "persona",
            "content": "You are a helpful assistant.",
            "enabled": true,
            "order": 5,
            "priority": 0,
            "shared": false
          },
          {
            "id": "safety",
            "name": "Safety",
            "type": "constraints",
            "content": "Never print secrets.",
            "enabled": false,
            "order": 10,
            "priority": 3,
            "shared": true
          },
          {
            "id": "tone",
            "name": "tone",
            "type": "custom",
            "content": "Be brief.",
            "enabled": true,
            "order": 10,
            "priority": 0,
            "shared": true
          }
        ]
      },
      "composed_prompt": "Be kind to Example Ltd's users.\n\nYou are a helpful assistant.\n\nBe brief.",
      "revision": "5657047dd4070b22"
    }
    "#);
}

#[tokio::test]
async fn placeholders_of_a_session_stay_in_a_composed_prompt() {
    let response = server().get("/api/prompts/profiles/developer").await;
    assert_snapshot!(response.json()["composed_prompt"].as_str().unwrap(), @r"
    Be kind to Example Ltd's users.

    You are a senior engineer
    in chat {chat_id}.
    ");
}

#[tokio::test]
async fn fault_31_an_unknown_profile_is_not_found_wherever_it_is_named() {
    let server = server();
    let path = "/api/prompts/profiles/develper";
    assert_snapshot!(server.get(path).await.summary(), @"404 profile_not_found: profile `develper` does not exist; did you mean `developer`?");
    assert_snapshot!(server.delete(path).await.summary(), @"404 profile_not_found: profile `develper` does not exist; did you mean `developer`?");
    assert_snapshot!(server.put(path).json(json!({"sections": []})).await.summary(), @"404 profile_not_found: profile `develper` does not exist; did you mean `developer`?");
    assert_snapshot!(server.patch(path).json(json!({})).await.summary(), @"404 profile_not_found: profile `develper` does not exist; did you mean `developer`?");
    assert_snapshot!(server.post(&format!("{path}/default")).await.summary(), @"404 profile_not_found: profile `develper` does not exist; did you mean `developer`?");
    assert_snapshot!(server.put(&format!("{path}/order")).json(json!({"sections": []})).await.summary(), @"404 profile_not_found: profile `develper` does not exist; did you mean `developer`?");
    let place = format!("{path}/sections/role");
    assert_snapshot!(server.put(&place).json(json!({"content": "x"})).await.summary(), @"404 profile_not_found: profile `develper` does not exist; did you mean `developer`?");
    assert_snapshot!(server.patch(&place).json(json!({})).await.summary(), @"404 profile_not_found: profile `develper` does not exist; did you mean `developer`?");
    assert_snapshot!(server.delete(&place).await.summary(), @"404 profile_not_found: profile `develper` does not exist; did you mean `developer`?");
    assert_eq!(server.file(), LIBRARY);
}

#[tokio::test]
async fn a_new_profile_is_added_at_the_end_and_says_where_it_is() {
    let server = server();
    let body = json!({
        "id": "writer",
        "name": "Writer",
        "sections": [{"id": "voice", "type": "persona", "content": "Write plainly.\nNo jargon.\n"}, {"id": "tone"}],
    });
    let response = server.post("/api/prompts/profiles").json(body).await;
    assert_snapshot!(response.summary_with(&["location"]), @r#"
    201
    {
      "profile": {
        "id": "writer",
        "name": "Writer",
        "description": null,
        "is_default": false,
        "tools_prompt": true,
        "sections": [
          {
            "id": "voice",
            "name": "voice",
            "type": "persona",
            "content": "Write plainly.\nNo jargon.\n",
            "enabled": true,
            "order": 0,
            "priority": 0,
            "shared": false
          },
          {
            "id": "tone",
            "name": "tone",
            "type": "custom",
            "content": "Be brief.",
            "enabled": true,
            "order": 0,
            "priority": 0,
            "shared": true
          }
        ]
      },
      "composed_prompt": "Be kind to Example Ltd's users.\n\nWrite plainly.\nNo jargon.\n\nBe brief.",
      "revision": "4f74ba32dff46aad"
    }
    location: /api/prompts/profiles/writer
    "#);
    assert_snapshot!(server.difference_to(LIBRARY), @r"
    +  - id: writer
    +    name: Writer
    +    sections:
    +      - id: voice
    +        type: persona
    +        content: |
    +          Write plainly.
    +          No jargon.
    +      - use: tone
    ");
}

#[tokio::test]
async fn an_id_can_be_taken_only_once() {
    let server = server();
    let response = server
        .post("/api/prompts/profiles")
        .json(json!({"id": "developer"}))
        .await;
    assert_snapshot!(response.summary(), @"409 already_exists: profile `developer` exists already");
    assert_eq!(server.file(), LIBRARY);
}

#[tokio::test]
async fn fault_39_every_fault_of_a_profile_is_told_and_nothing_is_stored() {
    let server = server();
    let body = json!({
        "id": "no good",
        "name": 7,
        "is_default": "yes",
        "colour": "red",
        "sections": [
            {"id": "a", "content": 5, "enabled": "no", "order": 1.5, "type": "personna"},
            {"id": "a", "content": "twice"},
            {"content": "no id"},
            "identity",
            {"id": "empty"},
            {"id": "safety", "content": "Print secrets."},
            {"id": "voice", "content": "x", "ordr": 1}
        ],
    });
    let response = server
        .post("/api/prompts/profiles")
        .json(body.clone())
        .await;
    assert_snapshot!(response.summary(), @r#"
    422 invalid: the request has 14 faults, see `errors`
      "/name" `name` must be a text, not `7`
      "/is_default" `is_default` must be true or false, not `"yes"`
      "/sections/0/type" unknown section type `personna`; did you mean `persona`?
      "/sections/0/content" `content` must be a text, not `5`
      "/sections/0/enabled" `enabled` must be true or false, not `"no"`
      "/sections/0/order" `order` must be a whole number, not `1.5`
      "/sections/2/id" `id` is missing; give a text
      "/sections/3" an entry of `sections` must be an object, not `"identity"`
      "/sections/6/ordr" unknown field `ordr`; did you mean `order`?
      "/colour" unknown field `colour`; known fields: `id`, `name`, `description`, `is_default`, `tools_prompt`, `sections`
      "/sections/4/content" section `empty` has no content, and no shared section has this id; give its `content`, or the id of a shared section
      "/sections/5/content" section `safety` is shared, so its content cannot be changed in one profile; change the shared section itself, at `/api/prompts/sections/safety`
      "/id" `no good` cannot be an id; use a letter or digit, then letters, digits, `.`, `_` and `-`, at most 64 in all
      "/sections/1/id" section `a` stands in this profile more than once; keep one of the places
    "#);
    let wrapped = server
        .post("/api/prompts/profiles")
        .json(json!({"profile": body, "extra": 1}))
        .await;
    let pointers: Vec<String> = wrapped.json()["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fault| fault["pointer"].as_str().unwrap().to_owned())
        .collect();
    assert_snapshot!(pointers.join(" "), @"/extra /profile/name /profile/is_default /profile/sections/0/type /profile/sections/0/content /profile/sections/0/enabled /profile/sections/0/order /profile/sections/2/id /profile/sections/3 /profile/sections/6/ordr /profile/colour /profile/sections/4/content /profile/sections/5/content /profile/id /profile/sections/1/id");
    assert_eq!(server.file(), LIBRARY);
}

#[tokio::test]
async fn a_replaced_profile_changes_only_the_lines_it_must() {
    let server = server();
    let mut profile = server.get("/api/prompts/profiles/default").await.json();
    profile["profile"]["sections"][0]["content"] = "You are a careful assistant.".into();
    let response = server
        .put("/api/prompts/profiles/default")
        .json(profile)
        .await;
    assert_eq!(response.status, 200, "{}", response.summary());
    assert_snapshot!(server.difference_to(LIBRARY), @r"
    -        content: You are a helpful assistant.
    +        content: You are a careful assistant.
    ");
}

#[tokio::test]
async fn a_replaced_profile_needs_its_sections() {
    let server = server();
    let response = server
        .put("/api/prompts/profiles/developer")
        .json(json!({"name": "Dev"}))
        .await;
    assert_snapshot!(response.summary(), @r#"
    422 invalid: `sections` is missing; give all its sections, or send a `PATCH` to leave them as they are
      "/sections" `sections` is missing; give all its sections, or send a `PATCH` to leave them as they are
    "#);
    assert_eq!(server.file(), LIBRARY);
}

#[tokio::test]
async fn a_profile_keeps_its_id() {
    let server = server();
    let body = json!({"profile": {"id": "coder", "sections": []}});
    let response = server
        .put("/api/prompts/profiles/developer")
        .json(body)
        .await;
    assert_snapshot!(response.summary(), @r#"
    422 invalid: `id` is `coder`, but the address says `developer`; an item keeps its id; leave the field out, or create a new item
      "/profile/id" `id` is `coder`, but the address says `developer`; an item keeps its id; leave the field out, or create a new item
    "#);
}

#[tokio::test]
async fn a_patch_changes_what_it_names_and_null_takes_away() {
    let server = server();
    let patch = json!({"name": "Coder", "description": null, "tools_prompt": null});
    let response = server
        .patch("/api/prompts/profiles/developer")
        .header("content-type", "application/merge-patch+json")
        .body(patch.to_string())
        .await;
    assert_eq!(response.status, 200, "{}", response.summary());
    assert_snapshot!(server.difference_to(LIBRARY), @r"
    -    name: Developer
    -    description: Writes and reviews code
    -    tools_prompt: false
    +    name: Coder
    +    tools_prompt: true
    ");
}

#[tokio::test]
async fn a_patch_that_names_nothing_changes_nothing() {
    let server = server();
    let response = server
        .patch("/api/prompts/profiles/developer")
        .json(json!({}))
        .await;
    assert_eq!(response.status, 200);
    assert_eq!(server.file(), LIBRARY);
}

#[tokio::test]
async fn fault_39_every_fault_of_a_patch_is_told() {
    let server = server();
    let patch = json!({"nam": "x", "is_default": 1, "sections": {"id": "role"}});
    let response = server
        .patch("/api/prompts/profiles/developer")
        .json(patch)
        .await;
    assert_snapshot!(response.summary(), @r#"
    422 invalid: the request has 3 faults, see `errors`
      "/is_default" `is_default` must be true or false, not `1`
      "/sections" `sections` must be a list, not an object
      "/nam" unknown field `nam`; did you mean `name`?
    "#);
    let response = server
        .patch("/api/prompts/profiles/developer")
        .json(json!([1]))
        .await;
    assert_snapshot!(response.summary(), @r#"
    422 invalid: the body must be an object, not a list
      "" the body must be an object, not a list
    "#);
    assert_eq!(server.file(), LIBRARY);
}

#[tokio::test]
async fn the_default_mark_moves() {
    let server = server();
    let response = server.post("/api/prompts/profiles/developer/default").await;
    assert_eq!(response.json()["profile"]["is_default"], true);
    let other = server.get("/api/prompts/profiles/default").await.json();
    assert_eq!(other["profile"]["is_default"], false);
    assert_snapshot!(server.difference_to(LIBRARY), @"+    is_default: true");
}

#[tokio::test]
async fn making_the_default_profile_the_default_changes_nothing() {
    let server = server();
    let response = server
        .put("/api/prompts/profiles/default")
        .json(server.get("/api/prompts/profiles/default").await.json())
        .await;
    assert_eq!(response.status, 200);
    assert_eq!(server.file(), LIBRARY);
}

#[tokio::test]
async fn a_deleted_profile_is_gone() {
    let server = server();
    let response = server.delete("/api/prompts/profiles/developer").await;
    assert_snapshot!(response.summary(), @"204");
    assert_snapshot!(server.difference_to(LIBRARY), @r"
    -  # For people who write code.
    -  - id: developer
    -    name: Developer
    -    description: Writes and reviews code
    -    tools_prompt: false
    -    sections:
    -      - id: role
    -        content: |
    -          You are a senior engineer
    -          in chat {chat_id}.
    ");
}

#[tokio::test]
async fn the_default_profile_can_be_deleted_only_when_it_is_the_last() {
    let server = server();
    let response = server.delete("/api/prompts/profiles/default").await;
    assert_snapshot!(response.summary(), @"409 default_profile: profile `default` is the default; make another profile the default first");
    assert_eq!(server.file(), LIBRARY);
    server.delete("/api/prompts/profiles/developer").await;
    assert_eq!(
        server.delete("/api/prompts/profiles/default").await.status,
        204
    );
    assert_snapshot!(server.get("/api/prompts/profiles").await.summary(), @r#"
    200
    {
      "profiles": [],
      "total": 0
    }
    "#);
}

#[tokio::test]
async fn the_profiles_of_the_seed_load_as_they_stand() {
    let seed = "\
profiles:
  - id: default
    name: Default Assistant
    description: General-purpose AI assistant
    is_default: true
    sections:
      - id: identity
        name: Identity
        type: persona
        content: \"You are a helpful AI assistant.\"
        enabled: true
        order: 0
      - id: guidelines
        name: Guidelines
        type: constraints
        content: \"Be concise. Cite sources when possible.\"
        enabled: true
        order: 1
";
    let server = TestServer::builder().library(seed).start();
    let response = server.get("/api/prompts/profiles/default").await;
    assert_snapshot!(response.json()["composed_prompt"].as_str().unwrap(), @r"
    You are a helpful AI assistant.

    Be concise. Cite sources when possible.
    ");
}
