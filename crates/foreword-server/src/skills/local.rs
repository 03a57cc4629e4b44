//! Skills that lie in a directory of this server: found, read, and looked at again when they may have changed.
//!
//! What is added or taken away is seen by the next request; what changes within a skill, within [`LOOK_AGAIN`]. A skill that cannot be
//! used is told and left out. Nothing here follows a link.

use std::{
    fs::{self, File, Metadata},
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use foreword_compose::one_line;
use rustix::fs::{Access, OFlags, access};
use tokio::sync::Mutex;

use super::{
    Refused,
    front_matter::{self, FrontMatter},
    name::SkillName,
};

/// How long what was found is good without looking into each skill again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The most skills of a directory.
pub(super) const MAX_SKILLS: usize = 1_000;

/// The most files and directories of a skill.
pub(super) const MAX_MEMBERS: usize = 2_000;

/// The most bytes of a skill.
pub(super) const MAX_BYTES: u64 = 200 << 20;

/// The largest SKILL.md, in bytes.
pub(super) const MAX_SKILL_MD: u64 = 1 << 20;

/// The file that makes a directory a skill.
pub(crate) const SKILL_MD: &str = "SKILL.md";

/// A directory of skills.
pub(super) struct Directory {
    path: PathBuf,
    seen: Mutex<Option<Seen>>,
}

struct Seen {
    at: Instant,
    stamp: Option<Stamp>,
    found: Arc<Found>,
}

/// Changes when an entry of the directory comes or goes.
type Stamp = (u64, i64, i64);

/// What is in a directory of skills.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) skills: Vec<LocalSkill>,
    pub(super) refused: Vec<Refused>,
}

/// A skill that lies somewhere on this server's disk.
#[derive(Debug, Clone)]
pub(super) struct LocalSkill {
    pub(super) name: SkillName,
    pub(super) front_matter: Arc<FrontMatter>,
    pub(super) directory: PathBuf,
    /// Another one when anything in it has changed.
    pub(super) identity: String,
}

impl Found {
    fn says_the_same(&self, other: &Self) -> bool {
        let skills = |found: &Self| -> Vec<(SkillName, String)> {
            let skills = found.skills.iter();
            skills
                .map(|skill| (skill.name.clone(), skill.identity.clone()))
                .collect()
        };
        self.refused == other.refused && skills(self) == skills(other)
    }
}

impl Directory {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            seen: Mutex::new(None),
        }
    }

    /// The skills that are there now. Whoever comes while somebody looks waits for that.
    pub(super) async fn skills(&self) -> Arc<Found> {
        let mut seen = self.seen.lock().await;
        let stamp = stamp(&self.path);
        if let Some(seen) = &*seen
            && seen.stamp == stamp
            && (stamp.is_none() || seen.at.elapsed() < LOOK_AGAIN)
        {
            return Arc::clone(&seen.found);
        }
        let path = self.path.clone();
        let looking = tokio::task::spawn_blocking(move || look(&path));
        let found = looking
            .await
            .expect("looking does not panic, and nobody cancels it");
        let found = match &*seen {
            // What says the same is the same to those who compare.
            Some(seen) if seen.found.says_the_same(&found) => Arc::clone(&seen.found),
            _ => Arc::new(found),
        };
        *seen = Some(Seen {
            at: Instant::now(),
            stamp,
            found: Arc::clone(&found),
        });
        found
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some((metadata.ino(), metadata.mtime(), metadata.mtime_nsec()))
}

/// Reads all skills of a directory; none where there is no directory.
pub(super) fn look(path: &Path) -> Found {
    let mut found = Found::default();
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return found,
        Err(error) => {
            found.refused.push(Refused::new(
                "",
                format!("the directory cannot be read: {error}"),
            ));
            return found;
        }
    };
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    for name in names {
        let shown = name.to_string_lossy();
        // What editors, archives and file managers leave.
        if shown.starts_with('.') || shown.starts_with("__") {
            continue;
        }
        if !fs::symlink_metadata(path.join(&name)).is_ok_and(|metadata| metadata.is_dir()) {
            continue;
        }
        let Some(skill) = SkillName::new(&shown) else {
            let why =
                "a skill is called by 1 to 64 of `a-z`, `0-9` and `-`, and does not begin with `-`";
            found.refused.push(Refused::new(&one_line(&shown, 64), why));
            continue;
        };
        if found.skills.len() == MAX_SKILLS {
            let why = format!("there are more than {MAX_SKILLS} skills");
            found.refused.push(Refused::new(skill.as_str(), why));
            break;
        }
        match read(&skill, &path.join(&name)) {
            Ok(skill) => found.skills.push(skill),
            Err(why) => found.refused.push(Refused::new(skill.as_str(), why)),
        }
    }
    found
}

/// Reads one skill.
pub(super) fn read(name: &SkillName, directory: &Path) -> Result<LocalSkill, String> {
    let front_matter = read_front_matter(directory)?;
    let survey = survey(directory)?;
    Ok(LocalSkill {
        name: name.clone(),
        front_matter: Arc::new(front_matter),
        directory: directory.to_owned(),
        identity: survey,
    })
}

/// Reads what the skill's SKILL.md says of itself.
pub(super) fn read_front_matter(directory: &Path) -> Result<FrontMatter, String> {
    let file = open(&directory.join(SKILL_MD)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("it has no `{SKILL_MD}`"),
        _ => format!("`{SKILL_MD}` cannot be read: {error}"),
    })?;
    let mut text = String::new();
    let read = file.take(MAX_SKILL_MD + 1).read_to_string(&mut text);
    read.map_err(|error| format!("`{SKILL_MD}` cannot be read as UTF-8: {error}"))?;
    if text.len() as u64 > MAX_SKILL_MD {
        return Err(format!("`{SKILL_MD}` has more than {MAX_SKILL_MD} bytes"));
    }
    front_matter::read(&text).map_err(|fault| fault.to_string())
}

/// Opens a file that is none but a file.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).expect("these flags are small");
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"))
    }
}

/// A word for everything that lies in a skill, by names, sizes and times.
fn survey(directory: &Path) -> Result<String, String> {
    let mut hasher = DefaultHasher::new();
    let mut bytes = 0;
    let members = members(directory)?;
    for (path, metadata) in members {
        bytes += metadata.len();
        if bytes > MAX_BYTES {
            return Err(format!("it has more than {} MiB", MAX_BYTES >> 20));
        }
        // Not when its links last changed, which showing it to a sandbox does.
        let readable = access(directory.join(&path), Access::READ_OK);
        readable.map_err(|error| format!("`{}` cannot be read: {error}", path.display()))?;
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        (
            path,
            metadata.len(),
            metadata.mode(),
            metadata.ino(),
            modified,
        )
            .hash(&mut hasher);
    }
    Ok(format!("local-{:016x}", hasher.finish()))
}

/// The files of a skill by their paths within it, in order; links and devices are none of it.
pub(crate) fn members(directory: &Path) -> Result<Vec<(PathBuf, Metadata)>, String> {
    let mut members = Vec::new();
    let mut left = vec![PathBuf::new()];
    let mut seen = 0;
    while let Some(below) = left.pop() {
        let here = directory.join(&below);
        let failed = |error: io::Error| format!("it cannot be read: {error}");
        for entry in fs::read_dir(&here).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            seen += 1;
            if seen > MAX_MEMBERS {
                return Err(format!(
                    "it has more than {MAX_MEMBERS} files and directories"
                ));
            }
            let path = below.join(entry.file_name());
            // One that is gone since has gone.
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if metadata.is_dir() {
                left.push(path);
            } else if metadata.is_file() {
                members.push((path, metadata));
            }
        }
    }
    members.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(members)
}
