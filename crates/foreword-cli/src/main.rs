//! The `foreword` binary: reads configuration, picks backends, starts and stops.
//!
//! Deliberately absent: business rules. What a prompt is stands in `foreword-compose`, how it is kept in
//! `foreword-store`, who may do what in `foreword-server`.

mod args;
mod commands;
mod config;
mod failure;
mod library;
mod link_key;
mod logging;
mod private;
mod server;
mod signals;
mod telemetry;
mod terminal;

use std::{io, process::ExitCode};

use clap::Parser;

fn main() -> ExitCode {
    // Before there is a thread: the init process of a sandbox is this same binary.
    foreword_sandbox::init_main();
    // And so is what stands between this server and the programs of its connections.
    foreword_server::connections::child_init_main();
    foreword_server::choose_tls();
    let cli = args::Cli::parse();
    match commands::run(cli) {
        Ok(code) => code,
        // The reader of our output went away (`foreword export | head`): nobody is left to be told.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
