//! The key that capability links are signed with: 32 random bytes in the data directory, for its owner only.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::Context;

use crate::{
    failure::{Exit, Failure},
    private,
};

/// The key itself.
pub(crate) type LinkKey = [u8; 32];

const FILE: &str = "link.key";

/// The key of the data directory, made on first use.
pub(crate) fn of(data_dir: &Path) -> anyhow::Result<LinkKey> {
    let path = path(data_dir);
    let bytes = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match new_file(data_dir)?.persist_noclobber(&path) {
                Ok(_) => {}
                // Of two processes that start at once, one makes the key that both use.
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.error).with_context(|| could_not("make", &path)),
            }
            fs::read(&path)
        }
        result => result,
    };
    let bytes = bytes.with_context(|| could_not("read", &path))?;
    Ok(parse(bytes, &path)?)
}

/// Refuses what [`of`] refuses; whether there is a key comes back, and none is made.
pub(crate) fn look(data_dir: &Path) -> anyhow::Result<bool> {
    let path = path(data_dir);
    match fs::read(&path) {
        Ok(bytes) => {
            parse(bytes, &path)?;
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| could_not("read", &path)),
    }
}

fn parse(bytes: Vec<u8>, path: &Path) -> Result<LinkKey, Failure> {
    LinkKey::try_from(bytes).map_err(|_| {
        Failure::new(
            Exit::Unusable,
            format!("`{}` is not a link key", path.display()),
        )
        .hint("`foreword links rotate` makes a new one; links handed out before stop working")
    })
}

/// Makes a new key: links signed with the old one stop working.
pub(crate) fn rotate(data_dir: &Path) -> anyhow::Result<()> {
    let path = path(data_dir);
    private::make_directory(data_dir).with_context(|| could_not("make", data_dir))?;
    let made = new_file(data_dir)?.persist(&path);
    made.map_err(|error| error.error)
        .with_context(|| could_not("replace", &path))?;
    Ok(())
}

/// A key that is written nowhere.
pub(crate) fn random() -> anyhow::Result<LinkKey> {
    let mut key = LinkKey::default();
    getrandom::fill(&mut key).context("the operating system gave no random bytes")?;
    Ok(key)
}

/// A new key in a file that only its owner can read, not yet under its name.
fn new_file(data_dir: &Path) -> anyhow::Result<tempfile::NamedTempFile> {
    let key = random()?;
    private::unnamed(data_dir, &key).with_context(|| could_not("make", &path(data_dir)))
}

fn path(data_dir: &Path) -> PathBuf {
    data_dir.join(FILE)
}

fn could_not(what: &str, path: &Path) -> String {
    format!("could not {what} `{}`", path.display())
}
