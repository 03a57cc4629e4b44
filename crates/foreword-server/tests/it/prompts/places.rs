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
    assert_snapshot!(sections(&response.json()), @"");
    assert_snapshot!(server.difference_to(LIBRARY), @"");
}

#[tokio::test]
async fn a_place_of_a_shared_section_needs_nothing_but_its_id() {
    let server = server();
    let response = server
        .put("/api/prompts/profiles/developer/sections/safety")
        .json(json!({}))
        .await;
    assert_eq!(response.status, 201);
    assert_snapshot!(server.difference_to(LIBRARY), @"");
}

#[tokio::test]
async fn a_place_that_exists_is_replaced() {
    let server = server();
    let response = server
        .put("/api/prompts/profiles/default/sections/identity")
        .json(json!({"section": {"id": "identity", "content": "You are brief.", "order": 5, "shared": false}}))
        .await;
    assert_eq!(response.status, 200);
    assert_snapshot!(server.difference_to(LIBRARY), @"");
}

#[tokio::test]
async fn a_toggle_changes_one_line() {
    let server = server();
    let response = server
        .patch("/api/prompts/profiles/default/sections/safety")
        .json(json!({"enabled": true}))
        .await;
    assert_snapshot!(sections(&response.json()), @"");
    assert_snapshot!(server.difference_to(LIBRARY), @"");
}

#[tokio::test]
async fn an_entry_of_the_short_form_becomes_a_place_when_it_gets_a_toggle() {
    let server = server();
    let response = server
        .patch("/api/prompts/profiles/default/sections/tone")
        .json(json!({"enabled": false}))
        .await;
    assert_snapshot!(sections(&response.json()), @"");
    assert_snapshot!(server.difference_to(LIBRARY), @"");
}

#[tokio::test]
async fn the_text_of_an_inline_section_can_be_patched() {
    let server = server();
    let response = server
        .patch("/api/prompts/profiles/developer/sections/role")
        .json(json!({"content": "You review.\n", "type": "persona", "name": "Role"}))
        .await;
    assert_eq!(response.status, 200);
    assert_snapshot!(server.difference_to(LIBRARY), @"");
}

#[tokio::test]
async fn the_text_of_a_shared_section_is_changed_at_its_own_route() {
    let server = server();
    let path = "/api/prompts/profiles/default/sections/safety";
    let patched = server
        .patch(path)
        .json(json!({"content": "Print them."}))
        .await;
    assert_snapshot!(patched.summary(), @"");
    let put = server
        .put(path)
        .json(json!({"section": {"name": "Danger"}}))
        .await;
    assert_snapshot!(put.summary(), @"");
    assert_eq!(server.file(), LIBRARY);
}

#[tokio::test]
async fn an_unknown_place_is_not_found() {
    let server = server();
    let path = "/api/prompts/profiles/default/sections/identiy";
    assert_snapshot!(server.patch(path).json(json!({})).await.summary(), @"");
    assert_snapshot!(server.delete(path).await.summary(), @"");
    assert_snapshot!(server.put(path).json(json!({})).await.summary(), @"");
}

#[tokio::test]
async fn fault_39_every_fault_of_a_place_is_told() {
    let server = server();
    let path = "/api/prompts/profiles/default/sections/no%20good";
    let body = json!({"section": {"id": "other", "enabled": "no", "prority": 1, "type": "x"}});
    assert_snapshot!(server.put(path).json(body).await.summary(), @"");
    let path = "/api/prompts/profiles/default/sections/identity";
    let patch = json!({"content": null, "order": "first"});
    assert_snapshot!(server.patch(path).json(patch).await.summary(), @"");
    assert_eq!(server.file(), LIBRARY);
}

#[tokio::test]
async fn a_place_can_be_removed_and_a_shared_section_stays() {
    let server = server();
    let response = server
        .delete("/api/prompts/profiles/default/sections/safety")
        .await;
    assert_eq!(response.status, 204);
    assert_snapshot!(server.difference_to(LIBRARY), @"");
    assert_eq!(server.get("/api/prompts/sections/safety").await.status, 200);
}

#[tokio::test]
async fn an_order_numbers_all_places_without_moving_lines() {
    let server = server();
    let response = server
        .put("/api/prompts/profiles/default/order")
        .json(json!({"sections": ["tone", "safety", "identity"]}))
        .await;
    assert_snapshot!(sections(&response.json()), @"");
    assert_snapshot!(server.difference_to(LIBRARY), @"");
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
    assert_snapshot!(answers.join("\n"), @"");
    assert_eq!(server.file(), LIBRARY);
}
