//! Skills over MCP: to whom the extension is offered, page by page, and what is said of large ones.

use std::fs;

use serde_json::{Value, json};

use super::server;
use crate::{
    mcp::{discover, initialize, legacy, modern},
    support::TestServer,
};

impl TestServer {
    async fn ask(&self, message: Value) -> Value {
        let request = self.post("/mcp").header("x-chat-id", "a");
        request.message(&message).await.json()
    }
}

/// A request of 2026-07-28 of a client that names these extensions.
fn knowing(extensions: &Value, method: &str, mut params: Value) -> Value {
    params["_meta"] =
        json!({"io.modelcontextprotocol/clientCapabilities": {"extensions": extensions}});
    modern(method, params)
}

#[tokio::test]
async fn the_extension_is_for_clients_that_can_have_negotiated_it() {
    const EXTENSION: &str = "io.modelcontextprotocol/skills";
    let server = server().start();
    server.write_skill("public/pdf", "For all.");
    let uri = "skill://public/pdf/SKILL.md";
    let discovered = server.ask(discover()).await;
    assert!(discovered["result"]["capabilities"]["extensions"][EXTENSION].is_object());
    let initialized = server.ask(initialize()).await;
    assert!(initialized["result"]["capabilities"]["extensions"].is_null());

    let own = json!({EXTENSION: {}});
    for message in [
        modern("skills/list", json!({})),
        knowing(&own, "skills/list", json!({})),
        knowing(&own, "skills/get", json!({"uri": uri})),
        knowing(&own, "resources/read", json!({"uri": uri})),
    ] {
        let answer = server.ask(message).await;
        assert!(answer["error"].is_null(), "{answer}");
    }
    let (others, none) = (json!({"com.example/other": {}}), json!({}));
    for message in [
        legacy("skills/list", json!({})),
        legacy("skills/get", json!({"uri": uri})),
        legacy("skills/get", json!({"uri": 5})),
        knowing(&others, "skills/list", json!({})),
        knowing(&none, "skills/get", json!({"uri": uri})),
    ] {
        let answer = server.ask(message.clone()).await;
        assert_eq!(answer["error"]["code"], -32601, "{message} {answer}");
    }
    for message in [
        legacy("resources/read", json!({"uri": uri})),
        knowing(&others, "resources/read", json!({"uri": uri})),
    ] {
        let answer = server.ask(message).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("no such resource"), "{answer}");
    }
}

#[tokio::test]
async fn a_page_holds_50_skills_and_the_next_goes_on_behind_it() {
    let server = server().start();
    for number in 0..60 {
        server.write_skill(&format!("public/skill-{number:02}"), "One of many.");
    }
    let list = async |cursor: Value| {
        let params = match cursor {
            Value::Null => json!({}),
            cursor => json!({ "cursor": cursor }),
        };
        server.ask(modern("skills/list", params)).await
    };
    let names = |page: &Value| -> Vec<String> {
        let skills = page["result"]["skills"].as_array().unwrap().iter();
        let name = |skill: &Value| skill["frontmatter"]["name"].as_str().unwrap().to_owned();
        skills.map(name).collect()
    };
    let first = list(Value::Null).await;
    let cursor = first["result"]["nextCursor"].clone();
    // The one that the cursor names may be gone when it is used.
    fs::remove_dir_all(server.skills_directory("public/skill-49")).unwrap();
    let second = list(cursor).await;
    let all: Vec<String> = names(&first).into_iter().chain(names(&second)).collect();
    let expected: Vec<String> = (0..60).map(|number| format!("skill-{number:02}")).collect();
    assert_eq!((all, names(&first).len()), (expected, 50));
    assert!(second["result"]["nextCursor"].is_null());
    for cursor in [
        "",
        "51",
        "skill://public/skill-10/SKILL.md",
        "skill://other/skill-10/",
    ] {
        let answer = list(json!(cursor)).await;
        assert_eq!(answer["error"]["code"], -32602, "{cursor} {answer}");
    }
}

#[tokio::test]
async fn a_skill_of_more_than_512_files_is_dynamic() {
    let server = server().start();
    server.write_skill("public/large", "Has many files.");
    let directory = server.skills_directory("public/large");
    let fill = |count: usize| {
        for number in 1..count {
            fs::write(directory.join(number.to_string()), "x").unwrap();
        }
    };
    let resources = async || {
        let get = modern(
            "skills/get",
            json!({"uri": "skill://public/large/SKILL.md"}),
        );
        server.ask(get).await["result"]["skill"]["resources"].clone()
    };
    fill(512);
    assert_eq!(resources().await.as_array().map(Vec::len), Some(512));
    fill(513);
    super::eventually("it is dynamic", async || resources().await == "dynamic").await;
    let uri = "skill://public/large/512";
    let read = server
        .ask(modern("resources/read", json!({ "uri": uri })))
        .await;
    assert_eq!(read["result"]["contents"][0]["text"], "x");
}
