//! Works on files as the sandbox's user, in a process of its own, and answers over a socket.
//!
//! Links lead to what the sandbox sees, so they cannot lead out. What is not a regular file is never read or written: a pipe
//! would make the reader wait for ever.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{
            fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
            net::UnixStream,
        },
    },
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::fs::{AtFlags, CWD};

use crate::{
    error::{FileError, NotFound},
    files::{Entry, FileKind, FileStat, InsteadOf, ListDirectory, Listing, ReadFile, Written},
    operation::{FileAnswer, FileOperation, FileReply},
    spec::HOME,
};

/// The most entries of a listing.
const MOST_ENTRIES: u32 = 10_000;
/// The most that is read of a file whose size is not known.
const MOST_UNSIZED_BYTES: u64 = 16 << 20;
/// The most names of the nearest parent.
const MOST_NAMES: usize = 200;

/// Runs in the child; the result is its status.
pub(crate) fn work(operation: FileOperation, channel: OwnedFd) -> i32 {
    let mut channel = UnixStream::from(channel);
    let done = super::command::enter_home().and_then(|()| match operation {
        FileOperation::Read(read) => match open(&read) {
            Ok((stat, content, bytes)) => {
                answer(&mut channel, &Ok(FileAnswer::Read { stat, bytes }))?;
                match content {
                    Content::File(file) => {
                        io::copy(&mut file.take(bytes), &mut channel).map(|_| ())
                    }
                    Content::Bytes(bytes) => channel.write_all(&bytes),
                }
            }
            Err(error) => answer(&mut channel, &Err(explain(&read.path, &error))),
        },
        FileOperation::Write {
            path,
            instead_of,
            mode,
            bytes,
        } => {
            if instead_of == InsteadOf::Anything {
                // What does not work out is said by the write itself.
                let _ = make_way(&path);
            }
            let written = write(&path, mode, bytes, &mut channel);
            answer(
                &mut channel,
                &written
                    .map(FileAnswer::Written)
                    .map_err(|error| explain(&path, &error)),
            )
        }
        FileOperation::List(list) => {
            let listing = list_directory(&list);
            answer(
                &mut channel,
                &listing
                    .map(FileAnswer::Listing)
                    .map_err(|error| explain(&list.path, &error)),
            )
        }
        FileOperation::Stat(path) => {
            let stat = fs::metadata(&path).map(|metadata| stat(&metadata));
            answer(
                &mut channel,
                &stat
                    .map(FileAnswer::Stat)
                    .map_err(|error| explain(&path, &error)),
            )
        }
    });
    i32::from(done.is_err())
}

fn answer(channel: &mut UnixStream, reply: &FileReply) -> io::Result<()> {
    let bytes = serde_json::to_vec(reply)?;
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    channel.write_all(&length.to_be_bytes())?;
    channel.write_all(&bytes)
}

/// What is to be read.
enum Content {
    File(File),
    /// Read already, since its size is not known before: that of most files in `/proc` is said to be 0.
    Bytes(Vec<u8>),
}

/// Opens what is to be read, at the right place; of a directory there is nothing to read.
fn open(read: &ReadFile) -> io::Result<(FileStat, Content, u64)> {
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(&read.path)?;
    let stat = stat(&file.metadata()?);
    match stat.kind {
        FileKind::Directory => Ok((stat, Content::Bytes(Vec::new()), 0)),
        FileKind::File => {
            file.seek(SeekFrom::Start(read.offset))?;
            if stat.size == 0 {
                let mut bytes = Vec::new();
                let most = read.limit.min(MOST_UNSIZED_BYTES);
                file.take(most).read_to_end(&mut bytes)?;
                let count = bytes.len() as u64;
                return Ok((stat, Content::Bytes(bytes), count));
            }
            let bytes = stat.size.saturating_sub(read.offset).min(read.limit);
            Ok((stat, Content::File(file), bytes))
        }
        FileKind::Link | FileKind::Special => Err(not_a_file()),
    }
}

/// Takes away what keeps a file from being written under this very name.
fn make_way(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent()
        && let Ok(metadata) = fs::metadata(parent)
        && metadata.is_dir()
        && metadata.mode() & 0o700 != 0o700
    {
        let mode = fs::Permissions::from_mode(metadata.mode() | 0o700);
        fs::set_permissions(parent, mode)?;
    }
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_dir() {
        // Somebody may have taken the small numbers to be in the way for ever.
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let large = now.map_or(0, |now| now.as_nanos());
        for number in (1..100).chain(large..large + 100) {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".moved-{number}"));
            if fs::symlink_metadata(&name).is_err() {
                return fs::rename(path, name);
            }
        }
    } else if !metadata.is_file() || metadata.mode() & 0o200 == 0 {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// Writes beside the file and renames over it.
fn write(
    path: &Path,
    mode: Option<u32>,
    bytes: u64,
    content: &mut UnixStream,
) -> io::Result<Written> {
    // A link is followed here, since renaming would replace the link itself.
    let (target, before) = match fs::canonicalize(path) {
        Ok(target) => {
            let before = fs::metadata(&target)?;
            match stat(&before).kind {
                FileKind::File => {}
                FileKind::Directory => return Err(io::ErrorKind::IsADirectory.into()),
                FileKind::Link | FileKind::Special => return Err(not_a_file()),
            }
            (target, Some(before))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => (absent_target(path)?, None),
        Err(error) => return Err(error),
    };
    let mode = mode.unwrap_or_else(|| before.as_ref().map_or(0o644, Metadata::mode)) & 0o777;
    let directory = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(directory)?;
    if let Some(before) = &before
        && before.mode() & 0o200 == 0
        && mode & 0o200 == 0
    {
        // Renaming would get round it.
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let part = PartFile::new(directory)?;
    let copied = io::copy(&mut content.take(bytes), &mut &part.file)?;
    if copied != bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    part.file
        .set_permissions(fs::Permissions::from_mode(mode))?;
    part.rename_to(&target)?;
    Ok(Written {
        created: before.is_none(),
        mode,
    })
}

/// Where a file will be that is not there: a link that leads nowhere yet is followed once, as opening it would.
fn absent_target(path: &Path) -> io::Result<PathBuf> {
    let path = Path::new(HOME).join(path);
    match fs::read_link(&path) {
        Ok(target) => {
            let target = path.parent().unwrap_or(Path::new("/")).join(target);
            if fs::symlink_metadata(&target).is_ok() {
                return Err(io::Error::from_raw_os_error(libc::ELOOP));
            }
            Ok(target)
        }
        Err(_) => Ok(path),
    }
}

/// A file without a name, so that nothing remains of it should the sandbox be killed; where the file system has no such files, under
/// a name that goes with it.
struct PartFile {
    file: File,
    directory: PathBuf,
    name: Option<PathBuf>,
}

impl PartFile {
    fn new(directory: &Path) -> io::Result<Self> {
        let nameless = OpenOptions::new()
            .write(true)
            .mode(0o600)
            .custom_flags(libc::O_TMPFILE)
            .open(directory);
        let (file, name) = match nameless {
            Ok(file) => (file, None),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {
                let create = |path: &Path| {
                    let mut options = OpenOptions::new();
                    options.write(true).create_new(true).mode(0o600).open(path)
                };
                let (file, path) = under_free_name(directory, create)?;
                (file, Some(path))
            }
            Err(error) => return Err(error),
        };
        Ok(Self {
            file,
            directory: directory.to_owned(),
            name,
        })
    }

    fn rename_to(mut self, target: &Path) -> io::Result<()> {
        if self.name.is_none() {
            let (file, follow) = (self.file.as_raw_fd(), AtFlags::SYMLINK_FOLLOW);
            let file = format!("/proc/self/fd/{file}");
            let link = |path: &Path| Ok(rustix::fs::linkat(CWD, &file, CWD, path, follow)?);
            let ((), name) = under_free_name(&self.directory, link)?;
            self.name = Some(name);
        }
        if let Some(name) = &self.name {
            fs::rename(name, target)?;
        }
        self.name = None;
        Ok(())
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = fs::remove_file(name);
        }
    }
}

/// Makes something in `directory` under a name that nothing has there.
fn under_free_name<T>(
    directory: &Path,
    make: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(T, PathBuf)> {
    let process = std::process::id();
    for number in 0..100 {
        let path = directory.join(format!(".foreword-part-{process}-{number}"));
        match make(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => return other.map(|made| (made, path)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Lists level by level, so that a bound leaves out what is deepest, then sorts.
fn list_directory(list: &ListDirectory) -> io::Result<Listing> {
    let most = list.max_entries.min(MOST_ENTRIES) as usize;
    let mut listing = Listing {
        entries: Vec::new(),
        truncated: false,
    };
    let mut found: Vec<(PathBuf, Entry)> = Vec::new();
    let mut waiting = VecDeque::from([(PathBuf::new(), 1)]);
    'levels: while let Some((relative, level)) = waiting.pop_front() {
        let entries = match fs::read_dir(list.path.join(&relative)) {
            Ok(entries) => entries,
            Err(error) if level == 1 => return Err(error),
            Err(_) => continue,
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if !list.hidden && is_hidden(&name) {
                continue;
            }
            if found.len() == most {
                listing.truncated = true;
                break 'levels;
            }
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            let (kind, path) = (kind(&metadata), relative.join(name));
            let size = if kind == FileKind::File {
                metadata.len()
            } else {
                0
            };
            found.push((
                path.clone(),
                Entry {
                    path: path.to_string_lossy().into_owned(),
                    kind,
                    size,
                },
            ));
            if kind == FileKind::Directory && level < list.depth {
                waiting.push_back((path, level + 1));
            }
        }
    }
    // Compared segment by segment, a directory comes right before what is in it.
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    listing.entries = found.into_iter().map(|(_, entry)| entry).collect();
    Ok(listing)
}

fn is_hidden(name: &OsString) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

pub(crate) fn stat(metadata: &Metadata) -> FileStat {
    FileStat {
        kind: kind(metadata),
        size: metadata.len(),
        mode: metadata.mode() & 0o7777,
        changed: metadata.ctime() * 1_000_000_000 + metadata.ctime_nsec(),
    }
}

fn kind(metadata: &Metadata) -> FileKind {
    let kind = metadata.file_type();
    if kind.is_file() {
        FileKind::File
    } else if kind.is_dir() {
        FileKind::Directory
    } else if kind.is_symlink() {
        FileKind::Link
    } else {
        FileKind::Special
    }
}

/// Marks an error as that of a pipe, socket or device.
fn not_a_file() -> io::Error {
    io::Error::from_raw_os_error(libc::ENXIO)
}

fn explain(path: &Path, error: &io::Error) -> FileError {
    let full = Path::new(HOME).join(path);
    match error.raw_os_error() {
        Some(libc::ENXIO | libc::ENODEV) => return FileError::NotAFile(full),
        Some(libc::ELOOP) => {
            return FileError::InvalidPath {
                path: full,
                reason: "too many links".to_owned(),
            };
        }
        Some(libc::ENAMETOOLONG) => {
            return FileError::InvalidPath {
                path: full,
                reason: "a name is too long".to_owned(),
            };
        }
        Some(libc::EISDIR) => return FileError::IsADirectory(full),
        Some(libc::EDQUOT) => return FileError::NoSpace(full),
        _ => {}
    }
    match error.kind() {
        io::ErrorKind::NotFound => FileError::NotFound(not_found(full)),
        io::ErrorKind::NotADirectory => FileError::NotADirectory(full),
        io::ErrorKind::IsADirectory => FileError::IsADirectory(full),
        io::ErrorKind::ReadOnlyFilesystem => FileError::ReadOnly(full),
        io::ErrorKind::PermissionDenied => FileError::Denied(full),
        io::ErrorKind::StorageFull | io::ErrorKind::FileTooLarge => FileError::NoSpace(full),
        io::ErrorKind::UnexpectedEof => FileError::Interrupted(full),
        io::ErrorKind::InvalidInput => FileError::InvalidPath {
            path: full,
            reason: "it holds a NUL".to_owned(),
        },
        _ => FileError::Other {
            path: full,
            reason: error.to_string(),
        },
    }
}

fn not_found(path: PathBuf) -> NotFound {
    let nearest = path
        .ancestors()
        .skip(1)
        .find(|parent| parent.is_dir())
        .unwrap_or(Path::new("/"))
        .to_owned();
    let names = fs::read_dir(&nearest).into_iter().flatten().flatten();
    let mut names: Vec<_> = names
        .take(10_000)
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names.truncate(MOST_NAMES);
    NotFound {
        path,
        nearest,
        names,
    }
}
