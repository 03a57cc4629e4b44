//! Carries files between this server and a container that does not see its directories: uploads and skills in, outputs out.
//!
//! On either side a survey says what is there, and only what differs is carried: before each piece of work what is new for the sandbox,
//! after it what is new for the user. The home directory stays where the container is. Names that are no text, links and special files
//! are not carried.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Component, Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

/// The most files of one place that are carried; it is also how long a survey may be.
pub(super) const MOST_FILES: usize = 20_000;
/// How deep directories may be.
pub(super) const MOST_DEPTH: usize = 64;

/// What is in a place: the path of each file and directory, with `/` in between.
pub(super) type Survey = BTreeMap<String, Found>;

/// A file or a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Found {
    pub(super) is_directory: bool,
    pub(super) size: u64,
    /// When its content was last changed, in nanoseconds since 1970. A file that is carried keeps it.
    pub(super) modified: i64,
    /// When anything about it last changed.
    pub(super) changed: i64,
}

impl Found {
    /// Whether `other` is a copy of it.
    fn is_like(&self, other: &Self) -> bool {
        self.is_directory == other.is_directory
            && (self.is_directory || (self.size == other.size && self.modified == other.modified))
    }
}

/// What has to be done to make a place like another.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Deleted first, what is in a directory before it.
    pub(super) gone: Vec<String>,
    pub(super) directories: Vec<String>,
    pub(super) files: Vec<String>,
}

impl Changes {
    /// What makes `there` like `here`.
    pub(super) fn between(here: &Survey, there: &Survey) -> Self {
        let mut changes = Self::default();
        let stays = |path: &String, found: &Found| {
            here.get(path)
                .is_some_and(|other| other.is_directory == found.is_directory)
        };
        changes.gone = there
            .iter()
            .rev()
            .filter(|(path, found)| !stays(path, found))
            .map(|(path, _)| path.clone())
            .collect();
        for (path, found) in here {
            if there.get(path).is_some_and(|other| other.is_like(found)) {
                continue;
            }
            if found.is_directory {
                changes.directories.push(path.clone());
            } else {
                changes.files.push(path.clone());
            }
        }
        changes
    }
}

/// Surveys a directory of this host. Only the server writes to it.
pub(super) fn survey(root: &Path) -> io::Result<Survey> {
    let mut found = Survey::new();
    let mut waiting = vec![(root.to_owned(), String::new(), 0)];
    while let Some((directory, prefix, depth)) = waiting.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let (Ok(name), Ok(metadata)) = (entry.file_name().into_string(), entry.metadata())
            else {
                continue;
            };
            let kind = metadata.file_type();
            if !(kind.is_dir() || kind.is_file()) || found.len() >= MOST_FILES {
                continue;
            }
            let path = format!("{prefix}{name}");
            let modified = metadata.modified()?.duration_since(UNIX_EPOCH);
            let modified = modified.unwrap_or(Duration::ZERO).as_nanos();
            let modified = i64::try_from(modified).unwrap_or(i64::MAX);
            if kind.is_dir() && depth < MOST_DEPTH {
                waiting.push((entry.path(), format!("{path}/"), depth + 1));
            }
            found.insert(
                path,
                Found {
                    is_directory: kind.is_dir(),
                    size: if kind.is_dir() { 0 } else { metadata.len() },
                    modified,
                    changed: 0,
                },
            );
        }
    }
    Ok(found)
}

/// A path below `root`, if it is one that stays there.
pub(super) fn below(root: &Path, path: &str) -> Option<PathBuf> {
    let relative = Path::new(path);
    let stays = !path.is_empty()
        && relative
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
    stays.then(|| root.join(relative))
}

/// Deletes what is gone from a directory of this host.
pub(super) fn delete(root: &Path, gone: &[String]) -> io::Result<()> {
    for path in gone.iter().filter_map(|path| below(root, path)) {
        let deleted = match fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(&path),
            Ok(_) => fs::remove_file(&path),
            Err(error) => Err(error),
        };
        match deleted {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The directories above `paths`, each once, the upper ones first.
pub(super) fn parents<'a>(paths: impl Iterator<Item = &'a String>) -> BTreeSet<&'a str> {
    let mut parents = BTreeSet::new();
    for path in paths {
        for (index, _) in path.match_indices('/') {
            parents.insert(&path[..index]);
        }
    }
    parents
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(size: u64, modified: i64) -> Found {
        Found {
            is_directory: false,
            size,
            modified,
            changed: 0,
        }
    }

    fn directory() -> Found {
        Found {
            is_directory: true,
            ..file(0, 0)
        }
    }

    fn place(found: &[(&str, Found)]) -> Survey {
        found
            .iter()
            .map(|(path, found)| ((*path).to_owned(), *found))
            .collect()
    }

    #[test]
    fn only_what_differs_is_carried_and_what_became_something_else_is_deleted_first() {
        let here = place(&[
            ("a", directory()),
            ("a/new", file(1, 1)),
            ("same", file(1, 1)),
            ("longer", file(2, 1)),
            ("later", file(1, 2)),
            ("was-directory", file(1, 1)),
        ]);
        let there = place(&[
            ("a", directory()),
            ("a/gone", file(1, 1)),
            ("same", file(1, 1)),
            ("longer", file(1, 1)),
            ("later", file(1, 1)),
            ("was-directory", directory()),
            ("was-directory/in", file(1, 1)),
        ]);
        assert_eq!(
            Changes::between(&here, &there),
            Changes {
                gone: vec![
                    "was-directory/in".to_owned(),
                    "was-directory".to_owned(),
                    "a/gone".to_owned()
                ],
                directories: Vec::new(),
                files: vec![
                    "a/new".to_owned(),
                    "later".to_owned(),
                    "longer".to_owned(),
                    "was-directory".to_owned()
                ],
            }
        );
        assert_eq!(Changes::between(&here, &here), Changes::default());
    }

    #[test]
    fn no_path_leads_out() {
        let root = Path::new("/outputs");
        for bad in ["", "..", "a/../../b", "/etc/passwd", "./a"] {
            assert_eq!(below(root, bad), None, "{bad}");
        }
        assert_eq!(below(root, "a/b"), Some("/outputs/a/b".into()));
    }

    #[test]
    fn a_survey_sees_files_and_directories_and_no_links() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("d")).unwrap();
        fs::write(place.path().join("d/f"), "12345").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc", place.path().join("link")).unwrap();
        let found = survey(place.path()).unwrap();
        let seen: Vec<_> = found
            .iter()
            .map(|(path, found)| (path.as_str(), found.is_directory, found.size))
            .collect();
        assert_eq!(seen, [("d", true, 0), ("d/f", false, 5)]);
        assert!(found["d/f"].modified > 1_600_000_000_000_000_000);
    }

    #[test]
    fn parents_come_once_and_from_above() {
        let paths = ["a/b/c".to_owned(), "a/b/d".to_owned(), "e".to_owned()];
        let parents: Vec<_> = parents(paths.iter()).into_iter().collect();
        assert_eq!(parents, ["a", "a/b"]);
    }
}
