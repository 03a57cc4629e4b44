//! Files and directories for their owner only; a file is there whole or not at all.

#[cfg(unix)]
use std::fs::File;
use std::{
    fs::DirBuilder,
    io::{self, Write},
    path::Path,
};

use tempfile::NamedTempFile;

/// Makes a directory, with those above it, if it is missing.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Writes a file that must not exist yet.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let file = unnamed(directory, bytes)?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    sync_directory(directory)
}

/// A file with its content on the disk, not yet under its name.
pub(crate) fn unnamed(directory: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let mut file = NamedTempFile::new_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    Ok(file)
}

#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Elsewhere a new name is made durable by the file system alone.
#[cfg(not(unix))]
fn sync_directory(_directory: &Path) -> io::Result<()> {
    Ok(())
}
