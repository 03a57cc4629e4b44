//! Reading, editing, importing, undoing, listening.

use std::sync::Arc;

use foreword_compose::revision;
use foreword_store::{
    EditError, Health, Import, Source, Store, StoreConfig, StoreError,
    edit::{ProfilePatch, delete_profile, patch_profile, replace_profile, set_global_prompt},
    parse_library,
    store::RECENT_CHANGES,
};
use tokio::task::JoinSet;

use crate::support::{add_variable, as_shown, import, variables};

pub(crate) async fn a_new_store_has_the_built_in_library(open: impl Fn() -> Arc<dyn Store>) {
    let store = open();
    let snapshot = store.snapshot();
    assert_eq!(snapshot.source, Source::BuiltIn);
    let default = snapshot.library.default_profile();
    assert_eq!(default.map(|profile| profile.id.as_str()), Some("default"));
    assert_eq!(store.status().health, Health::Healthy);
}

pub(crate) async fn an_edit_is_seen_in_the_snapshot_it_returns_and_not_in_older_ones(
    open: impl Fn() -> Arc<dyn Store>,
) {
    let store = open();
    let before = store.snapshot();
    let after = store.edit(add_variable("fresh")).await.unwrap();
    assert!(after.library.draft().variables.contains_key("fresh"));
    assert!(!before.library.draft().variables.contains_key("fresh"));
    assert_eq!(store.snapshot().revision, after.revision);
    assert_eq!(store.status().revision, after.revision);
    assert_ne!(before.revision, after.revision);
}

pub(crate) async fn an_edit_outlives_the_store(open: impl Fn() -> Arc<dyn Store>) {
    let revision = {
        let store = open();
        let snapshot = store.edit(add_variable("kept")).await.unwrap();
        snapshot.revision.clone()
    };
    let store = open();
    assert_eq!(store.snapshot().revision, revision);
    assert_ne!(store.snapshot().source, Source::BuiltIn);
}

pub(crate) async fn the_text_of_a_snapshot_is_its_library(open: impl Fn() -> Arc<dyn Store>) {
    let snapshot = open().edit(add_variable("any")).await.unwrap();
    assert_eq!(parse_library(&snapshot.text).unwrap(), snapshot.library);
    assert_eq!(revision(&snapshot.text, None), snapshot.revision);
}

pub(crate) async fn an_edit_that_changes_nothing_publishes_nothing(
    open: impl Fn() -> Arc<dyn Store>,
) {
    let store = open();
    let before = store.edit(add_variable("once")).await.unwrap();
    let after = store.edit(add_variable("once")).await.unwrap();
    assert!(Arc::ptr_eq(&before, &after));
    assert_eq!(store.recent_changes().len(), 1);
}

pub(crate) async fn a_refused_edit_changes_nothing(open: impl Fn() -> Arc<dyn Store>) {
    let store = open();
    let before = store.snapshot();
    let error = store.edit(delete_profile("nobody")).await.unwrap_err();
    assert!(matches!(
        error,
        StoreError::Refused(EditError::NotFound { .. })
    ));
    assert!(Arc::ptr_eq(&before, &store.snapshot()));
    assert!(store.recent_changes().is_empty());
}

pub(crate) async fn a_check_sees_the_library_that_the_edit_meets(
    open: impl Fn() -> Arc<dyn Store>,
) {
    let store = open();
    let checked = add_variable("second").checked(|library| {
        if library.draft().variables.contains_key("first") {
            return Err(EditError::Stale {
                current: "tag".to_owned(),
            });
        }
        Ok(())
    });
    store.edit(add_variable("first")).await.unwrap();
    let error = store.edit(checked).await.unwrap_err();
    assert!(matches!(error, StoreError::Refused(EditError::Stale { current }) if current == "tag"));
    assert!(!variables(&*store).contains(&"second".to_owned()));
}

pub(crate) async fn edits_at_once_all_land(open: impl Fn() -> Arc<dyn Store>) {
    let store = open();
    let mut tasks = JoinSet::new();
    for number in 0..20 {
        let store = Arc::clone(&store);
        tasks.spawn(async move { store.edit(add_variable(format!("v_{number}"))).await });
    }
    while let Some(result) = tasks.join_next().await {
        result.unwrap().unwrap();
    }
    let names = variables(&*store);
    for number in 0..20 {
        assert!(names.contains(&format!("v_{number}")), "v_{number} is lost");
    }
}

pub(crate) async fn edits_through_two_handles_all_land(open: impl Fn() -> Arc<dyn Store>) {
    let stores = [open(), open()];
    let mut tasks = JoinSet::new();
    for (which, store) in stores.into_iter().enumerate() {
        tasks.spawn(async move {
            for number in 0..10 {
                let name = format!("v_{which}_{number}");
                store.edit(add_variable(name)).await.unwrap();
            }
        });
    }
    while let Some(result) = tasks.join_next().await {
        result.unwrap();
    }
    let names = variables(&*open());
    for which in 0..2 {
        for number in 0..10 {
            let name = format!("v_{which}_{number}");
            assert!(names.contains(&name), "{name} is lost");
        }
    }
}

pub(crate) async fn a_cancelled_edit_is_finished_or_not_begun(open: impl Fn() -> Arc<dyn Store>) {
    let store = open();
    let cancelled = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.edit(add_variable("cancelled")).await }
    });
    tokio::task::yield_now().await;
    cancelled.abort();
    store.edit(add_variable("later")).await.unwrap();
    assert!(variables(&*store).contains(&"later".to_owned()));
    assert_eq!(store.snapshot().text, open().snapshot().text);
}

pub(crate) async fn undo_walks_back_and_a_new_edit_starts_anew(open: impl Fn() -> Arc<dyn Store>) {
    let store = open();
    let mut revisions = Vec::new();
    for name in ["one", "two", "three"] {
        let snapshot = store.edit(add_variable(name)).await.unwrap();
        revisions.push(snapshot.revision.clone());
    }
    let undone = store.undo().await.unwrap();
    assert_eq!(undone.what, "added variable `three`");
    assert_eq!(undone.revision, revisions[1]);
    let undone = store.undo().await.unwrap();
    assert_eq!(undone.what, "added variable `two`");
    assert_eq!(store.snapshot().revision, revisions[0]);

    store.edit(add_variable("four")).await.unwrap();
    let undone = store.undo().await.unwrap();
    assert_eq!(undone.what, "added variable `four`");
    assert_eq!(store.snapshot().revision, revisions[0]);
    let undone = store.undo().await.unwrap();
    assert_eq!(undone.what, "added variable `one`");
    let error = store.undo().await.unwrap_err();
    assert!(matches!(error, StoreError::NothingToUndo));
}

pub(crate) async fn a_fresh_store_has_nothing_to_undo(open: impl Fn() -> Arc<dyn Store>) {
    let error = open().undo().await.unwrap_err();
    assert!(matches!(error, StoreError::NothingToUndo));
}

pub(crate) async fn undo_reaches_as_far_back_as_the_history(open: impl Fn() -> Arc<dyn Store>) {
    let store = open();
    let history = StoreConfig::default().history;
    for number in 0..history + 5 {
        store
            .edit(add_variable(format!("v_{number}")))
            .await
            .unwrap();
    }
    for _ in 0..history {
        store.undo().await.unwrap();
    }
    assert_eq!(variables(&*store).last().unwrap(), "v_4");
    assert!(matches!(
        store.undo().await.unwrap_err(),
        StoreError::NothingToUndo
    ));
}

pub(crate) async fn an_import_replaces_the_whole_library(open: impl Fn() -> Arc<dyn Store>) {
    let store = open();
    let text = "# mine\nglobal_prompt: Be brief.\n";
    let report = store.import(import(text)).await.unwrap();
    assert!(report.written);
    assert_eq!(report.kept_as, None);
    assert!(report.difference.contains("+global_prompt: Be brief."));
    let snapshot = store.snapshot();
    assert_eq!(&*snapshot.text, text);
    assert_eq!(snapshot.revision, report.revision);
    assert!(snapshot.library.draft().profiles.is_empty());
    assert_eq!(store.undo().await.unwrap().what, "imported a library");
}

pub(crate) async fn a_dry_run_says_what_would_change_and_writes_nothing(
    open: impl Fn() -> Arc<dyn Store>,
) {
    let store = open();
    store
        .import(import("global_prompt: Be brief.\n"))
        .await
        .unwrap();
    let before = store.snapshot();
    let dry_run = Import {
        dry_run: true,
        ..import("global_prompt: Be very brief.\n")
    };
    let report = store.import(dry_run).await.unwrap();
    assert!(!report.written);
    insta::assert_snapshot!(report.difference, @r"
    --- now
    +++ imported
    @@ -1 +1 @@
    -global_prompt: Be brief.
    +global_prompt: Be very brief.
    ");
    assert!(Arc::ptr_eq(&before, &store.snapshot()));
}

pub(crate) async fn an_import_of_what_is_there_writes_nothing(open: impl Fn() -> Arc<dyn Store>) {
    let store = open();
    let text = "global_prompt: Be brief.\n";
    store.import(import(text)).await.unwrap();
    let report = store.import(import(text)).await.unwrap();
    assert_eq!((report.written, report.difference.as_str()), (false, ""));
    assert_eq!(store.recent_changes().len(), 1);
}

pub(crate) async fn an_import_with_mistakes_is_refused_with_all_of_them(
    open: impl Fn() -> Arc<dyn Store>,
) {
    let store = open();
    let before = store.snapshot();
    let text = "globl_prompt: Be brief.\nprofiles:\n  - id: a\n    enabledd: true\n";
    let StoreError::Invalid(errors) = store.import(import(text)).await.unwrap_err() else {
        panic!("it is refused as invalid");
    };
    let lines: Vec<_> = errors.iter().map(|error| error.line).collect();
    assert_eq!(lines, [1, 4]);
    assert!(Arc::ptr_eq(&before, &store.snapshot()));
}

pub(crate) async fn changes_are_told_in_order_and_remembered(open: impl Fn() -> Arc<dyn Store>) {
    let store = open();
    let mut changes = store.changes();
    store.edit(add_variable("one")).await.unwrap();
    let after = store
        .edit(set_global_prompt(Some("Hi.".into()), None))
        .await
        .unwrap();
    let first = changes.recv().await.unwrap();
    let second = changes.recv().await.unwrap();
    assert_eq!((first.id, first.what.as_str()), (1, "added variable `one`"));
    assert_eq!(
        (second.id, second.what.as_str()),
        (2, "set the global prompt")
    );
    assert_eq!(second.revision, after.revision);
    assert_eq!(second.at, after.loaded_at);
    assert_eq!(store.recent_changes(), [first, second]);
}

pub(crate) async fn only_the_last_changes_are_remembered(open: impl Fn() -> Arc<dyn Store>) {
    let store = open();
    for number in 0..RECENT_CHANGES + 3 {
        store
            .edit(add_variable(format!("v_{number}")))
            .await
            .unwrap();
    }
    let changes = store.recent_changes();
    assert_eq!(changes.len(), RECENT_CHANGES);
    assert_eq!(changes[0].id, 4);
}

pub(crate) async fn fault_35_replacing_a_profile_by_what_is_shown_of_it_changes_nothing(
    open: impl Fn() -> Arc<dyn Store>,
) {
    let store = open();
    let text = "\
sections:
  - {id: safety, content: Be safe.}
  - {id: tone, content: Be kind.}
profiles:
  - id: first   # the default without a mark
    sections:
      - id: identity
        content: |
          You are first.
        order: 3
      - use: tone
        enabled: false
    section_ids: [safety]
  - id: second
    section_ids: [tone, safety]
";
    store.import(import(text)).await.unwrap();
    for id in ["first", "second"] {
        let shown = as_shown(&store.snapshot().library, id);
        store.edit(replace_profile(id, shown)).await.unwrap();
        assert_eq!(&*store.snapshot().text, text);
    }
    assert_eq!(store.recent_changes().len(), 1);
}

pub(crate) async fn fault_39_a_wrong_type_is_refused_before_it_is_stored(
    open: impl Fn() -> Arc<dyn Store>,
) {
    let store = open();
    let before = store.snapshot();
    let wrong_type = "profiles:\n  - id: a\n    sections: [{id: b, content: 5}]\n";
    let error = store.import(import(wrong_type)).await.unwrap_err();
    assert!(matches!(error, StoreError::Invalid(_)));

    // What an edit makes is checked as well, whatever made the edit.
    let wrong_name = add_variable("Not A Name");
    let error = store.edit(wrong_name).await.unwrap_err();
    assert!(matches!(error, StoreError::Refused(EditError::Invalid(_))));

    assert!(Arc::ptr_eq(&before, &store.snapshot()));
    let patch = ProfilePatch {
        name: Some("Still readable".to_owned()),
        ..Default::default()
    };
    store.edit(patch_profile("default", patch)).await.unwrap();
}
