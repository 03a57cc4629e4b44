//! What holds for every edit: round trips, conflicts, edits at the same time.

use futures::future::join_all;
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{LIBRARY, server};
use crate::support::TestServer;

#[tokio::test]
async fn fault_35_what_get_gave_put_takes_without_changing_a_byte() {
    let server = server();
    let items = [
        ("/api/prompts/profiles/default", "profile"),
        ("/api/prompts/profiles/developer", "profile"),
        ("/api/prompts/sections/safety", "section"),
        ("/api/prompts/sections/tone", "section"),
        ("/api/prompts/workspace-guide", "workspace_guide"),
        ("/api/prompts/variables", "variables"),
    ];
    for (path, wrapper) in items {
        let shown = server.get(path).await;
        for body in [shown.json(), shown.json()[wrapper].clone()] {
            let response = server.put(path).json(body).await;
            assert_eq!(response.status, 200, "{path}: {}", response.summary());
            assert_eq!(response.header("etag"), shown.header("etag"), "{path}");
            assert_eq!(server.file(), LIBRARY, "{path}");
        }
    }
    let profile = server.get("/api/prompts/profiles/default").await.json();
    for section in profile["profile"]["sections"].as_array().unwrap() {
        let path = format!(
            "/api/prompts/profiles/default/sections/{}",
            section["id"].as_str().unwrap()
        );
        let response = server.put(&path).json(section.clone()).await;
        assert_eq!(response.status, 200, "{path}: {}", response.summary());
        assert_eq!(server.file(), LIBRARY, "{path}");
    }
}

#[tokio::test]
async fn fault_35_a_built_in_library_is_not_written_by_edits_that_change_nothing() {
    let server = TestServer::new();
    let path = "/api/prompts/profiles/default";
    let response = server.put(path).json(server.get(path).await.json()).await;
    assert_eq!(response.status, 200);
    assert_eq!(
        server.get("/api/prompts/status").await.json()["source"],
        "built-in"
    );
}

#[tokio::test]
async fn fault_33_an_edit_that_was_answered_is_in_the_file_and_one_that_failed_is_not_there() {
    let server = server();
    let response = server
        .patch("/api/prompts/sections/tone")
        .json(json!({"content": "Be kind."}))
        .await;
    assert_eq!(response.status, 200);
    assert!(server.file().contains("Be kind."));
    let written = server.file();

    let refused = server
        .patch("/api/prompts/sections/tone")
        .json(json!({"content": 1}))
        .await;
    assert_eq!(refused.status, 422);
    assert_eq!(server.file(), written);
    assert_eq!(server.get("/api/prompts/export").await.text(), written);
}

#[tokio::test]
async fn fault_33_a_library_that_cannot_be_written_answers_5xx_and_stays_what_is_on_disk() {
    let server = server();
    // A directory in the place of the history, so that nothing can be kept there; permissions do not bind root.
    let data = server.data.path().to_owned();
    std::fs::remove_dir_all(&data).unwrap();
    let before = server.get("/api/prompts/profiles").await;
    let response = server
        .post("/api/prompts/global/update")
        .json(json!({"content": "New."}))
        .await;
    assert!(
        response.status.is_server_error() || response.status == 409,
        "{}",
        response.summary()
    );
    assert!(
        !response.text().contains(data.to_str().unwrap()),
        "{}",
        response.text()
    );
    assert_eq!(
        server.get("/api/prompts/profiles").await.text(),
        before.text()
    );
}

#[tokio::test]
async fn an_edit_with_the_current_tag_is_done_and_one_with_an_old_tag_is_not() {
    let server = server();
    let items = [
        (
            "/api/prompts/profiles/developer",
            "PATCH",
            "/api/prompts/profiles/developer",
            json!({"name": "A"}),
            json!({"name": "B"}),
        ),
        (
            "/api/prompts/profiles/default",
            "PUT",
            "/api/prompts/profiles/default/sections/identity",
            json!({"content": "A", "order": 5}),
            json!({"content": "B", "order": 5}),
        ),
        (
            "/api/prompts/sections/tone",
            "PATCH",
            "/api/prompts/sections/tone",
            json!({"content": "A"}),
            json!({"content": "B"}),
        ),
        (
            "/api/prompts/global",
            "POST",
            "/api/prompts/global/update",
            json!({"content": "A"}),
            json!({"content": "B"}),
        ),
        (
            "/api/prompts/workspace-guide",
            "PUT",
            "/api/prompts/workspace-guide",
            json!({"content": "A"}),
            json!({"content": "B"}),
        ),
        (
            "/api/prompts/variables",
            "PUT",
            "/api/prompts/variables",
            json!({"company": "A"}),
            json!({"company": "B"}),
        ),
    ];
    for (read, method, write, first, second) in items {
        let tag = server.tag(read).await;
        let send = |body: &Value, tag: &str| {
            server
                .request(method.parse().unwrap(), write)
                .header("if-match", tag)
                .json(body.clone())
        };
        let response = send(&first, &tag).await;
        assert_eq!(response.status, 200, "{write}: {}", response.summary());
        let file = server.file();
        let stale = send(&second, &tag).await;
        assert_eq!(stale.status, 412, "{write}: {}", stale.summary());
        assert_eq!(server.file(), file, "{write}");
        let current = stale.header("etag").to_owned();
        let response = send(&second, &format!("\"other\", {current}")).await;
        assert_eq!(response.status, 200, "{write}: {}", response.summary());
        let response = send(&first, "*").await;
        assert_eq!(response.status, 200, "{write}: {}", response.summary());
    }
}

#[tokio::test]
async fn a_stale_edit_is_told_the_current_tag() {
    let server = server();
    let response = server
        .delete("/api/prompts/profiles/developer")
        .header("if-match", "\"0000000000000000\"")
        .await;
    assert_snapshot!(response.summary_with(&["etag"]), @r#"
    412 stale: it was changed since you read it; read it again and repeat the change
    etag: "fb6f9f1c8f3e169e"
    "#);
}

#[tokio::test]
async fn a_weak_tag_never_lets_an_edit_through() {
    let server = server();
    let tag = server.tag("/api/prompts/global").await;
    let response = server
        .post("/api/prompts/global/update")
        .header("if-match", format!("W/{tag}"))
        .json(json!({"content": "x"}))
        .await;
    assert_eq!(response.status, 412);
}

#[tokio::test]
async fn a_tag_that_cannot_be_read_is_refused() {
    let server = server();
    let response = server
        .post("/api/prompts/global/update")
        .header("if-match", "0123")
        .json(json!({"content": "x"}))
        .await;
    assert_snapshot!(response.summary(), @"400 invalid_entity_tag: `if-match` is not a list of entity tags; send the `ETag` of an answer, quotes included, or `*`");
    assert_eq!(server.file(), LIBRARY);
}

#[tokio::test]
async fn if_none_match_is_refused_with_a_write_rather_than_skipped() {
    let response = server()
        .put("/api/prompts/profiles/default/sections/brand-new")
        .header("if-none-match", "*")
        .json(json!({"content": "Be new."}))
        .await;
    assert_snapshot!(response.summary(), @"400 invalid_precondition: `if-none-match` is for reading; writes take `if-match`, and `POST` creates only what does not exist yet");
}

#[tokio::test]
async fn a_change_elsewhere_does_not_stand_in_the_way() {
    let server = server();
    let tag = server.tag("/api/prompts/profiles/default").await;
    server
        .post("/api/prompts/global/update")
        .json(json!({"content": "New."}))
        .await;
    server
        .patch("/api/prompts/sections/tone")
        .json(json!({"content": "New too."}))
        .await;
    let response = server
        .patch("/api/prompts/profiles/default")
        .header("if-match", &*tag)
        .json(json!({"name": "D"}))
        .await;
    assert_eq!(response.status, 200, "{}", response.summary());
}

#[tokio::test]
async fn a_client_that_has_an_answer_already_is_told_so() {
    let server = server();
    let paths = [
        "/api/prompts/profiles",
        "/api/prompts/profiles/default",
        "/api/prompts/global",
        "/api/prompts/sections",
        "/api/prompts/sections/tone",
        "/api/prompts/compose",
        "/api/prompts/mcp-tools",
        "/api/prompts/workspace-guide",
        "/api/prompts/variables",
        "/api/prompts/status",
        "/api/prompts/export",
    ];
    for path in paths {
        let tag = server.tag(path).await;
        for given in [tag.clone(), format!("\"x\", W/{tag}"), "*".to_owned()] {
            let response = server.get(path).header("if-none-match", &*given).await;
            assert_eq!(response.status, 304, "{path} {given}");
            assert_eq!(response.header("etag"), tag, "{path}");
            assert!(response.body.is_empty(), "{path}");
        }
        let response = server.get(path).header("if-none-match", "\"other\"").await;
        assert_eq!(response.status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_profile_is_new_to_its_readers_when_only_its_prompt_has_changed() {
    let server = server();
    let path = "/api/prompts/profiles/default";
    let tag = server.tag(path).await;
    server
        .post("/api/prompts/global/update")
        .json(json!({"content": "New."}))
        .await;
    let response = server.get(path).header("if-none-match", &*tag).await;
    assert_eq!(response.status, 200);
    assert!(response.text().contains("New."));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_of_different_items_at_once_never_lose_one_another() {
    let server = server();
    for round in 0..5 {
        let name = format!("round {round}");
        let edits = [
            server
                .patch("/api/prompts/profiles/default")
                .json(json!({"name": name})),
            server
                .patch("/api/prompts/profiles/developer")
                .json(json!({"name": name})),
            server
                .patch("/api/prompts/sections/safety")
                .json(json!({"name": name})),
            server
                .patch("/api/prompts/sections/tone")
                .json(json!({"name": name})),
            server
                .patch("/api/prompts/profiles/default/sections/identity")
                .json(json!({"name": name})),
            server
                .put("/api/prompts/variables")
                .json(json!({"company": name})),
        ];
        for response in join_all(edits.map(IntoFuture::into_future)).await {
            assert_eq!(response.status, 200, "{}", response.summary());
        }
        let kept = server.file().matches(&name).count();
        assert_eq!(kept, 6, "{}", server.file());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_edits_with_the_same_tag_one_is_refused() {
    let server = server();
    for round in 0..5 {
        let tag = server.tag("/api/prompts/sections/tone").await;
        let edit = |text: String| {
            server
                .patch("/api/prompts/sections/tone")
                .header("if-match", &*tag)
                .json(json!({"content": text}))
        };
        let edits = [edit(format!("a {round}")), edit(format!("b {round}"))];
        let answers = join_all(edits.map(IntoFuture::into_future)).await;
        let mut statuses = answers.map_statuses();
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 412]);
    }
}

/// Reads well where answers are compared by status alone.
trait Statuses {
    fn map_statuses(&self) -> Vec<u16>;
}

impl Statuses for Vec<crate::support::TestResponse> {
    fn map_statuses(&self) -> Vec<u16> {
        self.iter()
            .map(|response| response.status.as_u16())
            .collect()
    }
}
