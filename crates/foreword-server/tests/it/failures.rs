//! What callers are told when something goes wrong inside, and what they are not told.

use std::io;

use foreword_store::{EditError, Health, LoadError, StoreError};
use insta::assert_snapshot;
use serde_json::json;

use crate::support::{TestResponse, TestServer, Trouble};

async fn edit(trouble: Trouble) -> TestResponse {
    let server = TestServer::builder()
        .config(|config| config.http.timeout_seconds = 1)
        .trouble(trouble)
        .start();
    let request = server.post("/api/prompts/global/update");
    request.json(json!({"content": "Be brief."})).await
}

async fn edit_fails(error: impl Fn() -> StoreError + Send + Sync + 'static) -> String {
    let response = edit(Trouble::EditsFail(Box::new(error))).await;
    response.summary_with(&["etag"])
}

fn broken_file() -> Vec<LoadError> {
    vec![
        LoadError {
            line: 3,
            column: 5,
            pointer: Some("/profiles/0/name".to_owned()),
            code: "wrong-type",
            message: "`name` is a list".to_owned(),
            hint: Some("write a text".to_owned()),
        },
        LoadError {
            line: 9,
            column: 1,
            pointer: None,
            code: "syntax",
            message: "a mapping ends here".to_owned(),
            hint: None,
        },
    ]
}

#[tokio::test]
async fn a_store_that_refuses_says_why() {
    assert_snapshot!(edit_fails(|| StoreError::Broken(broken_file())).await, @r#"
    409 library_file_broken: the library file is broken, so it cannot be edited: 3:5: wrong-type (and 1 more)
      "/profiles/0/name" `name` is a list; write a text
      "" a mapping ends here
    "#);
    assert_snapshot!(edit_fails(|| StoreError::Invalid(broken_file())).await, @r#"
    422 invalid: the request has 2 faults, see `errors`
      "/profiles/0/name" `name` is a list; write a text
      "" a mapping ends here
    "#);
    assert_snapshot!(edit_fails(|| StoreError::Aliased { anchor: "tone".to_owned() }).await, @r#"
    409 value_is_aliased: the value is shared through the YAML anchor `&tone`; change it in the file
      anchor: "tone"
    "#);
    assert_snapshot!(edit_fails(|| StoreError::Conflict).await, @"409 conflict: the library was changed by another process; read it again");
    assert_snapshot!(edit_fails(|| StoreError::NothingToUndo).await, @"409 nothing_to_undo: there is nothing to undo");
    assert_snapshot!(edit_fails(|| StoreError::Unwritable("a tab".to_owned())).await, @"422 unwritable: the edit could not be written safely: a tab");
}

#[tokio::test]
async fn an_edit_that_does_not_apply_says_why() {
    let refused =
        async |error: fn() -> EditError| edit_fails(move || StoreError::Refused(error())).await;
    assert_snapshot!(refused(|| EditError::NotFound { kind: "profile", id: "develop".into(), nearest: Some("developer".into()) }).await, @"404 profile_not_found: profile `develop` does not exist; did you mean `developer`?");
    assert_snapshot!(refused(|| EditError::NotFound { kind: "section", id: "x".into(), nearest: None }).await, @"404 section_not_found: section `x` does not exist");
    assert_snapshot!(refused(|| EditError::AlreadyExists { kind: "section", id: "tone".into() }).await, @"409 already_exists: section `tone` exists already");
    assert_snapshot!(refused(|| EditError::Stale { current: "abc".into() }).await, @r#"
    412 stale: it was changed since you read it; read it again and repeat the change
    etag: "abc"
    "#);
    assert_snapshot!(refused(|| EditError::InUse { id: "tone".into(), profiles: vec!["a".into(), "b".into()] }).await, @r#"
    409 section_in_use: section `tone` is used by `a`, `b`; remove it there first
      profiles: ["a","b"]
    "#);
    assert_snapshot!(refused(|| EditError::IsDefault { id: "a".into() }).await, @"409 default_profile: profile `a` is the default; make another profile the default first");
}

#[tokio::test]
async fn a_library_that_cannot_be_stored_is_503_without_the_cause() {
    let unconfirmed = || StoreError::Unconfirmed(io::Error::other("/var/lib/secret is ill"));
    assert_snapshot!(edit_fails(unconfirmed).await, @"503 change_unconfirmed: the change is made, but the disk did not confirm that it will last; it is in force now, so do not send it again");
    let full = || StoreError::Unavailable(Box::new(io::Error::other("/var/lib/secret is full")));
    assert_snapshot!(edit_fails(full).await, @"503 store_unavailable: the library cannot be stored right now; nothing was changed, try again later");
}

#[tokio::test]
async fn work_that_takes_too_long_is_given_up() {
    assert_snapshot!(edit(Trouble::EditsHang).await.summary(), @"503 timed_out: the work took longer than 1 s and is no longer waited for; a change may still come about: look before you try again");
}

#[tokio::test]
async fn a_panic_is_an_internal_error_and_the_server_goes_on() {
    let server = TestServer::builder().trouble(Trouble::EditsPanic).start();
    let request = server.post("/api/prompts/global/update");
    let response = request.json(json!({"content": "Be brief."})).await;
    assert_snapshot!(response.summary(), @"500 internal: something went wrong inside; the server's log has the cause under this request's `X-Request-Id`");
    assert!(!response.header("x-request-id").is_empty());
    let metrics = server.get("/metrics").await;
    assert!(metrics.text().contains(
        r#"foreword_http_requests_total{route="/api/prompts/global/update",status="500"} 1"#
    ));
}

#[tokio::test]
async fn a_broken_library_file_is_degraded_and_still_served() {
    let trouble = Trouble::Degraded(Health::Degraded(broken_file()));
    let server = TestServer::builder().keys().trouble(trouble).start();
    assert_snapshot!(server.get("/readyz").await.summary(), @r#"
    200
    {
      "status": "degraded"
    }
    "#);
    assert_snapshot!(server.get("/readyz").api().await.summary(), @r#"
    200
    {
      "status": "degraded",
      "components": [
        {
          "name": "library",
          "status": "degraded",
          "errors": [
            {
              "pointer": "/profiles/0/name",
              "detail": "`name` is a list; write a text",
              "line": 3,
              "column": 5
            },
            {
              "pointer": "",
              "detail": "a mapping ends here",
              "line": 9,
              "column": 1
            }
          ]
        }
      ]
    }
    "#);
    assert_eq!(server.get("/system-prompt").api().await.status, 200);
}
