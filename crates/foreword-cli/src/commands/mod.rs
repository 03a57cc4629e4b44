//! What each command does, one file a command.

mod completions;
mod config;

use std::process::ExitCode;

use crate::{
    args::{Cli, Command, Serving},
    failure::{Exit, Failure},
    terminal,
};

/// Does what was typed.
pub(crate) fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let Cli {
        common,
        serving,
        command,
    } = cli;
    let command = match command {
        None => Command::Serve(serving),
        Some(command) if serving == Serving::default() => command,
        Some(_) => {
            return Err(Failure::new(
                Exit::Unusable,
                "flags of `serve` stand before another command",
            )
            .hint("write flags after the command that they belong to")
            .into());
        }
    };
    match command {
        Command::Config {
            serving,
            output,
            reference,
            schema,
        } => config::run(&common, &serving, output, reference, schema)?,
        Command::Completions { shell } => completions::run(shell)?,
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Tells the operator on stderr.
pub(crate) fn warn(warnings: &[String]) {
    let style = terminal::WARNING;
    for warning in warnings {
        anstream::eprintln!("{style}warning{style:#}: {warning}");
    }
}
