//! The contract that every backend keeps: what must work, and what must be refused.
//!
//! The cases know [`Sandboxes`](foreword_sandbox::Sandboxes) only. Each runs as whoever started the tests and, if that is root, once more
//! as an unprivileged user. None is left out quietly: where the kernel refuses namespaces, the cases fail and say the cure.
//!
//! This program is its own init process, as the `foreword` binary is, so what is tested is the real thing.

#![expect(
    clippy::unwrap_used,
    reason = "these are tests, though the compiler does not know it without its harness"
)]

mod cases;
mod server;
mod support;

use std::{
    fs::File,
    panic::{AssertUnwindSafe, resume_unwind},
    process::{Command, ExitCode, Stdio},
};

use futures::FutureExt;
use libtest_mimic::{Arguments, Failed, Trial};

use crate::{
    cases::Case,
    support::{Backend, Engine},
};

/// Becomes an unprivileged user, who needs no name.
const AS_NOBODY: &[&str] = &[
    "setpriv",
    "--reuid=64999",
    "--regid=64999",
    "--clear-groups",
    "--inh-caps=-all",
];

fn main() -> ExitCode {
    foreword_sandbox::init_main();
    if std::env::args().nth(1).as_deref() == Some(server::ARGUMENT) {
        server::serve();
        return ExitCode::SUCCESS;
    }
    let arguments = Arguments::from_args();
    // A case looks at what its process has and takes, so each gets a process of its own.
    let is_alone = arguments.exact;
    let mut trials = Vec::new();
    for case in cases::all() {
        let directly = format!("namespace::{}", case.name);
        let again = directly.clone();
        trials.push(trial(directly, is_alone, case, Backend::namespace()));
        let as_nobody = format!("namespace_unprivileged::{}", case.name);
        trials.push(Trial::test(as_nobody, move || {
            run_alone(&again, if is_root() { AS_NOBODY } else { &[] })
        }));
        if cases::OF_NAMESPACES.contains(&case.name) {
            continue;
        }
        for engine in Engine::all() {
            let name = format!("{}::{}", engine.name, case.name);
            trials.push(trial(name, is_alone, case, Backend::docker(&engine)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(name: String, is_alone: bool, case: Case, backend: Backend) -> Trial {
    let again = name.clone();
    Trial::test(name, move || {
        if is_alone {
            run(&case, &backend)
        } else {
            run_alone(&again, &[])
        }
    })
}

#[expect(clippy::unnecessary_wraps, reason = "the harness wants it so")]
fn run(case: &Case, backend: &Backend) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let ran = AssertUnwindSafe((case.run)(backend.clone()))
            .catch_unwind()
            .await;
        backend.close().await;
        if let Err(panic) = ran {
            resume_unwind(panic);
        }
    });
    Ok(())
}

/// Runs one case in this same program, through `wrapper`.
///
/// The program is passed as an open file, so it may lie where an unprivileged user has no way.
fn run_alone(case: &str, wrapper: &[&str]) -> Result<(), Failed> {
    let words = [
        wrapper,
        &["/proc/self/fd/0", "--exact", case, "--nocapture"],
    ]
    .concat();
    let ran = Command::new(words[0])
        .args(&words[1..])
        .current_dir("/")
        .env("TMPDIR", "/tmp")
        .stdin(Stdio::from(File::open("/proc/self/exe")?))
        .output()?;
    let output = format!(
        "{}{}",
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr)
    );
    // Had the name matched nothing, the program would be content too.
    if ran.status.success() && output.contains("1 passed") {
        Ok(())
    } else {
        Err(output.into())
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
