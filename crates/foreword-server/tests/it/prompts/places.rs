//! `/api/prompts/profiles/{id}/sections/{section}` and `…/order`.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{LIBRARY, server};

/// The sections of an answer, a line each.
fn sections(answer: &Value) -> String {
    let sections = answer["profile"]["sections"].as_array().unwrap().iter();
    let lines = sections.map(|section| {
        let text = |name: &str| section[name].to_string();
        format!(
            "{} enabled={} order={} priority={} shared={}",
            text("id"),
            text("enabled"),
            text("order"),
            text("priority"),
            text("shared")
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_new_place_comes_last() {
    let server = server();
    let response = server
        .put("/api/prompts/profiles/default/sections/format")
        .json(json!({"type": "format", "content": "Answer in Markdown."}))
        .await;
    assert_eq!(response.status, 201);
    assert_snapshot!(sections(&response.json()), @r#"
    "identity" enabled=true order=5 priority=0 shared=false
    "safety" enabled=false order=10 priority=3 shared=true
    "format" enabled=true order=10 priority=0 shared=false
    "tone" enabled=true order=10 priority=0 shared=true
    "#);
    assert_snapshot!(server.difference_to(LIBRARY), @r"
    +      - id: format
    +        type: format
    +        content: Answer in Markdown.
    +        order: 10
    ");
}

#[tokio::test]
async fn a_place_of_a_shared_section_needs_nothing_but_its_id() {
    let server = server();
    let response = server
        .put("/api/prompts/profiles/developer/sections/safety")
        .json(json!({}))
        .await;
    assert_eq!(response.status, 201);
    assert_snapshot!(server.difference_to(LIBRARY), @"+      - use: safety");
}

#[tokio::test]
async fn a_place_that_exists_is_replaced() {
    let server = server();
    let response = server
        .put("/api/prompts/profiles/default/sections/identity")
        .json(json!({"section": {"id": "identity", "content": "You are brief.", "order": 5, "shared": false}}))
        .await;
    assert_eq!(response.status, 200);
    assert_snapshot!(server.difference_to(LIBRARY), @r"
    -        type: persona
    -        content: You are a helpful assistant.
    +        type: custom
    +        content: You are brief.
    ");
}

#[tokio::test]
async fn a_toggle_changes_one_line() {
    let server = server();
    let response = server
        .patch("/api/prompts/profiles/default/sections/safety")
        .json(json!({"enabled": true}))
        .await;
    assert_snapshot!(sections(&response.json()), @r#"
    "identity" enabled=true order=5 priority=0 shared=false
    "safety" enabled=true order=10 priority=3 shared=true
    "tone" enabled=true order=10 priority=0 shared=true
    "#);
    assert_snapshot!(server.difference_to(LIBRARY), @r"
    -        enabled: false
    +        enabled: true
    ");
}

#[tokio::test]
async fn an_entry_of_the_short_form_becomes_a_place_when_it_gets_a_toggle() {
    let server = server();
    let response = server
        .patch("/api/prompts/profiles/default/sections/tone")
        .json(json!({"enabled": false}))
        .await;
    assert_snapshot!(sections(&response.json()), @r#"
    "identity" enabled=true order=5 priority=0 shared=false
    "safety" enabled=false order=10 priority=3 shared=true
    "tone" enabled=false order=10 priority=0 shared=true
    "#);
    assert_snapshot!(server.difference_to(LIBRARY), @r"
    -    section_ids: [tone]
    +      - use: tone
    +        enabled: false
    +        order: 10
    +    section_ids: []
    ");
}

#[tokio::test]
async fn the_text_of_an_inline_section_can_be_patched() {
    let server = server();
    let response = server
        .patch("/api/prompts/profiles/developer/sections/role")
        .json(json!({"content": "You review.\n", "type": "persona", "name": "Role"}))
        .await;
    assert_eq!(response.status, 200);
    assert_snapshot!(server.difference_to(LIBRARY), @r"
    +        name: Role
    +        type: persona
    -          You are a senior engineer
    -          in chat {chat_id}.
    +          You review.
    ");
}

#[tokio::test]
async fn the_text_of_a_shared_section_is_changed_at_its_own_route() {
    let server = server();
    let path = "/api/prompts/profiles/default/sections/safety";
    let patched = server
        .patch(path)
        .json(json!({"content": "Print them."}))
        .await;
    assert_snapshot!(patched.summary(), @r#"
    422 invalid: section `safety` is shared, so its content cannot be changed in one profile; change the shared section itself, at `/api/prompts/sections/safety`
      "/content" section `safety` is shared, so its content cannot be changed in one profile; change the shared section itself, at `/api/prompts/sections/safety`
    "#);
    let put = server
        .put(path)
        .json(json!({"section": {"name": "Danger"}}))
        .await;
    assert_snapshot!(put.summary(), @r#"
    422 invalid: section `safety` is shared, so its name cannot be changed in one profile; change the shared section itself, at `/api/prompts/sections/safety`
      "/section/name" section `safety` is shared, so its name cannot be changed in one profile; change the shared section itself, at `/api/prompts/sections/safety`
    "#);
    assert_eq!(server.file(), LIBRARY);
}

#[tokio::test]
async fn an_unknown_place_is_not_found() {
    let server = server();
    let path = "/api/prompts/profiles/default/sections/identiy";
    assert_snapshot!(server.patch(path).json(json!({})).await.summary(), @"404 section_not_found: section `identiy` does not exist; did you mean `identity`?");
    assert_snapshot!(server.delete(path).await.summary(), @"404 section_not_found: section `identiy` does not exist; did you mean `identity`?");
    assert_snapshot!(server.put(path).json(json!({})).await.summary(), @r#"
    422 invalid: section `identiy` has no content, and no shared section has this id; give its `content`, or the id of a shared section
      "/content" section `identiy` has no content, and no shared section has this id; give its `content`, or the id of a shared section
    "#);
}

#[tokio::test]
async fn fault_39_every_fault_of_a_place_is_told() {
    let server = server();
    let path = "/api/prompts/profiles/default/sections/no%20good";
    let body = json!({"section": {"id": "other", "enabled": "no", "prority": 1, "type": "x"}});
    assert_snapshot!(server.put(path).json(body).await.summary(), @r#"
    422 invalid: the request has 5 faults, see `errors`
      "/section/id" `id` is `other`, but the address says `no good`; an item keeps its id; leave the field out, or create a new item
      "/section/type" unknown section type `x`; use one of `persona`, `task`, `format`, `constraints`, `examples`, `context`, `custom`
      "/section/enabled" `enabled` must be true or false, not `"no"`
      "/section/prority" unknown field `prority`; did you mean `priority`?
      "/section/content" section `no good` has no content, and no shared section has this id; give its `content`, or the id of a shared section
    "#);
    let path = "/api/prompts/profiles/default/sections/identity";
    let changes = json!({"content": null, "order": "first"});
    assert_snapshot!(server.patch(path).json(changes).await.summary(), @r#"
    422 invalid: the request has 2 faults, see `errors`
      "/content" `content` must be a text, not `null`
      "/order" `order` must be a whole number, not `"first"`
    "#);
    assert_eq!(server.file(), LIBRARY);
}

#[tokio::test]
async fn a_place_can_be_removed_and_a_shared_section_stays() {
    let server = server();
    let response = server
        .delete("/api/prompts/profiles/default/sections/safety")
        .await;
    assert_eq!(response.status, 204);
    assert_snapshot!(server.difference_to(LIBRARY), @r"
    -      - use: safety
    -        enabled: false
    -        order: 10
    -        priority: 3
    ");
    assert_eq!(server.get("/api/prompts/sections/safety").await.status, 200);
}

#[tokio::test]
async fn an_order_numbers_all_places_without_moving_lines() {
    let server = server();
    let response = server
        .put("/api/prompts/profiles/default/order")
        .json(json!({"sections": ["tone", "safety", "identity"]}))
        .await;
    assert_snapshot!(sections(&response.json()), @r#"
    "identity" enabled=true order=2 priority=0 shared=false
    "safety" enabled=false order=1 priority=3 shared=true
    "tone" enabled=true order=0 priority=0 shared=true
    "#);
    assert_snapshot!(server.difference_to(LIBRARY), @r"
    -        order: 5
    +        order: 2
    -        order: 10
    +        order: 1
    -    section_ids: [tone]
    +      - use: tone
    +    section_ids: []
    ");
}

#[tokio::test]
async fn an_order_names_each_section_once() {
    let server = server();
    let path = "/api/prompts/profiles/default/order";
    let orders = [
        json!({"sections": ["identity", "safety"]}),
        json!({"sections": ["identity", "safety", "tone", "tone"]}),
        json!({"sections": ["identity", "safety", "tune"]}),
        json!({"sections": ["identity", 7]}),
        json!({"section": []}),
    ];
    let mut answers = Vec::new();
    for order in orders {
        answers.push(server.put(path).json(order).await.summary());
    }
    assert_snapshot!(answers.join("\n"), @r#"
    422 invalid: section `tone` is missing; name every section of the profile exactly once
      "/sections" section `tone` is missing; name every section of the profile exactly once
    422 invalid: section `tone` is named twice; name every section of the profile exactly once
      "/sections/3" section `tone` is named twice; name every section of the profile exactly once
    422 invalid: the request has 2 faults, see `errors`
      "/sections/2" profile `default` has no section `tune`; name every section of the profile exactly once
      "/sections" section `tone` is missing; name every section of the profile exactly once
    422 invalid: the request has 3 faults, see `errors`
      "/sections/1" an entry of `sections` must be the id of a section, not `7`
      "/sections" section `safety` is missing; name every section of the profile exactly once
      "/sections" section `tone` is missing; name every section of the profile exactly once
    422 invalid: the request has 2 faults, see `errors`
      "/sections" `sections` is missing; give the ids of all sections of the profile
      "/section" unknown field `section`; did you mean `sections`?
    "#);
    assert_eq!(server.file(), LIBRARY);
}
