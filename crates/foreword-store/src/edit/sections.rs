//! Edits of shared sections.

use foreword_compose::{Library, Section, SectionType, SharedSection, library::PlaceContent};

use super::{Edit, EditError};

/// A shared section as a caller gives it, but for its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionInput {
    /// What people call it; the id by default.
    pub name: Option<String>,
    /// Its label.
    pub section_type: SectionType,
    /// Its text.
    pub content: String,
    /// A note for authors.
    pub description: Option<String>,
}

/// What changes in a shared section; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SectionPatch {
    /// What people call it.
    pub name: Option<String>,
    /// Its label.
    pub section_type: Option<SectionType>,
    /// Its text.
    pub content: Option<String>,
    /// A note for authors; `Some(None)` removes it.
    pub description: Option<Option<String>>,
}

/// Adds a shared section after the others.
#[must_use]
pub fn create_section(id: &str, input: SectionInput) -> Edit {
    let (what, id) = (format!("created section `{id}`"), id.to_owned());
    Edit::in_place(what, move |library, draft| {
        if library.section(&id).is_some() {
            return Err(EditError::AlreadyExists {
                kind: "section",
                id: id.clone(),
            });
        }
        if has_inline_section(library, &id) {
            return Err(EditError::AlreadyExists {
                kind: "inline section",
                id: id.clone(),
            });
        }
        draft.sections.push(input.to_section(&id));
        Ok(())
    })
}

/// Replaces a shared section.
#[must_use]
pub fn replace_section(id: &str, input: SectionInput) -> Edit {
    let (what, id) = (format!("replaced section `{id}`"), id.to_owned());
    Edit::in_place(what, move |library, draft| {
        let position = section_position(library, &id)?;
        draft.sections[position] = input.to_section(&id);
        Ok(())
    })
}

/// Changes some fields of a shared section.
#[must_use]
pub fn patch_section(id: &str, patch: SectionPatch) -> Edit {
    let (what, id) = (format!("changed section `{id}`"), id.to_owned());
    Edit::in_place(what, move |library, draft| {
        let SharedSection {
            section,
            description,
        } = &mut draft.sections[section_position(library, &id)?];
        if let Some(name) = &patch.name {
            section.name.clone_from(name);
        }
        if let Some(section_type) = patch.section_type {
            section.section_type = section_type;
        }
        if let Some(content) = &patch.content {
            section.content.clone_from(content);
        }
        if let Some(new) = &patch.description {
            description.clone_from(new);
        }
        Ok(())
    })
}

/// Removes a shared section that no profile uses.
#[must_use]
pub fn delete_section(id: &str) -> Edit {
    let (what, id) = (format!("deleted section `{id}`"), id.to_owned());
    Edit::in_place(what, move |library, draft| {
        let position = section_position(library, &id)?;
        let profiles = users(library, &id);
        if !profiles.is_empty() {
            return Err(EditError::InUse {
                id: id.clone(),
                profiles,
            });
        }
        draft.sections.remove(position);
        Ok(())
    })
}

impl SectionInput {
    fn to_section(&self, id: &str) -> SharedSection {
        SharedSection {
            section: Section {
                id: id.to_owned(),
                name: self.name.clone().unwrap_or_else(|| id.to_owned()),
                section_type: self.section_type,
                content: self.content.clone(),
            },
            description: self.description.clone(),
        }
    }
}

fn section_position(library: &Library, id: &str) -> Result<usize, EditError> {
    let sections = &library.draft().sections;
    sections
        .iter()
        .position(|shared| shared.section.id == id)
        .ok_or_else(|| {
            let known = sections.iter().map(|shared| shared.section.id.as_str());
            EditError::not_found("section", id, known)
        })
}

/// Whether a profile has a section of its own with this id, which would then mean two things.
fn has_inline_section(library: &Library, id: &str) -> bool {
    let profiles = &library.draft().profiles;
    let mut places = profiles.iter().flat_map(|profile| &profile.places);
    places.any(|place| matches!(&place.content, PlaceContent::Inline(section) if section.id == id))
}

/// The profiles that use the shared section `id`.
fn users(library: &Library, id: &str) -> Vec<String> {
    library
        .draft()
        .profiles
        .iter()
        .filter(|profile| {
            library
                .places(profile)
                .any(|place| place.shared && place.section.id == id)
        })
        .map(|profile| profile.id.clone())
        .collect()
}
