//! Which parts there are, in which order, and how they are joined.

use expect_test::expect;
use foreword_compose::{LibraryDraft, Request, SessionName, SessionValues};

use crate::support::{check, foreign, global, guide, inline, library, profile, shared, uses};

#[test]
fn fault_31_an_unknown_profile_is_an_error_that_names_it() {
    let draft = LibraryDraft {
        profiles: vec![profile("default", vec![]), profile("writer", vec![])],
        ..global("Rules.")
    };
    let request = Request {
        profile_id: Some("Default"),
        ..Request::default()
    };
    check(
        draft,
        request,
        expect![[r#"
        error: profile `Default` does not exist; known profiles: `default`, `writer`
    "#]],
    );
}

#[test]
fn fault_31_an_override_does_not_hide_an_unknown_profile() {
    let request = Request {
        profile_id: Some("writer"),
        system_override: Some("Only this."),
        ..Request::default()
    };
    check(
        library(vec![]),
        request,
        expect![[r#"
        error: profile `writer` does not exist; known profiles: `p`
    "#]],
    );
}

#[test]
fn an_unknown_profile_in_a_library_without_profiles_is_an_error_too() {
    let request = Request {
        profile_id: Some("writer"),
        ..Request::default()
    };
    check(
        global("Rules."),
        request,
        expect![[r#"
        error: profile `writer` does not exist; the library has no profiles
    "#]],
    );
}

#[test]
fn parts_come_as_global_tools_sections_context() {
    let draft = LibraryDraft {
        sections: vec![shared("safety", "Be safe."), shared("style", "Be brief.")],
        profiles: vec![{
            let mut profile = profile("p", vec![inline("late", "Late."), inline("own", "Own.")]);
            profile.places[0].order = 7;
            profile.places[1].priority = 3;
            profile.section_ids = vec!["style".to_owned(), "safety".to_owned()];
            profile
        }],
        ..global("Rules.")
    };
    let request = Request {
        tools_prompt: "## Tools",
        context: vec![foreign("Likes tea."), guide("Files.")],
        ..Request::default()
    };
    check(
        draft,
        request,
        expect![[r#"
        Rules.

        ## Tools

        Own.

        Late.

        Be brief.

        Be safe.

        Likes tea.

        Files.
        ---
        0..6 global global Static: Rules.
        8..16 tools tools Static: ## Tools
        18..22 section own Static: Own.
        24..29 section late Static: Late.
        31..40 section style Static: Be brief.
        42..50 section safety Static: Be safe.
        52..62 context note Session: Likes tea.
        64..70 context workspace-guide Session: Files.
        stable: 52
    "#]],
    );
}

#[test]
fn a_profile_can_go_without_the_tools_prompt() {
    let mut draft = library(vec![inline("own", "Own.")]);
    draft.profiles[0].tools_prompt = false;
    let request = Request {
        tools_prompt: "## Tools",
        ..Request::default()
    };
    check(
        draft,
        request,
        expect![[r#"
        Own.
        ---
        0..4 section own Static: Own.
        stable: 4
    "#]],
    );
}

#[test]
fn the_default_is_the_marked_profile() {
    let mut draft = LibraryDraft {
        profiles: vec![
            profile("first", vec![inline("s", "from first")]),
            profile("second", vec![inline("s", "from second")]),
        ],
        ..LibraryDraft::default()
    };
    draft.profiles[1].is_default = true;
    check(
        draft,
        Request::default(),
        expect![[r#"
        from second
        ---
        0..11 section s Static: from second
        stable: 11
    "#]],
    );
}

#[test]
fn an_override_is_the_prompt_byte_for_byte() {
    let request = Request {
        system_override: Some("\r\n  Only {chat_id}. \r\n"),
        session: SessionValues::default().with(SessionName::ChatId, Some("c1")),
        budget: Some(10),
        ..Request::default()
    };
    check(
        global("Rules."),
        request,
        expect![[r#"
        \r
          Only {chat_id}. \r

        ---
        0..22 override override Session:   Only {chat_id}. 
        stable: 0
        warning too-long override 10..22: the prompt has 22 bytes, 12 more than the budget of 10
          hint: shorten or disable a part; the largest is `override` with 22 bytes
    "#]],
    );
}

#[test]
fn an_override_of_white_space_is_none() {
    let request = Request {
        system_override: Some(" \u{2003}\n"),
        ..Request::default()
    };
    check(
        global("Rules."),
        request,
        expect![[r#"
        Rules.
        ---
        0..6 global global Static: Rules.
        stable: 6
    "#]],
    );
}

#[test]
fn fault_37_blank_parts_leave_no_run_of_empty_lines_and_ends_are_trimmed() {
    let draft = library(vec![
        inline("blank", " \r\n\t\n"),
        inline("one", "\n \u{2003}\n  One\n\n\n  inside.\u{a0}\n\n"),
        inline("empty", ""),
        inline("two", "Two\r\rby CR\r\nand CRLF.\r\n"),
    ]);
    let request = Request {
        tools_prompt: "\n",
        context: vec![foreign("\n\n"), foreign("\nThree.\n"), foreign("")],
        ..Request::default()
    };
    check(
        draft,
        request,
        expect![[r#"
          One


          inside.

        Two

        by CR
        and CRLF.

        Three.
        ---
        0..17 section one Static:   One
        19..39 section two Static: Two
        41..47 context note Session: Three.
        stable: 41
        info empty-section blank 0..0: section `blank` has no text here and is left out
          hint: write a text for it, or disable it
        info empty-section empty 17..17: section `empty` has no text here and is left out
          hint: write a text for it, or disable it
    "#]],
    );
}

#[test]
fn a_line_separator_is_white_space_but_no_line_end() {
    check(
        global("\u{2028}\u{b}\u{85}Text\u{2028}"),
        Request::default(),
        expect![[r#"
            \u{2028}\u{b}\u{85}Text
            ---
            0..10 global global Static:  Text
            stable: 10
        "#]],
    );
}

#[test]
fn a_library_of_blanks_gives_the_empty_string() {
    check(
        LibraryDraft {
            profiles: vec![profile("p", vec![inline("s", "\n")])],
            ..global(" ")
        },
        Request::default(),
        expect![[r#"

            ---
            stable: 0
            info empty-section s 0..0: section `s` has no text here and is left out
              hint: write a text for it, or disable it
        "#]],
    );
}

#[test]
fn two_parts_with_equal_text_are_said() {
    let draft = library(vec![
        inline("a", "Same."),
        inline("b", "Other"),
        inline("c", "\nSame."),
        inline("d", "Same. "),
    ]);
    check(
        draft,
        Request::default(),
        expect![[r#"
        Same.

        Other

        Same.

        Same.
        ---
        0..5 section a Static: Same.
        7..12 section b Static: Other
        14..19 section c Static: Same.
        21..26 section d Static: Same.
        stable: 26
        warning duplicate-part c 14..19: `c` has the same text as `a`
          hint: keep one of the two
        warning duplicate-part d 21..26: `d` has the same text as `a`
          hint: keep one of the two
    "#]],
    );
}

#[test]
fn a_text_over_the_budget_is_said_and_not_cut() {
    let draft = LibraryDraft {
        sections: vec![shared("long", "Grüße an alle.")],
        profiles: vec![profile("p", vec![inline("short", "Hi."), uses("long")])],
        ..LibraryDraft::default()
    };
    // The budget ends inside the two bytes of `ü`.
    let request = Request {
        budget: Some(8),
        ..Request::default()
    };
    check(
        draft,
        request,
        expect![[r#"
        Hi.

        Grüße an alle.
        ---
        0..3 section short Static: Hi.
        5..21 section long Static: Grüße an alle.
        stable: 21
        warning too-long long 7..21: the prompt has 21 bytes, 13 more than the budget of 8
          hint: shorten or disable a part; the largest is `long` with 16 bytes
    "#]],
    );
}

#[test]
fn a_text_of_exactly_the_budget_is_not_too_long() {
    let request = Request {
        budget: Some(6),
        ..Request::default()
    };
    check(
        global("Rules."),
        request,
        expect![[r#"
        Rules.
        ---
        0..6 global global Static: Rules.
        stable: 6
    "#]],
    );
}
