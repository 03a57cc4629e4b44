//! What is put in for placeholders, and what is known about it afterwards.

use expect_test::expect;
use foreword_compose::{Library, LibraryDraft, Request, SessionName, SessionValues, compose};
use indexmap::IndexMap;

use crate::support::{check, foreign, global, guide, inline, library};

fn variables(pairs: &[(&str, &str)]) -> IndexMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn session() -> SessionValues<'static> {
    SessionValues::default()
        .with(SessionName::ChatId, Some("c-1"))
        .with(SessionName::UserName, Some("Zoë"))
}

#[test]
fn request_values_win_over_session_values_and_those_over_defaults() {
    let draft = LibraryDraft {
        variables: variables(&[("company", "Example Ltd"), ("team", "Core")]),
        ..global("{company} {team} {chat_id} {user_name} {user_email}")
    };
    let request = Request {
        session: session(),
        variables: variables(&[("company", "Other Ltd"), ("chat_id", "forced")]),
        ..Request::default()
    };
    check(
        draft,
        request,
        expect![[r#"
        Other Ltd Core forced Zoë {user_email}
        ---
        0..39 global global Session: Other Ltd Core forced Zoë {user_email}
        stable: 0
        unresolved: user_email
        warning unresolved-placeholder global 27..39: `{user_email}` has no value in this session and stays as it is written
          hint: give the request a value for `user_email`, or write `\{user_email}` if the braces are meant as text
        warning unstable-prefix global 0..9: `{company}` in `global` makes the prompt differ between sessions from byte 0 on
          hint: move it to the workspace guide, which comes last, so that providers can cache what stands before it
    "#]],
    );
}

#[test]
fn fault_36_a_value_is_not_expanded_again() {
    let draft = LibraryDraft {
        variables: variables(&[
            ("a", "{b}"),
            ("b", "{a} {chat_id} \\{chat_id}"),
            ("open", "{"),
        ]),
        ..global("{a} {b} {open}chat_id} \\{a}")
    };
    let request = Request {
        session: session().with(SessionName::UserName, Some("{user_name}{a}")),
        context: vec![guide("Hello {user_name}.")],
        ..Request::default()
    };
    check(
        draft,
        request,
        expect![[r#"
        {b} {a} {chat_id} \\{chat_id} {chat_id} {a}

        Hello {user_name}{a}.
        ---
        0..42 global global Static: {b} {a} {chat_id} \{chat_id} {chat_id} {a}
        44..65 context workspace-guide Session: Hello {user_name}{a}.
        stable: 44
    "#]],
    );
}

#[test]
fn fault_36_placeholders_in_the_words_of_others_are_text() {
    let draft = LibraryDraft {
        variables: variables(&[("company", "Example Ltd")]),
        ..library(vec![inline("own", "{company}")])
    };
    let request = Request {
        session: session(),
        tools_prompt: "Call {chat_id} or \\{company}.",
        context: vec![foreign("Say {chat_id} and {company}.")],
        ..Request::default()
    };
    check(
        draft,
        request,
        expect![[r#"
        Call {chat_id} or \\{company}.

        Example Ltd

        Say {chat_id} and {company}.
        ---
        0..29 tools tools Static: Call {chat_id} or \{company}.
        31..42 section own Static: Example Ltd
        44..72 context note Session: Say {chat_id} and {company}.
        stable: 44
    "#]],
    );
}

#[test]
fn braces_of_others_pass_through() {
    check(
        global(
            r#"{"a": {"b": {}}} {Chat_id} {chat-id} { chat_id } {} {0} {:?} ${x} <p style={{a}}> {{chat_id}} \{x} {"#,
        ),
        Request {
            session: session(),
            ..Request::default()
        },
        expect![[r#"
            {\"a\": {\"b\": {}}} {Chat_id} {chat-id} { chat_id } {} {0} {:?} ${x} <p style={{a}}> {c-1} \\{x} {
            ---
            0..94 global global Session: {"a": {"b": {}}} {Chat_id} {chat-id} { chat_id } {} {0} {:?} ${x} <p style={{a}}> {c-1} \{x} {
            stable: 83
            warning unstable-prefix global 83..86: `{chat_id}` in `global` makes the prompt differ between sessions from byte 83 on
              hint: move it to the workspace guide, which comes last, so that providers can cache what stands before it
        "#]],
    );
}

#[test]
fn a_name_without_a_value_stays_and_is_reported_once_in_order_of_appearance() {
    let draft = library(vec![
        inline("a", "\n\n{date} {chat_id} {date}"),
        inline("b", "\\{readme_path} {archive_url} {date}"),
    ]);
    check(
        draft,
        Request {
            session: session(),
            ..Request::default()
        },
        expect![[r#"
            {date} c-1 {date}

            {readme_path} {archive_url} {date}
            ---
            0..17 section a Session: {date} c-1 {date}
            19..53 section b Static: {readme_path} {archive_url} {date}
            stable: 0
            unresolved: date, archive_url
            warning unresolved-placeholder a 0..6: `{date}` has no value in this session and stays as it is written
              hint: give the request a value for `date`, or write `\{date}` if the braces are meant as text
            warning unstable-prefix a 0..6: `{date}` in `a` makes the prompt differ between sessions from byte 0 on
              hint: move it to the workspace guide, which comes last, so that providers can cache what stands before it
            warning unresolved-placeholder b 33..46: `{archive_url}` has no value in this session and stays as it is written
              hint: give the request a value for `archive_url`, or write `\{archive_url}` if the braces are meant as text
            warning unstable-prefix b 33..46: `{archive_url}` in `b` makes the prompt differ between sessions from byte 33 on
              hint: move it to the workspace guide, which comes last, so that providers can cache what stands before it
        "#]],
    );
}

#[test]
fn a_variable_that_the_library_does_not_declare_is_said() {
    let draft = LibraryDraft {
        variables: variables(&[("company", "Example Ltd")]),
        ..global("{company} {Company} {other}")
    };
    let request = Request {
        variables: variables(&[("compnay", "x"), ("other", "y"), ("user_mail", "z")]),
        ..Request::default()
    };
    check(
        draft,
        request,
        expect![[r#"
        Example Ltd {Company} {other}
        ---
        0..29 global global Static: Example Ltd {Company} {other}
        stable: 29
        warning unknown-variable: the library does not declare a variable `compnay`, so its value is ignored
          hint: did you mean `company`?
        warning unknown-variable: the library does not declare a variable `other`, so its value is ignored
          hint: declare `other` under `variables` in the library
        warning unknown-variable: the library does not declare a variable `user_mail`, so its value is ignored
          hint: did you mean `user_email`?
    "#]],
    );
}

#[test]
fn an_empty_value_is_a_value_and_ends_the_stable_prefix_too() {
    let draft = LibraryDraft {
        variables: variables(&[("nothing", "")]),
        ..library(vec![
            inline("a", "Always."),
            inline("b", "{nothing}"),
            inline("c", "{user_name}"),
            inline("d", "Also always."),
        ])
    };
    let request = Request {
        session: session().with(SessionName::UserName, Some("")),
        ..Request::default()
    };
    check(
        draft,
        request,
        expect![[r#"
        Always.

        Also always.
        ---
        0..7 section a Static: Always.
        9..21 section d Static: Also always.
        stable: 7
        info empty-section b 7..7: section `b` has no text here and is left out
          hint: write a text for it, or disable it
        info empty-section c 7..7: section `c` has no text here and is left out
          hint: write a text for it, or disable it
    "#]],
    );
}

#[test]
fn values_are_normalised_like_the_text_around_them() {
    let draft = library(vec![
        inline("a", "{user_name}\nB"),
        inline("b", "  {user_name}C {user_name}"),
    ]);
    let request = Request {
        session: session().with(SessionName::UserName, Some("\n A\r")),
        ..Request::default()
    };
    check(
        draft,
        request,
        expect![[r#"
         A
        B

         A
        C 
         A
        ---
        0..4 section a Session:  A
        6..14 section b Session:  A
        stable: 0
        warning unstable-prefix a 0..3: `{user_name}` in `a` makes the prompt differ between sessions from byte 0 on
          hint: move it to the workspace guide, which comes last, so that providers can cache what stands before it
        warning unstable-prefix b 6..9: `{user_name}` in `b` makes the prompt differ between sessions from byte 6 on
          hint: move it to the workspace guide, which comes last, so that providers can cache what stands before it
    "#]],
    );
}

#[test]
fn the_stable_prefix_ends_where_the_first_context_block_begins() {
    let request = Request {
        session: session(),
        context: vec![foreign(" "), guide("Guide of {chat_id}."), foreign("More.")],
        ..Request::default()
    };
    check(
        global("Rules."),
        request,
        expect![[r#"
        Rules.

        Guide of c-1.

        More.
        ---
        0..6 global global Static: Rules.
        8..21 context workspace-guide Session: Guide of c-1.
        23..28 context note Session: More.
        stable: 8
    "#]],
    );
}

#[test]
fn undeclared_variables_beyond_a_hundred_are_counted_only() {
    let request = Request {
        variables: (0..100_000)
            .map(|at| (format!("v{at}"), String::new()))
            .collect(),
        ..Request::default()
    };
    let library = Library::new(global("Rules.")).expect("the library of the test is valid");
    let composition = compose(&library, &request).expect("no profile was asked for");
    assert_eq!(composition.diagnostics.len(), 101);
    let last = &composition.diagnostics[100].message;
    assert!(last.contains("99900 more variables"), "{last}");
}
