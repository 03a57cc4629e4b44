//! `/api/prompts/sections`.

use insta::assert_snapshot;
use serde_json::json;

use super::{LIBRARY, server};

#[tokio::test]
async fn sections_are_listed_shared_and_inline_with_their_users() {
    assert_snapshot!(server().get("/api/prompts/sections").await.summary(), @r#"
    200
    {
      "sections": [
        {
          "id": "safety",
          "name": "Safety",
          "type": "constraints",
          "content": "Never print secrets.",
          "description": "Ask legal first",
          "used_by": [
            {
              "profile": "default",
              "enabled": false,
              "order": 10
            }
          ],
          "inline": false
        },
        {
          "id": "tone",
          "name": "tone",
          "type": "custom",
          "content": "Be brief.",
          "description": null,
          "used_by": [
            {
              "profile": "default",
              "enabled": true,
              "order": 10
            }
          ],
          "inline": false
        },
        {
          "id": "identity",
          "name": "identity",
          "type": "persona",
          "content": "You are a helpful assistant.",
          "description": null,
          "used_by": [
            {
              "profile": "default",
              "enabled": true,
              "order": 5
            }
          ],
          "inline": true
        },
        {
          "id": "role",
          "name": "role",
          "type": "custom",
          "content": "You are a senior engineer\nin chat {chat_id}.\n",
          "description": null,
          "used_by": [
            {
              "profile": "developer",
              "enabled": true,
              "order": 0
            }
          ],
          "inline": true
        }
      ]
    }
    "#);
}

#[tokio::test]
async fn a_shared_section_shows_who_uses_it() {
    assert_snapshot!(server().get("/api/prompts/sections/safety").await.summary(), @r#"
    200
    {
      "section": {
        "id": "safety",
        "name": "Safety",
        "type": "constraints",
        "content": "Never print secrets.",
        "description": "Ask legal first",
        "used_by": [
          {
            "profile": "default",
            "enabled": false,
            "order": 10
          }
        ],
        "inline": false
      }
    }
    "#);
}

#[tokio::test]
async fn an_unknown_section_is_not_found() {
    let server = server();
    let path = "/api/prompts/sections/saftey";
    assert_snapshot!(server.get(path).await.summary(), @"404 section_not_found: section `saftey` does not exist; did you mean `safety`?");
    assert_snapshot!(server.put(path).json(json!({"content": "x"})).await.summary(), @"404 section_not_found: section `saftey` does not exist; did you mean `safety`?");
    assert_snapshot!(server.patch(path).json(json!({})).await.summary(), @"404 section_not_found: section `saftey` does not exist; did you mean `safety`?");
    assert_snapshot!(server.delete(path).await.summary(), @"404 section_not_found: section `saftey` does not exist; did you mean `safety`?");
}

#[tokio::test]
async fn an_inline_section_has_no_route_of_its_own_here() {
    assert_snapshot!(server().get("/api/prompts/sections/role").await.summary(), @"404 section_not_found: section `role` does not exist");
}

#[tokio::test]
async fn a_new_section_says_where_it_is() {
    let server = server();
    let body = json!({"id": "style", "type": "format", "content": "One.\n\nTwo.", "description": "House style"});
    let response = server.post("/api/prompts/sections").json(body).await;
    assert_snapshot!(response.summary_with(&["location"]), @r#"
    201
    {
      "section": {
        "id": "style",
        "name": "style",
        "type": "format",
        "content": "One.\n\nTwo.",
        "description": "House style",
        "used_by": [],
        "inline": false
      }
    }
    location: /api/prompts/sections/style
    "#);
    assert_snapshot!(server.difference_to(LIBRARY), @r"
    +  - id: style
    +    type: format
    +    content: |-
    +      One.
    +
    +      Two.
    +    description: House style
    ");
}

#[tokio::test]
async fn the_id_of_a_section_can_be_taken_only_once() {
    let server = server();
    let taken = server
        .post("/api/prompts/sections")
        .json(json!({"id": "tone", "content": "x"}))
        .await;
    assert_snapshot!(taken.summary(), @"409 already_exists: section `tone` exists already");
    let inline = server
        .post("/api/prompts/sections")
        .json(json!({"id": "role", "content": "x"}))
        .await;
    assert_snapshot!(inline.summary(), @"409 already_exists: inline section `role` exists already");
    assert_eq!(server.file(), LIBRARY);
}

#[tokio::test]
async fn a_replaced_section_changes_in_every_profile() {
    let server = server();
    let response = server
        .put("/api/prompts/sections/tone")
        .json(json!({"section": {"id": "tone", "content": "Be very brief.", "used_by": [], "inline": false}}))
        .await;
    assert_eq!(response.status, 200, "{}", response.summary());
    assert_snapshot!(server.difference_to(LIBRARY), @r#"
    -  - {id: tone, content: "Be brief."}
    +  - {id: tone, content: "Be very brief."}
    "#);
    let profile = server.get("/api/prompts/profiles/default").await.json();
    assert!(
        profile["composed_prompt"]
            .as_str()
            .unwrap()
            .contains("Be very brief.")
    );
}

#[tokio::test]
async fn a_patch_changes_what_it_names() {
    let server = server();
    let patch = json!({"content": "Never print keys.", "description": null, "type": null});
    let response = server
        .patch("/api/prompts/sections/safety")
        .json(patch)
        .await;
    assert_eq!(response.status, 200, "{}", response.summary());
    assert_snapshot!(server.difference_to(LIBRARY), @r"
    -    type: constraints
    -    content: Never print secrets.
    -    description: Ask legal first
    +    type: custom
    +    content: Never print keys.
    ");
}

#[tokio::test]
async fn fault_39_every_fault_of_a_section_is_told() {
    let server = server();
    let body =
        json!({"id": "-x", "type": "rules", "contents": "x", "enabled": true, "description": 4});
    assert_snapshot!(server.post("/api/prompts/sections").json(body).await.summary(), @r#"
    422 invalid: the request has 6 faults, see `errors`
      "/type" unknown section type `rules`; use one of `persona`, `task`, `format`, `constraints`, `examples`, `context`, `custom`
      "/content" `content` is missing; give a text
      "/description" `description` must be a text or null, not `4`
      "/contents" unknown field `contents`; did you mean `content`?
      "/enabled" unknown field `enabled`; known fields: `id`, `name`, `type`, `content`, `description`
      "/id" `-x` cannot be an id; use a letter or digit, then letters, digits, `.`, `_` and `-`, at most 64 in all
    "#);
    let body = json!({"section": {"content": null}});
    assert_snapshot!(server.put("/api/prompts/sections/tone").json(body).await.summary(), @r#"
    422 invalid: `content` must be a text, not `null`
      "/section/content" `content` must be a text, not `null`
    "#);
    assert_eq!(server.file(), LIBRARY);
}

#[tokio::test]
async fn a_section_that_is_used_cannot_be_deleted() {
    let server = server();
    assert_snapshot!(server.delete("/api/prompts/sections/tone").await.summary(), @r#"
    409 section_in_use: section `tone` is used by `default`; remove it there first
      profiles: ["default"]
    "#);
    assert_eq!(server.file(), LIBRARY);
    server
        .delete("/api/prompts/profiles/default/sections/tone")
        .await;
    assert_eq!(
        server.delete("/api/prompts/sections/tone").await.status,
        204
    );
    assert_snapshot!(server.difference_to(LIBRARY), @r#"
    -  - {id: tone, content: "Be brief."}
    -    section_ids: [tone]
    +    section_ids: []
    "#);
}
