//! How an edit reaches the file.

use std::{
    fs,
    os::unix::{
        self,
        fs::{MetadataExt, PermissionsExt, chown},
    },
};

use foreword_store::{Import, StoreError};

use super::{Data, is_degraded, mode, set_mode};
use crate::support::{add_variable, import, variables};

const TEXT: &str = "global_prompt: Be brief.\n";

#[tokio::test]
async fn fault_33_what_was_answered_with_success_is_on_disk() {
    let data = Data::new();
    let store = data.open();
    for name in ["one", "two", "three"] {
        let snapshot = store.edit(add_variable(name)).await.unwrap();
        assert_eq!(data.read(), *snapshot.text);
    }
}

#[tokio::test]
async fn an_edit_that_changes_nothing_leaves_the_file_alone() {
    let data = Data::with("variables: {one: value}   # kept\n");
    let store = data.open();
    let before = fs::metadata(data.file()).unwrap();
    store.edit(add_variable("one")).await.unwrap();
    let after = fs::metadata(data.file()).unwrap();
    assert_eq!(
        (before.ino(), before.ctime_nsec(), before.ctime()),
        (after.ino(), after.ctime_nsec(), after.ctime())
    );
}

#[tokio::test]
async fn a_new_file_is_for_its_owner_only() {
    let data = Data::new();
    data.open().edit(add_variable("one")).await.unwrap();
    assert_eq!(mode(&data.file()), 0o600);
}

#[tokio::test]
async fn owner_and_mode_are_kept() {
    let data = Data::with(TEXT);
    set_mode(&data.file(), 0o640);
    chown(data.file(), Some(12_345), Some(54_321)).expect("this test needs root");
    data.open().edit(add_variable("one")).await.unwrap();
    let after = fs::metadata(data.file()).unwrap();
    assert_eq!((after.uid(), after.gid()), (12_345, 54_321));
    assert_eq!(after.permissions().mode() & 0o7777, 0o640);
}

#[tokio::test]
async fn a_symbolic_link_is_followed_and_not_replaced() {
    let data = Data::new();
    let elsewhere = Data::with(TEXT);
    unix::fs::symlink(elsewhere.file(), data.file()).unwrap();
    let snapshot = data.open().edit(add_variable("one")).await.unwrap();
    assert!(data.file().is_symlink());
    assert!(!elsewhere.file().is_symlink());
    assert_eq!(elsewhere.read(), *snapshot.text);
}

#[tokio::test]
async fn a_link_to_nothing_yet_is_filled_and_not_replaced() {
    let data = Data::new();
    unix::fs::symlink("real.yaml", data.file()).unwrap();
    data.open().edit(add_variable("one")).await.unwrap();
    assert!(data.file().is_symlink());
    assert!(data.path().join("real.yaml").is_file());
}

#[tokio::test]
async fn a_link_planted_as_the_temporary_file_is_not_followed() {
    let data = Data::with(TEXT);
    let victim = data.path().join("victim");
    fs::write(&victim, "untouched").unwrap();
    unix::fs::symlink(&victim, data.path().join(".system_prompts.yaml.new")).unwrap();
    data.open().edit(add_variable("one")).await.unwrap();
    assert_eq!(fs::read_to_string(victim).unwrap(), "untouched");
    assert!(!data.file().is_symlink());
}

#[tokio::test]
async fn an_edit_meets_a_change_by_hand_and_both_stay() {
    let data = Data::with(TEXT);
    let store = data.open();
    data.write("global_prompt: Be very brief.\nvariables: {by_hand: \"\"}\n");
    let snapshot = store.edit(add_variable("by_edit")).await.unwrap();
    let draft = snapshot.library.draft();
    assert_eq!(variables(&*store), ["by_hand", "by_edit"]);
    assert_eq!(
        draft.global_prompt.as_ref().unwrap().content,
        "Be very brief."
    );
    let told: Vec<_> = store
        .recent_changes()
        .iter()
        .map(|change| change.what.clone())
        .collect();
    assert_eq!(
        told,
        [
            "changed in the file: global prompt, variables",
            "added variable `by_edit`"
        ]
    );
}

#[tokio::test]
async fn a_file_that_disappeared_is_not_made_anew_by_an_edit() {
    let data = Data::with(TEXT);
    let store = data.open();
    fs::remove_file(data.file()).unwrap();
    let error = store.edit(add_variable("one")).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Broken(errors) if errors[0].code == "missing-file"),
        "{error}"
    );
    assert!(!data.file().exists());

    let report = store
        .import(Import {
            replace_broken: true,
            ..import(TEXT)
        })
        .await
        .unwrap();
    assert_eq!((report.written, report.kept_as), (true, None));
    assert_eq!(data.read(), TEXT);
    assert!(!is_degraded(&*store));
}

#[tokio::test]
async fn an_import_replaces_a_broken_file_if_told_to_and_keeps_it() {
    let data = Data::with(TEXT);
    let store = data.open();
    for (broken, kept_as) in [
        (&b"globl_prompt: a\n"[..], "system_prompts.yaml.broken-"),
        (b"\xFF", "system_prompts.yaml.broken-"),
    ] {
        data.write(broken);
        let replace = Import {
            replace_broken: true,
            ..import(TEXT)
        };
        let dry_run = Import {
            dry_run: true,
            ..replace.clone()
        };
        let report = store.import(dry_run).await.unwrap();
        assert_eq!((report.written, report.kept_as), (false, None));
        assert_eq!(fs::read(data.file()).unwrap(), broken);

        let report = store.import(replace).await.unwrap();
        assert!(report.written);
        let name = report.kept_as.unwrap();
        assert!(name.starts_with(kept_as), "{name}");
        assert_eq!(fs::read(data.path().join(name)).unwrap(), broken);
        assert_eq!(data.read(), TEXT);
        assert!(!is_degraded(&*store));
    }
}
