//! Whose files they are, and which chat's.

use std::fs;

use foreword_server::config::SessionMode;
use insta::assert_snapshot;

use super::outputs;
use crate::support::TestServer;

#[tokio::test]
async fn a_chat_belongs_to_its_first_user_here_too() {
    let server = TestServer::new();
    let put = async |user: &'static str| {
        let request = server.put("/api/uploads/c/a").header("x-user-email", user);
        request.body("x").await.summary()
    };
    assert!(put("ann@x.example").await.starts_with("201"));
    assert_snapshot!(put("bob@x.example").await, @"403 chat_belongs_to_another_user: this chat belongs to another user");
    for path in [
        "/api/uploads/c/list",
        "/api/uploads/c/manifest",
        "/api/outputs/c",
        "/files/c/a",
        "/files/c/archive",
    ] {
        let bob = server
            .get(path)
            .header("x-user-email", "bob@x.example")
            .await;
        assert_eq!(bob.status, 403, "{path}");
    }
    let bob = server
        .delete("/api/uploads/c/a")
        .header("x-user-email", "bob@x.example");
    assert_eq!(bob.await.status, 403);
    let asking = server
        .get("/api/uploads/c/list")
        .header("x-user-email", "ann@x.example");
    assert_eq!(asking.await.status, 200);
    assert_eq!(server.get("/api/uploads/c/list").await.status, 200);
}

#[tokio::test]
async fn fault_10_in_single_mode_there_is_one_chat_in_every_path() {
    let server = TestServer::builder()
        .config(|config| config.session.mode = SessionMode::Single)
        .start();
    server.put("/api/uploads/some-chat/a").body("x").await;
    assert_eq!(
        server.get("/api/uploads/other/list").await.json()["total"],
        1
    );
    let directory = server.data.path().join("workspaces/default/outputs");
    fs::write(directory.join("a.txt"), "x").unwrap();
    assert_eq!(server.get("/files/whatever/a.txt").await.status, 200);
    assert_eq!(
        server.get("/api/outputs/whatever").await.json()["chat_id"],
        "default"
    );
    assert_eq!(server.delete("/api/chats/whatever").await.status, 204);
    assert_eq!(
        server.get("/api/uploads/other/list").await.json()["total"],
        0
    );
}

#[tokio::test]
async fn fault_20_asking_for_invented_chats_makes_nothing() {
    let server = TestServer::with_keys();
    for number in 0..50 {
        for path in [
            "api/uploads/C/list",
            "api/uploads/C/manifest",
            "api/outputs/C",
            "files/C/x",
            "files/C/archive",
            "preview/C",
        ] {
            server
                .get(&format!("/{}", path.replace('C', &format!("c{number}"))))
                .api()
                .await;
        }
        server
            .delete(&format!("/api/chats/c{number}"))
            .admin()
            .await;
        // Without a key nothing is taken.
        let put = server
            .put(&format!("/api/uploads/c{number}/a"))
            .body("x")
            .await;
        assert_eq!(put.status, 401);
    }
    assert!(!server.data.path().join("workspaces").exists());
}

#[tokio::test]
async fn only_an_admin_deletes_a_chat() {
    let server = TestServer::with_keys();
    outputs(&server, "c").await;
    assert_eq!(server.delete("/api/chats/c").api().await.status, 403);
    assert_eq!(server.delete("/api/chats/c").admin().await.status, 204);
    assert!(!server.data.path().join("workspaces/c").exists());
    assert_eq!(server.delete("/api/chats/c").admin().await.status, 204);
}

#[tokio::test]
async fn a_server_without_files_says_so() {
    let server = TestServer::builder().without_files().start();
    assert_snapshot!(server.put("/api/uploads/c/a").body("x").await.summary(), @"404 no_workspace: this server keeps no files");
    assert_eq!(server.get("/api/uploads/c/list").await.json()["total"], 0);
    assert_eq!(server.get("/files/c/a").await.status, 404);
}
