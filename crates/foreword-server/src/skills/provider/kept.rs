//! What the provider said last of each user, on disk: good for the time in which it does not answer, and after a restart.

use std::{
    collections::HashSet,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::answer::{Answer, Provided};
use crate::skills::{
    cache::{Cache, Digest},
    name::{SkillName, user_directory},
};

/// The directory of what was said.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    directory: PathBuf,
}

/// What was said of one user.
#[derive(Default, Serialize, Deserialize)]
struct Said {
    skills: Vec<SaidSkill>,
    /// Whether something is missing.
    #[serde(default)]
    incomplete: bool,
}

#[derive(Serialize, Deserialize)]
struct SaidSkill {
    name: String,
    public: bool,
    /// None for one that this server has itself.
    sha256: Option<String>,
}

impl Kept {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    fn path(&self, email: &str) -> PathBuf {
        self.directory
            .join(format!("{}.json", user_directory(email)))
    }

    /// What was said of a user, as far as it is still in the cache.
    pub(super) fn read(&self, email: &str, cache: &Cache) -> Option<Answer> {
        let said = read(&self.path(email)).ok()?;
        let mut answer = Answer {
            is_incomplete: said.incomplete,
            ..Answer::default()
        };
        for skill in said.skills {
            let Some(name) = SkillName::new(&skill.name) else {
                continue;
            };
            let content = match &skill.sha256 {
                None => None,
                Some(digest) => {
                    let found = Digest::parse(digest);
                    let Some(found) = found.and_then(|digest| cache.look_up(&name, &digest)) else {
                        answer.is_incomplete = true;
                        continue;
                    };
                    Some(found)
                }
            };
            answer.skills.push(Provided {
                name,
                is_public: skill.public,
                content,
            });
        }
        Some(answer)
    }

    /// Keeps what was said of a user, unless that is kept already.
    pub(super) fn write(&self, email: &str, answer: &Answer) {
        let path = self.path(email);
        let writing = || -> io::Result<()> {
            let text = serde_json::to_vec(&Said::of(answer))?;
            if fs::read(&path).is_ok_and(|before| before == text) {
                return Ok(());
            }
            fs::create_dir_all(&self.directory)?;
            let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
            file.write_all(&text)?;
            // Else a power cut may leave an empty one.
            file.as_file().sync_all()?;
            file.persist(&path)?;
            Ok(())
        };
        if let Err(error) = writing() {
            tracing::warn!(%error, "What the provider of skills said cannot be kept");
        }
    }

    /// Forgets a user whom the provider does not know any more.
    pub(super) fn forget(&self, email: &str) {
        match fs::remove_file(self.path(email)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, "What the provider of skills said of a user cannot be removed");
            }
            _ => {}
        }
    }

    /// The archives that some user has.
    ///
    /// # Errors
    ///
    /// If anything cannot be read: it cannot be told then which are not wanted. What can be read and makes no sense is no answer.
    pub(super) fn archives(&self) -> io::Result<HashSet<Digest>> {
        let mut archives = HashSet::new();
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(archives),
            entries => entries?,
        };
        for entry in entries {
            let path = entry?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "json")
            {
                let said = match read(&path) {
                    Err(error) if error.kind() != io::ErrorKind::InvalidData => return Err(error),
                    said => said.unwrap_or_default(),
                };
                let skills = said.skills.into_iter();
                let digests = skills.filter_map(|skill| skill.sha256);
                archives.extend(digests.filter_map(|digest| Digest::parse(&digest)));
            }
        }
        Ok(archives)
    }
}

fn read(path: &Path) -> io::Result<Said> {
    let text = fs::read(path)?;
    serde_json::from_slice(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

impl Said {
    fn of(answer: &Answer) -> Self {
        let skills = answer.skills.iter().map(|skill| SaidSkill {
            name: skill.name.to_string(),
            public: skill.is_public,
            sha256: skill.content.as_ref().and_then(|content| {
                let digest = Digest::of_identity(&content.identity)?;
                Some(digest.as_str().to_owned())
            }),
        });
        Self {
            skills: skills.collect(),
            incomplete: answer.is_incomplete,
        }
    }
}
