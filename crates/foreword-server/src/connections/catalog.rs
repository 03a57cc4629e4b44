//! What the connected servers' tools come to: the names that they are handed on under, and the tools prompt.
//!
//! Made when something changes, never for a request. The same servers in any order give the same catalog. Deliberately
//! absent: how the tools were had, and who may call them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use foreword_compose::{ToolServer, ToolsPrompt, ToolsPromptOptions, tools_prompt};
use rmcp::model::Tool;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::config::ToolsPromptConfig;

/// The longest name of a tool that is handed on, in bytes: what models' providers allow.
const MAX_HANDED_ON: usize = 64;

/// What stands between the names of a server and of its tool.
pub(super) const SEPARATOR: &str = "__";

/// All tools of all connected servers.
#[derive(Debug, Default)]
pub struct Catalog {
    /// Changes with the catalog, and only then.
    pub(crate) generation: u64,
    /// The tools prompt that sessions get.
    pub(crate) prompt: ToolsPrompt,
    /// The tools that are handed on, by name.
    pub(crate) tools: Vec<Tool>,
    routes: HashMap<String, Route>,
}

/// Where a tool that is handed on comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) server: String,
    pub(crate) tool: String,
}

/// The tools of one server, as it lists them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Offered {
    pub(super) instructions: Option<String>,
    pub(super) tools: Vec<Tool>,
}

impl Offered {
    /// The same with these tools alone, if any are named.
    pub(super) fn only(&self, wanted: Option<&[String]>) -> Self {
        let mut only = self.clone();
        if let Some(wanted) = wanted {
            only.tools
                .retain(|tool| wanted.iter().any(|name| tool.name == *name));
        }
        only
    }
}

/// A server that has something to offer, and what is done with it.
pub(super) struct Server {
    pub(super) name: String,
    pub(super) offered: Arc<Offered>,
    pub(super) expose: bool,
    pub(super) instructions: bool,
}

impl Catalog {
    /// Makes the catalog of `servers`, with the clashes of names by server.
    pub(super) fn new(
        servers: &[Server],
        config: &ToolsPromptConfig,
    ) -> (Self, BTreeMap<String, Vec<String>>) {
        let mut servers: Vec<&Server> = servers.iter().collect();
        servers.sort_by(|left, right| left.name.cmp(&right.name));
        let mut catalog = Self::default();
        let mut clashes: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut described = Vec::new();
        for server in servers {
            if !server.expose && !config.include_unexposed {
                continue;
            }
            let mut tools: Vec<&Tool> = server.offered.tools.iter().collect();
            tools.sort_by(|left, right| left.name.cmp(&right.name));
            let mut listed = Vec::new();
            for tool in tools {
                let name = if server.expose {
                    match catalog.hand_on(&server.name, tool) {
                        Ok(name) => name,
                        Err(clash) => {
                            clashes.entry(server.name.clone()).or_default().push(clash);
                            continue;
                        }
                    }
                } else {
                    tool.name.to_string()
                };
                listed.push(describe(name, tool));
            }
            if !listed.is_empty() {
                described.push(ToolServer {
                    name: server.name.clone(),
                    instructions: server
                        .offered
                        .instructions
                        .clone()
                        .filter(|_| server.instructions),
                    tools: listed,
                });
            }
        }
        catalog
            .tools
            .sort_by(|left, right| left.name.cmp(&right.name));
        catalog.prompt = tools_prompt(&described, options(config));
        if !config.enabled {
            catalog.prompt.text.clear();
        }
        (catalog, clashes)
    }

    /// Where the tool comes from that is handed on as `name`.
    pub(crate) fn route(&self, name: &str) -> Option<&Route> {
        self.routes.get(name)
    }

    /// The tool that is handed on as `name`.
    pub(crate) fn tool(&self, name: &str) -> Option<&Tool> {
        let found = self.tools.binary_search_by(|tool| (*tool.name).cmp(name));
        found.ok().map(|at| &self.tools[at])
    }

    /// Whether both say the same.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        self.prompt == other.prompt && self.tools == other.tools && self.routes == other.routes
    }

    /// Takes a tool in under the name that clients call it by; a name that is taken already is told.
    fn hand_on(&mut self, server: &str, tool: &Tool) -> Result<String, String> {
        let name = handed_on(server, &tool.name);
        if let Some(taken) = self.routes.get(&name) {
            return Err(format!(
                "the tool `{}` is left out: `{name}` is the tool `{}` of `{}` already",
                tool.name, taken.tool, taken.server
            ));
        }
        let route = Route {
            server: server.to_owned(),
            tool: tool.name.to_string(),
        };
        self.routes.insert(name.clone(), route);
        let mut tool = tool.clone();
        tool.name = name.clone().into();
        self.tools.push(tool);
        Ok(name)
    }
}

/// How prompts of tools are made here.
pub(crate) fn options(config: &ToolsPromptConfig) -> ToolsPromptOptions {
    ToolsPromptOptions {
        max_tools: usize::try_from(config.max_tools)
            .ok()
            .filter(|most| *most > 0),
        include_schemas: config.include_schemas,
        include_instructions: true,
    }
}

/// The name that clients call the tool by. What is too long, or has characters that providers refuse, is told apart by a hash.
fn handed_on(server: &str, tool: &str) -> String {
    let safe = |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
    let whole = format!("{server}{SEPARATOR}{tool}");
    if whole.len() <= MAX_HANDED_ON && whole.chars().all(safe) {
        return whole;
    }
    let hash = Sha256::digest(&whole);
    let hash = hex::encode(&hash[..4]);
    let shown = whole
        .chars()
        .map(|character| if safe(character) { character } else { '_' });
    let shown: String = shown.take(MAX_HANDED_ON - hash.len() - 1).collect();
    format!("{shown}_{hash}")
}

fn describe(name: String, tool: &Tool) -> foreword_compose::Tool {
    foreword_compose::Tool {
        name,
        description: tool.description.as_deref().map(str::to_owned),
        input_schema: Some(Value::Object((*tool.input_schema).clone())),
    }
}

/// A catalog that can be put in the place of another.
pub(super) fn numbered(mut catalog: Catalog, generation: u64) -> Arc<Catalog> {
    catalog.generation = generation;
    Arc::new(catalog)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_providers_would_refuse_is_cut_and_told_apart() {
        assert_eq!(handed_on("files", "read_file"), "files__read_file");
        let long = handed_on("files", &"x".repeat(80));
        assert_eq!(long.len(), MAX_HANDED_ON);
        assert_ne!(long, handed_on("files", &"x".repeat(81)));
        let exact = "x".repeat(MAX_HANDED_ON - "files__".len());
        assert_eq!(handed_on("files", &exact), format!("files__{exact}"));
        for strange in ["a b", "a.b", "a/b", "ä", "a\nb", "\u{202E}a"] {
            let name = handed_on("s", strange);
            assert!(name.len() <= MAX_HANDED_ON && name.is_ascii(), "{name}");
            assert!(!name.contains(char::is_whitespace), "{name}");
        }
        assert_ne!(handed_on("s", "a.b"), handed_on("s", "a/b"));
    }
}
