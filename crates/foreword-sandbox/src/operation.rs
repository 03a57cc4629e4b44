//! Work on files, as it is said to whoever does it inside.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{
    error::FileError,
    files::{FileStat, InsteadOf, ListDirectory, Listing, ReadFile, Written},
};

/// What is to be done. The content of a file to write comes over the socket.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum FileOperation {
    Read(ReadFile),
    Write {
        path: PathBuf,
        instead_of: InsteadOf,
        mode: Option<u32>,
        bytes: u64,
    },
    List(ListDirectory),
    Stat(PathBuf),
}

/// The answer to it, in front of which its length stands. After `Read` come that many bytes.
pub(crate) type FileReply = Result<FileAnswer, FileError>;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FileAnswer {
    Read { stat: FileStat, bytes: u64 },
    Written(Written),
    Listing(Listing),
    Stat(FileStat),
}

/// An answer, and the content that came with it.
pub(crate) struct Done {
    pub(crate) answer: FileAnswer,
    pub(crate) content: Bytes,
}

impl FileOperation {
    /// What it is about.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Read(read) => &read.path,
            Self::Write { path, .. } | Self::Stat(path) => path,
            Self::List(list) => &list.path,
        }
    }

    /// The most content that an answer may bring.
    pub(crate) fn most_content(&self) -> u64 {
        match self {
            Self::Read(read) => read.limit,
            _ => 0,
        }
    }
}
