//! Every setting, seen from outside: what a server or a command does by default, and what it does with another value.
//!
//! A setting that nobody reads would show the same in both cases. Where values come from is `configuration.rs`.

mod chatting;

use std::{
    fs,
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    time::Duration,
};

use reqwest::blocking::{Client, RequestBuilder};
use serde_json::{Value, json};

use crate::{
    support::{PATIENCE, Place, Server, eventually},
    upstream::{Full, Upstream},
};

/// One setting, and what is seen by default and otherwise.
struct Probe {
    setting: &'static str,
    look: fn(&mut Servers) -> (String, String),
    seen: (&'static str, &'static str),
}

const fn probe(
    setting: &'static str,
    look: fn(&mut Servers) -> (String, String),
    by_default: &'static str,
    otherwise: &'static str,
) -> Probe {
    Probe {
        setting,
        look,
        seen: (by_default, otherwise),
    }
}

const PROBES: &[Probe] = &[
    probe("data_dir", data_dir, "in data", "in elsewhere"),
    probe(
        "public_base_url",
        public_base_url,
        "its address",
        "https://prompts.example",
    ),
    probe("http.listen", listen, "port 8081", "another port"),
    probe("http.allowed_hosts", allowed_hosts, "403", "200"),
    probe("http.cors_origins", cors_origins, "403", "200"),
    probe("http.api_max_body", api_max_body, "400", "413"),
    probe("http.mcp_max_body", mcp_max_body, "400", "413"),
    probe("http.library_max_body", library_max_body, "422", "413"),
    probe("http.timeout_seconds", timeout_seconds, "waits", "answers"),
    probe("http.max_connections", max_connections, "answers", "waits"),
    probe("http.body_memory", body_memory, "answers", "waits"),
    probe(
        "auth.api_keys",
        api_keys,
        "without 200, with 200",
        "without 401, with 200",
    ),
    probe(
        "auth.admin_keys",
        admin_keys,
        "API 204, admin 204",
        "API 403, admin 204",
    ),
    probe("auth.keys", keys, "full", "hint"),
    probe("session.mode", session_mode, "200", "400"),
    probe(
        "session.chat_id_headers",
        chat_id_headers,
        "default",
        "my-own",
    ),
    probe("library.history", history, "3 undone", "1 undone"),
    probe("library.poll_seconds", poll_seconds, "seen", "not seen"),
    probe("render.ttl", render_ttl, "kept", "not kept"),
    probe("render.cache_bytes", render_cache_bytes, "kept", "not kept"),
    probe("delivery.instructions", instructions, "full", "hint"),
    probe("links.epoch", links_epoch, "stay", "change"),
    probe("session.require_owner", require_owner, "done", "refused"),
    probe("workspace.retention", retention, "kept", "deleted"),
    probe("uploads.max_bytes", upload_bytes, "201", "413"),
    probe("uploads.max_total_bytes", upload_total, "201", "413"),
    probe("uploads.max_read_bytes", upload_read, "read", "error"),
    probe("uploads.uri_without_chat", upload_uri, "read", "error"),
    probe("sandbox.backend", sandbox_backend, "ok", "error"),
    probe("sandbox.rootfs", sandbox_rootfs, "ok", "error"),
    probe(
        "sandbox.network",
        network,
        "no network",
        "the host's network",
    ),
    probe(
        "sandbox.idle_timeout_seconds",
        idle_timeout,
        "10 minutes",
        "7 minutes",
    ),
    probe(
        "sandbox.command_timeout_max_seconds",
        command_timeout,
        "600 s",
        "77 s",
    ),
    probe(
        "sandbox.memory_bytes",
        memory,
        "2 GiB of memory",
        "1 GiB of memory",
    ),
    probe(
        "sandbox.cpu_percent",
        cpu,
        "one processor",
        "50 % of a processor",
    ),
    probe(
        "sandbox.max_processes",
        processes,
        "512 processes",
        "99 processes",
    ),
    probe("sandbox.max_open_files", open_files, "4096", "77"),
    probe("sandbox.tmp_bytes", tmp, "1024 MiB", "3 MiB"),
    probe(
        "sandbox.workspace_quota_bytes",
        quota,
        "10 GiB of files",
        "5 GiB of files",
    ),
    probe(
        "sandbox.max_running",
        max_running,
        "64 at a time",
        "3 at a time",
    ),
    probe("sandbox.min_free_bytes", min_free, "goes on", "ended"),
    probe("sandbox.host_uid", host_uid, "64000", "64777"),
    probe(
        "sandbox.docker.host",
        docker_host,
        "unix:///var/run/docker.sock",
        "unix:///nowhere",
    ),
    probe(
        "sandbox.docker.cert_path",
        docker_cert_path,
        "no answer",
        "no certificate",
    ),
    probe(
        "tools_prompt.enabled",
        tools_prompt_enabled,
        "tools",
        "none",
    ),
    probe(
        "tools_prompt.include_schemas",
        include_schemas,
        "parameters",
        "none",
    ),
    probe("tools_prompt.max_tools", max_tools, "both", "1 of 2"),
    probe(
        "tools_prompt.include_unexposed",
        include_unexposed,
        "one server",
        "two servers",
    ),
    probe("skills.shipped", shipped_skills, "shipped", "none"),
    probe("skills.provider.url", provider_url, "not asked", "asked"),
    probe(
        "skills.provider.handshake_wait",
        handshake_wait,
        "waits",
        "does not wait",
    ),
    probe(
        "skills.provider.key",
        provider_key,
        "without a key",
        "with the key",
    ),
    probe(
        "connections",
        connections,
        "hidden, tiny",
        "hidden, more, tiny",
    ),
    probe(
        "chat.default_model",
        chatting::default_model,
        "422",
        "200 small",
    ),
    probe(
        "chat.system_role",
        chatting::system_role,
        "system",
        "developer",
    ),
    probe(
        "chat.include_workspace",
        chatting::include_workspace,
        "no guide",
        "a guide",
    ),
    probe("chat.list_profiles", chatting::list_profiles, "m", "m, m@p"),
    probe("chat.max_body", chatting::chat_body, "200", "413"),
    probe(
        "chat.upstream.base_url",
        chatting::upstream_url,
        "501",
        "200",
    ),
    probe(
        "chat.upstream.api_key",
        chatting::upstream_key,
        "no key",
        "of-the-upstream",
    ),
    probe(
        "chat.upstream.forward_authorization",
        chatting::forward_authorization,
        "no key",
        "theirs",
    ),
    probe(
        "chat.upstream.timeout",
        chatting::upstream_timeout,
        "waits",
        "504",
    ),
    probe(
        "chat.upstream.connect_timeout",
        chatting::upstream_connect_timeout,
        "waits",
        "502",
    ),
    probe(
        "chat.anthropic.base_url",
        chatting::anthropic_url,
        "501",
        "200",
    ),
    probe(
        "chat.anthropic.api_key",
        chatting::anthropic_key,
        "501",
        "of-the-other",
    ),
    probe("log.level", log_level, "silent", "says each answer"),
    probe("log.format", log_format, "text", "JSON"),
];

/// What only a container engine can show: `tests/containers` does.
const WITH_AN_ENGINE: [&str; 4] = [
    "sandbox.docker.files",
    "sandbox.docker.host_data_dir",
    "sandbox.docker.image",
    "sandbox.docker.program",
];

#[test]
fn fault_27_every_setting_changes_what_can_be_observed() {
    let shown = Place::new().run(&["config", "--json"]).json();
    for setting in shown["settings"].as_object().unwrap().keys() {
        let is_probed = PROBES.iter().any(|probe| probe.setting == setting);
        let is_probed = is_probed || WITH_AN_ENGINE.contains(&setting.as_str());
        assert!(is_probed, "`{setting}` needs a probe");
    }
    let mut servers = Servers::start();
    for probe in PROBES {
        let (by_default, otherwise) = (probe.look)(&mut servers);
        let seen = (by_default.as_str(), otherwise.as_str());
        assert_eq!(seen, probe.seen, "{}", probe.setting);
    }
}

/// Servers that differ in several settings each.
struct Servers {
    by_default: Running,
    limited: Running,
    strict: Running,
    keyed: Running,
    linked: Running,
    crowded: Running,
    boxed: Running,
    provider: Provider,
    upstream: Upstream,
    /// Passes on, with as little set as can be.
    chatting: Running,
    /// Passes on, with all that can be set otherwise.
    chatting_otherwise: Running,
    /// Cannot connect, with as little set as can be, and otherwise.
    unconnected: (Running, Running),
    _full: Full,
}

struct Running {
    place: Place,
    server: Server,
}

const LIBRARY: &str =
    "global_prompt: Before.\nprofiles: [{id: p, sections: [{id: s, content: Within.}]}]\n";

const LIMITED: &str = r#"
data_dir = "elsewhere"
public_base_url = "https://prompts.example"
http.allowed_hosts = ["named.example"]
http.cors_origins = ["https://app.example"]
http.api_max_body = 1000
http.mcp_max_body = 3000
http.library_max_body = 5000
delivery.instructions = "hint"
render.ttl = 0
tools_prompt.include_schemas = false
session.require_owner = true
uploads.max_bytes = 10
log.level = "debug"
"#;

const STRICT: &str = r#"
http.timeout_seconds = 2
session.mode = "strict"
session.chat_id_headers = ["X-My-Chat"]
uploads.max_total_bytes = 10
library.poll_seconds = 3600
render.cache_bytes = 0
tools_prompt.max_tools = 1
log.format = "json"
"#;

const KEYED: &str = r#"
tools_prompt.include_unexposed = true
uploads.max_read_bytes = 10
auth.api_keys = ["the-api-key-of-this-test"]
auth.admin_keys = ["the-admin-key-of-this-test"]
[[auth.keys]]
name = "third"
key = "the-third-key-of-this-test"
role = "api"
instructions = "hint"
"#;

const LINKED: &str = r#"
auth.api_keys = ["the-api-key-of-this-test"]
http.body_memory = 1
links.epoch = 1
tools_prompt.enabled = false
skills.shipped = false
uploads.uri_without_chat = false
"#;

const BOXED: &str = r#"
auth.api_keys = ["the-api-key-of-this-test"]
sandbox.network = "host"
sandbox.idle_timeout_seconds = 420
sandbox.command_timeout_max_seconds = 77
sandbox.memory_bytes = 1073741824
sandbox.cpu_percent = 50
sandbox.max_processes = 99
sandbox.max_open_files = 77
sandbox.tmp_bytes = 3145728
sandbox.workspace_quota_bytes = 5368709120
sandbox.max_running = 3
sandbox.min_free_bytes = 1000000000000000
sandbox.host_uid = 64777
"#;

/// Stands in `[chat.upstream]`.
const CHATTING: &str = r#"
api_key = "of-the-upstream"
forward_authorization = true
timeout = 1
[chat]
default_model = "small"
system_role = "developer"
include_workspace = true
list_profiles = true
max_body = 200
"#;

const CROWDED: &str = "
http.max_connections = 1
connections.more.url = 'http://127.0.0.1:1/mcp'
connections.more.disabled = true
";

const API_KEY: &str = "the-api-key-of-this-test";
const ADMIN_KEY: &str = "the-admin-key-of-this-test";
const THIRD_KEY: &str = "the-third-key-of-this-test";

impl Servers {
    fn start() -> Self {
        let provider = Provider::start();
        let (upstream, full) = (Upstream::start(), Full::start());
        let at = |address, more: &str| {
            let url = format!("[chat.upstream]\nbase_url = \"http://{address}/v1\"\n{more}");
            Running::with(&url)
        };
        let other = format!(
            "[chat.anthropic]\nbase_url = \"http://{}\"\n",
            upstream.address
        );
        let by_default = Place::new();
        by_default.write("data/system_prompts.yaml", LIBRARY);
        write_connections(&by_default);
        Self {
            by_default: Running {
                server: by_default.serve(&[]),
                place: by_default,
            },
            limited: Running::with(&format!(
                "{LIMITED}{}",
                provider.settings("handshake_wait = 1")
            )),
            strict: Running::with(STRICT),
            keyed: Running::with(&format!(
                "{KEYED}{}",
                provider.settings("key = \"of-the-provider\"")
            )),
            linked: Running::with(LINKED),
            crowded: Running::with(CROWDED),
            boxed: Running::with(BOXED),
            provider,
            chatting: at(upstream.address, &other),
            chatting_otherwise: at(
                upstream.address,
                &format!("{CHATTING}{other}api_key = \"of-the-other\"\n"),
            ),
            unconnected: (
                at(full.address, ""),
                at(full.address, "connect_timeout = 1\n"),
            ),
            upstream,
            _full: full,
        }
    }
}

/// A provider of skills that is asked and never answers.
struct Provider {
    address: std::net::SocketAddr,
    asked: std::sync::Arc<std::sync::Mutex<Vec<String>>>,
}

impl Provider {
    fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let provider = Self {
            address: listener.local_addr().unwrap(),
            asked: std::sync::Arc::default(),
        };
        let asked = std::sync::Arc::clone(&provider.asked);
        std::thread::spawn(move || {
            let mut connections = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                let mut head = [0; 2000];
                let mut stream = stream;
                let read = stream.read(&mut head).unwrap_or(0);
                asked
                    .lock()
                    .unwrap()
                    .push(String::from_utf8_lossy(&head[..read]).to_lowercase());
                connections.push(stream);
            }
        });
        provider
    }

    fn settings(&self, more: &str) -> String {
        format!(
            "[skills.provider]\nurl = \"http://{}\"\n{more}\n",
            self.address
        )
    }

    /// The head of the request that asked for this user.
    fn asked_for(&self, user: &str) -> String {
        eventually("the provider is asked", PATIENCE, || {
            let asked = self.asked.lock().unwrap();
            asked.iter().find(|head| head.contains(user)).cloned()
        })
    }
}

/// A server whose tools are handed on, and one whose are not, wherever the data is.
fn write_connections(place: &Place) {
    place.write("tiny.sh", include_str!("tiny.sh"));
    let tiny = json!({"command": "/bin/sh", "args": [place.path("tiny.sh")]});
    let mut hidden = tiny.clone();
    hidden["expose"] = false.into();
    let servers = json!({"mcpServers": {"tiny": tiny, "hidden": hidden}}).to_string();
    for data in ["data", "elsewhere"] {
        place.write(&format!("{data}/connections.json"), &servers);
    }
}

impl Running {
    /// Takes its address from the file, too.
    fn with(settings: &str) -> Self {
        let place = Place::new();
        place.write("data/system_prompts.yaml", LIBRARY);
        write_connections(&place);
        let listen = "http.listen = \"127.0.0.1:0\"\n";
        place.write("foreword.toml", &format!("{listen}{settings}"));
        Self {
            server: place.start(&["serve"]),
            place,
        }
    }

    fn get(&self, path: &str) -> RequestBuilder {
        Client::new().get(self.server.url(path))
    }

    fn post(&self, path: &str) -> RequestBuilder {
        let request = Client::new().post(self.server.url(path));
        request
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
    }

    /// The prompt of a chat that is named in each way that these servers know.
    fn prompt(&self) -> RequestBuilder {
        let request = self.get("/system-prompt");
        request.header("x-chat-id", "a").header("x-my-chat", "a")
    }
}

fn status(request: RequestBuilder) -> String {
    request.send().unwrap().status().as_u16().to_string()
}

fn data_dir(servers: &mut Servers) -> (String, String) {
    let kept = |running: &Running| {
        let places = ["data", "elsewhere"].into_iter();
        let kept = places.filter(|name| running.place.path(name).join("VERSION").exists());
        format!("in {}", kept.collect::<Vec<_>>().join(" and "))
    };
    (kept(&servers.by_default), kept(&servers.limited))
}

fn public_base_url(servers: &mut Servers) -> (String, String) {
    let named = |running: &Running| {
        let response = running.prompt().send().unwrap();
        let url = response.headers()["x-public-base-url"].to_str().unwrap();
        url.replace(&running.server.url(""), "its address")
    };
    (named(&servers.by_default), named(&servers.limited))
}

fn listen(servers: &mut Servers) -> (String, String) {
    let doctor = servers.by_default.place.run(&["doctor", "--json"]).stdout;
    let by_default = if doctor.contains("`127.0.0.1:8081`") {
        "port 8081"
    } else {
        "another port"
    };
    let otherwise = if servers.limited.server.address().ends_with(":8081") {
        "port 8081"
    } else {
        "another port"
    };
    (by_default.to_owned(), otherwise.to_owned())
}

fn allowed_hosts(servers: &mut Servers) -> (String, String) {
    let asked =
        |running: &Running| status(running.get("/mcp-info").header("host", "named.example"));
    (asked(&servers.by_default), asked(&servers.limited))
}

fn cors_origins(servers: &mut Servers) -> (String, String) {
    let asked = |running: &Running| {
        status(
            running
                .get("/mcp-info")
                .header("origin", "https://app.example"),
        )
    };
    (asked(&servers.by_default), asked(&servers.limited))
}

fn api_max_body(servers: &mut Servers) -> (String, String) {
    let asked =
        |running: &Running| status(running.post("/api/prompts/sections").body(" ".repeat(2000)));
    (asked(&servers.by_default), asked(&servers.limited))
}

fn mcp_max_body(servers: &mut Servers) -> (String, String) {
    let asked = |running: &Running| status(running.post("/mcp").body(" ".repeat(4000)));
    (asked(&servers.by_default), asked(&servers.limited))
}

fn library_max_body(servers: &mut Servers) -> (String, String) {
    let asked = |running: &Running| {
        let request = Client::new().post(running.server.url("/api/prompts/import"));
        let request = request.header("content-type", "application/yaml");
        status(request.body(" ".repeat(6000)))
    };
    (asked(&servers.by_default), asked(&servers.limited))
}

fn timeout_seconds(servers: &mut Servers) -> (String, String) {
    let unfinished = |running: &Running| {
        let mut stream = TcpStream::connect(running.server.address()).unwrap();
        stream
            .write_all(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n")
            .unwrap();
        stream
    };
    let (mut by_default, mut strict) =
        (unfinished(&servers.by_default), unfinished(&servers.strict));
    let otherwise = answers(&mut strict, PATIENCE);
    (
        answers(&mut by_default, Duration::from_millis(10)),
        otherwise,
    )
}

fn max_connections(servers: &mut Servers) -> (String, String) {
    let second = |running: &Running, patience| {
        let mut first = TcpStream::connect(running.server.address()).unwrap();
        first.write_all(GET_HEALTH).unwrap();
        assert_eq!(answers(&mut first, PATIENCE), "answers");
        let mut second = TcpStream::connect(running.server.address()).unwrap();
        second.write_all(GET_HEALTH).unwrap();
        answers(&mut second, patience)
    };
    (
        second(&servers.by_default, PATIENCE),
        second(&servers.crowded, Duration::from_millis(300)),
    )
}

/// One client stalls in the middle of a large body; does another with a large body get an answer?
fn body_memory(servers: &mut Servers) -> (String, String) {
    const LARGE: usize = 200 << 10;
    let send = |running: &Running, bytes: usize| {
        let mut stream = TcpStream::connect(running.server.address()).unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {API_KEY}\r\n\
             content-type: application/json\r\ncontent-length: {LARGE}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&vec![b' '; bytes]).unwrap();
        stream
    };
    let seen = |running: &Running| {
        let _stalled = send(running, LARGE / 2);
        // Until the first has its share, the second may still be faster.
        let waits = |_| answers(&mut send(running, LARGE), Duration::from_millis(300)) == "waits";
        if (0..10).any(waits) {
            "waits"
        } else {
            "answers"
        }
        .to_owned()
    };
    (seen(&servers.by_default), seen(&servers.linked))
}

const GET_HEALTH: &[u8] = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// Whether something comes back in time.
fn answers(stream: &mut TcpStream, patience: Duration) -> String {
    stream.set_read_timeout(Some(patience)).unwrap();
    match stream.read(&mut [0; 16]) {
        Ok(length) => assert!(length > 0, "it hung up"),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            return "waits".to_owned();
        }
        Err(error) => panic!("{error}"),
    }
    "answers".to_owned()
}

fn api_keys(servers: &mut Servers) -> (String, String) {
    let asked = |running: &Running| {
        let without = status(running.prompt());
        let with = status(running.prompt().bearer_auth(API_KEY));
        format!("without {without}, with {with}")
    };
    (asked(&servers.by_default), asked(&servers.keyed))
}

fn admin_keys(servers: &mut Servers) -> (String, String) {
    let asked = |running: &Running| {
        let clear = |key: &str| {
            let url = running.server.url("/api/render-cache");
            status(Client::new().delete(url).bearer_auth(key))
        };
        format!("API {}, admin {}", clear(API_KEY), clear(ADMIN_KEY))
    };
    (asked(&servers.by_default), asked(&servers.keyed))
}

fn keys(servers: &mut Servers) -> (String, String) {
    let form = |running: &Running| form(running.post("/mcp").bearer_auth(THIRD_KEY));
    (form(&servers.by_default), form(&servers.keyed))
}

fn instructions(servers: &mut Servers) -> (String, String) {
    let form = |running: &Running| form(running.post("/mcp"));
    (form(&servers.by_default), form(&servers.limited))
}

/// The form of the instructions that are the answer: only the full one begins with the library's text.
fn form(request: RequestBuilder) -> String {
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        },
    });
    let answer = request.body(initialize.to_string()).send().unwrap();
    let answer: serde_json::Value = serde_json::from_str(&answer.text().unwrap()).unwrap();
    let instructions = answer["result"]["instructions"].as_str().unwrap();
    let begins = |text: &str| instructions.starts_with(text);
    let form = if begins("Before.") || begins("After.") {
        "full"
    } else {
        "hint"
    };
    form.to_owned()
}

fn session_mode(servers: &mut Servers) -> (String, String) {
    let asked = |running: &Running| status(running.get("/system-prompt"));
    (asked(&servers.by_default), asked(&servers.strict))
}

fn chat_id_headers(servers: &mut Servers) -> (String, String) {
    let chat = |running: &Running| {
        let request = running.get("/system-prompt").header("x-my-chat", "my-own");
        let prompt = request.send().unwrap().text().unwrap();
        let chats = ["my-own", "default"].into_iter();
        let named = chats.filter(|chat| prompt.contains(&format!("`{chat}`")));
        named.collect::<Vec<_>>().join(" and ")
    };
    (chat(&servers.by_default), chat(&servers.strict))
}

fn history(_servers: &mut Servers) -> (String, String) {
    let undone = |configuration: &str| {
        let place = Place::new();
        place.write("foreword.toml", configuration);
        for text in ["One.", "Two.", "Three."] {
            place.run(&["global", "set", "--content", text]).ok();
        }
        let undone = (0..4).take_while(|_| place.run(&["undo"]).code == Some(0));
        format!("{} undone", undone.count())
    };
    (undone(""), undone("library.history = 1\n"))
}

/// A change through another name of the file, of which the operating system tells nobody who watches the directory.
fn poll_seconds(servers: &mut Servers) -> (String, String) {
    let change = |running: &Running| {
        let (file, other_name) = ("data/system_prompts.yaml", "linked.yaml");
        fs::hard_link(running.place.path(file), running.place.path(other_name)).unwrap();
        running.place.write(other_name, "global_prompt: After.\n");
    };
    change(&servers.strict);
    change(&servers.by_default);
    let sees = |running: &Running| {
        let prompt = running.prompt().send().unwrap().text().unwrap();
        prompt.starts_with("After.")
    };
    eventually("a look at the file", PATIENCE, || {
        sees(&servers.by_default).then_some(())
    });
    let otherwise = if sees(&servers.strict) {
        "seen"
    } else {
        "not seen"
    };
    ("seen".to_owned(), otherwise.to_owned())
}

fn render_ttl(servers: &mut Servers) -> (String, String) {
    (is_kept(&servers.by_default), is_kept(&servers.limited))
}

fn render_cache_bytes(servers: &mut Servers) -> (String, String) {
    (is_kept(&servers.by_default), is_kept(&servers.strict))
}

/// Whether a prompt is taken from the cache that was asked for before.
fn is_kept(running: &Running) -> String {
    let hits = || {
        let metrics = running.get("/metrics").send().unwrap().text().unwrap();
        let line = metrics
            .lines()
            .find(|line| line.starts_with("foreword_render_cache_hits_total"));
        line.unwrap().to_owned()
    };
    running.prompt().send().unwrap();
    let before = hits();
    running.prompt().send().unwrap();
    if hits() == before { "not kept" } else { "kept" }.to_owned()
}

fn links_epoch(servers: &mut Servers) -> (String, String) {
    let link = |running: &Running| {
        let response = running.prompt().bearer_auth(API_KEY).send().unwrap();
        let link = response.headers()["x-file-base-url"].to_str();
        link.unwrap().to_owned()
    };
    let (kept, short) = (link(&servers.keyed), link(&servers.linked));
    eventually("another link", PATIENCE, || {
        (link(&servers.linked) != short).then_some(())
    });
    let is_same = link(&servers.keyed) == kept;
    let by_default = if is_same { "stay" } else { "change" };
    (by_default.to_owned(), "change".to_owned())
}

fn sandbox_backend(_servers: &mut Servers) -> (String, String) {
    let state = |configuration: &str| {
        let place = Place::new();
        place.write("foreword.toml", configuration);
        let findings = place.run(&["doctor", "--json"]).json();
        let findings = findings["findings"].as_array().unwrap();
        let sandbox = findings.iter().find(|finding| finding["what"] == "sandbox");
        sandbox.unwrap()["state"].as_str().unwrap().to_owned()
    };
    (
        state(""),
        state("sandbox.backend = \"docker\"\nsandbox.docker.host = \"unix:///nowhere\"\n"),
    )
}

fn require_owner(servers: &mut Servers) -> (String, String) {
    let told = |running: &Running| {
        let said = printed(running, "echo done");
        if said == "done" { "done" } else { "refused" }.to_owned()
    };
    (told(&servers.by_default), told(&servers.limited))
}

/// A chat that was last used a day before the server started, and then was spared once.
fn retention(_servers: &mut Servers) -> (String, String) {
    let left = |setting: &str| {
        let place = Place::new();
        place.write("foreword.toml", setting);
        let mut running = Running {
            server: place.serve(&[]),
            place,
        };
        assert_eq!(printed(&running, "echo used"), "used");
        let chat = running.place.path("data/workspaces/probe");
        running.server.signal(rustix::process::Signal::TERM);
        running.server.wait();
        let day = std::time::SystemTime::now() - Duration::from_hours(24);
        let used_a_day_before = |name: &str| {
            let mut options = fs::File::options();
            let file = options.write(true).create(true).truncate(false);
            file.open(chat.join(name))
                .unwrap()
                .set_modified(day)
                .unwrap();
        };
        used_a_day_before("used");
        let mut server = running.place.serve(&[]);
        if setting.is_empty() {
            // Long after the first look, which happens at the start.
            std::thread::sleep(Duration::from_millis(500));
            assert!(chat.exists());
            return "kept".to_owned();
        }
        // What became due before the start is spared first.
        server.wait_for_line("are deleted in 60 minutes");
        assert!(chat.exists());
        server.signal(rustix::process::Signal::TERM);
        server.wait();
        used_a_day_before("used");
        used_a_day_before("spared");
        let _server = running.place.serve(&[]);
        eventually("the chat is deleted", PATIENCE, || {
            (!chat.exists()).then_some(())
        });
        "deleted".to_owned()
    };
    (left(""), left("workspace.retention = 3600\n"))
}

/// Puts twenty bytes into the chat `uploads`.
fn upload(running: &Running) -> String {
    let request = Client::new().put(running.server.url("/api/uploads/uploads/text.txt"));
    let request = request.header("authorization", format!("Bearer {API_KEY}"));
    status(
        request
            .header("x-user-email", "ann@example.com")
            .body("x".repeat(20)),
    )
}

fn upload_bytes(servers: &mut Servers) -> (String, String) {
    (upload(&servers.by_default), upload(&servers.limited))
}

fn upload_total(servers: &mut Servers) -> (String, String) {
    let first = upload(&servers.by_default).replace("200", "201");
    (first, upload(&servers.strict))
}

/// Reads what was uploaded, by a request that names the chat or none.
fn read_upload(running: &Running, names_chat: bool) -> String {
    upload(running);
    let read = json!({
        "jsonrpc": "2.0", "id": 1, "method": "resources/read",
        "params": { "uri": "file://uploads/uploads/text.txt" },
    });
    let mut request = running
        .post("/mcp")
        .header("authorization", format!("Bearer {API_KEY}"));
    if names_chat {
        request = request.header("x-chat-id", "uploads");
    }
    let answer: serde_json::Value = request.json(&read).send().unwrap().json().unwrap();
    if answer["result"]["contents"].is_array() {
        "read"
    } else {
        "error"
    }
    .to_owned()
}

fn upload_read(servers: &mut Servers) -> (String, String) {
    (
        read_upload(&servers.by_default, true),
        read_upload(&servers.keyed, true),
    )
}

fn upload_uri(servers: &mut Servers) -> (String, String) {
    (
        read_upload(&servers.by_default, false),
        read_upload(&servers.linked, false),
    )
}

fn sandbox_rootfs(_servers: &mut Servers) -> (String, String) {
    let state = |rootfs: &str| {
        let place = Place::new();
        place.write(
            "foreword.toml",
            &format!("sandbox.backend = \"namespace\"\n{rootfs}"),
        );
        let findings = place.run(&["doctor", "--json"]).json();
        let findings = findings["findings"].as_array().unwrap();
        let sandbox = findings.iter().find(|finding| finding["what"] == "sandbox");
        sandbox.unwrap()["state"].as_str().unwrap().to_owned()
    };
    (state(""), state("sandbox.rootfs = \"/does/not/exist\"\n"))
}

/// What `doctor` says of the engine of `[sandbox.docker]` with these settings.
fn engine_with(settings: &str) -> String {
    let place = Place::new();
    place.write(
        "foreword.toml",
        &format!("sandbox.backend = \"docker\"\n{settings}"),
    );
    let findings = place.run(&["doctor", "--json"]).json();
    let findings = findings["findings"].as_array().unwrap();
    let sandbox = findings.iter().find(|finding| finding["what"] == "sandbox");
    sandbox.unwrap().to_string()
}

fn docker_host(_servers: &mut Servers) -> (String, String) {
    let by_default = Place::new().run(&["config", "--json"]).json();
    assert_eq!(
        by_default["settings"]["sandbox.docker.host"]["value"],
        serde_json::Value::Null
    );
    let said = engine_with("sandbox.docker.host = \"unix:///nowhere\"\n");
    let otherwise = if said.contains("unix:///nowhere") {
        "unix:///nowhere"
    } else {
        "elsewhere"
    };
    // An engine may run on this machine.
    (
        "unix:///var/run/docker.sock".to_owned(),
        otherwise.to_owned(),
    )
}

fn docker_cert_path(_servers: &mut Servers) -> (String, String) {
    let of = |more: &str| {
        let said = engine_with(&format!(
            "sandbox.docker.host = \"tcp://127.0.0.1:1\"\n{more}"
        ));
        if said.contains("/nowhere") {
            "no certificate"
        } else {
            "no answer"
        }
    };
    (
        of("").to_owned(),
        of("sandbox.docker.cert_path = \"/nowhere\"\n").to_owned(),
    )
}

/// What a command prints in the workspace of a server.
fn printed(running: &Running, command: &str) -> String {
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "bash_tool", "arguments": { "command": command } },
    });
    let request = running.post("/mcp").header("x-chat-id", "probe");
    let request = request.header("authorization", format!("Bearer {API_KEY}"));
    let answer: serde_json::Value = request.json(&call).send().unwrap().json().unwrap();
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"))
        .to_owned()
}

/// Which of two words the guide of a server has.
fn in_guide(servers: &mut Servers, by_default: &str, otherwise: &str) -> (String, String) {
    let said = |running: &Running| {
        let guide = printed(running, "cat README.md");
        let words = [by_default, otherwise]
            .into_iter()
            .filter(|word| guide.contains(word));
        words.collect::<Vec<_>>().join(" and ")
    };
    (said(&servers.by_default), said(&servers.boxed))
}

fn network(servers: &mut Servers) -> (String, String) {
    let mut said = |running: fn(&mut Servers) -> &mut Running| {
        let line = running(servers).server.printed();
        let networks = ["no network", "the host's network"].into_iter();
        networks
            .filter(|word| line.contains(word))
            .collect::<Vec<_>>()
            .join(" and ")
    };
    (
        said(|servers| &mut servers.by_default),
        said(|servers| &mut servers.boxed),
    )
}

fn idle_timeout(servers: &mut Servers) -> (String, String) {
    in_guide(servers, "10 minutes", "7 minutes")
}

fn command_timeout(servers: &mut Servers) -> (String, String) {
    in_guide(servers, "600 s", "77 s")
}

fn memory(servers: &mut Servers) -> (String, String) {
    in_guide(servers, "2 GiB of memory", "1 GiB of memory")
}

fn cpu(servers: &mut Servers) -> (String, String) {
    in_guide(servers, "one processor", "50 % of a processor")
}

fn processes(servers: &mut Servers) -> (String, String) {
    in_guide(servers, "512 processes", "99 processes")
}

fn quota(servers: &mut Servers) -> (String, String) {
    in_guide(servers, "10 GiB of files", "5 GiB of files")
}

fn open_files(servers: &mut Servers) -> (String, String) {
    let limit = |running: &Running| printed(running, "ulimit -n");
    (limit(&servers.by_default), limit(&servers.boxed))
}

fn tmp(servers: &mut Servers) -> (String, String) {
    let size = |running: &Running| {
        let kibibytes = printed(running, "df -k --output=size /tmp | tail -1");
        format!("{} MiB", kibibytes.trim().parse::<u64>().unwrap() >> 10)
    };
    (size(&servers.by_default), size(&servers.boxed))
}

fn max_running(servers: &mut Servers) -> (String, String) {
    let mut said = |running: fn(&mut Servers) -> &mut Running| {
        let line = running(servers).server.printed();
        let numbers = ["64 at a time", "3 at a time"].into_iter();
        numbers
            .filter(|word| line.contains(word))
            .collect::<Vec<_>>()
            .join(" and ")
    };
    (
        said(|servers| &mut servers.by_default),
        said(|servers| &mut servers.boxed),
    )
}

/// A disk that is never free enough ends what writes to it.
fn min_free(servers: &mut Servers) -> (String, String) {
    let written = |running: &Running| {
        let said = printed(
            running,
            "for i in $(seq 40); do head -c 65536 /dev/zero >> grown; sleep 0.1; done",
        );
        if said.contains("[ended: the disk is full") {
            "ended"
        } else {
            "goes on"
        }
        .to_owned()
    };
    (written(&servers.by_default), written(&servers.boxed))
}

/// Whose the files are on the host, where the server is root; else they are its own.
fn host_uid(servers: &mut Servers) -> (String, String) {
    use std::os::unix::fs::MetadataExt;
    let owner = |running: &Running, data: &str| {
        printed(running, "touch mine");
        let home = running.place.path(data).join("workspaces/probe/home/mine");
        fs::metadata(home).unwrap().uid()
    };
    let owners = (
        owner(&servers.by_default, "data"),
        owner(&servers.boxed, "data"),
    );
    if rustix::process::geteuid().is_root() {
        return (owners.0.to_string(), owners.1.to_string());
    }
    assert_eq!(owners.0, owners.1);
    ("64000".to_owned(), "64777".to_owned())
}

/// The tools prompt, once the servers are connected.
fn tools_prompt(running: &Running) -> Value {
    eventually("the servers are connected", PATIENCE, || {
        let request = running.get("/api/prompts/mcp-tools").bearer_auth(API_KEY);
        let shown: Value = request.send().unwrap().json().unwrap();
        let servers = shown["servers"].as_array().unwrap().iter();
        let waited_for = servers.filter(|server| server["state"] != "disabled");
        let ready = waited_for
            .filter(|server| server["state"] == "ready")
            .count();
        (ready == 2).then_some(shown)
    })
}

fn tools_text(running: &Running) -> String {
    tools_prompt(running)["mcp_tools_prompt"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn tools_prompt_enabled(servers: &mut Servers) -> (String, String) {
    let shows = |running: &Running| {
        let any = tools_text(running).contains("tiny__");
        if any { "tools" } else { "none" }.to_owned()
    };
    (shows(&servers.by_default), shows(&servers.linked))
}

fn include_schemas(servers: &mut Servers) -> (String, String) {
    let shows = |running: &Running| {
        let any = tools_text(running).contains("Which word.");
        if any { "parameters" } else { "none" }.to_owned()
    };
    (shows(&servers.by_default), shows(&servers.limited))
}

fn max_tools(servers: &mut Servers) -> (String, String) {
    let shows = |running: &Running| {
        let cut = tools_text(running).contains("1 of 2 tools are shown");
        if cut { "1 of 2" } else { "both" }.to_owned()
    };
    (shows(&servers.by_default), shows(&servers.strict))
}

fn include_unexposed(servers: &mut Servers) -> (String, String) {
    let shows = |running: &Running| {
        let both = tools_text(running).contains("### hidden");
        if both { "two servers" } else { "one server" }.to_owned()
    };
    (shows(&servers.by_default), shows(&servers.keyed))
}

fn connections(servers: &mut Servers) -> (String, String) {
    let names = |running: &Running| {
        let shown = tools_prompt(running);
        let servers = shown["servers"].as_array().unwrap().iter();
        let names: Vec<&str> = servers
            .map(|server| server["name"].as_str().unwrap())
            .collect();
        names.join(", ")
    };
    (names(&servers.by_default), names(&servers.crowded))
}

fn skills(running: &Running) -> Value {
    let request = running.get("/api/skills").bearer_auth(API_KEY);
    request.send().unwrap().json().unwrap()
}

fn shipped_skills(servers: &mut Servers) -> (String, String) {
    let found = |running: &Running| {
        let shown = skills(running);
        let mut all = shown["skills"].as_array().unwrap().iter();
        let any = all.any(|skill| skill["origin"] == "shipped");
        if any { "shipped" } else { "none" }.to_owned()
    };
    (found(&servers.by_default), found(&servers.linked))
}

fn provider_url(servers: &mut Servers) -> (String, String) {
    let asked = |running: &Running| {
        let asked = skills(running)["provider"] == true;
        if asked { "asked" } else { "not asked" }.to_owned()
    };
    (asked(&servers.by_default), asked(&servers.limited))
}

/// How long the prompt of a user takes who was never seen before.
fn prompt_of(running: &Running, user: &str) -> Duration {
    let started = std::time::Instant::now();
    let request = running
        .prompt()
        .header("x-user-email", format!("{user}@example.com"));
    let answer = request.bearer_auth(API_KEY).send().unwrap();
    assert_eq!(answer.status(), 200);
    started.elapsed()
}

fn provider_key(servers: &mut Servers) -> (String, String) {
    let key = |running: &Running, user: &str| {
        prompt_of(running, user);
        let head = servers.provider.asked_for(user);
        let sent = head.contains("x-internal-api-key: of-the-provider");
        if sent {
            "with the key"
        } else {
            "without a key"
        }
        .to_owned()
    };
    (
        key(&servers.limited, "keyless"),
        key(&servers.keyed, "keyful"),
    )
}

fn handshake_wait(servers: &mut Servers) -> (String, String) {
    let waits = |running: &Running, user: &str| {
        let long = prompt_of(running, user) >= Duration::from_millis(790);
        if long { "waits" } else { "does not wait" }.to_owned()
    };
    (
        waits(&servers.keyed, "patient"),
        waits(&servers.limited, "hasty"),
    )
}

fn log_level(servers: &mut Servers) -> (String, String) {
    servers.limited.prompt().send().unwrap();
    servers.limited.server.wait_for_line("Answered 200");
    let printed = servers.by_default.server.printed();
    let by_default = if printed.contains("Answered 200") {
        "says each answer"
    } else {
        "silent"
    };
    (by_default.to_owned(), "says each answer".to_owned())
}

fn log_format(servers: &mut Servers) -> (String, String) {
    let format = |running: &mut Running| {
        let printed = running.server.printed();
        let first = printed.lines().next().unwrap();
        let is_json = serde_json::from_str::<serde_json::Value>(first).is_ok();
        if is_json { "JSON" } else { "text" }.to_owned()
    };
    (format(&mut servers.by_default), format(&mut servers.strict))
}
