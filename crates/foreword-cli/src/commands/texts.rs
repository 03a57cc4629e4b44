//! `foreword global`, `foreword guide` and `foreword variables`: what a library has once.

use foreword_store::{Edit, edit};
use serde_json::json;

use super::{not_found, print, print_json, print_text};
use crate::{
    args::{TextCommand, VariablesCommand},
    config::Loaded,
    library::{Kept, shipped_guide},
    terminal::{self, columns},
};

/// `foreword global`
pub(crate) fn global(loaded: &Loaded, command: TextCommand) -> anyhow::Result<()> {
    let reads = matches!(command, TextCommand::Show { .. });
    let kept = Kept::open_for(&loaded.config, reads)?;
    let snapshot = kept.snapshot();
    let prompt = snapshot.library.draft().global_prompt.as_ref();
    let (content, enabled) = prompt.map_or(("", true), |prompt| {
        (prompt.content.as_str(), prompt.enabled)
    });
    text(
        &kept,
        command,
        "global_prompt",
        content,
        enabled,
        edit::set_global_prompt,
    )
}

/// `foreword guide`
pub(crate) fn guide(loaded: &Loaded, command: TextCommand) -> anyhow::Result<()> {
    let reads = matches!(command, TextCommand::Show { .. });
    let kept = Kept::open_for(&loaded.config, reads)?;
    let snapshot = kept.snapshot();
    let shipped = shipped_guide();
    let guide = snapshot
        .library
        .draft()
        .workspace_guide
        .as_ref()
        .unwrap_or(&shipped);
    let (content, enabled) = (guide.content.clone(), guide.enabled);
    let set = |content, enabled| edit::set_workspace_guide(content, enabled, shipped);
    text(&kept, command, "workspace_guide", &content, enabled, set)
}

const SWITCHED_OFF: &str = "it is switched off, so no prompt holds it; `enable` switches it on";

fn text(
    kept: &Kept,
    command: TextCommand,
    key: &str,
    content: &str,
    enabled: bool,
    set: impl FnOnce(Option<String>, Option<bool>) -> Edit,
) -> anyhow::Result<()> {
    let edit = match command {
        TextCommand::Show { output } if output.json => {
            return print_json(&json!({ key: { "content": content, "enabled": enabled } }));
        }
        TextCommand::Show { .. } => {
            if !enabled {
                terminal::note(SWITCHED_OFF);
            }
            return print_text(content);
        }
        TextCommand::Set { content } => {
            let content = content.read(true)?;
            if !enabled {
                terminal::note(SWITCHED_OFF);
            }
            set(content, None)
        }
        TextCommand::Enable => set(None, Some(true)),
        TextCommand::Disable => set(None, Some(false)),
    };
    print(&kept.edit(edit)?)
}

/// `foreword variables`
pub(crate) fn variables(loaded: &Loaded, command: VariablesCommand) -> anyhow::Result<()> {
    let reads = matches!(command, VariablesCommand::List { .. });
    let kept = Kept::open_for(&loaded.config, reads)?;
    let snapshot = kept.snapshot();
    let variables = &snapshot.library.draft().variables;
    match command {
        VariablesCommand::List { output } if output.json => {
            print_json(&json!({ "variables": variables }))
        }
        VariablesCommand::List { .. } => print(&columns(
            variables
                .iter()
                .map(|(name, value)| [name.clone(), value.clone()]),
        )),
        VariablesCommand::Set { name, value } => {
            let edit = Edit::new(format!("set variable `{name}`"), move |library| {
                let mut variables = library.draft().variables.clone();
                variables.insert(name.clone(), value.clone());
                edit::set_variables(variables).apply(library)
            });
            print(&kept.edit(edit)?)
        }
        VariablesCommand::Delete { name } => {
            if !variables.contains_key(&name) {
                return Err(not_found(
                    "variable",
                    &name,
                    variables.keys().map(String::as_str),
                ));
            }
            let edit = Edit::new(format!("deleted variable `{name}`"), move |library| {
                let mut variables = library.draft().variables.clone();
                variables.shift_remove(&name);
                edit::set_variables(variables).apply(library)
            });
            print(&kept.edit(edit)?)
        }
    }
}
