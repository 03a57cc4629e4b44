//! Decides what the tools prompt says: which tools there are, on which server, and how each is called.
//!
//! Markdown, the same bytes for the same tools in any order. The words of the servers are quoted, indented below their
//! item and bounded, so they cannot pass for ours; what is left out is counted. Deliberately absent: where the tools
//! come from, and which of them a session may call.

mod schema;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::foreign::{cleaned, code, one_line};

/// The longest description that is shown whole, in bytes.
pub const MAX_DESCRIPTION: usize = 2 * 1024;

/// The longest instructions of a server that are shown whole, in bytes.
pub const MAX_INSTRUCTIONS: usize = 4 * 1024;

/// The longest tools prompt, in bytes; tools that do not fit are counted only.
pub const MAX_TOOLS_PROMPT: usize = 64 * 1024;

/// Makes the tools prompt. The same tools in any order give the same bytes.
#[must_use]
pub fn tools_prompt(servers: &[ToolServer], options: ToolsPromptOptions) -> ToolsPrompt {
    let total = servers.iter().map(|server| server.tools.len()).sum();
    if total == 0 {
        return ToolsPrompt::default();
    }
    let wanted = options.max_tools.unwrap_or(total);
    let room = MAX_TOOLS_PROMPT - introduction(total, total).len() - COUNT_ROOM;
    let (body, shown) = list(servers, options, wanted, room);
    ToolsPrompt {
        text: introduction(shown, total) + &body,
        total,
        shown,
    }
}

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

/// Room for the sentence that counts what is shown.
const COUNT_ROOM: usize = 80;

fn introduction(shown: usize, total: usize) -> String {
    let count = if shown < total {
        format!(" {shown} of {total} tools are shown.")
    } else {
        String::new()
    };
    format!("## Tools\n\nYou can call the following tools, each by the name in front of it.{count}")
}

/// The first `wanted` tools in order, as far as they have `room`, and how many these are.
///
/// Where not all have room, each server gets the same, and what one does not need goes to the others: long words of one server take
/// nothing from those that come after it.
fn list(
    servers: &[ToolServer],
    options: ToolsPromptOptions,
    wanted: usize,
    room: usize,
) -> (String, usize) {
    let mut left = wanted;
    let lists: Vec<ServerList> = grouped(servers)
        .into_iter()
        .map(|(name, group)| {
            let list = ServerList::new(name, &group, options, left, room);
            left = left.saturating_sub(group.tools.len());
            list
        })
        .collect();
    let needs: Vec<usize> = lists.iter().map(ServerList::bytes).collect();
    let share = fair_share(&needs, room);
    let mut body = String::new();
    let mut shown = 0;
    for list in lists {
        // The heading appears with the server's first tool, or not at all.
        let mut heading = list.heading;
        let mut room = share;
        for entry in list.entries {
            let bytes = heading.len() + entry.len();
            if bytes > room {
                break;
            }
            room -= bytes;
            body.push_str(&std::mem::take(&mut heading));
            body.push_str(&entry);
            shown += 1;
        }
    }
    (body, shown)
}

/// What there is to say of a server.
struct ServerList {
    heading: String,
    /// Of its tools in order, no more than could have room.
    entries: Vec<String>,
}

impl ServerList {
    fn new(
        name: &str,
        group: &Group<'_>,
        options: ToolsPromptOptions,
        wanted: usize,
        room: usize,
    ) -> Self {
        let mut bytes = 0;
        let entries = group
            .tools
            .iter()
            .take(wanted)
            .map(|tool| tool_entry(tool, options));
        Self {
            heading: server_heading(name, group, options),
            entries: entries
                .take_while(|entry| {
                    let fits = bytes <= room;
                    bytes += entry.len();
                    fits
                })
                .collect(),
        }
    }

    fn bytes(&self) -> usize {
        if self.entries.is_empty() {
            return 0;
        }
        self.heading.len() + self.entries.iter().map(String::len).sum::<usize>()
    }
}

/// The most that each may take, so that all together take no more than `room`.
fn fair_share(needs: &[usize], room: usize) -> usize {
    let mut needs = needs.to_vec();
    needs.sort_unstable();
    let (mut room, mut left) = (room, needs.len());
    for need in needs {
        if need > room / left {
            return room / left;
        }
        room -= need;
        left -= 1;
    }
    usize::MAX
}

/// All that is known of the servers of one name.
#[derive(Default)]
struct Group<'a> {
    instructions: BTreeSet<&'a str>,
    tools: Vec<&'a Tool>,
}

fn grouped(servers: &[ToolServer]) -> BTreeMap<&str, Group<'_>> {
    let mut groups: BTreeMap<&str, Group<'_>> = BTreeMap::new();
    for server in servers {
        let group = groups.entry(&server.name).or_default();
        group.instructions.extend(server.instructions.as_deref());
        group.tools.extend(&server.tools);
    }
    for group in groups.values_mut() {
        group.tools.sort_by(|left, right| {
            let by_words = (&left.name, &left.description).cmp(&(&right.name, &right.description));
            let schema = |tool: &Tool| tool.input_schema.as_ref().map(Value::to_string);
            by_words.then_with(|| schema(left).cmp(&schema(right)))
        });
    }
    groups
}

/// The longest name that is shown whole, in characters.
const SHOWN_NAME: usize = 128;

fn server_heading(name: &str, group: &Group<'_>, options: ToolsPromptOptions) -> String {
    let mut heading = match one_line(name, SHOWN_NAME) {
        // Tools of a list that names no server; they sort before all others.
        name if name.is_empty() => "\n".to_owned(),
        name => format!("\n\n### {name}\n"),
    };
    if options.include_instructions {
        for instructions in &group.instructions {
            let instructions = cleaned(instructions, MAX_INSTRUCTIONS);
            if !instructions.is_empty() {
                heading.push_str("\nThe server describes itself:\n\n");
                push_lines(&mut heading, "> ", &instructions);
            }
        }
    }
    heading
}

/// How much of a tool's parameters is shown, in bytes, so that one tool cannot take the room of all others.
const MAX_PARAMETERS: usize = 16 * 1024;

fn tool_entry(tool: &Tool, options: ToolsPromptOptions) -> String {
    let mut entry = format!("\n- {}", code(&tool.name, SHOWN_NAME));
    push_description(&mut entry, "  ", tool.description.as_deref());
    if let Some(schema) = tool
        .input_schema
        .as_ref()
        .filter(|_| options.include_schemas)
    {
        schema::push_parameters(&mut entry, schema, MAX_PARAMETERS);
    }
    entry
}

/// Goes on after an item's first words with its description; further lines are indented to stay in the item.
fn push_description(item: &mut String, indentation: &str, description: Option<&str>) {
    let description = cleaned(description.unwrap_or_default(), MAX_DESCRIPTION);
    let mut lines = description.lines();
    if let Some(first) = lines.next() {
        item.push_str(": ");
        item.push_str(first);
    }
    for line in lines {
        item.push('\n');
        if !line.trim().is_empty() {
            item.push_str(indentation);
            item.push_str(line);
        }
    }
}

/// Adds each line of `lines` behind `prefix`.
fn push_lines(text: &mut String, prefix: &str, lines: &str) {
    for line in lines.lines() {
        text.push_str(format!("{prefix}{line}").trim_end());
        text.push('\n');
    }
}
