//! The server's end of the stream to our program in a container: many requests at a time over one connection.
//!
//! What a request gets waits in a bounded queue; whoever asked has to take it, or has to drop the request, which cancels it.

use std::{
    collections::HashMap,
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use bollard::container::LogOutput;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use serde::Serialize;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::{Semaphore, mpsc, oneshot},
    task::AbortHandle,
};

use super::frames::{
    Answer, Decoder, Frame, Hello, Kind, MOST_ANSWERED_BYTES, PIECES_UNDER_WAY, Terms, VERSION,
    frame, value_frame,
};

/// How many frames may wait for the engine to take them.
const OUTGOING: usize = 16;
/// How many frames may wait for whoever asked: that the request arrived, and one more.
const INCOMING: usize = 2;

/// What leads to a container and from it.
pub(super) struct ContainerStream {
    pub(super) output:
        Pin<Box<dyn Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>,
    pub(super) input: Pin<Box<dyn AsyncWrite + Send>>,
}

/// A connection. Dropped, it is cut; the container goes on.
pub(super) struct Link {
    shared: Arc<Shared>,
    outgoing: mpsc::Sender<Bytes>,
    tasks: [AbortHandle; 2],
    next_id: AtomicU32,
}

struct Shared {
    waiting: Mutex<HashMap<u32, Waiting>>,
    dead: AtomicBool,
}

/// Whoever waits for what comes for a request. Only output has to be waited for by whoever reads the stream: all waits that a request
/// makes while it does not take any would else be waits for each other.
#[derive(Clone)]
struct Waiting {
    events: mpsc::Sender<Event>,
    /// How many more pieces of content may be sent.
    room: Arc<Semaphore>,
}

/// What comes for a request.
#[derive(Debug)]
pub(super) enum Event {
    Accepted,
    Output(Bytes),
    Done(Answer),
}

/// A request that is under way.
pub(super) struct Exchange<'link> {
    pub(super) id: u32,
    events: mpsc::Receiver<Event>,
    /// A permit for each piece of content that may be sent.
    pub(super) room: Arc<Semaphore>,
    link: &'link Link,
    is_done: bool,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum GreetError {
    #[error("it could not be made into a sandbox: {0}")]
    NotMade(String),
    #[error("it ended before it was ready{}", if .0.is_empty() { String::new() } else { format!(": {}", .0) })]
    Ended(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Link {
    /// Takes a stream to a container and greets whoever is there: with `terms` one that was just started, without one that has served
    /// before. Dropping the future cuts the connection.
    pub(super) async fn greet(
        stream: ContainerStream,
        terms: Option<Terms>,
        start: impl Future<Output = io::Result<()>>,
    ) -> Result<Self, GreetError> {
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            dead: AtomicBool::new(false),
        });
        let (outgoing, frames) = mpsc::channel(OUTGOING);
        let (echoed, echo) = oneshot::channel();
        let reader = Reader {
            output: stream.output,
            decoder: Decoder::new(MOST_ANSWERED_BYTES),
            shared: Arc::clone(&shared),
            echoed: Some(echoed),
            said: String::new(),
        };
        let link = Self {
            shared: Arc::clone(&shared),
            outgoing,
            tasks: [
                tokio::spawn(reader.read()).abort_handle(),
                tokio::spawn(write(frames, stream.input)).abort_handle(),
            ],
            next_id: AtomicU32::new(1),
        };
        start.await?;
        link.send(value_frame(Kind::Hello, 0, &Hello { terms })?)
            .await?;
        match echo.await {
            Ok(Ok(())) => Ok(link),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(GreetError::Ended(String::new())),
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        !self.shared.dead.load(Ordering::SeqCst)
    }

    /// Asks for something.
    pub(super) async fn ask(&self, ask: &impl Serialize) -> io::Result<Exchange<'_>> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, events) = mpsc::channel(INCOMING);
        let room = Arc::new(Semaphore::new(PIECES_UNDER_WAY));
        {
            let mut waiting = self.shared.waiting();
            if !self.is_alive() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let waiter = Waiting {
                events: sender,
                room: Arc::clone(&room),
            };
            waiting.insert(id, waiter);
        }
        let exchange = Exchange {
            id,
            events,
            room,
            link: self,
            is_done: false,
        };
        self.send(value_frame(Kind::Ask, id, ask)?).await?;
        Ok(exchange)
    }

    pub(super) async fn send(&self, frame: Bytes) -> io::Result<()> {
        self.outgoing
            .send(frame)
            .await
            .map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Cuts the connection: whoever waits is told that it ended.
    pub(super) fn cut(&self) {
        for task in &self.tasks {
            task.abort();
        }
        self.shared.end();
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.cut();
    }
}

impl Exchange<'_> {
    /// What comes next; nothing if the connection ended.
    pub(super) async fn next(&mut self) -> Option<Event> {
        let event = self.events.recv().await;
        self.is_done |= matches!(event, None | Some(Event::Done(_)));
        event
    }
}

impl Drop for Exchange<'_> {
    fn drop(&mut self) {
        self.link.shared.waiting().remove(&self.id);
        if !self.is_done && self.link.is_alive() {
            let (outgoing, cancel) = (
                self.link.outgoing.clone(),
                frame(Kind::Cancel, self.id, &[]),
            );
            // If there is no room, somebody has to wait for it.
            if let Err(mpsc::error::TrySendError::Full(cancel)) = outgoing.try_send(cancel) {
                tokio::spawn(async move { outgoing.send(cancel).await });
            }
        }
    }
}

impl Shared {
    fn end(&self) {
        let mut waiting = self.waiting();
        self.dead.store(true, Ordering::SeqCst);
        waiting.clear();
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u32, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn write(mut frames: mpsc::Receiver<Bytes>, mut input: Pin<Box<dyn AsyncWrite + Send>>) {
    while let Some(frame) = frames.recv().await {
        let written = async {
            input.write_all(&frame).await?;
            input.flush().await
        };
        if written.await.is_err() {
            return;
        }
    }
}

struct Reader {
    output: Pin<Box<dyn Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>,
    decoder: Decoder,
    shared: Arc<Shared>,
    /// Told once the greeting was echoed, or what was said instead.
    echoed: Option<oneshot::Sender<Result<(), GreetError>>>,
    /// What came on standard error before that.
    said: String,
}

/// The most that is kept of what a program says instead of a greeting.
const MOST_SAID_BYTES: usize = 1000;

impl Reader {
    async fn read(mut self) {
        while let Some(Ok(output)) = self.output.next().await {
            let read = match output {
                LogOutput::StdOut { message } => self.take(&message).await,
                LogOutput::StdErr { message } => {
                    self.note(&String::from_utf8_lossy(&message));
                    Ok(())
                }
                LogOutput::StdIn { .. } | LogOutput::Console { .. } => Ok(()),
            };
            if let Err(error) = read {
                tracing::warn!(%error, "A container said what is no message, so it is let go of");
                break;
            }
        }
        self.shared.end();
        self.greeted(Err(GreetError::Ended(self.said.trim().to_owned())));
    }

    /// Only the first has to be known.
    fn greeted(&mut self, result: Result<(), GreetError>) {
        if let Some(echoed) = self.echoed.take() {
            let _ = echoed.send(result);
        }
    }

    fn note(&mut self, said: &str) {
        tracing::debug!("A container says: {}", said.trim_end());
        if self.echoed.is_some() && self.said.len() < MOST_SAID_BYTES {
            self.said.push_str(said);
        }
    }

    async fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.decoder.push(bytes);
        while let Some(Frame { kind, id, payload }) = self.decoder.next()? {
            let waiting = || self.shared.waiting().get(&id).cloned();
            let event = match kind {
                Kind::Hello => {
                    self.greeted(if payload == VERSION[..] {
                        Ok(())
                    } else {
                        Err(GreetError::Ended("it is of another version".to_owned()))
                    });
                    continue;
                }
                Kind::NotMade => {
                    let why = String::from_utf8_lossy(&payload).into_owned();
                    self.greeted(Err(GreetError::NotMade(why)));
                    continue;
                }
                Kind::Accepted => {
                    if let Some(waiting) = waiting() {
                        // It is the first, so there is room.
                        let _ = waiting.events.try_send(Event::Accepted);
                    }
                    continue;
                }
                Kind::Taken => {
                    if let Some(waiting) = waiting() {
                        // No more than was sent can have been taken.
                        if waiting.room.available_permits() < PIECES_UNDER_WAY {
                            waiting.room.add_permits(1);
                        }
                    }
                    continue;
                }
                Kind::Output => Event::Output(payload),
                Kind::Done => Event::Done(serde_json::from_slice(&payload)?),
                Kind::Ask | Kind::Content | Kind::Cancel => continue,
            };
            if let Some(waiting) = waiting() {
                // Nobody may wait any more.
                let _ = waiting.events.send(event).await;
            }
        }
        Ok(())
    }
}
