//! What an edit does to a file, line by line.
#![expect(
    clippy::needless_raw_string_hashes,
    reason = "this is how `UPDATE_EXPECT=1` writes them"
)]

use std::sync::Arc;

use expect_test::{Expect, expect};
use foreword_compose::{
    GlobalPrompt, LibraryDraft, Section, SectionType, SharedSection,
    library::{Place, PlaceContent},
};
use foreword_store::yaml::{Document, RewriteError};
use similar::TextDiff;

/// A file as people write it: comments in all places, block and flow style, blank lines.
const LIBRARY: &str = r#"# The prompts of Example Ltd.

global_prompt: "You work for {company}."  # legal reads this

variables:
  company: Example Ltd   # as in the register
  motto: 'Don''t panic'

sections:
  # shared ones
  - id: safety
    name: Safety
    type: constraints
    content: |  # reviewed 2026-11
      Be safe.

      Be kind.
    # description: to be written

  # how answers look
  - {id: style, name: Style, type: format, content: "Be brief."}

profiles:
  - id: developer
    name: Developer
    is_default: true
    sections:
      - use: safety
        order: 10   # after the persona
      # who it is
      - id: persona
        type: persona
        content: |+
          You write code.

      - {use: style, enabled: false}
  # short form
  - {id: short, section_ids: [safety, style]}
# the end
"#;

fn check(text: &str, edit: impl FnOnce(&mut LibraryDraft), expected: &Expect) {
    expected.assert_eq(&difference(text, &rewritten(text, edit)));
}

fn rewritten(text: &str, edit: impl FnOnce(&mut LibraryDraft)) -> String {
    let document = Document::parse(Arc::from(text)).unwrap();
    let mut draft = document.library().draft().clone();
    edit(&mut draft);
    let rewritten = document.rewrite(&draft).unwrap();
    assert_eq!(rewritten.library().draft(), &draft);
    rewritten.text().to_string()
}

/// The changed lines, with a `@` where lines are left out.
fn difference(old: &str, new: &str) -> String {
    let difference = TextDiff::from_lines(old, new);
    let mut shown = String::new();
    for group in difference.grouped_ops(1) {
        shown.push_str("@\n");
        for change in group.iter().flat_map(|op| difference.iter_changes(op)) {
            let line = format!("{}{}", change.tag(), change.value());
            let end = if change.missing_newline() {
                " (no line end)\n"
            } else {
                "\n"
            };
            shown.push_str(line.trim_end());
            shown.push_str(end);
        }
    }
    shown
}

fn text(section: &mut SharedSection, content: &str) {
    content.clone_into(&mut section.section.content);
}

fn inline(id: &str, content: &str) -> Place {
    Place {
        content: PlaceContent::Inline(Section {
            id: id.to_owned(),
            name: id.to_owned(),
            section_type: SectionType::Custom,
            content: content.to_owned(),
        }),
        enabled: true,
        order: 0,
        priority: 0,
    }
}

#[test]
fn an_unchanged_library_keeps_every_byte() {
    check(LIBRARY, |_| {}, &expect![[r#""#]]);
}

#[test]
fn a_text_changes_in_its_place_and_its_header_comment_stays() {
    check(
        LIBRARY,
        |draft| text(&mut draft.sections[0], "Be safe.\n\nBe very kind.\n"),
        &expect![[r#"
            @
 
            -      Be kind.
            +      Be very kind.
                 # description: to be written
        "#]],
    );
}

#[test]
fn a_quoted_text_that_gets_lines_moves_under_a_bar_and_keeps_its_comment() {
    check(
        LIBRARY,
        |draft| {
            draft.global_prompt = Some(GlobalPrompt {
                content: "You work for {company}.\nBe brief.".to_owned(),
                enabled: true,
            });
        },
        &expect![[r#"
            @
 
            -global_prompt: "You work for {company}."  # legal reads this
            +global_prompt: |-  # legal reads this
            +  You work for {company}.
            +  Be brief.
 
        "#]],
    );
}

#[test]
fn a_prompt_that_is_switched_off_becomes_a_mapping() {
    check(
        LIBRARY,
        |draft| draft.global_prompt.as_mut().unwrap().enabled = false,
        &expect![[r#"
            @
 
            -global_prompt: "You work for {company}."  # legal reads this
            +global_prompt:  # legal reads this
            +  content: You work for {company}.
            +  enabled: false
 
        "#]],
    );
}

#[test]
fn a_toggle_adds_one_line_or_one_entry() {
    check(
        LIBRARY,
        |draft| {
            draft.profiles[0].places[0].enabled = false;
            draft.profiles[0].places[2].order = 7;
        },
        &expect![[r#"
            @
                   - use: safety
            +        enabled: false
                     order: 10   # after the persona
            @
 
            -      - {use: style, enabled: false}
            +      - {use: style, enabled: false, order: 7}
               # short form
        "#]],
    );
}

#[test]
fn a_toggle_between_braces_changes_one_word() {
    check(
        LIBRARY,
        |draft| draft.profiles[0].places[2].enabled = true,
        &expect![[r#"
            @
 
            -      - {use: style, enabled: false}
            +      - {use: style, enabled: true}
               # short form
        "#]],
    );
}

#[test]
fn a_new_description_goes_behind_the_entry_it_follows() {
    check(
        LIBRARY,
        |draft| draft.sections[0].description = Some("For everybody".to_owned()),
        &expect![[r#"
            @
                   Be kind.
            +    description: For everybody
                 # description: to be written
        "#]],
    );
}

#[test]
fn lines_between_braces_are_quoted() {
    check(
        LIBRARY,
        |draft| text(&mut draft.sections[1], "Be brief.\nSay „é“, {company}."),
        &expect![[r#"
            @
               # how answers look
            -  - {id: style, name: Style, type: format, content: "Be brief."}
            +  - {id: style, name: Style, type: format, content: "Be brief.\nSay „é“, {company}."}
 
        "#]],
    );
}

#[test]
fn a_new_section_is_written_as_its_neighbours_are() {
    check(
        LIBRARY,
        |draft| {
            draft.sections.insert(
                1,
                SharedSection {
                    section: Section {
                        id: "sources".to_owned(),
                        name: "Sources".to_owned(),
                        section_type: SectionType::Constraints,
                        content: "Cite:\n  - books\n".to_owned(),
                    },
                    description: None,
                },
            );
        },
        &expect![[r#"
            @
 
            +  - id: sources
            +    name: Sources
            +    type: constraints
            +    content: |
            +      Cite:
            +        - books
            +
               # how answers look
        "#]],
    );
}

#[test]
fn a_new_place_behind_an_open_text_leaves_the_text_alone() {
    check(
        LIBRARY,
        |draft| {
            draft.profiles[0]
                .places
                .insert(2, inline("task", "Review."));
        },
        &expect![[r#"
            @
 
            +      - id: task
            +        content: Review.
                   - {use: style, enabled: false}
        "#]],
    );
}

#[test]
fn a_place_goes_with_its_comments() {
    check(
        LIBRARY,
        |draft| {
            draft.profiles[0].places.remove(1);
        },
        &expect![[r#"
            @
                     order: 10   # after the persona
            -      # who it is
            -      - id: persona
            -        type: persona
            -        content: |+
            -          You write code.
            -
                   - {use: style, enabled: false}
        "#]],
    );
}

#[test]
fn the_heading_of_a_list_stays_when_its_first_item_goes() {
    check(
        LIBRARY,
        |draft| {
            draft.sections.remove(0);
            draft.profiles[0].places.remove(0);
            draft.profiles[1].section_ids.remove(0);
        },
        &expect![[r#"
            @
               # shared ones
            -  - id: safety
            -    name: Safety
            -    type: constraints
            -    content: |  # reviewed 2026-11
            -      Be safe.
            -
            -      Be kind.
            -    # description: to be written
            -
               # how answers look
            @
                 sections:
            -      - use: safety
            -        order: 10   # after the persona
                   # who it is
            @
               # short form
            -  - {id: short, section_ids: [safety, style]}
            +  - {id: short, section_ids: [style]}
             # the end
        "#]],
    );
}

#[test]
fn the_last_item_leaves_brackets() {
    check(
        LIBRARY,
        |draft| draft.profiles.clear(),
        &expect![[r#"
        @
 
        -profiles:
        -  - id: developer
        -    name: Developer
        -    is_default: true
        -    sections:
        -      - use: safety
        -        order: 10   # after the persona
        -      # who it is
        -      - id: persona
        -        type: persona
        -        content: |+
        -          You write code.
        -
        -      - {use: style, enabled: false}
        -  # short form
        -  - {id: short, section_ids: [safety, style]}
        +profiles: []
         # the end
    "#]],
    );
}

#[test]
fn places_change_places_with_their_comments() {
    check(
        LIBRARY,
        |draft| draft.profiles[0].places.swap(0, 1),
        &expect![[r#"
            @
                 sections:
            -      - use: safety
            -        order: 10   # after the persona
                   # who it is
            @
 
            +      - use: safety
            +        order: 10   # after the persona
                   - {use: style, enabled: false}
        "#]],
    );
}

#[test]
fn profiles_in_different_styles_change_places() {
    check(
        LIBRARY,
        |draft| draft.profiles.swap(0, 1),
        &expect![[r#"
            @
             profiles:
            +  # short form
            +  - {id: short, section_ids: [safety, style]}
               - id: developer
            @
                   - {use: style, enabled: false}
            -  # short form
            -  - {id: short, section_ids: [safety, style]}
             # the end
        "#]],
    );
}

#[test]
fn an_id_of_the_short_form_that_gets_an_order_becomes_a_place() {
    check(
        LIBRARY,
        |draft| {
            let profile = &mut draft.profiles[1];
            let id = profile.section_ids.remove(0);
            profile.places.push(Place {
                content: PlaceContent::Shared(id),
                enabled: true,
                order: 5,
                priority: 0,
            });
        },
        &expect![[r#"
            @
               # short form
            -  - {id: short, section_ids: [safety, style]}
            +  - {id: short, sections: [{use: safety, order: 5}], section_ids: [style]}
             # the end
        "#]],
    );
}

#[test]
fn variables_come_and_go() {
    check(
        LIBRARY,
        |draft| {
            draft.variables.shift_remove("company");
            draft.variables.insert("empty".to_owned(), String::new());
            draft.variables.insert("year".to_owned(), "2026".to_owned());
        },
        &expect![[r#"
            @
             variables:
            -  company: Example Ltd   # as in the register
               motto: 'Don''t panic'
            +  empty: ""
            +  year: "2026"
 
        "#]],
    );
}

#[test]
fn windows_line_ends_are_followed() {
    let edit = |draft: &mut LibraryDraft| {
        text(&mut draft.sections[0], "One.\nTwo.\n");
        draft.profiles[0].places.push(inline("last", "a\nb"));
    };
    let file = LIBRARY.replace('\n', "\r\n");
    let rewritten = rewritten(&file, edit);
    assert_eq!(
        rewritten.matches('\n').count(),
        rewritten.matches("\r\n").count()
    );
    check(
        &file,
        edit,
        &expect![[r#"
            @
                 content: |  # reviewed 2026-11
            -      Be safe.
            -
            -      Be kind.
            +      One.
            +      Two.
                 # description: to be written
            @
                   - {use: style, enabled: false}
            +      - id: last
            +        content: |-
            +          a
            +          b
               # short form
        "#]],
    );
}

#[test]
fn a_missing_last_line_end_is_added_only_before_something_new() {
    let text = "profiles:\n- id: a\n- id: b";
    check(
        text,
        |draft| draft.profiles[0].name = "A".to_owned(),
        &expect![[r#"
            @
             - id: a
            +  name: A
             - id: b (no line end)
        "#]],
    );
    check(
        text,
        |draft| draft.profiles[1].name = "B".to_owned(),
        &expect![[r#"
            @
             - id: a
            -- id: b (no line end)
            +- id: b
            +  name: B
        "#]],
    );
}

#[test]
fn empty_values_are_filled_in() {
    check(
        "global_prompt:\nvariables: {}  # none\nsections: []\nprofiles:   # soon\n",
        |draft| {
            draft.global_prompt = Some(GlobalPrompt {
                content: "Hello.".to_owned(),
                enabled: true,
            });
            draft.variables.insert("x".to_owned(), "1".to_owned());
            draft.sections.push(SharedSection {
                section: Section {
                    id: "s".to_owned(),
                    name: "S".to_owned(),
                    section_type: SectionType::Custom,
                    content: "One.\nTwo.".to_owned(),
                },
                description: None,
            });
        },
        &expect![[r#"
            @
             global_prompt:
            -variables: {}  # none
            -sections: []
            +  content: Hello.
            +variables:  # none
            +  x: "1"
            +sections:
            +  - id: s
            +    name: S
            +    content: |-
            +      One.
            +      Two.
             profiles:   # soon
        "#]],
    );
}

fn refused(text: &str, edit: impl FnOnce(&mut LibraryDraft)) -> RewriteError {
    let document = Document::parse(Arc::from(text)).unwrap();
    let mut draft = document.library().draft().clone();
    edit(&mut draft);
    document.rewrite(&draft).unwrap_err()
}

fn aliased(anchor: &str) -> RewriteError {
    RewriteError::Aliased {
        anchor: anchor.to_owned(),
    }
}

const SHARED: &str = "\
sections:
  - &base {id: one, content: &text Hello}
  - {<<: *base, id: two}
  - id: three
    content: *text
profiles:
  - id: p
    sections: &places
      - use: one
  - id: q
    sections: *places
";

#[test]
fn an_edit_of_what_an_alias_points_to_names_the_anchor() {
    assert_eq!(
        refused(SHARED, |draft| text(&mut draft.sections[0], "x")),
        aliased("base")
    );
    assert_eq!(
        refused(SHARED, |draft| draft.profiles[0].places[0].enabled = false),
        aliased("places")
    );
    assert_eq!(
        refused(SHARED, |draft| {
            draft.sections.remove(0);
            draft.profiles.clear();
        }),
        aliased("base")
    );
}

#[test]
fn an_edit_through_an_alias_names_the_anchor() {
    assert_eq!(
        refused(SHARED, |draft| text(&mut draft.sections[2], "x")),
        aliased("text")
    );
    assert_eq!(
        refused(SHARED, |draft| draft.profiles[1].places[0].enabled = false),
        aliased("places")
    );
}

#[test]
fn an_alias_may_not_come_to_stand_above_its_anchor() {
    assert_eq!(
        refused(SHARED, |draft| draft.sections.swap(0, 2)),
        aliased("base")
    );
    assert_eq!(
        refused(SHARED, |draft| draft.profiles.swap(0, 1)),
        aliased("places")
    );
}

#[test]
fn a_merged_value_is_overruled_by_an_own_key() {
    check(
        SHARED,
        |draft| text(&mut draft.sections[1], "Bye"),
        &expect![[r#"
            @
               - &base {id: one, content: &text Hello}
            -  - {<<: *base, id: two}
            +  - {<<: *base, id: two, content: Bye}
               - id: three
        "#]],
    );
}

#[test]
fn an_anchor_without_aliases_is_no_obstacle() {
    check(
        "profiles:\n  - &p\n    id: &id p\n    name: &n P\n",
        |draft| draft.profiles[0].name = "Q".to_owned(),
        &expect![[r#"
            @
                 id: &id p
            -    name: &n P
            +    name: &n Q
        "#]],
    );
}
