//! `/api/prompts/events`.

use std::time::Duration;

use axum::body::BodyDataStream;
use futures::StreamExt;
use insta::assert_snapshot;
use serde_json::json;

use super::server;
use crate::support::TestServer;

/// A follower of the events.
struct Follower {
    body: BodyDataStream,
    received: String,
}

impl Follower {
    async fn new(server: &TestServer, last_event_id: Option<&str>) -> Self {
        let mut request = server.get("/api/prompts/events");
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let response = request.response().await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            body: response.into_body().into_data_stream(),
            received: String::new(),
        }
    }

    /// The next event, its lines as they were sent.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.received.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.received = rest;
                return Some(event);
            }
            let chunk = tokio::time::timeout(Duration::from_secs(20), self.body.next());
            let chunk = chunk.await.expect("an event comes in time")?.unwrap();
            self.received.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

fn field<'a>(event: &'a str, name: &str) -> &'a str {
    let mut lines = event.lines();
    lines
        .find_map(|line| line.strip_prefix(name))
        .unwrap()
        .trim_start_matches(": ")
}

async fn edit(server: &TestServer, text: &str) {
    let response = server
        .post("/api/prompts/global/update")
        .json(json!({"content": text}))
        .await;
    assert_eq!(response.status, 200);
}

#[tokio::test]
async fn each_change_is_an_event() {
    let server = server();
    let mut follower = Follower::new(&server, None).await;
    edit(&server, "One.").await;
    let event = follower.next().await.unwrap();
    assert_snapshot!(event, @r#"
    event: change
    id: 1-b5906c821006c17a
    data: {"revision":"b5906c821006c17a","at":"2026-07-01T12:00:00Z","what":"set the global prompt"}
    "#);
    server.delete("/api/prompts/profiles/developer").await;
    assert_snapshot!(follower.next().await.unwrap(), @r#"
    event: change
    id: 2-a5cd76c84bc3b328
    data: {"revision":"a5cd76c84bc3b328","at":"2026-07-01T12:00:00Z","what":"deleted profile `developer`"}
    "#);
}

#[tokio::test]
async fn who_comes_back_is_told_what_was_missed() {
    let server = server();
    let mut follower = Follower::new(&server, None).await;
    edit(&server, "One.").await;
    let first = follower.next().await.unwrap();
    drop(follower);
    edit(&server, "Two.").await;
    edit(&server, "Three.").await;
    let mut follower = Follower::new(&server, Some(field(&first, "id"))).await;
    let second = follower.next().await.unwrap();
    let third = follower.next().await.unwrap();
    assert!(field(&second, "id").starts_with("2-"), "{second}");
    assert!(field(&third, "id").starts_with("3-"), "{third}");
    edit(&server, "Four.").await;
    assert!(field(&follower.next().await.unwrap(), "id").starts_with("4-"));

    let mut up_to_date = Follower::new(&server, Some(field(&third, "id"))).await;
    assert!(field(&up_to_date.next().await.unwrap(), "id").starts_with("4-"));
}

#[tokio::test]
async fn who_missed_an_edit_and_its_undo_is_told_of_both() {
    let server = server();
    edit(&server, "One.").await;
    let mut follower = Follower::new(&server, None).await;
    edit(&server, "Two.").await;
    let second = follower.next().await.unwrap();
    edit(&server, "Three.").await;
    server.post("/api/prompts/undo").await;
    let mut follower = Follower::new(&server, Some(field(&second, "id"))).await;
    assert!(field(&follower.next().await.unwrap(), "id").starts_with("3-"));
    assert!(field(&follower.next().await.unwrap(), "id").starts_with("4-"));
}

#[tokio::test]
async fn who_missed_more_than_is_remembered_is_told_to_read_again() {
    let server = server();
    edit(&server, "One.").await;
    for id in ["1-0000000000000000", "999-0123456789abcdef", "7", "x y"] {
        let mut follower = Follower::new(&server, Some(id)).await;
        let event = follower.next().await.unwrap();
        assert_eq!(field(&event, "event"), "missed", "{event}");
    }
    let revision = server.get("/api/prompts/status").await.json()["revision"].clone();
    let mut follower = Follower::new(&server, Some("old")).await;
    let event = follower.next().await.unwrap();
    assert_eq!(
        field(&event, "data"),
        json!({"revision": revision}).to_string()
    );
    edit(&server, "Two.").await;
    assert_eq!(field(&follower.next().await.unwrap(), "event"), "change");
}

#[tokio::test]
async fn events_end_when_the_server_stops() {
    let server = server();
    let mut follower = Follower::new(&server, None).await;
    server.app.stopping().cancel();
    assert_eq!(follower.next().await, None);
}
