//! Reading and editing the prompt library, and previewing what it composes.
//!
//! A reader takes one snapshot and answers from it. A writer hands the store an edit that carries its own precondition,
//! so that it holds against the very library that the edit is applied to. Deliberately absent: how values are spelled in
//! a request or an answer, and whether the caller may ask.

pub mod compose;
pub mod events;
pub mod library;
pub mod places;
pub mod profiles;
pub mod sections;
pub mod tags;
pub mod texts;
pub mod tools;

use std::sync::Arc;

use foreword_compose::{Fault, Library};
use foreword_store::{Edit, EditError, Snapshot, StoreError};

use self::tags::Precondition;
use crate::app::App;

/// An item as one snapshot of the library has it.
#[derive(Debug, Clone)]
pub struct Found<T> {
    /// The item.
    pub item: T,
    /// Its editable state in short, see [`tags`].
    pub tag: String,
    /// The revision of the library that it was read from.
    pub library_revision: String,
}

/// What a caller wants to write, read from a document of the caller's.
#[derive(Debug, Clone)]
pub struct Proposal<T> {
    /// The value, with defaults where the document has faults.
    pub value: T,
    /// The document.
    pub document: Document,
}

/// A document that holds an item, and what is wrong with it.
///
/// With faults, nothing is written; the value then only serves to find the further ones, so that all are told at once.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// A JSON pointer to the item in the document; empty where the item is the document.
    pub item: &'static str,
    /// Pointers lead into the document.
    pub faults: Vec<Fault>,
}

/// Where an edit does its work, so that faults found in the whole library can be told in terms of the item.
#[derive(Debug, Clone, Copy)]
enum Scope {
    /// A profile: `/profiles/3/name` is the item's `/name`.
    Profile,
    /// One place of a profile: `/profiles/3/sections/2/content` is the item's `/content`.
    Place,
    /// A shared section: `/sections/2/content` is the item's `/content`.
    Section,
    /// The variables: `/variables/company` is the item's `/company`.
    Variables,
    /// A text with a switch: `/global_prompt/content` is the item's `/content`.
    Text,
}

/// Hands `edit` to the store, unless its document has faults or `precondition` does not hold.
async fn submit(
    app: &App,
    edit: Edit,
    scope: Scope,
    document: Document,
    precondition: Precondition,
    tag: impl Fn(&Library) -> Result<String, EditError> + Send + Sync + 'static,
) -> Result<Arc<Snapshot>, StoreError> {
    let edit = edit.checked(move |library| match &precondition {
        Precondition::None => Ok(()),
        precondition => precondition.check(&tag(library)?),
    });
    if !document.faults.is_empty() {
        let snapshot = app.store().snapshot();
        return Err(all_faults(&edit, &snapshot.library, scope, document).into());
    }
    app.store().edit(edit).await.map_err(|error| match error {
        StoreError::Refused(EditError::Invalid(faults)) => {
            let faults = faults
                .into_iter()
                .map(|fault| scope.translate(fault, document.item));
            EditError::Invalid(faults.collect()).into()
        }
        other => other,
    })
}

/// The faults of a document together with those of the library that it would lead to.
fn all_faults(edit: &Edit, library: &Library, scope: Scope, document: Document) -> EditError {
    let further = match edit.apply(library) {
        Ok(draft) => Library::new(draft).err().unwrap_or_default(),
        Err(EditError::Invalid(further)) => further,
        Err(other) => return other,
    };
    let Document { item, mut faults } = document;
    // A value that could not be read was replaced by a default, about which there is nothing to say.
    let further: Vec<Fault> = further
        .into_iter()
        .map(|fault| scope.translate(fault, item))
        .filter(|fault| {
            let unreadable = |known: &Fault| is_within(&fault.pointer, &known.pointer);
            !faults.iter().any(unreadable)
        })
        .collect();
    faults.extend(further);
    EditError::Invalid(faults)
}

/// Whether `pointer` is `outer` or leads to something inside it.
fn is_within(pointer: &str, outer: &str) -> bool {
    pointer
        .strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Scope {
    /// The same fault with a pointer into a document that holds the item at `item`; to the item as a whole for what lies
    /// elsewhere in the library.
    fn translate(self, fault: Fault, item: &str) -> Fault {
        let steps: Vec<&str> = fault.pointer.split('/').skip(1).collect();
        let inside = match (self, steps.as_slice()) {
            // With a bare `/sections/…` the edit of a profile speaks of the item itself.
            (Self::Profile, ["profiles", _, inside @ ..] | inside @ ["sections", ..])
            | (Self::Place, ["profiles", _, "sections", _, inside @ ..])
            | (Self::Section, ["sections", _, inside @ ..])
            | (Self::Variables, ["variables", inside @ ..])
            | (Self::Text, ["global_prompt" | "workspace_guide", inside @ ..]) => inside,
            (_, ["profiles" | "sections" | "variables", ..]) => &[],
            // Found by an edit, which knows only the item.
            (_, inside) => inside,
        };
        let pointer = inside.iter().fold(item.to_owned(), |pointer, step| {
            // In the item, a place of a shared section is written like any other.
            let step = if *step == "use" { "id" } else { step };
            pointer + "/" + step
        });
        Fault { pointer, ..fault }
    }
}
