//! A working directory of its own for each test, and the binary in it with nothing else in its environment.

use std::{
    fmt, fs,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

/// How long something may take that happens at once on an idle machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A working directory, and the environment of the commands that run in it.
pub(crate) struct Place {
    directory: tempfile::TempDir,
    environment: Vec<(String, String)>,
    /// A program, with arguments, that starts the binary.
    wrapper: Vec<String>,
}

impl Place {
    pub(crate) fn new() -> Self {
        foreword_server::choose_tls();
        Self {
            directory: tempfile::tempdir().unwrap(),
            environment: Vec::new(),
            wrapper: Vec::new(),
        }
    }

    /// The same with commands that are started by another program.
    pub(crate) fn through(mut self, wrapper: &[&str]) -> Self {
        self.wrapper = wrapper.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// The same with a variable set.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut words = self.wrapper.iter().map(String::as_str);
        let binary = env!("CARGO_BIN_EXE_foreword");
        let mut command = Command::new(words.next().unwrap_or(binary));
        if !self.wrapper.is_empty() {
            command.args(words).arg(binary);
        }
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env_clear()
            .env("HOME", self.path("home"))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        let output = self.command(arguments).output().unwrap();
        self.ran(output.status, &output.stdout, &output.stderr)
    }

    /// Runs a command that reads `input`.
    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &str) -> Ran {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        self.ran(output.status, &output.stdout, &output.stderr)
    }

    /// Starts `serve` on a free port and waits until it listens.
    pub(crate) fn serve(&self, arguments: &[&str]) -> Server {
        let mut all = vec!["serve"];
        if !arguments.contains(&"--listen") {
            all.extend(["--listen", "127.0.0.1:0"]);
        }
        all.extend(arguments);
        self.start(&all)
    }

    /// Starts a command that serves, and waits until it listens.
    pub(crate) fn start(&self, arguments: &[&str]) -> Server {
        let mut child = self
            .command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = Lines::of([
            Box::new(child.stdout.take().unwrap()) as Box<dyn Read + Send>,
            Box::new(child.stderr.take().unwrap()),
        ]);
        let mut server = Server {
            child,
            lines,
            address: String::new(),
            directory: self.directory.path().to_owned(),
        };
        // On all addresses, it is asked on one of them.
        let is_for_all = arguments.iter().any(|word| word.starts_with("0.0.0.0:"));
        let host = if is_for_all { "0.0.0.0" } else { "127.0.0.1" };
        let listening = server.wait_for_line(&format!("http://{host}:"));
        let from = listening.find(host).unwrap();
        let address: String = listening[from..]
            .chars()
            .take_while(|character| character.is_ascii_digit() || ".:".contains(*character))
            .collect();
        server.address = address.trim_end_matches(':').replace(host, "127.0.0.1");
        server
    }

    fn ran(&self, status: ExitStatus, stdout: &[u8], stderr: &[u8]) -> Ran {
        Ran {
            code: status.code(),
            stdout: self.filtered(stdout),
            stderr: self.filtered(stderr),
        }
    }

    /// The text without what differs from run to run.
    fn filtered(&self, text: &[u8]) -> String {
        filtered(&String::from_utf8_lossy(text), self.directory.path())
    }
}

fn filtered(text: &str, directory: &Path) -> String {
    text.replace(directory.to_str().unwrap(), "[DIR]")
}

/// What a command did.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// The answer of a command that succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self}");
        self.stdout
    }

    /// The answer as JSON.
    #[track_caller]
    pub(crate) fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|_| panic!("no JSON: {self}"))
    }
}

impl fmt::Display for Ran {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self
            .code
            .map_or("a signal".to_owned(), |code| code.to_string());
        writeln!(formatter, "exit {code}")?;
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                write!(formatter, "--- {name}\n{text}")?;
                if !text.ends_with('\n') {
                    writeln!(formatter)?;
                }
            }
        }
        Ok(())
    }
}

/// A running server; killed when dropped.
pub(crate) struct Server {
    child: Child,
    lines: Lines,
    address: String,
    directory: PathBuf,
}

impl Server {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The address it really listens on.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// All that it printed until a line that holds `text`, which is the last of them.
    #[track_caller]
    pub(crate) fn wait_for_line(&mut self, text: &str) -> String {
        self.lines.wait_for(text)
    }

    /// What it printed so far, without what differs from run to run.
    pub(crate) fn printed(&mut self) -> String {
        self.lines.take_what_is_there();
        filtered(&self.lines.seen.join("\n"), &self.directory).replace(&self.address, "[ADDRESS]")
    }

    #[cfg(unix)]
    /// The most memory that the server had resident so far, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
        kilobytes.parse::<u64>().unwrap() << 10
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Its process number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(
                started.elapsed() < PATIENCE,
                "it does not end: {}",
                self.printed()
            );
            thread::sleep(Duration::from_millis(5)); // a process gives no event to await without a runtime
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines of some pipes as they come.
struct Lines {
    incoming: Receiver<String>,
    seen: Vec<String>,
}

impl Lines {
    fn of(pipes: impl IntoIterator<Item = Box<dyn Read + Send>>) -> Self {
        let (sender, incoming) = channel();
        for pipe in pipes {
            let sender = sender.clone();
            thread::spawn(move || {
                for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                    let _ = sender.send(line);
                }
            });
        }
        Self {
            incoming,
            seen: Vec::new(),
        }
    }

    #[track_caller]
    fn wait_for(&mut self, text: &str) -> String {
        if let Some(line) = self.seen.iter().find(|line| line.contains(text)) {
            return line.clone();
        }
        let started = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(started.elapsed());
            match self.incoming.recv_timeout(left) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(RecvTimeoutError::Timeout) => panic!("no `{text}` in time in {:#?}", self.seen),
                Err(RecvTimeoutError::Disconnected) => panic!("no `{text}` in {:#?}", self.seen),
            }
        }
    }

    fn take_what_is_there(&mut self) {
        self.seen.extend(self.incoming.try_iter());
    }
}

/// Tries again until it works, for what becomes true soon but tells nobody.
#[track_caller]
pub(crate) fn eventually<T>(
    what: &str,
    within: Duration,
    mut attempt: impl FnMut() -> Option<T>,
) -> T {
    let started = Instant::now();
    loop {
        if let Some(value) = attempt() {
            return value;
        }
        assert!(started.elapsed() < within, "not within {within:?}: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The answer's status and text.
pub(crate) fn get(url: &str) -> (u16, String) {
    let response = reqwest::blocking::get(url).unwrap();
    (response.status().as_u16(), response.text().unwrap())
}
