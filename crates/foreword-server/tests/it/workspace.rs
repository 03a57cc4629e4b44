//! The files of chats: made on first use, by whom they may be used, how long they are kept.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    time::{Duration, SystemTime},
};

use foreword_sandbox::SandboxConfig;
use foreword_server::{ChatId, Session, Workspaces, session::SessionSources};
use http::HeaderMap;
use jiff::SignedDuration;

use crate::support::{START, TestServer};

fn session(server: &TestServer, chat: &str, email: Option<&str>) -> Session {
    let mut headers = HeaderMap::new();
    headers.insert("x-chat-id", chat.parse().unwrap());
    if let Some(email) = email {
        headers.insert("x-user-email", email.parse().unwrap());
    }
    let request = server
        .app
        .sessions()
        .read(SessionSources::http(&headers, None));
    request.unwrap().require().unwrap()
}

async fn enter(server: &TestServer, chat: &str, email: Option<&str>) -> String {
    let session = session(server, chat, email);
    match server.app.workspaces().enter(&session).await {
        Ok(workspace) => format!("in {}", workspace.chat_id()),
        Err(error) => error.to_string(),
    }
}

fn chat(id: &str) -> ChatId {
    ChatId::parse(id).unwrap()
}

async fn delete(workspaces: &Workspaces, id: &str) -> bool {
    match workspaces.exclude(&chat(id)).await.unwrap() {
        Some(excluded) => excluded.discard().await.is_ok(),
        None => false,
    }
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

#[tokio::test]
async fn nothing_is_made_before_a_chat_is_used() {
    let server = TestServer::new();
    let root = server.data.path().join("workspaces");
    let found = server.app.workspaces().find(&chat("a")).await.unwrap();
    assert!(found.is_none());
    assert!(!delete(server.app.workspaces(), "a").await);
    assert_eq!(swept(&server).await, (0, 0));
    assert!(!root.exists());

    assert_eq!(enter(&server, "A", None).await, "in a");
    let found = server.app.workspaces().find(&chat("a")).await.unwrap();
    let workspace = found.unwrap();
    assert_eq!(mode(&root), 0o700);
    assert_eq!(mode(&root.join("a")), 0o700);
    for name in ["lock", "chat", "used"] {
        assert_eq!(mode(&root.join("a").join(name)), 0o600, "{name}");
    }
    assert_eq!(fs::read_to_string(root.join("a/chat")).unwrap(), "a");
    if rustix::process::geteuid().is_root() {
        for path in [workspace.home_path(), workspace.outputs_path()] {
            let user = SandboxConfig::default().host_uid;
            let metadata = path.metadata().unwrap();
            assert_eq!((metadata.uid(), metadata.gid()), (user, user));
        }
        assert_eq!(workspace.uploads_path().metadata().unwrap().uid(), 0);
    }
}

#[tokio::test]
async fn fault_04_no_chat_id_makes_a_directory_outside() {
    let server = TestServer::new();
    for id in ["channel:x", "a%2e", "#", "-", "con", ".x"] {
        assert_eq!(enter(&server, id, None).await, format!("in {id}"));
    }
    let root = server.data.path().join("workspaces");
    let names: Vec<String> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), 6, "{names:?}");
    assert!(names.iter().all(|name| !name.starts_with('.')), "{names:?}");
}

#[tokio::test]
async fn the_first_user_owns_a_chat() {
    let server = TestServer::new();
    assert_eq!(enter(&server, "c", None).await, "in c");
    assert_eq!(enter(&server, "c", Some("Ann@x.example")).await, "in c");
    assert_eq!(enter(&server, "c", Some("ann@X.example")).await, "in c");
    assert_eq!(
        enter(&server, "c", Some("bob@x.example")).await,
        "this chat belongs to another user"
    );
    assert_eq!(enter(&server, "c", None).await, "in c");
    for shared in ["channel:c", "default"] {
        for user in ["ann@x.example", "bob@x.example"] {
            let entered = enter(&server, shared, Some(user)).await;
            assert_eq!(entered, format!("in {shared}"));
        }
    }
}

#[tokio::test]
async fn a_chat_is_not_deleted_under_work_that_outlasts_its_call() {
    let server = TestServer::new();
    let workspaces = server.app.workspaces();
    let workspace = workspaces
        .enter(&session(&server, "c", None))
        .await
        .unwrap();
    let held = workspace.hold();
    drop(workspace);
    // Long enough to be deleted, if nobody used it.
    server.advance(SignedDuration::from_hours(24 * 30));
    assert_eq!(swept(&server).await, (0, 0));
    drop(held);
    assert_eq!(swept(&server).await, (1, 0));
}

#[tokio::test]
async fn a_server_may_insist_on_a_user() {
    let server = TestServer::builder()
        .config(|config| config.session.require_owner = true)
        .start();
    assert_eq!(
        enter(&server, "c", None).await,
        "this server needs to know the user: send the header `X-User-Email`"
    );
    assert!(!server.data.path().join("workspaces").exists());
    assert_eq!(enter(&server, "c", Some("ann@x.example")).await, "in c");
    assert_eq!(enter(&server, "channel:c", None).await, "in channel:c");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_come_first_one_becomes_the_owner() {
    let server = TestServer::new();
    let tasks: Vec<_> = (0..32)
        .map(|user| {
            let session = session(&server, "c", Some(&format!("user-{user}@x.example")));
            // Each as if it were a process of its own: nothing is shared but the directory.
            let workspaces = Workspaces::new(
                Some(server.data.path().join("workspaces")),
                SandboxConfig::default().host_uid,
                server.app.config(),
                server.app.clock().clone(),
            );
            tokio::spawn(async move { workspaces.enter(&session).await.is_ok() })
        })
        .collect();
    let mut owners = 0;
    for task in tasks {
        owners += usize::from(task.await.unwrap());
    }
    assert_eq!(owners, 1);
}

#[tokio::test]
async fn unused_chats_are_deleted_and_used_ones_stay() {
    let server = TestServer::new();
    let workspaces = server.app.workspaces();
    for id in ["old", "busy", "read"] {
        enter(&server, id, None).await;
    }
    let busy = workspaces.enter(&session(&server, "busy", None)).await;
    server.advance(SignedDuration::from_hours(6 * 24));
    assert_eq!(swept(&server).await, (0, 0));
    assert!(workspaces.find(&chat("read")).await.unwrap().is_some());
    server.advance(SignedDuration::from_hours(25));
    assert_eq!(swept(&server).await, (1, 0));
    assert!(workspaces.find(&chat("old")).await.unwrap().is_none());
    drop(busy);
    assert_eq!(swept(&server).await, (1, 0));
    assert!(workspaces.find(&chat("busy")).await.unwrap().is_none());
    assert!(workspaces.find(&chat("read")).await.unwrap().is_some());
    let trash = server.data.path().join("workspaces/.trash");
    assert_eq!(fs::read_dir(trash).unwrap().count(), 0);
}

/// The chats that a sweep deletes, and those that it spares.
async fn swept(server: &TestServer) -> (usize, usize) {
    let swept = server.app.workspaces().sweep().await.unwrap();
    (swept.deleted, swept.spared)
}

const DAY: u64 = 24 * 60 * 60;

#[tokio::test]
async fn what_was_due_before_the_server_started_is_spared_for_a_day() {
    let server = TestServer::new();
    let root = server.data.path().join("workspaces");
    for id in ["restored", "fetched", "spared", "long-spared", "fresh"] {
        enter(&server, id, None).await;
    }
    leave(&root.join("restored/used"), 30 * DAY);
    leave(&root.join("fetched/used"), 30 * DAY);
    leave(&root.join("fresh/used"), 6 * DAY);
    // By a server before this one, and by one before a backup was made.
    for (id, days) in [("spared", 13), ("long-spared", 15)] {
        leave(&root.join(id).join("used"), days * DAY);
        leave(&root.join(id).join("spared"), days * DAY);
    }
    assert_eq!(swept(&server).await, (1, 3));
    assert!(!root.join("spared").exists());
    server.advance(SignedDuration::from_hours(24));
    assert_eq!(swept(&server).await, (0, 0));
    enter(&server, "fetched", None).await;
    server.advance(SignedDuration::from_mins(1));
    assert_eq!(swept(&server).await, (3, 0));
    assert!(root.join("fetched").exists());
    // While it runs, nothing is spared.
    server.advance(SignedDuration::from_hours(30 * 24));
    assert_eq!(swept(&server).await, (1, 0));
}

#[tokio::test]
async fn a_chat_that_cannot_be_spared_is_not_deleted() {
    let server = TestServer::new();
    let chat = server.data.path().join("workspaces/c");
    enter(&server, "c", None).await;
    leave(&chat.join("used"), 30 * DAY);
    fs::create_dir(chat.join("spared")).unwrap();
    server.app.workspaces().sweep().await.unwrap_err();
    assert!(chat.join("home").exists());
}

#[tokio::test]
async fn files_are_kept_for_ever_where_retention_is_0() {
    let server = TestServer::builder()
        .config(|config| config.workspace.retention = 0)
        .start();
    enter(&server, "c", None).await;
    server.advance(SignedDuration::from_hours(1000 * 24));
    let root = server.data.path().join("workspaces");
    // What a process left that was killed goes all the same.
    let (part, trash) = (root.join("c/parts/left"), root.join(".trash/0"));
    leave(&part, 0);
    fs::create_dir_all(trash.join("half")).unwrap();
    assert_eq!(swept(&server).await, (0, 0));
    let found = server.app.workspaces().find(&chat("c")).await.unwrap();
    assert!(found.is_some());
    assert!(!part.exists());
    assert!(!trash.exists());
}

/// Makes a file as it would have been left so many seconds before tests begin.
fn leave(path: &Path, seconds: u64) {
    let start: jiff::Timestamp = START.parse().unwrap();
    let left = u64::try_from(start.as_second()).unwrap() - seconds;
    let file = fs::File::create(path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(left))
        .unwrap();
}

#[tokio::test]
async fn a_part_is_cleared_away_once_nobody_can_be_about_to_lock_it() {
    let server = TestServer::new();
    enter(&server, "c", None).await;
    let parts = server.data.path().join("workspaces/c/parts");
    let [old, fresh, busy] = ["old", "fresh", "busy"].map(|name| parts.join(name));
    leave(&old, 61);
    leave(&fresh, 30);
    leave(&busy, 10_000);
    let held = fs::File::open(&busy).unwrap();
    held.lock().unwrap();
    assert_eq!(swept(&server).await, (0, 0));
    assert!(!old.exists());
    assert!(fresh.exists());
    assert!(busy.exists());
}

#[tokio::test]
async fn a_deleted_chat_is_gone_with_all_that_a_sandbox_can_make() {
    let server = TestServer::new();
    let workspaces = server.app.workspaces();
    let ann = session(&server, "c", Some("ann@x.example"));
    let workspace = workspaces.enter(&ann).await.unwrap();
    let outside = server.data.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "").unwrap();
    let home = workspace.home_path();
    std::os::unix::fs::symlink(&outside, home.join("link")).unwrap();
    fs::create_dir(home.join("closed")).unwrap();
    fs::write(home.join("closed/file"), "").unwrap();
    fs::set_permissions(home.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    // Deeper than a table of open files, or a path, could follow.
    let mut deep = cap_std::fs::Dir::open_ambient_dir(&home, cap_std::ambient_authority()).unwrap();
    for _ in 0..3_000 {
        deep.create_dir("d").unwrap();
        deep = deep.open_dir("d").unwrap();
    }
    drop((workspace, deep));

    assert!(delete(workspaces, "c").await);
    assert!(workspaces.find(&chat("c")).await.unwrap().is_none());
    assert!(outside.join("kept").exists());
    let trash = server.data.path().join("workspaces/.trash");
    assert_eq!(fs::read_dir(trash).unwrap().count(), 0);
    // Whoever comes next is its first user.
    assert_eq!(enter(&server, "c", Some("bob@x.example")).await, "in c");
}

#[tokio::test(flavor = "multi_thread")]
async fn entering_and_deleting_at_once_never_leaves_half_a_chat() {
    let server = TestServer::new();
    let workspaces = server.app.workspaces().clone();
    let deleting = tokio::spawn(async move {
        for _ in 0..50 {
            delete(&workspaces, "c").await;
        }
    });
    for _ in 0..50 {
        let session = session(&server, "c", None);
        let workspace = server.app.workspaces().enter(&session).await.unwrap();
        fs::write(workspace.home_path().join("file"), "text").unwrap();
        assert!(workspace.outputs_path().is_dir());
        drop(workspace);
    }
    deleting.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_waits_for_who_uses_the_chat() {
    let server = TestServer::new();
    let workspaces = server.app.workspaces();
    let workspace = workspaces.enter(&session(&server, "c", None)).await;
    let deleting = {
        let workspaces = workspaces.clone();
        tokio::spawn(async move { delete(&workspaces, "c").await })
    };
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert!(!deleting.is_finished());
    assert!(workspace.unwrap().outputs_path().is_dir());
    assert!(deleting.await.unwrap());
}

#[tokio::test]
async fn a_server_without_a_place_for_files_has_none() {
    let server = TestServer::builder().without_files().start();
    assert!(!server.app.workspaces().are_kept());
    assert_eq!(
        enter(&server, "c", None).await,
        "this server keeps no files"
    );
    let found = server.app.workspaces().find(&chat("c")).await.unwrap();
    assert!(found.is_none());
}
