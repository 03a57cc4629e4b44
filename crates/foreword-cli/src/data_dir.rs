//! The data directory: which version wrote it, and the key in it that links are signed with.
//!
//! Deliberately absent: the library and its history, which are the store's.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;

use crate::failure::{Exit, Failure};

/// The layout that this version reads and writes; a directory of a newer one is refused.
const VERSION: u32 = 1;

const VERSION_FILE: &str = "VERSION";
const LINK_KEY_FILE: &str = "link.key";

/// A key that links are signed with.
pub(crate) type LinkKey = [u8; 32];

/// An existing data directory of a version that we can read.
#[derive(Debug)]
pub(crate) struct DataDir {
    path: PathBuf,
}

impl DataDir {
    /// Opens the directory, which is made if it does not exist.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(path).map_err(|error| unusable(path, &error))?;
        let directory = Self {
            path: path.to_owned(),
        };
        if directory.version()?.is_none() {
            fs::write(path.join(VERSION_FILE), format!("{VERSION}\n"))
                .map_err(|error| unusable(path, &error))?;
        }
        Ok(directory)
    }

    /// Opens the directory without changing anything; none if it does not exist.
    pub(crate) fn inspect(path: &Path) -> anyhow::Result<Option<Self>> {
        let directory = Self {
            path: path.to_owned(),
        };
        directory.version()?;
        Ok(path.is_dir().then_some(directory))
    }

    /// The layout of what is there; none if nobody wrote one down.
    fn version(&self) -> Result<Option<u32>, Failure> {
        let file = self.path.join(VERSION_FILE);
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(&self.path, &error)),
        };
        match text.trim().parse() {
            Ok(version) if version <= VERSION => Ok(Some(version)),
            Ok(version) => Err(Failure::new(
                Exit::Unusable,
                format!(
                    "the data directory `{}` was written by a newer Foreword (layout {version}, this one knows {VERSION})",
                    self.path.display()
                ),
            )
            .hint("run that version, or give this one a directory of its own with `--data`")),
            Err(_) => Err(Failure::new(
                Exit::Unusable,
                format!("`{}` does not hold a version", file.display()),
            )
            .hint(format!("if the directory is Foreword's, write `{VERSION}` into it"))),
        }
    }

    /// The key that links are signed with, made on first use.
    pub(crate) fn link_key(&self) -> anyhow::Result<LinkKey> {
        let path = self.link_key_path();
        if !path.exists() {
            let made = self.new_link_key()?;
            // Of two processes that start at once, one makes the key that both use.
            if let Err(error) = made.persist_noclobber(&path)
                && error.error.kind() != io::ErrorKind::AlreadyExists
            {
                return Err(unusable(&self.path, &error.error).into());
            }
        }
        let bytes =
            fs::read(&path).with_context(|| format!("could not read `{}`", path.display()))?;
        LinkKey::try_from(bytes).map_err(|_| {
            Failure::new(
                Exit::Unusable,
                format!("`{}` is not a link key", path.display()),
            )
            .hint("`foreword links rotate` makes a new one; links handed out before stop working")
            .into()
        })
    }

    /// Makes a new key: links signed with the old one stop working.
    pub(crate) fn rotate_link_key(&self) -> anyhow::Result<()> {
        self.new_link_key()?
            .persist(self.link_key_path())
            .map_err(|error| unusable(&self.path, &error.error))?;
        Ok(())
    }

    /// A key in a file that only the owner can read, not yet under its name.
    fn new_link_key(&self) -> anyhow::Result<tempfile::NamedTempFile> {
        let mut key = LinkKey::default();
        getrandom::fill(&mut key).context("the operating system gave no random bytes")?;
        let mut file = tempfile::NamedTempFile::new_in(&self.path)
            .map_err(|error| unusable(&self.path, &error))?;
        file.write_all(&key)
            .and_then(|()| file.as_file().sync_all())
            .map_err(|error| unusable(&self.path, &error))?;
        Ok(file)
    }

    fn link_key_path(&self) -> PathBuf {
        self.path.join(LINK_KEY_FILE)
    }
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(
        Exit::Unusable,
        format!(
            "the data directory `{}` cannot be used: {error}",
            path.display()
        ),
    )
    .hint("make it writable for the user that runs Foreword, or name another with `--data`")
}
