//! `foreword profiles`

use foreword_compose::{Library, Profile};
use foreword_store::{Edit, edit};
use serde_json::{Value, json};

use super::{
    not_found, print, print_json,
    sections::{place_json, places},
};
use crate::{args::ProfilesCommand, config::Loaded, library::Kept, terminal::columns};

pub(crate) fn run(loaded: &Loaded, command: ProfilesCommand) -> anyhow::Result<()> {
    let reads = matches!(
        command,
        ProfilesCommand::List { .. } | ProfilesCommand::Show { .. }
    );
    let kept = Kept::open_for(&loaded.config, reads)?;
    let snapshot = kept.snapshot();
    let library = &snapshot.library;
    match command {
        ProfilesCommand::List { output } if output.json => {
            let profiles: Vec<Value> = library
                .draft()
                .profiles
                .iter()
                .map(|profile| summary_json(library, profile))
                .collect();
            print_json(&json!({ "profiles": profiles }))
        }
        ProfilesCommand::List { .. } => print(&list(library)),
        ProfilesCommand::Show { id, output } => {
            let profile = find(library, &id)?;
            if output.json {
                print_json(&json!({ "profile": profile_json(library, profile) }))
            } else {
                print(&show(library, profile))
            }
        }
        ProfilesCommand::Set {
            id,
            name,
            description,
            tools_prompt,
        } => {
            let patch = edit::ProfilePatch {
                name,
                description: description.map(|text| (!text.is_empty()).then_some(text)),
                tools_prompt,
                ..edit::ProfilePatch::default()
            };
            print(&kept.edit(set(&id, patch))?)
        }
        ProfilesCommand::Default { id } => print(&kept.edit(edit::set_default_profile(&id))?),
        ProfilesCommand::Order { id, sections } => {
            print(&kept.edit(edit::order_places(&id, sections))?)
        }
        ProfilesCommand::Delete { id } => print(&kept.edit(edit::delete_profile(&id))?),
    }
}

/// The profile asked for.
pub(super) fn find<'a>(library: &'a Library, id: &str) -> anyhow::Result<&'a Profile> {
    library.profile(id).ok_or_else(|| {
        let known = library.draft().profiles.iter();
        not_found("profile", id, known.map(|profile| profile.id.as_str()))
    })
}

/// The profile asked for, else the library's default.
pub(super) fn find_or_default<'a>(
    library: &'a Library,
    id: Option<&str>,
) -> anyhow::Result<&'a Profile> {
    match id {
        Some(id) => find(library, id),
        None => library
            .default_profile()
            .ok_or_else(|| anyhow::anyhow!("the library has no profiles")),
    }
}

/// Changes a profile, which is made first if it does not exist.
fn set(id: &str, patch: edit::ProfilePatch) -> Edit {
    let create = edit::create_profile(
        id,
        edit::ProfileInput {
            name: patch.name.clone(),
            description: patch.description.clone().flatten(),
            is_default: None,
            tools_prompt: patch.tools_prompt.unwrap_or(true),
            sections: Vec::new(),
        },
    );
    let change = edit::patch_profile(id, patch);
    let id = id.to_owned();
    Edit::new(
        format!("set profile `{id}`"),
        move |library| match library.profile(&id) {
            Some(_) => change.apply(library),
            None => create.apply(library),
        },
    )
}

fn list(library: &Library) -> String {
    let default = library.default_profile();
    columns(library.draft().profiles.iter().map(|profile| {
        let sections = library.places(profile).count();
        let enabled = library
            .places(profile)
            .filter(|place| place.enabled)
            .count();
        let is_default = default.is_some_and(|default| default.id == profile.id);
        [
            if is_default { "*" } else { "" }.to_owned(),
            profile.id.clone(),
            profile.name.clone(),
            format!("{enabled} of {sections} sections"),
            profile.description.clone().unwrap_or_default(),
        ]
    }))
}

fn show(library: &Library, profile: &Profile) -> String {
    let mut lines = vec![format!("{} ({})", profile.name, profile.id)];
    lines.extend(profile.description.clone());
    if !profile.tools_prompt {
        lines.push("goes without the tools prompt".to_owned());
    }
    lines.push(String::new());
    lines.push(places(library, profile));
    lines.join("\n")
}

fn summary_json(library: &Library, profile: &Profile) -> Value {
    let is_default = library
        .default_profile()
        .is_some_and(|default| default.id == profile.id);
    json!({
        "id": profile.id,
        "name": profile.name,
        "description": profile.description,
        "is_default": is_default,
        "sections_count": library.places(profile).count(),
        "enabled_sections": library.places(profile).filter(|place| place.enabled).count(),
    })
}

fn profile_json(library: &Library, profile: &Profile) -> Value {
    let mut value = summary_json(library, profile);
    value["tools_prompt"] = profile.tools_prompt.into();
    value["sections"] = library
        .places(profile)
        .map(|place| place_json(&place))
        .collect();
    value
}
