//! Edits of what a library has once: the global prompt, the workspace guide, the variables.

use foreword_compose::{GlobalPrompt, WorkspaceGuide};
use indexmap::IndexMap;

use super::Edit;

/// Changes the global prompt; what is absent stays.
///
/// A library without one shows an empty enabled prompt; given that, it stays without.
#[must_use]
pub fn set_global_prompt(content: Option<String>, enabled: Option<bool>) -> Edit {
    let what = said("the global prompt", content.as_ref(), enabled);
    Edit::in_place(what, move |_, draft| {
        let shown = GlobalPrompt {
            content: String::new(),
            enabled: true,
        };
        let current = draft.global_prompt.as_ref().unwrap_or(&shown);
        let new = GlobalPrompt {
            content: content.clone().unwrap_or_else(|| current.content.clone()),
            enabled: enabled.unwrap_or(current.enabled),
        };
        if new != *current {
            draft.global_prompt = Some(new);
        }
        Ok(())
    })
}

/// Changes the workspace guide; what is absent stays.
///
/// `shipped` is what a library without one shows; given that, it stays without, and so follows later releases.
#[must_use]
pub fn set_workspace_guide(
    content: Option<String>,
    enabled: Option<bool>,
    shipped: WorkspaceGuide,
) -> Edit {
    let what = said("the workspace guide", content.as_ref(), enabled);
    Edit::in_place(what, move |_, draft| {
        let current = draft.workspace_guide.as_ref().unwrap_or(&shipped);
        let new = WorkspaceGuide {
            content: content.clone().unwrap_or_else(|| current.content.clone()),
            enabled: enabled.unwrap_or(current.enabled),
        };
        if new != *current {
            draft.workspace_guide = Some(new);
        }
        Ok(())
    })
}

/// What is done to `text`.
fn said(text: &str, content: Option<&String>, enabled: Option<bool>) -> String {
    let done = match (content, enabled) {
        (None, Some(true)) => "switched on",
        (None, Some(false)) => "switched off",
        _ => "set",
    };
    format!("{done} {text}")
}

/// Replaces all variables and their default values.
#[must_use]
pub fn set_variables(variables: IndexMap<String, String>) -> Edit {
    Edit::in_place("set the variables".to_owned(), move |_, draft| {
        draft.variables.clone_from(&variables);
        Ok(())
    })
}
