//! The versions under `history/`, as a person finds them.

use std::fs;

use foreword_store::{Store, StoreConfig, StoreError, YamlStore};

use super::Data;
use crate::support::{add_variable, clock, variables};

const TEXT: &str = "global_prompt: Be brief.\n";

#[tokio::test]
async fn a_version_says_when_and_what_and_holds_the_file_as_it_was() {
    let data = Data::with(TEXT);
    let store = data.open();
    let one = store.edit(add_variable("one")).await.unwrap();
    let two = store.edit(add_variable("two")).await.unwrap();
    store.undo().await.unwrap();
    let names = data.names("history");
    let shown = names.join("\n");
    let shown = shown.replace(&one.revision, "<one>");
    insta::assert_snapshot!(shown.replace(&two.revision, "<two>"), @r"
    000001-20260528T202640Z-d741f28f4e2c73dc.yaml
    000002-20260528T202641Z-<one>.yaml
    000003-20260528T202642Z-<two>.undone.yaml
    ");
    let versions: Vec<_> = names
        .iter()
        .map(|name| fs::read_to_string(data.path().join("history").join(name)).unwrap())
        .collect();
    insta::assert_snapshot!(versions[0], @r"
    # 2026-05-28T20:26:40Z found at a start
    global_prompt: Be brief.
    ");
    assert_eq!(
        versions[2],
        format!("# 2026-05-28T20:26:42Z added variable `two`\n{}", two.text)
    );
}

#[tokio::test]
async fn a_change_by_hand_is_the_last_change_to_undo() {
    let data = Data::with(TEXT);
    let store = data.open();
    let edited = store.edit(add_variable("one")).await.unwrap();
    data.write("global_prompt: By hand.\n");
    let undone = store.undo().await.unwrap();
    assert_eq!(undone.what, "changed in the file: global prompt, variables");
    assert_eq!(undone.revision, edited.revision);
    assert_eq!(store.undo().await.unwrap().what, "added variable `one`");
    assert_eq!(data.read(), TEXT);
}

#[tokio::test]
async fn undo_goes_on_after_a_restart() {
    let data = Data::with(TEXT);
    data.open().edit(add_variable("one")).await.unwrap();
    data.open().edit(add_variable("two")).await.unwrap();
    data.open().undo().await.unwrap();
    assert_eq!(variables(&*data.open()), ["one"]);
    data.open().undo().await.unwrap();
    assert_eq!(data.read(), TEXT);
}

#[tokio::test]
async fn the_first_edit_is_undone_to_the_built_in_library() {
    let data = Data::new();
    let store = data.open();
    let built_in = store.snapshot();
    store.edit(add_variable("one")).await.unwrap();
    let undone = store.undo().await.unwrap();
    assert_eq!(undone.revision, built_in.revision);
    assert_eq!(data.read(), *built_in.text);
}

#[tokio::test]
async fn a_damaged_version_is_not_gone_back_to() {
    let data = Data::with(TEXT);
    let store = data.open();
    store.edit(add_variable("one")).await.unwrap();
    store.edit(add_variable("two")).await.unwrap();
    let names = data.names("history");
    let version = data.path().join("history").join(&names[1]);
    let half = fs::read_to_string(&version).unwrap();
    // It still parses, but it is not what was written.
    let half = half.split_once("variables").unwrap().0;
    fs::write(&version, half).unwrap();
    store.undo().await.unwrap();
    assert_eq!(data.read(), TEXT);
}

#[tokio::test]
async fn old_versions_go() {
    let data = Data::with(TEXT);
    let config = StoreConfig {
        history: 3,
        ..StoreConfig::default()
    };
    let store = YamlStore::open(data.path(), &config, clock()).unwrap();
    for round in 0..4 {
        for number in 0..4 {
            let name = format!("v_{round}_{number}");
            store.edit(add_variable(name)).await.unwrap();
        }
        store.undo().await.unwrap();
        store.undo().await.unwrap();
    }
    store.edit(add_variable("last")).await.unwrap();
    let names = data.names("history");
    let undone = names.iter().filter(|name| name.contains("undone")).count();
    assert_eq!((names.len() - undone, undone), (3, 3), "{names:?}");
}

#[tokio::test]
async fn without_history_nothing_is_kept_and_nothing_undone() {
    let data = Data::with(TEXT);
    let config = StoreConfig {
        history: 0,
        ..StoreConfig::default()
    };
    let store = YamlStore::open(data.path(), &config, clock()).unwrap();
    store.edit(add_variable("one")).await.unwrap();
    let error = store.undo().await.unwrap_err();
    assert!(matches!(error, StoreError::NothingToUndo));
    assert!(!data.path().join("history").exists());
}
