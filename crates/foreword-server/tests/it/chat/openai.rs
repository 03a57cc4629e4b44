//! `/v1/chat/completions` and `/v1/models`.

use base64::{Engine, prelude::BASE64_STANDARD};
use foreword_server::config::Role;
use serde_json::{Value, json};

use super::{Upstream, passing_on, unmarked, with};
use crate::support::{API_KEY, TestServer};

const COMPLETIONS: &str = "/v1/chat/completions";

#[tokio::test]
async fn the_prompt_comes_first_and_all_else_passes_byte_for_byte() {
    let upstream = Upstream::start().await;
    let server = passing_on(&upstream).start();
    let body = "{ \"model\" : \"gpt-5@developer\",\"temperature\":1e400,\n \"seed\": 12345678901234567890.10, \"profile_id\":null,\
                \"messages\":[ {\"role\":\"system\",\"content\":\"Mine \\u00e9\"},{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}],\"x\":-0.0} ],\
                \"chat_id\":\"c1\", \"user_email\":\"ann@example.com\" }";
    let answer = server.post(COMPLETIONS).sends(body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "Hello.");
    assert_eq!(answer.header("x-profile-id"), "developer");
    let revision = answer.header("x-prompt-revision");
    let got = upstream.got();
    assert_eq!(got.path, "/v1/chat/completions");
    let readable: Value = serde_json::from_str(&got.body.replace("1e400", "1")).unwrap();
    let first = &readable["messages"][0];
    let prompt = unmarked(first["content"].as_str().unwrap(), revision);
    assert!(
        prompt.starts_with("Be kind.") && prompt.ends_with("You write code."),
        "{prompt}"
    );
    let message = first.to_string();
    let expected = body
        .replace("gpt-5@developer", "gpt-5")
        .replace(" \"profile_id\":null,", "")
        .replace("[ {\"role\"", &format!("[{message},{{\"role\""))
        .replace(
            ",\"chat_id\":\"c1\", \"user_email\":\"ann@example.com\"",
            "",
        );
    assert_eq!(got.body, expected);
    assert_eq!(got.header("authorization"), Some("Bearer of-the-upstream"));
}

#[tokio::test]
async fn the_prompt_is_what_the_session_of_body_headers_and_model_says() {
    let upstream = Upstream::start().await;
    let server = passing_on(&upstream).start();
    let ask = async |body: Value, headers: &[(&'static str, &'static str)]| {
        let mut body = body;
        body["messages"] = json!([{"role": "user", "content": "Hi."}]);
        let mut request = server.post(COMPLETIONS);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let answer = request.json(body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let got = upstream.got().json();
        let content = got["messages"][0]["content"].as_str().unwrap();
        let prompt = if content.contains("<!-- foreword") {
            unmarked(content, answer.header("x-prompt-revision"))
        } else {
            content
        };
        let model = got["model"].as_str().unwrap_or_default();
        format!("{model} {} {prompt}", answer.header("x-profile-id")).replace('\n', " ")
    };
    let ann = json!({"model": "m", "chat_id": "c", "user_email": "ann@example.com"});
    let of_ann = ask(ann.clone(), &[]).await;
    assert!(of_ann.starts_with("m support Be kind."), "{of_ann}");
    assert!(
        of_ann.ends_with("You help ann@example.com at Example."),
        "{of_ann}"
    );
    let by_headers = [("x-chat-id", "c"), ("x-user-email", "ann@example.com")];
    assert_eq!(ask(json!({"model": "m"}), &by_headers).await, of_ann);
    // Headers are a gateway's, which knows who its users are.
    let mut other = ann.clone();
    other["user_email"] = "bob@example.com".into();
    assert_eq!(ask(other, &by_headers).await, of_ann);
    for (body, headers) in [
        (json!({"model": "m", "profile_id": "developer"}), &[][..]),
        (json!({"model": "m"}), &[("x-profile-id", "developer")]),
        (json!({"model": "m@developer"}), &[]),
        (
            json!({"model": "m@support", "profile_id": "developer"}),
            &[],
        ),
    ] {
        let prompt = ask(body, headers).await;
        assert!(prompt.starts_with("m developer Be kind."), "{prompt}");
        assert!(prompt.ends_with("You write code."), "{prompt}");
    }
    // Real names have an `@`, too.
    for model in ["@cf/meta/llama", "text@1", "@developer", "m@"] {
        let prompt = ask(json!({"model": model}), &[]).await;
        assert!(prompt.starts_with(&format!("{model} support")), "{prompt}");
    }
    // What is empty or was not filled in names nothing.
    for absent in ["", "{{profile}}"] {
        let prompt = ask(json!({"model": "m@developer", "profile_id": absent}), &[]).await;
        assert!(prompt.starts_with("m developer"), "{prompt}");
    }
    let added = ask(
        json!({"model": "m", "additional_context": ["One.", "Two."], "variables": {"company": "Other"}}),
        &[],
    )
    .await;
    assert!(
        added.contains("at Other.") && added.ends_with("One.  Two."),
        "{added}"
    );
    let overridden = ask(json!({"model": "m", "system_override": "Only this."}), &[]).await;
    assert_eq!(overridden, "m support Only this.");
}

#[tokio::test]
async fn a_conversation_that_comes_back_has_the_prompt_once() {
    let upstream = Upstream::start().await;
    let server = passing_on(&upstream).start();
    let mut messages = json!([
        {"role": "system", "content": "Mine."},
        {"role": "user", "content": "Hi."},
    ]);
    let mut texts = Vec::new();
    for body in [
        json!({"profile_id": "support"}),
        json!({"profile_id": "support"}),
        json!({"profile_id": "developer"}),
        json!({"system_override": "Only this."}),
        json!({"system_override": "Only this."}),
    ] {
        let mut body = body;
        body["messages"] = messages;
        assert_eq!(server.post(COMPLETIONS).json(body).await.status, 200);
        messages = upstream.got().json()["messages"].clone();
        assert_eq!(messages.as_array().unwrap().len(), 3, "{messages}");
        assert_eq!(messages[1]["content"], "Mine.");
        texts.push(messages[0]["content"].as_str().unwrap().to_owned());
    }
    assert_eq!(texts[0], texts[1]);
    assert!(texts[2].contains("You write code."));
    assert_eq!(texts[3..], ["Only this.", "Only this."]);
    // Some clients make parts of every text.
    let parts = json!([{"role": "developer", "content": [{"type": "text", "text": texts[0]}]}]);
    server
        .post(COMPLETIONS)
        .json(json!({"messages": parts}))
        .await;
    assert_eq!(
        upstream.got().json()["messages"].as_array().unwrap().len(),
        1
    );
}

#[tokio::test]
async fn what_passes_and_what_does_not() {
    let upstream = Upstream::start().await;
    let server = with(&upstream, |config| {
        config.session.chat_id_headers = vec!["X-Chat-Id".to_owned(), "OpenAI-Chat".to_owned()];
    });
    let server = server.keys().start();
    let query = "?chat_id=c&api-version=1&profile%5Fid=support&x";
    let request = server.post(&format!("{COMPLETIONS}{query}")).api();
    let sent = [
        ("content-type", "application/json"),
        ("accept", "text/event-stream"),
        ("openai-organization", "ours"),
        ("openai-project", API_KEY),
        ("openai-chat", "c"),
        ("anthropic-beta", "one"),
        ("idempotency-key", "1"),
        ("traceparent", "00-1-2-3"),
        ("cookie", "a=b"),
        ("x-chat-id", "c"),
        ("x-user-email", "ann@example.com"),
        ("x-foreword-key", API_KEY),
        ("x-api-key", API_KEY),
        ("x-forwarded-for", "10.0.0.1"),
    ];
    let request = sent.into_iter().fold(request, |request, (name, value)| {
        request.header(name, value)
    });
    upstream.answers(
        429,
        &[
            ("content-type", "application/json"),
            ("retry-after", "7"),
            ("x-ratelimit-remaining-requests", "0"),
            ("openai-processing-ms", "3"),
            ("set-cookie", "a=b"),
            ("server", "x"),
        ],
        "{\"error\": {\"message\": \"slow down\"}}",
    );
    let answer = request.body("{\"messages\":[]}").await;
    let got = upstream.got();
    assert_eq!(got.path, "/v1/chat/completions?api-version=1&x");
    let mut names: Vec<&str> = got.headers.keys().map(http::HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "accept",
            "anthropic-beta",
            "authorization",
            "content-length",
            "content-type",
            "host",
            "idempotency-key",
            "openai-organization",
            "traceparent",
            "user-agent",
        ]
    );
    assert_eq!(got.header("authorization"), Some("Bearer of-the-upstream"));
    assert_eq!(answer.status, 429);
    assert_eq!(answer.text(), "{\"error\": {\"message\": \"slow down\"}}");
    for (name, value) in [
        ("retry-after", "7"),
        ("x-ratelimit-remaining-requests", "0"),
        ("openai-processing-ms", "3"),
        ("x-profile-id", "support"),
    ] {
        assert_eq!(answer.header(name), value);
    }
    for name in ["set-cookie", "server"] {
        assert!(!answer.headers.contains_key(name), "{name}");
    }
}

#[tokio::test]
async fn the_callers_own_authorization_passes_where_it_is_told_to_and_our_keys_never() {
    let upstream = Upstream::start().await;
    let server = with(&upstream, |config| {
        config.chat.upstream.forward_authorization = true;
    });
    let server = server.keys().start();
    let ask = async |authorization: Option<&'static str>, own: bool| {
        let mut request = server.post(COMPLETIONS).sends("{\"messages\":[]}");
        if let Some(value) = authorization {
            request = request.header("authorization", value);
        }
        if own {
            request = request.header("x-foreword-key", API_KEY);
        }
        let answer = request.await;
        (answer.status == 200).then(|| upstream.got().header("authorization").unwrap().to_owned())
    };
    // A key may have in it what stands between words elsewhere.
    let odd = with(&upstream, |config| {
        config.chat.upstream.forward_authorization = true;
    });
    let odd = odd.key("odd,key;of=ours", Role::Api).start();
    for spelling in ["odd,key;of=ours", "Bearer odd,key;of=ours"] {
        let request = odd.post(COMPLETIONS).sends("{\"messages\":[]}");
        let request = request.header("x-foreword-key", "odd,key;of=ours");
        assert_eq!(request.header("authorization", spelling).await.status, 200);
        assert_eq!(
            upstream.got().header("authorization"),
            Some("Bearer of-the-upstream")
        );
    }
    let key: &'static str = format!("Bearer {API_KEY}").leak();
    let basic = BASE64_STANDARD.encode(format!("x:{API_KEY}"));
    for spelling in [
        format!("Bearer\t{API_KEY}"),
        format!("Token {API_KEY}"),
        format!("Bearer \"{API_KEY}\""),
        format!("Bearer theirs, Bearer {API_KEY}"),
        format!("Digest k={API_KEY}"),
        format!("Basic {basic}"),
        String::new(),
    ] {
        assert_eq!(
            ask(Some(spelling.leak()), true).await.as_deref(),
            Some("Bearer of-the-upstream")
        );
    }
    let upstreams = Some("Bearer of-the-upstream".to_owned());
    assert_eq!(
        ask(Some("Bearer theirs"), true).await.as_deref(),
        Some("Bearer theirs")
    );
    assert_eq!(ask(Some(key), true).await, upstreams);
    assert_eq!(ask(Some(API_KEY), true).await, upstreams);
    assert_eq!(ask(None, true).await, upstreams);
    assert_eq!(ask(Some(key), false).await, None);
    let refused = server.post(COMPLETIONS).header("authorization", key).await;
    assert!(
        refused.text().contains("in `X-Foreword-Key`"),
        "{}",
        refused.text()
    );
    assert_eq!(ask(Some("Bearer theirs"), false).await, None);
}

#[tokio::test]
async fn models_are_the_upstreams_and_with_profiles_where_the_settings_say_so() {
    let upstream = Upstream::start().await;
    let list =
        "{ \"object\":\"list\", \"data\":[{\"id\":\"gpt-5\", \"created\":1.50}, {\"id\":\"a@b\"}]}";
    let server = passing_on(&upstream).start();
    assert_eq!(server.get("/v1/models").await.text(), list);
    let server = with(&upstream, |config| config.chat.list_profiles = true).start();
    assert_eq!(
        server.get("/v1/models").await.text(),
        "{ \"object\":\"list\", \"data\":[{\"id\":\"gpt-5\", \"created\":1.50},{\"id\":\"gpt-5@support\", \"created\":1.50},\
         {\"id\":\"gpt-5@developer\", \"created\":1.50},{\"id\":\"a@b\"},{\"id\":\"a@b@support\"},{\"id\":\"a@b@developer\"}]}"
    );
    for (status, kind, body) in [
        (200, "application/json", "[no list"),
        (200, "text/html", list),
        (201, "application/json", list),
    ] {
        upstream.answers(status, &[("content-type", kind)], body);
        let answer = server.get("/v1/models").await;
        assert_eq!(
            (answer.status.as_u16(), answer.header("content-type")),
            (status, kind)
        );
        assert_eq!(answer.text(), body);
    }
    // As many as a list may have, and no more.
    for (models, listed) in [(9_999, 10_000), (10_000, 10_000), (10_001, 10_001)] {
        let models: Vec<Value> = (0..models)
            .map(|at| json!({"id": at.to_string()}))
            .collect();
        let body = json!({"data": models}).to_string();
        upstream.answers(200, &[("content-type", "application/json")], &body);
        let answer = server.get("/v1/models").await.json();
        assert_eq!(answer["data"].as_array().unwrap().len(), listed);
    }
}

#[tokio::test]
async fn the_workspace_is_told_of_where_the_settings_and_the_request_say_so() {
    let upstream = Upstream::start().await;
    let server = with(&upstream, |config| config.chat.include_workspace = true);
    let server = server.workspace().start();
    let prompt = async |server: &TestServer, body: Value| {
        let mut body = body;
        body["messages"] = json!([]);
        server.post(COMPLETIONS).json(body).await;
        upstream.got().json()["messages"][0]["content"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let session = json!({"chat_id": "c", "user_email": "ann@example.com"});
    let told = prompt(&server, session.clone()).await;
    let delivered = server
        .get("/system-prompt?chat_id=c&user_email=ann@example.com")
        .await;
    assert_eq!(
        unmarked(&told, delivered.header("x-prompt-revision")),
        delivered.text()
    );
    assert!(!prompt(&server, json!({})).await.contains("workspace"));
    let server = passing_on(&upstream).workspace().start();
    assert!(!prompt(&server, session).await.contains("workspace"));
}

#[tokio::test]
async fn the_role_may_be_developer_and_an_empty_prompt_is_no_message() {
    let upstream = Upstream::start().await;
    let developer = with(&upstream, |config| {
        config.chat.system_role = foreword_server::chat::SystemRole::Developer;
    });
    let server = developer.start();
    server.post(COMPLETIONS).sends("{\"messages\":[]}").await;
    assert_eq!(upstream.got().json()["messages"][0]["role"], "developer");
    let server = passing_on(&upstream).library("{}").start();
    server.post(COMPLETIONS).sends("{\"messages\":[]}").await;
    assert_eq!(upstream.got().body, "{\"messages\":[]}");
}

#[tokio::test]
async fn what_litellm_is_given_holds_nothing_of_a_session() {
    let upstream = Upstream::start().await;
    let server = passing_on(&upstream).start();
    let path = "/beta/litellm_prompt_management?prompt_id=support&unknown=1&chat_id=c&user_email=ann@example.com";
    let given = server
        .get(path)
        .header("x-user-email", "ann@example.com")
        .await
        .json();
    assert_eq!(given["prompt_id"], "support");
    let message = &given["prompt_template"][0];
    assert_eq!(message["role"], "system");
    let neutral = server
        .get("/system-prompt?form=neutral&profile_id=support")
        .await;
    assert_eq!(message["content"], neutral.text());
    assert!(!neutral.text().contains("ann@"));
    let unknown = server
        .get("/beta/litellm_prompt_management?prompt_id=none")
        .await;
    assert_eq!(unknown.status, 404);
}
