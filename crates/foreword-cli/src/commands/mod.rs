//! What each command does, one file a command, and how commands read and print.

mod check;
mod completions;
mod compose;
mod config;
mod doctor;
mod init;
mod links;
mod profiles;
mod sections;
mod serve;
mod skills;
mod stdio;
mod texts;
mod transfer;

use std::{
    fs::File,
    io::{self, IsTerminal, Read, Write},
    path::Path,
    process::ExitCode,
};

use foreword_compose::nearest;
use foreword_store::yaml::MAX_FILE_BYTES;
use serde_json::Value;

use crate::{
    args::{Cli, Command, Content, Serving},
    config::{Loaded, LogConfig, load},
    failure::{Exit, Failure},
    logging::Logging,
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
    let unlogged = || -> Result<Loaded, Failure> {
        let loaded = load(&common.sources(None))?;
        warn(&loaded.warnings);
        Ok(loaded)
    };
    let configured = || -> Result<Loaded, Failure> {
        let loaded = unlogged()?;
        // What these commands do is what they print; of the log only what went wrong matters.
        let log = LogConfig {
            level: "warn".to_owned(),
            ..loaded.config.log.clone()
        };
        Logging::start(&log, None)?;
        Ok(loaded)
    };
    match command {
        Command::Serve(serving) => serve::run(&common, &serving)?,
        Command::Stdio { chat, sandbox } => {
            let serving = Serving::with_sandbox(sandbox);
            stdio::run(&common, &serving, chat.as_deref())?;
        }
        Command::Profiles(command) => profiles::run(&configured()?, command)?,
        Command::Sections(command) => sections::run(&configured()?, command)?,
        Command::Global(command) => texts::global(&configured()?, command)?,
        Command::Guide(command) => texts::guide(&configured()?, command)?,
        Command::Variables(command) => texts::variables(&configured()?, command)?,
        Command::Undo => transfer::undo(&configured()?)?,
        Command::Skills(command) => skills::run(&configured()?, &command)?,
        Command::Links(command) => links::run(&configured()?, &command)?,
        Command::Compose(request) => compose::run(&configured()?, &request)?,
        Command::Check { file, output } => {
            return check::run(&unlogged()?, file.as_deref(), output);
        }
        Command::Init => init::run(&configured()?)?,
        Command::Import {
            file,
            dry_run,
            replace_broken,
        } => transfer::import(&configured()?, &file, dry_run, replace_broken)?,
        Command::Export => transfer::export(&configured()?)?,
        Command::Doctor { serving, output } => return doctor::run(&common, &serving, output),
        Command::Config {
            serving,
            output,
            reference,
            schema,
        } => config::run(&common, &serving, output, reference, schema)?,
        Command::Completions { shell } => completions::run(shell)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Tells the operator on stderr.
pub(crate) fn warn(warnings: &[String]) {
    for warning in warnings {
        terminal::say(terminal::WARNING, "warning", warning);
    }
}

/// Prints what a command has to say, ending the last line.
fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    if !text.is_empty() && !text.ends_with('\n') {
        stdout.write_all(b"\n")?;
    }
    Ok(stdout.flush()?)
}

/// Prints somebody's text: byte for byte where something reads it, with its last line ended on a terminal.
fn print_text(text: &str) -> anyhow::Result<()> {
    if io::stdout().is_terminal() {
        return print(text);
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// Prints for scripts.
fn print_json(value: &Value) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{value:#}")?;
    Ok(stdout.flush()?)
}

/// The text of a file, or of stdin for `-`; no more of it than a library may have.
fn read_text(file: &Path) -> anyhow::Result<String> {
    let (name, read) = if file == Path::new("-") {
        ("stdin".to_owned(), read_start(&mut io::stdin().lock()))
    } else {
        let opened = File::open(file);
        (
            format!("`{}`", file.display()),
            opened.and_then(|mut file| read_start(&mut file)),
        )
    };
    let failure = |what: String| Failure::new(Exit::Unusable, what);
    let bytes = read.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => failure(format!("there is no file {name}")),
        io::ErrorKind::PermissionDenied => failure(format!("{name} may not be read by this user")),
        io::ErrorKind::IsADirectory => failure(format!("{name} is a directory, not a file")),
        _ => failure(format!("could not read {name}: {error}")),
    })?;
    if bytes.len() > MAX_FILE_BYTES {
        return Err(failure(format!(
            "{name} has more than {} MiB, the most that a library may have",
            MAX_FILE_BYTES >> 20
        ))
        .into());
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.split(|byte| *byte == b'\n').count();
        failure(format!("{name} is not UTF-8 text from line {line} on")).hint("save it as UTF-8")
    });
    Ok(text?)
}

/// Reads no further than to where a text is too large.
fn read_start(source: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source
        .take(MAX_FILE_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Content {
    /// The text given. Only where it is `needed` and no flag gives it, stdin is read.
    fn read(self, needed: bool) -> anyhow::Result<Option<String>> {
        match (self.content, self.file) {
            (Some(content), _) => return Ok(Some(content)),
            (None, Some(file)) => return read_text(&file).map(Some),
            (None, None) if !needed => return Ok(None),
            (None, None) => {}
        }
        let text = if io::stdin().is_terminal() {
            String::new()
        } else {
            read_text(Path::new("-"))?
        };
        if text.is_empty() {
            return Err(Failure::new(Exit::Failed, "no text was given")
                .hint("give it with `--content TEXT`, `--file FILE`, or on stdin")
                .into());
        }
        Ok(Some(text))
    }
}

/// An id that does not exist, with the one that was probably meant.
fn not_found<'a>(kind: &str, id: &str, known: impl IntoIterator<Item = &'a str>) -> anyhow::Error {
    let hint = match nearest(id, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("`foreword {kind}s list` shows what there is"),
    };
    Failure::new(Exit::Failed, format!("{kind} `{id}` does not exist"))
        .hint(hint)
        .into()
}
