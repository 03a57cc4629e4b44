//! The files of a skill with their hashes, for clients that check what they read.

use std::{
    io::{self, Read},
    path::Path,
};

use sha2::{Digest, Sha256};

use super::local;

/// The most files that are listed.
const MAX_FILES: usize = 512;

/// The most bytes that are hashed.
const MAX_BYTES: u64 = 16 << 20;

/// How much of a file is in memory at a time.
const PIECE: usize = 64 << 10;

/// The files of a skill.
#[derive(Debug)]
pub(crate) struct Manifest {
    /// In order of their paths; none where there are too many to hash.
    pub(crate) files: Option<Vec<File>>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct File {
    /// Within the skill, with `/` between its segments.
    pub(crate) path: String,
    /// `sha256:` and 64 hex digits.
    pub(crate) digest: String,
    /// In bytes.
    pub(crate) size: u64,
}

impl Manifest {
    /// Reads all files of the skill in `directory`; a name that is no text is not among them.
    pub(super) fn of(directory: &Path) -> Option<Self> {
        let members = local::members(directory).ok()?;
        let bytes: u64 = members.iter().map(|(_, metadata)| metadata.len()).sum();
        if members.len() > MAX_FILES || bytes > MAX_BYTES {
            return Some(Self { files: None });
        }
        let mut files = Vec::new();
        let mut piece = vec![0; PIECE];
        for (path, _) in members {
            let Some(name) = path.to_str() else { continue };
            let file = local::open(&directory.join(&path)).ok()?;
            let (digest, size) = hash(file.take(MAX_BYTES), &mut piece).ok()?;
            files.push(File {
                path: name.to_owned(),
                digest,
                size,
            });
        }
        Some(Self { files: Some(files) })
    }
}

/// The digest of what can be read, and how much that is.
fn hash(mut file: impl Read, piece: &mut [u8]) -> io::Result<(String, u64)> {
    let mut hasher = Sha256::new();
    let mut size = 0;
    loop {
        let count = match file.read(piece) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(&piece[..count]);
        size += count as u64;
    }
    let digest = format!("sha256:{}", hex::encode(hasher.finalize()));
    Ok((digest, size))
}
