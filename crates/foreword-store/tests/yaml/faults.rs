//! Faults of the system that came before, which must not come back.

use std::sync::Arc;

use foreword_store::{
    parse_library,
    yaml::{Document, RewriteError},
};

const SEED: &str = "\
# system_prompts.yaml
profiles:
  - id: default
    name: Default Assistant
    description: General-purpose AI assistant
    is_default: true
    sections:
      - id: identity
        name: Identity
        type: persona
        content: \"You are a helpful AI assistant.\"
        enabled: true
        order: 0
";

#[test]
fn fault_32_a_broken_file_is_refused_whole() {
    let broken = format!("{SEED}  - id: second\n    sections: not a list\n");
    let errors = parse_library(&broken).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert_eq!((errors[0].line, errors[0].column), (15, 15));
    assert_eq!(errors[0].pointer.as_deref(), Some("/profiles/1/sections"));
}

#[test]
fn fault_34_inline_sections_load() {
    let library = parse_library(SEED).unwrap();
    let profile = library.profile("default").unwrap();
    let places: Vec<_> = library.places(profile).collect();
    assert_eq!(places.len(), 1);
    assert_eq!(places[0].section.content, "You are a helpful AI assistant.");
    assert!(places[0].enabled && !places[0].shared);
}

#[test]
fn fault_35_writing_what_was_read_changes_no_byte() {
    let document = Document::parse(Arc::from(SEED)).unwrap();
    let rewritten = document.rewrite(document.library().draft()).unwrap();
    assert_eq!(**rewritten.text(), *SEED);
}

#[test]
fn fault_39_a_wrong_type_is_refused_with_its_place_and_an_invalid_draft_is_never_written() {
    let errors = parse_library(&SEED.replace("enabled: true", "enabled: \"no\"")).unwrap_err();
    assert_eq!(
        errors[0].in_full(),
        "12:18: `enabled` must be `true` or `false`, but this is the text `no`; \
         write `true` or `false` without quotes"
    );
    let document = Document::parse(Arc::from(SEED)).unwrap();
    let mut draft = document.library().draft().clone();
    draft.profiles.push(draft.profiles[0].clone());
    assert!(matches!(
        document.rewrite(&draft),
        Err(RewriteError::Faults(_))
    ));
}
