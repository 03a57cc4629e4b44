//! The places of sections in a profile. They are part of the profile, so its tag is the one that counts.

use foreword_store::{
    StoreError,
    edit::{self, PlaceInput, PlacePatch},
};

use super::{
    Document, Found, Proposal, Scope,
    profiles::{ProfileDetail, detail, tag_of},
    submit,
    tags::Precondition,
};
use crate::app::App;

/// Adds a place to a profile, or replaces the one that has its id. Says whether it was added.
pub async fn put_place(
    app: &App,
    profile: &str,
    precondition: Precondition,
    proposal: Proposal<PlaceInput>,
) -> Result<(Found<ProfileDetail>, bool), StoreError> {
    let Proposal { value, document } = proposal;
    let section = value.id.clone();
    let before = detail(app, &app.store().snapshot(), profile)?;
    let added = !before
        .item
        .sections
        .iter()
        .any(|place| place.section.id == section);
    let (edit, tag) = (edit::put_place(profile, value), tag_of(profile));
    let snapshot = submit(app, edit, Scope::Place, document, precondition, tag).await?;
    Ok((detail(app, &snapshot, profile)?, added))
}

/// Changes some fields of one place.
pub async fn patch_place(
    app: &App,
    profile: &str,
    section: &str,
    precondition: Precondition,
    proposal: Proposal<PlacePatch>,
) -> Result<Found<ProfileDetail>, StoreError> {
    let Proposal { value, document } = proposal;
    let edit = edit::patch_place(profile, section, value);
    let tag = tag_of(profile);
    let snapshot = submit(app, edit, Scope::Place, document, precondition, tag).await?;
    Ok(detail(app, &snapshot, profile)?)
}

/// Removes one place from a profile; a shared section itself stays.
pub async fn remove_place(
    app: &App,
    profile: &str,
    section: &str,
    precondition: Precondition,
) -> Result<Found<ProfileDetail>, StoreError> {
    let (edit, tag) = (edit::remove_place(profile, section), tag_of(profile));
    let snapshot = submit(
        app,
        edit,
        Scope::Place,
        Document::default(),
        precondition,
        tag,
    )
    .await?;
    Ok(detail(app, &snapshot, profile)?)
}

/// Numbers the places of a profile from 0 in the order of `sections`, which names each of them once.
pub async fn order_places(
    app: &App,
    profile: &str,
    precondition: Precondition,
    proposal: Proposal<Vec<String>>,
) -> Result<Found<ProfileDetail>, StoreError> {
    let Proposal { value, document } = proposal;
    let (edit, tag) = (edit::order_places(profile, value), tag_of(profile));
    let snapshot = submit(app, edit, Scope::Profile, document, precondition, tag).await?;
    Ok(detail(app, &snapshot, profile)?)
}
