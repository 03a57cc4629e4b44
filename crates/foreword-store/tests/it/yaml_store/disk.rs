//! Disks that are read-only, full or gone. Each test has a file system of its own, in mounts that only it sees.

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
    process::Command,
    sync::Arc,
};

use foreword_store::{Source, Store, StoreError};

use super::{Data, eventually, is_degraded, open_at, role, run_in};
use crate::support::{add_variable, variables};

const PRIVATE_MOUNTS: [&str; 3] = ["unshare", "--mount", "--"];

fn mount(arguments: &[&str], target: &Path) {
    let status = Command::new("mount").args(arguments).arg(target).status();
    assert!(status.expect("this test needs `mount`").success());
}

/// The edit fails for the disk's sake, and what is in memory is what is on disk.
async fn assert_unavailable(store: &Arc<dyn Store>, file: &Path) {
    let before = store.snapshot();
    let error = store.edit(add_variable("refused")).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    assert!(Arc::ptr_eq(&before, &store.snapshot()));
    assert_eq!(fs::read_to_string(file).unwrap(), *before.text);
}

#[tokio::test]
async fn fault_33_an_edit_on_a_read_only_disk_fails_and_is_not_seen() {
    const TEST: &str =
        "yaml_store::disk::fault_33_an_edit_on_a_read_only_disk_fails_and_is_not_seen";
    if role().is_none() {
        return run_in(&PRIVATE_MOUNTS, TEST, "private mounts");
    }
    let data = Data::new();
    mount(&["-t", "tmpfs", "tmpfs"], data.path());
    let store = data.open();
    store.edit(add_variable("before")).await.unwrap();
    mount(&["-o", "remount,ro"], data.path());
    assert_unavailable(&store, &data.file()).await;
    // A library that is only read needs no more.
    assert_eq!(variables(&*data.open()).last().unwrap(), "before");
    mount(&["-o", "remount,rw"], data.path());
    store.edit(add_variable("after")).await.unwrap();
}

#[tokio::test]
async fn a_read_only_data_directory_without_a_library_serves_the_built_in_one() {
    const TEST: &str =
        "yaml_store::disk::a_read_only_data_directory_without_a_library_serves_the_built_in_one";
    if role().is_none() {
        return run_in(&PRIVATE_MOUNTS, TEST, "private mounts");
    }
    let data = Data::new();
    mount(&["-t", "tmpfs", "-o", "ro", "tmpfs"], data.path());
    let store = data.open();
    assert_eq!(store.snapshot().source, Source::BuiltIn);
    let error = store.edit(add_variable("refused")).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
}

#[tokio::test]
async fn fault_33_an_edit_on_a_full_disk_fails_and_is_not_seen() {
    const TEST: &str = "yaml_store::disk::fault_33_an_edit_on_a_full_disk_fails_and_is_not_seen";
    if role().is_none() {
        return run_in(&PRIVATE_MOUNTS, TEST, "private mounts");
    }
    let data = Data::new();
    mount(&["-t", "tmpfs", "-o", "size=256k", "tmpfs"], data.path());
    let store = data.open();
    store.edit(add_variable("before")).await.unwrap();
    let filler = data.path().join("filler");
    let mut file = File::create(&filler).unwrap();
    while file.write_all(&[b'x'; 4096]).is_ok() {}
    assert_unavailable(&store, &data.file()).await;
    assert!(!data.path().join(".system_prompts.yaml.new").exists());

    // Page by page, room comes back: at first for no file, then for some of those that an edit writes, then for all.
    let mut length = file.metadata().unwrap().len();
    let mut refused = 0;
    while let Err(error) = store.edit(add_variable("after")).await {
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
        assert_eq!(data.read(), *store.snapshot().text);
        refused += 1;
        length -= 4096;
        file.set_len(length).unwrap();
    }
    assert!(refused > 1, "the disk was not full");
    assert_eq!(data.read(), *data.open().snapshot().text);
    assert_eq!(variables(&*store).last().unwrap(), "after");
}

#[tokio::test]
async fn fault_33_an_edit_in_a_vanished_directory_fails_and_is_not_seen() {
    let parent = Data::new();
    let path = parent.path().join("data");
    let store: Arc<dyn Store> = Arc::new(open_at(&path).unwrap());
    let before = store.edit(add_variable("before")).await.unwrap();
    fs::remove_dir_all(&path).unwrap();
    let error = store.edit(add_variable("refused")).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    assert!(!path.exists());
    assert!(Arc::ptr_eq(&before, &store.snapshot()));
    eventually("the store is degraded", || is_degraded(&*store)).await;
    assert!(Arc::ptr_eq(&before, &store.snapshot()));
}

#[tokio::test]
async fn a_volume_that_is_unmounted_is_not_written_under() {
    const TEST: &str = "yaml_store::disk::a_volume_that_is_unmounted_is_not_written_under";
    if role().is_none() {
        return run_in(&PRIVATE_MOUNTS, TEST, "private mounts");
    }
    let data = Data::new();
    mount(&["-t", "tmpfs", "tmpfs"], data.path());
    let store = data.open();
    store.edit(add_variable("before")).await.unwrap();
    let status = Command::new("umount")
        .arg("--lazy")
        .arg(data.path())
        .status();
    assert!(status.unwrap().success());
    let error = store.edit(add_variable("refused")).await.unwrap_err();
    assert!(matches!(error, StoreError::Broken(_)), "{error:?}");
    assert!(!data.file().exists());
}
