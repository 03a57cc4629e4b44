//! Links that open one chat's outputs, and for whom.

use std::fs;

use foreword_server::ChatId;
use insta::assert_snapshot;
use jiff::SignedDuration;

use super::outputs;
use crate::support::TestServer;

#[tokio::test]
async fn a_capability_reads_one_chats_outputs_and_nothing_else() {
    let server = TestServer::with_keys();
    let directory = outputs(&server, "c").await;
    outputs(&server, "d").await;
    fs::write(directory.join("a.txt"), "text").unwrap();
    let links = server.app.links();
    let epoch = links.epoch(server.app.clock());
    let base = links
        .chat(&ChatId::parse("c").unwrap(), None, epoch)
        .file_base_url;
    let segment = base.rsplit('/').next().unwrap();
    for path in [
        "files/S/a.txt",
        "files/S/archive",
        "api/outputs/S",
        "preview/S",
    ] {
        let answer = server
            .get(&format!("/{}", path.replace('S', segment)))
            .await;
        assert_eq!(answer.status, 200, "{path}");
        let keyless = server.get(&format!("/{}", path.replace('S', "c"))).await;
        assert_eq!(keyless.status, 401, "{path}");
        let with_key = server
            .get(&format!("/{}", path.replace('S', "c")))
            .api()
            .await;
        assert_eq!(with_key.status, 200, "{path}");
        let other = server
            .get(&format!(
                "/{}",
                path.replace('S', &segment.replacen('c', "d", 1))
            ))
            .await;
        assert_eq!(other.status, 403, "{path}");
    }
    let list = server.get(&format!("/api/outputs/{segment}")).await.json();
    assert_eq!(list["files"][0]["url"], format!("{base}/a.txt"));
    for path in ["api/uploads/S/list", "api/uploads/S/manifest"] {
        let answer = server
            .get(&format!("/{}", path.replace('S', segment)))
            .await;
        assert_eq!(answer.status, 401, "{path}");
        let answer = server
            .get(&format!("/{}", path.replace('S', segment)))
            .api()
            .await;
        assert_eq!(answer.status, 400, "{path}");
    }
    server.advance(SignedDuration::from_hours(6 * 24));
    let list = server.get(&format!("/api/outputs/{segment}")).await;
    // A capability does not renew itself.
    assert_eq!(list.json()["files"][0]["url"], format!("{base}/a.txt"));
    server.advance(SignedDuration::from_hours(14 * 24));
    assert_snapshot!(server.get(&format!("/files/{segment}/a.txt")).await.summary(), @"403 link_expired: this link has expired; ask in the chat for a fresh one");
    let page = server.get(&format!("/preview/{segment}")).await;
    assert_eq!(page.status, 403);
    assert!(
        page.text().contains("This link has expired"),
        "{}",
        page.text()
    );
}

/// The chat's place in the links that a prompt for this user holds.
async fn segment_for(server: &TestServer, chat: &str, email: Option<&str>) -> String {
    let mut request = server.get("/system-prompt").api();
    request = request.header("x-chat-id", chat);
    if let Some(email) = email {
        request = request.header("x-user-email", email);
    }
    let answer = request.await;
    let base = answer.header("x-file-base-url");
    base.rsplit('/').next().unwrap().to_owned()
}

/// A chat of that user, with `a.txt` in its outputs.
async fn chat_of(server: &TestServer, chat: &str, email: &str) {
    let request = server.put(&format!("/api/uploads/{chat}/seen")).api();
    let request = request.header("x-user-email", email).body("");
    assert_eq!(request.await.status, 201);
    let outputs = format!("workspaces/{chat}/outputs/a.txt");
    fs::write(server.data.path().join(outputs), "text").unwrap();
}

#[tokio::test]
async fn who_follows_a_link_in_a_browser_reads_a_page() {
    let server = TestServer::with_keys();
    outputs(&server, "c").await;
    let segment = segment_for(&server, "c", None).await;
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8";
    let get = async |path: &str, accept: &'static str| {
        let path = format!("/{}", path.replace('S', &segment));
        let answer = server.get(&path).header("accept", accept).await;
        let (kind, vary) = (answer.header("content-type"), answer.header("vary"));
        assert_eq!(vary, "accept", "{path}");
        let title = answer
            .text()
            .split(['<', '>'])
            .skip_while(|word| *word != "h2")
            .nth(1);
        let title = title.unwrap_or("no page").to_owned();
        format!("{} {kind}: {title}", answer.status.as_u16())
    };
    for (path, page, problem) in [
        (
            "files/S/gone.txt",
            "404 text/html; charset=utf-8: There is no such file",
            "404",
        ),
        (
            "files/c~forged/a",
            "403 text/html; charset=utf-8: This link is not valid",
            "403",
        ),
        (
            "files/c/a",
            "401 text/html; charset=utf-8: This page needs a link of its own",
            "401",
        ),
        (
            "files/S/archive?file=1",
            "404 text/html; charset=utf-8: There is no such file",
            "404",
        ),
    ] {
        assert_eq!(get(path, browser).await, page, "{path}");
        for accept in [
            "*/*",
            "application/json, text/html;q=0.5",
            "image/avif,image/webp,*/*;q=0.8",
        ] {
            let expected = format!("{problem} application/problem+json: no page");
            assert_eq!(get(path, accept).await, expected, "{path} {accept}");
        }
    }
    server.advance(SignedDuration::from_hours(15 * 24));
    let expired = get("files/S/gone.txt", browser).await;
    assert_eq!(
        expired,
        "403 text/html; charset=utf-8: This link has expired"
    );
}

#[tokio::test]
async fn a_link_opens_no_more_than_the_user_may_see_for_whom_it_was_made() {
    let server = TestServer::with_keys();
    let early = segment_for(&server, "own1", Some("bob@x.example")).await;
    assert_eq!(
        server.get(&format!("/api/outputs/{early}")).await.status,
        200
    );
    chat_of(&server, "own1", "ann@x.example").await;
    for (email, status) in [
        (Some("Ann@x.example"), 200),
        (None, 200),
        (Some("bob@x.example"), 403),
    ] {
        let segment = segment_for(&server, "own1", email).await;
        for path in [
            "files/S/a.txt",
            "files/S/archive",
            "api/outputs/S",
            "preview/S",
        ] {
            let path = format!("/{}", path.replace('S', &segment));
            assert_eq!(server.get(&path).await.status, status, "{email:?} {path}");
        }
    }
    assert_snapshot!(server.get(&format!("/files/{early}/a.txt")).await.summary(), @"403 chat_belongs_to_another_user: this chat belongs to another user");
    let page = server.get(&format!("/preview/{early}")).await;
    assert!(page.text().contains("This chat belongs to somebody else"));
    // The links in an answer are for the user whom the request named.
    let list = server
        .get("/api/outputs/own1")
        .api()
        .header("x-user-email", "ann@x.example");
    let list = list.await.json();
    let segment = segment_for(&server, "own1", Some("ann@x.example")).await;
    let url = list["files"][0]["url"].as_str().unwrap();
    assert!(url.ends_with(&format!("/files/{segment}/a.txt")), "{url}");
}

#[tokio::test]
async fn a_link_for_nobody_opens_no_owned_chat_where_users_are_required() {
    let server = TestServer::builder()
        .keys()
        .config(|config| config.session.require_owner = true)
        .start();
    chat_of(&server, "c", "ann@x.example").await;
    for (email, status) in [(Some("ann@x.example"), 200), (None, 403)] {
        let segment = segment_for(&server, "c", email).await;
        let answer = server.get(&format!("/files/{segment}/a.txt")).await;
        assert_eq!(answer.status, status, "{email:?}");
    }
}

#[tokio::test]
async fn a_link_opens_a_shared_chat_whoever_it_was_made_for() {
    let server = TestServer::with_keys();
    chat_of(&server, "default", "ann@x.example").await;
    // As it was when `default` was one user's, in `single` mode.
    let owner = server.data.path().join("workspaces/default/owner");
    fs::write(owner, "ann@x.example").unwrap();
    let segment = segment_for(&server, "default", Some("bob@x.example")).await;
    let answer = server.get(&format!("/files/{segment}/a.txt")).await;
    assert_eq!(answer.status, 200);
}
