//! What people read who made a mistake in their file. The files are in `tests/broken`, one for each kind of mistake.

use std::fmt::Write as _;

use foreword_store::parse_library;

/// All mistakes of `text`, one below the other, as a command line shows them.
fn mistakes(text: &str) -> String {
    let errors = parse_library(text).expect_err("the file is broken");
    let mut shown = String::new();
    for error in errors {
        writeln!(
            shown,
            "{}\n    [{} at {}]",
            error.in_full(),
            error.code,
            error.pointer.as_deref().unwrap_or("-")
        )
        .unwrap();
    }
    shown
}

macro_rules! broken_files {
    ($($name:ident: $file:literal,)*) => {
        $(
            #[test]
            fn $name() {
                let text = include_str!(concat!("../broken/", $file, ".yaml"));
                insta::assert_snapshot!($file, mistakes(text), text);
            }
        )*
    };
}

broken_files! {
    unknown_keys_come_with_the_nearest_known_one: "unknown-keys",
    values_of_a_wrong_type_say_what_they_are: "wrong-types",
    unknown_section_types_come_with_the_nearest_known_one: "unknown-types",
    keys_that_are_there_twice_name_both_lines: "duplicate-keys",
    ids_that_are_there_twice_are_named: "duplicate-ids",
    references_to_nothing_come_with_the_nearest_section: "unknown-references",
    missing_keys_are_named: "missing-keys",
    names_that_cannot_be_names_say_what_can: "names",
    a_tab_is_named_a_tab: "tab",
    a_colon_in_a_text_asks_for_quotes: "colon-in-text",
    a_quote_that_is_never_closed_is_pointed_at: "unclosed-quote",
    a_wrong_indentation_is_pointed_at: "indentation",
    a_second_document_is_pointed_at: "two-documents",
    an_alias_of_nothing_is_pointed_at: "aliases",
    merges_of_nothing_and_foreign_tags_are_named: "merges-and-tags",
}

#[test]
fn mistakes_come_in_the_order_of_their_lines() {
    let errors = parse_library(include_str!("../broken/wrong-types.yaml")).unwrap_err();
    assert!(errors.is_sorted_by_key(|error| (error.line, error.column)));
    assert!(errors.len() > 5);
}

#[test]
fn a_place_is_counted_in_characters() {
    let errors = parse_library("profiles: [{id: a, name: \"é🙂\", colour: blue}]\n").unwrap_err();
    assert_eq!((errors[0].line, errors[0].column), (1, 32));
}

#[test]
fn mistakes_of_form_and_of_meaning_come_together_and_none_is_made_up() {
    let text = "\
sections:
  - idd: lost
    content: x
profiles:
  - id: a
    sections:
      - {id: b, content: x}
      - {id: b}
      - {use: lost}
";
    insta::assert_snapshot!(mistakes(text));
}
