//! Files of a sandbox: what is asked for, and what comes back.
//!
//! Paths are as the sandbox sees them, relative ones are below its home. All of this is done inside the sandbox and as its
//! user, so a symbolic link leads to what the sandbox sees there and nowhere else.

use std::{fs::File, io, path::PathBuf};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncSeekExt};

/// Asks for a file, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadFile {
    /// Which.
    pub path: PathBuf,
    /// The first byte wanted.
    pub offset: u64,
    /// The most bytes wanted.
    pub limit: u64,
}

/// A file, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRead {
    /// About the whole file.
    pub stat: FileStat,
    /// The bytes from the offset on; fewer than asked for at the end of the file, and always for a directory.
    pub bytes: Bytes,
}

/// Asks to create or replace a file.
///
/// It is replaced in one step, so no reader sees a half. Parents are made.
#[derive(Debug)]
pub struct WriteFile {
    /// Which.
    pub path: PathBuf,
    /// What happens to something else that is there.
    pub instead_of: InsteadOf,
    /// Permission bits; `None` keeps those of the file replaced, and is 0644 for a new one.
    pub mode: Option<u32>,
    /// What it will hold.
    pub content: Content,
}

/// What a new file may take the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum InsteadOf {
    /// Of a regular file. A link is followed: what it points to is replaced.
    File,
    /// Of whatever has the name: a link itself goes, a directory is renamed, and a parent that may not be written to is made
    /// so, if the sandbox's user may do that.
    Anything,
}

/// What a file will hold.
#[derive(Debug)]
pub enum Content {
    /// These bytes.
    Bytes(Bytes),
    /// What this file on the host holds, from its start; for what is too large for memory.
    File(File),
}

impl Content {
    /// Reads it from its start.
    pub(crate) async fn reader(&mut self) -> io::Result<Box<dyn AsyncRead + Send + Unpin + '_>> {
        Ok(match self {
            Self::Bytes(bytes) => Box::new(&bytes[..]),
            Self::File(file) => {
                let mut file = tokio::fs::File::from_std(file.try_clone()?);
                file.rewind().await?;
                Box::new(file)
            }
        })
    }
}

/// A file was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Whether there was none before.
    pub created: bool,
    /// Its permission bits.
    pub mode: u32,
}

/// Asks what is in a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListDirectory {
    /// Which.
    pub path: PathBuf,
    /// How many levels; 1 is the directory itself.
    pub depth: u32,
    /// The most entries; at most 10,000 are given.
    pub max_entries: u32,
    /// Whether names that start with a dot are wanted.
    pub hidden: bool,
}

/// What is in a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// Sorted by name, each directory before what is in it.
    pub entries: Vec<Entry>,
    /// There are more than were asked for.
    pub truncated: bool,
}

/// One name in a directory. Links are not followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Relative to the directory asked for; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// What it is.
    pub kind: FileKind,
    /// Bytes of a regular file, else 0.
    pub size: u64,
}

/// About a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStat {
    /// What it is, after links.
    pub kind: FileKind,
    /// Bytes; 0 also for files of the kernel that do not know, such as those of `/proc`.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// When its content or anything else about it last changed, in nanoseconds since 1970. Unlike the time of modification,
    /// nothing inside the sandbox can set it.
    pub changed: i64,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link; only where links are not followed.
    Link,
    /// A pipe, socket or device.
    Special,
}
