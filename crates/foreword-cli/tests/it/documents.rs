//! The generated documents are fresh. `UPDATE_DOCS=1 cargo test -p foreword-cli documents` writes them again.

use std::{env, fs, path::Path};

use crate::support::Place;

#[track_caller]
fn check_fresh(name: &str, fresh: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name);
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, fresh).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == fresh,
        "docs/{name} is stale; `UPDATE_DOCS=1 cargo test -p foreword-cli documents` writes it again"
    );
}

#[test]
fn the_reference_page_is_fresh() {
    check_fresh(
        "configuration.md",
        &Place::new().run(&["config", "--reference"]).ok(),
    );
}

#[test]
fn the_schema_is_fresh() {
    check_fresh(
        "foreword.schema.json",
        &Place::new().run(&["config", "--schema"]).ok(),
    );
}

#[test]
fn the_written_configuration_holds_the_defaults() {
    let place = Place::new();
    let defaults = place.run(&["config", "--json"]).json();
    place.run(&["init"]).ok();
    // Only lines that set something begin with `# key =`; what must be given has no default to show.
    let switched_on: String = place
        .read("foreword.toml")
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(setting) if setting.contains(" = ") && !setting.contains('…') => {
                format!("{setting}\n")
            }
            _ => format!("{line}\n"),
        })
        .collect();
    place.write("foreword.toml", &switched_on);
    let shown = place.run(&["config", "--json"]).json();
    for (path, default) in defaults["settings"].as_object().unwrap() {
        let setting = &shown["settings"][path];
        assert_eq!(setting["value"], default["value"], "{path}");
        if !default["value"].is_null() && path != "auth.keys" {
            let origin = setting["origin"].as_str().unwrap();
            assert!(
                origin.starts_with("foreword.toml:"),
                "{path} comes from {origin}"
            );
        }
    }
}
