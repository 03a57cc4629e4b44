//! `/api/prompts/sections`.

use insta::assert_snapshot;
use serde_json::json;

use super::{LIBRARY, server};

#[tokio::test]
async fn sections_are_listed_shared_and_inline_with_their_users() {
    assert_snapshot!(server().get("/api/prompts/sections").await.summary(), @"");
}

#[tokio::test]
async fn a_shared_section_shows_who_uses_it() {
    assert_snapshot!(server().get("/api/prompts/sections/safety").await.summary(), @"");
}

#[tokio::test]
async fn an_unknown_section_is_not_found() {
    let server = server();
    let path = "/api/prompts/sections/saftey";
    assert_snapshot!(server.get(path).await.summary(), @"");
    assert_snapshot!(server.put(path).json(json!({"content": "x"})).await.summary(), @"");
    assert_snapshot!(server.patch(path).json(json!({})).await.summary(), @"");
    assert_snapshot!(server.delete(path).await.summary(), @"");
}

#[tokio::test]
async fn an_inline_section_has_no_route_of_its_own_here() {
    assert_snapshot!(server().get("/api/prompts/sections/role").await.summary(), @"");
}

#[tokio::test]
async fn a_new_section_says_where_it_is() {
    let server = server();
    let body = json!({"id": "style", "type": "format", "content": "One.\n\nTwo.", "description": "House style"});
    let response = server.post("/api/prompts/sections").json(body).await;
    assert_snapshot!(response.summary_with(&["location"]), @"");
    assert_snapshot!(server.difference_to(LIBRARY), @"");
}

#[tokio::test]
async fn the_id_of_a_section_can_be_taken_only_once() {
    let server = server();
    let taken = server
        .post("/api/prompts/sections")
        .json(json!({"id": "tone", "content": "x"}))
        .await;
    assert_snapshot!(taken.summary(), @"");
    let inline = server
        .post("/api/prompts/sections")
        .json(json!({"id": "role", "content": "x"}))
        .await;
    assert_snapshot!(inline.summary(), @"");
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
    assert_snapshot!(server.difference_to(LIBRARY), @"");
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
    assert_snapshot!(server.difference_to(LIBRARY), @"");
}

#[tokio::test]
async fn fault_39_every_fault_of_a_section_is_told() {
    let server = server();
    let body =
        json!({"id": "-x", "type": "rules", "contents": "x", "enabled": true, "description": 4});
    assert_snapshot!(server.post("/api/prompts/sections").json(body).await.summary(), @"");
    let body = json!({"section": {"content": null}});
    assert_snapshot!(server.put("/api/prompts/sections/tone").json(body).await.summary(), @"");
    assert_eq!(server.file(), LIBRARY);
}

#[tokio::test]
async fn a_section_that_is_used_cannot_be_deleted() {
    let server = server();
    assert_snapshot!(server.delete("/api/prompts/sections/tone").await.summary(), @"");
    assert_eq!(server.file(), LIBRARY);
    server
        .delete("/api/prompts/profiles/default/sections/tone")
        .await;
    assert_eq!(
        server.delete("/api/prompts/sections/tone").await.status,
        204
    );
    assert_snapshot!(server.difference_to(LIBRARY), @"");
}
