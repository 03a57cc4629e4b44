//! Sandboxes made of Linux namespaces: no daemon, no image, nothing to install.
//!
//! The server starts this same program as the init process of each sandbox ([`start`], [`crate::init`]) and drives it over a socket
//! ([`crate::driver`]); a command then costs a fork.

mod cgroup;
mod cure;
mod start;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::Semaphore;

use self::{
    cgroup::{Controller, Groups},
    start::{Fresh, StartError},
};
use crate::{
    backend::Setup,
    command::{Command, CommandEnd, Output, Restart},
    config::{Network, SandboxConfig},
    driver::{
        file_work, guard,
        protocol::{Limits, Start, Tree},
        run,
        sandbox::Sandbox,
        usage::{Disk, UsageWatch},
    },
    error::SandboxError,
    files::{Content, FileStat},
    operation::{Done, FileOperation},
    pooled::{Pooled, RunError, Starter, Worker},
    spec::{Directories, HOME, OUTPUTS, SKILLS, SandboxSpec, UPLOADS},
    state::{Enforcement, LimitState, SandboxesState, Unavailable, Usage},
    workspace,
};

/// How many sandboxes are started at a time: more would only wait for each other.
const STARTED_AT_ONCE: usize = 8;

/// Makes sandboxes of Linux namespaces.
pub(crate) struct Namespaces {
    config: SandboxConfig,
    groups: Arc<Groups>,
    template: Start,
    starts: Semaphore,
    disk: Arc<Disk>,
    guard_period: Duration,
}

impl Namespaces {
    /// Opens the backend, which makes and ends one sandbox to see that it works here.
    ///
    /// It blocks for some milliseconds, and may move this process to a control group below its own. The binary has to call
    /// [`crate::init_main`] first thing.
    pub(crate) fn open(setup: &Setup) -> Result<Pooled<Self>, Unavailable> {
        let config = &setup.config;
        let groups = Arc::new(Groups::open(config));
        let template = template(config, &groups);
        let namespaces = Self {
            config: config.clone(),
            groups,
            template,
            starts: Semaphore::new(STARTED_AT_ONCE),
            disk: Arc::default(),
            guard_period: setup.guard_period,
        };
        namespaces.probe()?;
        Ok(Pooled::new(namespaces, config))
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
}

#[async_trait]
impl Starter for Namespaces {
    type Sandbox = Sandbox;

    const NAME: &'static str = BACKEND;

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
        Sandbox::new(started, group, directories, usage).map_err(backend_error)
    }

    fn started(&self, sandbox: &Arc<Sandbox>) {
        if !sandbox.usage.is_idle() {
            tokio::spawn(guard::watch(Arc::downgrade(sandbox), self.guard_period));
        }
    }

    fn stat_outside(&self, spec: &SandboxSpec, path: &Path) -> Option<FileStat> {
        workspace::file_in_home(spec, path)
    }

    fn state(&self) -> SandboxesState {
        SandboxesState {
            backend: BACKEND,
            unavailable: None,
            running: 0,
            max_running: self.config.max_running,
            limits: limits(&self.config, &self.groups),
            notes: notes(&self.config, &self.groups),
        }
    }
}

#[async_trait]
impl Worker for Sandbox {
    fn fits(&self, spec: &SandboxSpec) -> bool {
        self.directories == Directories::of(spec)
    }

    async fn run(
        self: Arc<Self>,
        command: &Command,
        limit: Duration,
        output: &mut dyn Output,
    ) -> Result<CommandEnd, RunError> {
        run::run(&self, command, limit, output).await
    }

    async fn work(
        self: Arc<Self>,
        operation: &FileOperation,
        content: Option<&mut Content>,
    ) -> Result<Done, RunError> {
        match content {
            None => file_work::work(&self, operation, None).await,
            Some(content) => {
                let mut reader = content.reader().await?;
                file_work::work(&self, operation, Some(&mut reader)).await
            }
        }
    }

    async fn over_quota_now(&self) -> Option<Usage> {
        self.usage.over_quota_now().await
    }

    fn owe(&self, restart: Restart) {
        Sandbox::owe(self, restart);
    }

    fn take_owed(&self) -> Option<Restart> {
        Sandbox::take_owed(self)
    }
}

const BACKEND: &str = "namespace";

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
    for skills in spec.present_skills() {
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
            "there are not all control groups ({why}), so some limits are weaker; start as root, or by a systemd unit with \
             `Delegate=yes` where control groups are of version 2"
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

fn backend_error(error: impl Into<io::Error>) -> SandboxError {
    SandboxError::Backend {
        backend: BACKEND,
        source: Box::new(error.into()),
    }
}
