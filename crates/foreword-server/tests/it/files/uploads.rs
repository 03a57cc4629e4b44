//! Taking uploads in.

use std::{
    fs,
    time::{Duration, Instant},
};

use axum::body::Body;
use futures::stream;
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::outputs;
use crate::support::TestServer;

fn form(parts: &[(&str, &str)]) -> String {
    let mut body = String::new();
    for (name, text) in parts {
        let part = format!(
            "--x\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"a\"\r\n\r\n{text}\r\n"
        );
        body.push_str(&part);
    }
    body + "--x--\r\n"
}

async fn post_form(server: &TestServer, path: &str, body: impl Into<Body>) -> String {
    let request = server.post(path);
    let request = request.header("content-type", "multipart/form-data; boundary=x");
    request.body(body).await.summary()
}

fn without_times(list: &Value) -> Value {
    let mut list = list.clone();
    for file in list["files"].as_array_mut().unwrap() {
        file["modified"] = json!("…");
    }
    list
}

#[tokio::test]
async fn an_upload_is_kept_with_its_hashes() {
    let server = TestServer::new();
    let put = async |text: &'static str| {
        let request = server.put("/api/uploads/C1/a%20dir/%C3%BC%20(1).txt");
        request.body(text).await.summary()
    };
    assert_snapshot!(put("hello").await, @r#"
    201
    {
      "status": "success",
      "filename": "ü (1).txt",
      "path": "a dir/ü (1).txt",
      "size": 5,
      "md5": "5d41402abc4b2a76b9719d911017c592",
      "sha256": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    }
    "#);
    assert_snapshot!(put("again").await, @r#"
    200
    {
      "status": "success",
      "filename": "ü (1).txt",
      "path": "a dir/ü (1).txt",
      "size": 5,
      "md5": "639849f6b368019778991b32434354fc",
      "sha256": "b4c9e14061c2fd453b36700e3b0da008db2189c711ac629f0f583089164e267d"
    }
    "#);
    let file = server
        .data
        .path()
        .join("workspaces/c1/uploads/a dir/ü (1).txt");
    assert_eq!(fs::read_to_string(file).unwrap(), "again");
    let parts = server.data.path().join("workspaces/c1/parts");
    assert_eq!(fs::read_dir(parts).unwrap().count(), 0);

    let list = server.get("/api/uploads/c1/list").await;
    assert_snapshot!(format!("{:#}", without_times(&list.json())), @r#"
    {
      "files": [
        {
          "name": "ü (1).txt",
          "path": "a dir/ü (1).txt",
          "size": 5,
          "modified": "…",
          "container_path": "/mnt/user-data/uploads/a dir/ü (1).txt"
        }
      ],
      "total": 1
    }
    "#);
    assert_eq!(server.get("/api/uploads/c1").await.text(), list.text());
    assert_snapshot!(server.get("/api/uploads/c1/manifest").await.summary(), @r#"
    200
    {
      "a dir/ü (1).txt": "639849f6b368019778991b32434354fc"
    }
    "#);
    let deleted = server
        .delete("/api/uploads/c1/a%20dir/%C3%BC%20(1).txt")
        .await;
    assert_eq!(deleted.status, 204);
    assert_snapshot!(server.delete("/api/uploads/c1/a%20dir/x").await.summary(), @"404 file_not_found: there is no such file");
    assert_eq!(server.get("/api/uploads/c1/list").await.json()["total"], 0);
    assert!(
        !server
            .data
            .path()
            .join("workspaces/c1/uploads/a dir")
            .exists()
    );
}

#[tokio::test]
async fn a_form_brings_one_file() {
    let server = TestServer::new();
    let path = "/api/uploads/c/list";
    let sent = post_form(&server, path, form(&[("note", "x"), ("file", "text")])).await;
    assert_snapshot!(sent, @r#"
    201
    {
      "status": "success",
      "filename": "list",
      "path": "list",
      "size": 4,
      "md5": "1cb251ec0d568de6a929b520c4aed8d1",
      "sha256": "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1"
    }
    "#);
    // A name that is also the name of a route is a file like any other.
    assert_eq!(server.get("/api/uploads/c/list").await.json()["total"], 1);
    assert_snapshot!(post_form(&server, path, form(&[("note", "x")])).await, @"400 no_file: the form has no field `file`");
    assert_snapshot!(post_form(&server, path, form(&[("file", "1"), ("file", "2")])).await, @"400 several_files: a form brings one `file`; send each with its own name");
    let cut = form(&[("file", "text")]);
    assert_snapshot!(post_form(&server, path, cut[..cut.len() - 8].to_owned()).await, @"400 incomplete_body: the body ended before it was complete, or is no form");
    assert_snapshot!(server.post(path).body("text").await.summary(), @"415 unsupported_media_type: `POST` takes a form (`multipart/form-data`) with the field `file`; `PUT` takes the file itself as the body");
    assert_eq!(
        server.get("/api/uploads/c/list").await.json()["files"][0]["size"],
        4
    );
    let endless = format!("--x\r\nX: {}", "x".repeat(2 << 20));
    let chunks = endless
        .into_bytes()
        .chunks(64 << 10)
        .map(<[u8]>::to_vec)
        .collect::<Vec<_>>();
    let chunks = stream::iter(chunks.into_iter().map(Ok::<_, std::convert::Infallible>));
    assert_snapshot!(post_form(&server, path, Body::from_stream(chunks)).await, @"400 incomplete_body: the body ended before it was complete, or is no form");
}

#[tokio::test]
async fn fault_16_uploads_are_limited_with_the_numbers() {
    let server = TestServer::builder()
        .config(|config| {
            config.uploads.max_bytes = 1000;
            config.uploads.max_total_bytes = 2500;
        })
        .start();
    let put = async |name: &str, size: usize| {
        let request = server.put(&format!("/api/uploads/c/{name}"));
        let chunks = stream::iter((0..size).map(|_| Ok::<_, std::convert::Infallible>("x")));
        request.body(Body::from_stream(chunks)).await.summary()
    };
    assert_snapshot!(put("a", 1001).await, @r"
    413 file_too_large: the file is larger than the 1000 bytes that are taken here
      max_bytes: 1000
    ");
    let declared = server.put("/api/uploads/c/a").body(vec![0; 1001]).await;
    assert_eq!(declared.status, 413);
    let large = form(&[("file", &"x".repeat(1001))]);
    let large = post_form(&server, "/api/uploads/c/a", large).await;
    assert!(large.starts_with("413 file_too_large"), "{large}");
    for name in ["a", "b"] {
        assert!(put(name, 1000).await.starts_with("201"));
    }
    assert_snapshot!(put("c", 501).await, @r"
    413 uploads_too_large: the chat's uploads would take 2501 bytes together, more than the 2500 that they may; delete some
      needed_bytes: 2501
      max_total_bytes: 2500
    ");
    assert!(put("c", 500).await.starts_with("201"));
    assert!(put("a", 1000).await.starts_with("200"));
    assert_eq!(server.delete("/api/uploads/c/b").await.status, 204);
    assert!(put("d", 1000).await.starts_with("201"));
    // What others took away counts before an upload is refused.
    fs::remove_file(server.data.path().join("workspaces/c/uploads/d")).unwrap();
    assert!(put("e", 1000).await.starts_with("201"));
    assert_eq!(
        fs::read_dir(server.data.path().join("workspaces/c/parts"))
            .unwrap()
            .count(),
        0
    );
}

#[tokio::test]
async fn fault_51_names_that_cannot_be_are_refused_without_a_path_of_the_host() {
    let server = TestServer::new();
    server.put("/api/uploads/c/dir/file").body("x").await;
    let put = async |name: &str| {
        let request = server.put(&format!("/api/uploads/c/{name}"));
        let answer = request.body("x").await;
        assert!(answer.status.is_client_error(), "{name}");
        let host = server.data.path().to_str().unwrap();
        assert!(!answer.text().contains(host), "{}", answer.text());
        answer.summary()
    };
    assert_snapshot!(put("dir").await, @"409 is_directory: there is a directory under this name; choose another");
    assert_snapshot!(put("dir/file/x").await, @"409 inside_file: one of the directories in this name is a file; choose another name");
    assert_snapshot!(put("a/../../b").await, @"400 invalid_file_name: the file's name is not valid: it has a segment `.` or `..`");
    assert_snapshot!(put("%2e%2e/b").await, @"400 invalid_file_name: the file's name is not valid: it has a segment `.` or `..`");
    assert_snapshot!(put("..%2fb").await, @"400 invalid_file_name: the file's name is not valid: it has a segment `.` or `..`");
    assert_snapshot!(put("%2fetc%2fpasswd").await, @"400 invalid_file_name: the file's name is not valid: a segment between two `/` is empty");
    assert_snapshot!(put("a//b").await, @"400 invalid_file_name: the file's name is not valid: a segment between two `/` is empty");
    assert_snapshot!(put("a/").await, @"400 invalid_file_name: the file's name is not valid: a segment between two `/` is empty");
    assert_snapshot!(put("a%00b").await, @"400 invalid_file_name: the file's name is not valid: it has a NUL character");
    assert_snapshot!(put("%ff").await, @"400 invalid_file_name: the file's name is not valid: it is not UTF-8");
    assert_snapshot!(put(&"x".repeat(300)).await, @"400 invalid_file_name: the file's name is not valid: a segment has more than 255 bytes");
    assert_eq!(
        server
            .put(&format!("/api/uploads/c/{}", "ü".repeat(127)))
            .body("")
            .await
            .status,
        201
    );
    assert_eq!(server.get("/files/c/dir").await.status, 404);
    assert_eq!(
        server
            .get(&format!("/files/c/{}", "x".repeat(300)))
            .await
            .status,
        404
    );
    assert_eq!(server.delete("/api/uploads/c/dir").await.status, 404);
}

#[tokio::test]
async fn fault_48_the_cost_of_an_upload_does_not_grow_with_their_number() {
    let server = TestServer::new();
    let put = async |name: String| {
        let begun = Instant::now();
        let answer = server
            .put(&format!("/api/uploads/c/{name}"))
            .body("x")
            .await;
        assert_eq!(answer.status, 201);
        begun.elapsed()
    };
    put("first".to_owned()).await;
    let directory = server.data.path().join("workspaces/c/uploads");
    // Files that nobody looks at: a scan would count them, and refuse.
    for number in 0..1000 {
        fs::write(directory.join(format!("n{number}")), "x").unwrap();
    }
    let mut fastest = Duration::MAX;
    for number in 0..10 {
        fastest = fastest.min(put(format!("u{number}")).await);
    }
    let total = fs::read_to_string(server.data.path().join("workspaces/c/total")).unwrap();
    assert_eq!(
        total.parse::<u64>().unwrap(),
        11,
        "the other files were counted"
    );
    // Most of it is the wait for the disk.
    assert!(fastest < Duration::from_millis(500), "{fastest:?}");
}

#[tokio::test]
async fn a_change_that_came_about_is_not_said_to_have_failed() {
    let server = TestServer::new();
    outputs(&server, "c").await;
    let chat = server.data.path().join("workspaces/c");
    // Nothing can be kept in there any more, as on a disk that is full.
    fs::remove_dir_all(chat.join("hashes")).unwrap();
    fs::write(chat.join("hashes"), "").unwrap();
    let put = server.put("/api/uploads/c/a").body("x").await;
    assert_eq!(put.status, 201, "{}", put.text());
    assert!(chat.join("uploads/a").exists());
    assert_eq!(server.delete("/api/uploads/c/a").await.status, 204);
    assert!(!chat.join("uploads/a").exists());
}

#[tokio::test]
async fn fault_12_uploads_are_seen_after_a_restart_and_by_another_process() {
    let server = TestServer::new();
    server.put("/api/uploads/c/a").body("x").await;
    fs::write(server.data.path().join("workspaces/c/uploads/b"), "yy").unwrap();
    let list = server.get("/api/uploads/c/list").await.json();
    assert_eq!(list["total"], 2);
    assert_snapshot!(server.get("/api/uploads/c/manifest").await.summary(), @r#"
    200
    {
      "a": "9dd4e461268c8034f5c8564e155c67a6",
      "b": "2fb1c5cf58867b5bbc9a1b145a86f3a0"
    }
    "#);
    fs::write(server.data.path().join("workspaces/c/uploads/b"), "zzz").unwrap();
    assert_snapshot!(server.get("/api/uploads/c/manifest").await.summary(), @r#"
    200
    {
      "a": "9dd4e461268c8034f5c8564e155c67a6",
      "b": "f3abb86bd34cf4d52698f14c0da1dc60"
    }
    "#);
}
