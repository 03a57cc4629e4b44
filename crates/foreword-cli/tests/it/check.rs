//! `foreword check`

use std::{fs, path::Path};

use expect_test::expect;

use crate::support::Place;

#[test]
fn each_broken_file_is_reported_with_places_and_hints() {
    let broken = Path::new(env!("CARGO_MANIFEST_DIR")).join("../foreword-store/tests/broken");
    let mut files: Vec<_> = fs::read_dir(broken)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 10, "only {} broken files", files.len());
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let place = Place::new();
        place.write(name, &fs::read_to_string(&file).unwrap());
        let ran = place.run(&["check", name]);
        assert_eq!(ran.code, Some(1), "{name}: {ran}");
        insta::assert_snapshot!(name.trim_end_matches(".yaml"), ran.to_string());
    }
}

#[test]
fn of_very_many_mistakes_it_is_said_that_there_may_be_more() {
    let place = Place::new();
    let sections = "  - {}\n".repeat(600);
    place.write("many.yaml", &format!("sections:\n{sections}"));
    let ran = place.run(&["check", "many.yaml"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stdout.contains("many.yaml: at least 500 errors, "),
        "{ran}"
    );
}

const DOUBTFUL: &str = "\
variables:
  company: Example Ltd
sections:
  - id: safety
    content: Be safe.
profiles:
  - id: default
    sections:
      - id: empty
        content: ''
";

#[test]
fn doubtful_things_are_shown_with_their_places_and_do_not_fail() {
    let place = Place::new();
    place.write("library.yaml", DOUBTFUL);
    expect![[r#"
        exit 0
        --- stdout
        library.yaml:2:3: warning: no text uses the variable `company`
          hint: write `{company}` where its value belongs, or remove it
        library.yaml:4:5: warning: no profile uses the shared section `safety`
          hint: add `{use: safety}` to a profile, or remove the section
        library.yaml:9:9: warning: section `empty` of profile `default` has no text
          hint: write a text for it, or remove it
        library.yaml: 0 errors, 3 warnings, 0 notes
    "#]]
    .assert_eq(&place.run(&["check", "library.yaml"]).to_string());
}

#[test]
fn scripts_get_json() {
    let place = Place::new();
    place.write("library.yaml", "profiles:\n  - id: a\n    nmae: x\n");
    let ran = place.run(&["check", "library.yaml", "--json"]);
    assert_eq!(ran.code, Some(1));
    insta::assert_snapshot!(ran.stdout);
}

#[test]
fn without_a_file_the_library_of_the_data_directory_is_checked() {
    let place = Place::new();
    expect![[r#"
        exit 0
        --- stdout
        built-in library: 0 errors, 0 warnings, 0 notes
    "#]]
    .assert_eq(&place.run(&["check"]).to_string());
    assert!(!place.path("data").exists(), "checking made something");
    place.write("data/system_prompts.yaml", "profiles: 3\n");
    expect![[r#"
        exit 1
        --- stdout
        ./data/system_prompts.yaml:1:11: error: `profiles` must be a list, but this is a number (`3`)
          hint: start every item on its own line with `- `
        ./data/system_prompts.yaml: 1 error, 0 warnings, 0 notes
    "#]].assert_eq(&place.run(&["check"]).to_string());
}

const ALMOST: &str = r"global_prompt: |
  You work for {compnay}. It is {Date}, {date}.
  `${compnay}` and {data} are code, \{compnay} is text.
variables:
  company: Example Ltd
sections:
  - id: shared
    content: 'Ask {company }, then {user_nmae}. {}{{'
profiles:
  - id: default
    sections:
      - {use: shared}
      - {id: off, content: 'Chat {chat_id}', enabled: false}
      - {id: 'on', content: 'Chat {company} {chat_id} {chat_id}'}
workspace_guide:
  content: This is {chat_id}.
";

#[test]
fn words_that_are_almost_placeholders_and_placeholders_that_stand_too_early_are_shown() {
    let place = Place::new();
    place.write("library.yaml", ALMOST);
    expect![[r#"
        exit 0
        --- stdout
        library.yaml:2:16: warning: `{compnay}` in the global prompt is no placeholder and stays as it is written
          hint: did you mean `{company}`?
        library.yaml:2:33: warning: `{Date}` in the global prompt is no placeholder and stays as it is written
          hint: did you mean `{date}`?
        library.yaml:2:41: warning: `{date}` in the global prompt makes the prompt differ between sessions from there on
          hint: move it to the workspace guide, which comes last, so that providers can cache what stands before it
        library.yaml:8:19: warning: `{company }` in section `shared` is no placeholder and stays as it is written
          hint: did you mean `{company}`?
        library.yaml:8:36: warning: `{user_nmae}` in section `shared` is no placeholder and stays as it is written
          hint: did you mean `{user_name}`?
        library.yaml:14:45: warning: `{chat_id}` in section `on` of profile `default` makes the prompt differ between sessions from there on
          hint: move it to the workspace guide, which comes last, so that providers can cache what stands before it
        library.yaml: 0 errors, 6 warnings, 0 notes
    "#]].assert_eq(&place.run(&["check", "library.yaml"]).to_string());
    let shown = place.run(&["check", "library.yaml", "--json"]).json();
    let codes: Vec<&str> = shown["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|doubt| doubt["code"].as_str().unwrap())
        .collect();
    assert!(codes.contains(&"unknown-placeholder"), "{codes:?}");
    assert!(codes.contains(&"unstable-prefix"), "{codes:?}");
}

#[test]
fn a_library_without_profiles_is_doubtful() {
    let place = Place::new();
    place.write("library.yaml", "global_prompt: Be brief.\nprofiles: []\n");
    expect![[r#"
        exit 0
        --- stdout
        library.yaml:2:11: warning: the library has no profiles, so prompts hold the global prompt and the workspace guide only
          hint: write one: `- id: default` with its `sections`
        library.yaml: 0 errors, 1 warning, 0 notes
    "#]].assert_eq(&place.run(&["check", "library.yaml"]).to_string());
}

#[test]
fn a_file_that_cannot_be_read_is_said_in_plain_words() {
    let place = Place::new();
    place.write("latin.yaml", "x");
    std::fs::write(place.path("latin.yaml"), b"global_prompt: caf\xe9\n").unwrap();
    expect![[r#"
        exit 2
        --- stderr
        error: there is no file `nofile`
    "#]]
    .assert_eq(&place.run(&["check", "nofile"]).to_string());
    expect![[r#"
        exit 2
        --- stderr
        error: `.` is a directory, not a file
    "#]]
    .assert_eq(&place.run(&["check", "."]).to_string());
    expect![[r#"
        exit 2
        --- stderr
        error: `latin.yaml` is not UTF-8 text from line 1 on
        hint: save it as UTF-8
    "#]]
    .assert_eq(&place.run(&["check", "latin.yaml"]).to_string());
}

#[test]
fn what_keeps_serve_from_starting_keeps_check_from_saying_that_all_is_well() {
    let place = Place::new();
    place.write("data/library.seen", "");
    expect![[r#"
        exit 2
        --- stderr
        error: the library file `./data/system_prompts.yaml` is missing, but was there before; put it back, or delete `./data/library.seen` to start with the built-in library
    "#]].assert_eq(&place.run(&["check"]).to_string());
    assert_eq!(place.run(&["serve"]).code, Some(2));

    let place = Place::new();
    place.write("data/VERSION", "999\n");
    expect![[r#"
        exit 2
        --- stderr
        error: the data directory `./data` has version `999`, and this Foreword knows 1; use a newer Foreword, or another directory
    "#]].assert_eq(&place.run(&["check"]).to_string());
    assert_eq!(place.run(&["serve"]).code, Some(2));

    let place = Place::new();
    place.write("data/link.key", "short");
    expect![[r#"
        exit 2
        --- stdout
        built-in library: 0 errors, 0 warnings, 0 notes
        --- stderr
        error: `./data/link.key` is not a link key
        hint: `foreword links rotate` makes a new one; links handed out before stop working
    "#]]
    .assert_eq(&place.run(&["check"]).to_string());
    assert_eq!(
        place.run(&["serve", "--listen", "127.0.0.1:0"]).code,
        Some(2)
    );

    let place = Place::new();
    place.write("data", "a file");
    let checked = place.run(&["check"]);
    assert_eq!(checked.code, Some(2), "{checked}");
    assert_eq!(place.run(&["serve"]).code, Some(2));
}
