//! `foreword sections`

use foreword_compose::{
    Library, Profile, ResolvedPlace, Section, SectionType, library::PlaceContent, nearest,
};
use foreword_store::{Edit, EditError, edit};
use serde_json::{Value, json};

use super::{
    not_found, print, print_json, print_text,
    profiles::{find, find_or_default},
};
use crate::{
    args::{InProfile, SectionsCommand},
    config::Loaded,
    library::Kept,
    terminal::{self, columns},
};

pub(crate) fn run(loaded: &Loaded, command: SectionsCommand) -> anyhow::Result<()> {
    let reads = matches!(
        command,
        SectionsCommand::List { .. } | SectionsCommand::Show { .. }
    );
    let kept = Kept::open_for(&loaded.config, reads)?;
    let snapshot = kept.snapshot();
    let library = &snapshot.library;
    match command {
        SectionsCommand::List { profile, output } => {
            let profile = profile.map(|id| find(library, &id)).transpose()?;
            if output.json {
                print_json(&json!({ "sections": list_json(library, profile) }))
            } else {
                print(&match profile {
                    Some(profile) => places(library, profile),
                    None => list(library),
                })
            }
        }
        SectionsCommand::Show {
            id,
            profile,
            output,
        } => {
            let section = find_section(library, &id, profile.as_deref())?;
            if output.json {
                print_json(&json!({ "section": section_json(section) }))
            } else {
                print_text(&section.content)
            }
        }
        SectionsCommand::Set {
            id,
            profile,
            content,
            name,
            section_type,
            description,
            order,
            priority,
        } => {
            let mut fields = Fields {
                content: None,
                name,
                section_type,
                description,
                order,
                priority,
            };
            let places_shared = profile.is_some() && library.section(&id).is_some();
            let needs_content = fields == Fields::default() && !places_shared;
            fields.content = content.read(needs_content)?;
            let near = near_if_new(library, profile.as_deref(), &id);
            print(&kept.edit(match &profile {
                Some(profile) => fields.in_profile(&id, profile),
                None => fields.shared(id.clone()),
            })?)?;
            if let Some(near) = near {
                terminal::note(&format!(
                    "`{id}` is a new section, beside `{near}`; `foreword undo` takes it back"
                ));
            }
            Ok(())
        }
        SectionsCommand::Enable(place) => print(&kept.edit(toggle(library, &place, true)?)?),
        SectionsCommand::Disable(place) => print(&kept.edit(toggle(library, &place, false)?)?),
        SectionsCommand::Delete { id, profile } => print(&kept.edit(match profile {
            Some(profile) => edit::remove_place(&profile, &id),
            None => edit::delete_section(&id),
        })?),
    }
}

/// The section that was probably meant, if there is none of this id yet where it is put.
fn near_if_new<'a>(library: &'a Library, profile: Option<&str>, id: &str) -> Option<&'a str> {
    if library.section(id).is_some() {
        return None;
    }
    let known: Vec<&str> = if let Some(profile) = profile {
        let places = library.places(library.profile(profile)?);
        places.map(|place| place.section.id.as_str()).collect()
    } else {
        let shared = library.draft().sections.iter();
        shared.map(|shared| shared.section.id.as_str()).collect()
    };
    if known.contains(&id) {
        return None;
    }
    nearest(id, known)
}

/// What `set` was given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Fields {
    content: Option<String>,
    name: Option<String>,
    section_type: Option<SectionType>,
    /// An empty one removes it.
    description: Option<String>,
    order: Option<i64>,
    priority: Option<i64>,
}

impl Fields {
    /// Changes a shared section, which is made first if it does not exist.
    fn shared(self, id: String) -> Edit {
        let change = edit::patch_section(
            &id,
            edit::SectionPatch {
                name: self.name.clone(),
                section_type: self.section_type,
                content: self.content.clone(),
                description: self
                    .description
                    .clone()
                    .map(|text| (!text.is_empty()).then_some(text)),
            },
        );
        let create = self.content.map(|content| {
            edit::create_section(
                &id,
                edit::SectionInput {
                    name: self.name,
                    section_type: self.section_type.unwrap_or_default(),
                    content,
                    description: self.description.filter(|text| !text.is_empty()),
                },
            )
        });
        Edit::new(format!("set section `{id}`"), move |library| {
            match (&create, library.section(&id)) {
                (Some(create), None) => create.apply(library),
                _ => change.apply(library), // without a text, a section that does not exist is an error
            }
        })
    }

    /// Changes a section of a profile, which is put there first if it is not in it.
    fn in_profile(self, id: &str, profile: &str) -> Edit {
        let change = edit::patch_place(
            profile,
            id,
            edit::PlacePatch {
                name: self.name.clone(),
                section_type: self.section_type,
                content: self.content.clone(),
                enabled: None,
                order: self.order,
                priority: self.priority,
            },
        );
        let put = edit::put_place(
            profile,
            edit::PlaceInput {
                id: id.to_owned(),
                name: self.name,
                section_type: self.section_type,
                content: self.content,
                enabled: true,
                order: self.order,
                priority: self.priority.unwrap_or_default(),
            },
        );
        let what = format!("set section `{id}` of profile `{profile}`");
        Edit::new(what, move |library| match change.apply(library) {
            Err(EditError::NotFound {
                kind: "section", ..
            }) => put.apply(library),
            result => result,
        })
    }
}

/// Switches a section of a profile, which is the library's default one if none is named.
fn toggle(library: &Library, place: &InProfile, enabled: bool) -> anyhow::Result<Edit> {
    let profile = find_or_default(library, place.profile.as_deref())?;
    Ok(edit::patch_place(
        &profile.id,
        &place.id,
        edit::PlacePatch {
            enabled: Some(enabled),
            ..edit::PlacePatch::default()
        },
    ))
}

/// The section that is shown for an id: of the profile if one is named, else the shared one.
fn find_section<'a>(
    library: &'a Library,
    id: &str,
    profile: Option<&str>,
) -> anyhow::Result<&'a Section> {
    let Some(profile) = profile else {
        let shared = library.draft().sections.iter();
        return library.section(id).map_or_else(
            || {
                Err(not_found(
                    "section",
                    id,
                    shared.map(|shared| shared.section.id.as_str()),
                ))
            },
            |shared| Ok(&shared.section),
        );
    };
    let places: Vec<ResolvedPlace<'a>> = library.places(find(library, profile)?).collect();
    let found = places.iter().find(|place| place.section.id == id);
    found.map(|place| place.section).ok_or_else(|| {
        not_found(
            "section",
            id,
            places.iter().map(|place| place.section.id.as_str()),
        )
    })
}

/// The sections of a profile in the order of its prompts.
pub(super) fn places(library: &Library, profile: &Profile) -> String {
    let mut places: Vec<ResolvedPlace<'_>> = library.places(profile).collect();
    places.sort_by_key(|place| place.order);
    columns(places.iter().map(|place| {
        [
            if place.enabled { "on" } else { "off" }.to_owned(),
            place.section.id.clone(),
            place.section.name.clone(),
            place.section.section_type.to_string(),
            if place.shared { "shared" } else { "inline" }.to_owned(),
            format!("order {}", place.order),
            format!("{} bytes", place.section.content.len()),
        ]
    }))
}

/// A section with the profiles that it stands in.
struct Listed<'a> {
    section: &'a Section,
    description: Option<&'a str>,
    inline: bool,
    used_by: Vec<&'a str>,
}

/// The shared sections, then those that are written in a profile.
fn all(library: &Library) -> Vec<Listed<'_>> {
    let draft = library.draft();
    let shared = draft.sections.iter().map(|shared| Listed {
        section: &shared.section,
        description: shared.description.as_deref(),
        inline: false,
        used_by: draft
            .profiles
            .iter()
            .filter(|profile| {
                let id = &shared.section.id;
                library
                    .places(profile)
                    .any(|place| place.shared && place.section.id == *id)
            })
            .map(|profile| profile.id.as_str())
            .collect(),
    });
    let inline = draft.profiles.iter().flat_map(|profile| {
        profile
            .places
            .iter()
            .filter_map(|place| match &place.content {
                PlaceContent::Inline(section) => Some(Listed {
                    section,
                    description: None,
                    inline: true,
                    used_by: vec![&profile.id],
                }),
                PlaceContent::Shared(_) => None,
            })
    });
    shared.chain(inline).collect()
}

fn list(library: &Library) -> String {
    columns(all(library).into_iter().map(|listed| {
        [
            listed.section.id.clone(),
            listed.section.name.clone(),
            listed.section.section_type.to_string(),
            if listed.inline { "inline" } else { "shared" }.to_owned(),
            match &listed.used_by[..] {
                [] => "not used".to_owned(),
                profiles => format!("in {}", profiles.join(", ")),
            },
            format!("{} bytes", listed.section.content.len()),
        ]
    }))
}

fn list_json(library: &Library, profile: Option<&Profile>) -> Vec<Value> {
    match profile {
        Some(profile) => library
            .places(profile)
            .map(|place| place_json(&place))
            .collect(),
        None => all(library)
            .into_iter()
            .map(|listed| {
                let mut value = section_json(listed.section);
                value["description"] = listed.description.into();
                value["inline"] = listed.inline.into();
                value["used_by"] = listed.used_by.into();
                value
            })
            .collect(),
    }
}

fn section_json(section: &Section) -> Value {
    json!({
        "id": section.id,
        "name": section.name,
        "type": section.section_type.as_str(),
        "content": section.content,
    })
}

/// A section with what belongs to its place.
pub(super) fn place_json(place: &ResolvedPlace<'_>) -> Value {
    let mut value = section_json(place.section);
    value["enabled"] = place.enabled.into();
    value["order"] = place.order.into();
    value["priority"] = place.priority.into();
    value["shared"] = place.shared.into();
    value
}
