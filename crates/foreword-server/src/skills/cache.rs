//! Skills that came as archives, unpacked and kept by the hash of their bytes: what is there never changes, and two users' skills of
//! one name never meet.

use std::{
    fs::{self, File},
    io::{self, Seek},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use moka::{policy::EvictionPolicy, sync::Cache as Moka};
use tempfile::{NamedTempFile, TempDir};

use super::{
    archive::{self, ArchiveFault},
    front_matter::FrontMatter,
    local::{self, LocalSkill},
    name::SkillName,
};

/// Nothing takes so long to receive or unpack.
const HALF_DONE: Duration = Duration::from_hours(1);

/// The directory of unpacked archives.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    root: PathBuf,
    /// What SKILL.md of each says, shared by all users that have it.
    known: Moka<Digest, Arc<FrontMatter>>,
}

/// How much of what is known is remembered, in bytes.
const KNOWN_BYTES: u64 = 32 << 20;

/// What is known of a skill beside its own words, in bytes.
const KNOWN_OVERHEAD: usize = 512;

/// The SHA-256 of an archive, in lower-case hex digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Digest(String);

/// Why an archive is not kept.
pub(super) enum NotKept {
    /// Its bytes are not allowed, now or later.
    Refused(String),
    /// Something went wrong here that may pass, such as a full disk.
    Failed(String),
}

impl Digest {
    /// Takes 64 hex digits, in any case, with or without `sha256:` before them.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let text = text.strip_prefix("sha256:").unwrap_or(&text).to_owned();
        let is_hash = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash.then_some(Self(text))
    }

    pub(super) fn of(hash: &[u8]) -> Self {
        Self(hex::encode(hash))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Cache {
    pub(super) fn new(root: PathBuf) -> Self {
        let weigh = |_: &Digest, front_matter: &Arc<FrontMatter>| {
            // Its fields hold the description once more, and what else there is.
            let fields = serde_json::to_vec(&front_matter.fields).map_or(0, |json| json.len());
            u32::try_from(2 * fields + KNOWN_OVERHEAD).unwrap_or(u32::MAX)
        };
        Self {
            root,
            known: Moka::builder()
                .max_capacity(KNOWN_BYTES)
                .weigher(weigh)
                .eviction_policy(EvictionPolicy::lru())
                .build(),
        }
    }

    fn directory(&self, digest: &Digest) -> PathBuf {
        self.root.join(digest.as_str())
    }

    /// A file to receive an archive in.
    pub(super) fn receive(&self) -> io::Result<NamedTempFile> {
        fs::create_dir_all(&self.root)?;
        tempfile::Builder::new()
            .prefix(".receiving-")
            .tempfile_in(&self.root)
    }

    /// The skill of an archive that is there already.
    pub(super) fn find(&self, name: &SkillName, digest: &Digest) -> Option<LocalSkill> {
        let directory = self.directory(digest);
        if !directory.is_dir() {
            return None;
        }
        let known = self.known.get(digest);
        let front_matter = if let Some(known) = known {
            known
        } else {
            let read = Arc::new(local::read_front_matter(&directory).ok()?);
            self.known.insert(digest.clone(), Arc::clone(&read));
            read
        };
        Some(LocalSkill {
            name: name.clone(),
            front_matter,
            directory,
            identity: format!("sha256-{}", digest.as_str()),
        })
    }

    /// Unpacks an archive whose bytes have that hash. What is refused leaves nothing behind.
    pub(super) fn keep(
        &self,
        name: &SkillName,
        digest: &Digest,
        archive: &mut File,
    ) -> Result<LocalSkill, NotKept> {
        if let Some(known) = self.find(name, digest) {
            return Ok(known);
        }
        let failed = |error: io::Error| NotKept::Failed(format!("it cannot be kept: {error}"));
        archive.rewind().map_err(failed)?;
        let unpacking = tempfile::Builder::new()
            .prefix(".unpacking-")
            .tempdir_in(&self.root);
        let unpacking = unpacking.map_err(failed)?;
        archive::unpack(archive, unpacking.path()).map_err(|fault| match fault {
            ArchiveFault::Io(_) => NotKept::Failed(fault.to_string()),
            fault => NotKept::Refused(fault.to_string()),
        })?;
        local::read_front_matter(unpacking.path()).map_err(NotKept::Refused)?;
        place(unpacking, &self.directory(digest)).map_err(failed)?;
        self.find(name, digest)
            .ok_or_else(|| NotKept::Failed("it is gone as soon as it was kept".to_owned()))
    }

    /// Removes what an earlier process left half done; what is young may be another process's work.
    pub(super) fn tidy(&self) {
        let Ok(entries) = fs::read_dir(&self.root) else {
            return;
        };
        for entry in entries.flatten() {
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            let age = modified.ok().and_then(|modified| modified.elapsed().ok());
            if age.is_none_or(|age| age < HALF_DONE) {
                continue;
            }
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(".unpacking-") {
                let _ = fs::remove_dir_all(entry.path());
            } else if name.starts_with(".receiving-") {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Moves what was unpacked into place; somebody else may have been quicker, with the same bytes.
fn place(unpacked: TempDir, directory: &Path) -> io::Result<()> {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(unpacked.path(), mode)?;
    // What is kept is never looked at again, so it has to outlast a power cut as a whole.
    rustix::fs::syncfs(File::open(unpacked.path())?)?;
    let path = unpacked.keep();
    match fs::rename(&path, directory) {
        Ok(()) => Ok(()),
        Err(_) if directory.is_dir() => {
            let _ = fs::remove_dir_all(&path);
            Ok(())
        }
        Err(error) => {
            let _ = fs::remove_dir_all(&path);
            Err(error)
        }
    }
}
