//! `/api/chat`.

use std::io;

use bytes::Bytes;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::{Upstream, passing_on, unmarked, with};

const CHAT: &str = "/api/chat";

#[tokio::test]
async fn one_message_is_answered() {
    let upstream = Upstream::start().await;
    let server = with(&upstream, |config| {
        config.chat.default_model = Some("small".to_owned());
    });
    let server = server.start();
    let answer = server.post(CHAT).json(json!({"message": "Hi."})).await;
    let revision = answer.header("x-prompt-revision").to_owned();
    assert_eq!(
        answer.json(),
        json!({
            "response": "Hello.", "model": "small", "profile_id": "support", "revision": revision,
            "usage": {"total_tokens": 7},
        })
    );
    let got = upstream.got().json();
    assert_eq!(got["model"], "small");
    assert_eq!(
        got["messages"][1],
        json!({"role": "user", "content": "Hi."})
    );
    let prompt = unmarked(got["messages"][0]["content"].as_str().unwrap(), &revision);
    assert!(prompt.starts_with("Be kind."));
    let body =
        json!({"message": "Hi.", "model": "large@developer", "system_override": "Only this."});
    let answer = server.post(CHAT).json(body).await.json();
    assert_eq!(
        (&answer["model"], &answer["profile_id"]),
        (&json!("large"), &json!("developer"))
    );
    assert_eq!(
        upstream.got().json()["messages"][0]["content"],
        "Only this."
    );
}

#[tokio::test]
async fn what_is_wrong_is_told() {
    let upstream = Upstream::start().await;
    let server = passing_on(&upstream).start();
    let no_model = server.post(CHAT).json(json!({"message": "Hi."})).await;
    assert_eq!(no_model.status, 422);
    assert!(no_model.text().contains("chat.default_model"));
    let body = json!({"message": 5, "model": "m", "profile": "x", "stream": "yes"});
    let wrong = server.post(CHAT).json(body).await;
    assert_eq!(
        wrong.json()["errors"].as_array().unwrap().len(),
        3,
        "{}",
        wrong.text()
    );
    let ask = async || {
        server
            .post(CHAT)
            .json(json!({"message": "Hi.", "model": "m"}))
            .await
    };
    let refusal = "{\"error\": {\"message\": \"slow\\ndown\"}}";
    for (status, body, expected, code) in [
        (429, refusal, 429, "upstream_busy"),
        (401, refusal, 502, "upstream_refused"),
        (500, "", 502, "upstream_refused"),
        (200, "{}", 502, "upstream_not_understood"),
        (200, "<html>", 502, "upstream_not_understood"),
    ] {
        upstream.answers(status, &[("retry-after", "7")], body);
        let answer = ask().await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["code"]),
            (expected, &json!(code))
        );
        if status == 429 {
            assert_eq!(answer.header("retry-after"), "7");
            assert!(
                answer.text().contains("HTTP 429: slow down"),
                "{}",
                answer.text()
            );
        }
    }
}

#[tokio::test]
async fn a_stream_has_a_start_chunks_and_an_end() {
    let upstream = Upstream::start().await;
    let server = passing_on(&upstream).start();
    let good = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n\
                data: {\"choices\":[{\"delta\":{\"content\":\"Good \"}}]}\r\n\r\n: comment\n\n\
                data: {\"choices\":[{\"delta\":{\"content\":\"day.\"}}]}\n\ndata: {\"choices\":[],\"usage\":{\"total_tokens\":7}}\n\n\
                data: [DONE]\n\n";
    for (sent, breaks, names, last) in [
        (
            good,
            false,
            &["start", "chunk", "chunk", "done"][..],
            json!("Good day."),
        ),
        (
            "data: {\"choices\":[{\"delta\":{\"content\":\"Good \"}}]}\n\n",
            true,
            &["start", "chunk", "error"],
            json!("upstream_broke_off"),
        ),
        (
            "data: {\"error\":{\"message\":\"no\"}}\n\n",
            false,
            &["start", "error"],
            json!("upstream_broke_off"),
        ),
        (
            "data: <html>\n\n",
            false,
            &["start", "error"],
            json!("upstream_broke_off"),
        ),
    ] {
        let pieces = upstream.streams();
        let body = json!({"message": "Hi.", "model": "m", "stream": true});
        let asked = server.post(CHAT).json(body).response();
        let (answer, ()) = tokio::join!(asked, async move {
            // In pieces that are no lines.
            for piece in sent.as_bytes().chunks(13) {
                pieces
                    .send(Ok(Bytes::copy_from_slice(piece)))
                    .await
                    .unwrap();
            }
            if breaks {
                pieces.send(Err(io::Error::other("broken"))).await.unwrap();
            }
        });
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        let events = events(str::from_utf8(&text).unwrap());
        let found: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(found, names);
        assert_eq!(events[0].1["profile_id"], "support");
        let (_, end) = events.last().unwrap();
        let value = if found.ends_with(&["done"]) {
            &end["response"]
        } else {
            &end["code"]
        };
        assert_eq!(*value, last);
    }
    assert_eq!(
        upstream.got().json()["stream_options"],
        json!({"include_usage": true})
    );
}

fn events(text: &str) -> Vec<(String, Value)> {
    let events = text.split("\n\n").filter(|event| !event.is_empty());
    events
        .map(|event| {
            let (name, data) = event.split_once('\n').unwrap();
            let data = data.strip_prefix("data: ").unwrap();
            let name = name.strip_prefix("event: ").unwrap();
            (name.to_owned(), serde_json::from_str(data).unwrap())
        })
        .collect()
}
