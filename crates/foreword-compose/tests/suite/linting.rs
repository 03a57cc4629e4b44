//! What is probably a mistake in a library.

use expect_test::expect;
use foreword_compose::{Library, LibraryDraft, WorkspaceGuide, lint};

use crate::support::{describe_diagnostics, global, inline, profile, shared, uses};

#[test]
fn what_nothing_uses_and_what_has_no_text_is_said() {
    let mut short = profile("short", vec![]);
    short.section_ids = vec!["listed".to_owned()];
    let mut off = uses("disabled");
    off.enabled = false;
    let draft = LibraryDraft {
        variables: [
            "in_global",
            "in_shared",
            "in_inline",
            "in_guide",
            "escaped",
            "unused",
        ]
        .map(|name| (name.to_owned(), String::new()))
        .into_iter()
        .collect(),
        sections: vec![
            shared("used", "{in_shared}"),
            shared("listed", "\n"),
            shared("disabled", "Off."),
            shared("forgotten", ""),
        ],
        profiles: vec![
            profile(
                "p",
                vec![
                    uses("used"),
                    off,
                    inline("own", "{in_inline}"),
                    inline("bare", " "),
                ],
            ),
            short,
        ],
        workspace_guide: Some(WorkspaceGuide {
            content: "{in_guide}".to_owned(),
            enabled: true,
        }),
        ..global("{in_global} \\{escaped}")
    };
    let library = Library::new(draft).expect("the library of the test is valid");
    expect![[r#"
        warning unused-variable escaped: no text uses the variable `escaped`
          hint: write `{escaped}` where its value belongs, or remove it
        warning unused-variable unused: no text uses the variable `unused`
          hint: write `{unused}` where its value belongs, or remove it
        warning empty-section listed: the shared section `listed` has no text
          hint: write a text for it, or remove it
        warning unused-section forgotten: no profile uses the shared section `forgotten`
          hint: add `{use: forgotten}` to a profile, or remove the section
        warning empty-section forgotten: the shared section `forgotten` has no text
          hint: write a text for it, or remove it
        warning empty-section bare: section `bare` of profile `p` has no text
          hint: write a text for it, or remove it
    "#]]
    .assert_eq(&describe_diagnostics(&lint(&library)));
}
