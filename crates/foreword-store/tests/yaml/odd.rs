//! Ways to write YAML that are rare, and right.

use std::sync::Arc;

use foreword_compose::LibraryDraft;
use foreword_store::yaml::Document;

use crate::second_reader;

/// Edits `text` and checks the bytes that come out, with another reader than ours, too.
#[track_caller]
fn becomes(text: &str, edit: impl FnOnce(&mut LibraryDraft), expected: &str) {
    let document = Document::parse(Arc::from(text)).unwrap();
    let mut draft = document.library().draft().clone();
    edit(&mut draft);
    let rewritten = document.rewrite(&draft).unwrap();
    assert_eq!(**rewritten.text(), *expected);
    assert_eq!(second_reader::read(expected), draft);
}

fn set_global_prompt(text: &'static str) -> impl FnOnce(&mut LibraryDraft) {
    move |draft| text.clone_into(&mut draft.global_prompt.as_mut().unwrap().content)
}

#[test]
fn every_style_of_text_can_be_replaced_and_what_surrounds_it_stays() {
    // Each line: what stands behind the key, and what stands there afterwards.
    let styles = [
        ("plain text", "new text"),
        ("plain text # note", "new text # note"),
        ("plain\n  text on\n\n  lines", "new text"),
        ("\"quoted\"   # note", "\"new text\"   # note"),
        ("\"quoted \\\n  on lines\"", "\"new text\""),
        ("'it''s'", "'new text'"),
        ("\n  on its own line # note", "\n  new text # note"),
        (
            "\n  # above\n  'on its own line'",
            "\n  # above\n  'new text'",
        ),
        ("|\n  block", "|-\n  new text"),
        ("|2-  # note\n    block\n\n", "|-  # note\n  new text\n\n"),
        ("|+\n     block\n\n", "|-\n     new text\n"),
        (">\n  folded\n  lines\n", "|-\n  new text\n"),
        ("\n  |\n   block", "\n  |-\n   new text"),
        ("!!str 5", "!!str new text"),
        ("!!str |\n  5", "!!str |-\n  new text"),
        ("&anchor |\n  block", "&anchor |-\n  new text"),
        ("\"\"", "\"new text\""),
        ("|\n", "|-\n  new text\n"),
        ("|+\n\n\n", "|-\n  new text\n"),
    ];
    for (before, after) in styles {
        let file = |value: &str| {
            let value = value.strip_suffix('\n').unwrap_or(value);
            format!("# top\nglobal_prompt: {value}\n# below\nprofiles: []\n").replace(": \n", ":\n")
        };
        becomes(&file(before), set_global_prompt("new text"), &file(after));
    }
}

#[test]
fn a_json_file_is_yaml_and_stays_json_like() {
    becomes(
        "{\"global_prompt\": \"a\", \"profiles\": [{\"id\": \"p\", \"sections\": []}]}\n",
        |draft| {
            draft.global_prompt.as_mut().unwrap().content = "b\nc".to_owned();
            draft.profiles[0].tools_prompt = false;
            draft.variables.insert("x".to_owned(), "y: z".to_owned());
        },
        "{\"global_prompt\": \"b\\nc\", variables: {x: \"y: z\"}, \"profiles\": [{\"id\": \"p\", tools_prompt: false, \"sections\": []}]}\n",
    );
}

#[test]
fn explicit_keys_and_quoted_keys_are_keys() {
    becomes(
        "? global_prompt\n: old\n\"profiles\":\n  - \"id\": p\n    'name': P\n",
        |draft| {
            draft.global_prompt.as_mut().unwrap().content = "new".to_owned();
            draft.profiles[0].name = "Q".to_owned();
            draft.variables.insert("x".to_owned(), "word".to_owned());
        },
        "? global_prompt\n: new\nvariables:\n  x: word\n\"profiles\":\n  - \"id\": p\n    'name': Q\n",
    );
}

#[test]
fn the_marks_around_a_document_stay() {
    becomes(
        "%YAML 1.2\n---\n# top\nglobal_prompt: a\n...\n",
        |draft| {
            draft.variables.insert("x".to_owned(), "word".to_owned());
        },
        "%YAML 1.2\n---\n# top\nglobal_prompt: a\nvariables:\n  x: word\n...\n",
    );
}

#[test]
fn the_last_key_of_a_file_leaves_an_empty_library() {
    becomes(
        "# top\n\n# about it\nglobal_prompt: a\n# end\n",
        |draft| draft.global_prompt = None,
        "# top\n\n{}\n# end\n",
    );
}

#[test]
fn an_empty_library_takes_its_first_values_as_lines() {
    let add = |draft: &mut LibraryDraft| {
        draft
            .variables
            .insert("x".to_owned(), "one\ntwo".to_owned());
    };
    becomes(
        "# top\n{}\n# end",
        add,
        "# top\nvariables:\n  x: |-\n    one\n    two\n# end",
    );
    becomes("{}", add, "variables:\n  x: |-\n    one\n    two\n");
    becomes(
        "--- {}  # none\n",
        add,
        "---   # none\nvariables:\n  x: |-\n    one\n    two\n",
    );
}

#[test]
fn a_bar_in_an_anchor_is_no_header() {
    // The other reader does not take such names.
    let text = "global_prompt: &a|b !!str |  # note\n  block\n";
    let document = Document::parse(Arc::from(text)).unwrap();
    let mut draft = document.library().draft().clone();
    set_global_prompt("new text")(&mut draft);
    let rewritten = document.rewrite(&draft).unwrap();
    assert_eq!(
        **rewritten.text(),
        *"global_prompt: &a|b !!str |-  # note\n  new text\n"
    );
}

#[test]
fn comments_that_belong_to_nothing_stay_when_their_neighbours_go() {
    becomes(
        "profiles:\n  - id: a\n  # orphan\n\n  # about b\n  - id: b\n    # in b\n\n  # orphan too\n",
        |draft| draft.profiles.truncate(1),
        "profiles:\n  - id: a\n  # orphan\n\n  # orphan too\n",
    );
}

#[test]
fn the_first_key_of_an_item_can_go() {
    becomes(
        "profiles:\n  - description: a  # note\n    id: p\n",
        |draft| draft.profiles[0].description = None,
        "profiles:\n  - id: p\n",
    );
    becomes(
        "profiles:\n  - description: a  # note\n    # about the id\n    id: p\n",
        |draft| draft.profiles[0].description = None,
        "profiles:\n  -\n    # about the id\n    id: p\n",
    );
}
