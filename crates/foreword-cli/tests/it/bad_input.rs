//! What is too much, unfinished or in motion, through the front door.

use std::{
    fs,
    io::{Read, Write},
    net::{Shutdown, TcpStream},
};

use reqwest::blocking::Client;
use serde_json::{Value, json};

use crate::{
    chat::{Chat, server},
    support::{PATIENCE, Place, Server, eventually},
};

#[test]
fn a_file_that_grows_while_it_is_viewed_is_shown_as_it_was() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    chat.bash("(while :; do echo 'one more line'; done > grows.txt) > /dev/null 2>&1 &");
    for _ in 0..5 {
        let seen = chat.call("view", json!({ "path": "grows.txt" }));
        assert!(!seen.is_error, "{seen}");
        let characters = seen.text.chars().count();
        assert!(characters < 31_000, "{characters}");
    }
}

#[test]
fn a_directory_with_a_hundred_thousand_files_is_shown_in_part() {
    let (_place, server) = server();
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    chat.bash("cd /mnt/user-data/outputs && seq -f '%06g.txt' 100001 | xargs touch");
    let seen = chat.view("/mnt/user-data/outputs");
    assert!(seen.lines().count() > 500, "{seen:.500}");
    assert!(seen.contains("[there is more than these "), "{seen:.500}");
    let list = reqwest::blocking::get(server.url("/api/outputs/c?limit=1"));
    let list: Value = list.unwrap().json().unwrap();
    assert_eq!(
        (&list["total"], &list["too_many"]),
        (&json!(100_000), &json!(true))
    );
}

#[test]
fn an_upload_that_breaks_off_or_has_no_name_leaves_nothing() {
    let (place, server) = server();
    for ending in [Ending::Hangup, Ending::FewerThanPromised] {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let head = "PUT /api/uploads/c/half.bin HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&vec![7; 300_000]).unwrap();
        let parts = || {
            fs::read_dir(place.path("data/workspaces/c/parts"))
                .into_iter()
                .flatten()
                .count()
        };
        eventually("it has begun", PATIENCE, || (parts() == 1).then_some(()));
        match ending {
            Ending::Hangup => drop(stream),
            Ending::FewerThanPromised => {
                stream.shutdown(Shutdown::Write).unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).unwrap();
                assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
            }
        }
        eventually("the part is gone", PATIENCE, || {
            (parts() == 0).then_some(())
        });
    }
    for path in [
        "/api/uploads/c/",
        "/api/uploads/c/a//b",
        "/api/uploads/c/%20/..",
        "/api/uploads/c/a%00b",
    ] {
        let put = Client::new()
            .put(server.url(path))
            .body("x")
            .send()
            .unwrap();
        assert!(put.status().is_client_error(), "{path}: {}", put.status());
    }
    assert_eq!(uploads(&server)["total"], 0);
}

enum Ending {
    Hangup,
    FewerThanPromised,
}

#[test]
fn a_full_disk_is_said_and_nothing_is_lost() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not tried: only root may mount a small disk");
        return;
    }
    let mount = "mount -t tmpfs -o size=16m none data && exec \"$0\" \"$@\"";
    let place = Place::new().through(&["/usr/bin/unshare", "--mount", "sh", "-c", mount]);
    place.write("foreword.toml", "[sandbox]\nmin_free_bytes = 0\n");
    fs::create_dir(place.path("data")).unwrap();
    let server = place.serve(&["--sandbox", "namespace"]);
    let url = &server.url("/mcp");
    let chat = Chat { url, id: "c" };
    let put = |name: &str, bytes: usize| {
        let request = Client::new().put(server.url(&format!("/api/uploads/c/{name}")));
        request.body(vec![7; bytes]).send().unwrap()
    };
    assert_eq!(put("kept.bin", 1 << 20).status(), 201);
    let refused = put("large.bin", 32 << 20);
    assert_eq!(refused.status(), 507);
    assert_eq!(refused.json::<Value>().unwrap()["code"], "storage_full");
    let wrote = chat.bash("echo kept > kept.txt; head -c 32M /dev/zero > large");
    assert!(wrote.contains("No space left on device"), "{wrote}");
    let text = "x".repeat(1 << 20);
    let file = chat.call(
        "create_file",
        json!({ "path": "kept.txt", "file_text": text }),
    );
    assert!(
        file.is_error && file.text.contains("no space is left"),
        "{file}"
    );
    assert_eq!(
        chat.bash("cat kept.txt; rm large; ls"),
        "kept\nREADME.md\nkept.txt"
    );
    assert_eq!(uploads(&server)["total"], 1);
}

fn uploads(server: &Server) -> Value {
    let list = reqwest::blocking::get(server.url("/api/uploads/c/list"));
    list.unwrap().json().unwrap()
}
