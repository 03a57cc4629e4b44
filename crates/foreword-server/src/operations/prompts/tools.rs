//! The tools prompt: of the connected MCP servers, or of a list that a caller gives.

use std::sync::Arc;

use foreword_compose::{ToolServer, ToolsPrompt, ToolsPromptOptions, tools_prompt};
use foreword_store::Snapshot;

use crate::app::App;

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
pub fn get_tools_prompt(app: &App) -> (DescribedTools, Arc<Snapshot>) {
    (
        describe_tools(&connected_servers(app)),
        app.store().snapshot(),
    )
}

/// The tools prompt of a given list.
#[must_use]
pub fn describe_tools(servers: &[ToolServer]) -> DescribedTools {
    let mut counts: Vec<(String, usize)> = servers
        .iter()
        .map(|server| (server.name.clone(), server.tools.len()))
        .collect();
    counts.sort();
    DescribedTools {
        prompt: tools_prompt(servers, ToolsPromptOptions::default()),
        servers: counts,
    }
}

/// The tools prompt that profiles get outside any session.
pub(super) fn connected_tools_prompt(app: &App) -> ToolsPrompt {
    tools_prompt(&connected_servers(app), ToolsPromptOptions::default())
}

/// The servers that Foreword is a client of: none yet.
fn connected_servers(_app: &App) -> Vec<ToolServer> {
    Vec::new()
}
