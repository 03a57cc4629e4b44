//! `create_file` and `str_replace`: files as the model wants them, and every other byte as it was.

use std::path::PathBuf;

use bytes::Bytes;
use foreword_sandbox::{Content, FileKind, InsteadOf, ReadFile, SandboxError, WriteFile};
use memchr::memmem;

use super::{Outcome, Place, bash::bytes as size_in_words};

/// The largest file that is edited, in bytes.
pub const MAX_EDITED: u64 = 16 << 20;

/// How many lines are shown around a change.
const AROUND: usize = 2;

/// How many lines of a change are shown, and how many characters of a line.
const MOST_LINES: usize = 60;
const LINE_WIDTH: usize = 300;

/// How many places are named where one was expected.
const MOST_PLACES: usize = 20;

/// Creates or replaces a file.
pub async fn create_file(
    place: Place<'_>,
    path: PathBuf,
    text: String,
) -> Result<Outcome, SandboxError> {
    let lines = line_count(text.as_bytes());
    let mode = text.starts_with("#!").then_some(0o755);
    let shown = path.display().to_string();
    let write = WriteFile {
        path,
        instead_of: InsteadOf::File,
        mode,
        content: Content::Bytes(text.into()),
    };
    let written = place.sandboxes.write_file(place.spec, write).await?;
    let done = if written.created {
        "created"
    } else {
        "replaced"
    };
    let executable = if mode.is_some() { ", executable" } else { "" };
    Ok(Outcome::done(format!(
        "{done} `{shown}`: {}{executable}",
        counted(lines, "line")
    )))
}

/// Replaces the one place where `old` stands by `new`.
pub async fn str_replace(
    place: Place<'_>,
    path: PathBuf,
    old: &str,
    new: &str,
) -> Result<Outcome, SandboxError> {
    if old.is_empty() {
        return Ok(Outcome::failed(
            "`old_str` is empty: give the text that is to be replaced; to write a whole file use `create_file`",
        ));
    }
    if old == new {
        return Ok(Outcome::failed(
            "`old_str` and `new_str` are the same, so there is nothing to change",
        ));
    }
    let shown = path.display().to_string();
    let read = ReadFile {
        path: path.clone(),
        offset: 0,
        limit: MAX_EDITED,
    };
    let file = place.sandboxes.read_file(place.spec, read).await?;
    if file.stat.kind == FileKind::Directory {
        return Ok(Outcome::failed(format!("`{shown}` is a directory")));
    }
    if file.stat.size > MAX_EDITED {
        return Ok(Outcome::failed(format!(
            "`{shown}` has {}, and at most {} are edited here; use a program such as `sed` or `python3` with `bash_tool`",
            size_in_words(file.stat.size),
            size_in_words(MAX_EDITED)
        )));
    }
    let text = file.bytes;
    let places: Vec<usize> = memmem::find_iter(&text, old.as_bytes())
        .take(MOST_PLACES + 1)
        .collect();
    let [at] = places[..] else {
        return Ok(Outcome::failed(if places.is_empty() {
            not_found(&shown, &text, old)
        } else {
            several(&text, &places)
        }));
    };
    // Overlapping occurrences are several too: `aa` stands twice in `aaa`.
    if let Some(second) = memmem::find(&text[at + 1..], old.as_bytes()) {
        return Ok(Outcome::failed(several(&text, &[at, at + 1 + second])));
    }
    let changed = [&text[..at], new.as_bytes(), &text[at + old.len()..]].concat();
    let shown_change = around(&changed, at, new.len());
    let write = WriteFile {
        path,
        instead_of: InsteadOf::File,
        mode: None,
        content: Content::Bytes(Bytes::from(changed)),
    };
    place.sandboxes.write_file(place.spec, write).await?;
    Ok(Outcome::done(format!("changed `{shown}`:\n{shown_change}")))
}

/// Where `old` almost stands.
fn not_found(path: &str, text: &[u8], old: &str) -> String {
    let text = String::from_utf8_lossy(text);
    let message = format!("`old_str` does not stand in `{path}`");
    if let Some(line) = position_of(&squeezed(&text), &squeezed(old)) {
        let hint = format!(
            "; around line {line} it does, but with other white space (spaces, tabs, line ends): view those lines and \
             copy them exactly"
        );
        return message + &hint;
    }
    if let Some(line) = position_of(
        &lines_of(&text.to_lowercase()),
        &lines_of(&old.to_lowercase()),
    ) {
        let hint = format!("; at line {line} it does, but with other upper and lower case");
        return message + &hint;
    }
    let first = old
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or(old);
    let closest = text
        .lines()
        .enumerate()
        // What is compared is bounded: likeness takes the product of two lengths.
        .take(20_000)
        .map(|(at, line)| {
            let line = clipped(line.trim(), LINE_WIDTH);
            (
                strsim::normalized_damerau_levenshtein(line, clipped(first, LINE_WIDTH)),
                at + 1,
                line,
            )
        })
        .max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)));
    match closest {
        Some((likeness, line, words)) if likeness >= 0.4 => {
            message + &format!("; the closest line is {line}: `{words}`")
        }
        _ => message + "; look at the file with `view`",
    }
}

/// Words with the line that each stands in.
type Words<'a> = Vec<(&'a str, usize)>;

/// The text without white space.
fn squeezed(text: &str) -> Words<'_> {
    let lines = text.lines().enumerate();
    lines
        .flat_map(|(at, line)| line.split_whitespace().map(move |word| (word, at + 1)))
        .collect()
}

fn lines_of(text: &str) -> Words<'_> {
    text.lines()
        .enumerate()
        .map(|(at, line)| (line, at + 1))
        .collect()
}

/// The line where `wanted` stands in `words`, the ends of its first and last word left open.
fn position_of(words: &[(&str, usize)], wanted: &[(&str, usize)]) -> Option<usize> {
    let [(first, _), ..] = wanted else {
        return None;
    };
    let last = wanted.len() - 1;
    let matches = |window: &[(&str, usize)]| {
        if last == 0 {
            return window[0].0.contains(first);
        }
        window[0].0.ends_with(first)
            && window[last].0.starts_with(wanted[last].0)
            && window[1..last]
                .iter()
                .zip(&wanted[1..last])
                .all(|(one, other)| one.0 == other.0)
    };
    words
        .windows(wanted.len())
        .find(|window| matches(window))
        .map(|window| window[0].1)
}

fn several(text: &[u8], places: &[usize]) -> String {
    let lines: Vec<String> = places
        .iter()
        .take(MOST_PLACES)
        .map(|at| (line_breaks(&text[..*at]) + 1).to_string())
        .collect();
    let more = if places.len() > MOST_PLACES {
        " and more"
    } else {
        ""
    };
    format!(
        "`old_str` stands in several places, at lines {}{more}: add lines before or after it until it is unique",
        lines.join(", ")
    )
}

/// The changed lines with some before and after, numbered.
fn around(text: &[u8], at: usize, length: usize) -> String {
    let first = line_breaks(&text[..at]);
    let last = first + line_breaks(&text[at..at + length]);
    let from = first.saturating_sub(AROUND);
    let lines = text.split(|byte| *byte == b'\n').enumerate().skip(from);
    let ends_with_line_break = text.last() == Some(&b'\n');
    let all = line_breaks(text) + usize::from(!ends_with_line_break);
    let to = (last + AROUND + 1).min(all);
    let mut shown = Vec::new();
    for (number, line) in lines.take(to.saturating_sub(from)) {
        if shown.len() == MOST_LINES {
            shown.push("     …".to_owned());
            break;
        }
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end_matches('\r');
        let cut = clipped(line, LINE_WIDTH);
        let dots = if cut.len() < line.len() { "…" } else { "" };
        shown.push(format!("{:>6}\t{cut}{dots}", number + 1));
    }
    shown.join("\n")
}

fn clipped(text: &str, characters: usize) -> &str {
    match text.char_indices().nth(characters) {
        Some((at, _)) => &text[..at],
        None => text,
    }
}

fn line_breaks(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count()
}

/// Lines as an editor counts them: a last one without a line break counts too.
fn line_count(text: &[u8]) -> usize {
    line_breaks(text) + usize::from(text.last().is_some_and(|last| *last != b'\n'))
}

pub(super) fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}
