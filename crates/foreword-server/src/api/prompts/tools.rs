//! `/api/prompts/mcp-tools`: the tools prompt by itself.

use axum::extract::State;
use foreword_compose::{Fault, Tool, ToolServer};
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::Value;
use utoipa::{
    ToSchema,
    openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type},
};

use super::{answer::Answer, conditional::IfNoneMatch, query::NoQuery};
use crate::{
    api::openapi::{PreviewProblems, ReadProblems},
    app::App,
    connections::ConnectionStatus,
    error::ApiError,
    extract::{
        Json,
        fields::{Fields, note, wrong_type},
    },
    operations::prompts::{
        self,
        tools::{ConnectedTools, DescribedTools},
    },
};

/// The tools prompt of the connected servers, and how these are.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConnectedToolsAnswer {
    /// Markdown; empty without tools.
    mcp_tools_prompt: String,
    /// How many tools there are, before any cut.
    tools_count: usize,
    /// The servers by name, those that are not connected too.
    servers: Vec<ConnectedServer>,
    /// What is wrong with `connections.json` as a whole; what it said before stays in force.
    errors: Vec<String>,
}

/// A connected server, or one that should be.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConnectedServer {
    name: String,
    /// `connecting`, `ready`, `down` (tried again by itself), `disabled`, or `refused` (it cannot be made as it is written).
    state: &'static str,
    /// `stdio` or `http`.
    transport: Option<&'static str>,
    /// Whether its tools are handed on to MCP clients, as `NAME__TOOL`.
    exposed: bool,
    /// The revision of MCP that is spoken.
    protocol_version: Option<String>,
    /// How many of its tools are taken.
    tools: usize,
    /// What went wrong last.
    last_error: Option<String>,
    /// When its tools were listed last, RFC 3339 in UTC.
    last_refresh: Option<String>,
    /// What was left out, and why.
    problems: Vec<String>,
}

/// The tools prompt of a list, and what it is made of.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ToolsPromptAnswer {
    /// Markdown; empty without tools.
    mcp_tools_prompt: String,
    /// How many tools there are, before any cut.
    tools_count: usize,
    /// The servers, sorted by name; tools of a posted list need not have one.
    servers: Vec<ToolsServer>,
}

/// A server and how many tools it has.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ToolsServer {
    name: String,
    tools: usize,
}

/// Shows the tools prompt of the MCP servers that are connected now.
#[utoipa::path(
    get, path = "/api/prompts/mcp-tools", tag = "prompts",
    params(IfNoneMatch),
    responses((status = 200, description = "The tools prompt", body = ConnectedToolsAnswer), ReadProblems),
)]
pub(crate) async fn get_tools_prompt(
    State(app): State<App>,
    _: NoQuery,
    if_none_match: IfNoneMatch,
) -> Answer {
    let (tools, snapshot) = prompts::tools::get_tools_prompt(&app);
    let body = ConnectedToolsAnswer::from(tools);
    Answer::computed(&body, snapshot.revision.clone()).unless(&if_none_match)
}

/// Makes the tools prompt of a given list.
#[utoipa::path(
    post, path = "/api/prompts/mcp-tools", tag = "prompts",
    request_body(content = ref("#/components/schemas/ToolList")),
    responses((status = 200, description = "The tools prompt", body = ToolsPromptAnswer), PreviewProblems),
)]
pub(crate) async fn make_tools_prompt(
    State(app): State<App>,
    _: NoQuery,
    Json(body): Json<Value>,
) -> Result<Answer, ApiError> {
    let servers = read_body(&body)?;
    let tools = prompts::tools::describe_tools(&app, &servers);
    let revision = app.store().snapshot().revision.clone();
    Ok(Answer::computed(&ToolsPromptAnswer::from(tools), revision))
}

fn read_body(body: &Value) -> Result<Vec<ToolServer>, ApiError> {
    let mut faults = Vec::new();
    let mut fields = Fields::new(body, String::new(), &mut faults);
    fields.require("tools", "a list of tools, which may be empty");
    let servers = fields.read("tools", |value, pointer, faults| {
        read_tools(value, pointer, faults)
    });
    fields.finish();
    if faults.is_empty() {
        Ok(servers)
    } else {
        let faults = faults.into_iter().map(Into::into);
        Err(ApiError::invalid(faults.collect()))
    }
}

/// What MCP says of a tool that the prompt does not show.
const NOT_SHOWN: &[&str] = &[
    "_meta",
    "annotations",
    "execution",
    "icons",
    "outputSchema",
    "output_schema",
    "title",
];

/// Reads a list of tools, grouped by the servers that they name.
pub(super) fn read_tools(value: &Value, pointer: &str, faults: &mut Vec<Fault>) -> Vec<ToolServer> {
    let Some(entries) = value.as_array() else {
        note(faults, || wrong_type(pointer, "a list of tools", value));
        return Vec::new();
    };
    let mut servers: IndexMap<String, Vec<Tool>> = IndexMap::new();
    for (at, entry) in entries.iter().enumerate() {
        let mut fields = Fields::new(entry, format!("{pointer}/{at}"), faults);
        fields.ignore(NOT_SHOWN);
        let server = fields.either("server", "server_name", |fields, name| {
            fields.nullable_text(name)
        });
        let tool = Tool {
            name: fields.required_text("name"),
            description: fields.nullable_text("description"),
            input_schema: fields.either("inputSchema", "input_schema", |fields, name| {
                fields.value(name).cloned()
            }),
        };
        fields.finish();
        servers
            .entry(server.unwrap_or_default())
            .or_default()
            .push(tool);
    }
    let servers = servers.into_iter().map(|(name, tools)| ToolServer {
        name,
        instructions: None,
        tools,
    });
    servers.collect()
}

/// A list of tools as a schema.
pub(crate) fn tool_list() -> Schema {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let object = || ObjectBuilder::new().schema_type(Type::Object);
    let tool = object()
        .property("name", text())
        .property("description", text())
        .property(
            "inputSchema",
            object().description(Some(
                "The JSON schema of its arguments; also `input_schema`",
            )),
        )
        .property(
            "server",
            text().description(Some("The server that has it; also `server_name`")),
        )
        .required("name");
    ArrayBuilder::new().items(tool).build().into()
}

impl From<ConnectedTools> for ConnectedToolsAnswer {
    fn from(connected: ConnectedTools) -> Self {
        Self {
            mcp_tools_prompt: connected.prompt.text,
            tools_count: connected.prompt.total,
            servers: connected.servers.into_iter().map(Into::into).collect(),
            errors: connected.errors,
        }
    }
}

impl From<ConnectionStatus> for ConnectedServer {
    fn from(status: ConnectionStatus) -> Self {
        Self {
            name: status.name,
            state: status.state.as_str(),
            transport: status.transport,
            exposed: status.exposed,
            protocol_version: status.protocol_version,
            tools: status.tools,
            last_error: status.last_error,
            last_refresh: status.last_refresh.map(|time| time.to_string()),
            problems: status.problems,
        }
    }
}

impl From<DescribedTools> for ToolsPromptAnswer {
    fn from(described: DescribedTools) -> Self {
        let DescribedTools { prompt, servers } = described;
        let servers = servers
            .into_iter()
            .filter(|(name, _)| !name.is_empty())
            .map(|(name, tools)| ToolsServer { name, tools });
        Self {
            mcp_tools_prompt: prompt.text,
            tools_count: prompt.total,
            servers: servers.collect(),
        }
    }
}
