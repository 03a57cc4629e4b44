//! Carries files between this server and a container that does not see its directories: uploads and skills in, outputs out.
//!
//! On either side a survey says what is there, and only what differs is carried: before each piece of work what is new for the sandbox,
//! after it what is new for the user. The home directory stays where the container is. Names that are no text, links and special files
//! are not carried.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The most files and directories of one place that are carried.
pub(super) const MOST_FILES: usize = 20_000;
/// How long their paths may be together, in bytes.
pub(super) const MOST_PATH_BYTES: usize = 4 << 20;
/// How deep directories may be.
pub(super) const MOST_DEPTH: usize = 64;

/// What is in a place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Survey {
    /// The path of each file and directory, with `/` in between.
    pub(super) files: BTreeMap<String, Found>,
    /// There is more than is carried, so nobody knows what is gone.
    pub(super) is_cut: bool,
}

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
            here.files
                .get(path)
                .is_some_and(|other| other.is_directory == found.is_directory)
        };
        if !(here.is_cut || there.is_cut) {
            let gone = there.files.iter().rev();
            changes.gone = gone
                .filter(|(path, found)| !stays(path, found))
                .map(|(path, _)| path.clone())
                .collect();
        }
        for (path, found) in &here.files {
            if there
                .files
                .get(path)
                .is_some_and(|other| other.is_like(found))
            {
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
        let files = found
            .iter()
            .map(|(path, found)| ((*path).to_owned(), *found));
        Survey {
            files: files.collect(),
            is_cut: false,
        }
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
    fn where_not_all_is_known_nothing_is_deleted() {
        let there = place(&[("gone", file(1, 1))]);
        let here = Survey {
            is_cut: true,
            ..Survey::default()
        };
        assert_eq!(Changes::between(&here, &there), Changes::default());
    }

    #[test]
    fn parents_come_once_and_from_above() {
        let paths = ["a/b/c".to_owned(), "a/b/d".to_owned(), "e".to_owned()];
        let parents: Vec<_> = parents(paths.iter()).into_iter().collect();
        assert_eq!(parents, ["a", "a/b"]);
    }
}
