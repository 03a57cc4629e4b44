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

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError, atomic::AtomicBool},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bollard::models::Mount;
use tokio::sync::{OnceCell, Semaphore};

use self::{
    carrier::Carrier,
    container::Container,
    engine::{Engine, in_words},
    frames::Terms,
    image::{Prepared, User},
    instance::Instance,
    link::{ContainerStream, GreetError, Link},
    program::Program,
    sharing::Sharing,
};
use crate::{
    backend::Setup,
    config::{ContainerFiles, Network, SandboxConfig},
    error::SandboxError,
    files::FileStat,
    pooled::{Pooled, Starter},
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
/// Which workspace a volume belongs to, and where that is.
const WORKSPACE: &str = "foreword.workspace";
const PATH: &str = "foreword.path";
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
    prepared: OnceCell<Ready>,
    starts: Semaphore,
    /// Containers that nobody here uses, and since when that is known.
    unknown: Mutex<Unknown>,
}

#[derive(Default)]
struct Unknown {
    looked: Option<Instant>,
    since: HashMap<String, (SandboxKey, Instant)>,
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
        engine: Arc::new(Engine::new(docker.host.as_deref(), docker.cert_path.clone())),
        instance: OnceLock::new(),
        prepared: OnceCell::new(),
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
        let _turn = self.starts.acquire().await;
        container::check_directories(spec)?;
        let ready = self.ready().await?;
        let name = container::name_of(self.instance(), spec.key.as_str());
        let terms = self.terms(ready.user);
        let directories = Directories::of(spec);
        let volumes_are_new = match ready.sharing {
            Sharing::Binds { .. } => false,
            Sharing::Volumes => self.make_volumes(spec).await?,
        };
        let mounts = self.mounts(spec, &ready.sharing)?;
        let made = self.made_of(&ready.image, &terms, &mounts, &directories);
        if let Some(found) = self.engine.inspect(&name).await? {
            let id = found.id.unwrap_or_else(|| name.clone());
            let runs = found.state.and_then(|state| state.running) == Some(true);
            let labels = found.config.and_then(|config| config.labels);
            let is_same = labels.is_some_and(|labels| labels.get(MADE) == Some(&made));
            if runs && is_same {
                match self.adopt(&id, spec, directories.clone(), ready).await {
                    Ok(container) => return Ok(container),
                    Err(error) => {
                        tracing::warn!(container = name, error = %in_words(&error), "A container cannot be gone on with, so it is made anew");
                    }
                }
            }
            self.engine.remove(&id).await?;
        }
        let labels = [
            (MANAGED, "true"),
            (CHAT, spec.key.as_str()),
            (INSTANCE, self.instance()),
            (MADE, &made),
        ];
        let labels = labels
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let command = ready.program.command(AGENT_ARGUMENT);
        let body = terms::body(
            &self.config,
            &ready.image.name,
            command,
            labels,
            mounts,
            self.engine.is_podman(),
        );
        let mut unfinished = Unfinished {
            engine: Arc::clone(&self.engine),
            id: Some(self.engine.create(&name, body).await?),
        };
        let id = unfinished.id.clone().unwrap_or_default();
        let link = match self.start_and_greet(&id, terms).await {
            Ok(link) => link,
            Err(error) => {
                unfinished.remove().await;
                return Err(error);
            }
        };
        unfinished.id = None;
        let container = self.container(id, link, spec, directories, ready, false);
        if volumes_are_new && let Some(carrier) = &container.carrier {
            let restored = carrier.restore_outputs(&container).await;
            restored.map_err(|error| backend_error(io::Error::other(format!("{error:?}"))))?;
        }
        Ok(container)
    }

    fn started(&self, container: &Arc<Container>) {
        if container.carrier.is_some() {
            tokio::spawn(carrier::keep_bringing_out(Arc::downgrade(container)));
        }
    }

    fn stat_outside(&self, spec: &SandboxSpec, path: &Path) -> Option<FileStat> {
        if !matches!(self.prepared.get()?.sharing, Sharing::Binds { .. }) {
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

    async fn stop_idle_unknown(
        &self,
        known: Vec<SandboxKey>,
        now: Instant,
        timeout: Duration,
    ) -> usize {
        if !self.is_time_to_look(now) {
            return 0;
        }
        let label = format!("{INSTANCE}={}", self.instance());
        // An engine that is away has nothing to stop; it is asked again.
        let Ok(listed) = self.engine.list(&label).await else {
            return 0;
        };
        let found = listed.into_iter().filter_map(|container| {

            let key = SandboxKey::new(container.labels?.get(CHAT)?.clone())?;
            (!known.contains(&key)).then_some((container.id?, key))
        });
        let idle = self.idle_of(found.collect(), now, timeout);
        if let Err(error) = self.sweep_volumes(&known).await {
            tracing::debug!(error = %in_words(&error), "Volumes of deleted chats cannot be removed now");
        }
        let mut stopped = 0;
        for key in idle {
            stopped += usize::from(self.stop_unknown(&key).await);
        }
        stopped
    }

    async fn forget(&self, key: &SandboxKey) {
        // Where there are none, the engine need not be asked.
        let has_volumes = self
            .prepared
            .get()
            .is_some_and(|ready| ready.sharing == Sharing::Volumes);
        if has_volumes && let Err(error) = self.remove_volumes(key).await {
            // They are found again, since their workspace is gone.
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
            unavailable: self.engine.seen().err(),
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

    /// What containers are made of, prepared by the first who needs it.
    async fn ready(&self) -> Result<&Ready, SandboxError> {
        self.prepared
            .get_or_try_init(|| async {
                let docker = &self.config.docker;
                let program = Program::find(docker.program.as_deref()).map_err(backend_error)?;
                self.engine.identify().await?;
                let prepare = |user| image::prepare(&self.engine, &docker.image, &program, user);
                let user = terms::user_of_shared_files();
                let image = prepare(user).await?;
                let sharing = self.sharing(&image, user).await?;
                let (image, user) = match sharing {
                    Sharing::Volumes if user != terms::USER => {
                        (prepare(terms::USER).await?, terms::USER)
                    }
                    _ => (image, user),
                };
                tracing::info!(host = self.engine.host(), ?sharing, "Sandboxes are containers of {}", self.engine.host());
                Ok(Ready {
                    image,
                    program,
                    user,
                    sharing,
                })
            })
            .await
    }

    /// How files get in.
    async fn sharing(&self, image: &Prepared, user: User) -> Result<Sharing, SandboxError> {
        let docker = &self.config.docker;
        let here = &self.data_dir;
        let there = docker.host_data_dir.as_ref().unwrap_or(here);
        let binds = Sharing::Binds {
            here: here.clone(),
            there: there.clone(),
        };
        Ok(match docker.files {
            ContainerFiles::Binds => binds,
            ContainerFiles::Volumes => Sharing::Volumes,
            ContainerFiles::Auto => {
                if sharing::is_shared(&self.engine, image, user, here, there).await? {
                    binds
                } else {
                    tracing::warn!(
                        "Containers do not see {}, or may not work on what is there, so they have volumes, and files are carried in and out; \
                         if it is elsewhere on the engine's host, set `sandbox.docker.host_data_dir`",
                        there.display()
                    );
                    Sharing::Volumes
                }
            }
        })
    }

    /// Makes the volumes of a chat; says whether they are new. Those of a workspace that was deleted and made again are made again.
    async fn make_volumes(&self, spec: &SandboxSpec) -> Result<bool, SandboxError> {
        let [home, others @ ..] = self.volumes_of(&spec.key);
        let workspace = Directories::of(spec).home_word();
        let labels: HashMap<String, String> = [
            (MANAGED, "true".to_owned()),
            (CHAT, spec.key.as_str().to_owned()),
            (INSTANCE, self.instance().to_owned()),
            (WORKSPACE, workspace.clone()),
            (PATH, spec.home.display().to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        if let Some(found) = self.engine.labels_of_volume(&home).await? {
            if found.get(WORKSPACE) == Some(&workspace) {
                return Ok(false);
            }
            self.stop_unknown(&spec.key).await;
            self.remove_volumes(&spec.key).await?;
        }
        // The one that is asked for comes last, so that it says that all are there.
        for name in others.iter().chain([&home]) {
            self.engine.create_volume(name, labels.clone()).await?;
        }
        Ok(true)
    }

    async fn remove_volumes(&self, key: &SandboxKey) -> Result<(), SandboxError> {
        for name in self.volumes_of(key) {
            self.engine.remove_volume(&name).await?;
        }
        Ok(())
    }

    /// The volumes of a chat: home, outputs, uploads, skills.
    fn volumes_of(&self, key: &SandboxKey) -> [String; 4] {
        let name = container::name_of(self.instance(), key.as_str());
        ["home", "outputs", "uploads", "skills"].map(|place| format!("{name}-{place}"))
    }

    /// Removes the volumes of chats whose workspace is gone.
    async fn sweep_volumes(&self, known: &[SandboxKey]) -> Result<(), SandboxError> {
        let label = format!("{INSTANCE}={}", self.instance());
        for (name, labels) in self.engine.list_volumes(&label).await? {
            let key = labels.get(CHAT).cloned().and_then(SandboxKey::new);
            let is_gone = labels.get(PATH).is_some_and(|path| !Path::new(path).exists());
            if is_gone && key.is_some_and(|key| !known.contains(&key)) {
                self.engine.remove_volume(&name).await?;
            }
        }
        Ok(())
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

    /// What the container of `spec` sees of the workspace.
    fn mounts(&self, spec: &SandboxSpec, sharing: &Sharing) -> Result<Vec<Mount>, SandboxError> {
        if *sharing == Sharing::Volumes {
            let [home, outputs, uploads, skills] = self.volumes_of(&spec.key);
            // What only the agent may write to belongs to root.
            return Ok(vec![
                terms::volume(&home, HOME),
                terms::volume(&outputs, OUTPUTS),
                terms::volume(&uploads, UPLOADS),
                terms::volume(&skills, SKILLS),
            ]);
        }
        let bind = |host: &Path, inside: &str, writable| {
            let host = sharing.path(host).map_err(backend_error)?;
            Ok::<_, SandboxError>(terms::bind(&host, inside, writable))
        };
        let mut mounts = vec![
            bind(&spec.home, HOME, true)?,
            bind(&spec.outputs, OUTPUTS, true)?,
            bind(&spec.uploads, UPLOADS, false)?,
        ];
        for skills in &spec.skills {
            mounts.push(bind(
                &skills.host,
                &format!("{SKILLS}/{}", skills.name),
                false,
            )?);
        }
        Ok(mounts)
    }

    /// A word for everything that a container cannot be given later.
    fn made_of(
        &self,
        image: &Prepared,
        terms: &Terms,
        mounts: &[Mount],
        directories: &Directories,
    ) -> String {
        let mut hasher = DefaultHasher::new();
        let config = serde_json::to_string(&self.config).unwrap_or_default();
        let mounts = serde_json::to_string(mounts).unwrap_or_default();
        (config, &image.name, terms, mounts, directories).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
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
            carrier: (ready.sharing == Sharing::Volumes).then(|| Carrier::new(spec)),
            is_adopted,
            untold: Mutex::new(None),
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
            Ok(Err(error)) => Err(backend_error(io::Error::other(error))),
            Err(_) => Err(backend_error(io::Error::new(
                io::ErrorKind::TimedOut,
                "the container was not ready in time",
            ))),
        }
    }

    fn is_time_to_look(&self, now: Instant) -> bool {
        let mut unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        let looked = unknown.looked.replace(now);
        looked.is_none_or(|looked| now.saturating_duration_since(looked) >= LOOK_PERIOD)
            || {
                unknown.looked = looked;
                false
            }
    }

    /// Remembers which containers nobody here uses, and says which have been like that for `timeout`.
    fn idle_of(
        &self,
        found: Vec<(String, SandboxKey)>,
        now: Instant,
        timeout: Duration,
    ) -> Vec<SandboxKey> {
        let mut unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        unknown.since = found
            .into_iter()
            .map(|(id, key)| {
                let since = unknown.since.get(&id).map_or(now, |(_, since)| *since);
                (id, (key, since))
            })
            .collect();
        let idle = unknown
            .since
            .values()
            .filter(|(_, since)| now.saturating_duration_since(*since) >= timeout);
        idle.map(|(key, _)| key.clone()).collect()
    }
}

/// A container that was not started, on its way through what waits for that.
#[derive(Debug, thiserror::Error)]
#[error("the container was not started")]
struct StartFailed(#[source] SandboxError);

/// A container that is being made: given up, it is removed.
struct Unfinished {
    engine: Arc<Engine>,
    id: Option<String>,
}

impl Unfinished {
    async fn remove(&mut self) {
        if let Some(id) = self.id.take() {
            // One that cannot be removed now is found later.
            let _ = self.engine.remove(&id).await;
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
        notes.push("`sandbox.docker.files` is `volumes`: uploads and outputs are carried in and out".to_owned());
    }
    notes
}

fn backend_error(error: impl Into<io::Error>) -> SandboxError {
    SandboxError::Backend {
        backend: BACKEND,
        source: Box::new(error.into()),
    }
}
