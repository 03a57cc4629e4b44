//! Reads a library with another YAML library, which shares no code with ours.

use foreword_compose::{
    GlobalPrompt, LibraryDraft, Profile, Section, SharedSection, WorkspaceGuide,
    library::{Place, PlaceContent},
};
use serde_yaml_ng::{Mapping, Value};

/// The library that `text` holds, for texts without mistakes.
pub(crate) fn read(text: &str) -> LibraryDraft {
    let mut value: Value = serde_yaml_ng::from_str(text.trim_start_matches('\u{feff}'))
        .unwrap_or_else(|error| panic!("{error} in\n{text}"));
    value.apply_merge().expect("merge keys name mappings");
    let root = value.as_mapping().cloned().unwrap_or_default();
    LibraryDraft {
        global_prompt: some(&root, "global_prompt").map(|value| match value.as_str() {
            Some(content) => GlobalPrompt {
                content: content.to_owned(),
                enabled: true,
            },
            None => GlobalPrompt {
                content: string(map(value), "content").unwrap(),
                enabled: flag(map(value), "enabled", true),
            },
        }),
        variables: some(&root, "variables")
            .map(|variables| {
                map(variables)
                    .iter()
                    .map(|(name, text)| {
                        (
                            name.as_str().unwrap().to_owned(),
                            text.as_str().unwrap().to_owned(),
                        )
                    })
                    .collect()
            })
            .unwrap_or_default(),
        sections: list(&root, "sections", |section| SharedSection {
            description: string(section, "description"),
            section: self::section(section),
        }),
        profiles: list(&root, "profiles", |profile| Profile {
            id: string(profile, "id").unwrap(),
            name: string(profile, "name").unwrap_or_else(|| string(profile, "id").unwrap()),
            description: string(profile, "description"),
            is_default: flag(profile, "is_default", false),
            tools_prompt: flag(profile, "tools_prompt", true),
            places: list(profile, "sections", place),
            section_ids: some(profile, "section_ids")
                .and_then(Value::as_sequence)
                .map(|ids| {
                    ids.iter()
                        .map(|id| id.as_str().unwrap().to_owned())
                        .collect()
                })
                .unwrap_or_default(),
        }),
        workspace_guide: some(&root, "workspace_guide").map(|guide| WorkspaceGuide {
            content: string(map(guide), "content").unwrap(),
            enabled: flag(map(guide), "enabled", true),
        }),
    }
}

fn section(section: &Mapping) -> Section {
    let id = string(section, "id").unwrap();
    Section {
        name: string(section, "name").unwrap_or_else(|| id.clone()),
        section_type: string(section, "type")
            .map(|word| word.parse().unwrap())
            .unwrap_or_default(),
        content: string(section, "content").unwrap(),
        id,
    }
}

fn place(place: &Mapping) -> Place {
    Place {
        content: match string(place, "use") {
            Some(id) => PlaceContent::Shared(id),
            None => PlaceContent::Inline(section(place)),
        },
        enabled: flag(place, "enabled", true),
        order: number(place, "order"),
        priority: number(place, "priority"),
    }
}

fn some<'v>(mapping: &'v Mapping, key: &str) -> Option<&'v Value> {
    mapping.get(key).filter(|value| !value.is_null())
}

fn map(value: &Value) -> &Mapping {
    value.as_mapping().unwrap()
}

fn list<T>(mapping: &Mapping, key: &str, item: impl Fn(&Mapping) -> T) -> Vec<T> {
    some(mapping, key)
        .map(|items| {
            items
                .as_sequence()
                .unwrap()
                .iter()
                .map(|value| item(map(value)))
                .collect()
        })
        .unwrap_or_default()
}

fn string(mapping: &Mapping, key: &str) -> Option<String> {
    some(mapping, key).map(|value| value.as_str().unwrap().to_owned())
}

fn flag(mapping: &Mapping, key: &str, default: bool) -> bool {
    some(mapping, key).map_or(default, |value| value.as_bool().unwrap())
}

fn number(mapping: &Mapping, key: &str) -> i64 {
    some(mapping, key).map_or(0, |value| value.as_i64().unwrap())
}
