//! Sandboxes made of Linux namespaces: no daemon, no image, nothing to install.
//!
//! The server starts this same program as the init process of each sandbox ([`start`], [`init`]) and speaks to it over a socket
//! ([`protocol`], [`sandbox`]); a command then costs a fork. All that is unsafe is in [`sys`].

mod cgroup;
mod cure;
mod file_work;
mod guard;
mod init;
mod protocol;
mod run;
mod sandbox;
mod start;
mod sys;
mod usage;

use std::{
    io,
    path::{Component, Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use tokio::sync::Semaphore;

pub use init::INIT_ARGUMENT;
pub(crate) use init::init_main;

use self::{
    cgroup::{Controller, Groups},
    file_work::Done,
    protocol::{FileAnswer, FileOperation, Limits, Start, Tree},
    run::RunError,
    sandbox::{Directories, Sandbox},
    start::{Fresh, StartError},
    usage::{Disk, UsageWatch},
};
use crate::{
    backend::Sandboxes,
    command::{Command, CommandEnd, Output, Restart},
    config::{Network, SandboxConfig},
    error::SandboxError,
    files::{
        Content, FileKind, FileRead, FileStat, InsteadOf, ListDirectory, Listing, ReadFile,
        WriteFile, Written,
    },
    pool::{Lease, Life, Origin, Pool},
    spec::{HOME, OUTPUTS, SKILLS, SandboxKey, SandboxSpec, UPLOADS},
    state::{Enforcement, LimitState, SandboxesState, Unavailable},
};

/// How many sandboxes are started at a time: more would only wait for each other.
const STARTED_AT_ONCE: usize = 8;

/// Sandboxes made of Linux namespaces.
pub struct NamespaceSandboxes {
    config: SandboxConfig,
    groups: Arc<Groups>,
    template: Start,
    pool: Arc<Pool<Sandbox>>,
    starts: Semaphore,
    disk: Arc<Disk>,
    guard_period: Duration,
}

impl NamespaceSandboxes {
    /// Opens the backend, which makes and ends one sandbox to see that it works here.
    ///
    /// It blocks for some milliseconds, and may move this process to a control group below its own. The binary has to call
    /// [`crate::init_main`] first thing.
    pub fn open(config: &SandboxConfig) -> Result<Self, Unavailable> {
        config.check().map_err(|error| Unavailable {
            reason: error.to_string(),
            cure: "change the setting and start again".to_owned(),
        })?;
        let groups = Arc::new(Groups::open(config));
        let template = template(config, &groups);
        let sandboxes = Self {
            config: config.clone(),
            groups,
            template,
            pool: Pool::new(config.max_running, Instant::now),
            starts: Semaphore::new(STARTED_AT_ONCE),
            disk: Arc::default(),
            guard_period: guard::PERIOD,
        };
        sandboxes.probe()?;
        Ok(sandboxes)
    }

    /// Looks so often at what the background of a sandbox writes while no command runs, instead of every five seconds; for tests.
    #[must_use]
    pub fn guarding_every(mut self, period: Duration) -> Self {
        self.guard_period = period;
        self
    }

    fn probe(&self) -> Result<(), Unavailable> {
        let unexpected = |error: &dyn std::error::Error| Unavailable {
            reason: match error.source() {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            },
            cure: "see docs/sandbox.md, or set `sandbox.backend` to `none`".to_owned(),
        };
        let group = self.groups.make().map_err(|error| unexpected(&error))?;
        let started = Fresh::start(&self.template, group).map(drop);
        started.map_err(|error| match error {
            StartError::Fault(fault) => cure::explain(&fault, &cure::Host::look()),
            other => unexpected(&other),
        })
    }

    async fn lease(&self, spec: &SandboxSpec) -> Result<Lease<Sandbox>, SandboxError> {
        let fits = |sandbox: &Sandbox| sandbox.directories == Directories::of(spec);
        let lease = self.pool.lease(&spec.key, fits, || self.start(spec));
        let lease = lease.await?;
        if let Some(lost) = lease.lost {
            lease.sandbox.owe(lost);
        }
        if lease.origin == Origin::Started && !lease.sandbox.usage.is_idle() {
            let sandbox = Arc::downgrade(&lease.sandbox);
            tokio::spawn(guard::watch(sandbox, self.guard_period));
        }
        Ok(lease)
    }

    /// The sandbox that stands in for one that could not do its work for this reason.
    async fn lease_after(
        &self,
        spec: &SandboxSpec,
        restart: Option<Restart>,
    ) -> Result<Lease<Sandbox>, SandboxError> {
        let lease = self.lease(spec).await?;
        if let Some(restart) = restart {
            lease.sandbox.owe(restart);
        }
        Ok(lease)
    }

    async fn start(&self, spec: &SandboxSpec) -> Result<Sandbox, SandboxError> {
        let _turn = self.starts.acquire().await;
        // Before it opens them: if they become others meanwhile, the next lease sees it.
        let directories = Directories::of(spec);
        let start = Start {
            trees: trees(spec)?,
            ..self.template.clone()
        };
        let group = self.groups.make().map_err(backend_error)?;
        let fresh = tokio::task::spawn_blocking(move || Fresh::start(&start, group))
            .await
            .map_err(|error| backend_error(io::Error::other(error)))?
            .map_err(|error| match error {
                StartError::Fault(fault) => cure::explain(&fault, &cure::Host::look()).into(),
                other => backend_error(io::Error::other(other)),
            })?;
        let Some((started, group)) = fresh.take() else {
            return Err(backend_error(io::Error::other("it has no process")));
        };
        let usage = UsageWatch::new(
            vec![spec.home.clone(), spec.outputs.clone()],
            self.config.workspace_quota_bytes,
            self.config.min_free_bytes,
            Arc::clone(&self.disk),
        );
        usage.recount();
        let owner = rustix::process::geteuid().is_root().then(|| {
            let id = self.config.host_uid;
            (rustix::fs::Uid::from_raw(id), rustix::fs::Gid::from_raw(id))
        });
        Sandbox::new(started, group, directories, usage, owner).map_err(backend_error)
    }

    /// Decides after a failure whether to try once more, and makes room for that. Nothing has run in the cases that are tried again.
    async fn recover(
        &self,
        spec: &SandboxSpec,
        lease: Lease<Sandbox>,
        error: RunError,
        is_last: bool,
    ) -> Result<Restart, SandboxError> {
        let restart = match error {
            RunError::Failed(error) => return Err(error),
            RunError::Ended => return Err(SandboxError::Stopped(spec.key.clone())),
            RunError::NoProcessLeft if is_last => {
                return Err(SandboxError::NoProcessLeft(spec.key.clone()));
            }
            RunError::NotBegun if is_last => return Err(SandboxError::Stopped(spec.key.clone())),
            RunError::NoProcessLeft => Restart::NoProcessLeft,
            RunError::NotBegun => lease.sandbox.why_ended(),
        };
        self.pool.stop_this(&spec.key, &lease.sandbox).await;
        Ok(restart)
    }

    /// Refuses a file that makes a workspace larger which is too large already.
    async fn check_room(
        &self,
        spec: &SandboxSpec,
        path: &Path,
        bytes: u64,
    ) -> Result<(), SandboxError> {
        let lease = self.lease(spec).await?;
        let Some(usage) = lease.sandbox.usage.over_quota_now().await else {
            return Ok(());
        };
        match self.stat(spec, path).await {
            Ok(stat) if stat.kind == FileKind::File && bytes <= stat.size => Ok(()),
            _ => Err(SandboxError::OverQuota(usage)),
        }
    }

    async fn work(
        &self,
        spec: &SandboxSpec,
        operation: &FileOperation,
        mut content: Option<&mut Content>,
    ) -> Result<Done, SandboxError> {
        let mut restarted = None;
        loop {
            let lease = self.lease_after(spec, restarted).await?;
            match file_work::work(&lease.sandbox, operation, content.as_deref_mut()).await {
                Ok(done) => {
                    if matches!(operation, FileOperation::Write { .. }) {
                        lease.sandbox.usage.recount();
                    }
                    return Ok(done);
                }
                Err(error) => {
                    let is_last = restarted.is_some();
                    restarted = Some(self.recover(spec, lease, error, is_last).await?);
                }
            }
        }
    }
}

#[async_trait]
impl Sandboxes for NamespaceSandboxes {
    async fn open(&self, spec: &SandboxSpec) -> Result<bool, SandboxError> {
        Ok(self.lease(spec).await?.origin != Origin::Running)
    }

    async fn run(
        &self,
        spec: &SandboxSpec,
        command: &Command,
        output: &mut dyn Output,
    ) -> Result<CommandEnd, SandboxError> {
        run::check(command)?;
        let limit = command.timeout.min(self.config.command_timeout_max());
        let mut restarted = None;
        loop {
            let lease = self.lease_after(spec, restarted).await?;
            match run::run(&lease.sandbox, command, limit, output).await {
                Ok(end) => {
                    let restarted = lease.sandbox.take_owed();
                    return Ok(CommandEnd { restarted, ..end });
                }
                Err(error) => {
                    let is_last = restarted.is_some();
                    restarted = Some(self.recover(spec, lease, error, is_last).await?);
                }
            }
        }
    }

    async fn read_file(
        &self,
        spec: &SandboxSpec,
        read: ReadFile,
    ) -> Result<FileRead, SandboxError> {
        let done = self.work(spec, &FileOperation::Read(read), None).await?;
        match done.answer {
            FileAnswer::Read { stat, .. } => Ok(FileRead {
                stat,
                bytes: done.content,
            }),
            _ => Err(unexpected_answer()),
        }
    }

    async fn write_file(
        &self,
        spec: &SandboxSpec,
        write: WriteFile,
    ) -> Result<Written, SandboxError> {
        let WriteFile {
            path,
            instead_of,
            mode,
            mut content,
        } = write;
        let bytes = match &content {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::File(file) => file.metadata().map_err(backend_error)?.len(),
        };
        if instead_of == InsteadOf::File {
            self.check_room(spec, &path, bytes).await?;
        }
        let operation = FileOperation::Write {
            path,
            instead_of,
            mode,
            bytes,
        };
        match self
            .work(spec, &operation, Some(&mut content))
            .await?
            .answer
        {
            FileAnswer::Written(written) => Ok(written),
            _ => Err(unexpected_answer()),
        }
    }

    async fn list_directory(
        &self,
        spec: &SandboxSpec,
        list: ListDirectory,
    ) -> Result<Listing, SandboxError> {
        match self
            .work(spec, &FileOperation::List(list), None)
            .await?
            .answer
        {
            FileAnswer::Listing(listing) => Ok(listing),
            _ => Err(unexpected_answer()),
        }
    }

    async fn stat(&self, spec: &SandboxSpec, path: &Path) -> Result<FileStat, SandboxError> {
        if let Some(stat) = file_in_home(spec, path) {
            return Ok(stat);
        }
        match self
            .work(spec, &FileOperation::Stat(path.to_owned()), None)
            .await?
            .answer
        {
            FileAnswer::Stat(stat) => Ok(stat),
            _ => Err(unexpected_answer()),
        }
    }

    async fn stop(&self, key: &SandboxKey) -> bool {
        self.pool.stop(key).await
    }

    async fn stop_all(&self) {
        self.pool.stop_all().await;
    }

    async fn stop_idle(&self, now: Instant) -> usize {
        self.pool.stop_idle(now, self.config.idle_timeout()).await
    }

    fn state(&self) -> SandboxesState {
        SandboxesState {
            backend: BACKEND,
            unavailable: None,
            running: self.pool.running(),
            max_running: self.config.max_running,
            limits: limits(&self.config, &self.groups),
            notes: notes(&self.config, &self.groups),
        }
    }
}

const BACKEND: &str = "namespace";

/// About a regular file that lies in the home directory itself: it is the same on the host, where asking for it costs no process.
/// The README is looked at before each call.
///
/// A link, and whatever is further away, has to be looked at inside.
fn file_in_home(spec: &SandboxSpec, path: &Path) -> Option<FileStat> {
    let mut parts = path.strip_prefix(HOME).unwrap_or(path).components();
    let (Some(Component::Normal(name)), None) = (parts.next(), parts.next()) else {
        return None;
    };
    let metadata = std::fs::symlink_metadata(spec.home.join(name)).ok()?;
    metadata.is_file().then(|| init::stat(&metadata))
}

/// What every sandbox starts with, but for the workspace.
fn template(config: &SandboxConfig, groups: &Groups) -> Start {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let is_root = uid.is_root();
    let without = |controller, limit| groups.enforcement(controller).is_err().then_some(limit);
    Start {
        outside_uid: if is_root {
            config.host_uid
        } else {
            uid.as_raw()
        },
        outside_gid: if is_root {
            config.host_uid
        } else {
            gid.as_raw()
        },
        host_network: config.network == Network::Host,
        rootfs: config.rootfs.clone(),
        trees: Vec::new(),
        tmp_bytes: config.tmp_in_force(),
        limits: Limits {
            open_files: config.max_open_files,
            file_bytes: Some(config.workspace_quota_bytes).filter(|bytes| *bytes > 0),
            processes: without(Controller::Pids, config.max_processes),
            data_bytes: without(Controller::Memory, config.memory_bytes),
        },
    }
}

/// What of the host the sandbox of `spec` sees.
fn trees(spec: &SandboxSpec) -> Result<Vec<Tree>, SandboxError> {
    let tree = |host: &PathBuf, inside: String, writable| Tree {
        host: host.clone(),
        inside,
        writable,
    };
    let mut trees = vec![
        tree(&spec.home, HOME.to_owned(), true),
        tree(&spec.outputs, OUTPUTS.to_owned(), true),
        tree(&spec.uploads, UPLOADS.to_owned(), false),
    ];
    for skills in &spec.skills {
        let safe = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if skills.name.is_empty() || !skills.name.bytes().all(safe) {
            let message = format!("`{}` cannot be the name of a skills directory", skills.name);
            return Err(backend_error(io::Error::new(
                io::ErrorKind::InvalidInput,
                message,
            )));
        }
        trees.push(tree(
            &skills.host,
            format!("{SKILLS}/{}", skills.name),
            false,
        ));
    }
    // The init process starts elsewhere, so what is relative means nothing to it.
    for tree in &mut trees {
        tree.host = std::path::absolute(&tree.host).map_err(backend_error)?;
    }
    Ok(trees)
}

fn limits(config: &SandboxConfig, groups: &Groups) -> Vec<LimitState> {
    let by_group = |controller, weaker: Option<&str>| {
        groups
            .enforcement(controller)
            .unwrap_or_else(|_| match weaker {
                Some(weaker) => Enforcement::EachProcess(weaker.to_owned()),
                None => Enforcement::Missing("it needs a control group".to_owned()),
            })
    };
    let sampled = |wanted: bool| {
        if wanted {
            Enforcement::Sampled
        } else {
            Enforcement::Off
        }
    };
    let limit = |setting, enforcement| LimitState {
        setting,
        enforcement,
    };
    vec![
        limit(
            "memory_bytes",
            by_group(
                Controller::Memory,
                Some("of the data of each process, not of all together"),
            ),
        ),
        limit("cpu_percent", by_group(Controller::Cpu, None)),
        limit(
            "max_processes",
            by_group(Controller::Pids, Some("as a resource limit")),
        ),
        limit("max_open_files", Enforcement::Kernel),
        limit("tmp_bytes", Enforcement::Kernel),
        limit(
            "workspace_quota_bytes",
            sampled(config.workspace_quota_bytes > 0),
        ),
        limit("min_free_bytes", sampled(config.min_free_bytes > 0)),
    ]
}

fn notes(config: &SandboxConfig, groups: &Groups) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(why) = groups.why_missing() {
        notes.push(format!(
            "there are not all control groups ({why}), so some limits are weaker; start as root, or under systemd add \
             `Delegate=yes` to the unit"
        ));
    }
    if config.tmp_in_force() < config.tmp_bytes {
        notes.push(format!(
            "`sandbox.tmp_bytes` is {}, but /tmp holds at most half of `sandbox.memory_bytes`: {}",
            config.tmp_bytes,
            config.tmp_in_force()
        ));
    }
    if config.network == Network::Host {
        notes.push(
            "`sandbox.network` is `host`: commands reach this server, services on 127.0.0.1, abstract sockets and the LAN".to_owned(),
        );
    }
    let groups = rustix::process::getgroups().unwrap_or_default();
    let own = rustix::process::getegid();
    if !rustix::process::geteuid().is_root() && groups.iter().any(|group| *group != own) {
        notes.push("the server's supplementary groups cannot be dropped, so commands may read what these groups may".to_owned());
    }
    notes
}

fn unexpected_answer() -> SandboxError {
    backend_error(io::Error::other(
        "the init process answered another question",
    ))
}

fn backend_error(error: impl Into<io::Error>) -> SandboxError {
    SandboxError::Backend {
        backend: BACKEND,
        source: Box::new(error.into()),
    }
}
