//! The MCP endpoint: both eras on one URL, without sessions of the transport.

#![expect(
    clippy::needless_pass_by_value,
    reason = "`json!` makes values that nobody needs afterwards"
)]

mod clients;
mod forms;
mod handshake;
mod info;
mod protocol;
mod resources;
mod sessions;
mod stdio;
mod tools;

use serde_json::{Value, json};

use crate::support::{TestRequest, TestResponse, TestServer};

/// Two profiles, and a guide that shows whose session it is.
pub(crate) const LIBRARY: &str = "
global_prompt: Be kind.
profiles:
  - id: default
    is_default: true
    sections:
      - {id: who, content: You help.}
  - id: writer
    sections:
      - {id: who, content: You write.}
workspace_guide:
  content: This is {chat_id} of {user_email}. Files are at {file_base_url}.
";

pub(crate) fn server() -> TestServer {
    TestServer::builder().library(LIBRARY).start()
}

/// A request of the revisions up to 2025-11-25.
pub(crate) fn legacy(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

pub(crate) fn initialize() -> Value {
    let client = json!({"name": "test", "version": "1"});
    legacy(
        "initialize",
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}),
    )
}

/// A request of the revision 2026-07-28, which says with each request who asks.
pub(crate) fn modern(method: &str, mut params: Value) -> Value {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (name, value) in params["_meta"].as_object().into_iter().flatten() {
        meta[name] = value.clone();
    }
    params["_meta"] = meta;
    legacy(method, params)
}

pub(crate) fn discover() -> Value {
    modern("server/discover", json!({}))
}

impl TestRequest {
    /// Sends `message` with the headers that its revision asks for.
    pub(crate) fn message(self, message: &Value) -> Self {
        let request = self.json(message.clone());
        let params = &message["params"];
        if params["_meta"]["io.modelcontextprotocol/protocolVersion"].is_null() {
            return request;
        }
        let method = message["method"].as_str().unwrap().to_owned();
        let request = request
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method);
        let read = params["uri"]
            .as_str()
            .filter(|_| message["method"] == "resources/read");
        match params["name"].as_str().or(read) {
            Some(name) => request.header("mcp-name", name.to_owned()),
            None => request,
        }
    }
}

impl TestResponse {
    pub(crate) fn instructions(&self) -> String {
        let instructions = &self.json()["result"]["instructions"];
        instructions
            .as_str()
            .unwrap_or_else(|| panic!("no instructions in {}", self.summary()))
            .to_owned()
    }

    /// Status, code, stable word and message of a JSON-RPC error, and the id it answers.
    pub(crate) fn rpc_error(&self) -> String {
        let json = self.json();
        let (id, error) = (&json["id"], &json["error"]);
        format!(
            "{} id={id} {} {} {}",
            self.status.as_u16(),
            error["code"],
            error["data"]["code"].as_str().unwrap_or("-"),
            error["message"].as_str().unwrap_or_default(),
        )
    }
}
