//! What makes a draft no library.

use expect_test::{Expect, expect};
use foreword_compose::{Library, LibraryDraft};

use crate::support::{inline, profile, shared, uses};

#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro `expect!` makes a value"
)]
fn check(draft: LibraryDraft, expect: Expect) {
    let faults = Library::new(draft).expect_err("the draft has faults");
    let seen: Vec<String> = faults
        .iter()
        .map(|fault| {
            let hint = fault.hint.as_deref().unwrap_or("none");
            format!(
                "{} {}: {}\n  hint: {hint}\n",
                fault.pointer, fault.code, fault.message
            )
        })
        .collect();
    expect.assert_eq(&seen.concat());
}

#[test]
fn all_faults_are_found_at_once_in_the_order_of_the_file() {
    let mut a = profile(
        "a",
        vec![
            uses("safety"),
            uses("saftey"),
            uses("somewhere"),
            inline("safety", ""),
            inline("no spaces", ""),
            inline("own", ""),
            inline("own", ""),
        ],
    );
    a.is_default = true;
    a.section_ids = ["own", "style", "Style", "safety"]
        .map(str::to_owned)
        .to_vec();
    let mut b = profile("a", vec![]);
    b.is_default = true;
    let draft = LibraryDraft {
        variables: ["company", "chat_id", "Company", "a/b~c", "preview_url", ""]
            .map(|name| (name.to_owned(), String::new()))
            .into_iter()
            .collect(),
        sections: vec![
            shared("safety", ""),
            shared("style", ""),
            shared("-x", ""),
            shared("safety", ""),
        ],
        profiles: vec![a, b, profile("", vec![])],
        ..LibraryDraft::default()
    };
    check(
        draft,
        expect![[r#"
            /variables/chat_id reserved-variable-name: variable name `chat_id` belongs to the session
              hint: choose another name; the value of this one comes with each session
            /variables/Company invalid-variable-name: `Company` cannot be a variable name
              hint: use a lower-case letter, then lower-case letters, digits and `_`
            /variables/a~1b~0c invalid-variable-name: `a/b~c` cannot be a variable name
              hint: use a lower-case letter, then lower-case letters, digits and `_`
            /variables/preview_url reserved-variable-name: variable name `preview_url` belongs to the session
              hint: choose another name; the value of this one comes with each session
            /variables/ invalid-variable-name: `` cannot be a variable name
              hint: use a lower-case letter, then lower-case letters, digits and `_`
            /sections/2/id invalid-id: `-x` cannot be an id
              hint: use a letter or digit, then letters, digits, `.`, `_` and `-`, at most 64 in all
            /sections/3/id duplicate-id: section id `safety` is taken by `/sections/0`
              hint: give each shared section an id of its own
            /profiles/0/sections/1/use unknown-section: there is no shared section `saftey`
              hint: did you mean `safety`?
            /profiles/0/sections/2/use unknown-section: there is no shared section `somewhere`
              hint: add it under `sections`, or write the section here with an `id`
            /profiles/0/sections/3/id inline-id-taken: section id `safety` is taken by the shared section `/sections/0`
              hint: write `use` instead of `id` to use the shared section, or choose another id
            /profiles/0/sections/4/id invalid-id: `no spaces` cannot be an id
              hint: use a letter or digit, then letters, digits, `.`, `_` and `-`, at most 64 in all
            /profiles/0/sections/6/id duplicate-place: section `own` stands in this profile more than once
              hint: keep one of the places
            /profiles/0/section_ids/0 unknown-section: there is no shared section `own`
              hint: add it under `sections`, or write the section here with an `id`
            /profiles/0/section_ids/2 unknown-section: there is no shared section `Style`
              hint: did you mean `style`?
            /profiles/0/section_ids/3 duplicate-place: section `safety` stands in this profile more than once
              hint: keep one of the places
            /profiles/1/id duplicate-id: profile id `a` is taken by `/profiles/0`
              hint: give each profile an id of its own
            /profiles/1/is_default second-default: profile `a` is a second default beside `a`
              hint: mark one profile only as `is_default`
            /profiles/2/id invalid-id: `` cannot be an id
              hint: use a letter or digit, then letters, digits, `.`, `_` and `-`, at most 64 in all
        "#]],
    );
}

#[test]
fn ids_are_up_to_64_bytes_of_a_small_alphabet() {
    let accepted = ["a", "9", "A.b_c-d", &"x".repeat(64)];
    let refused = ["", ".a", "_a", "a b", "ä", "a/b", "a\n", &"x".repeat(65)];
    let is_accepted = |id: &str| {
        Library::new(LibraryDraft {
            profiles: vec![profile(id, vec![inline(id, "")])],
            ..LibraryDraft::default()
        })
        .is_ok()
    };
    assert_eq!(accepted.map(is_accepted), [true; 4]);
    assert_eq!(refused.map(is_accepted), [false; 8]);
}

#[test]
fn one_section_can_stand_in_many_profiles_but_once_in_each() {
    let mut short = profile("short", vec![]);
    short.section_ids = vec!["safety".to_owned(), "safety".to_owned()];
    let draft = LibraryDraft {
        sections: vec![shared("safety", "Be safe.")],
        profiles: vec![
            profile("a", vec![uses("safety")]),
            profile("b", vec![uses("safety"), inline("own", "")]),
            profile("c", vec![inline("own", "")]),
            short,
        ],
        ..LibraryDraft::default()
    };
    check(
        draft,
        expect![[r#"
        /profiles/3/section_ids/1 duplicate-place: section `safety` stands in this profile more than once
          hint: keep one of the places
    "#]],
    );
}

#[test]
fn a_hostile_value_cannot_flood_or_break_a_message() {
    let draft = LibraryDraft {
        profiles: vec![profile(
            &format!("a\n\u{1b}[31m{}", "x".repeat(1_000)),
            vec![],
        )],
        ..LibraryDraft::default()
    };
    check(
        draft,
        expect![[r#"
        /profiles/0/id invalid-id: `a\n\u{1b}[31mxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…` cannot be an id
          hint: use a letter or digit, then letters, digits, `.`, `_` and `-`, at most 64 in all
    "#]],
    );
}

#[test]
fn faults_beyond_a_thousand_are_counted_only() {
    let mut flood = profile("p", vec![]);
    flood.section_ids = vec!["a".to_owned(); 100_000];
    let draft = LibraryDraft {
        profiles: vec![flood],
        ..LibraryDraft::default()
    };
    let faults = Library::new(draft).expect_err("the draft has faults");
    assert_eq!(faults.len(), 1_001);
    assert_eq!(faults[1_000].message, "99000 more faults are not listed");
}
