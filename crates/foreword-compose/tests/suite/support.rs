//! Short ways to say what a test composes, and one way to see all that comes out.

use expect_test::Expect;
use foreword_compose::{
    Composition, ContextBlock, Diagnostic, GlobalPrompt, Library, LibraryDraft, Place, Profile,
    Request, Section, SectionType, Severity, SharedSection, Trust, compose, library::PlaceContent,
};

/// Composes and compares all that is known about the result.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro `expect!` makes a value"
)]
pub(crate) fn check(draft: LibraryDraft, request: Request<'_>, expect: Expect) {
    let library = Library::new(draft).expect("the library of the test is valid");
    let seen = match compose(&library, &request) {
        Ok(composition) => describe(&composition),
        Err(error) => format!("error: {error}\n"),
    };
    expect.assert_eq(&seen);
}

fn describe(composition: &Composition) -> String {
    let text = composition.text.escape_debug().to_string();
    let mut lines = vec![text.replace("\\n", "\n"), "---".to_owned()];
    for part in &composition.parts {
        let Some(text) = composition.text.get(part.range.clone()) else {
            panic!("{part:?} does not lie in the text");
        };
        let (range, source, id) = (&part.range, part.source.as_str(), &part.id);
        let first_line = text.lines().find(|line| !line.is_empty());
        let first_line = first_line.unwrap_or_default();
        let stability = part.stability;
        lines.push(format!(
            "{range:?} {source} {id} {stability:?}: {first_line}"
        ));
    }
    lines.push(format!("stable: {}", composition.stable_prefix));
    if !composition.unresolved.is_empty() {
        lines.push(format!("unresolved: {}", composition.unresolved.join(", ")));
    }
    lines.push(describe_diagnostics(&composition.diagnostics));
    lines.join("\n")
}

/// One diagnostic a line, with its hint below.
pub(crate) fn describe_diagnostics(diagnostics: &[Diagnostic]) -> String {
    let describe = |diagnostic: &Diagnostic| {
        let severity = match diagnostic.severity {
            Severity::Info => "info",
            Severity::Warning => "warning",
        };
        let code = diagnostic.code.as_str();
        let part = diagnostic.part.iter().map(|part| format!(" {part}"));
        let range = diagnostic.range.iter().map(|range| format!(" {range:?}"));
        let place: String = part.chain(range).collect();
        let hint = diagnostic
            .hint
            .iter()
            .map(|hint| format!("  hint: {hint}\n"));
        let hint: String = hint.collect();
        format!("{severity} {code}{place}: {}\n{hint}", diagnostic.message)
    };
    diagnostics.iter().map(describe).collect()
}

/// A library with one profile `p` that holds these places.
pub(crate) fn library(places: Vec<Place>) -> LibraryDraft {
    LibraryDraft {
        profiles: vec![profile("p", places)],
        ..LibraryDraft::default()
    }
}

/// A library with nothing but a global prompt.
pub(crate) fn global(content: &str) -> LibraryDraft {
    LibraryDraft {
        global_prompt: Some(GlobalPrompt {
            content: content.to_owned(),
            enabled: true,
        }),
        ..LibraryDraft::default()
    }
}

pub(crate) fn profile(id: &str, places: Vec<Place>) -> Profile {
    Profile {
        id: id.to_owned(),
        name: id.to_owned(),
        description: None,
        is_default: false,
        tools_prompt: true,
        places,
        section_ids: Vec::new(),
    }
}

/// An inline section.
pub(crate) fn inline(id: &str, content: &str) -> Place {
    Place {
        content: PlaceContent::Inline(section(id, content)),
        enabled: true,
        order: 0,
        priority: 0,
    }
}

/// A place that uses a shared section.
pub(crate) fn uses(id: &str) -> Place {
    Place {
        content: PlaceContent::Shared(id.to_owned()),
        ..inline(id, "")
    }
}

pub(crate) fn shared(id: &str, content: &str) -> SharedSection {
    SharedSection {
        section: section(id, content),
        description: None,
    }
}

fn section(id: &str, content: &str) -> Section {
    Section {
        id: id.to_owned(),
        name: id.to_owned(),
        section_type: SectionType::Custom,
        content: content.to_owned(),
    }
}

/// A context block in other people's words.
pub(crate) fn foreign(text: &str) -> ContextBlock<'_> {
    ContextBlock {
        id: "note".into(),
        name: "Note".into(),
        text: text.into(),
        trust: Trust::Foreign,
    }
}

/// A context block in the library's own words.
pub(crate) fn guide(text: &str) -> ContextBlock<'_> {
    ContextBlock {
        id: "workspace-guide".into(),
        name: "Workspace guide".into(),
        text: text.into(),
        trust: Trust::Library,
    }
}
