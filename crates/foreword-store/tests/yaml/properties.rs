//! What holds for every library, however it is written and whatever changes in it.

use std::{collections::HashSet, str::FromStr, sync::Arc};

use foreword_compose::LibraryDraft;
use foreword_store::yaml::{Document, parse_library, print_library};
use proptest::{collection::vec, prelude::*};

use crate::{
    libraries::{Change, change, library, text},
    second_reader,
    styles::{self, choices},
};

fn document(text: &str) -> Document {
    Document::parse(Arc::from(text)).unwrap_or_else(|errors| panic!("{errors:#?} in\n{text}"))
}

fn rewritten(text: &str, draft: &LibraryDraft) -> String {
    let document = document(text)
        .rewrite(draft)
        .unwrap_or_else(|error| panic!("{error} in\n{text}\nfor {draft:#?}"));
    assert_eq!(document.library().draft(), draft);
    document.text().to_string()
}

/// The marks that the generated comments carry.
fn comments(text: &str) -> HashSet<&str> {
    text.lines()
        .filter_map(|line| line.split_once('#'))
        .flat_map(|(_, comment)| comment.split([' ', ':']))
        .filter(|word| word.len() > 2 && word.starts_with('c') && word.ends_with('c'))
        .filter(|word| {
            word[1..word.len() - 1]
                .bytes()
                .all(|byte| byte.is_ascii_digit())
        })
        .collect()
}

/// How many bytes of `old` and of `new` lie between what they have in common at both ends.
fn changed_bytes(old: &str, new: &str) -> (usize, usize) {
    let common = |left: &mut dyn Iterator<Item = u8>, right: &mut dyn Iterator<Item = u8>| {
        left.zip(right)
            .take_while(|(left, right)| left == right)
            .count()
    };
    let start = common(&mut old.bytes(), &mut new.bytes());
    let (old_rest, new_rest) = (&old.as_bytes()[start..], &new.as_bytes()[start..]);
    let end = common(
        &mut old_rest.iter().rev().copied(),
        &mut new_rest.iter().rev().copied(),
    );
    (old_rest.len() - end, new_rest.len() - end)
}

/// The most bytes that a change may replace, and the most that it may write instead.
///
/// A value is written with its key, its indentation and, at worst, six bytes for a character.
fn allowed(change: &Change, before: &LibraryDraft, after: &LibraryDraft) -> (usize, usize) {
    const LINE: usize = 40;
    let written = |text: &str| text.len() * 6 + (text.matches('\n').count() + 1) * LINE;
    let everything = format!("{after:?}").len() * 6;
    match change {
        Change::Toggle(..) | Change::SetOrder(..) => (8, LINE),
        Change::SetContent(profile, place, new) => {
            let old = before
                .profiles
                .get(*profile)
                .and_then(|profile| profile.places.get(*place));
            let old = old.map(|place| format!("{place:?}")).unwrap_or_default();
            (written(&old), written(new))
        }
        Change::AddSection(..) | Change::AddProfile(..) | Change::AddPlace(..) => {
            (LINE, everything)
        }
        // When the last item goes, brackets come, above the comments that stay.
        Change::RemoveProfile(_) if after.profiles.is_empty() => (usize::MAX, usize::MAX),
        Change::RemoveVariable(_) if after.variables.is_empty() => (usize::MAX, usize::MAX),
        Change::RemovePlace(at, _)
            if after
                .profiles
                .get(*at)
                .is_some_and(|profile| profile.places.is_empty()) =>
        {
            (usize::MAX, usize::MAX)
        }
        Change::RemoveProfile(_) | Change::RemoveVariable(_) | Change::RemovePlace(..) => {
            (usize::MAX, 8)
        }
        // Without the last one, the line of the key ends with `[]`.
        Change::RemoveSectionId(..) => (usize::MAX, 64),
        _ => (usize::MAX, usize::MAX),
    }
}

/// Whether comments may go because what they are about goes.
fn removes(change: &Change) -> bool {
    matches!(
        change,
        Change::SetGlobalPrompt(None)
            | Change::SetWorkspaceGuide(None)
            | Change::RemoveVariable(_)
            | Change::RemoveSection(_)
            | Change::ReplaceSection(..)
            | Change::ReplaceProfile(..)
            | Change::RemoveProfile(_)
            | Change::RemovePlace(..)
            | Change::PlaceSectionId(..)
            | Change::RemoveSectionId(..)
    )
}

proptest! {
    #[test]
    fn a_library_reads_the_same_however_it_is_written(draft in library(), mut choices in choices()) {
        let text = styles::write(&draft, &mut choices);
        let document = document(&text);
        prop_assert_eq!(document.library().draft(), &draft, "{}", text);
        prop_assert_eq!(second_reader::read(&text), draft, "{}", text);
    }

    #[test]
    fn a_printed_library_reads_back(draft in library()) {
        let text = print_library(&draft);
        let library = parse_library(&text).unwrap();
        prop_assert_eq!(library.draft(), &draft, "{}", text);
        prop_assert_eq!(second_reader::read(&text), draft, "{}", text);
    }

    #[test]
    fn any_change_reads_back(draft in library(), mut choices in choices(), changes in vec(change(), 1..4)) {
        let text = styles::write(&draft, &mut choices);
        let changed = changes.iter().fold(draft, |draft, change| change.apply(&draft));
        let rewritten = rewritten(&text, &changed);
        prop_assert_eq!(second_reader::read(&rewritten), changed, "{}", rewritten);
    }

    #[test]
    fn a_change_touches_no_foreign_byte(draft in library(), mut choices in choices(), change in change()) {
        let text = styles::write(&draft, &mut choices);
        let changed = change.apply(&draft);
        let rewritten = rewritten(&text, &changed);
        if !removes(&change) {
            prop_assert_eq!(comments(&text), comments(&rewritten), "{}\n{}", text, rewritten);
        }
        let (old, new) = changed_bytes(&text, &rewritten);
        let (most_old, most_new) = allowed(&change, &draft, &changed);
        prop_assert!(old <= most_old && new <= most_new, "{} of {}, {} of {}\n{}\n{}", old, most_old, new, most_new, text, rewritten);
    }

    #[test]
    fn an_unchanged_library_keeps_every_byte(draft in library(), mut choices in choices()) {
        let text = styles::write(&draft, &mut choices);
        prop_assert_eq!(rewritten(&text, &draft), text);
    }

    #[test]
    fn another_editor_comes_to_the_same_library(draft in library(), mut choices in choices(), new in text()) {
        // The other one does not say how far a text is indented that starts with an empty line and a tab.
        let new = new.replace('\t', " ");
        let text = styles::write(&draft, &mut choices);
        let other = yaml_edit::Document::from_str(&text).unwrap();
        let Some(prompt) = other.get_mapping("global_prompt") else {
            return Ok(());
        };
        prompt.set("content", new.as_str());
        let mut changed = draft;
        changed.global_prompt.as_mut().unwrap().content = new;
        prop_assert_eq!(
            second_reader::read(&rewritten(&text, &changed)),
            second_reader::read(&other.to_string()),
            "{}\n{}", text, other
        );
    }
}
