//! One running container, as a sandbox.

use std::{
    collections::HashMap,
    io,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    time::{Instant, timeout},
};

use super::{
    carrier::Carrier,
    engine::{Engine, lock},
    frames::{Answer, Ask, Failure, Kind, PIECE_BYTES, frame, restart_of},
    link::{Event, Exchange, Link},
};
use crate::{
    command::{BackgroundOutput, Command, CommandEnd, Ending, Output, Restart},
    error::{FileError, SandboxError},
    files::Content,
    operation::{Done, FileOperation},
    pool::Life,
    pooled::{RunError, Worker},
    spec::{Directories, SKILLS, SandboxSpec, UPLOADS},
    state::{Unavailable, Usage},
};

/// How long our program may take to say that it got a request, before the engine is asked whether it is there.
const ACCEPT_PATIENCE: Duration = Duration::from_millis(1500);
/// How long a container may be silent on a loaded machine, before another takes its place.
const SILENCE_PATIENCE: Duration = Duration::from_secs(45);
/// How long nothing may come of work that takes no time of its own, and how much longer than its limit a command may take.
const WORK_PATIENCE: Duration = Duration::from_secs(90);
/// How long small questions may take.
const ASK_PATIENCE: Duration = Duration::from_secs(3);

/// A container with our program in it.
pub(crate) struct Container {
    pub(super) id: String,
    pub(super) engine: Arc<Engine>,
    pub(super) link: Link,
    pub(super) directories: Directories,
    /// What the image adds to a command's environment.
    pub(super) environment: Vec<(String, String)>,
    /// Carries files, if it does not see those of this host.
    pub(super) carrier: Option<Carrier>,
    /// It was there before this server.
    pub(super) is_adopted: bool,
    pub(super) untold: Mutex<Option<Restart>>,
    /// Why outputs could not be carried out, as it was last said.
    pub(super) not_carried: Mutex<Option<String>>,
    /// Whoever waits is told so, and the engine need not be asked.
    pub(super) is_stopped: AtomicBool,
}

#[async_trait]
impl Life for Container {
    fn is_alive(&self) -> bool {
        self.link.is_alive()
    }

    async fn why_ended(&self) -> Restart {
        if let Some(owed) = self.take_owed() {
            return owed;
        }
        let state = self.engine.state_at_end(&self.id).await;
        let status = state.ok().and_then(|state| state.exit_code);
        status.and_then(restart_of).unwrap_or(Restart::Ended)
    }

    async fn would_lose(&self) -> Option<Restart> {
        if !self.is_alive() {
            return Some(self.why_ended().await);
        }
        if let Some(owed) = self.take_owed() {
            return Some(owed);
        }
        match self.ask(&Ask::Background).await {
            Some(Answer::Background(true)) => Some(Restart::Idle),
            _ => None,
        }
    }

    async fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        self.link.cut();
        if let Err(error) = self.engine.remove(&self.id).await {
            // It is found again, and removed once it was idle long enough.
            tracing::warn!(container = self.id, error = %super::engine::in_words(&error), "A container cannot be removed now");
        }
    }

    /// One whose connection was lost may live on: whoever takes its place looks first.
    async fn replace(&self) {
        if self.is_alive() {
            self.stop().await;
        }
    }

    fn goes_on(&self) -> bool {
        self.is_adopted
    }
}

#[async_trait]
impl Worker for Container {
    fn fits(&self, spec: &SandboxSpec) -> bool {
        self.directories == Directories::of(spec)
    }

    async fn run(
        self: Arc<Self>,
        command: &Command,
        limit: Duration,
        output: &mut dyn Output,
    ) -> Result<CommandEnd, RunError> {
        if let Some(carrier) = &self.carrier {
            carrier.bring_in(&self).await?;
        }
        let started = Instant::now();
        let ask = Ask::Run {
            script: command.script.clone(),
            environment: self.environment_of(command),
            limit,
        };
        let mut request = Request::send(&self, &ask, limit + WORK_PATIENCE).await?;
        loop {
            match request.next().await {
                Ok(Event::Output(bytes)) => output.chunk(&bytes),
                Ok(Event::Done(Answer::Ran(end))) => {
                    self.bring_out().await;
                    return Ok(end);
                }
                Ok(Event::Done(answer)) => return Err(error_of(answer)),
                Ok(Event::Accepted) => {}
                Err(Lost::MemoryLimit) => {
                    return Ok(CommandEnd {
                        ending: Ending::MemoryLimit,
                        memory_limit_hit: true,
                        process_limit_hit: false,
                        background_output: BackgroundOutput::None,
                        over_quota: None,
                        restarted: None,
                        duration: started.elapsed(),
                    });
                }
                Err(lost) => return Err(lost.into()),
            }
        }
    }

    async fn work(
        self: Arc<Self>,
        operation: &FileOperation,
        content: Option<&mut Content>,
    ) -> Result<Done, RunError> {
        if let Some(carrier) = &self.carrier {
            carrier.bring_in(&self).await?;
        }
        let done = self.do_work(operation, content).await?;
        if matches!(operation, FileOperation::Write { .. }) {
            self.bring_out().await;
        }
        Ok(done)
    }

    async fn over_quota_now(&self) -> Option<Usage> {
        match self.ask(&Ask::OverQuota).await {
            Some(Answer::OverQuota(usage)) => usage,
            _ => None,
        }
    }

    fn owe(&self, restart: Restart) {
        self.untold().get_or_insert(restart);
    }

    fn take_owed(&self) -> Option<Restart> {
        self.untold().take()
    }
}

impl Container {
    fn untold(&self) -> MutexGuard<'_, Option<Restart>> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn environment_of(&self, command: &Command) -> Vec<(String, String)> {
        let wanted: HashMap<_, _> = command.environment.iter().cloned().collect();
        let own = self
            .environment
            .iter()
            .filter(|(name, _)| !wanted.contains_key(name));
        own.chain(&command.environment).cloned().collect()
    }

    /// Lets go of a container that does not answer, though its engine does.
    fn give_up(&self) -> RunError {
        self.link.cut();
        RunError::Failed(
            Unavailable {
                reason: "the container of this chat does not answer".to_owned(),
                cure: "try again; if it was paused or stopped by hand, start it or remove it"
                    .to_owned(),
            }
            .into(),
        )
    }

    /// Does work on files, without carrying any.
    pub(super) async fn do_work(
        &self,
        operation: &FileOperation,
        content: Option<&mut Content>,
    ) -> Result<Done, RunError> {
        let ask = Ask::File(operation.clone());
        let most = operation.most_content();
        match self.exchange(&ask, content, most).await? {
            (Answer::File(answer), content) => Ok(Done { answer, content }),
            (Answer::Failed(Failure::File(FileError::Denied(path))), _)
                if self.carrier.is_some() && is_read_only(&path) =>
            {
                Err(RunError::Failed(FileError::ReadOnly(path).into()))
            }
            (answer, _) => Err(error_of(answer)),
        }
    }

    /// Carries out what the last call left for the user. The call itself went well, so its answer stands.
    async fn bring_out(&self) {
        if let Some(carrier) = &self.carrier
            && let Err(error) = carrier.bring_out_after_call(self).await
        {
            self.note_not_carried(&error);
        }
    }

    pub(super) async fn answer(&self, ask: &Ask) -> Result<Answer, RunError> {
        Ok(self.exchange(ask, None, 0).await?.0)
    }

    pub(super) async fn answer_with_content(
        &self,
        ask: &Ask,
        most: u64,
    ) -> Result<(Answer, Bytes), RunError> {
        self.exchange(ask, None, most).await
    }

    pub(super) async fn send(&self, ask: &Ask, content: &mut Content) -> Result<Answer, RunError> {
        Ok(self.exchange(ask, Some(content), 0).await?.0)
    }

    /// Asks, sends what there is to send, and takes at most so much of what comes.
    async fn exchange(
        &self,
        ask: &Ask,
        content: Option<&mut Content>,
        most: u64,
    ) -> Result<(Answer, Bytes), RunError> {
        let mut request = Request::send(self, ask, WORK_PATIENCE).await?;
        let mut content = match content {
            Some(content) => Some(content.reader().await?),
            None => None,
        };
        let mut received = BytesMut::new();
        loop {
            let event = match &mut content {
                None => request.next().await?,
                Some(reader) => {
                    // Whatever comes while there is no room: an answer that needs no more content.
                    let room = request.exchange.room.clone();
                    tokio::select! {
                        biased;
                        event = request.next() => event?,
                        permit = room.acquire_owned() => {
                            if let Ok(permit) = permit {
                                permit.forget();
                            }
                            let piece = next_piece(reader).await?;
                            if piece.is_empty() {
                                content = None;
                            } else {
                                let piece = frame(Kind::Content, request.exchange.id, &piece);
                                self.link.send(piece).await.map_err(RunError::not_sent)?;
                            }
                            continue;
                        }
                    }
                }
            };
            match event {
                Event::Accepted => {}
                // Its lengths are not believed beyond what was asked for.
                Event::Output(bytes) if (received.len() + bytes.len()) as u64 <= most => {
                    received.extend_from_slice(&bytes);
                }
                Event::Output(_) => return Err(io::Error::from(io::ErrorKind::InvalidData).into()),
                Event::Done(answer) => return Ok((answer, received.freeze())),
            }
        }
    }

    /// Says in the log that outputs are not carried out; the next call tries again.
    pub(super) fn note_not_carried(&self, error: &RunError) {
        let why = format!("{error:?}");
        let said = lock(&self.not_carried).replace(why.clone());
        // It is tried again every few seconds.
        if said.as_ref() != Some(&why) {
            tracing::warn!(
                container = self.id,
                why,
                "Outputs cannot be carried out of a container"
            );
        }
    }

    /// A small question, to which there may be no answer.
    async fn ask(&self, ask: &Ask) -> Option<Answer> {
        let answer = async {
            let mut exchange = self.link.ask(ask).await.ok()?;
            loop {
                if let Event::Done(answer) = exchange.next().await? {
                    return Some(answer);
                }
            }
        };
        timeout(ASK_PATIENCE, answer).await.ok().flatten()
    }
}

/// A request that knows what it means when the connection is lost, and does not wait for ever.
struct Request<'container> {
    container: &'container Container,
    exchange: Exchange<'container>,
    /// How long nothing may come.
    patience: Duration,
    is_accepted: bool,
}

/// What it means that nothing comes any more.
enum Lost {
    /// The container was ended by its memory limit.
    MemoryLimit,
    Other(RunError),
}

impl From<Lost> for RunError {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::MemoryLimit => Self::Ended,
            Lost::Other(error) => error,
        }
    }
}

impl<'container> Request<'container> {
    async fn send(
        container: &'container Container,
        ask: &Ask,
        patience: Duration,
    ) -> Result<Self, RunError> {
        let sent = timeout(ACCEPT_PATIENCE, container.link.ask(ask)).await;
        let sent = if let Ok(sent) = sent {
            sent
        } else {
            // The stream is full: the engine does not take anything.
            container
                .engine
                .client()
                .await
                .map_err(SandboxError::from)?;
            match timeout(SILENCE_PATIENCE, container.link.ask(ask)).await {
                Ok(sent) => sent,
                Err(_) => return Err(container.give_up()),
            }
        };
        let exchange = sent.map_err(RunError::not_sent)?;
        Ok(Self {
            container,
            exchange,
            patience,
            is_accepted: false,
        })
    }

    async fn next(&mut self) -> Result<Event, Lost> {
        let asked = Instant::now();
        loop {
            let patience = if self.is_accepted {
                self.patience
            } else {
                ACCEPT_PATIENCE
            };
            match timeout(patience, self.exchange.next()).await {
                Ok(Some(event)) => {
                    self.is_accepted = true;
                    return Ok(event);
                }
                Ok(None) => return Err(self.explain_loss().await),
                Err(_) => {}
            }
            let engine = self.container.engine.client().await;
            if let Err(unavailable) = engine {
                self.container.link.cut();
                return Err(Lost::Other(RunError::Failed(unavailable.into())));
            }
            if self.is_accepted || asked.elapsed() > SILENCE_PATIENCE {
                return Err(Lost::Other(self.container.give_up()));
            }
        }
    }

    async fn explain_loss(&self) -> Lost {
        let Container { engine, id, .. } = self.container;
        if self.container.is_stopped.load(Ordering::SeqCst) {
            return Lost::Other(RunError::Ended);
        }
        let state = match engine.state_at_end(id).await {
            Err(error) => return Lost::Other(RunError::Failed(error)),
            Ok(state) => state,
        };
        // The engine notes any process that the limit ended, also long ago; this is how the first one ends by it.
        let was_killed = state.oom_killed == Some(true) && state.exit_code == Some(137);
        if self.is_accepted && was_killed {
            Lost::MemoryLimit
        } else if self.is_accepted || state.running == Some(true) {
            // It may have begun.
            Lost::Other(RunError::Ended)
        } else {
            Lost::Other(RunError::NotBegun)
        }
    }
}

async fn next_piece(reader: &mut (dyn AsyncRead + Send + Unpin)) -> io::Result<Bytes> {
    let mut piece = vec![0; PIECE_BYTES];
    let count = reader.read(&mut piece).await?;
    piece.truncate(count);
    Ok(piece.into())
}

/// Whether nothing in the sandbox may write there, which in a volume is a matter of permissions.
fn is_read_only(path: &Path) -> bool {
    path.starts_with(UPLOADS) || path.starts_with(SKILLS)
}

pub(super) fn error_of(answer: Answer) -> RunError {
    match answer {
        Answer::Failed(Failure::NoProcessLeft) => RunError::NoProcessLeft,
        Answer::Failed(Failure::NotBegun) => RunError::NotBegun,
        Answer::Failed(Failure::Ended) => RunError::Ended,
        Answer::Failed(Failure::File(error)) => RunError::Failed(SandboxError::File(error)),
        Answer::Failed(Failure::Other(why)) => RunError::Io(io::Error::other(why)),
        _ => RunError::Io(io::Error::other("the container answered another question")),
    }
}

/// The name of the container of a chat. Different keys have different names, in the fewer characters that an engine allows.
pub(super) fn name_of(instance: &str, key: &str) -> String {
    let key = key.replace('_', "__").replace('@', "_a").replace('+', "_p");
    format!("foreword-{instance}-{key}")
}

/// Whether all directories of a workspace are there. The engine would say so with their paths on this host.
pub(super) fn check_directories(spec: &SandboxSpec) -> Result<(), SandboxError> {
    let places: [(&Path, &str); 3] = [
        (&spec.home, crate::spec::HOME),
        (&spec.outputs, crate::spec::OUTPUTS),
        (&spec.uploads, crate::spec::UPLOADS),
    ];
    for (path, inside) in places {
        if !path.is_dir() {
            return Err(Unavailable {
                reason: format!("the chat has no directory for `{inside}` any more"),
                cure: "begin a new chat".to_owned(),
            }
            .into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_chats_have_different_names_of_what_an_engine_allows() {
        let keys = ["a_b", "a@b", "a+b", "a__b", "a_ab", "a_pb", "a.b", "a-b"];
        let mut names: Vec<_> = keys.map(|key| name_of("word", key)).into();
        assert!(names.iter().all(|name| {
            name.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
        }));
        names.sort();
        names.dedup();
        assert_eq!(names.len(), keys.len());
    }
}
