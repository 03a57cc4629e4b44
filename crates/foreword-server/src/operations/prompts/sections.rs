//! Sections by themselves: the shared ones to edit, all of them to look at.

use std::{collections::HashMap, sync::Arc};

use foreword_compose::{Library, Section, SharedSection};
use foreword_store::{
    EditError, Snapshot, StoreError,
    edit::{self, SectionInput, SectionPatch},
};

use super::{
    Document, Found, Proposal, Scope, submit,
    tags::{Precondition, section_tag},
};
use crate::app::App;

/// A section and who uses it.
#[derive(Debug, Clone)]
pub struct SectionDetail {
    /// The section.
    pub section: Section,
    /// A note for authors; inline sections have none.
    pub description: Option<String>,
    /// Where it stands, in file order.
    pub used_by: Vec<Use>,
    /// Whether it is written in the one profile that uses it.
    pub inline: bool,
}

/// One place where a section stands.
#[derive(Debug, Clone)]
pub struct Use {
    /// The id of the profile.
    pub profile: String,
    /// Whether it is part of compositions there.
    pub enabled: bool,
    /// The order in force there.
    pub order: i64,
}

/// All sections: the shared ones in file order, then the inline ones profile by profile.
#[must_use]
pub fn list_sections(app: &App) -> (Vec<SectionDetail>, Arc<Snapshot>) {
    let snapshot = app.store().snapshot();
    let library = &snapshot.library;
    let mut uses: HashMap<&str, Vec<Use>> = HashMap::new();
    let mut inline = Vec::new();
    for profile in &library.draft().profiles {
        for place in library.places(profile) {
            let place_use = Use {
                profile: profile.id.clone(),
                enabled: place.enabled,
                order: place.order,
            };
            if place.shared {
                uses.entry(&place.section.id).or_default().push(place_use);
            } else {
                inline.push(SectionDetail {
                    section: place.section.clone(),
                    description: None,
                    used_by: vec![place_use],
                    inline: true,
                });
            }
        }
    }
    let shared = library.draft().sections.iter().map(|shared| SectionDetail {
        section: shared.section.clone(),
        description: shared.description.clone(),
        used_by: uses.remove(shared.section.id.as_str()).unwrap_or_default(),
        inline: false,
    });
    let sections = shared.chain(inline).collect();
    (sections, Arc::clone(&snapshot))
}

/// One shared section.
pub fn get_section(app: &App, id: &str) -> Result<Found<SectionDetail>, EditError> {
    detail(&app.store().snapshot(), id)
}

/// Adds a shared section.
pub async fn create_section(
    app: &App,
    id: &str,
    proposal: Proposal<SectionInput>,
) -> Result<Found<SectionDetail>, StoreError> {
    let Proposal { value, document } = proposal;
    let edit = edit::create_section(id, value);
    let nothing = |_: &Library| Ok(String::new());
    let none = Precondition::None;
    let snapshot = submit(app, edit, Scope::Section, document, none, nothing).await?;
    Ok(detail(&snapshot, id)?)
}

/// Replaces a shared section.
pub async fn replace_section(
    app: &App,
    id: &str,
    precondition: Precondition,
    proposal: Proposal<SectionInput>,
) -> Result<Found<SectionDetail>, StoreError> {
    let Proposal { value, document } = proposal;
    let edit = edit::replace_section(id, value);
    let snapshot = submit(
        app,
        edit,
        Scope::Section,
        document,
        precondition,
        tag_of(id),
    )
    .await?;
    Ok(detail(&snapshot, id)?)
}

/// Changes some fields of a shared section.
pub async fn patch_section(
    app: &App,
    id: &str,
    precondition: Precondition,
    proposal: Proposal<SectionPatch>,
) -> Result<Found<SectionDetail>, StoreError> {
    let Proposal { value, document } = proposal;
    let edit = edit::patch_section(id, value);
    let snapshot = submit(
        app,
        edit,
        Scope::Section,
        document,
        precondition,
        tag_of(id),
    )
    .await?;
    Ok(detail(&snapshot, id)?)
}

/// Removes a shared section that no profile uses.
pub async fn delete_section(
    app: &App,
    id: &str,
    precondition: Precondition,
) -> Result<Arc<Snapshot>, StoreError> {
    let (edit, document) = (edit::delete_section(id), Document::default());
    submit(
        app,
        edit,
        Scope::Section,
        document,
        precondition,
        tag_of(id),
    )
    .await
}

/// Looks up the tag of the shared section `id`, in the library that an edit is applied to.
fn tag_of(id: &str) -> impl Fn(&Library) -> Result<String, EditError> + Send + Sync + 'static {
    let id = id.to_owned();
    move |library| Ok(section_tag(find(library, &id)?))
}

fn detail(snapshot: &Snapshot, id: &str) -> Result<Found<SectionDetail>, EditError> {
    let library = &snapshot.library;
    let shared = find(library, id)?;
    let used_by = library.draft().profiles.iter().flat_map(|profile| {
        library
            .places(profile)
            .filter(|place| place.shared && place.section.id == id)
            .map(|place| Use {
                profile: profile.id.clone(),
                enabled: place.enabled,
                order: place.order,
            })
    });
    Ok(Found {
        tag: section_tag(shared),
        library_revision: snapshot.revision.clone(),
        item: SectionDetail {
            section: shared.section.clone(),
            description: shared.description.clone(),
            used_by: used_by.collect(),
            inline: false,
        },
    })
}

fn find<'a>(library: &'a Library, id: &str) -> Result<&'a SharedSection, EditError> {
    library.section(id).ok_or_else(|| {
        let known = library.draft().sections.iter();
        EditError::not_found(
            "section",
            id,
            known.map(|shared| shared.section.id.as_str()),
        )
    })
}
