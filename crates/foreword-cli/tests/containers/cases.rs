//! All cases.

use std::{
    thread,
    time::{Duration, Instant},
};

use reqwest::blocking::Client;
use serde_json::{Value, json};

use crate::{
    chat::Chat,
    engine::{Engine, OwnEngine, Running},
    support::{PATIENCE, Place, eventually, get},
};

type Case = fn(&Engine);

/// What holds for every engine.
pub(crate) const ALL: &[(&str, Case)] = &[
    (
        "fault_08_two_first_calls_at_once_share_one_container",
        fault_08,
    ),
    ("fault_19_the_readme_is_fresh_in_every_call", fault_19),
    (
        "fault_22_no_port_is_published_and_nothing_more_is_allowed",
        fault_22,
    ),
    (
        "what_is_uploaded_is_there_and_what_is_made_can_be_downloaded",
        files_both_ways,
    ),
    (
        "two_servers_on_one_engine_do_not_touch_each_others_containers",
        two_servers,
    ),
    (
        "a_killed_server_leaves_containers_that_the_next_goes_on_with",
        killed_server,
    ),
    (
        "a_stopped_server_leaves_containers_that_the_next_goes_on_with",
        stopped_server,
    ),
    (
        "why_a_container_ended_while_no_server_was_there_is_told_by_the_next",
        ended_unseen,
    ),
    (
        "fault_09_tools_work_while_the_provider_of_skills_is_down",
        fault_09,
    ),
    ("a_deleted_chat_leaves_nothing_on_the_engine", deleted_chat),
    (
        "an_image_that_cannot_be_had_is_said_with_what_to_do",
        no_image,
    ),
    ("a_program_that_is_not_foreword_is_said", another_program),
];

/// What needs an engine of its own, or files that the engine sees.
pub(crate) const OF_DOCKER: &[(&str, Case)] = &[
    (
        "fault_23_an_engine_that_stops_costs_the_tools_and_not_the_prompts",
        fault_23,
    ),
    (
        "fault_23_an_engine_that_hangs_is_told_within_five_seconds",
        fault_23_hanging,
    ),
    (
        "a_server_in_a_container_on_the_hosts_socket_finds_its_files",
        in_a_container,
    ),
];

fn chat<'a>(url: &'a str, id: &'a str) -> Chat<'a> {
    Chat { url, id }
}

fn fault_08(engine: &Engine) {
    let running = Running::new(engine);
    let url = &running.url("/mcp");
    let first = "mkdir /tmp/first 2> /dev/null && echo first || echo later";
    let said: Vec<String> = thread::scope(|scope| {
        let calls: Vec<_> = (0..20)
            .map(|_| scope.spawn(|| chat(url, "c").bash(first)))
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    let firsts = said.iter().filter(|said| *said == "first").count();
    let laters = said.iter().filter(|said| *said == "later").count();
    assert_eq!((firsts, laters), (1, 19), "{said:?}");
    assert_eq!(engine.containers(&running.place).len(), 1);
}

/// And the skills that are there follow what changes, in the same container.
fn fault_09(engine: &Engine) {
    let running = Running::at(
        engine,
        engine.place_with("[skills.provider]\nurl = \"http://127.0.0.1:1\"\n"),
    );
    let url = &running.url("/mcp");
    let ask = |command: &str| {
        let arguments = json!({"command": command});
        let user = [("x-user-email", "ann@example.com")];
        chat(url, "c")
            .call_as("bash_tool", &arguments, &user)
            .to_string()
    };
    assert_eq!(
        ask("echo fine; ls /mnt/skills/public"),
        "fine\nfile-handling\nskill-creator"
    );
    let place = &running.place;
    let text = "---\nname: own\ndescription: Ann's.\n---\n\nDo it.\n";
    place.write("data/skills/user/ann@example.com/own/SKILL.md", text);
    assert_eq!(ask("tail -n 1 /mnt/skills/user/own/SKILL.md"), "Do it.");
    assert!(ask("cat ~/README.md").contains("/mnt/skills/user/own/SKILL.md"));
    let refused = ask(
        "touch /mnt/skills/user/own/x; echo >> /mnt/skills/user/own/SKILL.md; ls /mnt/skills/user/own",
    );
    assert!(
        refused.ends_with("SKILL.md") && !refused.contains("\nx"),
        "{refused}"
    );
    std::fs::remove_dir_all(place.path("data/skills/user/ann@example.com/own")).unwrap();
    assert!(!ask("ls /mnt/skills/user").contains("own"));
    assert_eq!(engine.containers(place).len(), 1);
}

fn fault_19(engine: &Engine) {
    let running = Running::new(engine);
    let url = &running.url("/mcp");
    let chat = chat(url, "c");
    let prompt = || {
        let client = Client::new().get(running.url("/system-prompt"));
        client
            .header("x-chat-id", "c")
            .send()
            .unwrap()
            .text()
            .unwrap()
    };
    assert_eq!(chat.bash("cat README.md").trim_end(), prompt().trim_end());
    // Another text, in the same container.
    running
        .place
        .write("data/system_prompts.yaml", "global_prompt: Be brave.\n");
    eventually("the new text", PATIENCE, || {
        prompt().contains("Be brave.").then_some(())
    });
    assert_eq!(chat.bash("cat README.md").trim_end(), prompt().trim_end());
    for spoil in [
        "rm README.md",
        "echo other > README.md",
        "rm README.md; mkdir README.md",
        "chmod 000 README.md",
    ] {
        chat.bash(spoil);
        assert_eq!(
            chat.bash("cat README.md").trim_end(),
            prompt().trim_end(),
            "{spoil}"
        );
    }
    // The skills that the prompt speaks of are those that are there.
    let prompt = prompt();
    let skills = chat.bash("ls /mnt/skills/*/*/SKILL.md");
    let locations = prompt
        .lines()
        .filter(|line| line.starts_with("/mnt/skills/"));
    assert_eq!(
        skills.lines().collect::<Vec<_>>(),
        locations.collect::<Vec<_>>()
    );
    assert!(skills.lines().count() > 0, "{skills}");
}

fn fault_22(engine: &Engine) {
    let running = Running::new(engine);
    let url = &running.url("/mcp");
    assert_eq!(chat(url, "c").bash("id -un"), "assistant");
    let containers = engine.containers(&running.place);
    let found = engine.inspect(&containers[0]);
    let host = &found["HostConfig"];
    assert_eq!(host["NetworkMode"], "none");
    let none = |value: &Value| value.is_null() || *value == json!({}) || *value == json!([]);
    assert!(
        none(&host["PortBindings"]) && none(&found["NetworkSettings"]["Ports"]),
        "{found}"
    );
    assert_eq!(host["Privileged"], false);
    assert_eq!(host["ReadonlyRootfs"], true);
    assert_eq!(host["Memory"], 2_i64 << 30);
    assert_eq!(host["MemorySwap"], 2_i64 << 30);
    assert!(host["PidsLimit"].as_i64().unwrap() < 600);
    assert_ne!(host["PidMode"], "host");
    let status = chat(url, "c").bash("grep -E 'Cap(Prm|Eff|Bnd|Amb)|NoNewPrivs' /proc/self/status | awk '{ print $2 }' | tr '\\n' ' '");
    assert_eq!(
        status.trim(),
        "0000000000000000 0000000000000000 0000000000000000 0000000000000000 1"
    );
}

fn files_both_ways(engine: &Engine) {
    let running = Running::new(engine);
    let url = &running.url("/mcp");
    let chat = chat(url, "c");
    let put = |name: &str, text: &'static str| {
        let request = Client::new().put(running.url(&format!("/api/uploads/c/{name}")));
        assert_eq!(request.body(text).send().unwrap().status(), 201);
    };
    put("before.txt", "before\n");
    assert_eq!(chat.bash("cat /mnt/user-data/uploads/before.txt"), "before");
    put("sub/while.txt", "while it runs\n");
    assert_eq!(
        chat.bash("cd /mnt/user-data/uploads; cat sub/while.txt; touch new 2>&1 | grep -c -e denied -e Read-only"),
        "while it runs\n1"
    );
    let deleted = Client::new().delete(running.url("/api/uploads/c/before.txt"));
    assert!(deleted.send().unwrap().status().is_success());
    assert_eq!(chat.bash("ls /mnt/user-data/uploads"), "sub");

    chat.bash(
        "cd /mnt/user-data/outputs; mkdir d; echo one > d/made.txt; echo two > 'with space.txt'",
    );
    assert_eq!(
        get(&running.url("/files/c/d/made.txt")),
        (200, "one\n".to_owned())
    );
    chat.bash("cd /mnt/user-data/outputs; echo more >> d/made.txt; rm 'with space.txt'; ln -s /etc/shadow d/link");
    assert_eq!(get(&running.url("/files/c/d/made.txt")).1, "one\nmore\n");
    assert_eq!(get(&running.url("/files/c/with%20space.txt")).0, 404);
    assert_ne!(get(&running.url("/files/c/d/link")).0, 200);
    let written = chat.call(
        "create_file",
        json!({ "path": "/mnt/user-data/outputs/tool.txt", "file_text": "by a tool\n" }),
    );
    assert!(!written.is_error, "{written}");
    assert_eq!(get(&running.url("/files/c/tool.txt")).1, "by a tool\n");
    // What the background makes is there soon.
    chat.bash("(sleep 1; echo late > /mnt/user-data/outputs/late.txt) > /dev/null 2>&1 &");
    eventually("what the background made", PATIENCE, || {
        (get(&running.url("/files/c/late.txt")).1 == "late\n").then_some(())
    });
    // Files outlive the container.
    for container in engine.containers(&running.place) {
        engine.docker(&["rm", "-f", &container]);
    }
    assert!(
        chat.bash("echo kept > kept; cat kept /mnt/user-data/outputs/tool.txt")
            .starts_with("kept\nby a tool")
    );
}

fn two_servers(engine: &Engine) {
    let (mut one, other) = (Running::new(engine), Running::new(engine));
    let urls = (one.url("/mcp"), other.url("/mcp"));
    chat(&urls.0, "same").bash("echo one > mine; sleep 9999 > /dev/null 2>&1 &");
    chat(&urls.1, "same").bash("echo other > mine; sleep 9999 > /dev/null 2>&1 &");
    let before = engine.containers(&other.place);
    // The one deletes its chat, stops, and starts again, which looks for containers of its own.
    let deleted = Client::new().delete(one.url("/api/chats/same"));
    assert!(deleted.send().unwrap().status().is_success());
    assert_eq!(engine.containers(&one.place), Vec::<String>::new());
    one.server().signal(rustix::process::Signal::TERM);
    one.server().wait();
    one.start();
    chat(&one.url("/mcp"), "same").bash("true");
    assert_eq!(engine.containers(&other.place), before);
    assert_eq!(
        chat(&urls.1, "same").bash("cat mine; pgrep -c sleep"),
        "other\n1"
    );
    // A second server with the same data directory has containers of its own, too.
    let second = other.place.serve(&["--listen", "127.0.0.1:0"]);
    assert_eq!(
        chat(&second.url("/mcp"), "same")
            .bash("cat mine 2> /dev/null; pgrep -c sleep; true")
            .lines()
            .last(),
        Some("0")
    );
    assert_eq!(chat(&urls.1, "same").bash("pgrep -c sleep"), "1");
    let word = other.place.read("data/docker/instance-2");
    let filter = format!("label=foreword.instance={word}");
    let left = engine.docker(&["ps", "-aq", "--filter", &filter]);
    drop(second);
    for container in left.lines() {
        engine.docker(&["rm", "-f", container]);
    }
}

fn goes_on_after(engine: &Engine, signal: rustix::process::Signal) {
    let mut running = Running::new(engine);
    let url = running.url("/mcp");
    chat(&url, "c").bash("touch /tmp/same; (while :; do date +%s%N > beat; sleep 0.05; done) > /dev/null 2>&1 & echo $! > number");
    // One is at work when it happens: its answer is lost, and nothing else.
    let at_work = thread::spawn(move || {
        let _ = std::panic::catch_unwind(|| chat(&url, "busy").bash("touch begun; sleep 30"));
    });
    let begun = || chat(&running.url("/mcp"), "busy").bash("ls begun 2> /dev/null") == "begun";
    eventually("it is at work", PATIENCE, || begun().then_some(()));
    let before = engine.containers(&running.place);
    assert_eq!(before.len(), 2);
    running.server().signal(signal);
    running.server().wait();
    let _ = at_work.join();
    running.start();
    let url = running.url("/mcp");
    let alive = "ls /tmp/same; kill -0 $(< number) && a=$(< beat); until [ \"$(< beat)\" != \"$a\" ]; do sleep 0.02; done; echo beats";
    assert_eq!(chat(&url, "c").bash(alive), "/tmp/same\nbeats");
    // The command whose answer nobody waited for was ended, as by hanging up.
    assert_eq!(chat(&url, "busy").bash("pgrep -c sleep; true"), "0");
    assert_eq!(engine.containers(&running.place), before);
}

fn killed_server(engine: &Engine) {
    goes_on_after(engine, rustix::process::Signal::KILL);
}

fn stopped_server(engine: &Engine) {
    goes_on_after(engine, rustix::process::Signal::TERM);
}

fn ended_unseen(engine: &Engine) {
    let quota = (32 << 20).to_string();
    let place = engine.place();
    let mut running = Running::at(
        engine,
        place.with("FOREWORD_SANDBOX__WORKSPACE_QUOTA_BYTES", &quota),
    );
    // Little by little, because what is there when it is first looked at is not held against the background.
    chat(&running.url("/mcp"), "c").bash(
        "{ until [ -e /tmp/go ]; do sleep 0.1; done; for i in $(seq 60); do head -c 6M /dev/zero > large-$i; sleep 1; done; } \
         > /dev/null 2>&1 &",
    );
    let container = engine.containers(&running.place).remove(0);
    running.server().signal(rustix::process::Signal::KILL);
    running.server().wait();
    engine.docker(&["exec", &container, "touch", "/tmp/go"]);
    let has_ended = || engine.inspect(&container)["State"]["Running"] == false;
    eventually("it is ended", PATIENCE, || has_ended().then_some(()));
    running.start();
    let url = running.url("/mcp");
    let told = "[what ran in the background wrote more than the workspace may hold";
    let ran = chat(&url, "c").bash("echo fine; rm large-*");
    assert!(ran.starts_with("fine") && ran.contains(told), "{ran}");
    let ran = chat(&url, "c").bash("echo fine");
    assert_eq!(ran, "fine");
}

fn deleted_chat(engine: &Engine) {
    let running = Running::new(engine);
    let url = &running.url("/mcp");
    chat(url, "c").bash("echo x > file");
    assert_eq!(engine.containers(&running.place).len(), 1);
    assert_eq!(engine.volumes(&running.place).is_empty(), !engine.is_apart);
    let deleted = Client::new().delete(running.url("/api/chats/c"));
    assert!(deleted.send().unwrap().status().is_success());
    assert_eq!(engine.containers(&running.place), Vec::<String>::new());
    assert_eq!(engine.volumes(&running.place), Vec::<String>::new());
    assert_eq!(
        chat(url, "c").bash("ls | grep -v README.md; true"),
        "[no output]\n[exit code 0]"
    );
}

fn no_image(engine: &Engine) {
    let other = Engine {
        image: "localhost:1/no/such:image".to_owned(),
        ..engine.clone()
    };
    let running = Running::new(&other);
    let said = chat(&running.url("/mcp"), "c").bash("true");
    assert!(said.starts_with("[isError] "), "{said}");
    assert!(
        said.contains("no image `localhost:1/no/such:image`")
            && said.contains("sandbox.docker.image"),
        "{said}"
    );
    // Prompts go on.
    assert_eq!(get(&running.url("/system-prompt")).0, 200);
}

fn another_program(engine: &Engine) {
    let script = Place::new();
    script.write("program", "#!/bin/bash\necho no foreword >&2\n");
    let path = script.path("program");
    let place = engine.place_with(&format!("program = \"{}\"\n", path.display()));
    let running = Running::at(engine, place);
    let said = chat(&running.url("/mcp"), "c").bash("true");
    assert!(said.starts_with("[isError] "), "{said}");
    assert_eq!(engine.containers(&running.place), Vec::<String>::new());
}

/// What a session sees while its engine is away.
fn assert_degraded(running: &Running<'_>) {
    let started = Instant::now();
    let said = chat(&running.url("/mcp"), "c").bash("echo alive");
    let took = started.elapsed();
    assert!(
        said.starts_with("[isError] ") && said.contains("container engine"),
        "{said}"
    );
    assert!(took < Duration::from_secs(5), "{took:?}: {said}");
    assert_eq!(get(&running.url("/system-prompt")).0, 200);
    let (status, text) = get(&running.url("/readyz"));
    let ready: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (status, &ready["status"]),
        (200, &json!("degraded")),
        "{text}"
    );
    let message = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } },
    });
    let request = Client::new()
        .post(running.url("/mcp"))
        .header("accept", "application/json")
        .header("x-chat-id", "c");
    let answer: Value = request.json(&message).send().unwrap().json().unwrap();
    let instructions = answer["result"]["instructions"].as_str().unwrap();
    assert!(instructions.contains("Be kind."), "{answer}");
}

fn assert_well(running: &Running<'_>, script: &str, expected: &str) {
    let url = running.url("/mcp");
    eventually("the tools work again", PATIENCE, || {
        let said = chat(&url, "c").bash(script);
        said.starts_with(expected).then_some(())
    });
    let (_, text) = get(&running.url("/readyz"));
    let ready: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(ready["status"], "ok", "{text}");
}

fn fault_23(engine: &Engine) {
    let mut own = OwnEngine::new(engine);
    let engine = own.engine.clone();
    let mut running = Running::new(&engine);
    assert_eq!(
        chat(&running.url("/mcp"), "c").bash("echo kept > file; cat file"),
        "kept"
    );
    // In the middle of a command.
    let url = running.url("/mcp");
    let at_work = thread::spawn(move || chat(&url, "c").bash("touch begun; sleep 600"));
    eventually("it is at work", PATIENCE, || {
        running
            .place
            .path("data/workspaces/c/home/begun")
            .exists()
            .then_some(())
    });
    own.stop();
    let said = at_work.join().unwrap();
    assert!(said.starts_with("[isError] "), "{said}");
    assert_degraded(&running);
    own.start();
    assert_well(&running, "cat file", "kept");
    // Away when the server starts.
    own.stop();
    running.server().signal(rustix::process::Signal::TERM);
    running.server().wait();
    running.start();
    running.server().wait_for_line("does not answer");
    assert_degraded(&running);
    own.start();
    assert_well(&running, "cat file", "kept");
    drop(running);
}

fn fault_23_hanging(engine: &Engine) {
    let own = OwnEngine::new(engine);
    let engine = own.engine.clone();
    let running = Running::new(&engine);
    assert_eq!(
        chat(&running.url("/mcp"), "c").bash("echo kept > file; cat file"),
        "kept"
    );
    own.signal(rustix::process::Signal::STOP);
    assert_degraded(&running);
    own.signal(rustix::process::Signal::CONT);
    assert_well(&running, "cat file", "kept");
}

/// The server runs in a container itself, and has the socket of the engine that it runs on.
fn in_a_container(engine: &Engine) {
    let own = OwnEngine::new(engine);
    let binary = env!("CARGO_BIN_EXE_foreword");
    let socket = own.socket();
    for names_the_directory in [true, false] {
        let place = Place::new();
        place.write("data/system_prompts.yaml", "global_prompt: Be kind.\n");
        let data = place.path("data").display().to_string();
        let mut words = vec![
            "run".to_owned(),
            "-d".to_owned(),
            "--network=host".to_owned(),
            format!("--volume={data}:/data"),
            format!("--volume={}:/var/run/docker.sock", socket.display()),
            format!("--volume={binary}:/usr/bin/foreword:ro"),
            "--env=FOREWORD_SANDBOX__BACKEND=docker".to_owned(),
            format!("--env=DOCKER_IMAGE={}", own.engine.image),
        ];
        if names_the_directory {
            words.push(format!(
                "--env=FOREWORD_SANDBOX__DOCKER__HOST_DATA_DIR={data}"
            ));
        }
        words.extend([
            own.engine.image.clone(),
            "foreword".to_owned(),
            "--data=/data".to_owned(),
            "--listen=127.0.0.1:0".to_owned(),
        ]);
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let container = own.engine.docker(&words).trim().to_owned();
        let address = eventually("it listens", PATIENCE, || {
            let log = own.engine.docker(&["logs", &container]);
            let line = log
                .lines()
                .find(|line| line.contains("http://127.0.0.1:"))?
                .to_owned();
            let (_, rest) = line.split_once("http://")?;
            Some(rest.split_whitespace().next()?.to_owned())
        });
        let url = format!("http://{address}/mcp");
        assert_eq!(
            chat(&url, "c")
                .bash("echo made > /mnt/user-data/outputs/made.txt; echo kept > kept; cat kept"),
            "kept"
        );
        assert_eq!(
            get(&format!("http://{address}/files/c/made.txt")).1,
            "made\n"
        );
        // With the name of the directory containers see it; without, they have volumes.
        assert_eq!(
            place.path("data/workspaces/c/home/kept").exists(),
            names_the_directory
        );
        assert_eq!(own.engine.volumes(&place).is_empty(), names_the_directory);
        own.engine.docker(&["rm", "-f", &container]);
        own.engine.clear(&place);
    }
}
