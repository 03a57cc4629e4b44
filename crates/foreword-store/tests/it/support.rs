//! What the tests of all backends need.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use foreword_compose::{Library, SectionType};
use foreword_store::{
    Clock, Edit, Import, Store,
    edit::{PlaceInput, ProfileInput, SectionInput},
};
use indexmap::IndexMap;
use jiff::Timestamp;

/// A clock that goes on by one second each time it is read.
pub(crate) fn clock() -> Clock {
    let seconds = AtomicI64::new(1_780_000_000);
    Arc::new(move || {
        Timestamp::from_second(seconds.fetch_add(1, Ordering::Relaxed)).expect("it is a valid time")
    })
}

/// An edit that adds one variable and leaves the others.
pub(crate) fn add_variable(name: impl Into<String>) -> Edit {
    let name = name.into();
    Edit::new(format!("added variable `{name}`"), move |library| {
        let mut draft = library.draft().clone();
        draft.variables.insert(name.clone(), "value".to_owned());
        Ok(draft)
    })
}

pub(crate) fn import(text: &str) -> Import {
    Import {
        text: text.to_owned(),
        dry_run: false,
        replace_broken: false,
    }
}

/// An inline section if it has content, a shared one if not.
pub(crate) fn place(id: &str, content: Option<&str>) -> PlaceInput {
    PlaceInput {
        id: id.to_owned(),
        name: None,
        section_type: None,
        content: content.map(str::to_owned),
        enabled: true,
        order: None,
        priority: 0,
    }
}

pub(crate) fn profile(sections: Vec<PlaceInput>) -> ProfileInput {
    ProfileInput {
        name: None,
        description: None,
        is_default: None,
        tools_prompt: true,
        sections,
    }
}

pub(crate) fn section(content: &str) -> SectionInput {
    SectionInput {
        name: None,
        section_type: SectionType::Custom,
        content: content.to_owned(),
        description: None,
    }
}

/// The profile as the API shows it, to be sent back.
pub(crate) fn as_shown(library: &Library, id: &str) -> ProfileInput {
    let profile = library.profile(id).expect("the profile exists");
    let is_default = library.default_profile() == Some(profile);
    ProfileInput {
        name: Some(profile.name.clone()),
        description: profile.description.clone(),
        is_default: Some(is_default),
        tools_prompt: profile.tools_prompt,
        sections: library
            .places(profile)
            .map(|place| PlaceInput {
                id: place.section.id.clone(),
                name: Some(place.section.name.clone()),
                section_type: Some(place.section.section_type),
                content: Some(place.section.content.clone()),
                enabled: place.enabled,
                order: Some(place.order),
                priority: place.priority,
            })
            .collect(),
    }
}

/// The ids, orders and switches in force in a profile, one per line; `>` marks the entries of `section_ids`.
pub(crate) fn outline(library: &Library, id: &str) -> String {
    let profile = library.profile(id).expect("the profile exists");
    let lines: Vec<_> = library
        .places(profile)
        .map(|place| {
            let short = profile.section_ids.contains(&place.section.id);
            format!(
                "{}{} {}{}{}",
                if short { "> " } else { "" },
                place.section.id,
                place.order,
                if place.shared { " shared" } else { "" },
                if place.enabled { "" } else { " off" },
            )
        })
        .collect();
    lines.join("\n")
}

/// The names of all variables, in file order.
pub(crate) fn variables(store: &dyn Store) -> Vec<String> {
    let snapshot = store.snapshot();
    snapshot.library.draft().variables.keys().cloned().collect()
}

pub(crate) fn variable_map(names: &[&str]) -> IndexMap<String, String> {
    names
        .iter()
        .map(|name| ((*name).to_owned(), String::new()))
        .collect()
}
