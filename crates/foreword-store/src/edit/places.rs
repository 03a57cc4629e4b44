//! Edits of the places of one profile.
//!
//! A profile can list shared sections in the short form `section_ids`, which has no room for a toggle, an order or a
//! priority. These edits work on the list that is in force, short form included, and write it back so that an entry
//! leaves the short form only when it must: when something was asked of it that the short form cannot say, or when its
//! place in the prompt would otherwise move.

use foreword_compose::{
    Fault, Library, Place, Profile, Section, SectionType, library::PlaceContent,
};

use super::{Edit, EditError, accept, find_profile, profile_position};

/// One entry of a profile's sections as a caller gives it.
///
/// If a shared section has the id, the entry is a place of that section; `name`, `section_type` and `content` may then
/// be absent or say what the section says, and nothing else. If not, it is an inline section and needs its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceInput {
    /// The section's id.
    pub id: String,
    /// What people call it; the id by default.
    pub name: Option<String>,
    /// Its label; `custom` by default.
    pub section_type: Option<SectionType>,
    /// Its text.
    pub content: Option<String>,
    /// Whether it is part of compositions.
    pub enabled: bool,
    /// Ascending. Absent: 0 in a whole profile, as in the file; for one place see [`put_place`].
    pub order: Option<i64>,
    /// Higher goes first when a short form has no room for everything.
    pub priority: i64,
}

/// What changes at one place; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlacePatch {
    /// What people call the section; inline sections only.
    pub name: Option<String>,
    /// Its label; inline sections only.
    pub section_type: Option<SectionType>,
    /// Its text; inline sections only.
    pub content: Option<String>,
    /// Whether it is part of compositions.
    pub enabled: Option<bool>,
    /// Ascending.
    pub order: Option<i64>,
    /// Higher goes first when a short form has no room for everything.
    pub priority: Option<i64>,
}

/// Adds the place `input` to a profile, or replaces the one that has its id.
///
/// Without an order, a place that exists keeps its own, and a new one takes the highest of the profile: it comes after
/// all that `sections` holds.
#[must_use]
pub fn put_place(profile: &str, input: PlaceInput) -> Edit {
    let what = format!("set section `{}` of profile `{profile}`", input.id);
    edit_places(what, profile, move |library, profile, places| {
        let position = places.iter().position(|place| place.id() == input.id);
        let order = input.order.unwrap_or_else(|| match position {
            Some(at) => places[at].order,
            None => highest_order(&profile.places),
        });
        let mut faults = Vec::new();
        let place = input.to_place(library, "", order, &mut faults);
        match position {
            Some(at) => places[at] = place,
            None => places.insert(profile.places.len(), place),
        }
        Ok(faults)
    })
}

/// Changes some fields of one place.
#[must_use]
pub fn patch_place(profile: &str, section: &str, patch: PlacePatch) -> Edit {
    let what = format!("changed section `{section}` of profile `{profile}`");
    let section = section.to_owned();
    edit_places(what, profile, move |library, _, places| {
        let at = find_place(places, &section)?;
        let place = &mut places[at];
        let mut faults = Vec::new();
        match &mut place.content {
            PlaceContent::Inline(section) => {
                if let Some(name) = &patch.name {
                    section.name.clone_from(name);
                }
                if let Some(section_type) = patch.section_type {
                    section.section_type = section_type;
                }
                if let Some(content) = &patch.content {
                    section.content.clone_from(content);
                }
            }
            PlaceContent::Shared(id) => refuse_shared_text(
                library,
                "",
                id,
                patch.name.as_deref(),
                patch.section_type,
                patch.content.as_deref(),
                &mut faults,
            ),
        }
        place.enabled = patch.enabled.unwrap_or(place.enabled);
        place.order = patch.order.unwrap_or(place.order);
        place.priority = patch.priority.unwrap_or(place.priority);
        Ok(faults)
    })
}

/// Removes one place from a profile; a shared section itself stays.
#[must_use]
pub fn remove_place(profile: &str, section: &str) -> Edit {
    let what = format!("removed section `{section}` from profile `{profile}`");
    let (profile_id, section) = (profile.to_owned(), section.to_owned());
    Edit::in_place(what, move |library, draft| {
        let position = profile_position(library, &profile_id)?;
        find_place(
            &places_in_force(library, &draft.profiles[position]),
            &section,
        )?;
        // What stays keeps its sequence whichever way it is written: the short form comes last in any case.
        let profile = &mut draft.profiles[position];
        profile.places.retain(|place| place.id() != section);
        profile.section_ids.retain(|id| *id != section);
        Ok(())
    })
}

/// Numbers the places of a profile from 0 in the order of `sections`, which names each of them once.
#[must_use]
pub fn order_places(profile: &str, sections: Vec<String>) -> Edit {
    let what = format!("ordered the sections of profile `{profile}`");
    edit_places(what, profile, move |_, profile, places| {
        let mut faults = Vec::new();
        for (at, id) in sections.iter().enumerate() {
            let pointer = format!("/sections/{at}");
            if !places.iter().any(|place| place.id() == id) {
                let message = format!("profile `{}` has no section `{id}`", profile.id);
                faults.push(order_fault(pointer, message));
            } else if sections[..at].contains(id) {
                faults.push(order_fault(
                    pointer,
                    format!("section `{id}` is named twice"),
                ));
            }
        }
        for place in places {
            match sections.iter().position(|id| id == place.id()) {
                Some(position) => place.order = i64::try_from(position).unwrap_or(i64::MAX),
                None => faults.push(order_fault(
                    "/sections".to_owned(),
                    format!("section `{}` is missing", place.id()),
                )),
            }
        }
        Ok(faults)
    })
}

impl PlaceInput {
    /// The place that it means in `library`; `pointer` leads to it in the caller's document.
    pub(super) fn to_place(
        &self,
        library: &Library,
        pointer: &str,
        order: i64,
        faults: &mut Vec<Fault>,
    ) -> Place {
        let content = if library.section(&self.id).is_some() {
            refuse_shared_text(
                library,
                pointer,
                &self.id,
                self.name.as_deref(),
                self.section_type,
                self.content.as_deref(),
                faults,
            );
            PlaceContent::Shared(self.id.clone())
        } else {
            if self.content.is_none() {
                faults.push(Fault {
                    pointer: format!("{pointer}/content"),
                    code: "missing-content",
                    message: format!(
                        "section `{}` has no content, and no shared section has this id",
                        self.id
                    ),
                    hint: Some("give its `content`, or the id of a shared section".to_owned()),
                });
            }
            PlaceContent::Inline(Section {
                id: self.id.clone(),
                name: self.name.clone().unwrap_or_else(|| self.id.clone()),
                section_type: self.section_type.unwrap_or_default(),
                content: self.content.clone().unwrap_or_default(),
            })
        };
        Place {
            content,
            enabled: self.enabled,
            order,
            priority: self.priority,
        }
    }
}

/// Writes the list `places` into `profile`, whose short form keeps what it can say.
///
/// The short form can say the end of the list, as far as it held those sections before and they are enabled, have no
/// priority and the highest order of what comes before them.
pub(super) fn write_places(profile: &mut Profile, mut places: Vec<Place>) {
    let fits = |place: &Place, order: i64| {
        place.enabled
            && place.priority == 0
            && place.order == order
            && profile.section_ids.iter().any(|id| id == place.id())
    };
    let short_from = (0..=places.len())
        .find(|&from| {
            let order = highest_order(&places[..from]);
            places[from..].iter().all(|place| fits(place, order))
        })
        .expect("nothing follows the last place, so all of it fits");
    let short = places.split_off(short_from);
    profile.section_ids = short.iter().map(|place| place.id().to_owned()).collect();
    profile.places = places;
}

/// Changes the list of places that is in force in a profile; what `change` finds fault with is refused.
fn edit_places(
    what: String,
    profile: &str,
    change: impl Fn(&Library, &Profile, &mut Vec<Place>) -> Result<Vec<Fault>, EditError>
    + Send
    + Sync
    + 'static,
) -> Edit {
    let id = profile.to_owned();
    Edit::in_place(what, move |library, draft| {
        let profile = find_profile(library, &id)?;
        let mut places = places_in_force(library, profile);
        let faults = change(library, profile, &mut places)?;
        write_places(&mut draft.profiles[profile_position(library, &id)?], places);
        accept(draft, faults)
    })
}

/// All places of `profile` as if none were written in the short form.
fn places_in_force(library: &Library, profile: &Profile) -> Vec<Place> {
    library
        .places(profile)
        .map(|resolved| Place {
            content: if resolved.shared {
                PlaceContent::Shared(resolved.section.id.clone())
            } else {
                PlaceContent::Inline(resolved.section.clone())
            },
            enabled: resolved.enabled,
            order: resolved.order,
            priority: resolved.priority,
        })
        .collect()
}

fn highest_order(places: &[Place]) -> i64 {
    places.iter().map(|place| place.order).max().unwrap_or(0)
}

fn find_place(places: &[Place], section: &str) -> Result<usize, EditError> {
    places
        .iter()
        .position(|place| place.id() == section)
        .ok_or_else(|| EditError::not_found("section", section, places.iter().map(Place::id)))
}

/// Refuses to change, through a place, the text that other profiles share.
fn refuse_shared_text(
    library: &Library,
    pointer: &str,
    id: &str,
    name: Option<&str>,
    section_type: Option<SectionType>,
    content: Option<&str>,
    faults: &mut Vec<Fault>,
) {
    let Some(shared) = library.section(id) else {
        return;
    };
    let section = &shared.section;
    let differing = [
        ("name", name.is_some_and(|name| name != section.name)),
        (
            "type",
            section_type.is_some_and(|section_type| section_type != section.section_type),
        ),
        (
            "content",
            content.is_some_and(|content| content != section.content),
        ),
    ];
    for (field, differs) in differing {
        if differs {
            faults.push(Fault {
                pointer: format!("{pointer}/{field}"),
                code: "shared-section",
                message: format!(
                    "section `{id}` is shared, so its {field} cannot be changed in one profile"
                ),
                hint: Some(format!(
                    "change the shared section itself, at `/api/prompts/sections/{id}`"
                )),
            });
        }
    }
}

fn order_fault(pointer: String, message: String) -> Fault {
    Fault {
        pointer,
        code: "order-mismatch",
        message,
        hint: Some("name every section of the profile exactly once".to_owned()),
    }
}
