//! The library that Foreword ships.

use foreword_compose::{Request, SessionName, compose};
use foreword_store::{
    parse_library,
    yaml::{BUILTIN, DEFAULT_WORKSPACE_GUIDE, print_library},
};

#[test]
fn the_built_in_library_loads_and_prints() {
    let library = parse_library(BUILTIN).unwrap();
    let ids: Vec<&str> = library
        .draft()
        .profiles
        .iter()
        .map(|profile| profile.id.as_str())
        .collect();
    assert_eq!(
        ids,
        ["default", "developer", "writer", "analyst", "minimal"]
    );
    assert_eq!(library.default_profile().unwrap().id, "default");
    assert_eq!(
        parse_library(&print_library(library.draft())).unwrap(),
        library
    );
}

#[test]
fn every_built_in_profile_composes_without_a_problem() {
    let library = parse_library(BUILTIN).unwrap();
    for profile in &library.draft().profiles {
        let request = Request {
            profile_id: Some(&profile.id),
            ..Request::default()
        };
        let composition = compose(&library, &request).unwrap();
        assert_eq!(composition.diagnostics, [], "{}", profile.id);
        assert_eq!(
            composition.stable_prefix,
            composition.text.len(),
            "{}",
            profile.id
        );
    }
}

#[test]
fn the_workspace_guide_is_short_and_names_only_the_chat() {
    assert!(DEFAULT_WORKSPACE_GUIDE.len() < 500);
    assert!(DEFAULT_WORKSPACE_GUIDE.contains("{chat_id}"));
    let others = SessionName::ALL
        .into_iter()
        .filter(|name| *name != SessionName::ChatId);
    for name in others {
        assert!(!DEFAULT_WORKSPACE_GUIDE.contains(&format!("{{{}}}", name.as_str())));
    }
}
