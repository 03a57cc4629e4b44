//! rmcp's own client over real sockets: each chat gets its own prompt through the client's API for instructions.

use std::collections::HashMap;

use http::{HeaderName, HeaderValue};
use rmcp::{
    RoleClient,
    model::{CallToolRequestParams, ClientConfig, ProtocolVersion},
    service::{ClientLifecycleMode, RunningService, serve_client_with_lifecycle},
    transport::{
        StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};

use super::server;
use crate::support::Listening;

async fn connect(
    listening: &Listening,
    chat: &'static str,
    lifecycle: ClientLifecycleMode,
) -> RunningService<RoleClient, ClientConfig> {
    let headers = HashMap::from([(
        HeaderName::from_static("x-chat-id"),
        HeaderValue::from_static(chat),
    )]);
    let uri = format!("http://{}/mcp", listening.address);
    let config = StreamableHttpClientTransportConfig::with_uri(uri).custom_headers(headers);
    let transport = StreamableHttpClientTransport::from_config(config);
    serve_client_with_lifecycle(ClientConfig::default(), transport, lifecycle)
        .await
        .unwrap()
}

fn instructions(client: &RunningService<RoleClient, ClientConfig>) -> String {
    client.peer_info().unwrap().instructions.clone().unwrap()
}

#[tokio::test]
async fn a_client_of_either_era_gets_the_prompt_of_its_chat() {
    let server = server();
    let listening = server.listen().await;
    let eras = [
        ClientLifecycleMode::Initialize,
        ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    ];
    for era in eras {
        let ann = connect(&listening, "one", era.clone()).await;
        let bob = connect(&listening, "two", era).await;
        assert!(instructions(&ann).contains("This is one of"));
        assert!(instructions(&bob).contains("This is two of"));

        let tools = ann.list_all_tools().await.unwrap();
        assert_eq!(
            tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(),
            ["read_me"]
        );
        let called = bob
            .call_tool(CallToolRequestParams::new("read_me"))
            .await
            .unwrap();
        let text = called.content[0].as_text().unwrap();
        assert_eq!(text.text, instructions(&bob));

        ann.cancel().await.unwrap();
        bob.cancel().await.unwrap();
    }
    listening.shutdown.cancel();
}
