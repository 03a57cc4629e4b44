//! The generated documents are fresh. `UPDATE_DOCS=1 cargo test -p foreword-cli documents` writes them again.

use std::{env, fs, path::Path};

use serde_json::json;

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

/// The configuration with the `#` taken away before each line that sets something and is `wanted`.
fn switched_on(configuration: &str, wanted: impl Fn(&str) -> bool) -> String {
    let lines = configuration.lines().map(|line| {
        let setting = line.strip_prefix("# ").filter(|setting| sets(setting));
        match setting {
            Some(setting) if wanted(setting) => format!("{setting}\n"),
            _ => format!("{line}\n"),
        }
    });
    lines.collect()
}

/// Whether a line sets something, rather than saying something.
fn sets(line: &str) -> bool {
    let key = line.split(" = ").next().unwrap();
    line.starts_with("[[")
        || line.starts_with("[connections.")
        || (key.len() < line.len()
            && key
                .chars()
                .all(|character| character.is_ascii_lowercase() || character == '_'))
}

fn is_example(line: &str) -> bool {
    line.ends_with("# an example")
}

#[test]
fn each_example_of_the_written_configuration_is_taken() {
    let place = Place::new();
    place.run(&["init"]).ok();
    let written = place.read("foreword.toml");
    let examples = written.lines().filter(|line| is_example(line));
    let examples: Vec<String> = examples.map(str::to_owned).collect();
    assert!(examples.len() >= 10, "{examples:#?}");
    place.write("foreword.toml", &switched_on(&written, is_example));
    place.run(&["check"]).ok();
    let shown = place.run(&["config", "--json"]).json();
    let settings = shown["settings"].as_object().unwrap();
    // Whatever has no default, or an empty one, is shown with an example.
    for (path, setting) in settings {
        assert!(
            ![json!(null), json!([]), json!({})].contains(&setting["value"]),
            "`{path}` has no example"
        );
    }
    assert_eq!(settings["auth.keys"]["value"][0]["instructions"], "brief");
    // It serves, and says that these keys will not do.
    let doctor = place.run(&["doctor", "--listen", "127.0.0.1:0"]).ok();
    assert!(
        doctor.contains("shorter than 16 characters, so perhaps to be guessed: the key `gateway`, `api`, `admin`"),
        "{doctor}"
    );
}

#[test]
fn the_written_configuration_holds_the_defaults() {
    let place = Place::new();
    let defaults = place.run(&["config", "--json"]).json();
    place.run(&["init"]).ok();
    place.write(
        "foreword.toml",
        &switched_on(&place.read("foreword.toml"), |line| !is_example(line)),
    );
    let shown = place.run(&["config", "--json"]).json();
    for (path, default) in defaults["settings"].as_object().unwrap() {
        let setting = &shown["settings"][path];
        assert_eq!(setting["value"], default["value"], "{path}");
        if !default["value"].is_null() && path != "auth.keys" && path != "connections" {
            let origin = setting["origin"].as_str().unwrap();
            assert!(
                origin.starts_with("foreword.toml:"),
                "{path} comes from {origin}"
            );
        }
    }
}
