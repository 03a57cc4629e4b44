//! Becomes bash: what happens between the fork in init and the command.
//!
//! Its descriptors are closed before the process may be looked into again, so the control socket never shows.

use std::{
    ffi::{CStr, CString},
    fs::{self, File},
    io::{self, Read, Seek, Write},
    os::{fd::OwnedFd, unix::fs::PermissionsExt},
};

use rustix::process::{
    DumpableBehavior, chdir, getpid, set_child_subreaper, set_dumpable_behavior, setsid,
};

use crate::spec::HOME;
use crate::sys;

/// Where bash finds a script that is too long for an argument.
const SCRIPT: i32 = 3;

/// What bash is given.
pub(crate) struct Job {
    pub(crate) output: OwnedFd,
    pub(crate) script: OwnedFd,
    pub(crate) sourced: bool,
    pub(crate) environment: Vec<(String, String)>,
}

/// Runs in the child, and does not come back.
pub(crate) fn run(job: Job) -> ! {
    let error = become_bash(job)
        .err()
        .unwrap_or_else(|| io::Error::other("it came back"));
    let _ = writeln!(io::stderr(), "cannot start bash: {error}");
    sys::exit(126)
}

fn become_bash(job: Job) -> io::Result<()> {
    let script = if job.sourced {
        // It closes its own descriptor first, or everything that it starts would have it.
        CString::from(c". /dev/fd/3")
    } else {
        let mut bytes = Vec::new();
        let mut script = File::from(job.script.try_clone()?);
        script.rewind()?;
        script.read_to_end(&mut bytes)?;
        CString::new(bytes)?
    };
    let environment = job
        .environment
        .into_iter()
        .map(|(name, value)| CString::new(format!("{name}={value}")));
    let environment = environment.collect::<Result<Vec<_>, _>>()?;
    let arguments = [c"bash".to_owned(), c"-lc".to_owned(), script];
    setsid()?;
    sys::reset_signals();
    let first_closed = if job.sourced {
        // Both may be anywhere, and one must not be put where the other is.
        let output = rustix::io::fcntl_dupfd_cloexec(&job.output, SCRIPT + 1)?;
        sys::place_descriptor(&job.script, SCRIPT)?;
        place_output(&output)?;
        SCRIPT + 1
    } else {
        place_output(&job.output)?;
        SCRIPT
    };
    sys::close_from(first_closed.cast_unsigned())?;
    // These are closed now; dropping them again could hit what is opened next.
    std::mem::forget((job.output, job.script));
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    // Over the memory limit, a command goes before init does. It works without.
    let _ = fs::write("/proc/self/oom_score_adj", "300");
    set_child_subreaper(Some(getpid()))?;
    enter_home()?;
    let mut error = io::ErrorKind::NotFound.into();
    for program in [c"/bin/bash", c"/usr/bin/bash"] as [&CStr; 2] {
        error = sys::execute(program, &arguments, &environment);
    }
    Err(error)
}

/// Enters the home directory, also after a `chmod 000` of it, which no later command could take back.
pub(crate) fn enter_home() -> io::Result<()> {
    if chdir(HOME).is_err() {
        fs::set_permissions(HOME, fs::Permissions::from_mode(0o700))?;
        chdir(HOME)?;
    }
    Ok(())
}

fn place_output(output: &OwnedFd) -> io::Result<()> {
    sys::place_descriptor(output, 1)?;
    sys::place_descriptor(output, 2)
}
