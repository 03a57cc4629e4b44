//! The engines, and servers on them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use crate::support::{PATIENCE, Place, Server, eventually};

/// An engine that this run was given.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) image: String,
    /// It does not see this machine's files.
    pub(crate) is_apart: bool,
}

impl Engine {
    pub(crate) fn all() -> Vec<Self> {
        let given = std::env::var("FOREWORD_TEST_ENGINES").unwrap_or_default();
        let read = |engine: &str| {
            let (name, rest) = engine.split_once('=').unwrap();
            let words: Vec<_> = rest.split(',').collect();
            Self {
                name: name.to_owned(),
                host: words[0].to_owned(),
                image: words[1].to_owned(),
                is_apart: words.len() > 2,
            }
        };
        given.split_ascii_whitespace().map(read).collect()
    }

    /// A place whose server uses this engine.
    pub(crate) fn place(&self) -> Place {
        self.place_with("")
    }

    /// The same with more in `[sandbox.docker]`.
    pub(crate) fn place_with(&self, more: &str) -> Place {
        let place = Place::new();
        // How files get in is found out, but where it would find the same machine.
        let files = if self.is_apart { "volumes" } else { "auto" };
        let Self { host, image, .. } = self;
        let settings = format!(
            "[sandbox]\nbackend = \"docker\"\n[sandbox.docker]\nhost = \"{host}\"\nimage = \"{image}\"\nfiles = \"{files}\"\n{more}"
        );
        place.write("foreword.toml", &settings);
        place.write("data/system_prompts.yaml", "global_prompt: Be kind.\n");
        place
    }

    /// Runs Docker's own program against it, and gives what it printed.
    pub(crate) fn docker(&self, words: &[&str]) -> String {
        let ran = Command::new("docker")
            .args(["-H", &self.host])
            .args(words)
            .output()
            .unwrap();
        assert!(
            ran.status.success(),
            "docker {words:?}: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
        String::from_utf8(ran.stdout).unwrap()
    }

    /// The containers of a place's server, by number.
    pub(crate) fn containers(&self, place: &Place) -> Vec<String> {
        let word = place.read("data/docker/instance-1");
        let filter = format!("label=foreword.instance={word}");
        let listed = self.docker(&["ps", "-aq", "--no-trunc", "--filter", &filter]);
        listed.lines().map(str::to_owned).collect()
    }

    /// The volumes of a place's server.
    pub(crate) fn volumes(&self, place: &Place) -> Vec<String> {
        let Ok(word) = fs::read_to_string(place.path("data/docker/word")) else {
            return Vec::new();
        };
        let filter = format!("label=foreword.data={word}");
        let listed = self.docker(&["volume", "ls", "-q", "--filter", &filter]);
        listed.lines().map(str::to_owned).collect()
    }

    pub(crate) fn inspect(&self, container: &str) -> Value {
        let all: Value = serde_json::from_str(&self.docker(&["inspect", container])).unwrap();
        all[0].clone()
    }

    /// Removes what a place's servers left: containers outlive them.
    pub(crate) fn clear(&self, place: &Place) {
        let label = format!(
            "label=foreword.instance={}",
            place.read("data/docker/instance-1")
        );
        let list = "docker -H \"$0\" ps -aq --filter \"$1\" | xargs -r docker -H \"$0\" rm -f";
        let _ = Command::new("bash")
            .args(["-c", list, &self.host, &label])
            .output();
        for volume in self.volumes(place) {
            self.docker(&["volume", "rm", "-f", &volume]);
        }
    }
}

/// A server that uses an engine, whose containers go with it.
pub(crate) struct Running<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) place: Place,
    pub(crate) server: Option<Server>,
}

impl<'a> Running<'a> {
    pub(crate) fn new(engine: &'a Engine) -> Self {
        Self::at(engine, engine.place())
    }

    pub(crate) fn at(engine: &'a Engine, place: Place) -> Self {
        let server = Some(place.serve(&[]));
        Self {
            engine,
            place,
            server,
        }
    }

    pub(crate) fn server(&mut self) -> &mut Server {
        self.server.as_mut().unwrap()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        self.server.as_ref().unwrap().url(path)
    }

    /// Starts it again.
    pub(crate) fn start(&mut self) {
        self.server = Some(self.place.serve(&[]));
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.server = None;
        if self.place.path("data/docker/instance-1").exists() {
            self.engine.clear(&self.place);
        }
    }
}

/// An engine of a test's own, which it may stop.
pub(crate) struct OwnEngine {
    directory: tempfile::TempDir,
    daemon: Option<Child>,
    pub(crate) engine: Engine,
}

impl OwnEngine {
    /// Starts one that has the image of `from`.
    pub(crate) fn new(from: &Engine) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("docker.sock");
        let engine = Engine {
            name: "own".to_owned(),
            host: format!("unix://{}", socket.display()),
            image: from.image.clone(),
            is_apart: false,
        };
        let mut own = Self {
            directory,
            daemon: None,
            engine,
        };
        own.start();
        let mut saving = Command::new("docker")
            .args(["-H", &from.host, "save", &from.image])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let loaded = Command::new("docker")
            .args(["-H", &own.engine.host, "load"])
            .stdin(saving.stdout.take().unwrap())
            .output()
            .unwrap();
        assert!(saving.wait().unwrap().success() && loaded.status.success());
        own
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path("docker.sock")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn start(&mut self) {
        let log = fs::File::create(self.path("log")).unwrap();
        let path = |name| self.path(name).display().to_string();
        let daemon = Command::new("dockerd")
            .args(["--iptables=false", "--bridge=none"])
            .args(["--data-root", &path("data"), "--exec-root", &path("exec")])
            .args(["--pidfile", &path("pid"), "-H", &self.engine.host])
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.daemon = Some(daemon);
        eventually("the engine answers", PATIENCE, || {
            let asked = Command::new("docker")
                .args(["-H", &self.engine.host, "info"])
                .output();
            asked.unwrap().status.success().then_some(())
        });
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(self.daemon.as_ref().unwrap());
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Stops it as an operator would, and waits until it is gone.
    pub(crate) fn stop(&mut self) {
        self.signal(rustix::process::Signal::TERM);
        self.daemon.take().unwrap().wait().unwrap();
    }
}

impl Drop for OwnEngine {
    fn drop(&mut self) {
        if self.daemon.is_some() {
            self.signal(rustix::process::Signal::CONT);
            self.stop();
        }
        unmount_below(self.directory.path());
    }
}

/// What a daemon leaves mounted would keep its directory from being removed.
fn unmount_below(directory: &Path) {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    for line in mounts.lines().rev() {
        let target = line.split(' ').nth(1).unwrap();
        if Path::new(target).starts_with(directory) {
            let _ = Command::new("umount").args(["-l", target]).status();
        }
    }
}
