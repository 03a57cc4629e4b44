//! Giving outputs out: lists, single files, the archive.

use std::{
    fs,
    os::unix::{ffi::OsStrExt, fs::symlink},
    time::{Duration, SystemTime},
};

use http::Method;
use insta::assert_snapshot;

use super::outputs;
use crate::support::TestServer;

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
