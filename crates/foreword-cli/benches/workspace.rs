//! Measures the workspace through the front door, the release binary over HTTP, and fails over a bar.
//!
//! What is compared is measured in turns in one run, and medians are set in relation. The load comes from the same processors.
//! Needs bubblewrap (`bwrap`), and says so. `cargo bench --workspace --bench workspace`

#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot do its work ends"
)]

#[path = "../../foreword-sandbox/benches/support/bars.rs"]
mod bars;

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

use bars::{Bars, Samples, time};
use reqwest::blocking::{Body, Client};
use serde_json::{Value, json};

const CALLS: usize = 300;
const STARTS: usize = 60;
const CALLERS: usize = 16;
const CHATS: usize = 64;
const UPLOADS: usize = 10_000;
const LARGE: u64 = 1 << 30;

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == "--list" || argument == "--test") {
        return ExitCode::SUCCESS;
    }
    foreword_server::choose_tls();
    let server = Server::start();
    let mut bars = Bars::default();
    calls(&server, &mut bars);
    starts(&server, &mut bars);
    callers(&server, &mut bars);
    chats(&server, &mut bars);
    uploads(&server, &mut bars);
    large_files(&server, &mut bars);
    if bars.missed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// A call in a running sandbox against plain bash.
fn calls(server: &Server, bars: &mut Bars) {
    let chat = server.chat("calls");
    chat.bash("true");
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let started = Instant::now();
        chat.bash("true");
        ours.push(started.elapsed());
        let mut bash = Command::new("bash");
        // A home without a profile of its own, as in the sandbox.
        plain.push(time(
            bash.args(["-lc", "true"])
                .env("HOME", server.directory.path()),
        ));
    }
    let (ours, plain) = (Samples::of(ours), Samples::of(plain));
    println!("`bash_tool` `true`, running sandbox {ours}");
    println!("plain `bash -lc true`               {plain}");
    bars.ratio("call / plain bash", ours.median(), plain.median(), 1.2);
    bars.at_most("call, median", ours.median(), Duration::from_millis(3));
    bars.at_most("call, 99 of 100", ours.p99(), Duration::from_millis(15));
}

/// The first call of a new chat, README written, against bubblewrap starting bash.
fn starts(server: &Server, bars: &mut Bars) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for number in 0..STARTS {
        let chat = server.chat(&format!("start-{number}"));
        let started = Instant::now();
        chat.bash("true");
        ours.push(started.elapsed());
        theirs.push(time(&mut bubblewrap()));
        server.delete(&chat.id);
    }
    let (ours, theirs) = (Samples::of(ours), Samples::of(theirs));
    println!("first call of a new chat            {ours}");
    println!("bubblewrap starting the same        {theirs}");
    let (ours, theirs) = (ours.median(), theirs.median());
    bars.ratio("first call / bubblewrap", ours, theirs, 1.2);
    bars.at_most("first call, median", ours, Duration::from_millis(20));
}

fn bubblewrap() -> Command {
    let mut command = Command::new("bwrap");
    command.args(["--unshare-all", "--uid", "1000", "--gid", "1000"]);
    command.args(["--ro-bind", "/usr", "/usr"]);
    for name in ["bin", "lib", "lib64", "sbin"] {
        if let Ok(target) = fs::read_link(format!("/{name}")) {
            command.arg("--symlink").arg(target).arg(format!("/{name}"));
        }
    }
    command.args(["--ro-bind", "/etc/profile", "/etc/profile"]);
    command.args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]);
    command.args(["--tmpfs", "/home/assistant", "--chdir", "/home/assistant"]);
    command.args(["--setenv", "HOME", "/home/assistant", "bash", "-lc", "true"]);
    command
}

/// How many calls a second sixteen callers get, each in a chat of its own.
fn callers(server: &Server, bars: &mut Bars) {
    let chats: Vec<_> = (0..CALLERS)
        .map(|number| server.chat(&format!("caller-{number}")))
        .collect();
    for chat in &chats {
        chat.bash("true");
    }
    let started = Instant::now();
    let calls: u32 = thread::scope(|scope| {
        let count = |chat: &Chat| {
            let mut calls = 0;
            while started.elapsed() < Duration::from_secs(3) {
                chat.bash("true");
                calls += 1;
            }
            calls
        };
        let callers: Vec<_> = chats
            .iter()
            .map(|chat| scope.spawn(move || count(chat)))
            .collect();
        callers
            .into_iter()
            .map(|caller| caller.join().unwrap())
            .sum()
    });
    let each_second = f64::from(calls) / started.elapsed().as_secs_f64();
    bars.at_least("calls a second, 16 callers", each_second, 400.0);
    for chat in &chats {
        server.delete(&chat.id);
    }
}

/// Sixty-four chats at once with ten calls each, in which each finds what it left and nothing of others.
fn chats(server: &Server, bars: &mut Bars) {
    let chats: Vec<_> = (0..CHATS)
        .map(|number| server.chat(&format!("chat-{number}")))
        .collect();
    let started = Instant::now();
    thread::scope(|scope| {
        for chat in &chats {
            scope.spawn(move || {
                for call in 0..10 {
                    let said = chat.bash(&format!(
                        "echo {} >> file; mapfile -t lines < file; printf '%s\\n' \"${{lines[-1]}}\" ${{#lines[@]}}",
                        chat.id
                    ));
                    assert_eq!(said, format!("{}\n{}", chat.id, call + 1));
                }
            });
        }
    });
    let took = started.elapsed();
    bars.at_most(
        "64 chats at once, 10 calls each",
        took,
        Duration::from_secs(2),
    );
    for chat in &chats {
        server.delete(&chat.id);
    }
}

/// A page of `resources/list` in a chat with many uploads.
fn uploads(server: &Server, bars: &mut Bars) {
    let chat = server.chat("uploads");
    chat.bash("true");
    let directory = server
        .directory
        .path()
        .join("data/workspaces/uploads/uploads");
    for number in 0..UPLOADS {
        fs::write(directory.join(format!("report {number}.txt")), "text").unwrap();
    }
    let mut samples = Vec::new();
    for _ in 0..20 {
        let started = Instant::now();
        let page = chat.ask("resources/list", &json!({}));
        samples.push(started.elapsed());
        assert_eq!(page["result"]["resources"].as_array().unwrap().len(), 100);
    }
    let median = Samples::of(samples).median();
    bars.at_most(
        "`resources/list`, 10,000 uploads",
        median,
        Duration::from_millis(25),
    );
}

/// What the server's memory grows by while a gibibyte goes up and comes down.
fn large_files(server: &Server, bars: &mut Bars) {
    let chat = server.chat("large");
    chat.bash("head -c 1G /dev/zero > /mnt/user-data/outputs/large");
    let before = server.peak_memory();
    let url = format!("{}/api/uploads/large/up", server.url);
    let body = Body::sized(std::io::repeat(7).take(LARGE), LARGE);
    let response = server.client.put(url).body(body).send().unwrap();
    assert_eq!(response.status(), 201);
    let url = format!("{}/files/large/large", server.url);
    let mut response = server.client.get(url).send().unwrap();
    assert_eq!(response.copy_to(&mut std::io::sink()).unwrap(), LARGE);
    let grown = server.peak_memory().saturating_sub(before);
    bars.bytes("memory for 1 GiB up and down", grown, 20 << 20);
}

/// The binary, serving.
struct Server {
    child: Child,
    url: String,
    client: Client,
    directory: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let settings = "[uploads]\nmax_bytes = 2000000000\nmax_total_bytes = 2000000000\n[sandbox]\nmin_free_bytes = 0\n";
        fs::write(directory.path().join("foreword.toml"), settings).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_foreword"))
            .args(["serve", "--listen", "127.0.0.1:0", "--sandbox", "namespace"])
            .current_dir(directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let listening = lines.find_map(|line| {
            line.unwrap()
                .split_once("http://")
                .map(|(_, address)| address.to_owned())
        });
        // Nobody reads on, but the pipe stays open and is drained.
        thread::spawn(move || lines.for_each(drop));
        let address = listening.unwrap();
        Self {
            child,
            url: format!("http://{address}"),
            client: Client::builder().timeout(None).build().unwrap(),
            directory,
        }
    }

    fn chat(&self, id: &str) -> Chat {
        Chat {
            id: id.to_owned(),
            url: format!("{}/mcp", self.url),
            client: self.client.clone(),
        }
    }

    fn delete(&self, chat: &str) {
        let response = self
            .client
            .delete(format!("{}/api/chats/{chat}", self.url))
            .send();
        assert_eq!(response.unwrap().status(), 204);
    }

    /// The most memory that it had resident so far, in bytes.
    fn peak_memory(&self) -> u64 {
        let status = Path::new("/proc")
            .join(self.child.id().to_string())
            .join("status");
        let status = fs::read_to_string(status).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Chat {
    id: String,
    url: String,
    client: Client,
}

impl Chat {
    fn bash(&self, command: &str) -> String {
        let answer = self.ask(
            "tools/call",
            &json!({ "name": "bash_tool", "arguments": { "command": command } }),
        );
        let result = &answer["result"];
        assert!(result["isError"] != true, "{answer}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    fn ask(&self, method: &str, params: &Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let request = self
            .client
            .post(&self.url)
            .header("accept", "application/json")
            .header("x-chat-id", &self.id);
        request.json(&message).send().unwrap().json().unwrap()
    }
}
