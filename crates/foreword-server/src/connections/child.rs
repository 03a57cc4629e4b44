//! Starts the program of a connection, and keeps what it writes to standard error.

use std::{
    collections::VecDeque,
    ffi::OsString,
    io,
    path::PathBuf,
    pin::Pin,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use foreword_compose::one_line;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::{Instant, timeout},
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::{
    config::{Program, Secrets},
    supervisor,
};

/// What programs are started with.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// This server's own program, which then stands between; without one a program's children may outlive it.
    pub supervisor: Option<PathBuf>,
    /// The environment, of which a connection may change and add to.
    pub environment: Vec<(OsString, OsString)>,
}

/// A program that runs.
pub(super) struct Running {
    child: Child,
    stderr: Stderr,
}

/// How long a program is waited for after its connection was closed. The supervisor needs up to eight seconds: two for the program to
/// end by itself, one after it was asked to, and five for everything to be gone.
const TO_END: Duration = Duration::from_secs(10);

impl Running {
    /// Starts `program` for the connection `name`.
    pub(super) fn start(
        name: &str,
        program: &Program,
        secrets: &Arc<Secrets>,
        launch: &Launch,
    ) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        let mut command = match &launch.supervisor {
            Some(supervisor) => {
                let mut command = Command::new(supervisor);
                command
                    .args([supervisor::COMMAND, "--"])
                    .arg(&program.command);
                command
            }
            None => Command::new(&program.command),
        };
        command
            .args(&program.args)
            .env_clear()
            .envs(launch.environment.iter().cloned())
            .envs(
                program
                    .env
                    .iter()
                    .map(|(name, value)| (name, value.expose())),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(directory) = &program.cwd {
            command.current_dir(directory);
        }
        let mut child = command.spawn()?;
        let stdin = child.stdin.take().expect("it was asked for");
        let stdout = child.stdout.take().expect("it was asked for");
        let stderr = Stderr::default();
        let written = child.stderr.take().expect("it was asked for");
        let following = stderr
            .clone()
            .follow(name.to_owned(), Arc::clone(secrets), written);
        tokio::spawn(following);
        Ok((Self { child, stderr }, stdin, stdout))
    }

    /// Waits until the program has ended, and says how, with the last of what it wrote.
    pub(super) async fn ended(&mut self) -> String {
        let how = match self.child.wait().await {
            Ok(status) => match status.code() {
                Some(code) => format!("its program ended with {code}"),
                None => "its program was killed".to_owned(),
            },
            Err(error) => format!("its program cannot be waited for: {error}"),
        };
        // What it wrote last may still be on its way.
        let _ = timeout(Duration::from_millis(200), self.stderr.closed()).await;
        match self.stderr.last() {
            Some(line) => format!("{how}; it wrote: {line}"),
            None => how,
        }
    }

    /// Waits for the end that closing its standard input brings about.
    pub(super) async fn finish(mut self) {
        if timeout(TO_END, self.child.wait()).await.is_err() {
            let _ = self.child.start_kill();
            let _ = self.child.wait().await;
        }
    }
}

/// The longest line that is logged, in characters.
const MAX_LINE: usize = 1024;
/// How much of a line is read, in bytes; more, so that no secret is cut before it is hidden.
const MAX_READ: usize = 4 * MAX_LINE;
/// How many lines are logged within [`WINDOW`]; the others are counted.
const MAX_LINES: usize = 100;
/// The time that [`MAX_LINES`] counts for.
const WINDOW: Duration = Duration::from_secs(10);
/// How many of the last lines are kept for those who ask why a program ended.
const KEPT_LINES: usize = 20;

/// The standard input of a program, which lets go of who writes to it: one that does not read would be waited for without end.
pub(super) struct Severable {
    stdin: ChildStdin,
    severed: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Severable {
    /// Fails once `end` is cancelled.
    pub(super) fn new(stdin: ChildStdin, end: &CancellationToken) -> Self {
        Self {
            stdin,
            severed: Box::pin(end.clone().cancelled_owned()),
        }
    }

    fn unless_severed<T>(
        &mut self,
        context: &mut Context<'_>,
        work: impl FnOnce(Pin<&mut ChildStdin>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if self.severed.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        work(Pin::new(&mut self.stdin), context)
    }
}

impl AsyncWrite for Severable {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.unless_severed(context, |stdin, context| stdin.poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.unless_severed(context, ChildStdin::poll_flush)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.unless_severed(context, ChildStdin::poll_shutdown)
    }
}

/// What a program writes to standard error.
#[derive(Clone, Default)]
struct Stderr(Arc<StderrState>);

#[derive(Default)]
struct StderrState {
    last: Mutex<VecDeque<String>>,
    closed: CancellationToken,
}

impl Stderr {
    /// Logs each line under the connection's name, as far as there is room.
    async fn follow(self, name: String, secrets: Arc<Secrets>, stderr: impl AsyncRead + Unpin) {
        let mut lines = BufReader::new(stderr);
        let (mut since, mut logged, mut left_out) = (Instant::now(), 0, 0_u64);
        while let Ok(Some(line)) = next_line(&mut lines).await {
            if line.is_empty() {
                continue;
            }
            let line = one_line(&secrets.hidden_in(line), MAX_LINE);
            if since.elapsed() >= WINDOW {
                if left_out > 0 {
                    tracing::info!(connection = name, "{left_out} more lines were left out");
                }
                (since, logged, left_out) = (Instant::now(), 0, 0);
            }
            if logged < MAX_LINES {
                logged += 1;
                tracing::info!(connection = name, "{line}");
            } else {
                left_out += 1;
            }
            self.keep(line);
        }
        if left_out > 0 {
            tracing::info!(connection = name, "{left_out} more lines were left out");
        }
        self.0.closed.cancel();
    }

    fn keep(&self, line: String) {
        let mut last = self.0.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() == KEPT_LINES {
            last.pop_front();
        }
        last.push_back(line);
    }

    async fn closed(&self) {
        self.0.closed.cancelled().await;
    }

    /// The line that says most about why it ended: the last one that speaks of an error, else the last one.
    fn last(&self) -> Option<String> {
        let last = self.0.last.lock().unwrap_or_else(PoisonError::into_inner);
        let speaks_of_it = |line: &&String| line.to_ascii_lowercase().contains("error");
        last.iter()
            .rev()
            .find(speaks_of_it)
            .or(last.back())
            .cloned()
    }
}

/// The next line, cut to its limit; none at the end.
async fn next_line(lines: &mut (impl AsyncBufReadExt + Unpin)) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let limit = u64::try_from(MAX_READ).expect("it is small");
    if lines.take(limit).read_until(b'\n', &mut line).await? == 0 {
        return Ok(None);
    }
    if line.len() == MAX_READ && !line.ends_with(b"\n") {
        skip_line(lines).await?;
        line.extend_from_slice("…".as_bytes());
    }
    Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()))
}

/// Reads on to the end of the line and keeps nothing of it.
async fn skip_line(lines: &mut (impl AsyncBufReadExt + Unpin)) -> io::Result<()> {
    loop {
        let read = lines.fill_buf().await?;
        let (used, ended) = match read.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (read.len(), read.is_empty()),
        };
        lines.consume(used);
        if ended {
            return Ok(());
        }
    }
}
