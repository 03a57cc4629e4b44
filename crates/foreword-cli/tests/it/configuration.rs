//! Where values come from, and what is said about mistakes.

use std::fs;

use expect_test::expect;
use serde_json::{Value, json};

use crate::support::Place;

/// The value and the origin of a setting.
fn setting(place: &Place, arguments: &[&str], path: &str) -> (Value, String) {
    let arguments: Vec<&str> = ["config", "--json"]
        .into_iter()
        .chain(arguments.iter().copied())
        .collect();
    let settings = place.run(&arguments).json();
    let setting = &settings["settings"][path];
    let origin = setting["origin"].as_str().unwrap().to_owned();
    (setting["value"].clone(), origin)
}

#[test]
fn a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default() {
    let place = Place::new();
    let listen = |place: &Place, arguments: &[&str]| setting(place, arguments, "http.listen");
    assert_eq!(
        listen(&place, &[]),
        (json!("127.0.0.1:8081"), "default".to_owned())
    );
    place.write("foreword.toml", "[http]\nlisten = \"127.0.0.1:2\"\n");
    assert_eq!(
        listen(&place, &[]),
        (json!("127.0.0.1:2"), "foreword.toml:2:10".to_owned())
    );
    let place = place.with("FOREWORD_HTTP__LISTEN", "127.0.0.1:3");
    assert_eq!(
        listen(&place, &[]),
        (
            json!("127.0.0.1:3"),
            "environment FOREWORD_HTTP__LISTEN".to_owned()
        )
    );
    assert_eq!(
        listen(&place, &["--listen", "127.0.0.1:4"]),
        (json!("127.0.0.1:4"), "flag --listen".to_owned())
    );
}

#[test]
fn one_file_is_read_the_one_asked_for_else_the_one_here_else_the_users() {
    let place = Place::new();
    let mode = |place: &Place, arguments: &[&str]| setting(place, arguments, "session.mode").0;
    place.write(
        "home/.config/foreword/foreword.toml",
        "session.mode = \"single\"",
    );
    assert_eq!(mode(&place, &[]), "single");
    place.write("foreword.toml", "");
    assert_eq!(mode(&place, &[]), "lenient");
    place.write("other.toml", "session.mode = \"strict\"");
    assert_eq!(mode(&place, &["--config", "other.toml"]), "strict");

    let elsewhere = Place::new().with("XDG_CONFIG_HOME", "settings");
    elsewhere.write(
        "settings/foreword/foreword.toml",
        "session.mode = \"strict\"",
    );
    assert_eq!(mode(&elsewhere, &[]), "strict");
}

#[test]
fn a_missing_file_that_was_asked_for_is_an_error() {
    expect![[r"
        exit 2
        --- stderr
        error: there is no configuration file `nowhere.toml`
        hint: give `--config` an existing file, or leave it out to run on defaults
    "]]
    .assert_eq(
        &Place::new()
            .run(&["config", "--config", "nowhere.toml"])
            .to_string(),
    );
}

#[test]
fn every_mistake_of_a_file_is_reported_with_its_line_and_the_nearest_key() {
    let place = Place::new();
    place.write(
        "foreword.toml",
        r#"data_dirr = "x"
public_base_url = 3
[http]
listen = "here"
api_max_body = -1
[session]
mode = "lenint"
chat_id_headers = "X-Chat"
[auth]
api_keys = [""]
[[auth.keys]]
name = "ci"
rol = "api"
key_file = "nowhere"
[[auth.keys]]
name = "x"
key = "s3cret"
role = 7
[nope]
x = 1
"#,
    );
    expect![[r#"
        exit 2
        --- stderr
        error: foreword.toml:1:1: unknown key `data_dirr`; did you mean `data_dir`?
        error: foreword.toml:2:19: `public_base_url` has to be a text, not the number `3`
        error: foreword.toml:4:10: `http.listen` has to be an address with a port, such as `127.0.0.1:8081`
        error: foreword.toml:5:16: `http.api_max_body` has to be a whole number, at least 0, not the number `-1`
        error: foreword.toml:7:8: `session.mode` has to be `lenient`, `single` or `strict`, not the text `lenint`; did you mean `lenient`?
        error: foreword.toml:8:19: `session.chat_id_headers` has to be a list of texts, not the text `X-Chat`; put it in brackets: ["…"]
        error: foreword.toml:10:12: `auth.api_keys` is empty; give a key, or take the line out
        error: foreword.toml:13:1: unknown key `auth.keys[0].rol`; did you mean `role`?
        error: foreword.toml:14:12: could not read `nowhere`: No such file or directory (os error 2)
        error: foreword.toml:18:8: `auth.keys[1].role` has to be `api` or `admin`, not the number `7`
        error: foreword.toml:19:2: unknown key `nope`; known here: data_dir, public_base_url, http, auth, session, library, render, delivery, links, workspace, uploads, sandbox, tools_prompt, skills, chat, connections, log
        hint: `foreword config --reference` lists every setting
    "#]].assert_eq(&place.run(&["config"]).to_string());
}

#[test]
fn every_syntax_error_of_a_file_is_reported_with_its_line() {
    let place = Place::new();
    place.write(
        "foreword.toml",
        "data_dir = \n[http\nlisten = \"127.0.0.1:1\"\n",
    );
    expect![[r#"
        exit 2
        --- stderr
        error: foreword.toml:1:12: string values must be quoted, expected literal string
        error: foreword.toml:2:6: unclosed table, expected `]`
        hint: `foreword config --reference` lists every setting
    "#]]
    .assert_eq(&place.run(&["serve"]).to_string());
}

#[test]
fn mistakes_of_the_environment_name_the_variable() {
    let place = Place::new()
        .with("FOREWORD_HTTP__LISTN", "127.0.0.1:1")
        .with("FOREWORD_AUTH__KEYS", "x")
        .with("FOREWORD_RENDER__TTL", "soon")
        .with("FOREWORD_SANDBOX__BACKEND", "dokcer")
        .with("FOREWORD_SESSION__REQUIRE_OWNER", "1")
        .with("SINGLE_USER_MODE", "maybe")
        .with("FOREWORD_ADMIN_KEY_FILE", "nowhere");
    expect![[r#"
        exit 2
        --- stderr
        error: environment FOREWORD_ADMIN_KEY_FILE: could not read `nowhere`: No such file or directory (os error 2)
        error: environment SINGLE_USER_MODE: has to be `true` or `false`, not `maybe`
        error: environment FOREWORD_SESSION__REQUIRE_OWNER: has to be `true` or `false`, not `1`
        error: environment FOREWORD_RENDER__TTL: has to be a whole number, at least 0, not `soon`
        error: environment FOREWORD_SANDBOX__BACKEND: has to be `auto`, `namespace`, `docker` or `none`, not `dokcer`; did you mean `docker`?
        error: environment FOREWORD_AUTH__KEYS: no such setting; a list of tables can only be given in `foreword.toml`
        error: environment FOREWORD_HTTP__LISTN: no such setting; did you mean `FOREWORD_HTTP__LISTEN`?
        hint: `foreword config --reference` lists every setting
    "#]].assert_eq(&place.run(&["config"]).to_string());
}

#[test]
fn names_that_are_no_settings_are_warned_about_and_have_no_effect() {
    let place = Place::new()
        .with("FOREWORD_PORT", "tcp://10.0.0.1:8081")
        .with("FOREWORD_SERVICE_HOST", "10.0.0.1")
        .with("MCP_TOKENS_URL", "http://tokens")
        .with("MCP_API_KEY", "old")
        .with("FOREWORD_API_KEY", "new");
    expect![[r#"
        warning: `MCP_API_KEY` has no effect, because `FOREWORD_API_KEY` is set too
        warning: no such setting, so without effect: `FOREWORD_PORT`, `FOREWORD_SERVICE_HOST` (`foreword config --reference` lists the names)
    "#]].assert_eq(&place.run(&["config"]).stderr);
}

#[test]
fn the_sandbox_variables_of_the_system_before_are_understood() {
    let place = Place::new()
        .with("DOCKER_IMAGE", "ubuntu")
        .with("DOCKER_HOST", "tcp://engine:2375")
        .with("COMMAND_TIMEOUT", "60")
        .with("CONTAINER_IDLE_TIMEOUT", "90")
        .with("CONTAINER_MEM_LIMIT", "512M")
        .with("CONTAINER_CPU_LIMIT", "1.5")
        .with("ENABLE_NETWORK", "false");
    let shown = place.run(&["config", "--json"]).json();
    let setting = |name: &str| &shown["settings"][format!("sandbox.{name}")]["value"];
    let values = [
        ("command_timeout_max_seconds", 60),
        ("idle_timeout_seconds", 90),
        ("memory_bytes", 512 << 20),
        ("cpu_percent", 150),
    ];
    for (name, value) in values {
        assert_eq!(setting(name), value, "{name}");
    }
    assert_eq!(setting("network"), "none");
    let place = Place::new()
        .with("CONTAINER_MEM_LIMIT", "much")
        .with("CONTAINER_CPU_LIMIT", "-1")
        .with("ENABLE_NETWORK", "yes");
    expect![[r#"
        error: environment ENABLE_NETWORK: has to be `true` or `false`, not `yes`
        error: environment CONTAINER_MEM_LIMIT: has to be a size such as `512m` or `2g`, not `much`
        error: environment CONTAINER_CPU_LIMIT: has to be a number of processors such as `1` or `1.5`, not `-1`
        hint: `foreword config --reference` lists every setting
    "#]].assert_eq(&place.run(&["config"]).stderr);
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let place = Place::new()
        .with("FOREWORD_HTTP__LISTEN", "")
        .with("FOREWORD_API_KEY", "")
        .with("SINGLE_USER_MODE", "")
        .with("FOREWORD_NONSENSE__KEY", "");
    let shown = place.run(&["config"]);
    assert_eq!(shown.stderr, "");
    assert!(
        shown
            .ok()
            .lines()
            .all(|line| line.ends_with("# default") || line.starts_with("# no"))
    );
}

#[test]
fn the_names_of_the_system_we_succeed_are_understood() {
    let place = Place::new()
        .with("MCP_API_KEY", "one, two")
        .with("SINGLE_USER_MODE", "true")
        .with("PUBLIC_BASE_URL", "https://prompts.example");
    let shown = |path| setting(&place, &[], path).0;
    assert_eq!(shown("auth.api_keys"), json!(["[redacted]", "[redacted]"]));
    assert_eq!(shown("session.mode"), "single");
    assert_eq!(shown("public_base_url"), "https://prompts.example");
}

#[test]
fn a_secret_is_never_shown() {
    let place = Place::new().with("FOREWORD_ADMIN_KEY", "s3cret-admin");
    place.write("key", "s3cret-file\n");
    place.write(
        "foreword.toml",
        "[auth]\napi_keys = [\"s3cret-api\"]\n[[auth.keys]]\nname = \"ci\"\nkey_file = \"key\"\nrole = \"api\"\n",
    );
    for arguments in [
        &["config"][..],
        &["config", "--json"],
        &["doctor", "--json"],
    ] {
        let shown = place.run(arguments).to_string();
        assert!(!shown.contains("s3cret"), "{shown}");
    }
    // Nor where it stands in the wrong place.
    place.write(
        "foreword.toml",
        "[auth]\napi_keys = \"s3cret-api\"\nadmin_keys = [1]\n",
    );
    let shown = place.run(&["config"]).to_string();
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[cfg(unix)]
#[test]
fn a_key_file_that_everybody_can_read_is_warned_about() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new().with("FOREWORD_API_KEY_FILE", "key");
    place.write("key", "one\ntwo\n");
    let permit = |mode| {
        fs::set_permissions(place.path("key"), fs::Permissions::from_mode(mode)).unwrap();
    };
    permit(0o644);
    expect![[r#"
        warning: every user of this machine can read the key file `key`; run `chmod 600 key`
    "#]]
    .assert_eq(&place.run(&["config"]).stderr);
    permit(0o640);
    let (value, origin) = setting(&place, &[], "auth.api_keys");
    assert_eq!(value, json!(["[redacted]", "[redacted]"]));
    assert_eq!(origin, "environment FOREWORD_API_KEY_FILE");
    assert_eq!(place.run(&["config"]).stderr, "");
}

#[test]
fn fault_25_an_empty_key_is_a_mistake_rather_than_no_key() {
    let place = Place::new();
    place.write(
        "foreword.toml",
        "[auth]\napi_keys = [\" \"]\n[[auth.keys]]\nname = \"a\"\nkey = \"\"\nrole = \"api\"\n",
    );
    place.write("empty", "\n");
    let place = place
        .with("FOREWORD_ADMIN_KEY_FILE", "empty")
        .with("MCP_API_KEY", ",");
    expect![[r#"
        exit 2
        --- stderr
        error: foreword.toml:2:12: `auth.api_keys` is empty; give a key, or take the line out
        error: foreword.toml:5:7: `auth.keys[0].key` is empty; give a key, or take the line out
        error: environment MCP_API_KEY: has to be a list of texts, separated by commas
        error: environment FOREWORD_ADMIN_KEY_FILE: the key file `empty` is empty
        hint: `foreword config --reference` lists every setting
    "#]]
    .assert_eq(&place.run(&["serve"]).to_string());
}

/// A value for each setting that is not its default, as TOML writes it and as JSON shows it.
fn other_value(path: &str, schema: &Value, definitions: &Value) -> (String, Value) {
    let schema = match schema["$ref"].as_str() {
        Some(name) => &definitions[name.trim_start_matches("#/$defs/")],
        None => schema,
    };
    if let Some(some) = schema["anyOf"].as_array() {
        return other_value(path, &some[0], definitions);
    }
    if let Some(words) = schema["oneOf"].as_array() {
        let word = words.last().unwrap()["const"].as_str().unwrap();
        return (format!("{word:?}"), json!(word));
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => &kinds[0],
        kind => kind,
    };
    match (path, kind.as_str().unwrap()) {
        ("http.listen", _) => ("\"127.0.0.1:9999\"".to_owned(), json!("127.0.0.1:9999")),
        (_, "integer") => ("4321".to_owned(), json!(4321)),
        (
            "uploads.uri_without_chat"
            | "tools_prompt.enabled"
            | "tools_prompt.include_schemas"
            | "skills.shipped",
            _,
        ) => ("false".to_owned(), json!(false)),
        (_, "boolean") => ("true".to_owned(), json!(true)),
        ("auth.api_keys" | "auth.admin_keys", _) => ("[\"abc\"]".to_owned(), json!(["[redacted]"])),
        ("skills.provider.key" | "chat.upstream.api_key" | "chat.anthropic.api_key", _) => {
            ("\"abc\"".to_owned(), json!("[redacted]"))
        }
        (_, "array") => ("[\"abc\"]".to_owned(), json!(["abc"])),
        _ => ("\"abc\"".to_owned(), json!("abc")),
    }
}

#[test]
fn fault_27_every_documented_setting_is_taken_from_the_file_and_from_the_environment() {
    let schema = Place::new().run(&["config", "--schema"]).json();
    let definitions = &schema["$defs"];
    let defaults = Place::new().run(&["config", "--json"]).json();
    let mut tried = 0;
    for (path, shown) in defaults["settings"].as_object().unwrap() {
        if path == "auth.keys" || path == "connections" {
            continue; // several tables, which other tests give
        }
        let setting = path.split('.').fold(&schema, |schema, key| {
            let schema = match schema["$ref"].as_str() {
                Some(name) => &definitions[name.trim_start_matches("#/$defs/")],
                None => schema,
            };
            &schema["properties"][key]
        });
        let (toml, expected) = other_value(path, setting, definitions);
        assert_ne!(
            shown["value"], expected,
            "`{path}` is tried with its default"
        );

        let by_file = Place::new();
        by_file.write("foreword.toml", &format!("{path} = {toml}\n"));
        let name = format!("FOREWORD_{}", path.replace('.', "__").to_uppercase());
        let text = toml.trim_matches(['[', ']', '"']);
        let by_variable = Place::new().with(&name, text);
        for place in [&by_file, &by_variable] {
            let settings = place.run(&["config", "--json"]).json();
            assert_eq!(settings["settings"][path]["value"], expected, "{path}");
        }
        tried += 1;
    }
    assert!(tried > 15, "only {tried} settings were tried");
}
