//! `bash_tool`: runs a command and says how it ended, in words for the model.

use std::{fmt::Write, fs::File, sync::LazyLock, time::Duration};

use foreword_sandbox::{
    BackgroundOutput, Command, CommandEnd, Content, Ending, InsteadOf, Restart, SandboxConfig,
    SandboxError, SandboxSpec, Sandboxes, WriteFile,
};

use super::{
    Outcome, Place,
    output::{Collected, Collector, MAX_KEPT, Shown},
    queue::ChatQueue,
};

/// How long a command may run if it does not say, unless the most that it may is less.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(2);

/// How long commands may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Where a command does not say.
    pub default: Duration,
    /// Whatever it says.
    pub most: Duration,
}

impl Timeouts {
    /// Those of these settings.
    #[must_use]
    pub fn of(config: &SandboxConfig) -> Self {
        let most = config.command_timeout_max();
        Self {
            default: DEFAULT_TIMEOUT.min(most),
            most,
        }
    }
}

/// How many long outputs are kept as files.
const KEPT_OUTPUTS: u64 = 5;

/// Where long outputs are kept, below the home directory.
const OUTPUT_DIRECTORY: &str = ".foreword";

/// Programs for which exit code 1 is an answer, and which.
const ANSWERS: [(&str, &str); 6] = [
    ("grep", "no line matched"),
    ("rg", "no line matched"),
    ("diff", "the files differ"),
    ("cmp", "the files differ"),
    ("test", "the condition is false"),
    ("[", "the condition is false"),
];

/// Runs `script`, at most for `timeout`, of which `timeouts` tells what there is to choose from.
pub async fn run(
    place: Place<'_>,
    script: String,
    timeout: Duration,
    timeouts: Timeouts,
) -> Result<Outcome, SandboxError> {
    let Place { sandboxes, spec } = place;
    let answer = answer_of_one(&script);
    let command = Command {
        script,
        environment: Vec::new(),
        timeout,
    };
    let mut collector = Collector::default();
    let end = sandboxes.run(spec, &command, &mut collector).await?;
    let Collected { text, bytes } = collector.finish();
    let mut shown = match text {
        Shown::Whole(text) => text,
        Shown::Cut {
            head,
            tail,
            left_out,
            file,
        } => {
            let place = match file {
                Some(file) => keep(sandboxes, spec, file).await,
                None => None,
            };
            let place = match place {
                Some(path) if bytes <= MAX_KEPT => format!("the whole output is in {path}"),
                Some(path) => format!("the first {} MiB are in {path}", MAX_KEPT >> 20),
                None => "it could not be kept".to_owned(),
            };
            format!("{head}\n[… {left_out} characters left out here; {place} …]\n{tail}")
        }
    };
    let silent = shown.is_empty();
    if silent {
        shown.push_str("[no output]");
    } else if !shown.ends_with('\n') {
        shown.push('\n');
    }
    let is_error = describe_end(&mut shown, &end, silent, answer, timeouts);
    Ok(Outcome {
        text: shown.trim_end_matches('\n').to_owned(),
        is_error,
    })
}

/// Adds what there is to say beside the output; answers whether the command failed.
fn describe_end(
    text: &mut String,
    end: &CommandEnd,
    silent: bool,
    answer: Option<&'static str>,
    timeouts: Timeouts,
) -> bool {
    let mut line = |words: &str| {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(words);
    };
    let is_error = match end.ending {
        Ending::Exited(0) => {
            if silent {
                line("[exit code 0]");
            }
            false
        }
        Ending::Exited(1) if answer.is_some() => {
            let meaning = answer.unwrap_or_default();
            line(&format!("[exit code 1: {meaning}]"));
            false
        }
        Ending::Exited(code @ 129..=192) => {
            line(&format!(
                "[exit code {code}: ended by {}]",
                signal_name(i32::from(code) - 128)
            ));
            true
        }
        Ending::Exited(code) => {
            line(&format!("[exit code {code}]"));
            true
        }
        Ending::Killed { signal } => {
            line(&format!("[ended by {}]", signal_name(signal)));
            true
        }
        Ending::TimedOut { after } => {
            let advice = if after < timeouts.most {
                "For long work give a larger `timeout`, or run it"
            } else {
                "That is the most that a command may run: for longer work run it"
            };
            line(&format!(
                "[timed out after {} s: the command and all that it started were ended. {advice} in the background and look \
                 later: `nohup COMMAND > log.txt 2>&1 &`]",
                after.as_secs()
            ));
            true
        }
        Ending::MemoryLimit => {
            line(
                "[the workspace ran out of memory and was ended with all that ran in it; files are still there. Use less \
                 memory, for example by working in pieces; what is in /tmp counts as memory]",
            );
            true
        }
        Ending::Quota(usage) => {
            line(&format!(
                "[ended: the workspace holds {} of the {} it may hold; delete what is not needed]",
                bytes(usage.used),
                bytes(usage.limit)
            ));
            true
        }
        Ending::DiskFull { free, min_free } => {
            line(&format!(
                "[ended: the disk is full ({} are free, {} have to stay free); write less, or ask the operator for room]",
                bytes(free),
                bytes(min_free)
            ));
            true
        }
    };
    if end.memory_limit_hit && !matches!(end.ending, Ending::MemoryLimit) {
        line(
            "[a process was ended because the memory limit was reached; use less memory, what is in /tmp counts too]",
        );
    }
    if end.process_limit_hit {
        line(
            "[the limit of processes of a workspace was reached; end what runs in the background with `kill -9 -1`, which \
             needs no new process]",
        );
    }
    if end.background_output == BackgroundOutput::Dropped {
        line(
            "[something in the background still holds the output; what it writes from now on is not kept: redirect it to \
             a file]",
        );
    }
    if let Some(restart) = end.restarted {
        line(describe_restart(restart));
    }
    if let Some(usage) = end.over_quota {
        line(&format!(
            "[the workspace holds {} of the {} it may hold; delete what is not needed]",
            bytes(usage.used),
            bytes(usage.limit)
        ));
    }
    is_error
}

/// What there is to say of what a workspace lost.
fn describe_restart(restart: Restart) -> &'static str {
    match restart {
        Restart::NoProcessLeft => {
            "[background processes held all processes that a workspace may have, so it was started again before this; \
             they are gone]"
        }
        Restart::Ended => {
            "[the workspace had ended and was started again before this; background processes of earlier commands are \
             gone, files are still there]"
        }
        Restart::Remade => {
            "[the workspace, or a part of it, was deleted and made again before this; what ran in it was ended]"
        }
        Restart::Idle => {
            "[the workspace was stopped while it was not in use: background processes and what was in /tmp are gone, \
             files are still there]"
        }
        Restart::WroteTooMuch => {
            "[what ran in the background wrote more than the workspace may hold and was ended, with what was in /tmp; \
             delete what is not needed]"
        }
        Restart::FilledDisk => {
            "[what ran in the background filled the disk and was ended, with what was in /tmp; write less, or ask the operator \
             for room]"
        }
    }
}

/// Puts a long output into the workspace; answers its path there. The oldest of the files goes.
async fn keep(sandboxes: &dyn Sandboxes, spec: &SandboxSpec, file: File) -> Option<String> {
    // Two long outputs of one chat at a time would both find the same number free.
    static KEEPING: LazyLock<ChatQueue> = LazyLock::new(ChatQueue::default);
    let _turn = KEEPING.turn(&spec.key).await;
    let number = next_number(sandboxes, spec).await;
    let relative = format!("{OUTPUT_DIRECTORY}/output-{number}.txt");
    let write = WriteFile {
        path: relative.clone().into(),
        instead_of: InsteadOf::File,
        mode: None,
        content: Content::File(file),
    };
    if let Err(error) = sandboxes.write_file(spec, write).await {
        tracing::debug!(%error, "A long output could not be put into its workspace");
        return None;
    }
    if let Some(old) = number.checked_sub(KEPT_OUTPUTS)
        && old > 0
    {
        let command = Command {
            script: format!("rm -f -- {OUTPUT_DIRECTORY}/output-{old}.txt"),
            environment: Vec::new(),
            timeout: Duration::from_secs(10),
        };
        // It is of no consequence if it stays.
        let _ = sandboxes.run(spec, &command, &mut |_: &[u8]| {}).await;
    }
    Some(format!("{}/{relative}", foreword_sandbox::HOME))
}

/// One more than the largest number in use.
async fn next_number(sandboxes: &dyn Sandboxes, spec: &SandboxSpec) -> u64 {
    let list = foreword_sandbox::ListDirectory {
        path: OUTPUT_DIRECTORY.into(),
        depth: 1,
        max_entries: 10_000,
        hidden: false,
    };
    let listing = sandboxes.list_directory(spec, list).await;
    let entries = listing.map(|listing| listing.entries).unwrap_or_default();
    let numbers = entries.iter().filter_map(|entry| {
        let number = entry.path.strip_prefix("output-")?.strip_suffix(".txt")?;
        number.parse::<u64>().ok()
    });
    numbers.max().unwrap_or(0).saturating_add(1)
}

/// What exit code 1 means, where the command is one program, or a pipeline that ends with one, of which it is an answer.
fn answer_of_one(script: &str) -> Option<&'static str> {
    let script = script.trim();
    if script.contains([';', '\n', '&']) || script.contains("||") {
        return None;
    }
    let last = last_of_pipeline(script)?;
    let is_assignment = |word: &&str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        })
    };
    let program = last.split_whitespace().find(|word| !is_assignment(word))?;
    let program = program.rsplit('/').next()?;
    ANSWERS
        .into_iter()
        .find(|(name, _)| *name == program)
        .map(|(_, meaning)| meaning)
}

/// What stands after the last `|` outside of quotes; none where quotes are left open.
fn last_of_pipeline(script: &str) -> Option<&str> {
    let mut quote = None;
    let mut escaped = false;
    let mut start = 0;
    for (at, character) in script.char_indices() {
        match (quote, character) {
            _ if escaped => escaped = false,
            (None | Some('"'), '\\') => escaped = true,
            (Some(open), _) if open == character => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None, '|') => start = at + 1,
            _ => {}
        }
    }
    quote.is_none().then(|| &script[start..])
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL, an illegal instruction",
        6 => "SIGABRT: it gave up",
        7 => "SIGBUS",
        8 => "SIGFPE: an arithmetic error",
        9 => "SIGKILL",
        11 => "SIGSEGV: it touched memory that is not its own",
        13 => "SIGPIPE: the reader of its output ended",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ: a file grew too large",
        31 => "SIGSYS: it did what is not allowed in here",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({name})")
}

/// A number of bytes as people say it.
pub(super) fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return format!("{count} bytes");
    }
    let mut tenths = u128::from(count) * 10 / 1024;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write!(text, "{}.{} {}", tenths / 10, tenths % 10, UNITS[unit]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_code_1_is_an_answer_of_some_programs_only() {
        for script in [
            "grep x file",
            "  rg 'a|b' .",
            "/usr/bin/diff a b",
            "cat log | sort | grep -c x",
            "LC_ALL=C grep x file",
            "[ -f x ]",
            "test -d y",
            "cmp a b",
        ] {
            assert!(answer_of_one(script).is_some(), "{script}");
        }
        for script in [
            "grep x file; ls",
            "grep x file && ls",
            "grep x file || ls",
            "grep x file\nls",
            "grep x file &",
            "grep x | wc -l",
            "python3 grep",
            "egrep x",
            "",
            "grep 'x",
        ] {
            assert_eq!(answer_of_one(script), None, "{script}");
        }
    }

    #[test]
    fn sizes_are_said_in_the_unit_that_people_use() {
        assert_eq!(bytes(1023), "1023 bytes");
        assert_eq!(bytes(1024), "1.0 KiB");
        assert_eq!(bytes(1_572_864), "1.5 MiB");
        assert_eq!(bytes(10 << 30), "10.0 GiB");
        assert_eq!(bytes(u64::MAX), "16777215.9 TiB");
    }
}
