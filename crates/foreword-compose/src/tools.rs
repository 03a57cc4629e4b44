//! The tools prompt: what the connected MCP servers offer, as Markdown.

use serde_json::Value;

/// The tools of one connected server.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolServer {
    /// The name of the connection.
    pub name: String,
    /// The server's own words about itself.
    pub instructions: Option<String>,
    /// Its tools, in any order.
    pub tools: Vec<Tool>,
}

/// A tool as its server describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// The name under which it can be called.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// The JSON schema of its arguments.
    pub input_schema: Option<Value>,
}

/// What a tools prompt shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolsPromptOptions {
    /// At most this many tools, counted after sorting.
    pub max_tools: Option<usize>,
    /// Whether parameter lists are shown.
    pub include_schemas: bool,
    /// Whether the servers' own instructions are quoted.
    pub include_instructions: bool,
}

impl Default for ToolsPromptOptions {
    fn default() -> Self {
        Self {
            max_tools: None,
            include_schemas: true,
            include_instructions: true,
        }
    }
}

/// The text and what was counted on the way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolsPrompt {
    /// Markdown; empty without tools.
    pub text: String,
    /// How many tools there are, before any cut.
    pub total: usize,
    /// How many tools the text shows.
    pub shown: usize,
}

/// Makes the tools prompt. The same tools in any order give the same bytes.
#[must_use]
pub fn tools_prompt(_servers: &[ToolServer], _options: ToolsPromptOptions) -> ToolsPrompt {
    ToolsPrompt::default()
}
