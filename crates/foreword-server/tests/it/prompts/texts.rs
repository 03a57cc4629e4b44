//! `/api/prompts/global`, `/api/prompts/workspace-guide` and `/api/prompts/variables`.

use insta::assert_snapshot;
use serde_json::json;

use super::{LIBRARY, server};
use crate::support::TestServer;

#[tokio::test]
async fn the_global_prompt_is_shown() {
    assert_snapshot!(server().get("/api/prompts/global").await.summary(), @r#"
    200
    {
      "global_prompt": {
        "content": "Be kind to {company}'s users.\n",
        "enabled": true
      }
    }
    "#);
}

#[tokio::test]
async fn a_library_without_a_global_prompt_shows_an_empty_one() {
    let server = TestServer::builder().library("profiles: []\n").start();
    assert_snapshot!(server.get("/api/prompts/global").await.summary(), @r#"
    200
    {
      "global_prompt": {
        "content": "",
        "enabled": true
      }
    }
    "#);
}

#[tokio::test]
async fn an_update_without_the_switch_leaves_it_as_it_is() {
    let server = server();
    let path = "/api/prompts/global/update";
    server
        .post(path)
        .json(json!({"content": "Be kind.", "enabled": false}))
        .await;
    let response = server
        .post(path)
        .json(json!({"content": "Be kind.\nBe brief.\n"}))
        .await;
    assert_snapshot!(response.summary(), @r#"
    200
    {
      "global_prompt": {
        "content": "Be kind.\nBe brief.\n",
        "enabled": false
      }
    }
    "#);
    assert_snapshot!(server.difference_to(LIBRARY), @r"
    -    Be kind to {company}'s users.
    -  enabled: true
    +    Be kind.
    +    Be brief.
    +  enabled: false
    ");
}

#[tokio::test]
async fn an_update_takes_what_get_gave() {
    let server = server();
    let shown = server.get("/api/prompts/global").await.json();
    let response = server.post("/api/prompts/global/update").json(shown).await;
    assert_eq!(response.status, 200);
    assert_eq!(server.file(), LIBRARY);
}

#[tokio::test]
async fn fault_39_every_fault_of_an_update_is_told() {
    let server = server();
    let body = json!({"enabled": "on", "text": "x"});
    assert_snapshot!(server.post("/api/prompts/global/update").json(body).await.summary(), @r#"
    422 invalid: the request has 3 faults, see `errors`
      "/content" `content` is missing; give a text
      "/enabled" `enabled` must be true or false, not `"on"`
      "/text" unknown field `text`; known fields: `content`, `enabled`
    "#);
    let body = json!({"workspace_guide": {"content": 1}, "more": 2});
    assert_snapshot!(server.put("/api/prompts/workspace-guide").json(body).await.summary(), @r#"
    422 invalid: the request has 2 faults, see `errors`
      "/more" unknown field `more`; known fields: `workspace_guide`
      "/workspace_guide/content" `content` must be a text, not `1`
    "#);
    let body = json!({"variables": {"company": 7, "chat_id": "x", "Bad Name": "y"}});
    assert_snapshot!(server.put("/api/prompts/variables").json(body).await.summary(), @r#"
    422 invalid: the request has 3 faults, see `errors`
      "/variables/company" `company` must be a text, not `7`
      "/variables/chat_id" variable name `chat_id` belongs to the session; choose another name; the value of this one comes with each session
      "/variables/Bad Name" `Bad Name` cannot be a variable name; use a lower-case letter, then lower-case letters, digits and `_`
    "#);
    assert_eq!(server.file(), LIBRARY);
}

#[tokio::test]
async fn the_workspace_guide_is_the_shipped_one_until_it_is_replaced() {
    let server = server();
    let path = "/api/prompts/workspace-guide";
    let shipped = server.get(path).await.json();
    assert_eq!(shipped["workspace_guide"]["enabled"], true);
    server.put(path).json(shipped).await;
    assert_eq!(server.file(), LIBRARY);
    let response = server
        .put(path)
        .json(json!({"content": "You are in {chat_id}.\n"}))
        .await;
    assert_snapshot!(response.summary(), @r#"
    200
    {
      "workspace_guide": {
        "content": "You are in {chat_id}.\n",
        "enabled": true
      }
    }
    "#);
    assert_snapshot!(server.difference_to(LIBRARY), @r"
    +
    +workspace_guide:
    +  content: |
    +    You are in {chat_id}.
    ");
}

#[tokio::test]
async fn variables_are_replaced_as_a_whole() {
    let server = server();
    let path = "/api/prompts/variables";
    assert_snapshot!(server.get(path).await.summary(), @r#"
    200
    {
      "variables": {
        "company": "Example Ltd"
      }
    }
    "#);
    let response = server
        .put(path)
        .json(json!({"variables": {"company": "Acme", "team": ""}}))
        .await;
    assert_snapshot!(response.summary(), @r#"
    200
    {
      "variables": {
        "company": "Acme",
        "team": ""
      }
    }
    "#);
    assert_snapshot!(server.difference_to(LIBRARY), @r#"
    -  company: Example Ltd
    +  company: Acme
    +  team: ""
    "#);
    let bare = server
        .put(path)
        .json(json!({"variables": "a variable of this name"}))
        .await;
    assert_snapshot!(bare.summary(), @r#"
    200
    {
      "variables": {
        "variables": "a variable of this name"
      }
    }
    "#);
}
