//! `foreword child-init`: stands between this server and a program that it started, and ends the program's whole process tree.
//!
//! Its standard input is the program's too, and is all that it watches: when nobody can write there any more, because the
//! connection was closed or this server was killed, the program has read its last message. It gets a moment to end by
//! itself; then it, what it started, and what those started are ended, whichever process groups and sessions they made; on
//! systems other than Linux, what is in the program's own process group.
//! Deliberately absent: confinement. A connection's program is as trusted as the configuration that names it.

use std::{env, ffi::OsString};

/// The first argument that makes this program a supervisor.
pub(super) const COMMAND: &str = "child-init";

/// The first argument of the process that becomes the program: it dies with its supervisor, should that be killed.
#[cfg(target_os = "linux")]
const BECOME: &str = "child-exec";

/// Ends this process as a supervisor if it was started as one. To be called before anything else runs.
pub fn child_init_main() {
    let mut arguments = env::args_os().skip(1);
    let Some(first) = arguments.next() else {
        return;
    };
    #[cfg(target_os = "linux")]
    if first == BECOME {
        std::process::exit(i32::from(unix::become_program(
            &arguments.collect::<Vec<_>>(),
        )));
    }
    if first == COMMAND {
        // `--` keeps what follows from being taken for options of ours.
        let command: Vec<OsString> = arguments.skip_while(|argument| argument == "--").collect();
        std::process::exit(i32::from(supervise(&command)));
    }
}

#[cfg(unix)]
fn supervise(command: &[OsString]) -> u8 {
    unix::supervise(command)
}

/// Without process trees that could be ended there is nothing to stand between.
#[cfg(not(unix))]
fn supervise(command: &[OsString]) -> u8 {
    use std::process::Command;
    let Some((program, arguments)) = command.split_first() else {
        return MISUSED;
    };
    match Command::new(program).args(arguments).status() {
        Ok(status) => status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .unwrap_or(1),
        Err(error) => not_started(program, &error),
    }
}

/// The exit code of a shell for a program that is not there.
const NOT_FOUND: u8 = 127;
/// The exit code of a shell for a program that cannot be run.
const NOT_RUNNABLE: u8 = 126;
/// No program was named.
const MISUSED: u8 = 2;

/// Says why the program does not run, where the log of its connection is made of.
fn not_started(program: &OsString, error: &std::io::Error) -> u8 {
    eprintln!(
        "`{}` could not be started: {error}",
        program.to_string_lossy()
    );
    if error.kind() == std::io::ErrorKind::NotFound {
        NOT_FOUND
    } else {
        NOT_RUNNABLE
    }
}

#[cfg(unix)]
mod unix {
    use std::{
        ffi::OsString,
        fs, io,
        os::unix::process::CommandExt,
        process::Command,
        thread,
        time::{Duration, Instant},
    };

    use rustix::{
        event::{PollFd, PollFlags, poll},
        io::Errno,
        process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, wait},
        stdio::stdin,
    };

    use super::{MISUSED, not_started};

    /// How long the program may go on after its last message.
    const TO_END_BY_ITSELF: Duration = Duration::from_secs(2);
    /// How long it may go on after it was asked to end.
    const TO_END_WHEN_ASKED: Duration = Duration::from_secs(1);
    /// How long processes may take to go that were killed.
    const TO_BE_GONE: Duration = Duration::from_secs(5);
    /// How often what is left is looked for.
    const LOOK: Duration = Duration::from_millis(10);

    pub(super) fn supervise(command: &[OsString]) -> u8 {
        let Some((program, arguments)) = command.split_first() else {
            eprintln!("usage: foreword child-init -- PROGRAM [ARGUMENT]...");
            return MISUSED;
        };
        // What a terminal sends to stop the server is not for the programs, which end with their connections.
        let _ = rustix::process::setsid();
        // Whoever loses its parent becomes a child of this process, so that nobody gets out of reach.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        let child = match starting(program, arguments).process_group(0).spawn() {
            Ok(child) => child,
            Err(error) => return not_started(program, &error),
        };
        // The program's output ends with the program's own end of it, not with ours.
        if let Ok(nowhere) = fs::File::options().write(true).open("/dev/null") {
            let _ = rustix::stdio::dup2_stdout(&nowhere);
        }
        let child = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let child = child.expect("a process that was started has a number");
        thread::spawn(move || end_with_standard_input(child));
        let code = code_of(child);
        end_everything();
        code
    }

    /// How the program is started: through a process that ties it to this one, where that can be done.
    fn starting(program: &OsString, arguments: &[OsString]) -> Command {
        #[cfg(target_os = "linux")]
        {
            let mut command = Command::new("/proc/self/exe");
            command.arg(super::BECOME).arg(program).args(arguments);
            command
        }
        #[cfg(not(target_os = "linux"))]
        {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        }
    }

    /// Becomes the program, which is killed when its supervisor ends. Comes back only if it cannot be started.
    #[cfg(target_os = "linux")]
    pub(super) fn become_program(command: &[OsString]) -> u8 {
        let Some((program, arguments)) = command.split_first() else {
            return MISUSED;
        };
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
        let error = Command::new(program).args(arguments).exec();
        not_started(program, &error)
    }

    /// Waits for the program; of others that end in between only the remains are removed.
    fn code_of(child: Pid) -> u8 {
        loop {
            match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) if pid == child => return code(status),
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return 1,
            }
        }
    }

    /// As a shell says it.
    fn code(status: WaitStatus) -> u8 {
        let signal = || status.terminating_signal().map(|signal| 128 + signal);
        let code = status.exit_status().or_else(signal);
        code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
    }

    /// Ends the program when nobody can write to it any more.
    fn end_with_standard_input(child: Pid) {
        loop {
            // Nothing is asked for, since what can be read is the program's; that the other end is gone is told in any case.
            let mut watched = [PollFd::from_borrowed_fd(stdin(), PollFlags::empty())];
            match poll(&mut watched, None) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) | Err(_) => break,
            }
        }
        thread::sleep(TO_END_BY_ITSELF);
        signal_all(child, Signal::TERM);
        thread::sleep(TO_END_WHEN_ASKED);
        loop {
            // The program's end is seen by the other thread, which ends the process.
            signal_all(child, Signal::KILL);
            thread::sleep(LOOK);
        }
    }

    fn signal_all(child: Pid, signal: Signal) {
        let _ = kill_process_group(child, signal);
        for pid in children().unwrap_or_default() {
            let _ = kill_process(pid, signal);
        }
    }

    /// Ends what the program left; their children become ours in turn, until there are none.
    fn end_everything() {
        let until = Instant::now() + TO_BE_GONE;
        while Instant::now() < until {
            for pid in children().unwrap_or_default() {
                let _ = kill_process(pid, Signal::KILL);
            }
            loop {
                match wait(WaitOptions::NOHANG) {
                    Ok(Some(_)) | Err(Errno::INTR) => {}
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
            thread::sleep(LOOK);
        }
    }

    /// This process's children, whichever of its threads they belong to.
    fn children() -> io::Result<Vec<Pid>> {
        let mut children = Vec::new();
        for thread in fs::read_dir("/proc/self/task")? {
            let listed = fs::read_to_string(thread?.path().join("children"))?;
            let pids = listed.split_whitespace().filter_map(|pid| pid.parse().ok());
            children.extend(pids.filter_map(Pid::from_raw));
        }
        Ok(children)
    }
}
