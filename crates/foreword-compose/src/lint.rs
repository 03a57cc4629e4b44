//! Decides what is probably a mistake in a library, whatever is asked of it.
//!
//! For authors, not for requests: the whole library is read, so this is no part of composing. Deliberately absent:
//! everything that makes a draft unusable ([`crate::validate`]).

use std::collections::HashSet;

use crate::{
    diagnostic::{Diagnostic, DiagnosticCode, Severity},
    library::{Library, Place, PlaceContent},
    placeholder::{Segment, split},
};

/// Variables and shared sections that nothing uses, and sections without text, in file order.
#[must_use]
pub fn lint(library: &Library) -> Vec<Diagnostic> {
    let mut diagnostics = unused_variables(library);
    diagnostics.extend(shared_sections(library));
    diagnostics.extend(inline_sections(library));
    diagnostics
}

fn unused_variables(library: &Library) -> Vec<Diagnostic> {
    let variables = &library.draft().variables;
    let mut used = HashSet::new();
    for text in texts(library) {
        let declared = |name| variables.get_key_value(name);
        split(text, declared, |segment| {
            if let Segment::Placeholder {
                meaning: (name, _), ..
            } = segment
            {
                used.insert(name);
            }
        });
    }
    variables
        .keys()
        .filter(|name| !used.contains(name))
        .map(|name| Diagnostic {
            code: DiagnosticCode::UnusedVariable,
            severity: Severity::Warning,
            part: Some(name.clone()),
            range: None,
            message: format!("no text uses the variable `{name}`"),
            hint: Some(format!(
                "write `{{{name}}}` where its value belongs, or remove it"
            )),
        })
        .collect()
}

/// Every text of the library in which placeholders are replaced.
fn texts(library: &Library) -> impl Iterator<Item = &str> {
    let draft = library.draft();
    let global = draft.global_prompt.iter().map(|global| &global.content);
    let shared = draft.sections.iter().map(|shared| &shared.section.content);
    let places = draft.profiles.iter().flat_map(|profile| &profile.places);
    let inline = places.filter_map(|place| match &place.content {
        PlaceContent::Inline(section) => Some(&section.content),
        PlaceContent::Shared(_) => None,
    });
    let guide = draft.workspace_guide.iter().map(|guide| &guide.content);
    let all = global.chain(shared).chain(inline).chain(guide);
    all.map(String::as_str)
}

fn shared_sections(library: &Library) -> impl Iterator<Item = Diagnostic> {
    let draft = library.draft();
    let used: HashSet<&str> = draft
        .profiles
        .iter()
        .flat_map(|profile| {
            let places = profile.places.iter().map(Place::id);
            places.chain(profile.section_ids.iter().map(String::as_str))
        })
        .collect();
    draft.sections.iter().flat_map(move |shared| {
        let id = shared.section.id.as_str();
        let unused = (!used.contains(id)).then(|| Diagnostic {
            code: DiagnosticCode::UnusedSection,
            severity: Severity::Warning,
            part: Some(id.to_owned()),
            range: None,
            message: format!("no profile uses the shared section `{id}`"),
            hint: Some(format!(
                "add `{{use: {id}}}` to a profile, or remove the section"
            )),
        });
        let empty = is_blank(&shared.section.content)
            .then(|| empty_section(id, format!("the shared section `{id}` has no text")));
        unused.into_iter().chain(empty)
    })
}

fn inline_sections(library: &Library) -> impl Iterator<Item = Diagnostic> {
    let profiles = library.draft().profiles.iter();
    let places =
        profiles.flat_map(|profile| profile.places.iter().map(move |place| (profile, place)));
    places.filter_map(|(profile, place)| match &place.content {
        PlaceContent::Inline(section) if is_blank(&section.content) => {
            let (id, profile) = (&section.id, &profile.id);
            let message = format!("section `{id}` of profile `{profile}` has no text");
            Some(empty_section(id, message))
        }
        _ => None,
    })
}

fn empty_section(id: &str, message: String) -> Diagnostic {
    Diagnostic {
        code: DiagnosticCode::EmptySection,
        severity: Severity::Warning,
        part: Some(id.to_owned()),
        range: None,
        message,
        hint: Some("write a text for it, or remove it".to_owned()),
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}
