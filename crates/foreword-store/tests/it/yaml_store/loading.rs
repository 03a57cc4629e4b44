//! What happens at a start.

use std::{error::Error, fs};

use foreword_store::{Health, LoadError, OpenError, Source, StoreError};

use super::{Data, mode, open_at, set_mode};
use crate::support::{add_variable, import};

const SEED: &str = "\
profiles:
  - id: default
    name: Default Assistant
    description: General-purpose AI assistant
    is_default: true
    sections:
      - id: identity
        name: Identity
        type: persona
        content: \"You are a helpful AI assistant.\"
        enabled: true
        order: 0
";

fn broken(data: &Data) -> Vec<LoadError> {
    match data.try_open().map(drop) {
        Err(OpenError::Broken { errors, path }) => {
            assert_eq!(path, data.file());
            errors
        }
        other => panic!("a broken file is expected, not {other:?}"),
    }
}

#[test]
fn the_file_of_the_seed_loads_as_it_stands() {
    let data = Data::with(SEED);
    let snapshot = data.open().snapshot();
    assert_eq!(&*snapshot.text, SEED);
    assert_eq!(snapshot.source, Source::File(data.file()));
    let default = snapshot.library.default_profile().unwrap();
    assert_eq!(default.name, "Default Assistant");
    assert_eq!(default.places.len(), 1);
}

#[test]
fn the_data_directory_is_made_for_its_owner_only() {
    let data = Data::new();
    let path = data.path().join("new/data");
    open_at(&path).unwrap();
    assert_eq!(mode(&path), 0o700);
    assert_eq!(fs::read_to_string(path.join("VERSION")).unwrap(), "1\n");
}

#[test]
fn a_data_directory_that_exists_keeps_its_mode() {
    let data = Data::new();
    set_mode(data.path(), 0o750);
    data.open();
    assert_eq!(mode(data.path()), 0o750);
}

#[test]
fn opening_and_reading_write_no_library() {
    let data = Data::new();
    data.open().snapshot();
    assert_eq!(data.names(""), ["VERSION"]);
}

#[test]
fn a_data_directory_of_a_newer_foreword_is_refused() {
    let data = Data::new();
    for version in ["2", "1000", "soon"] {
        fs::write(data.path().join("VERSION"), version).unwrap();
        let error = data.try_open().unwrap_err();
        assert!(
            matches!(&error, OpenError::NewerVersion { found, supported: 1, .. } if found == version),
            "{error}"
        );
    }
}

#[test]
fn a_file_that_was_seen_and_is_gone_is_an_error_that_says_how_to_go_on() {
    let data = Data::with(SEED);
    data.open();
    fs::remove_file(data.file()).unwrap();
    let error = data.try_open().unwrap_err();
    let OpenError::Missing { marker, .. } = &error else {
        panic!("a missing file is expected, not {error}");
    };
    let message = error
        .to_string()
        .replace(data.path().to_str().unwrap(), "data");
    insta::assert_snapshot!(message, @"the library file `data/system_prompts.yaml` is missing, but was there before; put it back, or delete `data/library.seen` to start with the built-in library");

    fs::remove_file(marker).unwrap();
    assert_eq!(data.open().snapshot().source, Source::BuiltIn);
}

#[tokio::test]
async fn a_file_that_an_edit_wrote_was_seen() {
    let data = Data::new();
    data.open().edit(add_variable("any")).await.unwrap();
    fs::remove_file(data.file()).unwrap();
    assert!(matches!(data.try_open(), Err(OpenError::Missing { .. })));
}

#[tokio::test]
async fn fault_32_a_broken_file_is_refused_whole_and_never_overwritten() {
    let text = "\
profiles:
  - id: good
  - id: bad
    enabled: \"no\"
    sections: 5
";
    let data = Data::with(text);
    let errors = broken(&data);
    let lines: Vec<_> = errors.iter().map(|error| error.line).collect();
    assert_eq!(lines, [4, 5]);
    assert_eq!(data.read(), text);
    assert_eq!(data.names(""), ["VERSION", "system_prompts.yaml"]);

    // Broken while it runs, by hand, so shortly before an edit that no watch can have noticed.
    data.write(SEED);
    let store = data.open();
    let before = store.snapshot();
    data.write(text);
    for _ in 0..2 {
        let error = store.edit(add_variable("any")).await.unwrap_err();
        assert!(matches!(error, StoreError::Broken(found) if found == errors));
    }
    let error = store.undo().await.unwrap_err();
    assert!(matches!(error, StoreError::Broken(_)));
    let error = store.import(import(SEED)).await.unwrap_err();
    assert!(matches!(error, StoreError::Broken(_)));
    assert_eq!(data.read(), text);
    assert_eq!(store.status().health, Health::Degraded(errors));
    assert_eq!(store.snapshot().revision, before.revision);

    // Mended, it is edited again.
    data.write(SEED);
    store.edit(add_variable("any")).await.unwrap();
    assert_eq!(store.status().health, Health::Healthy);
}

#[test]
fn a_file_that_is_not_utf8_is_refused_where_it_stops_being_so() {
    let data = Data::new();
    data.write(b"# caf\xC3\xA9\nglobal_prompt: caf\xE9\n");
    let errors = broken(&data);
    insta::assert_snapshot!(errors[0].in_full(), @"2:19: the file is not UTF-8 text from here on; save it as UTF-8");
}

#[test]
fn a_file_that_is_too_large_is_refused_without_reading_all_of_it() {
    let data = Data::new();
    let file = fs::File::create(data.file()).unwrap();
    // A hole: it takes no room on the disk, but would in memory.
    file.set_len(1 << 40).unwrap();
    assert_eq!(broken(&data)[0].code, "too-large");
}

#[test]
fn a_file_that_cannot_be_read_is_no_missing_file() {
    let data = Data::new();
    fs::create_dir(data.file()).unwrap();
    let error = data.try_open().unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }));
    assert!(error.source().is_some());
}
