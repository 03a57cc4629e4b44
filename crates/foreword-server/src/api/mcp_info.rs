//! What the MCP endpoint is, for people and programs that have not connected yet.

use std::borrow::Cow;

use axum::{Json, extract::State};
use http::HeaderName;
use rmcp::model::ProtocolVersion;
use serde::Serialize;

use crate::{api::openapi::KeyProblems, app::App};

/// A description of the MCP endpoint.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct McpInfo {
    /// The name of the server.
    name: &'static str,
    /// Its version.
    version: &'static str,
    /// Where it is.
    url: String,
    /// The revisions of the protocol that it speaks.
    protocol_versions: Vec<&'static str>,
    /// The words that hold for every session.
    instructions: &'static str,
    /// The headers that say whose session a request is.
    headers: Vec<String>,
    /// What can be called.
    tools: Vec<ToolInfo>,
}

/// A tool.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct ToolInfo {
    /// The name under which it is called.
    name: Cow<'static, str>,
    /// What it does.
    description: Cow<'static, str>,
}

/// Describes the MCP endpoint.
#[utoipa::path(
    get, path = "/mcp-info", tag = "delivery",
    responses((status = 200, description = "The MCP endpoint", body = McpInfo), KeyProblems),
)]
pub(crate) async fn get_mcp_info(State(app): State<App>) -> Json<McpInfo> {
    let versions = ProtocolVersion::KNOWN_VERSIONS.iter();
    Json(McpInfo {
        name: "foreword",
        version: env!("CARGO_PKG_VERSION"),
        url: format!("{}/mcp", app.links().public_base_url()),
        protocol_versions: versions.map(ProtocolVersion::as_str).collect(),
        instructions: app.surroundings().static_instructions(),
        headers: app
            .sessions()
            .headers()
            .map(HeaderName::to_string)
            .collect(),
        tools: app
            .tools()
            .iter()
            .chain(&app.connections().catalog().tools)
            .map(|tool| ToolInfo {
                name: tool.name.clone(),
                description: tool.description.clone().unwrap_or_default(),
            })
            .collect(),
    })
}
