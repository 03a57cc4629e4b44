//! Changes of the file that come from outside.

use std::{
    fs::{self, File},
    io::Write,
    os::unix,
    path::Path,
    sync::Arc,
    time::Duration,
};

use foreword_store::{Change, Health, Store, StoreConfig, YamlStore};
use tokio::{sync::broadcast::Receiver, time::timeout};

use super::{Data, eventually, is_degraded, role, run_in};
use crate::support::{clock, variables};

const OLD: &str = "global_prompt: Old.\n";
const NEW: &str = "global_prompt: New.\n";

/// How long a change may take: a second is promised, the rest is for a busy machine; polling alone would take five.
const SOON: Duration = Duration::from_secs(4);

/// The next change.
async fn next(changes: &mut Receiver<Arc<Change>>) -> Arc<Change> {
    timeout(SOON, changes.recv())
        .await
        .expect("a change is live soon")
        .unwrap()
}

/// Changes the file in some way, and waits until `NEW` is live.
async fn is_live_after(data: &Data, change: impl FnOnce()) {
    let store = data.open();
    assert_eq!(&*store.snapshot().text, OLD);
    let mut changes = store.changes();
    change();
    let change = next(&mut changes).await;
    assert_eq!(change.what, "changed in the file: global prompt");
    assert_eq!(&*store.snapshot().text, NEW);
    assert_eq!(store.snapshot().revision, change.revision);
}

#[tokio::test]
async fn a_file_written_in_place_is_live() {
    let data = Data::with(OLD);
    is_live_after(&data, || data.write(NEW)).await;
}

#[tokio::test]
async fn a_file_renamed_into_place_is_live() {
    let data = Data::with(OLD);
    is_live_after(&data, || {
        let new = data.path().join("system_prompts.yaml~");
        fs::write(&new, NEW).unwrap();
        fs::rename(new, data.file()).unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_file_behind_a_link_is_live_when_it_is_written() {
    let data = Data::new();
    let elsewhere = Data::with(OLD);
    unix::fs::symlink(elsewhere.file(), data.file()).unwrap();
    is_live_after(&data, || elsewhere.write(NEW)).await;
}

#[tokio::test]
async fn a_link_that_is_turned_to_another_file_is_live() {
    let data = Data::new();
    let (old, new) = (Data::with(OLD), Data::with(NEW));
    unix::fs::symlink(old.file(), data.file()).unwrap();
    is_live_after(&data, || {
        let link = data.path().join("link");
        unix::fs::symlink(new.file(), &link).unwrap();
        fs::rename(link, data.file()).unwrap();
    })
    .await;
}

/// As the kubelet does it: `file -> ..data/file`, `..data -> ..<time>`, and `..data` is swapped.
fn config_map(mount: &Path, version: &str, text: &str) {
    fs::create_dir(mount.join(version)).unwrap();
    fs::write(mount.join(version).join("system_prompts.yaml"), text).unwrap();
    let link = mount.join("..data_tmp");
    unix::fs::symlink(version, &link).unwrap();
    fs::rename(link, mount.join("..data")).unwrap();
}

#[tokio::test]
async fn a_config_map_is_live_each_time_it_is_swapped() {
    let (data, mount) = (Data::new(), Data::new());
    config_map(mount.path(), "..2026_1", OLD);
    unix::fs::symlink("..data/system_prompts.yaml", mount.file()).unwrap();
    unix::fs::symlink(mount.file(), data.file()).unwrap();
    is_live_after(&data, || {
        config_map(mount.path(), "..2026_2", NEW);
        fs::remove_dir_all(mount.path().join("..2026_1")).unwrap();
    })
    .await;

    let store = data.open();
    let mut changes = store.changes();
    for version in 3..6 {
        let text = format!("global_prompt: Version {version}.\n");
        config_map(mount.path(), &format!("..2026_{version}"), &text);
        next(&mut changes).await;
        assert_eq!(*store.snapshot().text, text);
    }
}

#[tokio::test]
async fn a_file_that_appears_replaces_the_built_in_library() {
    let data = Data::new();
    let store = data.open();
    let mut changes = store.changes();
    data.write(NEW);
    next(&mut changes).await;
    assert_eq!(&*store.snapshot().text, NEW);
}

#[tokio::test]
async fn a_file_caught_empty_while_an_editor_writes_it_is_not_the_library() {
    let data = Data::with(OLD);
    let store = data.open();
    let mut changes = store.changes();
    let mut file = File::create(data.file()).unwrap();
    // The editor is slow: the store has all the time to see the empty file.
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert!(!is_degraded(&*store));
    file.write_all(NEW.as_bytes()).unwrap();
    drop(file);
    next(&mut changes).await;
    assert_eq!(&*store.snapshot().text, NEW);
    assert_eq!(store.recent_changes().len(), 1);
}

#[tokio::test]
async fn a_broken_change_keeps_the_last_good_library_until_it_is_mended() {
    let data = Data::with(OLD);
    let store = data.open();
    let good = store.snapshot();
    data.write("globl_prompt: New.\n");
    eventually("the store is degraded", || is_degraded(&*store)).await;
    let Health::Degraded(errors) = store.status().health else {
        panic!("it is degraded");
    };
    assert_eq!((errors.len(), errors[0].line), (1, 1));
    assert!(Arc::ptr_eq(&good, &store.snapshot()));

    // Mended by putting back what was there: nothing changed, but all is well again.
    data.write(OLD);
    eventually("the store is healthy", || !is_degraded(&*store)).await;
    assert!(Arc::ptr_eq(&good, &store.snapshot()));
    assert!(store.recent_changes().is_empty());
}

#[tokio::test]
async fn a_file_deleted_while_running_keeps_the_last_good_library() {
    let data = Data::with(OLD);
    let store = data.open();
    fs::remove_file(data.file()).unwrap();
    eventually("the store is degraded", || is_degraded(&*store)).await;
    assert_eq!(&*store.snapshot().text, OLD);
    let mut changes = store.changes();
    data.write(NEW);
    next(&mut changes).await;
    assert_eq!(store.status().health, Health::Healthy);
}

#[tokio::test]
async fn an_edit_elsewhere_is_live_and_told_here() {
    let data = Data::with(OLD);
    let (here, elsewhere) = (data.open(), data.open());
    let mut changes = here.changes();
    let edit = crate::support::add_variable("elsewhere");
    elsewhere.edit(edit).await.unwrap();
    next(&mut changes).await;
    assert_eq!(variables(&*here), ["elsewhere"]);
    // It is one version, told by the one who made it.
    assert_eq!(
        here.undo().await.unwrap().what,
        "added variable `elsewhere`"
    );
}

#[tokio::test]
async fn a_change_by_hand_is_kept_in_the_history() {
    let data = Data::with(OLD);
    let store = data.open();
    data.write(NEW);
    eventually("the versions are kept", || {
        data.path().join("history").exists() && data.names("history").len() == 2
    })
    .await;
    store.undo().await.unwrap();
    assert_eq!(data.read(), OLD);
}

#[tokio::test]
async fn a_data_directory_that_is_replaced_is_watched_again() {
    let parent = Data::with(OLD);
    let path = parent.path().join("data");
    let file = path.join("system_prompts.yaml");
    fs::create_dir(&path).unwrap();
    fs::write(&file, OLD).unwrap();
    let config = StoreConfig {
        poll_seconds: 1,
        ..StoreConfig::default()
    };
    let store = YamlStore::open(&path, &config, clock()).unwrap();
    fs::remove_dir_all(&path).unwrap();
    eventually("the store is degraded", || is_degraded(&store)).await;
    fs::create_dir(&path).unwrap();
    fs::write(&file, NEW).unwrap();
    eventually("the new file is live", || &*store.snapshot().text == NEW).await;
}

#[tokio::test]
async fn where_nothing_can_be_watched_the_file_is_looked_at_in_turn() {
    const TEST: &str =
        "yaml_store::watching::where_nothing_can_be_watched_the_file_is_looked_at_in_turn";
    if role().is_none() {
        let no_watches = r#"echo 0 > /proc/sys/user/max_inotify_instances && exec "$0" "$@""#;
        let wrapper = [
            "unshare",
            "--user",
            "--map-root-user",
            "sh",
            "-c",
            no_watches,
        ];
        return run_in(&wrapper, TEST, "without watches");
    }
    assert!(notify::recommended_watcher(|_| ()).is_err());
    let data = Data::with(OLD);
    let config = StoreConfig {
        poll_seconds: 1,
        ..StoreConfig::default()
    };
    let store = YamlStore::open(data.path(), &config, clock()).unwrap();
    let mut changes = store.changes();
    data.write(NEW);
    timeout(Duration::from_secs(20), changes.recv())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&*store.snapshot().text, NEW);
}
