//! The skills of a chat as its sandbox sees them: two directories whose contents follow the set, while the sandbox runs.
//!
//! Files are linked, not copied, where they may be read by the sandbox's user as they are: a chat then costs directories only. What is
//! new is made beside and moved into place, so that no half of a skill is ever seen. The chat's own directory is never made here.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use foreword_sandbox::SkillsDirectory;
use rustix::fs::{FlockOperation, flock};

use super::{Group, Skill, local};

/// What lies in the directory of a chat's skills: `public/NAME identity` a line.
const MANIFEST: &str = "manifest";
/// Locked by who changes anything.
const LOCK: &str = "lock";
/// Where skills are made before they are moved into place.
const MAKING: &str = "making";

/// Another value after each change of what is shown, by whichever process.
pub(super) type Stamp = (u64, u64, i64, i64);

/// The stamp of what is shown below `root`; none where nothing was yet.
pub(super) fn stamp(root: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(root.join(MANIFEST)).ok()?;
    let (time, nanoseconds) = (metadata.mtime(), metadata.mtime_nsec());
    Some((metadata.ino(), metadata.len(), time, nanoseconds))
}

/// The directories that the sandbox sees.
pub(super) fn directories(root: &Path) -> Vec<SkillsDirectory> {
    let directory = |group: Group| SkillsDirectory {
        name: group.as_str().to_owned(),
        host: root.join(group.as_str()),
    };
    [Group::Public, Group::User].map(directory).to_vec()
}

/// Makes the directories below `root` hold these skills, and no others; of one place the last counts. What of it fails is told, and
/// left out.
pub(super) fn show(skills: &[Arc<Skill>], root: &Path) -> io::Result<(Vec<String>, Option<Stamp>)> {
    make(root)?;
    for group in [Group::Public, Group::User] {
        make(&root.join(group.as_str()))?;
    }
    // Another process on the same data may be at it.
    let lock = fs::File::create(root.join(LOCK))?;
    flock(&lock, FlockOperation::LockExclusive)?;
    let manifest = root.join(MANIFEST);
    let before = read_manifest(&manifest);
    let before_count = before.len();
    let wanted: BTreeMap<String, &Skill> = skills
        .iter()
        .map(|skill| (format!("{}/{}", skill.group.as_str(), skill.name), &**skill))
        .collect();
    let is_as_wanted = |key: &str, identity: &str| {
        wanted
            .get(key)
            .is_some_and(|skill| skill.identity == identity)
            && root.join(key).is_dir()
    };
    let mut there: BTreeMap<String, String> = before
        .into_iter()
        .filter(|(key, identity)| is_as_wanted(key, identity))
        .collect();
    // Before anything changes: who is interrupted begins with these.
    if there.len() < before_count {
        write_manifest(&manifest, &there)?;
    }
    for stray in strays(root, &there.keys().cloned().collect())? {
        remove(&stray, root)?;
    }
    let mut failed = Vec::new();
    for (key, skill) in wanted {
        if there.contains_key(&key) {
            continue;
        }
        let making = root.join(MAKING);
        let _ = fs::remove_dir_all(&making);
        let made = copy(&skill.directory, &making)
            .and_then(|()| fs::rename(&making, root.join(&key)).map_err(|error| error.to_string()));
        match made {
            Ok(()) => {
                there.insert(key, skill.identity.clone());
            }
            Err(why) => failed.push(format!("the skill `{}` cannot be shown: {why}", skill.name)),
        }
    }
    write_manifest(&manifest, &there)?;
    Ok((failed, stamp(root)))
}

/// What lies in the groups' directories beside `known`.
fn strays(root: &Path, known: &BTreeSet<String>) -> io::Result<Vec<PathBuf>> {
    let mut strays = Vec::new();
    for group in [Group::Public, Group::User] {
        for entry in fs::read_dir(root.join(group.as_str()))? {
            let entry = entry?;
            let key = format!("{}/{}", group.as_str(), entry.file_name().to_string_lossy());
            if !known.contains(&key) {
                strays.push(entry.path());
            }
        }
    }
    Ok(strays)
}

/// Takes a skill away at once, and then apart.
fn remove(path: &Path, root: &Path) -> io::Result<()> {
    let making = root.join(MAKING);
    let _ = fs::remove_dir_all(&making);
    fs::rename(path, &making)?;
    fs::remove_dir_all(&making)
}

/// Makes `to` what `from` is.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error: io::Error| error.to_string();
    make(to).map_err(failed)?;
    let mut folders = BTreeSet::new();
    for (path, metadata) in local::members(from)? {
        let (source, target) = (from.join(&path), to.join(&path));
        let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
        // The last is the skill itself.
        above.pop();
        while let Some(folder) = above.pop() {
            if folders.insert(folder.to_owned()) {
                make(&to.join(folder)).map_err(failed)?;
            }
        }
        // A link has the rights of the file itself. The sandbox's user may be its owner, of its group, or neither, so all three have to
        // be able to read it; one with setuid, setgid or the sticky bit is never linked.
        let is_open = metadata.mode() & 0o444 == 0o444 && metadata.mode() & 0o7000 == 0;
        if is_open && fs::hard_link(&source, &target).is_ok() {
            continue;
        }
        let mut file = local::open(&source).map_err(failed)?;
        let mut copied = fs::File::create_new(&target).map_err(failed)?;
        io::copy(&mut file, &mut copied).map_err(failed)?;
        let mode = if metadata.mode() & 0o111 == 0 {
            0o644
        } else {
            0o755
        };
        copied
            .set_permissions(Permissions::from_mode(mode))
            .map_err(failed)?;
    }
    Ok(())
}

/// Makes a directory that others may look into, whatever the umask. Never those above it: a chat that is deleted stays so.
fn make(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o755).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => fs::set_permissions(path, Permissions::from_mode(0o755)),
    }
}

fn read_manifest(path: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines
        .map(|(key, identity)| (key.to_owned(), identity.to_owned()))
        .collect()
}

fn write_manifest(path: &Path, there: &BTreeMap<String, String>) -> io::Result<()> {
    let mut text = String::new();
    for (key, identity) in there {
        let _ = writeln!(text, "{key} {identity}");
    }
    // At once: a full disk must not leave half of it.
    let beside = path.with_extension("new");
    fs::write(&beside, text)?;
    fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_made_where_the_chat_is_gone() {
        let place = tempfile::tempdir().unwrap();
        let gone = place.path().join("chat");
        assert!(show(&[], &gone.join("skills")).is_err());
        assert!(!gone.exists());
    }

    #[test]
    fn folders_within_a_skill_can_be_looked_into_whatever_lies_in_them() {
        let place = tempfile::tempdir().unwrap();
        let skill = place.path().join("skill");
        fs::create_dir_all(skill.join("a/b/c")).unwrap();
        fs::write(skill.join("a/b/c/file"), "x").unwrap();
        for folder in ["a", "a/b", "a/b/c"] {
            fs::set_permissions(skill.join(folder), Permissions::from_mode(0o700)).unwrap();
        }
        let shown = place.path().join("shown");
        copy(&skill, &shown).unwrap();
        for folder in ["", "a", "a/b", "a/b/c"] {
            let mode = shown.join(folder).metadata().unwrap().mode();
            assert_eq!(mode & 0o777, 0o755, "{folder}");
        }
    }
}
