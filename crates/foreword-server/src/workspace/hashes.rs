//! MD5 of uploads, kept beside them by size and time, so that no file is read twice.

use std::{
    fs,
    io::{self, Read},
    os::unix::{ffi::OsStrExt, fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

use indexmap::IndexMap;
use jiff::Timestamp;
use md5::Md5;
use sha2::{Digest, Sha256};

use super::{
    Workspace,
    files::{self, DotFiles},
    layout,
};

/// Holds one small file for each upload.
const HASHES: &str = "hashes";

/// How much of a file is read at a time.
const CHUNK: usize = 256 << 10;

/// The MD5 of each upload, by name.
pub(crate) fn manifest(workspace: &Workspace) -> io::Result<IndexMap<String, String>> {
    let listing = files::list(&workspace.uploads, DotFiles::Listed)?.by_name();
    let mut manifest = IndexMap::new();
    for entry in listing.files {
        let kept = kept(workspace, &entry.path, entry.size, entry.modified)?;
        let md5 = match kept {
            Some(md5) => md5,
            None => match compute(workspace, &entry.path)? {
                Some(md5) => md5,
                None => continue,
            },
        };
        manifest.insert(entry.path.to_string_lossy().into_owned(), md5);
    }
    Ok(manifest)
}

/// Keeps the hash of the file as it is now.
pub(super) fn remember(workspace: &Workspace, path: &Path, md5: &str) -> io::Result<()> {
    let metadata = workspace.uploads.symlink_metadata(path)?;
    keep(
        workspace,
        path,
        metadata.len(),
        files::modified(&metadata),
        md5,
    )
}

pub(super) fn forget(workspace: &Workspace, path: &Path) -> io::Result<()> {
    match fs::remove_file(place(workspace, path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn compute(workspace: &Workspace, path: &Path) -> io::Result<Option<String>> {
    let Some(mut opened) = files::open(&workspace.uploads, path)? else {
        return Ok(None);
    };
    let mut md5 = Md5::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = opened.file.read(&mut chunk)?;
        if count == 0 {
            break;
        }
        md5.update(&chunk[..count]);
    }
    let md5 = hex::encode(md5.finalize());
    keep(workspace, path, opened.size, opened.modified, &md5)?;
    Ok(Some(md5))
}

fn kept(
    workspace: &Workspace,
    path: &Path,
    size: u64,
    modified: Timestamp,
) -> io::Result<Option<String>> {
    match fs::read_to_string(place(workspace, path)) {
        Ok(text) => {
            let md5 = text.strip_prefix(&state(size, modified));
            Ok(md5.filter(|md5| md5.len() == 32).map(str::to_owned))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn keep(
    workspace: &Workspace,
    path: &Path,
    size: u64,
    modified: Timestamp,
    md5: &str,
) -> io::Result<()> {
    layout::make_private(&workspace.path.join(HASHES))?;
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(place(workspace, path))?;
    io::Write::write_all(
        &mut file,
        format!("{}{md5}", state(size, modified)).as_bytes(),
    )
}

/// Names can be longer than those of files may be, so their hash stands for them.
fn place(workspace: &Workspace, path: &Path) -> PathBuf {
    let digest = Sha256::digest(path.as_os_str().as_bytes());
    workspace.path.join(HASHES).join(hex::encode(digest))
}

fn state(size: u64, modified: Timestamp) -> String {
    format!("{size} {} ", modified.as_nanosecond())
}
