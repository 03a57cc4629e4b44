use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use expect_test::{Expect, expect};

use super::*;

#[expect(clippy::needless_pass_by_value, reason = "`expect!` makes a value")]
fn check(text: &str, expected: Expect) {
    let mut shown = String::new();
    match read(text) {
        Ok(FrontMatter {
            description,
            fields,
        }) => {
            let name = text_of(&fields, NAME).unwrap();
            writeln!(shown, "name: {name:?}\ndescription: {description:?}").unwrap();
            for (key, value) in &fields {
                if key != NAME && key != DESCRIPTION {
                    writeln!(shown, "{key}: {value}").unwrap();
                }
            }
        }
        Err(fault) => writeln!(shown, "{fault}").unwrap(),
    }
    expected.assert_eq(&shown);
}

/// The description in a front matter of `lines`.
fn description(lines: &str) -> String {
    read(&format!("---\n{lines}\n---\n")).unwrap().description
}

#[test]
fn the_shortest_one() {
    check(
        "---\nname: pdf-forms\ndescription: Fills PDF forms.\n---\n\n# PDF forms\n",
        expect![[r#"
            name: Some("pdf-forms")
            description: "Fills PDF forms."
        "#]],
    );
}

#[test]
fn with_license_compatibility_metadata_and_a_list_of_tools() {
    check(
        r#"---
name: quarterly-report
description: Builds the quarterly report from the ledger. Use when the user asks for "the quarterly".
license: Complete terms in LICENSE.txt
compatibility: Needs Python 3.11+ and network access
metadata:
  author: finance-team
  version: "1.0"
  reviewed: 2025-11-03
  pages: 12
allowed-tools:
  - Bash(python:*)
  - Read
---
# Quarterly report
"#,
        expect![[r#"
            name: Some("quarterly-report")
            description: "Builds the quarterly report from the ledger. Use when the user asks for \"the quarterly\"."
            license: "Complete terms in LICENSE.txt"
            compatibility: "Needs Python 3.11+ and network access"
            metadata: {"author":"finance-team","version":"1.0","reviewed":"2025-11-03","pages":12}
            allowed-tools: ["Bash(python:*)","Read"]
        "#]],
    );
}

#[test]
fn with_tools_in_brackets_on_one_line_and_flags() {
    check(
        "---\nname: review\ndescription: 'Reviews a change; it''s strict.'\nallowed-tools: [Read, Grep, Glob]\n\
         disable-model-invocation: true\nmodel: null\ntemperature: 0.2\n---\nText",
        expect![[r#"
            name: Some("review")
            description: "Reviews a change; it's strict."
            allowed-tools: ["Read","Grep","Glob"]
            disable-model-invocation: true
            model: null
            temperature: 0.2
        "#]],
    );
}

#[test]
fn with_an_unquoted_colon_in_the_description() {
    check(
        "---\nname: changelog\ndescription: Writes changelogs. Use when: the user says \"release\", or asks what is new\n\
         license: MIT\nmetadata:\n  version: 2\n---\n# Changelog\n",
        expect![[r#"
            name: Some("changelog")
            description: "Writes changelogs. Use when: the user says \"release\", or asks what is new"
            license: "MIT"
            metadata: {"version":2}
        "#]],
    );
}

#[test]
fn with_a_folded_description() {
    check(
        "---\nname: slides\ndescription: >-\n  Makes slides from notes.\n  Use when the user mentions: slides, a deck,\n  \
         or a talk.\n\n  Not for posters.\nlicense: Apache-2.0\n---\nText\n",
        expect![[r#"
            name: Some("slides")
            description: "Makes slides from notes. Use when the user mentions: slides, a deck, or a talk.\nNot for posters."
            license: "Apache-2.0"
        "#]],
    );
}

#[test]
fn with_a_description_whose_lines_are_kept() {
    check(
        "---\nname: data-cleaning\ndescription: |\n  Cleans tables.\n\n  Use it for:\n    - CSV\n    - Excel\n  ---\n---\n# Cleaning\n",
        expect![[r#"
            name: Some("data-cleaning")
            description: "Cleans tables.\n\nUse it for:\n  - CSV\n  - Excel\n---"
        "#]],
    );
}

#[test]
fn with_other_alphabets_and_emoji() {
    check(
        "---\nname: 翻訳\ndescription: 日本語の文章を翻訳します 🌏 — „für alle“ 👩‍💻\ntags: [übersetzen, \"✨\"]\n---\n",
        expect![[r#"
            name: Some("翻訳")
            description: "日本語の文章を翻訳します 🌏 — „für alle“ 👩\u{200d}💻"
            tags: ["übersetzen","✨"]
        "#]],
    );
}

#[test]
fn with_comments_a_byte_order_mark_and_line_ends_of_windows() {
    check(
        "\u{feff}---\r\n# Who maintains this: the platform team\r\nname: deploy # as in the folder\r\ndescription: >\r\n  \
         Deploys a service.\r\n  Asks first.\r\n\r\nallowed-tools: Bash, Read\r\n---\r\n\r\n# Deploy\r\n",
        expect![[r#"
            name: Some("deploy")
            description: "Deploys a service. Asks first."
            allowed-tools: "Bash, Read"
        "#]],
    );
}

#[test]
fn with_a_description_over_several_indented_lines_and_no_last_line_end() {
    check(
        "---\nname: brand\ndescription: Applies our colours and fonts\n  to documents, and checks\n  those that are there.\n---",
        expect![[r#"
            name: Some("brand")
            description: "Applies our colours and fonts to documents, and checks those that are there."
        "#]],
    );
}

#[test]
fn with_quotes_and_escapes() {
    check(
        "---\n\"name\": \"api-docs\"\n\"description\": \"Documents APIs: paths, \\\"verbs\\\" and errors.\\nUse for OpenAPI \\u2713.\"\n---\n",
        expect![[r#"
            name: Some("api-docs")
            description: "Documents APIs: paths, \"verbs\" and errors.\nUse for OpenAPI ✓."
        "#]],
    );
}

#[test]
fn with_everything_indented_and_blank_lines_above() {
    check(
        "\n\n---  \n  name: indented\n  description: All of it is indented.\n  metadata:\n    a: {b: [1, 2]}\n---\t\n",
        expect![[r#"
            name: Some("indented")
            description: "All of it is indented."
            metadata: {"a":{"b":[1,2]}}
        "#]],
    );
}

#[test]
fn one_broken_field_leaves_the_others_as_they_are() {
    check(
        "---\nname: \"my-skill\"\ndescription: \"Use when: always\"\nargument-hint: [file] [format]\nallowed-tools:\n- Read\n- \
         Write\nmetadata:\n  a: 1\n# a comment\n---\n",
        expect![[r#"
            name: Some("my-skill")
            description: "Use when: always"
            allowed-tools: ["Read","Write"]
            metadata: {"a":1}
        "#]],
    );
}

#[test]
fn a_broken_description_is_the_text_that_stands_there() {
    // An unquoted colon, over several lines.
    assert_eq!(
        description("description: Does this.\n  Triggers: one, two.\n\n  And: more."),
        "Does this. Triggers: one, two.\nAnd: more."
    );
    // Lines that are not indented.
    assert_eq!(
        description("description: Does this: and\nthat, when: asked\nname: x"),
        "Does this: and that, when: asked"
    );
    // No blank behind the colon.
    assert_eq!(description("name:x\ndescription:Does this"), "Does this");
    // Characters that mean something in YAML.
    assert_eq!(
        description("description: *Always* use this"),
        "*Always* use this"
    );
    assert_eq!(description("description: &all of it"), "&all of it");
    assert_eq!(
        description("description: !important Use this"),
        "!important Use this"
    );
    assert_eq!(description("description: @mention aware"), "@mention aware");
    assert_eq!(description("description: `code` first"), "`code` first");
    assert_eq!(
        description("description: [beta] Does this"),
        "[beta] Does this"
    );
    assert_eq!(
        description("description: {{name}} is replaced"),
        "{{name}} is replaced"
    );
    assert_eq!(description("description: 100% - yes: no"), "100% - yes: no");
    // Quotes in quotes.
    assert_eq!(
        description("description: \"Use for \"this\" only\""),
        "Use for \"this\" only"
    );
    assert_eq!(description("description: 'It's great'"), "It's great");
    assert_eq!(
        description("description: \"This\" and \"that\""),
        "\"This\" and \"that\""
    );
    assert_eq!(description("description: \"Never closed"), "\"Never closed");
    // A block indented by tabs.
    assert_eq!(
        description("description: >-\n\tDoes\n\tthis: x"),
        "Does this: x"
    );
    assert_eq!(
        description("description: |\n\tDoes\n\tthis: x"),
        "Does\nthis: x"
    );
    // A hash in a text that is not valid otherwise.
    assert_eq!(
        description("description: Fixes: #12 and #13"),
        "Fixes: #12 and #13"
    );
}

#[test]
fn valid_descriptions_are_what_yaml_says() {
    assert_eq!(
        description("description: C# and F#   # a comment"),
        "C# and F#"
    );
    assert_eq!(description("description: \"a\n  b\n\n  c\""), "a b\nc");
    assert_eq!(description("description: |+\n  a\n  b\n\n"), "a\nb");
    assert_eq!(description("description: >\n  a\n  b\n\n  c"), "a b\nc");
    assert_eq!(
        description("{description: \"in braces\", name: x}"),
        "in braces"
    );
}

#[test]
fn names_and_descriptions_are_text_however_they_look() {
    check(
        "---\nname: 007\ndescription: 3.10\nversion: 3.10\nbig: 99999999999999999999\nhex: 0xff\nnot: .nan\n---\n",
        expect![[r#"
            name: Some("007")
            description: "3.10"
            version: 3.1
            big: "99999999999999999999"
            hex: 255
            not: ".nan"
        "#]],
    );
    check(
        "---\nname: true\ndescription: false\nbeta: True\n---\n",
        expect![[r#"
            name: Some("true")
            description: "false"
            beta: true
        "#]],
    );
}

#[test]
fn a_name_may_be_missing() {
    check(
        "---\ndescription: Does this.\nname:\n---\n",
        expect![[r#"
        name: None
        description: "Does this."
    "#]],
    );
    check(
        "---\ndescription: Does this.\nname: '  '\n---\n",
        expect![[r#"
            name: None
            description: "Does this."
        "#]],
    );
}

#[test]
fn the_last_of_two_fields_counts() {
    check(
        "---\nname: a\ndescription: first\nname: b\ndescription: last\n---\n",
        expect![[r#"
            name: Some("b")
            description: "last"
        "#]],
    );
    check(
        "---\ndescription: first\ndescription: the last: with a colon\n---\n",
        expect![[r#"
            name: None
            description: "the last: with a colon"
        "#]],
    );
}

#[test]
fn merge_keys_are_fields_and_aliases_are_not_followed() {
    check(
        "---\ndescription: Does this.\n<<: {name: merged}\n---\n",
        expect![[r#"
            name: None
            description: "Does this."
            <<: {"name":"merged"}
        "#]],
    );
    check(
        "---\nbase: &base {name: merged}\n<<: *base\ndescription: Does this.\n---\n",
        expect![[r#"
            name: None
            description: "Does this."
        "#]],
    );
}

#[test]
fn values_that_lie_too_deep_are_left_out() {
    let nested = |depth: usize| {
        let value = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        read(&format!(
            "---\ndescription: Does this.\ndeep: {value}\n---\n"
        ))
        .unwrap()
    };
    assert!(nested(DEPTH - 1).fields.contains_key("deep"));
    assert!(!nested(DEPTH).fields.contains_key("deep"));
    assert!(!nested(30_000).fields.contains_key("deep"));
    assert_eq!(nested(30_000).description, "Does this.");
}

#[test]
fn text_without_front_matter_is_refused() {
    check(
        "# A skill\n",
        expect![[r"
        `SKILL.md` does not start with a line `---`; write `---`, `name: …`, `description: …` and `---` on lines of their own above its text
    "]],
    );
    check(
        "",
        expect![[r"
        `SKILL.md` does not start with a line `---`; write `---`, `name: …`, `description: …` and `---` on lines of their own above its text
    "]],
    );
    check(
        "\n\n",
        expect![[r"
        `SKILL.md` does not start with a line `---`; write `---`, `name: …`, `description: …` and `---` on lines of their own above its text
    "]],
    );
    check(
        "----\nname: a\n",
        expect![[r"
        `SKILL.md` does not start with a line `---`; write `---`, `name: …`, `description: …` and `---` on lines of their own above its text
    "]],
    );
    check(
        "name: a\ndescription: b\n",
        expect![[r"
        `SKILL.md` does not start with a line `---`; write `---`, `name: …`, `description: …` and `---` on lines of their own above its text
    "]],
    );
}

#[test]
fn front_matter_without_an_end_is_refused() {
    check(
        "---\nname: a\ndescription: b\n\n# Text\n",
        expect![[r"
        the front matter of `SKILL.md` does not end; write a line `---` between its last field and the text
    "]],
    );
    check(
        "---",
        expect![[r"
        the front matter of `SKILL.md` does not end; write a line `---` between its last field and the text
    "]],
    );
}

#[test]
fn long_front_matter_is_refused() {
    let of = |length: usize| {
        let field = "description: ";
        format!(
            "---\n{field}{}\n---\n",
            "x".repeat(length - field.len() - 1)
        )
    };
    assert!(read(&of(FRONT_MATTER_BYTES)).is_ok());
    check(
        &of(FRONT_MATTER_BYTES + 1),
        expect![[r"
        the front matter of `SKILL.md` is longer than 65536 bytes; write a line `---` below its last field, and long texts below that
    "]],
    );
}

#[test]
fn a_missing_description_is_refused() {
    check(
        "---\n---\n",
        expect![[r"
        the front matter of `SKILL.md` has no `description`; write `description: …` with what the skill does and when to use it
    "]],
    );
    check(
        "---\nname: a\n---\n",
        expect![[r"
        the front matter of `SKILL.md` has no `description`; write `description: …` with what the skill does and when to use it
    "]],
    );
    check(
        "---\nname: a\ndescription:\n---\n",
        expect![[r"
        the front matter of `SKILL.md` has no `description`; write `description: …` with what the skill does and when to use it
    "]],
    );
    check(
        "---\nname: a\ndescription: ' '\n---\n",
        expect![[r"
        the front matter of `SKILL.md` has no `description`; write `description: …` with what the skill does and when to use it
    "]],
    );
    check(
        "---\nname: a\ndescription: >-\n\n---\n",
        expect![[r"
        the front matter of `SKILL.md` has no `description`; write `description: …` with what the skill does and when to use it
    "]],
    );
}

#[test]
fn a_list_is_no_description() {
    check(
        "---\ndescription: [TODO]\n---\n",
        expect![[r"
        `description` in the front matter of `SKILL.md` is no text; put all of it in quotes, or indented under `description: >-`
    "]],
    );
    check(
        "---\ndescription:\n  Use when: asked\n---\n",
        expect![[r"
        `description` in the front matter of `SKILL.md` is no text; put all of it in quotes, or indented under `description: >-`
    "]],
    );
    check(
        "---\nname: [a]\ndescription: b\n---\n",
        expect![[r"
        `name` in the front matter of `SKILL.md` is no text; put all of it in quotes, or indented under `name: >-`
    "]],
    );
}

#[test]
fn what_cannot_be_read_in_any_way_is_refused() {
    check(
        "---\nname: a: b\nDescription: Does this\n---\n",
        expect![[r"
            the front matter of `SKILL.md` is not valid YAML (line 2: mapping values are not allowed in this context), and no line `description: …` was found in it; write one, with its text in quotes
        "]],
    );
    check(
        "---\njust text\n---\n",
        expect![[r"
        the front matter of `SKILL.md` is not valid YAML (line 2: there are no fields `key: value`), and no line `description: …` was found in it; write one, with its text in quotes
    "]],
    );
    check(
        "---\n- a\n- b\n---\n",
        expect![[r"
        the front matter of `SKILL.md` is not valid YAML (line 2: there are no fields `key: value`), and no line `description: …` was found in it; write one, with its text in quotes
    "]],
    );
    check(
        "\n---\nname: a\n\t- : {\n---\n",
        expect![[r"
        the front matter of `SKILL.md` is not valid YAML (line 3: while scanning a plain scalar, found a tab), and no line `description: …` was found in it; write one, with its text in quotes
    "]],
    );
    check(
        "---\nname: a\0b\ndescription: [\n---\n",
        expect![[r#"
        name: Some("a\0b")
        description: "["
    "#]],
    );
}

#[test]
fn nothing_makes_it_slow_or_panic() {
    let starts = [
        "[", "{", "- ", "? ", "a:\n ", "\"", "'", "|\n", ": ", "&a ", "*a ", "!a ", "#\n", "\t",
        "\u{feff}", "%A\n",
    ];
    for start in starts {
        for lines in ["", "description: x\n", "description: "] {
            let repeated = start.repeat(FRONT_MATTER_BYTES / start.len() - 20);
            let started = Instant::now();
            // Refused or not, but soon: it takes a tenth of a second at most.
            let _ = read(&format!("---\n{lines}{repeated}\n---\n"));
            assert!(started.elapsed() < Duration::from_secs(5), "{start:?}");
        }
    }
}
