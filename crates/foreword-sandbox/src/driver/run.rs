//! Runs one command in a running sandbox.
//!
//! A command ends when its own process ends, not when its output does: a background process may hold the pipe for ever. What the
//! command wrote before is in the pipe by then and is delivered; the pipe then goes to init, which drops what still comes, so that the
//! background process is not ended by a closed pipe.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
    time::Duration,
};

use rustix::{
    fs::{MemfdFlags, Mode, OFlags, fchmod, fcntl_getfl, fcntl_setfl, memfd_create},
    pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with},
};
use tokio::{
    net::unix::pipe::Receiver,
    time::{Instant, sleep_until, timeout},
};

use super::{
    protocol::Request,
    sandbox::{Answer, Expected, Sandbox},
    usage::UsageWatch,
};
use crate::{
    command::{BackgroundOutput, Command, CommandEnd, Ending, Output},
    pool::Life,
    pooled::RunError,
    spec::HOME,
    state::Usage,
};

/// The longest that one argument of a program may be, with some room.
const MOST_ARGUMENT_BYTES: usize = 120_000;
const PIPE_BYTES: usize = 256 << 10;
const CHUNK_BYTES: usize = 64 << 10;
/// How long the last words of what a command leaves behind are waited for, such as of `> >(tee log)`.
const LAST_WORDS: Duration = Duration::from_millis(25);
/// How long killing a command may take before the whole sandbox is ended.
const KILL_PATIENCE: Duration = Duration::from_secs(6);

/// Runs `command`, for at most `limit`.
pub(crate) async fn run(
    sandbox: &Arc<Sandbox>,
    command: &Command,
    limit: Duration,
    output: &mut dyn Output,
) -> Result<CommandEnd, RunError> {
    let started = Instant::now();
    let _running = sandbox.work.begin().ok_or(RunError::NotBegun)?;
    let memory_kills = sandbox.memory_kills();
    let refusals = sandbox.process_refusals();
    let (reading, writing) = make_pipe()?;
    let script = Script::new(&command.script)?;
    let mut job = Job::new(sandbox);
    let request = Request::Run {
        id: job.expected.id,
        sourced: script.sourced,
        environment: environment(command),
    };
    job.started = true;
    sandbox
        .send(&request, &[writing.as_fd(), script.file.as_fd()])
        .await
        .map_err(RunError::not_sent)?;
    drop((writing, script));
    let mut pipe = Pipe {
        reading: Some(reading),
        buffer: vec![0; CHUNK_BYTES],
    };
    let (answer, mut why) = job
        .supervise(&mut pipe, output, started + limit, limit)
        .await;
    job.started = false;
    let status = match answer {
        Some(Answer::Ended(status)) => Some(status),
        Some(Answer::NotStarted) => return Err(RunError::NoProcessLeft),
        // What it started is out of reach, so all has to go.
        Some(Answer::Stuck) | None if why.is_some() => None,
        Some(Answer::Stuck) | None => {
            pipe.take_rest(output);
            why = (sandbox.memory_kills() > memory_kills).then_some(Ending::MemoryLimit);
            if why.is_none() {
                return Err(RunError::Ended);
            }
            None
        }
    };
    let background_output = pipe.finish(output, sandbox, status.is_some()).await;
    let ending = match (why, status) {
        (Some(why), _) => why,
        (None, Some(status)) => ending(status),
        (None, None) => Ending::MemoryLimit,
    };
    if status.is_none() {
        sandbox.stop().await;
    }
    let over_quota = over_quota_after(ending, &sandbox.usage).await;
    Ok(CommandEnd {
        ending,
        memory_limit_hit: sandbox.memory_killed(memory_kills),
        process_limit_hit: sandbox.process_refusals() > refusals,
        background_output,
        over_quota,
        restarted: None,
        duration: started.elapsed(),
    })
}

/// What is to be said of the quota at a command's end.
async fn over_quota_after(ending: Ending, usage: &Arc<UsageWatch>) -> Option<Usage> {
    let over = if matches!(ending, Ending::Quota(_)) {
        None
    } else {
        usage.over_quota_now().await
    };
    if over.is_none() {
        usage.recount();
    }
    over
}

/// A command that runs. Dropped before its end, it is killed.
struct Job<'sandbox> {
    sandbox: &'sandbox Arc<Sandbox>,
    expected: Expected,
    started: bool,
}

impl<'sandbox> Job<'sandbox> {
    fn new(sandbox: &'sandbox Arc<Sandbox>) -> Self {
        Self {
            sandbox,
            expected: sandbox.expect_answer(),
            started: false,
        }
    }

    /// Delivers output until the command ends, or has to end. No answer means that the sandbox ended, or did not answer.
    async fn supervise(
        &mut self,
        pipe: &mut Pipe,
        output: &mut dyn Output,
        deadline: Instant,
        limit: Duration,
    ) -> (Option<Answer>, Option<Ending>) {
        let too_much = Arc::clone(&self.sandbox.usage).wait_for_too_much();
        tokio::pin!(too_much);
        let mut why = None;
        let mut until = deadline;
        loop {
            tokio::select! {
                answer = &mut self.expected.answer => return (answer.ok(), why),
                () = pipe.deliver(output) => {}
                ending = &mut too_much, if why.is_none() => {
                    why = Some(ending);
                    until = self.kill().await;
                }
                () = sleep_until(until) => {
                    if why.is_some() {
                        return (None, why);
                    }
                    why = Some(Ending::TimedOut { after: limit });
                    until = self.kill().await;
                }
            }
        }
    }

    /// Has init kill it, and says until when that has to be done.
    async fn kill(&self) -> Instant {
        // If init is gone, the answer says so.
        let kill = Request::Kill {
            id: self.expected.id,
        };
        let _ = timeout(KILL_PATIENCE, self.sandbox.send(&kill, &[])).await;
        Instant::now() + KILL_PATIENCE
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        if self.started {
            self.sandbox.send_later(
                Request::Kill {
                    id: self.expected.id,
                },
                None,
            );
        }
    }
}

/// The reading end of a command's output.
struct Pipe {
    /// `None` once nobody can write any more.
    reading: Option<Receiver>,
    buffer: Vec<u8>,
}

impl Pipe {
    /// Waits for output, and delivers a piece of it. Waits for ever once there can be none.
    async fn deliver(&mut self, output: &mut dyn Output) {
        let Some(reading) = &self.reading else {
            return std::future::pending().await;
        };
        if reading.readable().await.is_err() {
            self.reading = None;
            return;
        }
        self.take(output);
        // A flood is always readable; others get their turn.
        tokio::task::consume_budget().await;
    }

    /// Delivers what is there; says how much.
    fn take(&mut self, output: &mut dyn Output) -> usize {
        let Some(reading) = &self.reading else {
            return 0;
        };
        match reading.try_read(&mut self.buffer) {
            Ok(count @ 1..) => {
                output.chunk(&self.buffer[..count]);
                count
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Ok(0) | Err(_) => {
                self.reading = None;
                0
            }
        }
    }

    /// Delivers what had been written by now, and not what is written meanwhile.
    fn take_rest(&mut self, output: &mut dyn Output) {
        // A command may have made it larger.
        let size = self
            .reading
            .as_ref()
            .and_then(|reading| fcntl_getpipe_size(reading).ok());
        let most = size.unwrap_or(0).max(PIPE_BYTES);
        let mut taken = 0;
        while taken < most {
            match self.take(output) {
                0 => return,
                count => taken += count,
            }
        }
    }

    /// Delivers the rest, and leaves the pipe to init if somebody still holds it.
    async fn finish(
        &mut self,
        output: &mut dyn Output,
        sandbox: &Sandbox,
        is_alive: bool,
    ) -> BackgroundOutput {
        self.take_rest(output);
        let last_words = async {
            while self.reading.is_some() {
                self.deliver(output).await;
            }
        };
        let _ = timeout(LAST_WORDS, last_words).await;
        let Some(reading) = self.reading.take().filter(|_| is_alive) else {
            return BackgroundOutput::None;
        };
        if let Ok(reading) = reading.into_nonblocking_fd() {
            sandbox.send_later(Request::Drain, Some(reading));
        }
        BackgroundOutput::Dropped
    }
}

fn make_pipe() -> io::Result<(Receiver, OwnedFd)> {
    let (reading, writing) = pipe_with(PipeFlags::CLOEXEC)?;
    // So that the sandbox's user can open `/dev/stdout` and `/dev/stderr`; nobody else finds them.
    fchmod(&writing, Mode::from_raw_mode(0o666))?;
    // A user who has many pipes may be refused; the smaller one does too.
    let _ = fcntl_setpipe_size(&reading, PIPE_BYTES);
    fcntl_setfl(&reading, fcntl_getfl(&reading)? | OFlags::NONBLOCK)?;
    Ok((Receiver::from_owned_fd(reading)?, writing))
}

/// A command as bash gets it: through memory, since a datagram and an argument are too small for the longest.
struct Script {
    file: File,
    /// Too long for an argument, so bash reads it from its descriptor.
    sourced: bool,
}

impl Script {
    fn new(script: &str) -> io::Result<Self> {
        let sourced = script.len() > MOST_ARGUMENT_BYTES;
        let mut file = File::from(memfd_create("command", MemfdFlags::CLOEXEC)?);
        if sourced {
            file.write_all(b"exec 3<&-; ")?;
        }
        file.write_all(script.as_bytes())?;
        Ok(Self { file, sourced })
    }
}

/// What every command finds in its environment, and what the caller adds.
fn environment(command: &Command) -> Vec<(String, String)> {
    let own = [
        ("HOME", HOME),
        ("USER", "assistant"),
        ("LOGNAME", "assistant"),
        ("SHELL", "/bin/bash"),
        (
            "PATH",
            "/home/assistant/.local/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
        ),
        ("LANG", "C.UTF-8"),
        ("TMPDIR", "/tmp"),
    ];
    let overridden = |name: &str| command.environment.iter().any(|(other, _)| other == name);
    let own = own.into_iter().filter(|(name, _)| !overridden(name));
    own.map(|(name, value)| (name.to_owned(), value.to_owned()))
        .chain(command.environment.iter().cloned())
        .collect()
}

fn ending(status: i32) -> Ending {
    // As in `waitpid(2)`: the low seven bits are the signal, the next eight the status.
    match status & 0x7f {
        0 => Ending::Exited(status.to_be_bytes()[2]),
        signal => Ending::Killed { signal },
    }
}
