//! The versions of the library file: what `undo` goes back to, and what a person can look up.
//!
//! A version is a file in `history/`: a line of comment that says when and what, then the library byte for byte. The
//! current one is among them, so that it is not lost if the file is then changed by hand. Undoing walks back: the
//! version that was undone is renamed to `….undone.yaml` and no longer counts, and the one before is in force. A new
//! edit goes on from there; what was undone stays to be read until it is old. Versions are not fsynced: a power cut can
//! cost the youngest of them, never the library, and a damaged one is seen by its revision and skipped.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use foreword_compose::revision;
use jiff::Timestamp;

use super::{
    file::{absent_as_none, create_private, ensure_directory},
    keeper::file_time,
};

const LIVE: &str = ".yaml";
const UNDONE: &str = ".undone.yaml";

/// The versions on disk.
#[derive(Debug)]
pub(super) struct History {
    directory: PathBuf,
    /// How many earlier versions are kept beside the current one.
    keep: usize,
}

/// A version as its file tells it.
#[derive(Debug)]
pub(super) struct Version {
    path: PathBuf,
    /// What led to it.
    pub(super) what: String,
    pub(super) text: String,
}

impl History {
    pub(super) fn new(directory: PathBuf, keep: usize) -> Self {
        Self { directory, keep }
    }

    /// Whether versions are kept at all.
    pub(super) fn is_kept(&self) -> bool {
        self.keep > 0
    }

    /// Makes `text` the newest version, unless it is.
    pub(super) fn ensure(&self, text: &str, what: &str, at: Timestamp) -> io::Result<()> {
        if !self.is_kept()
            || self
                .newest(1)?
                .first()
                .is_some_and(|newest| newest.text == text)
        {
            return Ok(());
        }
        ensure_directory(&self.directory)?;
        let number = self
            .numbered("")?
            .last()
            .map_or(1, |(number, _)| number + 1);
        let name = format!("{number:06}-{}{LIVE}", file_time(at));
        let what: String = what
            .chars()
            .map(|character| {
                if character.is_control() {
                    ' '
                } else {
                    character
                }
            })
            .collect();
        let path = self.directory.join(name);
        let written = create_private(&path).and_then(|mut file| {
            writeln!(file, "# {at:.0} [{}] {what}", revision(text, None))?;
            file.write_all(text.as_bytes())
        });
        if written.is_err() {
            // Half a version helps nobody; its revision would give it away in any case.
            let _ = fs::remove_file(&path);
        }
        written?;
        self.remove_old()
    }

    /// The newest versions that are in force and whole, newest first, at most `count`.
    pub(super) fn newest(&self, count: usize) -> io::Result<Vec<Version>> {
        let mut versions = Vec::new();
        for (_, path) in self.live()?.into_iter().rev() {
            if versions.len() == count {
                break;
            }
            versions.extend(Version::read(path)?);
        }
        Ok(versions)
    }

    fn remove_old(&self) -> io::Result<()> {
        let live = self.live()?;
        let undone = self.numbered(UNDONE)?;
        let old_live = live.iter().rev().skip(self.keep + 1);
        let old_undone = undone.iter().rev().skip(self.keep);
        for (_, path) in old_live.chain(old_undone) {
            absent_as_none(fs::remove_file(path))?;
        }
        Ok(())
    }

    fn live(&self) -> io::Result<Vec<(u64, PathBuf)>> {
        let mut versions = self.numbered(LIVE)?;
        versions.retain(|(_, path)| !has_ending(path, UNDONE));
        Ok(versions)
    }

    /// The files with this ending and a number in front, by number.
    fn numbered(&self, ending: &str) -> io::Result<Vec<(u64, PathBuf)>> {
        let Some(entries) = absent_as_none(fs::read_dir(&self.directory))? else {
            return Ok(Vec::new());
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if has_ending(&path, ending)
                && let Some(number) = number(&path)
            {
                files.push((number, path));
            }
        }
        files.sort_unstable();
        Ok(files)
    }
}

impl Version {
    /// Takes it out of force, so that the one before is the newest.
    pub(super) fn mark_undone(&self) -> io::Result<()> {
        fs::rename(&self.path, self.undone_path())
    }

    /// Takes [`Self::mark_undone`] back.
    pub(super) fn mark_live(&self) -> io::Result<()> {
        fs::rename(self.undone_path(), &self.path)
    }

    /// The version in this file, unless it is damaged.
    fn read(path: PathBuf) -> io::Result<Option<Self>> {
        let Some(bytes) = absent_as_none(fs::read(&path))? else {
            return Ok(None);
        };
        let Ok(content) = String::from_utf8(bytes) else {
            return Ok(None);
        };
        Ok(parse(&content).map(|(what, text)| Self {
            path,
            what: what.to_owned(),
            text: text.to_owned(),
        }))
    }

    fn undone_path(&self) -> PathBuf {
        self.path.with_extension("undone.yaml")
    }
}

/// What led to a version, and its text; nothing if they do not belong together.
fn parse(content: &str) -> Option<(&str, &str)> {
    let (head, text) = content.split_once('\n')?;
    let (_, head) = head.strip_prefix("# ")?.split_once(" [")?;
    let (expected, what) = head.split_once("] ")?;
    (revision(text, None) == expected).then_some((what, text))
}

fn number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    name.split_once('-')?.0.parse().ok()
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.file_name()
        .is_some_and(|name| name.to_string_lossy().ends_with(ending))
}
