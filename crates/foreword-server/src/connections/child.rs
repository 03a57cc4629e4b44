//! Starts the program of a connection, and keeps what it writes to standard error.

use std::{
    collections::VecDeque,
    ffi::OsString,
    io,
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use foreword_compose::one_line;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::{Instant, timeout},
};

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

/// How long a program is waited for after its connection was closed; the supervisor ends it within that time.
const TO_END: Duration = Duration::from_secs(5);

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

/// The longest line that is logged, in bytes.
const MAX_LINE: usize = 1024;
/// How many lines are logged within [`WINDOW`]; the others are counted.
const MAX_LINES: usize = 100;
/// The time that [`MAX_LINES`] counts for.
const WINDOW: Duration = Duration::from_secs(10);
/// How many of the last lines are kept for those who ask why a program ended.
const KEPT_LINES: usize = 20;

/// What a program writes to standard error.
#[derive(Clone, Default)]
struct Stderr(Arc<StderrState>);

#[derive(Default)]
struct StderrState {
    last: Mutex<VecDeque<String>>,
    closed: tokio_util::sync::CancellationToken,
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
            let line = secrets.hidden_in(line);
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

/// The next line, cut to its limit and without what could move a terminal's cursor; none at the end.
async fn next_line(lines: &mut (impl AsyncBufReadExt + Unpin)) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let limit = u64::try_from(MAX_LINE).expect("it is small");
    if lines.take(limit).read_until(b'\n', &mut line).await? == 0 {
        return Ok(None);
    }
    if line.len() == MAX_LINE && !line.ends_with(b"\n") {
        skip_line(lines).await?;
        line.extend_from_slice("…".as_bytes());
    }
    Ok(Some(one_line(&String::from_utf8_lossy(&line), MAX_LINE)))
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
