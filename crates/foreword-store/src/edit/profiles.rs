//! Edits of whole profiles.

use foreword_compose::{Library, LibraryDraft, Profile};

use super::{
    Edit, EditError, accept, find_profile,
    places::{PlaceInput, write_places},
    profile_position,
};

/// A profile as a caller gives it, but for its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileInput {
    /// What people call it; the id by default.
    pub name: Option<String>,
    /// A note for people.
    pub description: Option<String>,
    /// Whether it is to be the default; absent: as it is.
    pub is_default: Option<bool>,
    /// Whether the tools prompt is part of its compositions.
    pub tools_prompt: bool,
    /// Its sections in file order.
    pub sections: Vec<PlaceInput>,
}

/// What changes in a profile; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProfilePatch {
    /// What people call it.
    pub name: Option<String>,
    /// A note for people; `Some(None)` removes it.
    pub description: Option<Option<String>>,
    /// Whether it is to be the default.
    pub is_default: Option<bool>,
    /// Whether the tools prompt is part of its compositions.
    pub tools_prompt: Option<bool>,
    /// All its sections in file order.
    pub sections: Option<Vec<PlaceInput>>,
}

/// Adds a profile after the others.
#[must_use]
pub fn create_profile(id: &str, input: ProfileInput) -> Edit {
    let patch = input.into_patch(id);
    let (what, id) = (format!("created profile `{id}`"), id.to_owned());
    Edit::in_place(what, move |library, draft| {
        if library.profile(&id).is_some() {
            return Err(EditError::AlreadyExists {
                kind: "profile",
                id: id.clone(),
            });
        }
        draft.profiles.push(Profile {
            id: id.clone(),
            name: id.clone(),
            description: None,
            is_default: false,
            tools_prompt: true,
            places: Vec::new(),
            section_ids: Vec::new(),
        });
        let position = draft.profiles.len() - 1;
        apply_patch(library, draft, position, &patch)
    })
}

/// Replaces a profile.
///
/// Replaced by what is in force in it, it stays as it is, short form and missing default mark included.
#[must_use]
pub fn replace_profile(id: &str, input: ProfileInput) -> Edit {
    change_profile(format!("replaced profile `{id}`"), id, input.into_patch(id))
}

/// Changes some fields of a profile.
#[must_use]
pub fn patch_profile(id: &str, patch: ProfilePatch) -> Edit {
    change_profile(format!("changed profile `{id}`"), id, patch)
}

/// Removes a profile; the default one only if it is the last.
#[must_use]
pub fn delete_profile(id: &str) -> Edit {
    let (what, id) = (format!("deleted profile `{id}`"), id.to_owned());
    Edit::in_place(what, move |library, draft| {
        let position = profile_position(library, &id)?;
        if is_default(library, &id) && draft.profiles.len() > 1 {
            return Err(EditError::IsDefault { id: id.clone() });
        }
        draft.profiles.remove(position);
        Ok(())
    })
}

/// Makes a profile the default, and takes the mark from the one that had it.
#[must_use]
pub fn set_default_profile(id: &str) -> Edit {
    let (what, id) = (format!("made profile `{id}` the default"), id.to_owned());
    Edit::in_place(what, move |library, draft| {
        find_profile(library, &id)?;
        mark_default(draft, &id);
        Ok(())
    })
}

fn change_profile(what: String, id: &str, patch: ProfilePatch) -> Edit {
    let id = id.to_owned();
    Edit::in_place(what, move |library, draft| {
        let position = profile_position(library, &id)?;
        apply_patch(library, draft, position, &patch)
    })
}

fn apply_patch(
    library: &Library,
    draft: &mut LibraryDraft,
    position: usize,
    patch: &ProfilePatch,
) -> Result<(), EditError> {
    let profile = &mut draft.profiles[position];
    if let Some(name) = &patch.name {
        profile.name.clone_from(name);
    }
    if let Some(description) = &patch.description {
        profile.description.clone_from(description);
    }
    if let Some(tools_prompt) = patch.tools_prompt {
        profile.tools_prompt = tools_prompt;
    }
    let mut faults = Vec::new();
    if let Some(sections) = &patch.sections {
        let places = sections.iter().enumerate().map(|(at, input)| {
            let pointer = format!("/sections/{at}");
            input.to_place(library, &pointer, input.order.unwrap_or(0), &mut faults)
        });
        write_places(profile, places.collect());
    }
    let id = profile.id.clone();
    match patch.is_default {
        Some(true) if !is_default(library, &id) => mark_default(draft, &id),
        // Another would become the default unasked, or this one would stay it in spite of the request.
        Some(false) if is_default(library, &id) => return Err(EditError::IsDefault { id }),
        _ => {}
    }
    accept(draft, faults)
}

impl ProfileInput {
    fn into_patch(self, id: &str) -> ProfilePatch {
        ProfilePatch {
            name: Some(self.name.unwrap_or_else(|| id.to_owned())),
            description: Some(self.description),
            is_default: self.is_default,
            tools_prompt: Some(self.tools_prompt),
            sections: Some(self.sections),
        }
    }
}

/// Whether the profile is the default now, by its mark or by being the first where none is marked.
fn is_default(library: &Library, id: &str) -> bool {
    library
        .default_profile()
        .is_some_and(|profile| profile.id == id)
}

fn mark_default(draft: &mut LibraryDraft, id: &str) {
    for profile in &mut draft.profiles {
        profile.is_default = profile.id == id;
    }
}
