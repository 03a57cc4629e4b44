//! Which sandbox is meant, and what of the host it sees.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

/// Home and working directory of the sandbox's user, as the sandbox sees it.
pub const HOME: &str = "/home/assistant";
/// Files that the user uploaded; read only.
pub const UPLOADS: &str = "/mnt/user-data/uploads";
/// Files for the user.
pub const OUTPUTS: &str = "/mnt/user-data/outputs";
/// Above the directories of skills; read only.
pub const SKILLS: &str = "/mnt/skills";

/// Names one sandbox: a word that is safe as a directory name, chosen by the caller, the same for the same chat for ever.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SandboxKey(String);

impl SandboxKey {
    /// Takes `word` if it is 1 to 200 bytes of ASCII letters, digits, `-`, `_`, `.`, `@`, `+`, and does not start with a dot.
    #[must_use]
    pub fn new(word: impl Into<String>) -> Option<Self> {
        let word = word.into();
        let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@+".contains(&byte);
        let fits =
            (1..=200).contains(&word.len()) && !word.starts_with('.') && word.bytes().all(safe);
        fits.then_some(Self(word))
    }

    /// The word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SandboxKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What is asked for: the sandbox of one chat. The directories exist before it is asked for.
///
/// What changes in a directory is seen at once. If home, outputs or uploads are other directories than those that the sandbox was
/// started with, it is started again; other skills count from the next start. A directory of skills may be missing: it is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxSpec {
    /// Which chat.
    pub key: SandboxKey,
    /// On the host: seen as [`HOME`], writable.
    pub home: PathBuf,
    /// On the host: seen as [`OUTPUTS`], writable.
    pub outputs: PathBuf,
    /// On the host: seen as [`UPLOADS`].
    pub uploads: PathBuf,
    /// Seen below [`SKILLS`].
    pub skills: Vec<SkillsDirectory>,
}

impl SandboxSpec {
    /// The directories of skills that are there. Without skills all tools work still, so what is missing is left out and said.
    pub(crate) fn present_skills(&self) -> impl Iterator<Item = &SkillsDirectory> {
        self.skills.iter().filter(|skills| {
            let is_there = skills.host.is_dir();
            if !is_there {
                tracing::warn!(
                    chat = %self.key,
                    "the directory of the {} skills is missing, so they are not in the workspace: {}",
                    skills.name,
                    skills.host.display()
                );
            }
            is_there
        })
    }
}

/// A directory with skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillsDirectory {
    /// Its name below [`SKILLS`], such as `public`; one path segment of `[a-z0-9-]`.
    pub name: String,
    /// Where it is on the host.
    pub host: PathBuf,
}

/// Which directories a workspace is made of. Deleted and made again under the same name, they are others: what is mounted is
/// the deleted ones, in which nothing can be made any more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Directories([Option<Identity>; 3]);

/// Device, number, and when it was made, in nanoseconds since 1970 as far as that is known.
type Identity = (u64, u64, u128);

impl Directories {
    pub(crate) fn of(spec: &SandboxSpec) -> Self {
        Self([&spec.home, &spec.outputs, &spec.uploads].map(|path| identity(path)))
    }
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(path).ok()?;
    // A number is soon given to another directory if nobody holds the old one.
    let made = metadata.created().ok();
    let made = made.and_then(|made| made.duration_since(UNIX_EPOCH).ok());
    let made = made.map_or(0, |made| made.as_nanos());
    Some((metadata.dev(), metadata.ino(), made))
}

/// Elsewhere nobody deletes a directory that is in use.
#[cfg(not(unix))]
fn identity(path: &Path) -> Option<Identity> {
    std::fs::metadata(path).ok().map(|_| (0, 0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_harmless_path_segment() {
        for good in ["a", "chat-1", "x.y@z+1", &"k".repeat(200)] {
            assert!(SandboxKey::new(good).is_some(), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            ".hidden",
            "a/b",
            "a\nb",
            "a b",
            "ü",
            "a\0",
            &"k".repeat(201),
        ] {
            assert!(SandboxKey::new(bad).is_none(), "{bad:?}");
        }
    }
}
