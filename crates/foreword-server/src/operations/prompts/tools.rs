//! The tools prompt: of the connected MCP servers, or of a list that a caller gives.

use std::sync::Arc;

use foreword_compose::{ToolServer, ToolsPrompt, tools_prompt};
use foreword_store::Snapshot;

use crate::{
    app::App,
    connections::{ConnectionStatus, tools_prompt_options},
};

/// The tools prompt of the connected servers, and how these are.
#[derive(Debug, Clone)]
pub struct ConnectedTools {
    /// The text and what was counted.
    pub prompt: ToolsPrompt,
    /// The servers by name, those that are not connected too.
    pub servers: Vec<ConnectionStatus>,
    /// What is wrong with the file that names them.
    pub errors: Vec<String>,
}

/// A tools prompt and the servers that it is made of.
#[derive(Debug, Clone)]
pub struct DescribedTools {
    /// The text and what was counted.
    pub prompt: ToolsPrompt,
    /// The servers, sorted by name, with the number of their tools.
    pub servers: Vec<(String, usize)>,
}

/// The tools prompt of the servers that are connected now.
#[must_use]
pub fn get_tools_prompt(app: &App) -> (ConnectedTools, Arc<Snapshot>) {
    let connections = app.connections();
    let connected = ConnectedTools {
        prompt: connections.catalog().prompt.clone(),
        servers: connections.statuses(),
        errors: connections.errors(),
    };
    (connected, app.store().snapshot())
}

/// The tools prompt of a given list.
#[must_use]
pub fn describe_tools(app: &App, servers: &[ToolServer]) -> DescribedTools {
    let mut counts: Vec<(String, usize)> = servers
        .iter()
        .map(|server| (server.name.clone(), server.tools.len()))
        .collect();
    counts.sort();
    DescribedTools {
        prompt: tools_prompt(
            servers,
            tools_prompt_options(app.connections().tools_prompt()),
        ),
        servers: counts,
    }
}
