//! What a library has once: the global prompt, the workspace guide, the variables.

use foreword_compose::{GlobalPrompt, Library, WorkspaceGuide};
use foreword_store::{Snapshot, StoreError, edit};
use indexmap::IndexMap;

use super::{
    Found, Proposal, Scope, submit,
    tags::{Precondition, global_prompt_tag, variables_tag, workspace_guide_tag},
};
use crate::app::App;

/// A new text with a switch; what is absent stays.
#[derive(Debug, Clone, Default)]
pub struct TextChange {
    /// The text.
    pub content: Option<String>,
    /// Whether it is used.
    pub enabled: Option<bool>,
}

/// The global prompt; an empty enabled one where the library has none.
#[must_use]
pub fn get_global_prompt(app: &App) -> Found<GlobalPrompt> {
    found_global_prompt(&app.store().snapshot())
}

/// Changes the global prompt.
pub async fn update_global_prompt(
    app: &App,
    precondition: Precondition,
    proposal: Proposal<TextChange>,
) -> Result<Found<GlobalPrompt>, StoreError> {
    let TextChange { content, enabled } = proposal.value;
    let edit = edit::set_global_prompt(content, enabled);
    let tag = |library: &Library| Ok(global_prompt_tag(&global_prompt(library)));
    let snapshot = submit(app, edit, Scope::Text, proposal.document, precondition, tag).await?;
    Ok(found_global_prompt(&snapshot))
}

/// The workspace guide; the one that Foreword ships where the library has none.
#[must_use]
pub fn get_workspace_guide(app: &App) -> Found<WorkspaceGuide> {
    found_workspace_guide(app, &app.store().snapshot())
}

/// Replaces the workspace guide.
pub async fn replace_workspace_guide(
    app: &App,
    precondition: Precondition,
    proposal: Proposal<TextChange>,
) -> Result<Found<WorkspaceGuide>, StoreError> {
    let TextChange { content, enabled } = proposal.value;
    let shipped = shipped_guide(app);
    let edit = edit::set_workspace_guide(content, enabled, shipped.clone());
    let tag = move |library: &Library| {
        let written = library.draft().workspace_guide.as_ref();
        Ok(workspace_guide_tag(written.unwrap_or(&shipped)))
    };
    let snapshot = submit(app, edit, Scope::Text, proposal.document, precondition, tag).await?;
    Ok(found_workspace_guide(app, &snapshot))
}

/// The names that may stand in braces, with their default values.
#[must_use]
pub fn get_variables(app: &App) -> Found<IndexMap<String, String>> {
    found_variables(&app.store().snapshot())
}

/// Replaces all variables.
pub async fn replace_variables(
    app: &App,
    precondition: Precondition,
    proposal: Proposal<IndexMap<String, String>>,
) -> Result<Found<IndexMap<String, String>>, StoreError> {
    let edit = edit::set_variables(proposal.value);
    let tag = |library: &Library| Ok(variables_tag(&library.draft().variables));
    let document = proposal.document;
    let snapshot = submit(app, edit, Scope::Variables, document, precondition, tag).await?;
    Ok(found_variables(&snapshot))
}

fn found_global_prompt(snapshot: &Snapshot) -> Found<GlobalPrompt> {
    let item = global_prompt(&snapshot.library);
    Found {
        tag: global_prompt_tag(&item),
        item,
        library_revision: snapshot.revision.clone(),
    }
}

fn global_prompt(library: &Library) -> GlobalPrompt {
    let none = GlobalPrompt {
        content: String::new(),
        enabled: true,
    };
    library.draft().global_prompt.clone().unwrap_or(none)
}

fn found_workspace_guide(app: &App, snapshot: &Snapshot) -> Found<WorkspaceGuide> {
    let written = snapshot.library.draft().workspace_guide.clone();
    let item = written.unwrap_or_else(|| shipped_guide(app));
    Found {
        tag: workspace_guide_tag(&item),
        item,
        library_revision: snapshot.revision.clone(),
    }
}

/// What a library has that says nothing about a guide.
fn shipped_guide(app: &App) -> WorkspaceGuide {
    WorkspaceGuide {
        content: app.surroundings().guide().to_owned(),
        enabled: true,
    }
}

fn found_variables(snapshot: &Snapshot) -> Found<IndexMap<String, String>> {
    let variables = &snapshot.library.draft().variables;
    Found {
        item: variables.clone(),
        tag: variables_tag(variables),
        library_revision: snapshot.revision.clone(),
    }
}
