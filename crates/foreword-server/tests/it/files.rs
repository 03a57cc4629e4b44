//! Uploads in and outputs out, over HTTP.

use std::{
    fs,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::PathBuf,
    time::{Duration, Instant, SystemTime},
};

use axum::body::Body;
use foreword_server::{ChatId, config::SessionMode};
use futures::stream;
use http::Method;
use insta::assert_snapshot;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::support::TestServer;

/// A chat that has been used, and where its outputs lie.
async fn outputs(server: &TestServer, chat: &str) -> PathBuf {
    server
        .put(&format!("/api/uploads/{chat}/seen"))
        .header("x-foreword-key", crate::support::ADMIN_KEY)
        .body("")
        .await;
    let directory = server.data.path().join("workspaces").join(chat);
    directory.join("outputs")
}

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

#[tokio::test]
async fn outputs_are_listed_with_links_that_open() {
    let server = TestServer::new();
    let directory = outputs(&server, "c").await;
    fs::create_dir(directory.join("Sub")).unwrap();
    let begin = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let names = ["Sub/a b#?%.html", ".hidden", "chart.PNG", "Ü.csv", "x"];
    for (age, name) in names.iter().enumerate() {
        let path = directory.join(name);
        fs::write(&path, name).unwrap();
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(begin - Duration::from_secs(age as u64))
            .unwrap();
    }
    let raw = std::ffi::OsStr::from_bytes(b"raw\xff.txt");
    fs::write(directory.join(raw), "raw").unwrap();
    symlink("/etc/passwd", directory.join("link")).unwrap();
    fs::File::options()
        .write(true)
        .open(directory.join(raw))
        .unwrap()
        .set_modified(begin)
        .unwrap();
    let list = server.get("/api/outputs/c").await;
    assert_snapshot!(list.summary(), @r#"
    200
    {
      "chat_id": "c",
      "files": [
        {
          "name": "a b#?%.html",
          "path": "Sub/a b#?%.html",
          "size": 15,
          "modified": "2023-11-14T22:13:20Z",
          "type": "html",
          "mime": "text/html",
          "url": "http://127.0.0.1:8081/files/c/Sub/a%20b%23%3F%25.html"
        },
        {
          "name": "raw�.txt",
          "path": "raw�.txt",
          "size": 3,
          "modified": "2023-11-14T22:13:20Z",
          "type": "text",
          "mime": "text/plain",
          "url": "http://127.0.0.1:8081/files/c/raw%FF.txt"
        },
        {
          "name": "chart.PNG",
          "path": "chart.PNG",
          "size": 9,
          "modified": "2023-11-14T22:13:18Z",
          "type": "image",
          "mime": "image/png",
          "url": "http://127.0.0.1:8081/files/c/chart.PNG"
        },
        {
          "name": "Ü.csv",
          "path": "Ü.csv",
          "size": 6,
          "modified": "2023-11-14T22:13:17Z",
          "type": "table",
          "mime": "text/csv",
          "url": "http://127.0.0.1:8081/files/c/%C3%9C.csv"
        },
        {
          "name": "x",
          "path": "x",
          "size": 1,
          "modified": "2023-11-14T22:13:16Z",
          "type": "other",
          "mime": "application/octet-stream",
          "url": "http://127.0.0.1:8081/files/c/x"
        }
      ],
      "total": 5
    }
    "#);
    for file in list.json()["files"].as_array().unwrap() {
        let url = file["url"].as_str().unwrap();
        let path = url.strip_prefix("http://127.0.0.1:8081").unwrap();
        let answer = server.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.body.len() as u64, file["size"].as_u64().unwrap());
    }
    assert_snapshot!(server.get("/api/outputs/nobody").await.summary(), @r#"
    200
    {
      "chat_id": "nobody",
      "files": [],
      "total": 0
    }
    "#);
    let page = server.get("/api/outputs/c?limit=2").await.json();
    let cursor = page["next_cursor"].as_str().unwrap();
    let next = server
        .get(&format!("/api/outputs/c?limit=2&cursor={cursor}"))
        .await
        .json();
    assert_eq!(page["total"], 5);
    assert_ne!(page["files"][1], next["files"][0]);
}

const HEAD: &[&str] = &[
    "content-type",
    "content-length",
    "content-disposition",
    "content-range",
    "accept-ranges",
    "content-security-policy",
    "x-content-type-options",
    "referrer-policy",
    "cache-control",
];

#[tokio::test]
async fn fault_21_files_are_served_as_web_servers_do() {
    let server = TestServer::new();
    let directory = outputs(&server, "c").await;
    fs::write(directory.join("A-Name.txt"), "0123456789").unwrap();
    let get = async |range: &str| {
        let request = server.get("/files/C/A-Name.txt").header("range", range);
        request
            .await
            .summary_with(&["content-range", "content-length"])
    };
    let whole = server.get("/files/c/A-Name.txt").await;
    assert_snapshot!(whole.summary_with(HEAD), @r#"
    200 text/plain; charset=utf-8
    0123456789
    content-type: text/plain; charset=utf-8
    content-length: 10
    content-disposition: inline; filename="A-Name.txt"
    accept-ranges: bytes
    content-security-policy: sandbox
    x-content-type-options: nosniff
    referrer-policy: no-referrer
    cache-control: private, no-cache
    "#);
    assert_snapshot!(get("bytes=2-4").await, @r"
    206 text/plain; charset=utf-8
    234
    content-range: bytes 2-4/10
    content-length: 3
    ");
    assert_snapshot!(get("bytes=8-").await, @r"
    206 text/plain; charset=utf-8
    89
    content-range: bytes 8-9/10
    content-length: 2
    ");
    assert_snapshot!(get("bytes=-3").await, @r"
    206 text/plain; charset=utf-8
    789
    content-range: bytes 7-9/10
    content-length: 3
    ");
    assert_snapshot!(get("bytes=5-99").await, @r"
    206 text/plain; charset=utf-8
    56789
    content-range: bytes 5-9/10
    content-length: 5
    ");
    assert_snapshot!(get("bytes=10-").await, @r"
    416
    content-range: bytes */10
    content-length: 0
    ");
    assert_snapshot!(get("bytes=-0").await, @r"
    416
    content-range: bytes */10
    content-length: 0
    ");
    for odd in [
        "bytes=0-1,4-5",
        "bytes=4-2",
        "lines=1-2",
        "bytes=a-b",
        "bytes=--1",
        "bytes=",
        "bytes=0-0-0",
    ] {
        assert!(get(odd).await.starts_with("200"), "{odd}");
    }
    let head = server.request(Method::HEAD, "/files/c/A-Name.txt").await;
    assert_eq!(
        (head.status.as_u16(), head.header("content-length")),
        (200, "10")
    );
    assert!(head.body.is_empty());
    assert_eq!(server.get("/files/c/a-name.txt").await.status, 404);
}

#[tokio::test]
async fn a_file_that_the_client_has_is_not_sent_again() {
    let server = TestServer::new();
    let directory = outputs(&server, "c").await;
    fs::write(directory.join("A-Name.txt"), "0123456789").unwrap();
    let whole = server.get("/files/c/A-Name.txt").await;
    let (tag, time) = (
        whole.header("etag").to_owned(),
        whole.header("last-modified").to_owned(),
    );
    let with = async |pairs: &[(&'static str, &str)]| {
        let mut request = server.get("/files/c/A-Name.txt");
        for (name, value) in pairs {
            request = request.header(name, *value);
        }
        request.await.status.as_u16()
    };
    assert_eq!(with(&[("if-none-match", &tag)]).await, 304);
    assert_eq!(with(&[("if-none-match", "\"x\"")]).await, 200);
    assert_eq!(with(&[("if-modified-since", &time)]).await, 304);
    assert_eq!(
        with(&[("if-none-match", "\"x\""), ("if-modified-since", &time)]).await,
        200
    );
    assert_eq!(
        with(&[("range", "bytes=0-1"), ("if-range", &tag)]).await,
        206
    );
    assert_eq!(
        with(&[("range", "bytes=0-1"), ("if-range", "\"x\"")]).await,
        200
    );
    assert_eq!(
        with(&[("range", "bytes=0-1"), ("if-range", &time)]).await,
        206
    );
}

#[tokio::test]
async fn what_could_run_in_a_browser_is_saved_rather_than_shown() {
    let server = TestServer::new();
    let directory = outputs(&server, "c").await;
    let mut shown = Vec::new();
    for name in [
        "a.html",
        "a.svg",
        "a.png",
        "a.pdf",
        "a.txt",
        "a.md",
        "a.js",
        "a.mp4",
        "a.xhtml",
        "a",
        "é \".txt",
    ] {
        fs::write(directory.join(name), "x").unwrap();
        let path = percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC);
        let answer = server.get(&format!("/files/c/{path}")).await;
        shown.push(format!(
            "{} | {} | {}",
            answer.header("content-type"),
            answer.header("content-disposition"),
            answer.header("content-security-policy")
        ));
    }
    let saved = server.get("/files/c/a.png?download=1").await;
    shown.push(saved.header("content-disposition").to_owned());
    assert_snapshot!(shown.join("\n"), @r#"
    text/html; charset=utf-8 | attachment; filename="a.html" | sandbox
    image/svg+xml | attachment; filename="a.svg" | sandbox
    image/png | inline; filename="a.png" | sandbox
    application/pdf | inline; filename="a.pdf" | 
    text/plain; charset=utf-8 | inline; filename="a.txt" | sandbox
    text/markdown; charset=utf-8 | attachment; filename="a.md" | sandbox
    application/javascript; charset=utf-8 | attachment; filename="a.js" | sandbox
    video/mp4 | inline; filename="a.mp4" | sandbox
    application/xhtml+xml | attachment; filename="a.xhtml" | sandbox
    application/octet-stream | attachment; filename="a" | sandbox
    text/plain; charset=utf-8 | inline; filename="_ _.txt"; filename*=UTF-8''%C3%A9%20%22.txt | sandbox
    attachment; filename="a.png"
    "#);
}

#[tokio::test]
async fn fault_01_links_and_pipes_of_a_sandbox_lead_nowhere() {
    let server = TestServer::new();
    let directory = outputs(&server, "c").await;
    let secret = server.data.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    fs::create_dir(directory.join("real")).unwrap();
    fs::write(directory.join("real/file.txt"), "mine").unwrap();
    symlink(&secret, directory.join("absolute.txt")).unwrap();
    symlink("../../../secret", directory.join("relative.txt")).unwrap();
    symlink(server.data.path(), directory.join("dir")).unwrap();
    symlink("/proc/self/environ", directory.join("proc.txt")).unwrap();
    symlink("loop", directory.join("loop")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, directory.join("pipe.txt"), 0o666.into()).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(directory.join("socket")).unwrap();
    for name in [
        "absolute.txt",
        "relative.txt",
        "dir/secret",
        "proc.txt",
        "loop",
        "pipe.txt",
        "socket",
        "..%2f..%2f..%2fsecret",
        "real/../../../secret",
        "%2fetc%2fpasswd",
        "real",
        "",
    ] {
        let answer = server.get(&format!("/files/c/{name}")).await;
        assert_eq!(answer.status, 404, "{name}");
    }
    let list = server.get("/api/outputs/c").await.json();
    assert_eq!(list["total"], 1, "{list:#}");
    assert_eq!(names_in_archive(&server, "c").await, ["real/file.txt"]);
}

async fn names_in_archive(server: &TestServer, chat: &str) -> Vec<String> {
    let archive = server.get(&format!("/files/{chat}/archive")).await;
    assert_eq!(archive.header("content-type"), "application/zip");
    let archive = zip::ZipArchive::new(std::io::Cursor::new(archive.body)).unwrap();
    archive
        .file_names()
        .map(|name| name.unwrap().into_owned())
        .collect()
}

#[tokio::test]
async fn the_archive_holds_the_outputs_in_order() {
    let server = TestServer::new();
    let directory = outputs(&server, "c").await;
    fs::create_dir(directory.join(".git")).unwrap();
    fs::create_dir(directory.join("sub")).unwrap();
    let noise: Vec<u8> = (0..600_000_u32)
        .map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[3])
        .collect();
    for (name, bytes) in [
        ("z.txt", &b"last"[..]),
        ("archive", b"a real file"),
        ("sub/\u{fc}.bin", &noise),
        (".git/config", b"x"),
        (".env", b"x"),
    ] {
        fs::write(directory.join(name), bytes).unwrap();
    }
    assert_eq!(
        names_in_archive(&server, "c").await,
        ["archive", "sub/ü.bin", "z.txt"]
    );
    let archive = server.get("/files/c/archive").await;
    assert_eq!(
        archive.header("content-disposition"),
        "attachment; filename=\"chat-c-outputs.zip\""
    );
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(archive.body)).unwrap();
    let mut bytes = Vec::new();
    std::io::copy(&mut archive.by_name("sub/ü.bin").unwrap(), &mut bytes).unwrap();
    assert!(bytes == noise);
    let file = server.get("/files/c/archive?file=1").await;
    assert_eq!(file.text(), "a real file");
    assert_eq!(server.get("/files/none/archive").await.status, 404);
}

#[tokio::test]
async fn an_archive_can_be_unpacked_whatever_a_sandbox_called_its_files() {
    let server = TestServer::new();
    let directory = outputs(&server, "c").await;
    for name in [&b"\xfe.txt"[..], b"\xff.txt", b"x\\..\\..\\y.bat", b"C:x"] {
        fs::write(directory.join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
    }
    assert_eq!(
        names_in_archive(&server, "c").await,
        ["C_x", "x_.._.._y.bat", "\u{FFFD}.txt", "\u{FFFD} (2).txt"]
    );
}

#[tokio::test]
async fn more_names_than_memory_is_spent_on_are_said_to_be_too_many() {
    let server = TestServer::new();
    let directory = outputs(&server, "c").await;
    fs::write(directory.join("INCOMPLETE.txt"), "mine").unwrap();
    // Longer together than what a path of the host could say.
    let mut deep =
        cap_std::fs::Dir::open_ambient_dir(&directory, cap_std::ambient_authority()).unwrap();
    for _ in 0..15 {
        let name = "d".repeat(250);
        deep.create_dir(&name).unwrap();
        deep = deep.open_dir(&name).unwrap();
    }
    for number in 0..4_500 {
        deep.create(format!("{number:0>250}")).unwrap();
    }
    let list = server.get("/api/outputs/c?limit=1").await.json();
    assert_eq!(list["too_many"], true);
    let total = list["total"].as_u64().unwrap();
    assert_eq!(total, (16 << 20) / (15 * 251 + 250) + 1);
    let names = names_in_archive(&server, "c").await;
    assert_eq!(names.len() as u64, total + 1);
    assert_eq!(names.first().unwrap(), "INCOMPLETE.txt");
    assert_eq!(names.last().unwrap(), "INCOMPLETE (2).txt");
}

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
