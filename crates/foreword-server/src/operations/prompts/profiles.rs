//! Profiles as a whole.

use std::sync::Arc;

use foreword_compose::{Composition, Library, Profile, Request, Section, compose, revision};
use foreword_store::{
    EditError, Snapshot, StoreError,
    edit::{self, ProfileInput, ProfilePatch},
};

use super::{
    Document, Found, Proposal, Scope, submit,
    tags::{Precondition, is_default, profile_tag},
};
use crate::app::App;

/// A profile in a list.
#[derive(Debug, Clone)]
pub struct ProfileSummary {
    /// Its id.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// A note for people.
    pub description: Option<String>,
    /// Whether requests get it that name none.
    pub is_default: bool,
    /// How many sections it has.
    pub sections_count: usize,
    /// How many of them are part of compositions.
    pub enabled_sections: usize,
}

/// A profile with its sections looked up, and what it composes to.
#[derive(Debug, Clone)]
pub struct ProfileDetail {
    /// Its id.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// A note for people.
    pub description: Option<String>,
    /// Whether requests get it that name none.
    pub is_default: bool,
    /// Whether the tools prompt is part of its compositions.
    pub tools_prompt: bool,
    /// Its sections in file order, disabled ones too.
    pub sections: Vec<PlacedSection>,
    /// The prompt that it gives outside any session, with the tools now connected.
    pub composed_prompt: String,
    /// The revision of that prompt.
    pub revision: String,
}

/// A section in its place.
#[derive(Debug, Clone)]
pub struct PlacedSection {
    /// The section.
    pub section: Section,
    /// Whether it is a shared one.
    pub shared: bool,
    /// Whether it is part of compositions.
    pub enabled: bool,
    /// The order in force.
    pub order: i64,
    /// The priority in force.
    pub priority: i64,
}

/// All profiles in file order.
#[must_use]
pub fn list_profiles(app: &App) -> (Vec<ProfileSummary>, Arc<Snapshot>) {
    let snapshot = app.store().snapshot();
    let library = &snapshot.library;
    let profiles = library.draft().profiles.iter().map(|profile| {
        let enabled = |on: &bool| *on;
        let places = library.places(profile).map(|place| place.enabled);
        let places: Vec<bool> = places.collect();
        ProfileSummary {
            id: profile.id.clone(),
            name: profile.name.clone(),
            description: profile.description.clone(),
            is_default: is_default(library, profile),
            sections_count: places.len(),
            enabled_sections: places.iter().copied().filter(enabled).count(),
        }
    });
    (profiles.collect(), Arc::clone(&snapshot))
}

/// One profile.
pub fn get_profile(app: &App, id: &str) -> Result<Found<ProfileDetail>, EditError> {
    detail(app, &app.store().snapshot(), id)
}

/// Adds a profile.
pub async fn create_profile(
    app: &App,
    id: &str,
    proposal: Proposal<ProfileInput>,
) -> Result<Found<ProfileDetail>, StoreError> {
    let Proposal { value, document } = proposal;
    let edit = edit::create_profile(id, value);
    let nothing = |_: &Library| Ok(String::new());
    let none = Precondition::None;
    let snapshot = submit(app, edit, Scope::Profile, document, none, nothing).await?;
    Ok(detail(app, &snapshot, id)?)
}

/// Replaces a profile; its sections too.
pub async fn replace_profile(
    app: &App,
    id: &str,
    precondition: Precondition,
    proposal: Proposal<ProfileInput>,
) -> Result<Found<ProfileDetail>, StoreError> {
    let Proposal { value, document } = proposal;
    let edit = edit::replace_profile(id, value);
    let snapshot = submit(
        app,
        edit,
        Scope::Profile,
        document,
        precondition,
        tag_of(id),
    )
    .await?;
    Ok(detail(app, &snapshot, id)?)
}

/// Changes some fields of a profile.
pub async fn patch_profile(
    app: &App,
    id: &str,
    precondition: Precondition,
    proposal: Proposal<ProfilePatch>,
) -> Result<Found<ProfileDetail>, StoreError> {
    let Proposal { value, document } = proposal;
    let edit = edit::patch_profile(id, value);
    let snapshot = submit(
        app,
        edit,
        Scope::Profile,
        document,
        precondition,
        tag_of(id),
    )
    .await?;
    Ok(detail(app, &snapshot, id)?)
}

/// Removes a profile.
pub async fn delete_profile(
    app: &App,
    id: &str,
    precondition: Precondition,
) -> Result<Arc<Snapshot>, StoreError> {
    let (edit, document) = (edit::delete_profile(id), Document::default());
    submit(
        app,
        edit,
        Scope::Profile,
        document,
        precondition,
        tag_of(id),
    )
    .await
}

/// Makes a profile the one that requests get that name none.
pub async fn set_default_profile(
    app: &App,
    id: &str,
    precondition: Precondition,
) -> Result<Found<ProfileDetail>, StoreError> {
    let (edit, document) = (edit::set_default_profile(id), Document::default());
    let snapshot = submit(
        app,
        edit,
        Scope::Profile,
        document,
        precondition,
        tag_of(id),
    )
    .await?;
    Ok(detail(app, &snapshot, id)?)
}

/// Looks up the tag of the profile `id`, in the library that an edit is applied to.
pub(super) fn tag_of(
    id: &str,
) -> impl Fn(&Library) -> Result<String, EditError> + Send + Sync + 'static {
    let id = id.to_owned();
    move |library| Ok(profile_tag(library, find(library, &id)?))
}

pub(super) fn detail(
    app: &App,
    snapshot: &Snapshot,
    id: &str,
) -> Result<Found<ProfileDetail>, EditError> {
    let library = &snapshot.library;
    let profile = find(library, id)?;
    let Composition { text, .. } = preview(app, library, profile);
    let sections = library.places(profile).map(|place| PlacedSection {
        section: place.section.clone(),
        shared: place.shared,
        enabled: place.enabled,
        order: place.order,
        priority: place.priority,
    });
    Ok(Found {
        tag: profile_tag(library, profile),
        library_revision: snapshot.revision.clone(),
        item: ProfileDetail {
            id: profile.id.clone(),
            name: profile.name.clone(),
            description: profile.description.clone(),
            is_default: is_default(library, profile),
            tools_prompt: profile.tools_prompt,
            sections: sections.collect(),
            revision: revision(&text, None),
            composed_prompt: text,
        },
    })
}

fn preview(app: &App, library: &Library, profile: &Profile) -> Composition {
    let catalog = app.connections().catalog();
    let request = Request {
        profile_id: Some(&profile.id),
        tools_prompt: &catalog.prompt.text,
        ..Request::default()
    };
    compose(library, &request).expect("the profile was taken from this library")
}

fn find<'a>(library: &'a Library, id: &str) -> Result<&'a Profile, EditError> {
    library.profile(id).ok_or_else(|| {
        let known = library.draft().profiles.iter();
        EditError::not_found("profile", id, known.map(|profile| profile.id.as_str()))
    })
}
