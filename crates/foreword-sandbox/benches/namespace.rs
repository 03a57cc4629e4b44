//! Measures sandboxes against what one would use instead, in one interleaved run, and fails over a bar.
//!
//! Absolute times say little on a busy machine, so what is compared is measured in turns, and medians of it are set in relation. Needs
//! bubblewrap (`bwrap`), and says so.

#[path = "support/bars.rs"]
mod bars;

use std::{
    fs,
    os::unix::fs::chown,
    process::{Command as Process, ExitCode},
    sync::Arc,
    time::{Duration, Instant},
};

use bars::{Bars, Samples, time};
use foreword_sandbox::{Command, Ending, SandboxConfig, SandboxKey, SandboxSpec, Sandboxes, Setup};

const CALLS: usize = 300;
const STARTS: usize = 60;

fn main() -> ExitCode {
    foreword_sandbox::init_main();
    if std::env::args().any(|argument| argument == "--list" || argument == "--test") {
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut bars = Bars::default();
    runtime.block_on(measure(&mut bars));
    if bars.missed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

async fn measure(bars: &mut Bars) {
    let config = SandboxConfig {
        min_free_bytes: 0,
        max_running: 64,
        ..SandboxConfig::default()
    };
    let sandboxes = foreword_sandbox::open(&Setup::new(config.clone(), std::env::temp_dir()));
    if let Some(unavailable) = sandboxes.state().unavailable {
        panic!("{unavailable}");
    }
    let place = Place {
        sandboxes,
        directory: tempfile::tempdir().expect("a directory"),
        config,
    };
    calls(&place, bars).await;
    starts(&place, bars).await;
    callers(&place, bars).await;
    chats(&place, bars).await;
}

/// A call in a running sandbox against plain bash.
async fn calls(place: &Place, bars: &mut Bars) {
    let chat = place.chat("calls");
    chat.run("true").await;
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let started = Instant::now();
        chat.run("true").await;
        ours.push(started.elapsed());
        plain.push(time(
            Process::new("bash")
                .args(["-lc", "true"])
                .env("HOME", &chat.spec.home),
        ));
    }
    let (ours, plain) = (Samples::of(ours), Samples::of(plain));
    println!("call of `true`, running sandbox     {ours}");
    println!("plain `bash -lc true`               {plain}");
    bars.ratio("call / plain bash", ours.median(), plain.median(), 1.2);
    bars.at_most("call, median", ours.median(), Duration::from_millis(3));
}

/// The first call of a new chat against bubblewrap starting the same.
async fn starts(place: &Place, bars: &mut Bars) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for number in 0..STARTS {
        let chat = place.chat(&format!("start-{number}"));
        let started = Instant::now();
        chat.run("true").await;
        ours.push(started.elapsed());
        theirs.push(time(&mut bubblewrap(&chat)));
        place.sandboxes.stop(&chat.spec.key).await;
    }
    let (ours, theirs) = (Samples::of(ours), Samples::of(theirs));
    println!("first call of a new chat            {ours}");
    println!("bubblewrap starting the same        {theirs}");
    bars.ratio(
        "first call / bubblewrap",
        ours.median(),
        theirs.median(),
        1.2,
    );
    bars.at_most(
        "first call, median",
        ours.median(),
        Duration::from_millis(20),
    );
}

fn bubblewrap(chat: &Chat) -> Process {
    let mut process = Process::new("bwrap");
    process.args([
        "--unshare-all",
        "--uid",
        "1000",
        "--gid",
        "1000",
        "--ro-bind",
        "/usr",
        "/usr",
    ]);
    for name in ["bin", "lib", "lib64", "sbin"] {
        if let Ok(target) = fs::read_link(format!("/{name}")) {
            process.arg("--symlink").arg(target).arg(format!("/{name}"));
        }
    }
    process.args([
        "--ro-bind",
        "/etc/profile",
        "/etc/profile",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--tmpfs",
        "/tmp",
    ]);
    process
        .arg("--bind")
        .arg(&chat.spec.home)
        .arg("/home/assistant");
    process
        .arg("--bind")
        .arg(&chat.spec.outputs)
        .arg("/mnt/user-data/outputs");
    process
        .arg("--ro-bind")
        .arg(&chat.spec.uploads)
        .arg("/mnt/user-data/uploads");
    process.args([
        "--chdir",
        "/home/assistant",
        "--setenv",
        "HOME",
        "/home/assistant",
        "bash",
        "-lc",
        "true",
    ]);
    process
}

/// How many calls a second sixteen callers get, each in a chat of its own.
async fn callers(place: &Place, bars: &mut Bars) {
    let chats: Vec<_> = (0..16)
        .map(|number| place.chat(&format!("caller-{number}")))
        .collect();
    futures::future::join_all(chats.iter().map(|chat| chat.run("true"))).await;
    let started = Instant::now();
    let calls = futures::future::join_all(chats.iter().map(|chat| async {
        let mut calls = 0_u32;
        while started.elapsed() < Duration::from_secs(3) {
            chat.run("true").await;
            calls += 1;
        }
        calls
    }));
    let calls: u32 = calls.await.into_iter().sum();
    let each_second = f64::from(calls) / started.elapsed().as_secs_f64();
    bars.at_least("calls a second, 16 callers", each_second, 400.0);
    place.sandboxes.stop_all().await;
}

/// Sixty-four chats at once with ten calls each, and what an idle sandbox takes.
async fn chats(place: &Place, bars: &mut Bars) {
    let chats: Vec<_> = (0..64)
        .map(|number| place.chat(&format!("chat-{number}")))
        .collect();
    let before = anonymous_bytes("self");
    let started = Instant::now();
    let work = chats.iter().map(|chat| async {
        for _ in 0..10 {
            chat.run("true").await;
        }
    });
    futures::future::join_all(work).await;
    bars.at_most(
        "64 chats at once, 10 calls each",
        started.elapsed(),
        Duration::from_secs(2),
    );
    let in_server = anonymous_bytes("self").saturating_sub(before) / 64;
    let inits: Vec<_> = children()
        .iter()
        .map(|child| anonymous_bytes(child))
        .collect();
    assert_eq!(
        inits.len(),
        64,
        "each sandbox has one process when it is idle"
    );
    let in_init = inits.iter().max().copied().unwrap_or_default();
    bars.bytes(
        "memory of an idle sandbox in the server",
        in_server,
        50 << 10,
    );
    bars.bytes("private memory of its init", in_init, 1 << 20);
    let started = Instant::now();
    place.sandboxes.stop_all().await;
    println!(
        "stopping 64                         {:.1} ms",
        started.elapsed().as_secs_f64() * 1e3
    );
}

/// Memory of a process that is not a file's and not shared.
fn anonymous_bytes(process: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let kilobytes = text.lines().find_map(|line| {
        line.strip_prefix("Private_Dirty:")?
            .trim()
            .strip_suffix(" kB")?
            .parse::<u64>()
            .ok()
    });
    kilobytes.unwrap_or_default() << 10
}

fn children() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task")
        .expect("our tasks")
        .flatten();
    let children =
        tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    children
        .flat_map(|line| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect()
}

struct Place {
    sandboxes: Arc<dyn Sandboxes>,
    directory: tempfile::TempDir,
    config: SandboxConfig,
}

impl Place {
    fn chat(&self, name: &str) -> Chat {
        let make = |part: &str| {
            let path = self.directory.path().join(name).join(part);
            fs::create_dir_all(&path).expect("a directory");
            // Where this is not root, it is ours already.
            let _ = chown(
                &path,
                Some(self.config.host_uid),
                Some(self.config.host_uid),
            );
            path
        };
        let spec = SandboxSpec {
            key: SandboxKey::new(name).expect("a safe name"),
            home: make("home"),
            outputs: make("outputs"),
            uploads: make("uploads"),
            skills: Vec::new(),
        };
        Chat {
            sandboxes: Arc::clone(&self.sandboxes),
            spec,
        }
    }
}

struct Chat {
    sandboxes: Arc<dyn Sandboxes>,
    spec: SandboxSpec,
}

impl Chat {
    async fn run(&self, script: &str) {
        let command = Command {
            script: script.to_owned(),
            environment: Vec::new(),
            timeout: Duration::from_mins(1),
        };
        let end = self
            .sandboxes
            .run(&self.spec, &command, &mut |_: &[u8]| {})
            .await
            .expect("it runs");
        assert_eq!(end.ending, Ending::Exited(0));
    }
}
