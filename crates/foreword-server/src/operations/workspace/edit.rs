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
            explain_absence(shown, text, old.to_owned()).await
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

/// Where `old` almost stands. Looking for it takes a while in a large file, so no async thread does it.
async fn explain_absence(path: String, text: Bytes, old: String) -> String {
    let message = format!("`old_str` does not stand in `{path}`");
    let hint = tokio::task::spawn_blocking(move || almost(&String::from_utf8_lossy(&text), &old));
    match hint.await {
        Ok(Some(hint)) => message + &hint,
        Ok(None) | Err(_) => message + "; look at the file with `view`",
    }
}

/// In a time that grows with the text, whatever is looked for.
fn almost(text: &str, old: &str) -> Option<String> {
    if let Some(line) = line_without_white_space(text, old) {
        return Some(format!(
            "; around line {line} it does, but with other white space (spaces, tabs, line ends): view those lines and \
             copy them exactly"
        ));
    }
    let lower = text.to_lowercase();
    if let Some(at) = memmem::find(lower.as_bytes(), old.to_lowercase().as_bytes()) {
        let line = line_breaks(&lower.as_bytes()[..at]) + 1;
        return Some(format!(
            "; at line {line} it does, but with other upper and lower case"
        ));
    }
    let first = old
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or(old);
    let (line, words) = closest_line(text, clipped(first, LINE_WIDTH))?;
    Some(format!("; the closest line is {line}: `{words}`"))
}

/// The line where `wanted` begins, with all white space left out on both sides.
fn line_without_white_space(text: &str, wanted: &str) -> Option<usize> {
    let squeezed = |text: &str| -> String { text.split_whitespace().collect() };
    let wanted = squeezed(wanted);
    if wanted.is_empty() {
        return None;
    }
    let at = memmem::find(squeezed(text).as_bytes(), wanted.as_bytes())?;
    let mut before = 0;
    text.lines()
        .position(|line| {
            before += line.split_whitespace().map(str::len).sum::<usize>();
            before > at
        })
        .map(|line| line + 1)
}

/// From which likeness on a line is worth showing.
const LIKELY: f64 = 0.4;

/// How much may be compared, in products of two lengths: some tenths of a second.
const MOST_COMPARED: usize = 10_000_000;

/// The line that is most like `wanted`, with its number.
fn closest_line<'a>(text: &'a str, wanted: &str) -> Option<(usize, &'a str)> {
    let of_wanted = Letters::of(wanted);
    let mut left = MOST_COMPARED;
    let mut best = None;
    let mut likeness = LIKELY;
    for (at, line) in text.lines().enumerate() {
        let line = clipped(line.trim(), LINE_WIDTH);
        let letters = Letters::of(line);
        // Most lines are ruled out by their letters alone, which is quick.
        if letters.most_likeness(&of_wanted) < likeness {
            continue;
        }
        let Some(rest) = left.checked_sub(letters.count * of_wanted.count) else {
            break;
        };
        left = rest;
        let found = strsim::normalized_damerau_levenshtein(line, wanted);
        if found > likeness || (best.is_none() && found >= LIKELY) {
            likeness = found;
            best = Some((at + 1, line));
        }
    }
    best
}

/// Which letters a line has, without their order; letters may share a place.
struct Letters {
    places: [u16; 64],
    count: usize,
}

impl Letters {
    fn of(line: &str) -> Self {
        let mut letters = Self {
            places: [0; 64],
            count: 0,
        };
        for letter in line.chars() {
            letters.places[letter as usize % 64] += 1;
            letters.count += 1;
        }
        letters
    }

    /// What the likeness of two lines cannot be above: each letter that only one of them has has to be changed.
    fn most_likeness(&self, other: &Self) -> f64 {
        let (mut more, mut less) = (0_u32, 0_u32);
        for (one, other) in self.places.iter().zip(&other.places) {
            more += u32::from(one.saturating_sub(*other));
            less += u32::from(other.saturating_sub(*one));
        }
        let longest = u32::try_from(self.count.max(other.count)).unwrap_or(u32::MAX);
        1.0 - f64::from(more.max(less)) / f64::from(longest.max(1))
    }
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
