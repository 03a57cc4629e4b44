//! Skills that came as archives, unpacked and kept by the hash of their bytes: what is there never changes, and two users' skills of
//! one name never meet.

use std::{
    collections::HashSet,
    fs::{self, DirEntry, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use moka::{policy::EvictionPolicy, sync::Cache as Moka};
use tempfile::TempDir;

use super::{
    archive::{self, ArchiveFault},
    front_matter::FrontMatter,
    local::{self, LocalSkill},
    name::SkillName,
};

/// Nothing takes so long to receive or unpack.
const HALF_DONE: Duration = Duration::from_hours(1);

/// How old an archive is at least that is removed because nobody has it: who has it may not have been written down yet.
const UNUSED: Duration = Duration::from_hours(24);

/// The directory of unpacked archives.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    root: PathBuf,
    /// What SKILL.md of each says, shared by all users that have it.
    known: Moka<Digest, Arc<FrontMatter>>,
}

/// What the names of files begin with that are being received.
const RECEIVING: &str = ".receiving-";

/// What the names of directories begin with that are being unpacked, or removed.
const UNPACKING: &str = ".unpacking-";

/// What the identity of a skill begins with that is known by its archive's hash.
const IDENTITY: &str = "sha256-";

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

    /// That of the archive which a kept skill was.
    pub(super) fn of_identity(identity: &str) -> Option<Self> {
        Self::parse(identity.strip_prefix(IDENTITY)?)
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

    /// A file to receive an archive in, nameless, and the same one to read it from its beginning.
    pub(super) async fn receive(&self) -> io::Result<(File, File)> {
        let root = self.root.clone();
        on_a_thread(move || {
            fs::create_dir_all(&root)?;
            let receiving = tempfile::Builder::new()
                .prefix(RECEIVING)
                .tempfile_in(&root)?;
            Ok((receiving.reopen()?, receiving.reopen()?))
        })
        .await?
    }

    /// The skill of an archive that is there already.
    pub(super) async fn find(&self, name: &SkillName, digest: &Digest) -> Option<LocalSkill> {
        let (cache, name, digest) = (self.clone(), name.clone(), digest.clone());
        on_a_thread(move || cache.look_up(&name, &digest))
            .await
            .ok()?
    }

    /// Unpacks an archive whose bytes have that hash. What is refused leaves nothing behind.
    pub(super) async fn keep(
        &self,
        name: &SkillName,
        digest: &Digest,
        archive: File,
    ) -> Result<LocalSkill, NotKept> {
        let (cache, name, digest) = (self.clone(), name.clone(), digest.clone());
        let unpacking = on_a_thread(move || cache.unpack(&name, &digest, &archive));
        unpacking.await.map_err(not_kept)?
    }

    /// [`Self::find`], on a thread that may block.
    pub(super) fn look_up(&self, name: &SkillName, digest: &Digest) -> Option<LocalSkill> {
        let directory = self.directory(digest);
        if !directory.is_dir() {
            return None;
        }
        let front_matter = if let Some(known) = self.known.get(digest) {
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
            identity: format!("{IDENTITY}{}", digest.as_str()),
        })
    }

    fn unpack(
        &self,
        name: &SkillName,
        digest: &Digest,
        archive: &File,
    ) -> Result<LocalSkill, NotKept> {
        if let Some(known) = self.look_up(name, digest) {
            return Ok(known);
        }
        let unpacking = tempfile::Builder::new()
            .prefix(UNPACKING)
            .tempdir_in(&self.root);
        let unpacking = unpacking.map_err(not_kept)?;
        archive::unpack(archive, unpacking.path()).map_err(|fault| match fault {
            ArchiveFault::Io(_) => NotKept::Failed(fault.to_string()),
            fault => NotKept::Refused(fault.to_string()),
        })?;
        local::read_front_matter(unpacking.path()).map_err(NotKept::Refused)?;
        place(unpacking, &self.directory(digest)).map_err(not_kept)?;
        self.look_up(name, digest)
            .ok_or_else(|| NotKept::Failed("it is gone as soon as it was kept".to_owned()))
    }

    /// Removes what an earlier process left half done, and what none of `wanted` is; what is young may be another process's work.
    pub(super) fn tidy(&self, wanted: &HashSet<Digest>) {
        let Ok(entries) = fs::read_dir(&self.root) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(RECEIVING) && is_older(&entry, HALF_DONE) {
                let _ = fs::remove_file(entry.path());
            } else if name.starts_with(UNPACKING) && is_older(&entry, HALF_DONE) {
                let _ = fs::remove_dir_all(entry.path());
            } else if let Some(digest) = Digest::parse(&name)
                && !wanted.contains(&digest)
                && is_older(&entry, UNUSED)
            {
                self.remove(&entry.path());
            }
        }
    }

    /// Removes an archive as a whole: half of one would pass for it.
    fn remove(&self, directory: &Path) {
        let removing = tempfile::Builder::new()
            .prefix(UNPACKING)
            .tempdir_in(&self.root);
        let removed = removing.and_then(|beside| fs::rename(directory, beside.path().join("it")));
        if let Err(error) = removed {
            tracing::warn!(%error, "An archive that nobody has any more cannot be removed");
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` gives it away")]
fn not_kept(error: io::Error) -> NotKept {
    NotKept::Failed(format!("it cannot be kept: {error}"))
}

fn is_older(entry: &DirEntry, than: Duration) -> bool {
    let modified = entry.metadata().and_then(|metadata| metadata.modified());
    let age = modified.ok().and_then(|modified| modified.elapsed().ok());
    age.is_some_and(|age| age >= than)
}

/// Does `work` on a thread that may block; a failure where it panics, since what unpacks archives is not all ours.
async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, io::Error> {
    let working = tokio::task::spawn_blocking(work).await;
    working.map_err(|_| io::Error::other("reading it failed inside"))
}

/// Moves what was made into a place that its content names; another process may have been quicker, with the same bytes.
pub(super) fn place(unpacked: TempDir, directory: &Path) -> io::Result<()> {
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
