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
