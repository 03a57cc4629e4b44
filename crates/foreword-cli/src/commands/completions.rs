//! `foreword completions`

use std::io;

use clap::CommandFactory;

use crate::args::Cli;

pub(crate) fn run(shell: clap_complete::Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "foreword", &mut script);
    io::Write::write_all(&mut io::stdout().lock(), &script)?;
    Ok(())
}
