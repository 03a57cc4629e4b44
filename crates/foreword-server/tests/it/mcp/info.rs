//! `GET /mcp-info`.

use insta::assert_snapshot;

use super::server;

#[tokio::test]
async fn the_endpoint_describes_itself() {
    let response = server().get("/mcp-info").await;
    assert_snapshot!(response.summary(), @r#"
    200
    {
      "name": "foreword",
      "version": "0.1.0",
      "url": "http://127.0.0.1:8081/mcp",
      "protocol_versions": [
        "2024-11-05",
        "2025-03-26",
        "2025-06-18",
        "2025-11-25",
        "2026-07-28"
      ],
      "instructions": "Foreword keeps the instructions for this session. If you do not see them, or have lost track of them, call the tool `read_me`: it returns them in full.",
      "headers": [
        "x-chat-id",
        "x-openwebui-chat-id",
        "x-conversation-id",
        "x-librechat-conversation-id",
        "x-user-email",
        "x-openwebui-user-email",
        "x-user-name",
        "x-openwebui-user-name",
        "x-profile-id"
      ],
      "tools": [
        {
          "name": "read_me",
          "description": "Returns the instructions for this session in full. If you have lost track of them, or were given only a part of them, read them again with this tool."
        }
      ]
    }
    "#);
}
