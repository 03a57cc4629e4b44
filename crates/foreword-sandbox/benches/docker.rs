//! Measures sandboxes in containers against the engine's own `exec`, `create` and `start`, in one interleaved run, and fails over a bar.
//!
//! The engine is the first of `FOREWORD_TEST_ENGINES` (see the contract), and is asked over its API, so no program's start is measured.

#[path = "support/bars.rs"]
#[expect(dead_code, reason = "the other benchmark compares with programs, too")]
mod bars;

use std::{
    fs,
    os::unix::fs::chown,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use bars::{Bars, Samples};
use bollard::{
    API_DEFAULT_VERSION, Docker,
    exec::StartExecResults,
    models::{ContainerCreateBody, ExecConfig, HostConfig},
    query_parameters::{CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder},
};
use foreword_sandbox::{
    BackendName, Command, ContainerFiles, DockerConfig, Ending, SandboxConfig, SandboxKey,
    SandboxSpec, Setup,
};
use futures::StreamExt;

const CALLS: usize = 60;
const STARTS: usize = 15;
/// What the specification allows over the engine's own time.
const MOST: f64 = 1.1;

fn main() -> ExitCode {
    foreword_sandbox::init_main();
    if std::env::args().any(|argument| argument == "--list" || argument == "--test") {
        return ExitCode::SUCCESS;
    }
    let given = std::env::var("FOREWORD_TEST_ENGINES").unwrap_or_default();
    let engine = given.split_ascii_whitespace().next();
    let Some((name, rest)) = engine.and_then(|engine| engine.split_once('=')) else {
        eprintln!(
            "this needs an engine: set FOREWORD_TEST_ENGINES to `docker=unix:///var/run/docker.sock,IMAGE`"
        );
        return ExitCode::FAILURE;
    };
    let mut words = rest.split(',');
    let (host, image) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    println!("engine `{name}`");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut bars = Bars::default();
    runtime.block_on(measure(host, image, &mut bars));
    if bars.missed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

async fn measure(host: &str, image: &str, bars: &mut Bars) {
    let directory = tempfile::tempdir().expect("a directory");
    let config = SandboxConfig {
        backend: BackendName::Docker,
        min_free_bytes: 0,
        docker: DockerConfig {
            host: Some(host.to_owned()),
            image: image.to_owned(),
            files: ContainerFiles::Binds,
            ..DockerConfig::default()
        },
        ..SandboxConfig::default()
    };
    let sandboxes = foreword_sandbox::open(&Setup::new(config, directory.path()));
    let spec = |name: &str| spec(directory.path(), name);
    let command = Command {
        script: "true".to_owned(),
        environment: Vec::new(),
        timeout: Duration::from_mins(1),
    };
    let call = async |spec: &SandboxSpec| {
        let started = Instant::now();
        let end = sandboxes.run(spec, &command, &mut |_: &[u8]| {}).await;
        let took = started.elapsed();
        assert_eq!(end.expect("a command runs").ending, Ending::Exited(0));
        took
    };
    let plain = Plain::new(host, image);
    let running = plain.start().await.0;

    let chat = spec("calls");
    call(&chat).await;
    plain.exec(&running).await;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        ours.push(call(&chat).await);
        theirs.push(plain.exec(&running).await);
    }
    let (ours, theirs) = (Samples::of(ours), Samples::of(theirs));
    println!("call of `true`, running container   {ours}");
    println!("the engine's exec of the same       {theirs}");
    bars.ratio("call / exec", ours.median(), theirs.median(), MOST);

    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for number in 0..STARTS {
        let chat = spec(&format!("start-{number}"));
        ours.push(call(&chat).await);
        sandboxes.stop(&chat.key).await;
        let (id, took) = plain.start().await;
        theirs.push(took);
        plain.remove(&id).await;
    }
    let (ours, theirs) = (Samples::of(ours), Samples::of(theirs));
    println!("first call of a new chat            {ours}");
    println!("the engine's create and start       {theirs}");
    bars.ratio(
        "first call / create and start",
        ours.median(),
        theirs.median(),
        MOST,
    );
    plain.remove(&running).await;
    sandboxes.stop_all().await;
}

/// The directories of a chat, which belong to the user of containers.
fn spec(root: &Path, name: &str) -> SandboxSpec {
    let make = |place: &str| {
        let path = root.join("workspaces").join(name).join(place);
        fs::create_dir_all(&path).expect("a directory");
        if rustix::process::geteuid().is_root() {
            let uid = Some(foreword_sandbox::CONTAINER_UID);
            chown(&path, uid, uid).expect("it is ours to give");
        }
        path
    };
    SandboxSpec {
        key: SandboxKey::new(name).expect("a harmless name"),
        home: make("home"),
        outputs: make("outputs"),
        uploads: make("uploads"),
        skills: Vec::new(),
    }
}

/// The engine, as one would use it by hand.
struct Plain {
    client: Docker,
    image: String,
}

impl Plain {
    fn new(host: &str, image: &str) -> Self {
        let client = if host.starts_with("tcp://") {
            Docker::connect_with_http(host, 60, API_DEFAULT_VERSION)
        } else {
            Docker::connect_with_unix(host, 60, API_DEFAULT_VERSION)
        };
        Self {
            client: client.expect("an engine"),
            image: image.to_owned(),
        }
    }

    async fn start(&self) -> (String, Duration) {
        let body = ContainerCreateBody {
            image: Some(self.image.clone()),
            cmd: Some(vec!["sleep".to_owned(), "infinity".to_owned()]),
            host_config: Some(HostConfig {
                network_mode: Some("none".to_owned()),
                init: Some(true),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let started = Instant::now();
        let options = CreateContainerOptionsBuilder::default().build();
        let created = self.client.create_container(Some(options), body).await;
        let id = created.expect("a container").id;
        let start = self.client.start_container(&id, None).await;
        start.expect("it starts");
        (id, started.elapsed())
    }

    async fn exec(&self, container: &str) -> Duration {
        let config = ExecConfig {
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(["bash", "-lc", "true"].map(str::to_owned).into()),
            ..ExecConfig::default()
        };
        let started = Instant::now();
        let exec = self.client.create_exec(container, config).await;
        let exec = exec.expect("an exec").id;
        let running = self.client.start_exec(&exec, None).await;
        if let StartExecResults::Attached { mut output, .. } = running.expect("it starts") {
            while output.next().await.is_some() {}
        }
        let ended = self.client.inspect_exec(&exec).await.expect("it ended");
        let took = started.elapsed();
        assert_eq!(ended.exit_code, Some(0));
        took
    }

    async fn remove(&self, container: &str) {
        let options = RemoveContainerOptionsBuilder::default().force(true).build();
        let removed = self.client.remove_container(container, Some(options)).await;
        removed.expect("it is removed");
    }
}
