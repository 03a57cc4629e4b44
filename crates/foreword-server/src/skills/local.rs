//! Skills that lie in a directory of this server: found, read, and looked at again when they may have changed.
//!
//! What is added or taken away is seen by the next request. What changes within a skill is looked for when the last look is as old as
//! [`LOOK_AGAIN`], behind a request, which waits for it no longer than [`GRACE`]: it is seen by that request where few skills lie here, else
//! by those that come when the look has ended. A skill that cannot be used is told and left out. Nothing here follows a link.

use std::{
    fs::{self, File, Metadata},
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use foreword_compose::one_line;
use rustix::fs::{Access, OFlags, access};
use tokio::{
    sync::{Mutex as Turn, OwnedMutexGuard},
    time::timeout,
};

use super::{
    Refused,
    front_matter::{self, FrontMatter},
    name::{MAX_NAME, SkillName},
};

/// How long what was found is good without looking into each skill again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long a request waits for a look that it could do without: enough for some dozens of small skills.
const GRACE: Duration = Duration::from_millis(3);

/// The most skills of a directory.
pub(super) const MAX_SKILLS: usize = 1_000;

/// The most files and directories of a skill.
pub(super) const MAX_MEMBERS: usize = 2_000;

/// The most bytes of a skill.
pub(super) const MAX_BYTES: u64 = 200 << 20;

/// The largest SKILL.md, in bytes.
const MAX_SKILL_MD: u64 = 1 << 20;

/// The file that makes a directory a skill.
pub(crate) const SKILL_MD: &str = "SKILL.md";

/// A directory of skills.
pub(super) struct Directory {
    path: PathBuf,
    seen: Mutex<Option<Seen>>,
    /// Held by the one look that goes on, and never across an await.
    looking: Arc<Turn<()>>,
}

/// What the last look found.
#[derive(Clone)]
struct Seen {
    began: Instant,
    ended: Instant,
    /// From before it began.
    stamp: Option<Stamp>,
    found: Arc<Found>,
}

/// Changes when an entry of the directory comes or goes. On most file systems the number of links counts the directories in it, and tells of
/// one that comes within the same tick of the clock.
type Stamp = (u64, u64, i64, i64);

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
    pub(super) fn new(path: PathBuf) -> Arc<Self> {
        Arc::new(Self {
            path,
            seen: Mutex::new(None),
            looking: Arc::default(),
        })
    }

    /// The skills that are there now. Only who comes first, or after an entry came or went, waits until they are looked at.
    pub(super) async fn skills(self: &Arc<Self>) -> Arc<Found> {
        let asked = Instant::now();
        // One `stat` on this thread: it takes a microsecond or two, and handing it to another thread many times that.
        let stamp = stamp(&self.path);
        let Some(seen) = self.seen().clone().filter(|seen| seen.stamp == stamp) else {
            return self.looked_at_since(asked).await;
        };
        if stamp.is_none() || seen.ended.elapsed() < LOOK_AGAIN {
            return seen.found;
        }
        let Ok(turn) = Arc::clone(&self.looking).try_lock_owned() else {
            return seen.found;
        };
        timeout(GRACE, self.look(turn)).await.unwrap_or(seen.found)
    }

    /// What a look finds that begins after `asked`: one that goes on already may have passed what the caller knows of.
    async fn looked_at_since(self: &Arc<Self>, asked: Instant) -> Arc<Found> {
        let turn = Arc::clone(&self.looking).lock_owned().await;
        let seen = self.seen().clone();
        match seen.filter(|seen| seen.began >= asked) {
            Some(seen) => seen.found,
            None => self.look(turn).await,
        }
    }

    /// Looks at all of it. Also if nobody waits any more, it comes to its end.
    fn look(
        self: &Arc<Self>,
        turn: OwnedMutexGuard<()>,
    ) -> impl Future<Output = Arc<Found>> + use<> {
        let directory = Arc::clone(self);
        let looking = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            directory.look_now()
        });
        async {
            looking
                .await
                .expect("looking does not panic, and nobody cancels it")
        }
    }

    fn look_now(&self) -> Arc<Found> {
        let began = Instant::now();
        let stamp = stamp(&self.path);
        let found = look(&self.path);
        let mut seen = self.seen();
        let found = match &*seen {
            // What says the same is the same to those who compare.
            Some(seen) if seen.found.says_the_same(&found) => Arc::clone(&seen.found),
            _ => Arc::new(found),
        };
        *seen = Some(Seen {
            began,
            ended: Instant::now(),
            stamp,
            found: Arc::clone(&found),
        });
        found
    }

    fn seen(&self) -> MutexGuard<'_, Option<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = fs::symlink_metadata(path).ok()?;
    let (time, nanoseconds) = (metadata.mtime(), metadata.mtime_nsec());
    Some((metadata.ino(), metadata.nlink(), time, nanoseconds))
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
            found
                .refused
                .push(Refused::new(&one_line(&shown, MAX_NAME), why));
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

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn write(directory: &Path, name: &str, description: &str) {
        fs::create_dir_all(directory.join(name)).unwrap();
        let text = format!("---\nname: {name}\ndescription: {description}\n---\n");
        fs::write(directory.join(name).join(SKILL_MD), text).unwrap();
    }

    fn names(found: &Found) -> Vec<&str> {
        let skills = found.skills.iter();
        skills.map(|skill| skill.name.as_str()).collect()
    }

    #[tokio::test]
    async fn a_look_that_lasts_holds_up_only_who_asks_for_what_came_since() {
        let place = tempfile::tempdir().unwrap();
        write(place.path(), "one", "One.");
        let directory = Directory::new(place.path().to_owned());
        let first = directory.skills().await;
        assert_eq!(names(&first), ["one"]);
        // Somebody looks, and the last look is old.
        let turn = Arc::clone(&directory.looking).lock_owned().await;
        let made_old = Instant::now().checked_sub(LOOK_AGAIN).unwrap();
        directory.seen().as_mut().unwrap().ended = made_old;
        let old = directory.skills().now_or_never();
        assert!(Arc::ptr_eq(&old.expect("it does not wait"), &first));
        write(place.path(), "two", "Two.");
        let mut after = Box::pin(directory.skills());
        assert!((&mut after).now_or_never().is_none(), "it waits");
        drop(turn);
        let after = after.await;
        assert_eq!(names(&after), ["one", "two"]);
    }

    #[tokio::test]
    async fn many_who_wait_share_a_look_and_what_says_the_same_is_the_same() {
        let place = tempfile::tempdir().unwrap();
        write(place.path(), "one", "One.");
        let directory = Directory::new(place.path().to_owned());
        let all = futures::future::join_all((0..50).map(|_| directory.skills())).await;
        assert!(all.iter().all(|found| Arc::ptr_eq(found, &all[0])));
        let began = directory.seen().as_ref().unwrap().began;
        write(place.path(), "one/within", "It is no skill.");
        let made_old = Instant::now().checked_sub(LOOK_AGAIN).unwrap();
        directory.seen().as_mut().unwrap().ended = made_old;
        directory.skills().await;
        let turn = Arc::clone(&directory.looking).lock_owned().await;
        drop(turn);
        assert!(directory.seen().as_ref().unwrap().began > began);
        assert!(!Arc::ptr_eq(&directory.skills().await, &all[0]));
    }
}
