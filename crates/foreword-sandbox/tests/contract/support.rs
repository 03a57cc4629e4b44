//! Opens sandboxes for a case, and says in one line what a command did.

use std::{
    fmt, fs,
    ops::RangeBounds,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use foreword_sandbox::{
    BackendName, BackgroundOutput, Command, CommandEnd, ContainerFiles, DockerConfig, Ending,
    Enforcement, SandboxConfig, SandboxError, SandboxKey, SandboxSpec, Sandboxes, Setup,
    SkillsDirectory,
};
use tempfile::TempDir;

/// What the cases are run against.
#[derive(Clone)]
pub(crate) struct Backend {
    pub(crate) name: BackendName,
    engine: Option<Engine>,
    /// What was opened, to be stopped when the case has ended.
    opened: Arc<Mutex<Vec<Arc<dyn Sandboxes>>>>,
}

impl Backend {
    pub(crate) fn namespace() -> Self {
        Self {
            name: BackendName::Namespace,
            engine: None,
            opened: Arc::default(),
        }
    }

    pub(crate) fn docker(engine: &Engine) -> Self {
        Self {
            name: BackendName::Docker,
            engine: Some(engine.clone()),
            opened: Arc::default(),
        }
    }

    /// Whether sandboxes are containers, which show what their image and engine show.
    pub(crate) fn is_container(&self) -> bool {
        self.name == BackendName::Docker
    }

    /// Whether the engine is Podman, which cannot do everything that Docker can.
    pub(crate) fn is_podman(&self) -> bool {
        self.engine
            .as_ref()
            .is_some_and(|engine| engine.name.contains("podman"))
    }

    /// Whether sandboxes see the server's directories.
    pub(crate) fn shares_files(&self) -> bool {
        self.volumes().is_none()
    }

    /// Where the engine keeps its volumes, if sandboxes have some.
    fn volumes(&self) -> Option<&Path> {
        self.engine.as_ref()?.volumes.as_deref()
    }

    /// Stops what is still there: a container outlives its server.
    pub(crate) async fn close(&self) {
        let opened = std::mem::take(&mut *self.opened.lock().unwrap());
        for sandboxes in opened {
            sandboxes.stop_all().await;
        }
    }

    /// Opens sandboxes that are small enough to fill.
    pub(crate) fn open(&self) -> Place {
        self.open_with(|_| {})
    }

    pub(crate) fn open_with(&self, change: impl FnOnce(&mut SandboxConfig)) -> Place {
        self.open_in(tempfile::tempdir().unwrap(), change)
    }

    fn open_in(&self, directory: TempDir, change: impl FnOnce(&mut SandboxConfig)) -> Place {
        let mut config = SandboxConfig {
            memory_bytes: 256 << 20,
            max_processes: 128,
            tmp_bytes: 64 << 20,
            workspace_quota_bytes: 1 << 30,
            min_free_bytes: 0,
            ..SandboxConfig::default()
        };
        change(&mut config);
        config.backend = self.name;
        if let Some(engine) = &self.engine {
            config.docker = DockerConfig {
                image: engine.image.clone(),
                host: Some(engine.host.clone()),
                files: engine.files,
                ..DockerConfig::default()
            };
        }
        let setup = Setup {
            guard_period: Duration::from_millis(200),
            ..Setup::new(config.clone(), directory.path())
        };
        let sandboxes = foreword_sandbox::open(&setup);
        if let Some(unavailable) = sandboxes.state().unavailable {
            panic!("{unavailable}");
        }
        self.opened.lock().unwrap().push(Arc::clone(&sandboxes));
        Place {
            sandboxes,
            directory,
            config,
            volumes: self.volumes().map(Path::to_owned),
        }
    }

    /// The same on a disk of which each sees how much is free, and that no other program of the machine writes to.
    pub(crate) fn open_on_quiet_disk(&self, change: impl FnOnce(&mut SandboxConfig)) -> Place {
        let quiet = tempfile::tempdir_in("/dev/shm");
        self.open_in(quiet.or_else(|_| tempfile::tempdir()).unwrap(), change)
    }
}

/// Sandboxes, and a data directory that only their server may enter.
pub(crate) struct Place {
    pub(crate) sandboxes: Arc<dyn Sandboxes>,
    pub(crate) directory: TempDir,
    pub(crate) config: SandboxConfig,
    volumes: Option<PathBuf>,
}

impl Place {
    /// The chat `name`, with its directories.
    pub(crate) fn chat(&self, name: &str) -> Chat {
        let root = self.directory.path().join(name);
        let make = |name: &str| {
            let path = root.join(name);
            fs::create_dir_all(&path).unwrap();
            self.own(&path);
            path
        };
        let spec = SandboxSpec {
            key: SandboxKey::new(name).unwrap(),
            home: make("home"),
            outputs: make("outputs"),
            uploads: make("uploads"),
            skills: vec![SkillsDirectory {
                name: "public".to_owned(),
                host: make("skills"),
            }],
        };
        Chat {
            sandboxes: Arc::clone(&self.sandboxes),
            spec,
            volumes: self.volumes.clone(),
        }
    }

    /// Gives a file of the host to the sandbox's user.
    pub(crate) fn own(&self, path: &Path) {
        if rustix::process::geteuid().is_root() {
            let owner = self.config.files_owner();
            chown(path, Some(owner), Some(owner)).unwrap();
        }
    }

    /// Whether a control group keeps this limit, as it does wherever the server is root.
    pub(crate) fn has_group_for(&self, setting: &str) -> bool {
        let limits = self.sandboxes.state().limits;
        let limit = limits
            .into_iter()
            .find(|limit| limit.setting == setting)
            .unwrap();
        matches!(
            limit.enforcement,
            Enforcement::Cgroup1 | Enforcement::Cgroup2 | Enforcement::Engine
        )
    }
}

/// One chat.
#[derive(Clone)]
pub(crate) struct Chat {
    pub(crate) sandboxes: Arc<dyn Sandboxes>,
    pub(crate) spec: SandboxSpec,
    /// Where the engine keeps volumes, if its home is in one.
    volumes: Option<PathBuf>,
}

impl Chat {
    pub(crate) async fn run(&self, script: &str) -> Ran {
        self.run_for(script, Duration::from_mins(2)).await
    }

    pub(crate) async fn run_for(&self, script: &str, timeout: Duration) -> Ran {
        self.try_run(script, timeout)
            .await
            .unwrap_or_else(|error| panic!("{script:.200}: {error:?}"))
    }

    pub(crate) async fn try_run(
        &self,
        script: &str,
        timeout: Duration,
    ) -> Result<Ran, SandboxError> {
        let command = Command {
            script: script.to_owned(),
            environment: Vec::new(),
            timeout,
        };
        let mut bytes = Vec::new();
        let end = self
            .sandboxes
            .run(&self.spec, &command, &mut |chunk: &[u8]| {
                bytes.extend_from_slice(chunk);
            })
            .await?;
        Ok(Ran { bytes, end })
    }

    /// Runs what has to succeed, and gives what it wrote.
    pub(crate) async fn text(&self, script: &str) -> String {
        let ran = self.run(script).await;
        let text = ran.text();
        assert_eq!(ran.end.ending, Ending::Exited(0), "{script}\n{text}");
        text
    }

    /// How many processes named `name` the sandbox has.
    pub(crate) async fn count(&self, name: &str) -> usize {
        // Bash opens and reads these by itself, so it needs no process and does not count itself.
        let script = format!(
            "count=0; for comm in /proc/[0-9]*/comm; do {{ read -r name < $comm; }} 2>/dev/null && [ \"$name\" = {name} ] && \
             count=$((count + 1)); done; echo $count"
        );
        self.text(&script).await.trim().parse().unwrap()
    }

    /// Waits until the sandbox has so many processes of that name: a program that was just begun still bears the name of its
    /// parent, and one that was just killed may not have noticed.
    pub(crate) async fn wait_for_count(
        &self,
        name: &str,
        wanted: impl RangeBounds<usize> + fmt::Debug,
    ) {
        let mut seen = 0;
        for _ in 0..1000 {
            seen = self.count(name).await;
            if wanted.contains(&seen) {
                return;
            }
        }
        panic!("there are {seen} of `{name}`, not {wanted:?}");
    }

    /// Where a test finds a file of its home directory; in a volume once it has been opened.
    pub(crate) fn home(&self, name: &str) -> PathBuf {
        let home = match &self.volumes {
            None => self.spec.home.clone(),
            Some(volumes) => {
                let note = self.spec.home.parent().unwrap().join("volumes");
                let word = fs::read_to_string(note).unwrap_or_default();
                volumes.join(format!("foreword-{word}-{}-home/_data", self.spec.key))
            }
        };
        home.join(name)
    }
}

/// What a command did.
pub(crate) struct Ran {
    pub(crate) bytes: Vec<u8>,
    pub(crate) end: CommandEnd,
}

impl Ran {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// In one line.
    pub(crate) fn summary(&self) -> String {
        let end = &self.end;
        let mut summary = format!("{:?} {:?}", end.ending, self.text());
        if end.background_output == BackgroundOutput::Dropped {
            summary.push_str(" background");
        }
        if end.memory_limit_hit {
            summary.push_str(" memory");
        }
        if end.process_limit_hit {
            summary.push_str(" processes");
        }
        if let Some(restart) = end.restarted {
            summary = format!("{summary} restarted {restart:?}");
        }
        summary
    }
}

/// Waits until `done`, for as long as a loaded machine may need.
pub(crate) async fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited in vain: {what}");
}

/// A container engine to run the cases against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Engine {
    /// What its cases are called.
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) image: String,
    pub(crate) files: ContainerFiles,
    /// Where it keeps its volumes, which is on this machine too.
    pub(crate) volumes: Option<PathBuf>,
}

/// The engines that this run was given: `name=host,image` or `name=host,image,directory of volumes`, with spaces in between.
pub(crate) const ENGINES: &str = "FOREWORD_TEST_ENGINES";

impl Engine {
    pub(crate) fn all() -> Vec<Self> {
        let given = std::env::var(ENGINES).unwrap_or_default();
        let read = |engine: &str| {
            let (name, rest) = engine.split_once('=')?;
            let mut words = rest.split(',');
            Some(Self {
                name: name.to_owned(),
                host: words.next()?.to_owned(),
                image: words.next()?.to_owned(),
                files: ContainerFiles::Auto,
                volumes: words.next().map(PathBuf::from),
            })
            .map(|engine| Self {
                files: match engine.volumes {
                    Some(_) => ContainerFiles::Volumes,
                    None => ContainerFiles::Binds,
                },
                ..engine
            })
        };
        given
            .split_ascii_whitespace()
            .map(|engine| {
                read(engine).unwrap_or_else(|| panic!("{ENGINES}: cannot read `{engine}`"))
            })
            .collect()
    }
}
