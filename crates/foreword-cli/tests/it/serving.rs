//! `foreword serve`: starting, what it says, what it refuses, and a library that changes under it.

use std::{fs, net::TcpListener, time::Duration};

use expect_test::expect;

use crate::support::{PATIENCE, Place, eventually, get};

/// The seed's file, as it stands there.
const SEED: &str = r#"profiles:
  - id: default
    name: Default Assistant
    description: General-purpose AI assistant
    is_default: true
    sections:
      - id: identity
        name: Identity
        type: persona
        content: "You are a helpful AI assistant."
        enabled: true
        order: 0
"#;

#[test]
fn with_nothing_configured_it_serves_and_says_how() {
    let place = Place::new();
    let mut server = place.serve(&[]);
    server.wait_for_line("public_base_url");
    expect![[r#"
        Foreword 0.1.0
          listening  http://[ADDRESS]
          mcp        http://[ADDRESS]/mcp
          docs       http://[ADDRESS]/docs
          library    built in, 5 profiles; the first edit, or `foreword init`, writes ./data/system_prompts.yaml
          sandbox    namespace: no network, 2048 MiB of memory and 512 processes each, 64 at a time
          warning    no key is set: every process on this machine may read and change the prompts; set `FOREWORD_API_KEY`
          warning    `public_base_url` is not set, so links in prompts open on this machine only; set `FOREWORD_PUBLIC_BASE_URL` to the address under which browsers reach the server"#]].assert_eq(&server.printed());
    let (status, prompt) = get(&server.url("/system-prompt"));
    assert_eq!(status, 200);
    assert!(!prompt.is_empty());
}

#[test]
fn without_a_command_it_serves() {
    let place = Place::new();
    place.write("foreword.toml", "sandbox.memory_bytes = 1\n");
    let ran = place.run(&["--listen", "127.0.0.1:0"]);
    assert!(ran.stderr.contains("sandbox.memory_bytes"), "{ran}"); // so it got as far as `serve` does
}

#[test]
fn the_seeds_file_is_live_soon_after_it_is_put_there() {
    let place = Place::new();
    let server = place.serve(&[]);
    place.write("data/system_prompts.yaml", SEED);
    // Within a second on a machine with nothing else to do; polling alone would take five.
    eventually("the new prompt", Duration::from_secs(4), || {
        let (_, prompt) = get(&server.url("/system-prompt"));
        prompt
            .contains("You are a helpful AI assistant.")
            .then_some(())
    });
}

#[test]
fn an_edit_from_the_shell_reaches_a_running_server() {
    let place = Place::new();
    let server = place.serve(&[]);
    place.run(&["global", "set", "--content", "Be exact."]).ok();
    eventually("the edit", PATIENCE, || {
        let (_, prompt) = get(&server.url("/system-prompt"));
        prompt.starts_with("Be exact.").then_some(())
    });
}

#[test]
fn a_file_that_breaks_while_it_serves_keeps_the_last_good_library() {
    let place = Place::new();
    place.write("data/system_prompts.yaml", SEED);
    let server = place.serve(&[]);
    place.write("data/system_prompts.yaml", "profiles: [\n");
    eventually("degraded", PATIENCE, || {
        let (_, ready) = get(&server.url("/readyz"));
        ready.contains("degraded").then_some(())
    });
    let (status, prompt) = get(&server.url("/system-prompt"));
    assert_eq!(status, 200);
    assert!(prompt.contains("You are a helpful AI assistant."));
    assert_eq!(place.read("data/system_prompts.yaml"), "profiles: [\n");
}

#[test]
fn fault_25_it_refuses_to_serve_a_network_without_a_key() {
    let place = Place::new();
    expect![[r#"
        exit 2
        --- stderr
        error: listening on `0.0.0.0:0` without a key would let everybody on the network read and change the prompts; set `FOREWORD_API_KEY`, or listen on `127.0.0.1`, or start with `--allow-unauthenticated`
    "#]].assert_eq(&place.run(&["--listen", "0.0.0.0:0"]).to_string());
    let place = place.with("FOREWORD_API_KEY", "");
    assert_eq!(place.run(&["--listen", "0.0.0.0:0"]).code, Some(2));
}

#[test]
fn a_cluster_probes_and_scrapes_it_by_an_address_that_it_does_not_know() {
    let place = Place::new().with("FOREWORD_API_KEY", "0123456789abcdef");
    let server = place.serve(&["--listen", "0.0.0.0:0", "--sandbox", "none"]);
    let client = reqwest::blocking::Client::new();
    // As kubelet and Prometheus ask: by the address of the pod.
    let ask = |path: &str| {
        client
            .get(server.url(path))
            .header("host", "10.244.1.7:8081")
    };
    let status = |request: reqwest::blocking::RequestBuilder| request.send().unwrap().status();
    for probe in ["/health", "/healthz", "/readyz"] {
        assert_eq!(status(ask(probe)), 200, "{probe}");
    }
    assert_eq!(status(ask("/metrics")), 401);
    let metrics = ask("/metrics").bearer_auth("0123456789abcdef");
    let metrics = metrics.send().unwrap();
    assert_eq!(metrics.status(), 200);
    assert!(metrics.text().unwrap().contains("foreword_"));
    // All else is refused under such a name, with the key too.
    let prompt = ask("/system-prompt").bearer_auth("0123456789abcdef");
    assert_eq!(status(prompt), 403);
}

#[test]
fn with_a_key_requests_without_it_are_refused() {
    let place = Place::new().with("FOREWORD_API_KEY", "s3cret");
    let mut server = place.serve(&[]);
    assert_eq!(get(&server.url("/system-prompt")).0, 401);
    let client = reqwest::blocking::Client::new();
    let request = client
        .get(server.url("/system-prompt"))
        .bearer_auth("s3cret");
    assert_eq!(request.send().unwrap().status(), 200);
    server.wait_for_line("public_base_url"); // the last line of the start
    let printed = server.printed();
    assert!(
        !printed.contains("no key") && !printed.contains("s3cret"),
        "{printed}"
    );
}

#[test]
fn a_port_in_use_is_said_so() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = Place::new().run(&["--listen", &address]).to_string();
    expect![[r#"
        exit 2
        --- stderr
        error: `[ADDRESS]` is in use by another process
        hint: stop that one, or listen elsewhere: `--listen 127.0.0.1:0` takes a free port
    "#]]
    .assert_eq(&ran.replace(&address, "[ADDRESS]"));
}

#[test]
fn a_container_engine_that_is_away_is_a_warning_and_costs_the_tools_only() {
    let place = Place::new().with("DOCKER_HOST", "unix:///nowhere/docker.sock");
    let mut server = place.serve(&["--sandbox", "docker"]);
    let warning = server.wait_for_line("warning");
    expect!["  warning    no key is set: every process on this machine may read and change the prompts; set `FOREWORD_API_KEY`"].assert_eq(&warning);
    let url = server.url("/mcp");
    let chat = crate::chat::Chat { url: &url, id: "c" };
    let said = chat.bash("true");
    assert!(said.starts_with("[isError] "), "{said}");
    assert!(said.contains("sandbox.docker.host"), "{said}");
    assert_eq!(get(&server.url("/system-prompt")).0, 200);
    let ran = Place::new().with("DOCKER_HOST", "ssh://elsewhere").run(&[
        "--listen",
        "127.0.0.1:0",
        "--sandbox",
        "docker",
    ]);
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("sandbox.docker.host"), "{ran}");
    let mut server = Place::new().serve(&["--sandbox", "none"]);
    server.wait_for_line("sandbox ");
}

#[test]
fn the_start_says_it_in_at_most_fifteen_lines() {
    let mut place = Place::new();
    for number in 0..20 {
        let file = format!("key-{number}");
        place.write(&file, "secret-key\n");
    }
    let keys: Vec<String> = (0..20)
        .map(|number| {
            format!(
                "[[auth.keys]]\nname = \"k{number}\"\nkey_file = \"key-{number}\"\nrole = \"api\""
            )
        })
        .collect();
    place.write("foreword.toml", &keys.join("\n"));
    place = place.with("FOREWORD_PORT", "1");
    let mut server = place.serve(&[]);
    server.wait_for_line("more warnings");
    let printed = server.printed();
    assert_eq!(printed.lines().count(), 15, "{printed}");
}

#[test]
fn json_logs_are_json_lines_with_the_request_id() {
    let place = Place::new().with("FOREWORD_LOG__LEVEL", "debug");
    let mut server = place.serve(&["--log-format", "json"]);
    let client = reqwest::blocking::Client::new();
    let request = client
        .get(server.url("/system-prompt?additional=hidden"))
        .header("x-request-id", "my-request");
    request.send().unwrap();
    let line = server.wait_for_line("my-request");
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["span"]["http.route"], "/system-prompt", "{line}");
    let printed = server.printed();
    assert!(!printed.contains("hidden"), "{printed}");
    for line in printed.lines() {
        serde_json::from_str::<serde_json::Value>(line)
            .unwrap_or_else(|_| panic!("no JSON: {line}"));
    }
}

#[cfg(unix)]
#[test]
fn the_link_key_is_for_its_owner_only_and_rotates() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    drop(place.serve(&[]));
    let path = place.path("data/link.key");
    let key = fs::read(&path).unwrap();
    assert_eq!(key.len(), 32);
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    place.run(&["links", "rotate"]).ok();
    assert_ne!(fs::read(&path).unwrap(), key);
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    fs::write(&path, "short").unwrap();
    expect![[r#"
        exit 2
        --- stderr
        error: `./data/link.key` is not a link key
        hint: `foreword links rotate` makes a new one; links handed out before stop working
    "#]]
    .assert_eq(&place.run(&["--listen", "127.0.0.1:0"]).to_string());
}

#[test]
fn init_writes_what_serves_and_never_overwrites() {
    let place = Place::new();
    expect![[r#"
        exit 0
        --- stdout
        wrote  ./data/system_prompts.yaml: the library, with comments that explain it
        wrote  foreword.toml: every setting with its default or an example
        next: `foreword check` looks for mistakes, `foreword` serves
    "#]]
    .assert_eq(&place.run(&["init"]).to_string());
    expect![[r#"
        exit 0
        --- stdout
        ./data/system_prompts.yaml: 0 errors, 0 warnings, 0 notes
    "#]]
    .assert_eq(&place.run(&["check"]).to_string());
    place.write("foreword.toml", "# mine\n");
    place.write("data/system_prompts.yaml", SEED);
    expect![[r#"
        exit 0
        --- stdout
        kept   ./data/system_prompts.yaml: it exists
        kept   foreword.toml: it exists
        next: `foreword check` looks for mistakes, `foreword` serves
    "#]]
    .assert_eq(&place.run(&["init"]).to_string());
    assert_eq!(place.read("foreword.toml"), "# mine\n");
    assert_eq!(place.read("data/system_prompts.yaml"), SEED);
}

#[test]
fn doctor_says_what_works_and_the_cure_for_the_rest() {
    let place = Place::new();
    // A port that was free a moment ago, since the default one may be in use on this machine.
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let ran = place.run(&["doctor", "--listen", &free]).to_string();
    expect![[r#"
        exit 0
        --- stdout
        ok     configuration  no `foreword.toml`, so defaults, environment and flags
        ok     data           `./data` will be made on first use
        ok     library        built in, since there is no file yet; `foreword init` writes one to start from
        ok     links          a link key will be made on first use
        note   keys           no key is set: every process on this machine may read and change the prompts; set `FOREWORD_API_KEY`
        note   url            `public_base_url` is not set, so links in prompts open on this machine only; set `FOREWORD_PUBLIC_BASE_URL` to the address under which browsers reach the server
        ok     address        `[ADDRESS]` is free
        ok     sandbox        namespace: no network, 2048 MiB of memory and 512 processes each, 64 at a time
        ok     limit          memory_bytes: kept by control groups (v1)
        ok     limit          cpu_percent: kept by control groups (v1)
        ok     limit          max_processes: kept by control groups (v1)
        ok     limit          max_open_files: kept by the kernel
        ok     limit          tmp_bytes: kept by the kernel
        ok     limit          workspace_quota_bytes: looked at each second
        ok     limit          min_free_bytes: looked at each second
        ok     skills         0 skills for all in the data directory, and those that come with Foreword
        ok     connection     none; `./data/connections.json` would name MCP servers to connect to
    "#]].assert_eq(&ran.replace(&free, "[ADDRESS]"));
    assert!(!place.path("data").exists(), "looking made something");

    place.write("data/system_prompts.yaml", "profiles: 3\n");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let place = place.with("FOREWORD_ADMIN_KEY", "admin");
    let ran = place
        .with("DOCKER_HOST", "unix:///nowhere/docker.sock")
        .run(&["doctor", "--listen", &address, "--sandbox", "docker"])
        .to_string();
    expect![[r#"
        exit 1
        --- stdout
        ok     configuration  no `foreword.toml`, so defaults, environment and flags
        ok     data           `./data` can be written
        error  library        `./data/system_prompts.yaml` has 1 mistake; `foreword check` shows them
        ok     links          a link key will be made on first use
        error  settings       there is an admin key but no API key, so nobody but admins could use the server; set `FOREWORD_API_KEY` too
        error  address        `[ADDRESS]` is in use by another process; stop that one, or use `--listen`
        error  sandbox        the container engine at unix:///nowhere/docker.sock does not answer: Socket not found: /nowhere/docker.sock; start it, or set `sandbox.docker.host` to where it is
        ok     skills         0 skills for all in the data directory, and those that come with Foreword
        ok     connection     none; `./data/connections.json` would name MCP servers to connect to
    "#]].assert_eq(&ran.replace(&address, "[ADDRESS]"));
}

#[test]
fn localhost_is_the_loopback_address() {
    let place = Place::new();
    let server = place.serve(&["--listen", "localhost:0"]);
    assert!(server.address().starts_with("127.0.0.1:"));
    let place = Place::new().with("FOREWORD_HTTP__LISTEN", "localhost:0");
    place.start(&["serve"]);
    let ran = place.run(&["--listen", "elsewhere:0"]);
    assert_eq!(ran.code, Some(2), "{ran}");
}

#[test]
fn doctor_tells_a_foreword_that_runs_from_another_process() {
    let place = Place::new();
    let server = place.serve(&[]);
    let address = server.address().to_owned();
    let ran = place.run(&["doctor", "--listen", &address]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(
        ran.stdout
            .contains(&format!("a Foreword runs on `{address}` already")),
        "{ran}"
    );
}

#[test]
fn doctor_finds_what_keeps_serve_from_starting() {
    for (file, text, expected) in [
        ("data/library.seen", "", "is missing, but was there before"),
        ("data/VERSION", "999\n", "has version `999`"),
        (
            "data/link.key",
            "short",
            "is not a link key; `foreword links rotate`",
        ),
    ] {
        let place = Place::new();
        place.write(file, text);
        let doctor = place.run(&["doctor", "--listen", "127.0.0.1:0"]);
        assert_eq!(doctor.code, Some(1), "{file}: {doctor}");
        assert!(doctor.stdout.contains(expected), "{file}: {doctor}");
        let files = fs::read_dir(place.path("data")).unwrap().count();
        assert_eq!(files, 1, "{file}: looking made something");
        let serve = place.run(&["serve", "--listen", "127.0.0.1:0"]);
        assert_eq!(serve.code, Some(2), "{file}: {serve}");
    }
}

#[test]
fn no_word_of_a_prompt_that_slipped_out_of_place_reaches_the_log() {
    let slipped = "profiles:\n  - id: a\n    sections:\n      - id: x\n        content: |\n          One\nSecret plan: obey\n";
    let place = Place::new();
    place.write("data/system_prompts.yaml", SEED);
    let mut server = place.serve(&[]);
    place.write("data/system_prompts.yaml", slipped);
    let line = server.wait_for_line("cannot be used");
    assert!(line.contains("7:1: unknown-key"), "{line}");
    let printed = server.printed();
    assert!(!printed.contains("Secret"), "{printed}");
    drop(server);
    // What a start says ends in a log as well, where it is no terminal.
    let ran = place.run(&["serve", "--listen", "127.0.0.1:0"]);
    expect![[r#"
        exit 2
        --- stderr
        error: ./data/system_prompts.yaml:7:1: unknown-key
        hint: mend the file, which was not touched (`foreword check ./data/system_prompts.yaml` says what is wrong), or replace it with `foreword import FILE --replace-broken`
    "#]].assert_eq(&ran.to_string());
    let ran = place.run(&["check"]);
    assert!(ran.stdout.contains("Secret plan"), "{ran}");
}

#[cfg(unix)]
#[test]
fn init_writes_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.run(&["init", "--data", "deep/data"]).ok();
    let mode = |path| fs::metadata(place.path(path)).unwrap().permissions().mode() & 0o777;
    for directory in ["deep", "deep/data"] {
        assert_eq!(mode(directory), 0o700, "{directory}");
    }
    for file in ["foreword.toml", "deep/data/system_prompts.yaml"] {
        assert_eq!(mode(file), 0o600, "{file}");
    }
    // Nothing of how they were written is left.
    assert_eq!(fs::read_dir(place.path("deep/data")).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn a_write_that_fails_half_way_leaves_no_half_file() {
    use std::process::Command;
    let place = Place::new();
    // No file may grow beyond a few hundred bytes, as if the disk were full.
    let limited = format!("ulimit -f 1; exec {} init", env!("CARGO_BIN_EXE_foreword"));
    let ended = Command::new("sh")
        .args(["-c", &limited])
        .current_dir(place.path(""))
        .output()
        .unwrap();
    assert!(!ended.status.success(), "{ended:?}");
    assert!(!place.path("data/system_prompts.yaml").exists());
    let again = place.run(&["init"]).ok();
    assert!(
        again.contains("wrote  ./data/system_prompts.yaml"),
        "{again}"
    );
}

#[test]
fn a_browser_is_led_to_the_documentation_which_needs_no_key() {
    let place = Place::new().with("FOREWORD_API_KEY", "an-api-key-of-the-test");
    let mut server = place.serve(&[]);
    let line = server.wait_for_line("docs ");
    assert!(line.ends_with(&server.url("/docs")), "{line}");
    let (status, page) = get(&server.url("/"));
    assert_eq!(status, 200);
    assert!(page.starts_with("<!doctype html>"), "{page}");
    assert_eq!(get(&server.url("/system-prompt")).0, 401);
}

#[test]
fn the_start_warns_of_doubtful_keys_and_of_hosts_without_a_name() {
    let place = Place::new().with("FOREWORD_API_KEY", "short");
    let address = "127.0.0.1:0";
    let said = place.run(&["doctor", "--listen", address]).stdout;
    for expected in ["no admin key", "shorter than 16 characters"] {
        assert!(said.contains(expected), "{said}");
    }
    let said = place.run(&["doctor", "--listen", "0.0.0.0:0"]).stdout;
    assert!(said.contains("`http.allowed_hosts`"), "{said}");
    let mut server = place.serve(&[]);
    server.wait_for_line("no admin key");
    server.wait_for_line("shorter than 16 characters");
}

#[cfg(target_os = "linux")]
#[test]
fn the_server_takes_all_open_files_that_it_may_have() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let lowered = Rlimit {
        current: Some(256),
        ..limit
    };
    setrlimit(Resource::Nofile, lowered).unwrap();
    let place = Place::new();
    let server = place.serve(&[]);
    setrlimit(Resource::Nofile, limit).unwrap();
    let limits = fs::read_to_string(format!("/proc/{}/limits", server.id())).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let words: Vec<_> = line.unwrap().split_ascii_whitespace().collect();
    assert_eq!(words[3], words[4]);
    assert_ne!(words[3], "256");
}
