//! Sandboxes that are kept in a pool: what every backend does alike.
//!
//! A call leases the sandbox of its chat, has it do the work and, where it turns out that nothing has run, tries once more with a fresh
//! one. Deliberately absent: what a sandbox is made of ([`Starter`]) and how it works ([`Worker`]).

use std::{
    io,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;

use crate::{
    backend::Sandboxes,
    command::{Command, CommandEnd, Output, Restart},
    config::SandboxConfig,
    error::SandboxError,
    files::{
        Content, FileKind, FileRead, FileStat, InsteadOf, ListDirectory, Listing, ReadFile,
        WriteFile, Written,
    },
    operation::{Done, FileAnswer, FileOperation},
    pool::{Lease, Life, Origin, Pool},
    spec::{SandboxKey, SandboxSpec},
    state::{SandboxesState, Unavailable, Usage},
};

/// Makes sandboxes.
#[async_trait]
pub(crate) trait Starter: Send + Sync + 'static {
    /// What it makes.
    type Sandbox: Worker;

    /// The backend's name.
    const NAME: &'static str;

    /// Makes the sandbox of `spec`.
    async fn start(&self, spec: &SandboxSpec) -> Result<Self::Sandbox, SandboxError>;

    /// Is told of each that was made, before it works.
    fn started(&self, _sandbox: &Arc<Self::Sandbox>) {}

    /// What is known of a path without a sandbox.
    fn stat_outside(&self, _spec: &SandboxSpec, _path: &Path) -> Option<FileStat> {
        None
    }

    /// Ends what is left of a sandbox that no pool knows of; says whether there was any.
    async fn stop_unknown(&self, _key: &SandboxKey) -> bool {
        false
    }

    /// What is left of sandboxes that no pool knows of, but for `known`, and that nobody has used for `timeout` at `now`: whose it is, if it
    /// is a chat's, and its name.
    async fn idle_unknown(
        &self,
        _known: Vec<SandboxKey>,
        _now: Instant,
        _timeout: Duration,
    ) -> Vec<(Option<SandboxKey>, String)> {
        Vec::new()
    }

    /// Ends one of these; says whether it was there.
    async fn remove_unknown(&self, _name: &str) -> bool {
        false
    }

    /// Deletes what is kept of a chat besides its workspace.
    async fn forget(&self, _key: &SandboxKey) {}

    /// Whether sandboxes end with this server.
    fn ends_with_server(&self) -> bool {
        true
    }

    /// Prepares what the first sandbox would else wait for.
    async fn prepare(&self) {}

    /// Looks whether sandboxes work now.
    async fn check(&self) -> Result<(), Unavailable> {
        Ok(())
    }

    /// What works here.
    fn state(&self) -> SandboxesState;
}

/// A sandbox, as far as work is concerned.
#[async_trait]
pub(crate) trait Worker: Life {
    /// Whether it was made for this workspace.
    fn fits(&self, spec: &SandboxSpec) -> bool;

    /// Runs a command for at most `limit`.
    async fn run(
        self: Arc<Self>,
        command: &Command,
        limit: Duration,
        output: &mut dyn Output,
    ) -> Result<CommandEnd, RunError>;

    /// Works on files.
    async fn work(
        self: Arc<Self>,
        operation: &FileOperation,
        content: Option<&mut Content>,
    ) -> Result<Done, RunError>;

    /// What its workspace holds, if that is more than it may, counted now.
    async fn over_quota_now(&self) -> Option<Usage>;

    /// Remembers why it took the place of another, for the next command: only a command's end can say so.
    fn owe(&self, restart: Restart);

    /// Why it took the place of another, if nobody was told yet.
    fn take_owed(&self) -> Option<Restart>;
}

/// Why work could not be done to its end.
#[derive(Debug)]
pub(crate) enum RunError {
    /// There was no process left for it. Nothing has run.
    NoProcessLeft,
    /// The sandbox had ended. Nothing has run.
    NotBegun,
    /// The sandbox ended meanwhile, and not by its memory limit.
    Ended,
    /// The caller can be told why.
    Failed(SandboxError),
    /// Nobody foresaw it.
    Io(io::Error),
}

impl RunError {
    /// What it means that a request could not be sent. If init is not gone, the server lacks something, such as descriptors, and the
    /// sandbox is well.
    pub(crate) fn not_sent(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::NotConnected => Self::NotBegun,
            _ => Self::Io(error),
        }
    }
}

impl From<io::Error> for RunError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<SandboxError> for RunError {
    fn from(error: SandboxError) -> Self {
        Self::Failed(error)
    }
}

/// The sandboxes that `S` makes.
pub(crate) struct Pooled<S: Starter> {
    pub(crate) starter: S,
    pool: Arc<Pool<S::Sandbox>>,
    command_timeout_max: Duration,
    idle_timeout: Duration,
}

impl<S: Starter> Pooled<S> {
    pub(crate) fn new(starter: S, config: &SandboxConfig) -> Self {
        Self {
            starter,
            pool: Pool::new(config.max_running, Instant::now),
            command_timeout_max: config.command_timeout_max(),
            idle_timeout: config.idle_timeout(),
        }
    }

    async fn lease(&self, spec: &SandboxSpec) -> Result<Lease<S::Sandbox>, SandboxError> {
        let fits = |sandbox: &S::Sandbox| sandbox.fits(spec);
        let start = || self.starter.start(spec);
        let lease = self.pool.lease(&spec.key, fits, start).await?;
        if let Some(lost) = lease.lost {
            lease.sandbox.owe(lost);
        }
        if lease.origin == Origin::Started {
            self.starter.started(&lease.sandbox);
        }
        Ok(lease)
    }

    /// The sandbox that stands in for one that could not do its work for this reason.
    async fn lease_after(
        &self,
        spec: &SandboxSpec,
        restart: Option<Restart>,
    ) -> Result<Lease<S::Sandbox>, SandboxError> {
        let lease = self.lease(spec).await?;
        if let Some(restart) = restart {
            lease.sandbox.owe(restart);
        }
        Ok(lease)
    }

    /// Decides after a failure whether to try once more, and makes room for that. Nothing has run in the cases that are tried again.
    async fn recover(
        &self,
        spec: &SandboxSpec,
        lease: Lease<S::Sandbox>,
        error: RunError,
        is_last: bool,
    ) -> Result<Restart, SandboxError> {
        if let RunError::NotBegun = error
            && !is_last
        {
            // It may live on, out of reach: whoever comes next finds out.
            let restart = lease.sandbox.why_ended().await;
            self.pool.replace_this(&spec.key, &lease.sandbox).await;
            return Ok(restart);
        }
        let restart = match error {
            RunError::Failed(error) => return Err(error),
            RunError::Io(error) => return Err(backend_error::<S>(error)),
            RunError::Ended | RunError::NotBegun => {
                return Err(SandboxError::Stopped(spec.key.clone()));
            }
            RunError::NoProcessLeft if is_last => {
                return Err(SandboxError::NoProcessLeft(spec.key.clone()));
            }
            RunError::NoProcessLeft => Restart::NoProcessLeft,
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
        let Some(usage) = lease.sandbox.over_quota_now().await else {
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
            let sandbox = Arc::clone(&lease.sandbox);
            match sandbox.work(operation, content.as_deref_mut()).await {
                Ok(done) => return Ok(done),
                Err(error) => {
                    let is_last = restarted.is_some();
                    restarted = Some(self.recover(spec, lease, error, is_last).await?);
                }
            }
        }
    }
}

#[async_trait]
impl<S: Starter> Sandboxes for Pooled<S> {
    async fn open(&self, spec: &SandboxSpec) -> Result<bool, SandboxError> {
        Ok(self.lease(spec).await?.origin != Origin::Running)
    }

    async fn run(
        &self,
        spec: &SandboxSpec,
        command: &Command,
        output: &mut dyn Output,
    ) -> Result<CommandEnd, SandboxError> {
        command.check()?;
        let limit = command.timeout.min(self.command_timeout_max);
        let mut restarted = None;
        loop {
            let lease = self.lease_after(spec, restarted).await?;
            let sandbox = Arc::clone(&lease.sandbox);
            match sandbox.run(command, limit, output).await {
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
            _ => Err(unexpected_answer::<S>()),
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
            Content::File(file) => file.metadata().map_err(backend_error::<S>)?.len(),
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
            _ => Err(unexpected_answer::<S>()),
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
            _ => Err(unexpected_answer::<S>()),
        }
    }

    async fn stat(&self, spec: &SandboxSpec, path: &Path) -> Result<FileStat, SandboxError> {
        if let Some(stat) = self.starter.stat_outside(spec, path) {
            return Ok(stat);
        }
        match self
            .work(spec, &FileOperation::Stat(path.to_owned()), None)
            .await?
            .answer
        {
            FileAnswer::Stat(stat) => Ok(stat),
            _ => Err(unexpected_answer::<S>()),
        }
    }

    async fn stop(&self, key: &SandboxKey) -> bool {
        let stopped = self.pool.stop(key).await;
        let unknown = || self.starter.stop_unknown(key);
        stopped | self.pool.unless_there(key, unknown).await
    }

    async fn forget(&self, key: &SandboxKey) {
        self.stop(key).await;
        self.starter.forget(key).await;
    }

    async fn stop_all(&self) {
        self.pool.stop_all().await;
    }

    async fn close(&self) {
        if self.starter.ends_with_server() {
            self.stop_all().await;
        }
    }

    async fn stop_idle(&self, now: Instant) -> usize {
        let mut stopped = self.pool.stop_idle(now, self.idle_timeout).await;
        let known = self.pool.keys();
        let idle = self.starter.idle_unknown(known, now, self.idle_timeout);
        for (key, name) in idle.await {
            let remove = || self.starter.remove_unknown(&name);
            // Somebody may have come back to it.
            let removed = match key {
                Some(key) => self.pool.unless_there(&key, remove).await,
                None => remove().await,
            };
            stopped += usize::from(removed);
        }
        stopped
    }

    async fn prepare(&self) {
        self.starter.prepare().await;
    }

    async fn check(&self) -> SandboxesState {
        let unavailable = self.starter.check().await.err();
        SandboxesState {
            unavailable,
            ..self.state()
        }
    }

    fn state(&self) -> SandboxesState {
        SandboxesState {
            running: self.pool.running(),
            ..self.starter.state()
        }
    }
}

fn unexpected_answer<S: Starter>() -> SandboxError {
    backend_error::<S>(io::Error::other("the sandbox answered another question"))
}

fn backend_error<S: Starter>(error: impl Into<io::Error>) -> SandboxError {
    SandboxError::Backend {
        backend: S::NAME,
        source: Box::new(error.into()),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn a_sandbox_is_given_up_only_if_its_init_is_gone() {
        let is_given_up =
            |errno: Errno| matches!(RunError::not_sent(errno.into()), RunError::NotBegun);
        for gone in [Errno::PIPE, Errno::CONNRESET, Errno::NOTCONN] {
            assert!(is_given_up(gone), "{gone}");
        }
        for lacking in [
            Errno::TOOMANYREFS,
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOBUFS,
            Errno::NOMEM,
        ] {
            assert!(!is_given_up(lacking), "{lacking}");
        }
    }
}
