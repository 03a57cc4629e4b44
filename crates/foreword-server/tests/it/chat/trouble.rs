//! Upstreams that are slow, away, or break off; bodies that cannot be; callers that leave.

use std::{io, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use futures::StreamExt;
use serde_json::{Value, json};

use super::{Upstream, passing_on, with};
use crate::support::API_KEY;

const COMPLETIONS: &str = "/v1/chat/completions";
const EMPTY: &str = "{\"messages\":[]}";

/// The code of an error in OpenAI's shape.
fn code(body: &Value) -> &str {
    assert!(body["error"]["message"].is_string(), "{body}");
    assert!(
        body["error"]["type"].is_string() && body["error"].get("param").is_some(),
        "{body}"
    );
    body["error"]["code"].as_str().unwrap()
}

#[tokio::test]
async fn what_cannot_be_is_refused_in_the_shape_that_the_client_reads() {
    let upstream = Upstream::start().await;
    let server = with(&upstream, |config| config.chat.max_body = 1000)
        .keys()
        .start();
    for (body, status, expected) in [
        (
            "{\"messages\":[],\"profile_id\":\"none\"}",
            404,
            "profile_not_found",
        ),
        ("{\"messages\":[],\"profile_id\":5}", 422, "invalid"),
        ("{\"messages\":[],\"variables\":{\"a\":1}}", 422, "invalid"),
        (
            "{\"messages\":[],\"additional_context\":[1]}",
            422,
            "invalid",
        ),
        (
            "{\"messages\":[],\"chat_id\":\"../a\"}",
            400,
            "invalid_chat_id",
        ),
        (
            "{\"messages\":[],\"user_email\":\"nobody\"}",
            400,
            "invalid_user_email",
        ),
        (
            "{\"messages\":[],\"system_override\":\"\\ud800\"}",
            422,
            "invalid",
        ),
        ("{\"messages\":{}}", 422, "invalid"),
        ("{}", 422, "invalid"),
        ("{\"messages\":[],\"messages\":[]}", 400, "invalid_body"),
        (
            "{\"model\":\"a\",\"\\u006dodel\":\"b\",\"messages\":[]}",
            400,
            "invalid_body",
        ),
        ("[]", 400, "invalid_body"),
        ("", 400, "invalid_body"),
    ] {
        let answer = server.post(COMPLETIONS).api().sends(body).await;
        assert_eq!(
            (answer.status.as_u16(), code(&answer.json())),
            (status, expected),
            "{body}"
        );
    }
    assert!(upstream.noted().got.is_empty());
    let answer = server.post(COMPLETIONS).sends(EMPTY).await;
    assert_eq!(
        (answer.status.as_u16(), code(&answer.json())),
        (401, "key_required")
    );
    let answer = server.post("/v1/messages").sends(EMPTY).await;
    assert_eq!(answer.json()["error"]["type"], "authentication_error");
    let answer = server.post(COMPLETIONS).api().body(EMPTY).await;
    assert_eq!(
        (answer.status.as_u16(), code(&answer.json())),
        (415, "unsupported_media_type")
    );
    for (bytes, status) in [(1000, 200), (1001, 413)] {
        let answer = server
            .post(COMPLETIONS)
            .api()
            .sends(format!("{EMPTY:bytes$}"))
            .await;
        assert_eq!(answer.status, status);
    }
}

#[tokio::test]
async fn an_upstream_that_is_away_or_silent_is_told() {
    let upstream = Upstream::start().await;
    let away = with(&upstream, |config| {
        config.chat.upstream.base_url = Some("http://127.0.0.1:1/v1".to_owned());
    });
    let answer = away.start().post(COMPLETIONS).sends(EMPTY).await;
    assert_eq!(
        (answer.status.as_u16(), code(&answer.json())),
        (502, "upstream_unreachable")
    );
    upstream.is_silent();
    let server = with(&upstream, |config| config.chat.upstream.timeout = 1).start();
    let answer = server.post(COMPLETIONS).sends(EMPTY).await;
    assert_eq!(
        (answer.status.as_u16(), code(&answer.json())),
        (504, "upstream_timed_out")
    );
    let answer = server.post("/v1/messages").sends(EMPTY).await;
    assert_eq!(answer.json()["error"]["type"], "timeout_error");
}

#[tokio::test]
async fn pieces_pass_as_they_come_and_a_stream_that_breaks_off_ends_with_an_error() {
    let upstream = Upstream::start().await;
    let server = with(&upstream, |config| config.chat.upstream.timeout = 1).start();
    for (path, breaks, begins, expected) in [
        (COMPLETIONS, true, "data: {", "upstream_broke_off"),
        (COMPLETIONS, false, "data: {", "upstream_timed_out"),
        ("/v1/messages", true, "event: error\ndata: {", "broke off"),
    ] {
        let pieces = upstream.streams();
        let asked = server.post(path).sends(EMPTY).response();
        let (answer, ()) = tokio::join!(asked, async {
            pieces
                .send(Ok(Bytes::from_static(b"data: 1\n\n")))
                .await
                .unwrap();
        });
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        let mut body = answer.into_body().into_data_stream();
        assert_eq!(body.next().await.unwrap().unwrap(), "data: 1\n\n");
        pieces
            .send(Ok(Bytes::from_static(b"data: 2")))
            .await
            .unwrap();
        assert_eq!(body.next().await.unwrap().unwrap(), "data: 2");
        if breaks {
            pieces.send(Err(io::Error::other("broken"))).await.unwrap();
        }
        let last = body.next().await.unwrap().unwrap();
        let last = str::from_utf8(&last).unwrap();
        assert!(
            last.starts_with(&format!("\n\n{begins}")) && last.ends_with("}\n\n"),
            "{last}"
        );
        assert!(last.contains(expected), "{last}");
        assert!(body.next().await.is_none());
    }
}

#[tokio::test]
async fn an_answer_that_is_no_stream_and_breaks_off_is_no_whole_answer() {
    let upstream = Upstream::start().await;
    let server = passing_on(&upstream).start();
    for (kind, encoding) in [
        ("application/json", "identity"),
        ("text/event-stream", "gzip"),
    ] {
        let pieces = upstream.streams_as(&[("content-type", kind), ("content-encoding", encoding)]);
        let asked = server.post(COMPLETIONS).sends(EMPTY).response();
        let (answer, ()) = tokio::join!(asked, async {
            pieces
                .send(Ok(Bytes::from_static(b"{\"data\":")))
                .await
                .unwrap();
        });
        let mut body = answer.into_body().into_data_stream();
        assert_eq!(body.next().await.unwrap().unwrap(), "{\"data\":");
        pieces.send(Err(io::Error::other("broken"))).await.unwrap();
        assert!(body.next().await.unwrap().is_err());
    }
}

#[tokio::test]
async fn what_is_not_there_is_said_in_the_shape_of_its_path() {
    let upstream = Upstream::start().await;
    let server = passing_on(&upstream).start();
    for (path, status, expected) in [
        ("/v1/embeddings", 404, "route_not_found"),
        ("/v1/models/gpt-5", 404, "route_not_found"),
        ("/v1/chat/completions", 405, "method_not_allowed"),
    ] {
        let answer = server.get(path).await;
        assert_eq!(
            (answer.status.as_u16(), code(&answer.json())),
            (status, expected)
        );
    }
    let answer = server.post("/v1/messages/count_tokens").await;
    assert_eq!(answer.json()["error"]["type"], "not_found_error");
    let answer = server
        .get("/v1/models")
        .header("host", "evil.example")
        .await;
    assert_eq!(code(&answer.json()), "host_not_allowed");
    assert_eq!(
        server.get("/nothing").await.json()["code"],
        "route_not_found"
    );
}

#[tokio::test]
async fn what_is_forewords_may_have_2_mib_and_1_000_texts_and_no_more() {
    const MOST: usize = 2 << 20;
    let upstream = Upstream::start().await;
    let server = passing_on(&upstream).start();
    for (text, status) in [
        (json!("x".repeat(MOST - 2)), 200),
        (json!("x".repeat(MOST - 1)), 413),
        (json!(vec!["x"; 1_000]), 200),
        (json!(vec!["x"; 1_001]), 422),
    ] {
        let body = json!({"messages": [], "additional_context": text});
        let answer = server.post(COMPLETIONS).json(body).await;
        assert_eq!(answer.status, status, "{}", &answer.text()[..100]);
    }
}

#[tokio::test]
async fn conversations_that_wait_for_their_answers_keep_no_memory_from_others() {
    let upstream = Upstream::start().await;
    let server = with(&upstream, |config| {
        config.http.body_memory = 1 << 20;
        config.http.timeout_seconds = 2;
    });
    let server = server.start();
    upstream.is_silent();
    let body = EMPTY.to_owned() + &" ".repeat(300_000);
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            // Of a length that nobody says.
            let piece = Ok::<_, io::Error>(Bytes::from(body.clone()));
            let body = Body::from_stream(futures::stream::iter([piece]));
            tokio::spawn(server.post(COMPLETIONS).sends(body).response())
        })
        .collect();
    let asked = async {
        while upstream.noted().got.len() < 8 {
            tokio::task::yield_now().await;
        }
    };
    let asked = tokio::time::timeout(Duration::from_secs(20), asked).await;
    asked.expect("all of them are passed on");
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn who_leaves_ends_the_upstreams_work() {
    let upstream = Upstream::start().await;
    let server = passing_on(&upstream).keys().start();
    let listening = server.listen().await;
    let url = format!("http://{}{COMPLETIONS}", listening.address);
    let pieces = upstream.streams();
    let client = reqwest::Client::new();
    let request = client
        .post(url)
        .bearer_auth(API_KEY)
        .header("content-type", "application/json")
        .body(EMPTY);
    let asked = tokio::spawn(async move { request.send().await.unwrap() });
    pieces
        .send(Ok(Bytes::from_static(b"data: 1\n\n")))
        .await
        .unwrap();
    let mut answer = asked.await.unwrap();
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "data: 1\n\n");
    drop(answer);
    drop(client);
    // The upstream notices by itself, without sending anything.
    let closed = tokio::time::timeout(Duration::from_secs(10), pieces.closed()).await;
    closed.expect("the upstream's stream is dropped");
    listening.shutdown.cancel();
}
