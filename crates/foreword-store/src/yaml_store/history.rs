//! The versions of the library file: what `undo` goes back to, and what a person can look up.
//!
//! A version is a file in `history/`, named by a number, its time and its revision: a line of comment that says when and
//! what, then the library byte for byte. The current one is among them, so that it is not lost if the file is then
//! changed by hand. Undoing walks back: the version that was undone is renamed to `….undone.yaml` and no longer counts,
//! and the one before is in force. A new edit goes on from there; what was undone stays to be read until it is old.
//! Versions are not fsynced: a power cut can cost the youngest of them, never the library, and a damaged one is seen by
//! its revision and passed over.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
};

use foreword_compose::revision;

use super::{
    file::{absent_as_none, create_private, ensure_directory},
    keeper::file_time,
};
use crate::store::Snapshot;

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

    /// Whether the snapshot is the newest version.
    pub(super) fn is_newest(&self, snapshot: &Snapshot) -> io::Result<bool> {
        match self.live()?.pop() {
            Some((_, path)) => is_version(&path, snapshot),
            None => Ok(false),
        }
    }

    /// Whether the snapshot is one of the versions in force.
    pub(super) fn contains(&self, snapshot: &Snapshot) -> io::Result<bool> {
        for (_, path) in self.live()? {
            if is_version(&path, snapshot)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes the snapshot the newest version, to which `what` led, unless it is.
    pub(super) fn ensure(&self, snapshot: &Snapshot, what: &str) -> io::Result<()> {
        if !self.is_kept() || self.is_newest(snapshot)? {
            return Ok(());
        }
        ensure_directory(&self.directory)?;
        let last = self.numbered("")?.pop();
        let number = last.map_or(1, |(number, _)| number + 1);
        let at = snapshot.loaded_at;
        let name = format!("{number:06}-{}-{}{LIVE}", file_time(at), snapshot.revision);
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
            writeln!(file, "# {at:.0} {what}")?;
            file.write_all(snapshot.text.as_bytes())
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
        let Some((head, text)) = content.split_once('\n') else {
            return Ok(None);
        };
        if Some(revision(text, None).as_str()) != revision_in(&path) {
            return Ok(None);
        }
        // `# <time> <what>`
        let what = head.splitn(3, ' ').nth(2).unwrap_or_default().to_owned();
        let text = text.to_owned();
        Ok(Some(Self { path, what, text }))
    }

    fn undone_path(&self) -> PathBuf {
        self.path.with_extension("undone.yaml")
    }
}

/// Whether the file is this version, as far as its name and its length tell.
fn is_version(path: &Path, snapshot: &Snapshot) -> io::Result<bool> {
    if revision_in(path) != Some(&snapshot.revision) {
        return Ok(false);
    }
    let Some(file) = absent_as_none(File::open(path))? else {
        return Ok(false);
    };
    let length = file.metadata()?.len();
    let head = BufReader::new(file).skip_until(b'\n')?;
    Ok(length == (head + snapshot.text.len()) as u64)
}

/// The revision in the name of a version.
fn revision_in(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    name.split('.').next()?.rsplit('-').next()
}

fn number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    name.split_once('-')?.0.parse().ok()
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.file_name()
        .is_some_and(|name| name.to_string_lossy().ends_with(ending))
}
