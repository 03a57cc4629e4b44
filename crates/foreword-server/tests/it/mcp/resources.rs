//! Tier 5: uploads as resources, in both eras.

use foreword_server::config::SessionMode;
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{discover, initialize, legacy, modern};
use crate::support::{TestResponse, TestServer};

async fn upload(server: &TestServer, path: &str, text: &'static str) {
    let answer = server.put(&format!("/api/uploads/{path}")).body(text).await;
    assert!(answer.status.is_success(), "{}", answer.summary());
}

async fn ask(server: &TestServer, chat: Option<&str>, message: &Value) -> TestResponse {
    let mut request = server.post("/mcp").message(message);
    if let Some(uri) = message["params"]["uri"].as_str()
        && message["params"].get("_meta").is_some()
    {
        request = request.header("mcp-name", uri.to_owned());
    }
    if let Some(chat) = chat {
        request = request.header("x-chat-id", chat.to_owned());
    }
    request.await
}

async fn uris(server: &TestServer, chat: &str) -> Vec<String> {
    let answer = ask(server, Some(chat), &legacy("resources/list", json!({}))).await;
    let resources = answer.json()["result"]["resources"].clone();
    let resources = resources.as_array().cloned().unwrap_or_default();
    let uri = |resource: &Value| resource["uri"].as_str().unwrap().to_owned();
    resources.iter().map(uri).collect()
}

async fn read(server: &TestServer, chat: Option<&str>, uri: &str) -> String {
    let answer = ask(server, chat, &legacy("resources/read", json!({"uri": uri}))).await;
    match answer.json()["result"]["contents"].get(0) {
        Some(contents) => contents["text"].as_str().unwrap_or("(no text)").to_owned(),
        None => answer.rpc_error(),
    }
}

#[tokio::test]
async fn fault_03_the_list_holds_the_sessions_files_only() {
    let server = super::server();
    upload(&server, "c/a%20dir/%C3%BC.csv", "a,b").await;
    upload(&server, "d/other.txt", "x").await;
    let answer = ask(&server, Some("C"), &legacy("resources/list", json!({}))).await;
    let mut json = answer.json();
    json["result"]["resources"][0]["annotations"]["lastModified"] = json!("…");
    assert_snapshot!(format!("{json:#}"), @r#"
    {
      "jsonrpc": "2.0",
      "id": 1,
      "result": {
        "resources": [
          {
            "uri": "file://uploads/c/a%20dir%2F%C3%BC.csv",
            "name": "a dir/ü.csv",
            "title": "ü.csv",
            "mimeType": "text/csv",
            "size": 3,
            "annotations": {
              "lastModified": "…"
            }
          }
        ]
      }
    }
    "#);
    assert!(uris(&server, "e").await.is_empty());
    let answer = ask(&server, Some("c"), &modern("resources/list", json!({}))).await;
    assert_eq!(answer.json()["result"]["cacheScope"], "private");
    assert_eq!(answer.json()["result"]["ttlMs"], 0);
}

#[tokio::test]
async fn fault_06_pages_lead_from_one_to_the_next() {
    let server = super::server();
    upload(&server, "c/first", "x").await;
    let directory = server.data.path().join("workspaces/c/uploads");
    for number in 0..250 {
        std::fs::write(directory.join(format!("f{number:03}")), "x").unwrap();
    }
    let (mut seen, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let params = if cursor.is_null() {
            json!({})
        } else {
            json!({"cursor": cursor})
        };
        let answer = ask(&server, Some("c"), &legacy("resources/list", params))
            .await
            .json();
        let page = answer["result"]["resources"].as_array().unwrap().clone();
        assert!(page.len() <= 100);
        seen.extend(page.into_iter().map(|resource| resource["uri"].to_string()));
        // What comes in between neither repeats nor skips the others.
        upload(&server, "c/new", "x").await;
        cursor = answer["result"]["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 251);
    let wrong = legacy("resources/list", json!({"cursor": "?"}));
    assert_snapshot!(ask(&server, Some("c"), &wrong).await.rpc_error(), @"200 id=1 -32602 - the cursor is not known; begin again without one");
}

#[tokio::test]
async fn every_spelling_of_a_uri_reads_the_same_file() {
    let server = super::server();
    upload(&server, "channel%3Ax/a%20dir/%C3%BC.txt", "text").await;
    let uri = &uris(&server, "channel:x").await[0];
    assert_eq!(uri, "file://uploads/channel%3Ax/a%20dir%2F%C3%BC.txt");
    for uri in [
        uri,
        "file://uploads/channel:x/a%20dir/%c3%bc.txt",
        "FILE://uploads/CHANNEL%3ax/a dir/ü.txt",
    ] {
        assert_eq!(read(&server, Some("channel:x"), uri).await, "text", "{uri}");
        assert_eq!(read(&server, None, uri).await, "text", "{uri}");
    }
    for uri in [
        "file://uploads/channel:x/none",
        "file://uploads/channel:x/..%2F..%2Fowner",
        "file://uploads/channel:x",
        "file:///etc/passwd",
        "x",
    ] {
        let answer = read(&server, None, uri).await;
        assert_eq!(
            answer, "200 id=1 -32002 - there is no such resource",
            "{uri}"
        );
    }
    let unknown = modern("resources/read", json!({"uri": "file://uploads/a/none"}));
    let answer = ask(&server, None, &unknown).await.json();
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[tokio::test]
async fn a_request_with_a_chat_reads_no_others() {
    let server = super::server();
    upload(&server, "c/a.txt", "text").await;
    let uri = "file://uploads/c/a.txt";
    assert!(read(&server, Some("d"), uri).await.contains("-32002"));
    let answer = server
        .post("/mcp/c/d")
        .message(&legacy("resources/read", json!({"uri": uri})));
    assert!(answer.await.rpc_error().contains("-32002"));
    for adjust in [
        |config: &mut foreword_server::ServerConfig| config.uploads.uri_without_chat = false,
        |config: &mut foreword_server::ServerConfig| config.session.mode = SessionMode::Strict,
    ] {
        let server = TestServer::builder().config(adjust).start();
        upload(&server, "c/a.txt", "text").await;
        assert!(read(&server, None, uri).await.contains("-32002"));
        assert_eq!(read(&server, Some("c"), uri).await, "text");
    }
}

#[tokio::test]
async fn the_owner_counts_for_resources_too() {
    let server = super::server();
    let put = server
        .put("/api/uploads/c/a.txt")
        .header("x-user-email", "ann@x.example");
    assert_eq!(put.body("text").await.status, 201);
    for message in [
        legacy("resources/list", json!({})),
        legacy("resources/read", json!({"uri": "file://uploads/c/a.txt"})),
    ] {
        let request = server.post("/mcp/c/c").message(&message);
        let answer = request.header("x-user-email", "bob@x.example").await;
        assert_eq!(
            answer.rpc_error(),
            "200 id=1 -32602 chat_belongs_to_another_user this chat belongs to another user"
        );
    }
}

#[tokio::test]
async fn what_is_no_text_is_a_blob_and_what_is_too_large_is_in_the_workspace() {
    let server = TestServer::builder()
        .config(|config| config.uploads.max_read_bytes = 8)
        .start();
    upload(&server, "c/a.png", "1234").await;
    upload(&server, "c/b.txt", "123456789").await;
    let message = legacy("resources/read", json!({"uri": "file://uploads/c/a.png"}));
    let answer = ask(&server, Some("c"), &message).await.json();
    assert_eq!(answer["result"]["contents"][0]["blob"], "MTIzNA==");
    assert_eq!(answer["result"]["contents"][0]["mimeType"], "image/png");
    assert_snapshot!(read(&server, Some("c"), "file://uploads/c/b.txt").await, @"200 id=1 -32602 file_too_large the file has 9 bytes, more than the 8 that are returned here; read it in the workspace, at `/mnt/user-data/uploads/b.txt`");
    let file = server.data.path().join("workspaces/c/uploads/c.json");
    std::fs::write(file, b"{\"\xff\"}").unwrap();
    assert_eq!(
        read(&server, Some("c"), "file://uploads/c/c.json").await,
        "{\"\u{fffd}\"}"
    );
}

#[tokio::test]
async fn the_template_completes_paths() {
    let server = super::server();
    upload(&server, "c/Report%201.txt", "x").await;
    upload(&server, "c/sub/report.txt", "x").await;
    let templates = ask(
        &server,
        Some("c"),
        &legacy("resources/templates/list", json!({})),
    )
    .await;
    assert_eq!(
        templates.json()["result"]["resourceTemplates"][0]["uriTemplate"],
        "file://uploads/{chat_id}/{path}"
    );
    let complete = async |name: &str, value: &str| {
        let reference = json!({"type": "ref/resource", "uri": "file://uploads/{chat_id}/{path}"});
        let params = json!({"ref": reference, "argument": {"name": name, "value": value}});
        let answer = ask(&server, Some("c"), &legacy("completion/complete", params)).await;
        answer.json()["result"]["completion"]["values"].to_string()
    };
    assert_eq!(complete("path", "rep").await, r#"["Report%201.txt"]"#);
    assert_eq!(complete("path", "sub%2F").await, r#"["sub%2Freport.txt"]"#);
    assert_eq!(complete("path", "nothing").await, "[]");
    assert_eq!(complete("chat_id", "").await, r#"["c"]"#);
}

#[tokio::test]
async fn fault_11_changes_are_declared_only_where_they_arrive() {
    let server = super::server();
    let old = ask(&server, Some("c"), &initialize()).await.json();
    let capabilities = &old["result"]["capabilities"];
    assert_eq!(capabilities["resources"], json!({}));
    assert_eq!(capabilities["completions"], json!({}));
    let new = ask(&server, Some("c"), &discover()).await.json();
    let capabilities = &new["result"]["capabilities"];
    assert_eq!(capabilities["resources"], json!({"listChanged": true}));

    let bare = TestServer::builder().without_files().start();
    let old = ask(&bare, Some("c"), &initialize()).await.json();
    assert!(old["result"]["capabilities"].get("resources").is_none());
    let listed = ask(&bare, Some("c"), &legacy("resources/list", json!({}))).await;
    assert!(
        listed.rpc_error().contains("-32601"),
        "{}",
        listed.rpc_error()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn fault_11_a_subscriber_hears_of_an_upload() {
    use http_body_util::BodyExt;

    let server = super::server();
    let notifications = json!({"resourcesListChanged": true});
    let message = modern(
        "subscriptions/listen",
        json!({"notifications": notifications}),
    );
    let request = server
        .post("/mcp")
        .message(&message)
        .header("x-chat-id", "c");
    let response = request.response().await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    let mut heard = String::new();
    let mut uploaded = false;
    let hearing = async {
        while !heard.contains("notifications/resources/list_changed") {
            let frame = body.frame().await.unwrap().unwrap();
            heard += std::str::from_utf8(&frame.into_data().unwrap()).unwrap();
            if heard.contains("acknowledged") && !uploaded {
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
                upload(&server, "other/x", "x").await;
                upload(&server, "c/x", "x").await;
                uploaded = true;
            }
        }
    };
    let heard_in_time = tokio::time::timeout(std::time::Duration::from_secs(20), hearing).await;
    assert!(heard_in_time.is_ok(), "{heard}");
    assert_eq!(heard.matches("list_changed").count(), 1, "{heard}");
}
