//! Our program in a container: does what the server asks for, next to the init process that it drives.
//!
//! It is the same code that the server runs for a sandbox of namespaces, at the other end of a stream. So time-outs, quotas and files
//! work alike, a command costs a fork and not an engine's `exec`, and a server that comes back finds everything as it was.

use std::{
    collections::HashMap,
    fs::{File, Permissions},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::PermissionsExt,
    },
    path::PathBuf,
    pin::Pin,
    sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf, Bytes};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{
        RecvFlags, SendFlags,
        sockopt::{Timeout, set_socket_timeout},
    },
    process::{DumpableBehavior, set_dumpable_behavior},
    thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs},
};
use serde::Serialize;
use tokio::{
    io::{AsyncRead, AsyncReadExt, ReadBuf},
    net::UnixListener,
    sync::mpsc,
    task::AbortHandle,
};

use super::{
    bridge,
    frames::{
        Answer, Ask, Decoder, Failure, Frame, Hello, Kind, MOST_ASKED_BYTES, PIECE_BYTES,
        PIECES_UNDER_WAY, Place, Terms, VERSION, frame, status_of, value_frame,
    },
    places::Root,
};
use crate::{
    command::Command,
    driver::{
        file_work,
        group::{Group, Version},
        guard,
        protocol::{Contained, Limits, Reply, Request as InitRequest, receive, send},
        run,
        sandbox::{Sandbox, Started},
        usage::UsageWatch,
    },
    error::SandboxError,
    operation::FileOperation,
    pool::Life,
    pooled::RunError,
    spec::Directories,
};

/// Threads besides the one that all runs on: for standard input, and for counting what the workspace holds.
const THREADS: usize = 3;
/// How long init may take to get ready.
const READY_PATIENCE: Duration = Duration::from_secs(20);
/// How long a server may take nothing before it counts as gone. Until then everything in the sandbox waits for it.
const READER_PATIENCE: Timespec = Timespec {
    tv_sec: 20,
    tv_nsec: 0,
};
/// How long requests get to say that the sandbox ended, and init to hear why.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves until the container ends; gives the status to end with.
pub(super) fn main(init: OwnedFd) -> i32 {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(THREADS)
        .thread_keep_alive(Duration::MAX)
        .build()
    else {
        return 1;
    };
    let served = protect_ourselves().map_err(io::Error::from).and_then(|()| {
        runtime.block_on(async {
            start_threads().await;
            serve(init).await
        })
    });
    match served {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("the agent ends: {error}");
            1
        }
    }
}

/// Drops all but looking into closed directories, which counting needs, and is nobody's to look into.
fn protect_ourselves() -> rustix::io::Result<()> {
    let look = CapabilitySet::DAC_READ_SEARCH;
    set_capabilities(
        None,
        CapabilitySets {
            effective: look,
            permitted: look,
            inheritable: CapabilitySet::empty(),
        },
    )?;
    set_no_new_privs(true)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
}

/// Starts all threads now: later the sandbox may have taken every process there is.
async fn start_threads() {
    let barrier = Arc::new(Barrier::new(THREADS));
    let waiting = (0..THREADS).map(|_| {
        let barrier = Arc::clone(&barrier);
        tokio::task::spawn_blocking(move || {
            barrier.wait();
        })
    });
    futures::future::join_all(waiting.collect::<Vec<_>>()).await;
}

async fn serve(init: OwnedFd) -> io::Result<()> {
    let output = Output::new(&io::stdout())?;
    let mut input = Input::new(Box::new(tokio::io::stdin()));
    let terms = loop {
        let frame = input.next().await?;
        if frame.kind == Kind::Hello
            && let Some(terms) = serde_json::from_slice::<Hello>(&frame.payload)?.terms
        {
            break terms;
        }
    };
    let sandbox = match start(init, &terms) {
        Ok(sandbox) => sandbox,
        Err(error) => {
            output.write(&frame(Kind::NotMade, 0, error.to_string().as_bytes()));
            return Err(error);
        }
    };
    let servers = UnixListener::bind(bridge::socket())?;
    std::fs::set_permissions(bridge::socket(), Permissions::from_mode(0o600))?;
    let agent = Arc::new(Agent {
        sandbox: Arc::new(sandbox),
        output,
        requests: Mutex::default(),
    });
    if !agent.sandbox.usage.is_idle() {
        let watched = Arc::downgrade(&agent.sandbox);
        tokio::spawn(guard::watch(watched, terms.guard_period));
    }
    agent.output.write(&frame(Kind::Hello, 0, &VERSION));
    loop {
        tokio::select! {
            received = input.next() => {
                if let Ok(frame) = received {
                    agent.handle(frame);
                } else {
                    // The server is gone, or says what nobody understands. Another one may come.
                    agent.hang_up();
                    input = Input::new(Box::new(Nobody));
                }
            }
            server = servers.accept() => {
                let (server, _) = server?;
                agent.hang_up();
                agent.output.lead_to(&server)?;
                input = Input::new(Box::new(server));
            }
            () = agent.sandbox.gone() => break,
        }
    }
    agent.finish().await;
    Ok(())
}

/// Has init get ready.
fn start(socket: OwnedFd, terms: &Terms) -> io::Result<Sandbox> {
    let contained = Contained {
        uid: terms.uid,
        gid: terms.gid,
        limits: Limits {
            open_files: terms.open_files,
            file_bytes: Some(terms.quota_bytes).filter(|bytes| *bytes > 0),
            ..Limits::default()
        },
    };
    set_socket_timeout(&socket, Timeout::Recv, Some(READY_PATIENCE))?;
    send(socket.as_fd(), &contained, &[], SendFlags::empty())?;
    match receive::<Reply>(socket.as_fd(), RecvFlags::empty())? {
        Some((Reply::Ready, _)) => {}
        Some((Reply::Failed(fault), _)) => return Err(io::Error::other(fault)),
        _ => return Err(io::Error::other("init ended before it was ready")),
    }
    let usage = UsageWatch::new(
        terms.counted.clone(),
        terms.quota_bytes,
        terms.min_free_bytes,
        Arc::default(),
    );
    usage.recount();
    let started = Started {
        socket,
        pidfd: None,
    };
    Sandbox::new(started, own_groups(), Directories::default(), usage)
}

/// The container's own control groups, as it sees them.
fn own_groups() -> Group {
    let mut group = Group::default();
    let root = PathBuf::from("/sys/fs/cgroup");
    if root.join("cgroup.controllers").exists() {
        group.add(root, Version::Two);
    } else {
        for controller in ["memory", "pids"] {
            group.add(root.join(controller), Version::One);
        }
    }
    group
}

/// The agent, once the sandbox is there.
struct Agent {
    sandbox: Arc<Sandbox>,
    output: Output,
    requests: Mutex<HashMap<u32, Request>>,
}

/// A request that is being worked on.
struct Request {
    task: AbortHandle,
    /// Where the content of a file to write goes.
    content: Option<mpsc::Sender<Bytes>>,
}

impl Agent {
    fn handle(self: &Arc<Self>, received: Frame) {
        let Frame { kind, id, payload } = received;
        match kind {
            Kind::Hello => self.output.write(&frame(Kind::Hello, 0, &VERSION)),
            Kind::Ask => self.begin(id, &payload),
            Kind::Content => {
                let requests = self.requests();
                // There is room, since the server waits for our word.
                if let Some(content) = requests
                    .get(&id)
                    .and_then(|request| request.content.as_ref())
                    && content.try_send(payload).is_err()
                    && let Some(request) = requests.get(&id)
                {
                    request.task.abort();
                }
            }
            Kind::Cancel => {
                if let Some(request) = self.requests().remove(&id) {
                    request.task.abort();
                }
            }
            Kind::Accepted | Kind::Output | Kind::Taken | Kind::Done | Kind::NotMade => {}
        }
    }

    /// Nobody waits any more for what was asked for.
    fn hang_up(&self) {
        for (_, request) in self.requests().drain() {
            request.task.abort();
        }
    }

    fn begin(self: &Arc<Self>, id: u32, payload: &[u8]) {
        // Versions are compared before, so this is no request of ours.
        let Ok(ask) = serde_json::from_slice::<Ask>(payload) else {
            return;
        };
        self.output.write(&frame(Kind::Accepted, id, &[]));
        let (sender, receiver) = mpsc::channel(PIECES_UNDER_WAY + 1);
        let wants_content = matches!(
            ask,
            Ask::File(FileOperation::Write { .. }) | Ask::Bring { .. }
        );
        let agent = Arc::clone(self);
        // Held until it is in the list, so that its end finds it there.
        let mut requests = self.requests();
        let task = tokio::spawn(async move {
            let answer = agent.answer(id, ask, receiver).await;
            agent.requests().remove(&id);
            agent.output.value(Kind::Done, id, &answer);
        });
        requests.insert(
            id,
            Request {
                task: task.abort_handle(),
                content: wants_content.then_some(sender),
            },
        );
    }

    async fn answer(&self, id: u32, ask: Ask, content: mpsc::Receiver<Bytes>) -> Answer {
        match ask {
            Ask::Run {
                script,
                environment,
                limit,
            } => {
                let command = Command {
                    script,
                    environment,
                    timeout: limit,
                };
                let mut output = |bytes: &[u8]| self.output.write(&frame(Kind::Output, id, bytes));
                match run::run(&self.sandbox, &command, limit, &mut output).await {
                    Ok(end) => Answer::Ran(end),
                    Err(error) => Answer::Failed(failure(error)),
                }
            }
            Ask::File(operation) => {
                let mut content = Incoming {
                    agent: self,
                    id,
                    left: match operation {
                        FileOperation::Write { bytes, .. } => bytes,
                        _ => 0,
                    },
                    pieces: content,
                    piece: Bytes::new(),
                };
                let writes = matches!(operation, FileOperation::Write { .. });
                let content: Option<&mut (dyn AsyncRead + Send + Unpin)> =
                    if writes { Some(&mut content) } else { None };
                match file_work::work(&self.sandbox, &operation, content).await {
                    Ok(done) => {
                        for piece in done.content.chunks(PIECE_BYTES) {
                            self.output.write(&frame(Kind::Output, id, piece));
                        }
                        Answer::File(done.answer)
                    }
                    Err(error) => Answer::Failed(failure(error)),
                }
            }
            Ask::Survey(place) => {
                match blocking(move || Root::open(place.path())?.survey()).await {
                    Ok(survey) => Answer::Survey(survey),
                    Err(error) => failed(&error),
                }
            }
            Ask::Arrange {
                place,
                gone,
                directories,
            } => {
                let arranged = blocking(move || {
                    let root = Root::open(place.path())?;
                    root.delete(&gone)?;
                    directories
                        .iter()
                        .try_for_each(|path| root.make_directory(path))
                });
                match arranged.await {
                    Ok(()) => Answer::Arranged,
                    Err(error) => failed(&error),
                }
            }
            Ask::Bring {
                place,
                path,
                bytes,
                modified,
            } => {
                let taken = self.take(id, place, &path, bytes, modified, content);
                match taken.await {
                    Ok(()) => Answer::Brought,
                    Err(error) => failed(&error),
                }
            }
            Ask::Fetch {
                place,
                path,
                offset,
                limit,
            } => {
                match blocking(move || Root::open(place.path())?.fetch(&path, offset, limit)).await
                {
                    Ok((bytes, length)) => {
                        for piece in bytes.chunks(PIECE_BYTES) {
                            self.output.write(&frame(Kind::Output, id, piece));
                        }
                        Answer::Fetched(length)
                    }
                    Err(error) => failed(&error),
                }
            }
            Ask::OverQuota => Answer::OverQuota(self.sandbox.usage.over_quota_now().await),
            Ask::Background => Answer::Background(self.sandbox.has_background() == Some(true)),
        }
    }

    /// Takes a file into a place that the sandbox only reads.
    async fn take(
        &self,
        id: u32,
        place: Place,
        path: &str,
        bytes: u64,
        modified: i64,
        mut pieces: mpsc::Receiver<Bytes>,
    ) -> io::Result<()> {
        let mut file = Root::open(place.path())?.create(path)?;
        let mut left = bytes;
        while left > 0 {
            let piece = pieces.recv().await.ok_or(io::ErrorKind::UnexpectedEof)?;
            self.output.write(&frame(Kind::Taken, id, &[]));
            left = left.saturating_sub(piece.len() as u64);
            file.write(&piece)?;
        }
        file.finish(modified)
    }

    /// Lets requests say that the sandbox ended, and has the container end with a status that says why.
    async fn finish(&self) {
        let all_done = async {
            while !self.requests().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let _ = tokio::time::timeout(LAST_WORDS, all_done).await;
        if let Some(restart) = self.sandbox.take_owed() {
            let status = status_of(restart);
            let end = InitRequest::EndWith { status };
            // If init is gone, the container ends with another status.
            let _ = tokio::time::timeout(LAST_WORDS, self.sandbox.send(&end, &[])).await;
        }
        self.sandbox.stop().await;
    }

    fn requests(&self) -> MutexGuard<'_, HashMap<u32, Request>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)?
}

fn failed(error: &io::Error) -> Answer {
    Answer::Failed(Failure::Other(error.to_string()))
}

fn failure(error: RunError) -> Failure {
    match error {
        RunError::NoProcessLeft => Failure::NoProcessLeft,
        RunError::NotBegun => Failure::NotBegun,
        RunError::Ended => Failure::Ended,
        RunError::Failed(SandboxError::File(error)) => Failure::File(error),
        RunError::Failed(error) => Failure::Other(error.to_string()),
        RunError::Io(error) => Failure::Other(error.to_string()),
    }
}

/// What comes from the server, as frames.
struct Input {
    stream: Box<dyn AsyncRead + Send + Unpin>,
    decoder: Decoder,
    buffer: Vec<u8>,
}

impl Input {
    fn new(stream: Box<dyn AsyncRead + Send + Unpin>) -> Self {
        Self {
            stream,
            decoder: Decoder::new(MOST_ASKED_BYTES),
            buffer: vec![0; PIECE_BYTES],
        }
    }

    /// May be dropped while it waits: nothing that was read is lost.
    async fn next(&mut self) -> io::Result<Frame> {
        loop {
            if let Some(frame) = self.decoder.next()? {
                return Ok(frame);
            }
            match self.stream.read(&mut self.buffer).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.decoder.push(&self.buffer[..count]),
            }
        }
    }
}

/// What comes while there is no server.
struct Nobody;

impl AsyncRead for Nobody {
    fn poll_read(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        _buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

/// What goes to the server. Writing waits until the engine takes it, and with us waits whatever writes: that is how a flood is held back.
struct Output(Mutex<OwnedFd>);

impl Output {
    fn new(stream: &impl AsFd) -> io::Result<Self> {
        let stream = stream.as_fd().try_clone_to_owned()?;
        rustix::io::ioctl_fionbio(&stream, true)?;
        Ok(Self(Mutex::new(stream)))
    }

    /// From now on it goes there.
    fn lead_to(&self, stream: &impl AsFd) -> io::Result<()> {
        *self.stream() = stream.as_fd().try_clone_to_owned()?;
        Ok(())
    }

    fn write(&self, mut bytes: &[u8]) {
        let mut stream = self.stream();
        while !bytes.is_empty() {
            match rustix::io::write(&*stream, bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let mut room = [PollFd::new(&*stream, PollFlags::OUT)];
                    if !matches!(poll(&mut room, Some(&READER_PATIENCE)), Ok(0)) {
                        continue;
                    }
                    // Whoever does not read so long is not there, and time limits have to be kept.
                    if let Ok(nowhere) = File::options().write(true).open("/dev/null") {
                        *stream = nowhere.into();
                    }
                }
                // If nobody reads, nobody is to be told.
                Err(_) => return,
            }
        }
    }

    fn value(&self, kind: Kind, id: u32, value: &impl Serialize) {
        match value_frame(kind, id, value) {
            Ok(frame) => self.write(&frame),
            Err(error) => eprintln!("cannot say what was found: {error}"),
        }
    }

    fn stream(&self) -> MutexGuard<'_, OwnedFd> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The content of a file to write, as the server sends it.
struct Incoming<'agent> {
    agent: &'agent Agent,
    id: u32,
    left: u64,
    pieces: mpsc::Receiver<Bytes>,
    piece: Bytes,
}

impl AsyncRead for Incoming<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.piece.is_empty() && self.left > 0 {
            let Some(piece) = ready!(self.pieces.poll_recv(context)) else {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            };
            self.agent.output.write(&frame(Kind::Taken, self.id, &[]));
            self.left = self.left.saturating_sub(piece.len() as u64);
            self.piece = piece;
        }
        let count = self.piece.len().min(buffer.remaining());
        buffer.put_slice(&self.piece[..count]);
        self.piece.advance(count);
        Poll::Ready(Ok(()))
    }
}
