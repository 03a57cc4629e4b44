//! The binary with sandboxes in containers of a real engine.
//!
//! The engines are named by `FOREWORD_TEST_ENGINES`, as for the contract of `foreword-sandbox`; `scripts/suites/docker` starts them. Without
//! any there are no cases here, and that suite fails if it finds none.

#![expect(
    clippy::unwrap_used,
    reason = "these are tests, though the compiler does not know it without its harness"
)]

mod cases;
#[path = "../it/chat.rs"]
#[expect(dead_code, reason = "the other tests need more of it")]
mod chat;
mod engine;
#[path = "../it/support.rs"]
#[expect(dead_code, reason = "the other tests need more of it")]
mod support;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

use crate::engine::Engine;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for engine in Engine::all() {
        for (name, case) in cases::ALL {
            let given = engine.clone();
            trials.push(Trial::test(format!("{}::{name}", engine.name), move || {
                case(&given);
                Ok(())
            }));
        }
        // These need an engine of their own, or are about one machine.
        if engine.name == "docker" {
            for (name, case) in cases::OF_DOCKER {
                let given = engine.clone();
                trials.push(Trial::test(format!("docker::{name}"), move || {
                    case(&given);
                    Ok(())
                }));
            }
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
