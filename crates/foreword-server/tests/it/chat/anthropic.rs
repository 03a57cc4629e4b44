//! `/v1/messages`.

use foreword_server::chat::ChatConfig;
use serde_json::{Value, json};

use super::{Upstream, passing_on, unmarked, with};

const MESSAGES: &str = "/v1/messages";

const LIBRARY: &str = "\
global_prompt: Be kind.
profiles: [{id: p, is_default: true, sections: [{id: s, content: 'For {user_email}.'}]}]
";

#[tokio::test]
async fn the_prompt_is_the_first_blocks_of_system_and_the_callers_stays_behind_them() {
    let upstream = Upstream::start().await;
    let server = passing_on(&upstream).library(LIBRARY).start();
    let ask = async |system: Option<Value>| {
        let mut body = json!({
            "model": "claude", "max_tokens": 5, "messages": [], "chat_id": "c", "user_email": "ann@example.com",
        });
        if let Some(system) = system {
            body["system"] = system;
        }
        let answer = server
            .post(MESSAGES)
            .header("anthropic-beta", "one")
            .json(body)
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let got = upstream.got();
        assert_eq!(got.path, "/v1/messages");
        assert_eq!(got.header("x-api-key"), Some("of-the-other"));
        assert_eq!(got.header("anthropic-version"), Some("2023-06-01"));
        assert_eq!(got.header("anthropic-beta"), Some("one"));
        assert_eq!(got.header("authorization"), None);
        (
            got.json()["system"].clone(),
            answer.header("x-prompt-revision").to_owned(),
        )
    };
    let (ours, revision) = ask(None).await;
    let block = |at: usize| ours[at]["text"].as_str().unwrap();
    assert_eq!(ours.as_array().unwrap().len(), 2);
    assert_eq!(ours[0]["cache_control"], json!({"type": "ephemeral"}));
    assert!(ours[1].get("cache_control").is_none());
    let prompt = server
        .get("/system-prompt?chat_id=c&user_email=ann@example.com")
        .await;
    let prompt_sent = format!("{}{}", block(0), unmarked(block(1), &revision));
    assert!(prompt.text().starts_with(&prompt_sent), "{prompt_sent}");
    let mine = json!({"type": "text", "text": "Mine."});
    let all = json!([ours[0], ours[1], mine]);
    for system in [json!("Mine."), json!([mine]), all.clone()] {
        assert_eq!(ask(Some(system)).await.0, all);
    }
    for system in [
        json!(""),
        json!(null),
        json!([]),
        json!([ours[1]]),
        ours.clone(),
    ] {
        assert_eq!(ask(Some(system.clone())).await.0, ours, "{system}");
    }
    // As it is written.
    let odd = r#"{"messages":[],"chat_id":"c","user_email":"ann@example.com","system":"a\/b \u00e9 \ud800"}"#;
    assert_eq!(server.post(MESSAGES).sends(odd).await.status, 200);
    assert!(
        upstream
            .got()
            .body
            .contains(r#"{"type":"text","text":"a\/b \u00e9 \ud800"}]"#)
    );
    let overridden = json!({"messages": [], "system": ["x"], "system_override": "Only this."});
    server.post(MESSAGES).json(overridden.clone()).await;
    let mut again = upstream.got().json();
    assert_eq!(again["system"][0]["text"], "Only this.");
    again["system_override"] = "Only this.".into();
    server.post(MESSAGES).json(again.clone()).await;
    assert_eq!(upstream.got().json()["system"], again["system"]);
    // Another's block before ours is another's.
    let (behind, _) = ask(Some(json!([mine, ours[1]]))).await;
    assert_eq!(behind, json!([ours[0], ours[1], mine, ours[1]]));
    let refused = server
        .post(MESSAGES)
        .json(json!({"system": 5, "messages": []}))
        .await;
    assert_eq!(refused.status, 422);
    assert_eq!(refused.json()["type"], "error");
    assert_eq!(refused.json()["error"]["type"], "invalid_request_error");
}

#[tokio::test]
async fn the_static_block_is_marked_for_caching_only_where_there_is_room() {
    let upstream = Upstream::start().await;
    let server = passing_on(&upstream).library(LIBRARY).start();
    let marked = |count: usize| {
        let block = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
        json!({"messages": [{"role": "user", "content": vec![block; count]}]}).to_string()
    };
    for (body, is_marked) in [
        (marked(3), true),
        (marked(4), false),
        ("{\"messages\":[],\"x\":1e400}".to_owned(), true),
    ] {
        assert_eq!(server.post(MESSAGES).sends(body).await.status, 200);
        let got = upstream.got().body.replace("1e400", "1");
        let got: Value = serde_json::from_str(&got).unwrap();
        assert_eq!(
            got["system"][0].get("cache_control").is_some(),
            is_marked,
            "{got}"
        );
    }
}

#[tokio::test]
async fn the_static_block_is_kept_as_long_as_what_comes_after_it() {
    let upstream = Upstream::start().await;
    let server = passing_on(&upstream).start();
    let hour = json!({"type": "ephemeral", "ttl": "1h"});
    let later = json!([{"type": "text", "text": "x", "cache_control": hour}]);
    let tool = json!([{"name": "t", "cache_control": {"type": "ephemeral"}}]);
    for (tools, expected) in [(json!([]), hour.clone()), (tool, Value::Null)] {
        let body = json!({"messages": [], "system": later, "tools": tools});
        assert_eq!(server.post(MESSAGES).json(body).await.status, 200);
        assert_eq!(
            upstream.got().json()["system"][0]["cache_control"],
            expected
        );
    }
}

#[tokio::test]
async fn a_conversation_that_comes_back_has_the_prompt_once_however_many_places_are_marked() {
    let upstream = Upstream::start().await;
    let server = passing_on(&upstream).start();
    let block =
        |text: &str| json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
    for marks in [0, 3, 4] {
        let callers: Vec<Value> = (0..marks).map(|at| block(&at.to_string())).collect();
        let mut system = Value::from(callers.clone());
        for profile in ["support", "support", "developer", "developer"] {
            let body = json!({"messages": [], "system": system, "profile_id": profile});
            assert_eq!(server.post(MESSAGES).json(body).await.status, 200);
            system = upstream.got().json()["system"].clone();
            let blocks = system.as_array().unwrap();
            let ours = blocks.len() - marks;
            assert_eq!(ours, 2, "{system}");
            assert_eq!(blocks[ours..], callers[..]);
            assert_eq!(blocks[0].get("cache_control").is_some(), marks < 4);
            assert_eq!(system.to_string().matches("Be kind.").count(), 1);
        }
    }
    let server = passing_on(&upstream).library("{}").start();
    for body in ["{\"messages\":[]}", "{\"messages\":[],\"system\":\"x\"}"] {
        server.post(MESSAGES).sends(body).await;
        assert_eq!(upstream.got().body, body);
    }
}

#[tokio::test]
async fn without_an_upstream_it_is_said_which_setting_is_missing() {
    let upstream = Upstream::start().await;
    let server = with(&upstream, |config| config.chat = ChatConfig::default()).start();
    for (path, code) in [
        ("/v1/chat/completions", "no_upstream"),
        ("/v1/models", "no_upstream"),
    ] {
        let request = if path.ends_with("models") {
            server.get(path)
        } else {
            server.post(path)
        };
        let answer = request.await;
        assert_eq!(answer.status, 501);
        assert_eq!(answer.json()["error"]["code"], code);
        assert!(answer.text().contains("`chat.upstream.base_url`"));
    }
    let answer = server.post(MESSAGES).await;
    assert_eq!(answer.status, 501);
    assert!(
        answer
            .text()
            .contains("`chat.anthropic.base_url` and `chat.anthropic.api_key`")
    );
    assert_eq!(answer.json()["error"]["type"], "api_error");
    assert_eq!(
        server
            .post("/api/chat")
            .json(json!({"message": "Hi."}))
            .await
            .status,
        501
    );
}
