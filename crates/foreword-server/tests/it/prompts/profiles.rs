//! `/api/prompts/profiles`.

use insta::assert_snapshot;
use serde_json::json;

use super::{LIBRARY, server};
use crate::support::TestServer;

#[tokio::test]
async fn profiles_are_listed_with_what_they_hold() {
    let response = server().get("/api/prompts/profiles").await;
    assert_snapshot!(response.summary_with(&["etag", "x-library-revision", "cache-control"]), @"");
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
    assert_snapshot!(ids(&first.json()), @"");
    assert_snapshot!(ids(&second.json()), @"");
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
    assert_snapshot!(server.get("/api/prompts/profiles?limit=0").await.summary(), @"");
    assert_snapshot!(server.get("/api/prompts/profiles?limit=ten").await.summary(), @"");
    assert_snapshot!(server.get("/api/prompts/profiles?cursor=bm9ib2R5").await.summary(), @"");
}

#[tokio::test]
async fn a_profile_shows_its_sections_and_what_it_composes_to() {
    let response = server().get("/api/prompts/profiles/default").await;
    assert_snapshot!(response.summary(), @"");
}

#[tokio::test]
async fn placeholders_of_a_session_stay_in_a_composed_prompt() {
    let response = server().get("/api/prompts/profiles/developer").await;
    assert_snapshot!(response.json()["composed_prompt"].as_str().unwrap(), @"");
}

#[tokio::test]
async fn fault_31_an_unknown_profile_is_not_found_wherever_it_is_named() {
    let server = server();
    let path = "/api/prompts/profiles/develper";
    assert_snapshot!(server.get(path).await.summary(), @"");
    assert_snapshot!(server.delete(path).await.summary(), @"");
    assert_snapshot!(server.put(path).json(json!({"sections": []})).await.summary(), @"");
    assert_snapshot!(server.patch(path).json(json!({})).await.summary(), @"");
    assert_snapshot!(server.post(&format!("{path}/default")).await.summary(), @"");
    assert_snapshot!(server.put(&format!("{path}/order")).json(json!({"sections": []})).await.summary(), @"");
    let place = format!("{path}/sections/role");
    assert_snapshot!(server.put(&place).json(json!({"content": "x"})).await.summary(), @"");
    assert_snapshot!(server.patch(&place).json(json!({})).await.summary(), @"");
    assert_snapshot!(server.delete(&place).await.summary(), @"");
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
    assert_snapshot!(response.summary_with(&["location"]), @"");
    assert_snapshot!(server.difference_to(LIBRARY), @"");
}

#[tokio::test]
async fn an_id_can_be_taken_only_once() {
    let server = server();
    let response = server
        .post("/api/prompts/profiles")
        .json(json!({"id": "developer"}))
        .await;
    assert_snapshot!(response.summary(), @"");
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
    assert_snapshot!(response.summary(), @"");
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
    assert_snapshot!(pointers.join(" "), @"");
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
    assert_snapshot!(server.difference_to(LIBRARY), @"");
}

#[tokio::test]
async fn a_replaced_profile_needs_its_sections() {
    let server = server();
    let response = server
        .put("/api/prompts/profiles/developer")
        .json(json!({"name": "Dev"}))
        .await;
    assert_snapshot!(response.summary(), @"");
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
    assert_snapshot!(response.summary(), @"");
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
    assert_snapshot!(server.difference_to(LIBRARY), @"");
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
    assert_snapshot!(response.summary(), @"");
    let response = server
        .patch("/api/prompts/profiles/developer")
        .json(json!([1]))
        .await;
    assert_snapshot!(response.summary(), @"");
    assert_eq!(server.file(), LIBRARY);
}

#[tokio::test]
async fn the_default_mark_moves() {
    let server = server();
    let response = server.post("/api/prompts/profiles/developer/default").await;
    assert_eq!(response.json()["profile"]["is_default"], true);
    let other = server.get("/api/prompts/profiles/default").await.json();
    assert_eq!(other["profile"]["is_default"], false);
    assert_snapshot!(server.difference_to(LIBRARY), @"");
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
    assert_snapshot!(response.summary(), @"");
    assert_snapshot!(server.difference_to(LIBRARY), @"");
}

#[tokio::test]
async fn the_default_profile_can_be_deleted_only_when_it_is_the_last() {
    let server = server();
    let response = server.delete("/api/prompts/profiles/default").await;
    assert_snapshot!(response.summary(), @"");
    assert_eq!(server.file(), LIBRARY);
    server.delete("/api/prompts/profiles/developer").await;
    assert_eq!(
        server.delete("/api/prompts/profiles/default").await.status,
        204
    );
    assert_snapshot!(server.get("/api/prompts/profiles").await.summary(), @"");
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
    assert_snapshot!(response.json()["composed_prompt"].as_str().unwrap(), @"");
}
