//! Sandboxes in containers of Docker, Podman, or whatever speaks the API of Docker's engine.
//!
//! ```text
//! server                                       container
//! ──────                                       ─────────
//! mod.rs        makes, finds again, removes
//! image.rs      the image, with our program
//! terms.rs      limits, mounts, capabilities   init/contained.rs  process 1: becomes the user, serves
//! container.rs  one of them, as a sandbox
//! link.rs       requests over one stream  ◄──► agent.rs           does them, driving process 1
//! engine.rs     the engine's API                 bridge.rs         leads a server that comes back to the agent
//! ```
//!
//! A container outlives the server, and the next one finds it by its labels. Deliberately absent: what a command or a file is, which is
//! done by the same code as in any other sandbox, at the other end.

#[cfg(target_os = "linux")]
mod agent;
#[cfg(target_os = "linux")]
mod bridge;
mod carrier;
mod carry;
mod container;
mod engine;
mod frames;
mod image;
mod instance;
mod link;
#[cfg(target_os = "linux")]
mod places;
mod program;
mod sharing;
mod terms;
#[cfg(target_os = "linux")]
mod volumes;

use std::{
    collections::{BTreeMap, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, atomic::AtomicBool},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bollard::models::{ContainerCreateBody, Mount};
use serde_json::Value;
use tokio::sync::Semaphore;

use self::{
    carrier::Carrier,
    container::Container,
    engine::{Engine, in_words, lock},
    frames::Terms,
    image::{Prepared, User},
    instance::Instance,
    link::{ContainerStream, GreetError, Link},
    program::Program,
    sharing::{Decision, Sharing},
    volumes::Volumes,
};
use crate::{
    backend::Setup,
    command::Restart,
    config::{ContainerFiles, Network, SandboxConfig},
    error::SandboxError,
    files::FileStat,
    pooled::{Pooled, Starter, Worker},
    spec::{Directories, HOME, OUTPUTS, SKILLS, SandboxKey, SandboxSpec, UPLOADS},
    state::{Enforcement, LimitState, SandboxesState, Unavailable},
};

const BACKEND: &str = "docker";
/// What every container and image of ours has.
const MANAGED: &str = "foreword.managed";
const CHAT: &str = "foreword.chat";
const INSTANCE: &str = "foreword.instance";
/// What it was made of: another server may have other settings.
const MADE: &str = "foreword.made";
/// Which data directory a volume belongs to.
const DATA: &str = "foreword.data";
/// The argument that makes our program the first process of a container.
pub(crate) const AGENT_ARGUMENT: &str = "sandbox-agent";
/// The argument that makes our program lead a server that comes back to the agent.
pub(crate) const BRIDGE_ARGUMENT: &str = "sandbox-bridge";
/// Where the agent waits for that, in a container; nobody but its root may go there.
const MEETING_PLACE: &str = "/run/foreword";
/// How many containers are started at a time: more would only wait for each other.
const STARTED_AT_ONCE: usize = 8;
/// How long a container may take to get ready, once it was started.
const READY_PATIENCE: Duration = Duration::from_secs(30);
/// How often is looked for containers that no server uses.
const LOOK_PERIOD: Duration = Duration::from_secs(30);

/// Does what a server asks for, next to `init`; gives the status to end with.
#[cfg(target_os = "linux")]
pub(crate) fn agent_main(init: std::os::fd::OwnedFd) -> i32 {
    agent::main(init)
}

/// Leads from standard input and output to the agent of this container; gives the status to end with.
#[cfg(target_os = "linux")]
pub(crate) fn bridge_main() -> i32 {
    bridge::main()
}

/// How many processes and threads of a container are the agent's, and a bridge's.
const OWN_PROCESSES: u64 = 7;

/// Makes containers.
pub(crate) struct Containers {
    config: SandboxConfig,
    data_dir: PathBuf,
    guard_period: Duration,
    engine: Arc<Engine>,
    /// Taken when it is first needed: looking makes nothing.
    instance: OnceLock<Instance>,
    prepared: Mutex<Option<Arc<Ready>>>,
    /// Held by whoever prepares.
    preparing: tokio::sync::Mutex<()>,
    /// Why it could not be prepared when that was last tried.
    unprepared: Mutex<Option<Unavailable>>,
    starts: Semaphore,
    /// Containers and volumes that nobody here uses, and since when that is known.
    unknown: Mutex<Unknown>,
}

#[derive(Default)]
struct Unknown {
    looked: Option<Instant>,
    containers: Since,
    volumes: Since,
}

/// What containers are made of.
struct Ready {
    image: Prepared,
    program: Program,
    user: User,
    sharing: Sharing,
}

/// Opens the backend. The engine is asked when it is needed.
pub(crate) fn open(setup: &Setup) -> Pooled<Containers> {
    let docker = &setup.config.docker;
    let containers = Containers {
        config: setup.config.clone(),
        data_dir: std::path::absolute(&setup.data_dir).unwrap_or_else(|_| setup.data_dir.clone()),
        guard_period: setup.guard_period,
        engine: Arc::new(Engine::new(
            docker.host.as_deref(),
            docker.cert_path.clone(),
        )),
        instance: OnceLock::new(),
        prepared: Mutex::default(),
        preparing: tokio::sync::Mutex::default(),
        unprepared: Mutex::default(),
        starts: Semaphore::new(STARTED_AT_ONCE),
        unknown: Mutex::default(),
    };
    Pooled::new(containers, &setup.config)
}

#[async_trait]
impl Starter for Containers {
    type Sandbox = Container;

    const NAME: &'static str = BACKEND;

    async fn start(&self, spec: &SandboxSpec) -> Result<Container, SandboxError> {
        let ready = self.ready().await?;
        let _turn = self.starts.acquire().await;
        container::check_directories(spec)?;
        let name = container::name_of(self.instance(), spec.key.as_str());
        let terms = self.terms(ready.user);
        let directories = Directories::of(spec);
        let volumes = match &ready.sharing {
            Sharing::Binds { .. } => None,
            Sharing::Volumes { data } => Some(Volumes::of(&self.engine, data, spec).await?),
        };
        let mounts = match &volumes {
            Some(volumes) => volumes.mounts(),
            None => binds(spec, &ready.sharing)?,
        };
        let body = terms::body(
            &self.config,
            &ready.image.name,
            ready.program.command(AGENT_ARGUMENT),
            mounts,
            &ready.image.volumes,
            self.engine.is_podman(),
        );
        let made = made_of(&body, &terms, &directories);
        let mut restart = None;
        if let Some(found) = self.engine.inspect(&name).await? {
            let id = found.id.unwrap_or_else(|| name.clone());
            let state = found.state.unwrap_or_default();
            let runs = state.running == Some(true);
            let labels = found.config.and_then(|config| config.labels);
            let is_same = labels.is_some_and(|labels| labels.get(MADE) == Some(&made));
            if runs && is_same {
                match self.adopt(&id, spec, directories.clone(), &ready).await {
                    Ok(container) => return Ok(container),
                    Err(error) => {
                        self.engine.client().await?;
                        tracing::warn!(container = name, error = %in_words(&error), "A container cannot be gone on with, so it is made anew");
                    }
                }
            }
            restart = if runs {
                // It may have had background processes.
                Some(Restart::Remade)
            } else {
                // Perhaps no server was there to see it end.
                state.exit_code.and_then(frames::restart_of)
            };
            self.engine.remove(&id).await?;
        }
        let labels = [
            (MANAGED, "true"),
            (CHAT, spec.key.as_str()),
            (INSTANCE, self.instance()),
            (MADE, &made),
        ];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let body = ContainerCreateBody {
            labels: Some(labels.into()),
            ..body
        };
        let created = self.engine.create(&name, body).await;
        if created.as_ref().is_err_and(engine::is_of_absent) {
            // The prepared image was removed: the next call prepares another one.
            *lock(&self.prepared) = None;
        }
        let unfinished = Unfinished::new(&self.engine, created?);
        let id = unfinished.id().to_owned();
        let finished = async {
            let link = self.start_and_greet(&id, terms).await?;
            let container = self.container(id.clone(), link, spec, directories, &ready, false);
            if let (Some(volumes), Some(carrier)) = (&volumes, &container.carrier)
                && volumes.are_new
            {
                let restored = carrier.restore_outputs(&container).await;
                restored.map_err(|error| backend_error(io::Error::other(format!("{error:?}"))))?;
                volumes.note().map_err(backend_error)?;
            }
            Ok(container)
        };
        match finished.await {
            Ok(container) => {
                unfinished.keep();
                if let Some(restart) = restart {
                    container.owe(restart);
                }
                Ok(container)
            }
            Err(error) => {
                unfinished.remove().await;
                Err(error)
            }
        }
    }

    fn started(&self, container: &Arc<Container>) {
        if container.carrier.is_some() {
            tokio::spawn(carrier::keep_bringing_out(Arc::downgrade(container)));
        }
    }

    fn stat_outside(&self, spec: &SandboxSpec, path: &Path) -> Option<FileStat> {
        if !matches!(self.known()?.sharing, Sharing::Binds { .. }) {
            return None;
        }
        #[cfg(target_os = "linux")]
        return crate::workspace::file_in_home(spec, path);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = (spec, path);
            None
        }
    }

    async fn stop_unknown(&self, key: &SandboxKey) -> bool {
        let name = container::name_of(self.instance(), key.as_str());
        match self.engine.remove(&name).await {
            Ok(was_there) => was_there,
            Err(error) => {
                tracing::warn!(container = name, error = %in_words(&error), "A container cannot be removed now");
                false
            }
        }
    }

    async fn idle_unknown(
        &self,
        known: Vec<SandboxKey>,
        now: Instant,
        timeout: Duration,
    ) -> Vec<(Option<SandboxKey>, String)> {
        // So that the last word on whether it answers is never old. One that is away has nothing to stop; it is asked again.
        if self.engine.client().await.is_err() || !self.is_time_to_look(now) {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (word, is_ours) in self.words() {
            let listed = self.engine.list(&format!("{INSTANCE}={word}")).await;
            for container in listed.unwrap_or_default() {
                let Some(id) = container.id else { continue };
                let key = container
                    .labels
                    .and_then(|labels| labels.get(CHAT).cloned());
                let key = key.and_then(SandboxKey::new).filter(|_| is_ours);
                if key.as_ref().is_none_or(|key| !known.contains(key)) {
                    found.push((id, key));
                }
            }
        }
        self.sweep_volumes(now, timeout).await;
        self.idle_of(found, now, timeout)
    }

    async fn remove_unknown(&self, id: &str) -> bool {
        match self.engine.remove(id).await {
            Ok(was_there) => was_there,
            Err(error) => {
                tracing::warn!(container = id, error = %in_words(&error), "A container cannot be removed now");
                false
            }
        }
    }

    async fn forget(&self, key: &SandboxKey) {
        // Where there are none, the engine need not be asked.
        let Some(data) = self.data() else { return };
        if let Err(error) = volumes::forget(&self.engine, &data, key).await {
            // They are found again, since no workspace notes them.
            tracing::warn!(%key, error = %in_words(&error), "Volumes of a deleted chat cannot be removed now");
        }
    }

    fn ends_with_server(&self) -> bool {
        false
    }

    async fn prepare(&self) {
        if let Err(error) = self.ready().await {
            tracing::warn!(error = %in_words(&error), "Containers cannot be prepared now");
        }
    }

    async fn check(&self) -> Result<(), Unavailable> {
        self.engine.client().await.map(drop)
    }

    fn state(&self) -> SandboxesState {
        SandboxesState {
            backend: BACKEND,
            unavailable: self
                .engine
                .seen()
                .err()
                .or_else(|| lock(&self.unprepared).clone()),
            running: 0,
            max_running: self.config.max_running,
            limits: limits(&self.config),
            notes: notes(&self.config),
        }
    }
}

impl Containers {
    /// The word that our containers have in their names.
    fn instance(&self) -> &str {
        let taken = || Instance::take(&self.data_dir);
        self.instance.get_or_init(taken).word()
    }

    /// What containers are made of, if that is known.
    fn known(&self) -> Option<Arc<Ready>> {
        lock(&self.prepared).clone()
    }

    /// What containers are made of, prepared by the first who needs it.
    async fn ready(&self) -> Result<Arc<Ready>, SandboxError> {
        if let Some(ready) = self.known() {
            return Ok(ready);
        }
        let _turn = self.preparing.lock().await;
        if let Some(ready) = self.known() {
            return Ok(ready);
        }
        let prepared = self.prepare_now().await.map(Arc::new);
        *lock(&self.unprepared) = match &prepared {
            Err(SandboxError::Unavailable(unavailable)) => Some(unavailable.clone()),
            _ => None,
        };
        let ready = prepared?;
        *lock(&self.prepared) = Some(Arc::clone(&ready));
        Ok(ready)
    }

    async fn prepare_now(&self) -> Result<Ready, SandboxError> {
        let docker = &self.config.docker;
        let program = Program::find(docker.program.as_deref()).map_err(backend_error)?;
        self.engine.identify().await?;
        let (instance, wanted) = (self.instance(), docker.image.as_str());
        let prepare = |user| image::prepare(&self.engine, instance, wanted, &program, user);
        let user = terms::user_of_shared_files(self.engine.host());
        let image = prepare(user).await?;
        let sharing = self.sharing(&image, user).await?;
        let (image, user) = match sharing {
            Sharing::Volumes { .. } if user != terms::USER => {
                (prepare(terms::USER).await?, terms::USER)
            }
            _ => (image, user),
        };
        tracing::info!(
            host = self.engine.host(),
            ?sharing,
            "Sandboxes are containers of {}",
            self.engine.host()
        );
        Ok(Ready {
            image,
            program,
            user,
            sharing,
        })
    }

    /// How files get in.
    async fn sharing(&self, image: &Prepared, user: User) -> Result<Sharing, SandboxError> {
        let docker = &self.config.docker;
        let here = &self.data_dir;
        let there = docker.host_data_dir.as_ref().unwrap_or(here);
        let is_shared = match docker.files {
            ContainerFiles::Binds => true,
            ContainerFiles::Volumes => false,
            ContainerFiles::Auto => {
                let instance = self.instance();
                let shared = sharing::is_shared(&self.engine, instance, image, user, here, there);
                let (shared, decision) = (shared.await?, Decision::of(here));
                match decision.read() {
                    Some(before) if before != shared => {
                        return Err(Unavailable {
                            reason: if before {
                                format!("containers saw {} before, and do not any more", there.display())
                            } else {
                                format!("containers have volumes, though they could see {} now", there.display())
                            },
                            cure: "set `sandbox.docker.files` to `binds` or `volumes`: homes of chats are where they were until then"
                                .to_owned(),
                        }
                        .into());
                    }
                    Some(_) => {}
                    None => decision.write(shared),
                }
                if !shared {
                    tracing::warn!(
                        "Containers do not see {}, or may not work on what is there, so they have volumes, and files are carried in and out; \
                         if it is elsewhere on the engine's host, set `sandbox.docker.host_data_dir`",
                        there.display()
                    );
                }
                shared
            }
        };
        if is_shared {
            return Ok(Sharing::Binds {
                here: here.clone(),
                there: there.clone(),
            });
        }
        let data = instance::word_of_data(here).map_err(backend_error)?;
        Ok(Sharing::Volumes { data })
    }

    /// The word of the data directory, if chats have volumes.
    fn data(&self) -> Option<String> {
        match &self.known()?.sharing {
            Sharing::Volumes { data } => Some(data.clone()),
            Sharing::Binds { .. } => None,
        }
    }

    /// Our word, and those of servers with the same data directory that ended.
    fn words(&self) -> Vec<(String, bool)> {
        let left = Instance::left(&self.data_dir).into_iter();
        [(self.instance().to_owned(), true)]
            .into_iter()
            .chain(left.map(|word| (word, false)))
            .collect()
    }

    /// Removes volumes that no workspace has noted for `timeout`.
    async fn sweep_volumes(&self, now: Instant, timeout: Duration) {
        let Some(data) = self.data() else { return };
        let left = match volumes::left_over(&self.engine, &data).await {
            Ok(left) => left.into_iter().map(|name| (name, None)).collect(),
            Err(_) => return,
        };
        let due = {
            let mut unknown = lock(&self.unknown);
            idle_of(&mut unknown.volumes, left, now, timeout)
        };
        for (_, name) in due {
            if let Err(error) = self.engine.remove_volume(&name).await {
                tracing::warn!(volume = name, error = %in_words(&error), "A volume of a deleted chat cannot be removed now");
            }
        }
    }

    fn terms(&self, user: User) -> Terms {
        Terms {
            uid: user.uid,
            gid: user.gid,
            open_files: self.config.max_open_files,
            quota_bytes: self.config.workspace_quota_bytes,
            min_free_bytes: self.config.min_free_bytes,
            guard_period: self.guard_period,
            counted: vec![HOME.into(), OUTPUTS.into()],
        }
    }

    /// Goes on with a container that runs.
    async fn adopt(
        &self,
        id: &str,
        spec: &SandboxSpec,
        directories: Directories,
        ready: &Ready,
    ) -> Result<Container, SandboxError> {
        let bridge = ready.program.command(BRIDGE_ARGUMENT);
        let stream = self.engine.execute(id, bridge).await?;
        let link = self.greet(stream, None, async { Ok(()) }).await?;
        Ok(self.container(id.to_owned(), link, spec, directories, ready, true))
    }

    fn container(
        &self,
        id: String,
        link: Link,
        spec: &SandboxSpec,
        directories: Directories,
        ready: &Ready,
        is_adopted: bool,
    ) -> Container {
        Container {
            id,
            engine: Arc::clone(&self.engine),
            link,
            directories,
            environment: ready.image.environment.clone(),
            carrier: matches!(ready.sharing, Sharing::Volumes { .. }).then(|| {
                let SandboxConfig {
                    workspace_quota_bytes,
                    min_free_bytes,
                    ..
                } = self.config;
                Carrier::new(spec, workspace_quota_bytes, min_free_bytes)
            }),
            is_adopted,
            untold: Mutex::new(None),
            not_carried: Mutex::default(),
            is_stopped: AtomicBool::new(false),
        }
    }

    /// Starts a container, and greets it.
    async fn start_and_greet(&self, id: &str, terms: Terms) -> Result<Link, SandboxError> {
        // First, so that nothing that it says is missed.
        let stream = self.engine.attach(id).await?;
        let start = async {
            let started = self.engine.start(id).await;
            started.map_err(|error| io::Error::other(StartFailed(error)))
        };
        self.greet(stream, Some(terms), start).await
    }

    /// Waits until a container is ready, at the other end of `stream`.
    async fn greet(
        &self,
        stream: ContainerStream,
        terms: Option<Terms>,
        start: impl Future<Output = io::Result<()>>,
    ) -> Result<Link, SandboxError> {
        let greeted = tokio::time::timeout(READY_PATIENCE, Link::greet(stream, terms, start));
        match greeted.await {
            Ok(Ok(link)) => Ok(link),
            Ok(Err(GreetError::Io(error))) => Err(match error.downcast::<StartFailed>() {
                Ok(StartFailed(error)) => error,
                Err(error) => backend_error(error),
            }),
            Ok(Err(error)) => Err(self.not_ready(&error.to_string())),
            Err(_) => Err(self.not_ready("it did not answer in time")),
        }
    }

    /// Why a container does not get ready is most often up to its image.
    fn not_ready(&self, why: &str) -> SandboxError {
        Unavailable {
            reason: format!(
                "a container of the image `{}` does not get ready: {why}",
                self.config.docker.image
            ),
            cure: "see docs/docker.md for what an image needs".to_owned(),
        }
        .into()
    }

    fn is_time_to_look(&self, now: Instant) -> bool {
        let mut unknown = lock(&self.unknown);
        let looked = unknown.looked.replace(now);
        looked.is_none_or(|looked| now.saturating_duration_since(looked) >= LOOK_PERIOD) || {
            unknown.looked = looked;
            false
        }
    }

    /// Remembers which containers nobody here uses, and says which have been like that for `timeout`.
    fn idle_of(
        &self,
        found: Vec<(String, Option<SandboxKey>)>,
        now: Instant,
        timeout: Duration,
    ) -> Vec<(Option<SandboxKey>, String)> {
        let mut unknown = lock(&self.unknown);
        idle_of(&mut unknown.containers, found, now, timeout)
    }
}

/// Whose it is, and since when nobody uses it, by name.
type Since = HashMap<String, (Option<SandboxKey>, Instant)>;

/// Notes what is `found` now, and says what has been for `timeout`.
fn idle_of(
    since: &mut Since,
    found: Vec<(String, Option<SandboxKey>)>,
    now: Instant,
    timeout: Duration,
) -> Vec<(Option<SandboxKey>, String)> {
    *since = found
        .into_iter()
        .map(|(name, key)| {
            let first = since.get(&name).map_or(now, |(_, first)| *first);
            (name, (key, first))
        })
        .collect();
    since
        .iter()
        .filter(|(_, (_, first))| now.saturating_duration_since(*first) >= timeout)
        .map(|(name, (key, _))| (key.clone(), name.clone()))
        .collect()
}

/// What the container of `spec` sees of the workspace.
fn binds(spec: &SandboxSpec, sharing: &Sharing) -> Result<Vec<Mount>, SandboxError> {
    let bind = |host: &Path, inside: &str, writable| {
        let host = sharing.path(host).map_err(backend_error)?;
        Ok::<_, SandboxError>(terms::bind(&host, inside, writable))
    };
    let mut mounts = vec![
        bind(&spec.home, HOME, true)?,
        bind(&spec.outputs, OUTPUTS, true)?,
        bind(&spec.uploads, UPLOADS, false)?,
    ];
    for skills in spec.present_skills() {
        mounts.push(bind(
            &skills.host,
            &format!("{SKILLS}/{}", skills.name),
            false,
        )?);
    }
    Ok(mounts)
}

/// A word for everything that a container cannot be given later.
fn made_of(body: &ContainerCreateBody, terms: &Terms, directories: &Directories) -> String {
    let mut hasher = DefaultHasher::new();
    let body = serde_json::to_value(body).unwrap_or_default();
    (sorted(body).to_string(), terms, directories).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// The same with the keys of each object in order, which those of a map are not.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<_, _> = fields
                .into_iter()
                .map(|(key, value)| (key, sorted(value)))
                .collect();
            fields.into_iter().collect::<serde_json::Map<_, _>>().into()
        }
        other => other,
    }
}

/// A container that was not started, on its way through what waits for that.
#[derive(Debug, thiserror::Error)]
#[error("the container was not started")]
struct StartFailed(#[source] SandboxError);

/// A container that is being made, or is for a moment only: given up, it is removed.
struct Unfinished {
    engine: Arc<Engine>,
    id: Option<String>,
}

impl Unfinished {
    fn new(engine: &Arc<Engine>, id: String) -> Self {
        Self {
            engine: Arc::clone(engine),
            id: Some(id),
        }
    }

    fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    /// It is finished.
    fn keep(mut self) {
        self.id = None;
    }

    async fn remove(mut self) {
        if let Some(id) = &self.id {
            // One that cannot be removed now is found later.
            let _ = self.engine.remove(id).await;
            self.id = None;
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(id) = self.id.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let engine = Arc::clone(&self.engine);
            runtime.spawn(async move { engine.remove(&id).await });
        }
    }
}

fn limits(config: &SandboxConfig) -> Vec<LimitState> {
    let sampled = |wanted: bool| {
        if wanted {
            Enforcement::Sampled
        } else {
            Enforcement::Off
        }
    };
    [
        ("memory_bytes", Enforcement::Engine),
        ("cpu_percent", Enforcement::Engine),
        ("max_processes", Enforcement::Engine),
        ("max_open_files", Enforcement::Kernel),
        ("tmp_bytes", Enforcement::Kernel),
        (
            "workspace_quota_bytes",
            sampled(config.workspace_quota_bytes > 0),
        ),
        ("min_free_bytes", sampled(config.min_free_bytes > 0)),
    ]
    .into_iter()
    .map(|(setting, enforcement)| LimitState {
        setting,
        enforcement,
    })
    .collect()
}

fn notes(config: &SandboxConfig) -> Vec<String> {
    let mut notes = Vec::new();
    if config.network == Network::Host {
        notes.push(
            "`sandbox.network` is `host`: commands reach what the engine's host reaches, services on its 127.0.0.1 included".to_owned(),
        );
    }
    if config.docker.files == ContainerFiles::Volumes {
        notes.push(
            "`sandbox.docker.files` is `volumes`: uploads and outputs are carried in and out"
                .to_owned(),
        );
    }
    notes
}

fn backend_error(error: impl Into<io::Error>) -> SandboxError {
    SandboxError::Backend {
        backend: BACKEND,
        source: Box::new(error.into()),
    }
}
