//! Edits from the shell, and reading what is there.

use expect_test::expect;

use crate::support::{Place, Ran};

/// A library with a comment in every place that an edit could lose it.
const LIBRARY: &str = "\
# top
global_prompt: Be brief. # global
sections:
  # shared
  - id: safety
    name: Safety
    content: Be safe. # text
profiles:
  - id: default # the default
    is_default: true
    sections:
      - {use: safety, order: 1}
      - id: identity
        content: You are {name}.
variables:
  name: Ada # who
";

fn place() -> Place {
    let place = Place::new();
    place.write("data/system_prompts.yaml", LIBRARY);
    place
}

fn library(place: &Place) -> String {
    place.read("data/system_prompts.yaml")
}

#[test]
fn profiles_are_made_changed_and_deleted() {
    let place = place();
    place
        .run(&[
            "profiles",
            "set",
            "writer",
            "--name",
            "Writer",
            "--description",
            "Edits prose",
        ])
        .ok();
    place
        .run(&["sections", "set", "safety", "--profile", "writer"])
        .ok();
    expect![[r#"
        *  default  default  2 of 2 sections
           writer   Writer   1 of 1 sections  Edits prose
    "#]]
    .assert_eq(&place.run(&["profiles", "list"]).ok());
    place.run(&["profiles", "default", "writer"]).ok();
    place
        .run(&[
            "profiles",
            "set",
            "writer",
            "--description",
            "",
            "--tools-prompt",
            "false",
        ])
        .ok();
    expect![[r#"
        Writer (writer)
        goes without the tools prompt

        on  safety  Safety  custom  shared  order 0  8 bytes
    "#]]
    .assert_eq(&place.run(&["profiles", "show", "writer"]).ok());
    place.run(&["profiles", "delete", "default"]).ok();
    expect![[r#"
        exit 1
        --- stderr
        error: profile `default` does not exist
        hint: `foreword profiles list` shows what there is
    "#]]
    .assert_eq(&place.run(&["profiles", "delete", "default"]).to_string());
}

#[test]
fn sections_are_written_toggled_ordered_and_removed() {
    let place = place();
    place
        .run_with_input(
            &["sections", "set", "tone", "--type", "format", "--file", "-"],
            "Be kind.\nAlways.\n",
        )
        .ok();
    place
        .run(&[
            "sections",
            "set",
            "tone",
            "--profile",
            "default",
            "--order",
            "7",
        ])
        .ok();
    place.run(&["sections", "disable", "safety"]).ok();
    place
        .run(&[
            "sections",
            "set",
            "identity",
            "--profile",
            "default",
            "--name",
            "Who",
        ])
        .ok();
    expect![[r#"
        on   identity  Who     custom  inline  order 0  15 bytes
        off  safety    Safety  custom  shared  order 1  8 bytes
        on   tone      tone    format  shared  order 7  17 bytes
    "#]]
    .assert_eq(
        &place
            .run(&["sections", "list", "--profile", "default"])
            .ok(),
    );
    place
        .run(&["profiles", "order", "default", "tone", "safety", "identity"])
        .ok();
    place
        .run(&["sections", "delete", "identity", "--profile", "default"])
        .ok();
    place
        .run(&["sections", "enable", "safety", "--profile", "default"])
        .ok();
    expect![[r#"
        safety  Safety  custom  shared  in default  8 bytes
        tone    tone    format  shared  in default  17 bytes
    "#]]
    .assert_eq(&place.run(&["sections", "list"]).ok());
    expect![[r#"
        exit 1
        --- stderr
        error: section `tone` is used by `default`; remove it there first
    "#]]
    .assert_eq(&place.run(&["sections", "delete", "tone"]).to_string());
}

#[test]
fn an_edit_changes_only_its_lines() {
    let place = place();
    place
        .run(&["sections", "set", "safety", "--content", "Be very safe."])
        .ok();
    let expected = LIBRARY.replace("content: Be safe. # text", "content: Be very safe. # text");
    assert_eq!(library(&place), expected);
}

#[test]
fn what_is_shown_can_be_set_again_without_a_change() {
    let place = place();
    let shown = place.run(&["sections", "show", "safety"]).ok();
    let said = place
        .run_with_input(&["sections", "set", "safety"], &shown)
        .ok();
    assert!(said.starts_with("nothing to change"), "{said}");
    assert_eq!(library(&place), LIBRARY);
}

#[test]
fn a_text_is_never_emptied_by_accident() {
    let place = place();
    expect![[r#"
        exit 1
        --- stderr
        error: no text was given
        hint: give it with `--content TEXT`, `--file FILE`, or on stdin
    "#]]
    .assert_eq(&place.run(&["sections", "set", "safety"]).to_string());
    expect![[r#"
        exit 1
        --- stderr
        error: no text was given
        hint: give it with `--content TEXT`, `--file FILE`, or on stdin
    "#]]
    .assert_eq(&place.run_with_input(&["global", "set"], "").to_string());
    assert_eq!(library(&place), LIBRARY);
}

#[test]
fn the_texts_that_a_library_has_once_are_set_and_switched() {
    let place = place();
    place.run(&["global", "set", "--content", "Be exact."]).ok();
    place.run(&["global", "disable"]).ok();
    expect![[r#"
        {
          "global_prompt": {
            "content": "Be exact.",
            "enabled": false
          }
        }
    "#]]
    .assert_eq(&place.run(&["global", "show", "--json"]).ok());
    place
        .run_with_input(&["guide", "set"], "You are in {chat_id}.\n")
        .ok();
    assert_eq!(
        place.run(&["guide", "show"]).ok(),
        "You are in {chat_id}.\n"
    );
    place
        .run(&["variables", "set", "company", "Example Ltd"])
        .ok();
    place.run(&["variables", "delete", "name"]).ok();
    expect![[r#"
        company  Example Ltd
    "#]]
    .assert_eq(&place.run(&["variables", "list"]).ok());
    expect![[r#"
        exit 1
        --- stderr
        error: variable `nmae` does not exist
        hint: `foreword variables list` shows what there is
    "#]]
    .assert_eq(&place.run(&["variables", "delete", "nmae"]).to_string());
}

#[test]
fn undo_goes_back_one_edit_at_a_time() {
    let place = place();
    place.run(&["global", "set", "--content", "One."]).ok();
    place.run(&["global", "set", "--content", "Two."]).ok();
    place.run(&["undo"]).ok();
    assert_eq!(place.run(&["global", "show"]).ok(), "One.");
    place.run(&["undo"]).ok();
    assert_eq!(library(&place), LIBRARY);
    expect![[r#"
        exit 1
        --- stderr
        error: there is nothing to undo
    "#]]
    .assert_eq(&place.run(&["undo"]).to_string());
}

#[test]
fn unknown_ids_name_the_nearest() {
    let place = place();
    for arguments in [
        &["profiles", "show", "defualt"][..],
        &["sections", "show", "saftey"],
        &["sections", "disable", "identiy"],
        &["sections", "enable", "safety", "--profile", "nobody"],
    ] {
        let ran = place.run(arguments);
        assert_eq!(ran.code, Some(1), "{ran}");
        insta::assert_snapshot!(arguments.join("_").replace("--", ""), ran.to_string());
    }
}

#[test]
fn an_export_can_be_imported() {
    let place = place();
    let exported = place.run(&["export"]).ok();
    assert_eq!(exported, LIBRARY);
    place.write("new.yaml", &exported.replace("Be brief.", "Be short."));
    let difference = place.run(&["import", "new.yaml", "--dry-run"]).ok();
    assert!(
        difference.contains("+global_prompt: Be short. # global"),
        "{difference}"
    );
    assert_eq!(library(&place), LIBRARY);
    place.run(&["import", "new.yaml"]).ok();
    assert_eq!(library(&place), exported.replace("Be brief.", "Be short."));
    let again = place
        .run_with_input(&["import", "-"], &place.read("new.yaml"))
        .ok();
    assert!(again.starts_with("nothing to change"), "{again}");
}

#[test]
fn an_import_with_mistakes_is_refused_with_all_of_them() {
    let place = place();
    place.write(
        "new.yaml",
        "profiles:\n  - nmae: x\n  - id: a\n    sections: 3\n",
    );
    expect![[r#"
        exit 1
        --- stderr
        error: new.yaml:2:5: unknown key `nmae` in a profile; did you mean `name`?
        error: new.yaml:2:5: a profile needs the key `id`; add a line `id: …`
        error: new.yaml:4:15: `sections` must be a list, but this is a number (`3`); start every item on its own line with `- `
        hint: mend the file; the library stays as it is
    "#]].assert_eq(&place.run(&["import", "new.yaml"]).to_string());
    assert_eq!(library(&place), LIBRARY);
}

#[test]
fn fault_32_a_broken_library_stops_every_command_and_is_not_touched() {
    let broken = "profiles:\n  - id: a\n    sections: [\n";
    let place = Place::new();
    place.write("data/system_prompts.yaml", broken);
    for arguments in [
        &["serve", "--listen", "127.0.0.1:0"][..],
        &["profiles", "list"],
        &["global", "set", "--content", "x"],
        &["compose"],
        &["undo"],
        &["init"],
    ] {
        let ran = place.run(arguments);
        let expected = if arguments == ["init"] { 0 } else { 2 };
        assert_eq!(ran.code, Some(expected), "{arguments:?}: {ran}");
        assert_eq!(library(&place), broken, "{arguments:?}");
    }
    expect![[r#"
        exit 2
        --- stderr
        error: ./data/system_prompts.yaml:3:15: syntax
        hint: mend the file, which was not touched (`foreword check ./data/system_prompts.yaml` says what is wrong), or replace it with `foreword import FILE --replace-broken`
    "#]]
    .assert_eq(&place.run(&["serve"]).to_string());
}

#[test]
fn a_broken_library_is_replaced_only_when_that_is_asked_for() {
    let place = Place::new();
    place.write("data/system_prompts.yaml", "profiles: 3\n");
    place.write("new.yaml", LIBRARY);
    assert_eq!(place.run(&["import", "new.yaml"]).code, Some(2));
    assert_eq!(library(&place), "profiles: 3\n");
    place.run(&["import", "new.yaml", "--replace-broken"]).ok();
    assert_eq!(library(&place), LIBRARY);
    let kept = std::fs::read_dir(place.path("data"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().contains(".broken-"))
        .unwrap();
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "profiles: 3\n");
}

#[test]
fn a_library_that_vanished_is_not_replaced_by_the_built_in_one() {
    let place = place();
    place.run(&["profiles", "list"]).ok();
    std::fs::remove_file(place.path("data/system_prompts.yaml")).unwrap();
    let ran = place.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("is missing"), "{ran}");
}

#[test]
fn a_data_directory_of_a_newer_foreword_is_refused() {
    let place = Place::new();
    place.write("data/VERSION", "999\n");
    expect![[r#"
        exit 2
        --- stderr
        error: the data directory `./data` has version `999`, and this Foreword knows 1; use a newer Foreword, or another directory
    "#]].assert_eq(&place.run(&["serve", "--listen", "127.0.0.1:0"]).to_string());
}

#[cfg(unix)]
#[test]
fn what_never_ends_is_read_no_further_than_a_library_may_be_long() {
    let place = place();
    expect![[r#"
        exit 2
        --- stderr
        error: `/dev/zero` has more than 16 MiB, the most that a library may have
    "#]]
    .assert_eq(&place.run(&["import", "/dev/zero"]).to_string());
    let endless = std::fs::File::open("/dev/zero").unwrap();
    let output = place
        .command(&["import", "-"])
        .stdin(endless)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("stdin has more than 16 MiB"), "{said}");
    assert_eq!(library(&place), LIBRARY);
}

#[test]
fn edits_of_a_profile_that_was_mistyped_name_the_nearest() {
    let place = place();
    for arguments in [
        &["profiles", "default", "defualt"][..],
        &["profiles", "delete", "defualt"],
        &["profiles", "order", "defualt", "safety"],
        &["sections", "enable", "safety", "--profile", "defualt"],
        &["sections", "delete", "safety", "--profile", "defualt"],
        &[
            "sections",
            "set",
            "safety",
            "--profile",
            "defualt",
            "--order",
            "2",
        ],
        &["sections", "list", "--profile", "defualt"],
        &["sections", "show", "safety", "--profile", "defualt"],
    ] {
        let ran = place.run(arguments);
        assert_eq!(ran.code, Some(1), "{ran}");
        assert!(ran.stderr.contains("did you mean `default`?"), "{ran}");
    }
}

#[test]
fn a_new_section_that_is_called_almost_like_another_is_said_to_be_new() {
    let place = place();
    let set = |id: &str| {
        let set = [
            "sections",
            "set",
            id,
            "--profile",
            "default",
            "--content",
            "x",
        ];
        place.run(&set).stderr
    };
    assert_eq!(
        set("identify"),
        "note: `identify` is a new section, beside `identity`; `foreword undo` takes it back\n"
    );
    assert_eq!(set("identify"), "");
    assert_eq!(set("colours"), "");
}

#[test]
fn the_first_edit_says_that_it_begins_a_library_and_where() {
    let place = Place::new();
    expect![[r"
        exit 0
        --- stdout
        switched off the workspace guide; revision [REVISION]
        --- stderr
        note: there is no `./data/system_prompts.yaml`, so this is the built-in library
        note: wrote `./data/system_prompts.yaml`: the built-in library with this edit; if a server has another data directory, name it with `--data`
    "]]
    .assert_eq(&without_revision(&place.run(&["guide", "disable"])));
    expect![[r"
        exit 0
        --- stdout
        set the workspace guide; revision [REVISION]
        --- stderr
        note: it is switched off, so no prompt holds it; `enable` switches it on
    "]]
    .assert_eq(&without_revision(&place.run(&[
        "guide",
        "set",
        "--content",
        "Here.",
    ])));
    expect![[r"
        exit 0
        --- stdout
        switched on the workspace guide; revision [REVISION]
    "]]
    .assert_eq(&without_revision(&place.run(&["guide", "enable"])));
}

/// The revision of the built-in library differs from release to release.
fn without_revision(ran: &Ran) -> String {
    let text = ran.to_string();
    let lines = text
        .lines()
        .map(|line| match line.split_once("; revision ") {
            Some((what, _)) => format!("{what}; revision [REVISION]\n"),
            None => format!("{line}\n"),
        });
    lines.collect()
}
