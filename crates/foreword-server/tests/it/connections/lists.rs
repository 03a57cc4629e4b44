//! What of the connected servers' tools is listed, described, and told.

use foreword_server::connections::{ConnectionConfig, ConnectionState};
use serde_json::json;

use super::{
    connected, connection, eventually,
    peer::{Peer, tool},
    with,
};
use crate::mcp::{discover, initialize};

#[tokio::test]
async fn tools_are_in_every_tier_the_preview_and_the_list() {
    let peer = Peer::start(&["one", "two", "three"]).await;
    let server = connected("peer", &peer).start().settled().await;
    let prompt = server.prompt().await;
    assert!(prompt.contains("### peer\n\nThe server describes itself:\n\n> Words of the peer.\n"));
    assert!(prompt.contains("- `peer__one`: Does one.\n"));
    let initialized = server
        .post("/mcp")
        .header("x-chat-id", "a")
        .message(&initialize())
        .await;
    assert_eq!(initialized.instructions(), prompt);
    let discovered = server
        .post("/mcp")
        .header("x-chat-id", "a")
        .message(&discover())
        .await;
    assert_eq!(discovered.instructions(), prompt);
    let composed = server.get("/api/prompts/compose?chat_id=a").await.json();
    assert_eq!(composed["system_prompt"], *prompt);
    assert_eq!(composed["parts"][1]["source"], "tools");
    let previewed = server.get("/api/prompts/compose").await.json();
    assert!(
        previewed["system_prompt"]
            .as_str()
            .unwrap()
            .contains("peer__three")
    );
    assert_eq!(
        server.tool_names().await,
        ["read_me", "peer__one", "peer__three", "peer__two"]
    );
    let info = server.get("/mcp-info").await.json();
    assert_eq!(info["tools"][1]["name"], "peer__one");
    let shown = server.get("/api/prompts/mcp-tools").await.json();
    assert!(prompt.contains(shown["mcp_tools_prompt"].as_str().unwrap()));
    assert_eq!(shown["tools_count"], 3);
    let status = &shown["servers"][0];
    assert_eq!(status["state"], "ready");
    assert_eq!(status["protocol_version"], "2026-07-28");
    assert_eq!(status["last_error"], json!(null));
    assert!(!status["last_refresh"].is_null());
}

#[tokio::test]
async fn a_change_is_in_the_next_prompt_and_an_equal_list_is_none() {
    let peer = Peer::start(&["one"]).await;
    let server = connected("peer", &peer).start().settled().await;
    let before = server.prompt().await;
    let changes = server.app.connections().changes();
    let refreshed = server.status_of("peer").last_refresh;
    server.advance(jiff::SignedDuration::from_secs(1));
    eventually("the list is asked for again", async || {
        server.status_of("peer").last_refresh != refreshed
    })
    .await;
    assert!(!changes.has_changed().unwrap());
    peer.change(vec![tool("one"), tool("two")]);
    eventually("the prompt has the new tool", async || {
        server.prompt().await.contains("`peer__two`")
    })
    .await;
    assert!(changes.has_changed().unwrap());
    peer.change(vec![tool("one")]);
    eventually("the prompt is as before", async || {
        server.prompt().await == before
    })
    .await;
}

#[tokio::test]
async fn only_the_tools_that_are_named_are_taken() {
    let peer = Peer::start(&["one", "two", "three"]).await;
    let chosen = ["two", "four"].map(str::to_owned).to_vec();
    let config = ConnectionConfig {
        tools: Some(chosen),
        ..connection(peer.url())
    };
    let server = with("peer", config).start().settled().await;
    assert_eq!(server.tool_names().await, ["read_me", "peer__two"]);
    assert_eq!(
        server.status_of("peer").problems,
        ["`tools` names `four`, which the server does not have"]
    );
    let missing = server.call("peer__one", json!({})).await;
    assert!(missing.rpc_error().contains("unknown tool `peer__one`"));
}

#[tokio::test]
async fn what_is_not_exposed_is_not_handed_on_and_described_only_where_that_is_wanted() {
    let peer = Peer::start(&["one"]).await;
    let config = ConnectionConfig {
        expose: false,
        ..connection(peer.url())
    };
    let server = with("peer", config.clone()).start().settled().await;
    assert_eq!(server.tool_names().await, ["read_me"]);
    assert!(!server.prompt().await.contains("## Tools"));
    let described =
        with("peer", config).config(|config| config.tools_prompt.include_unexposed = true);
    let described = described.start().settled().await;
    assert_eq!(described.tool_names().await, ["read_me"]);
    assert!(described.prompt().await.contains("- `one`: Does one."));
}

#[tokio::test]
async fn settings_decide_what_the_tools_prompt_shows() {
    let peer = Peer::start(&["one", "two"]).await;
    let off = connected("peer", &peer).config(|config| config.tools_prompt.enabled = false);
    let off = off.start().settled().await;
    assert!(!off.prompt().await.contains("## Tools"));
    assert_eq!(off.tool_names().await.len(), 3);
    assert_eq!(
        off.get("/api/prompts/mcp-tools").await.json()["tools_count"],
        2
    );
    let one = connected("peer", &peer).config(|config| config.tools_prompt.max_tools = 1);
    let one = one.start().settled().await;
    assert!(one.prompt().await.contains("1 of 2 tools are shown"));
    let short =
        connected("peer", &peer).config(|config| config.tools_prompt.include_schemas = false);
    let short = short.start().settled().await;
    assert!(!short.prompt().await.contains("What to say."));
    let quiet = ConnectionConfig {
        instructions: false,
        ..connection(peer.url())
    };
    let quiet = with("peer", quiet).start().settled().await;
    assert!(!quiet.prompt().await.contains("Words of the peer."));
}

#[tokio::test]
async fn a_profile_may_leave_the_tools_out() {
    let peer = Peer::start(&["one"]).await;
    let library = "
profiles:
  - {id: with, is_default: true, sections: [{id: a, content: A.}]}
  - {id: without, tools_prompt: false, sections: [{id: a, content: A.}]}
";
    let server = connected("peer", &peer)
        .library(library)
        .start()
        .settled()
        .await;
    assert!(server.prompt().await.contains("## Tools"));
    let without = server
        .get("/system-prompt?chat_id=a&profile_id=without")
        .await;
    assert!(!without.text().contains("## Tools"));
}

#[tokio::test]
async fn of_two_tools_with_one_name_the_first_is_handed_on_and_the_other_is_told() {
    let peer = Peer::start(&["_one", "one"]).await;
    let server = connected("a", &peer).config(|config| {
        config
            .connections
            .insert("a_".to_owned(), connection(peer.url()));
    });
    let server = server.start().settled().await;
    assert_eq!(
        server.tool_names().await,
        ["read_me", "a____one", "a___one", "a__one"]
    );
    assert_eq!(
        server.status_of("a_").problems,
        ["the tool `one` is left out: `a___one` is the tool `_one` of `a` already"]
    );
}

#[tokio::test]
async fn a_server_that_went_away_keeps_its_tools_for_a_while_and_comes_back() {
    let peer = Peer::start(&["one"]).await;
    let address = peer.address;
    let server = connected("peer", &peer).start().settled().await;
    peer.stop().await;
    eventually("it is seen to be down", async || {
        server.status_of("peer").state == ConnectionState::Down
    })
    .await;
    assert!(server.prompt().await.contains("`peer__one`"));
    let refused = server.call("peer__one", json!({})).await;
    let text = super::texts(&refused);
    assert!(
        text.starts_with("the MCP server `peer` is not connected now"),
        "{text}"
    );
    assert_eq!(refused.json()["result"]["isError"], true);
    let _peer = Peer::start_at(address, &["one"]).await;
    eventually("it is back", async || {
        server.status_of("peer").state == ConnectionState::Ready
    })
    .await;
    assert_eq!(
        super::texts(&server.call("peer__one", json!({})).await),
        "echo"
    );
}
