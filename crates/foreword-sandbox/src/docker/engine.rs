//! Speaks to the container engine, and says in words when it does not answer.

use std::{
    collections::HashMap,
    io,
    path::PathBuf,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bollard::{
    API_DEFAULT_VERSION, Docker,
    errors::Error,
    exec::StartExecResults,
    models::{
        ContainerCreateBody, ContainerInspectResponse, ContainerState, ContainerSummary,
        ExecConfig, VolumeCreateRequest,
    },
    query_parameters::{
        AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, ListContainersOptionsBuilder,
        ListVolumesOptionsBuilder, RemoveContainerOptionsBuilder, RemoveVolumeOptionsBuilder,
    },
};
use futures::{StreamExt, TryStreamExt};
use tokio::time::{Instant, timeout};

use super::link::ContainerStream;
use crate::{error::SandboxError, state::Unavailable};

/// Where an engine on this machine is by default.
pub(super) const DEFAULT_HOST: &str = "unix:///var/run/docker.sock";
/// The cure where no engine is found.
const ELSEWHERE: &str = "start it, or set `sandbox.docker.host` to where it is";
/// How long the engine may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long an engine that did not answer is not asked again.
const FAILURE_HOLDS: Duration = Duration::from_secs(1);
/// How long any one thing may take that it does, in seconds; a loaded engine may need a while.
const WORK_PATIENCE_SECONDS: u64 = 120;

/// How long the engine may take to note that a container ended, whose stream has ended already.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// How long a name may stay taken by a container that is being removed, and how often is looked.
const NAME_PATIENCE: Duration = Duration::from_secs(10);
const NAME_REST: Duration = Duration::from_millis(20);

/// A connection to the engine, made when it is needed.
pub(super) struct Engine {
    host: String,
    certificates: Option<PathBuf>,
    client: Mutex<Option<Docker>>,
    /// It is Podman, which does some things in its own way.
    is_podman: AtomicBool,
    /// What was seen last, and when.
    seen: Mutex<(Result<(), Unavailable>, Option<Instant>)>,
}

impl Engine {
    pub(super) fn new(host: Option<&str>, certificates: Option<PathBuf>) -> Self {
        Self {
            host: host.unwrap_or(DEFAULT_HOST).to_owned(),
            certificates,
            client: Mutex::new(None),
            is_podman: AtomicBool::new(false),
            seen: Mutex::new((Ok(()), None)),
        }
    }

    /// Whether it is Podman, as far as it has been asked.
    pub(super) fn is_podman(&self) -> bool {
        self.is_podman.load(Ordering::Relaxed)
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Whether it answered when it was last asked.
    pub(super) fn seen(&self) -> Result<(), Unavailable> {
        lock(&self.seen).0.clone()
    }

    /// A client. Says within a few seconds if the engine does not answer.
    pub(super) async fn client(&self) -> Result<Docker, Unavailable> {
        // Whoever waited for another's answer need not wait for one of his own.
        let (seen, when) = lock(&self.seen).clone();
        if let (Err(unavailable), Some(when)) = (seen, when)
            && when.elapsed() < FAILURE_HOLDS
        {
            return Err(unavailable);
        }
        let known = lock(&self.client).clone();
        let answer = timeout(PATIENCE, async {
            let client = match known {
                Some(client) => client,
                None => self.connect()?,
            };
            client.ping().await.map(|_| client)
        });
        let result = match answer.await {
            Ok(Ok(client)) => Ok(client),
            Ok(Err(error)) => Err(self.unavailable(&error)),
            Err(_) => {
                let why = format!("no answer within {} seconds", PATIENCE.as_secs());
                Err(self.no_answer(&why, ELSEWHERE))
            }
        };
        *lock(&self.client) = result.as_ref().ok().cloned();
        *lock(&self.seen) = (
            result.as_ref().map(drop).map_err(Clone::clone),
            Some(Instant::now()),
        );
        result
    }

    /// Asks which engine it is; Podman takes its time to say so.
    pub(super) async fn identify(&self) -> Result<(), SandboxError> {
        let client = self.client().await?;
        let version = client
            .version()
            .await
            .map_err(|error| self.explain(error))?;
        let parts = version.components.unwrap_or_default();
        let is_podman = parts.iter().any(|part| part.name.contains("Podman"));
        self.is_podman.store(is_podman, Ordering::Relaxed);
        Ok(())
    }

    fn connect(&self) -> Result<Docker, Error> {
        let host = self.host.as_str();
        let is_remote = ["tcp://", "http://", "https://"]
            .iter()
            .any(|scheme| host.starts_with(scheme));
        if let Some(certificates) = self.certificates.as_ref().filter(|_| is_remote) {
            for name in ["ca.pem", "cert.pem", "key.pem"] {
                let path = certificates.join(name);
                std::fs::File::open(&path).map_err(|error| {
                    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
                })?;
            }
            return Docker::connect_with_ssl(
                host,
                &certificates.join("key.pem"),
                &certificates.join("cert.pem"),
                &certificates.join("ca.pem"),
                WORK_PATIENCE_SECONDS,
                API_DEFAULT_VERSION,
            );
        }
        match host.split_once("://") {
            Some(("tcp" | "http", _)) => {
                Docker::connect_with_http(host, WORK_PATIENCE_SECONDS, API_DEFAULT_VERSION)
            }
            _ => Docker::connect_with_local(host, WORK_PATIENCE_SECONDS, API_DEFAULT_VERSION),
        }
    }

    fn unavailable(&self, error: &Error) -> Unavailable {
        let cure = if is_forbidden(error) {
            "let Foreword's user at its socket: the socket's group has to be one of the user's"
        } else {
            ELSEWHERE
        };
        self.no_answer(&in_words(error), cure)
    }

    fn no_answer(&self, why: &str, cure: &str) -> Unavailable {
        Unavailable {
            reason: format!(
                "the container engine at {} does not answer: {why}",
                self.host
            ),
            cure: cure.to_owned(),
        }
    }

    /// What an error of the engine means for a caller.
    pub(super) fn explain(&self, error: Error) -> SandboxError {
        if is_no_answer(&error) {
            let unavailable = self.unavailable(&error);
            *lock(&self.client) = None;
            *lock(&self.seen) = (Err(unavailable.clone()), Some(Instant::now()));
            return unavailable.into();
        }
        SandboxError::Backend {
            backend: super::BACKEND,
            source: Box::new(error),
        }
    }

    /// Makes a container, in the place of one that has its name; gives what the engine calls it.
    pub(super) async fn create(
        &self,
        name: &str,
        body: ContainerCreateBody,
    ) -> Result<String, SandboxError> {
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        let client = self.client().await?;
        let started = Instant::now();
        loop {
            let created = client.create_container(Some(options.clone()), body.clone());
            match created.await {
                Ok(created) => return Ok(created.id),
                // One that was given up while the engine made it, or one that is on its way out.
                Err(error) if is_conflict(&error) && started.elapsed() < NAME_PATIENCE => {
                    self.remove(name).await?;
                    tokio::time::sleep(NAME_REST).await;
                }
                Err(error) => return Err(self.explain(error)),
            }
        }
    }

    /// A stream to the first process of a container.
    pub(super) async fn attach(&self, id: &str) -> Result<ContainerStream, SandboxError> {
        let options = AttachContainerOptionsBuilder::default()
            .stdin(true)
            .stdout(true)
            .stderr(true)
            .stream(true)
            .build();
        let client = self.client().await?;
        match client.attach_container(id, Some(options)).await {
            Ok(attached) => Ok(ContainerStream {
                output: attached.output,
                input: attached.input,
            }),
            Err(error) => Err(self.explain(error)),
        }
    }

    /// A stream to a program of its root that is started in a container for that.
    pub(super) async fn execute(
        &self,
        id: &str,
        command: Vec<String>,
    ) -> Result<ContainerStream, SandboxError> {
        let config = ExecConfig {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(command),
            user: Some("0:0".to_owned()),
            working_dir: Some("/".to_owned()),
            env: Some(super::terms::loader_environment()),
            ..ExecConfig::default()
        };
        let client = self.client().await?;
        let started = async {
            let exec = client.create_exec(id, config).await?;
            client.start_exec(&exec.id, None).await
        };
        match started.await {
            Ok(StartExecResults::Attached { output, input }) => {
                Ok(ContainerStream { output, input })
            }
            Ok(StartExecResults::Detached) => Err(super::backend_error(std::io::Error::other(
                "the engine gave no stream",
            ))),
            Err(error) => Err(self.explain(error)),
        }
    }

    pub(super) async fn start(&self, name: &str) -> Result<(), SandboxError> {
        let client = self.client().await?;
        let started = client.start_container(name, None).await;
        started.map_err(|error| self.explain(error))
    }

    /// Starts a container and waits until it has ended well.
    pub(super) async fn run(&self, id: &str) -> Result<(), EngineRun> {
        self.start(id).await.map_err(EngineRun::Refused)?;
        let client = self.client().await;
        let client = client.map_err(|error| EngineRun::Refused(error.into()))?;
        let ended = client.wait_container(id, None).try_collect::<Vec<_>>();
        match ended.await {
            Ok(_) => Ok(()),
            Err(Error::DockerContainerWaitError { .. }) => Err(EngineRun::Failed),
            Err(error) => Err(EngineRun::Refused(self.explain(error))),
        }
    }

    /// The state of a container whose stream ended, which an engine may know before it knows that the container did; of one that is gone
    /// there is nothing to know.
    pub(super) async fn state_at_end(&self, id: &str) -> Result<ContainerState, SandboxError> {
        let client = self.client().await?;
        // What is waited for, the state says too. One that goes on has lost its connection only.
        let _ = timeout(END_PATIENCE, client.wait_container(id, None).next()).await;
        let found = self.inspect(id).await?;
        Ok(found.and_then(|found| found.state).unwrap_or_default())
    }

    /// Ends and removes a container; says whether there was one.
    pub(super) async fn remove(&self, name: &str) -> Result<bool, SandboxError> {
        let options = RemoveContainerOptionsBuilder::default()
            .force(true)
            .v(true)
            .build();
        let client = self.client().await?;
        match client.remove_container(name, Some(options)).await {
            Ok(()) => Ok(true),
            Err(error) if is_absent(&error) => Ok(false),
            // Somebody else is removing it.
            Err(error) if is_conflict(&error) => Ok(true),
            Err(error) => Err(self.explain(error)),
        }
    }

    /// What the engine knows of a container, if there is one; nothing of one that is in an odd state.
    pub(super) async fn inspect(
        &self,
        name: &str,
    ) -> Result<Option<ContainerInspectResponse>, SandboxError> {
        let client = self.client().await?;
        match client.inspect_container(name, None).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if is_absent(&error) => Ok(None),
            // Podman has states that the client does not know. None of them is that it runs.
            Err(Error::JsonDataError { .. }) => Ok(Some(ContainerInspectResponse::default())),
            Err(error) => Err(self.explain(error)),
        }
    }

    /// The containers that have this label, stopped ones too.
    pub(super) async fn list(&self, label: &str) -> Result<Vec<ContainerSummary>, SandboxError> {
        let filters = [("label".to_owned(), vec![label.to_owned()])].into();
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&filters)
            .build();
        let client = self.client().await?;
        let listed = client.list_containers(Some(options)).await;
        listed.map_err(|error| self.explain(error))
    }

    /// The labels of a volume, if there is one.
    pub(super) async fn labels_of_volume(
        &self,
        name: &str,
    ) -> Result<Option<HashMap<String, String>>, SandboxError> {
        let client = self.client().await?;
        match client.inspect_volume(name).await {
            Ok(found) => Ok(Some(found.labels)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(self.explain(error)),
        }
    }

    pub(super) async fn create_volume(
        &self,
        name: &str,
        labels: HashMap<String, String>,
    ) -> Result<(), SandboxError> {
        let body = VolumeCreateRequest {
            name: Some(name.to_owned()),
            labels: Some(labels),
            ..VolumeCreateRequest::default()
        };
        let client = self.client().await?;
        let created = client.create_volume(body).await;
        created.map(drop).map_err(|error| self.explain(error))
    }

    /// The volumes that have this label, with all their labels.
    pub(super) async fn list_volumes(
        &self,
        label: &str,
    ) -> Result<Vec<(String, HashMap<String, String>)>, SandboxError> {
        let filters = [("label".to_owned(), vec![label.to_owned()])].into();
        let options = ListVolumesOptionsBuilder::default()
            .filters(&filters)
            .build();
        let client = self.client().await?;
        let listed = client.list_volumes(Some(options)).await;
        let listed = listed.map_err(|error| self.explain(error))?.volumes;
        let volumes = listed.unwrap_or_default().into_iter();
        Ok(volumes.map(|volume| (volume.name, volume.labels)).collect())
    }

    pub(super) async fn remove_volume(&self, name: &str) -> Result<(), SandboxError> {
        let options = RemoveVolumeOptionsBuilder::default().force(true).build();
        let client = self.client().await?;
        match client.remove_volume(name, Some(options)).await {
            Err(error) if !is_absent(&error) => Err(self.explain(error)),
            _ => Ok(()),
        }
    }
}

/// Why a container did not end well.
pub(super) enum EngineRun {
    /// Its program failed.
    Failed,
    /// The engine did not run it.
    Refused(SandboxError),
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn status(error: &Error) -> Option<u16> {
    match error {
        Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// Whether there is no such thing.
///
/// Podman says so with 500 of a container that went while it was looked for.
pub(super) fn is_absent(error: &Error) -> bool {
    is_said_with_500(error, "no such container") || status(error) == Some(404)
}

fn is_said_with_500(error: &Error, words: &str) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code: 500, message } if message.contains(words))
}

/// Whether the engine refused since something was not there.
pub(super) fn is_of_absent(error: &SandboxError) -> bool {
    match error {
        SandboxError::Backend { source, .. } => {
            source.downcast_ref::<Error>().is_some_and(is_absent)
        }
        _ => false,
    }
}

/// Whether something else has the name, or does the same just now.
///
/// Podman says so with 500 while its storage has the name of a container that it is still making, or giving up.
pub(super) fn is_conflict(error: &Error) -> bool {
    is_said_with_500(error, "is already in use") || status(error) == Some(409)
}

/// Whether the engine could not be reached, rather than refused.
fn is_no_answer(error: &Error) -> bool {
    matches!(
        error,
        Error::IOError { .. }
            | Error::HyperResponseError { .. }
            | Error::HyperLegacyError { .. }
            | Error::RequestTimeoutError
            | Error::SocketNotFoundError(_)
    )
}

/// Whether the engine's socket is there and may not be used.
fn is_forbidden(error: &Error) -> bool {
    let first: Option<&(dyn std::error::Error + 'static)> = Some(error);
    std::iter::successors(first, |error| error.source())
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// An error with what is behind it.
pub(super) fn in_words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        source = error.source();
    }
    words
}
