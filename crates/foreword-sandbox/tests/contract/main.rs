//! The contract that every backend keeps: what must work, and what must be refused.
//!
//! The cases know [`Sandboxes`](foreword_sandbox::Sandboxes) only. Each runs as whoever started the tests and, if that is root, once more
//! as an unprivileged user. None is left out quietly: where the kernel refuses namespaces, the cases fail and say the cure.
//!
//! This program is its own init process, as the `foreword` binary is, so what is tested is the real thing.

mod cases;
mod server;
mod support;

use std::{
    fs::File,
    process::{Command, ExitCode, Stdio},
};

use libtest_mimic::{Arguments, Failed, Trial};

use crate::{cases::Case, support::Backend};

/// An unprivileged user, who needs no name.
const NOBODY: &str = "64999";

fn main() -> ExitCode {
    foreword_sandbox::init_main();
    if std::env::args().nth(1).as_deref() == Some(server::ARGUMENT) {
        server::serve();
        return ExitCode::SUCCESS;
    }
    let arguments = Arguments::from_args();
    let trials = cases::all().into_iter().flat_map(|case| {
        let directly = format!("namespace::{}", case.name);
        let as_nobody = format!("namespace_unprivileged::{}", case.name);
        let again = directly.clone();
        [
            Trial::test(directly, move || run(&case)),
            Trial::test(as_nobody, move || if is_root() { run_as_nobody(&again) } else { run(&case) }),
        ]
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

#[expect(clippy::unnecessary_wraps, reason = "the harness wants it so")]
fn run(case: &Case) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on((case.run)(Backend::namespace()));
    Ok(())
}

/// Runs one case in this same program as a user who may do nothing.
///
/// The program is passed as an open file, so it may lie where that user has no way.
fn run_as_nobody(case: &str) -> Result<(), Failed> {
    let ran = Command::new("setpriv")
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--inh-caps=-all", "/proc/self/fd/0"])
        .args(["--exact", case, "--nocapture"])
        .current_dir("/")
        .env("TMPDIR", "/tmp")
        .stdin(Stdio::from(File::open("/proc/self/exe")?))
        .output()?;
    let output = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    // Had the name matched nothing, the program would be content too.
    if ran.status.success() && output.contains("1 passed") { Ok(()) } else { Err(output.into()) }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
