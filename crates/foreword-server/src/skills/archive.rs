//! Decides which ZIP archives become a skill's folder, and unpacks those.
//!
//! An archive comes from outside, so nothing it says of itself is believed: bytes are counted while they are unpacked,
//! names are taken apart before anything is written, and all members are looked at before the first one is. What is
//! refused is refused whole, also for a member that would not have been unpacked. Memory is bounded: by
//! [`DIRECTORY_BYTES`] for the list of members and by [`CHUNK`] for their contents.
//!
//! Unpacked are folders and regular files with their executable bit. Deliberately absent: links (a file is made where no
//! file was, so there is never one to follow), owners, times and other permissions; and what the files say: `SKILL.md`
//! only has to be there. Whatever ends early leaves half a folder, which is the caller's to delete.

use std::{
    cell::Cell,
    collections::HashSet,
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, BufReader, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

use foreword_compose::one_line;
use zip::{CompressionMethod, ExtraField, ZipArchive, read::ZipFile, result::ZipError};

use super::local::{MAX_BYTES, MAX_MEMBERS, SKILL_MD};

#[cfg(test)]
mod tests;

/// How many bytes an archive may have.
pub(super) const PACKED_BYTES: u64 = 50 << 20;

/// How many times its own size an archive may unpack to.
const RATIO: u64 = 200;

/// Up to how many unpacked bytes [`RATIO`] is not asked for: a small archive of a long table is no bomb.
const RATIO_FLOOR: u64 = 1 << 20;

/// How many bytes the path of a member may have.
const PATH_BYTES: usize = 1_024;

/// How many bytes each name in the path of a member may have: what Linux allows.
const NAME_BYTES: usize = 255;

/// How many names the path of a member may have, its own with them.
const DEPTH: usize = 16;

/// How many bytes are read to find the members. 2,000 of them with long names need a tenth, and one that is there has
/// at least 46, so this is what bounds the memory that a list of a million members would take.
const DIRECTORY_BYTES: u64 = 4 << 20;

/// How much of a file is in memory at a time.
const CHUNK: usize = 64 << 10;

/// How many characters of a member's name are shown.
const SHOWN_NAME: usize = 128;

/// Where macOS puts what its own file system knows of the files.
const MAC_FOLDER: &str = "__MACOSX";

/// Unpacks `archive` into `into`, an existing empty directory, so that `SKILL.md` lies at its root.
///
/// `SKILL.md` is looked for at the archive's root, then in its single top folder, which is then left away. What lies at
/// the root and is called `__MACOSX`, or starts with a dot, counts for neither and is not unpacked. Bytes before and
/// after the archive are ignored, as every program does that unpacks one.
pub(super) fn unpack(archive: &File, into: &Path) -> Result<(), ArchiveFault> {
    unpack_within(archive, into, &Limits::default())
}

/// Why an archive was not unpacked, in words for who runs the server.
#[derive(Debug, thiserror::Error)]
pub(super) enum ArchiveFault {
    /// It is no ZIP, or one that ends early.
    #[error("it is not a ZIP archive, or a damaged one: {0}")]
    NotAnArchive(String),
    /// It is larger than [`PACKED_BYTES`].
    #[error("it has {size} bytes, and {limit} are allowed")]
    Packed { size: u64, limit: u64 },
    /// It has more than [`MAX_MEMBERS`].
    #[error("it has {count} members, and {limit} are allowed")]
    Members { count: usize, limit: usize },
    /// Its list of members is longer than [`DIRECTORY_BYTES`].
    #[error(
        "its list of members is longer than {DIRECTORY_BYTES} bytes: it has more than {MAX_MEMBERS} members, or far too \
         long names"
    )]
    Directory,
    /// Its paths need more folders than there may be members.
    #[error("it has more than the {limit} folders that are allowed")]
    Folders { limit: usize },
    /// It unpacks to more than [`MAX_BYTES`].
    #[error("it unpacks to more than the {limit} bytes that are allowed")]
    Unpacked { limit: u64 },
    /// It unpacks to more than [`RATIO`] times its size.
    #[error("it unpacks to more than the allowed {limit} times its size")]
    Ratio { limit: u64 },
    /// A name is not UTF-8.
    #[error("the name of its member `{0}` is not UTF-8; pack it again with names in UTF-8")]
    NotUtf8(String),
    /// A file has no name.
    #[error("one of its members has no name")]
    Unnamed,
    /// A name holds NUL, a line break or the like.
    #[error("the name of its member `{0}` holds a control character; none are allowed")]
    ControlCharacter(String),
    /// A path holds `..`.
    #[error("its member `{0}` could lie outside the skill; paths with `..` are not allowed")]
    Outside(String),
    /// A path starts with `/` or `\`.
    #[error("its member `{0}` has an absolute path; only relative ones are allowed")]
    Absolute(String),
    /// A path starts with a drive.
    #[error("its member `{0}` starts with a drive letter; only relative paths are allowed")]
    Drive(String),
    /// A path is longer than [`PATH_BYTES`].
    #[error("the path of its member `{0}` is too long; {PATH_BYTES} bytes are allowed")]
    LongPath(String),
    /// A name in a path is longer than [`NAME_BYTES`].
    #[error("a name in the path of its member `{0}` is too long; {NAME_BYTES} bytes are allowed")]
    LongName(String),
    /// A path has more names than [`DEPTH`].
    #[error("its member `{0}` lies too deep; {DEPTH} levels are allowed")]
    Deep(String),
    /// A member is a symbolic link.
    #[error(
        "its member `{0}` is a symbolic link; only regular files and folders are allowed, so pack what it points to"
    )]
    SymbolicLink(String),
    /// A member is a hard link.
    #[error(
        "its member `{0}` is a hard link; only regular files and folders are allowed, so pack what it points to"
    )]
    HardLink(String),
    /// A member is a device, a pipe or a socket.
    #[error(
        "its member `{0}` is a device, a pipe or a socket; only regular files and folders are allowed"
    )]
    Special(String),
    /// A member is encrypted.
    #[error("its member `{0}` is encrypted; pack it without a password")]
    Encrypted(String),
    /// A member is compressed in a way that is not read here.
    #[error("its member `{name}` is compressed by `{method}`; `Stored` and `Deflated` are allowed")]
    Method { name: String, method: String },
    /// Two members have the same name, byte for byte.
    #[error("two of its members have the same name")]
    SameNames,
    /// Two members would be one file.
    #[error("another of its members has the same path as `{0}`")]
    SamePaths(String),
    /// A file lies where others need a folder.
    #[error("its member `{0}` is a file, and other members lie in it as in a folder")]
    FileAndFolder(String),
    /// Two members share bytes.
    #[error("its members overlap; each must have bytes of its own")]
    Overlap,
    /// There is no `SKILL.md` where one is looked for.
    #[error("there is no `SKILL.md` in it, neither at its root nor in the only folder at its root")]
    NoSkillFile,
    /// The bytes of a member do not unpack, or to others than were packed.
    #[error("its member `{name}` is damaged: {problem}")]
    Damaged { name: String, problem: String },
    /// A member has another size than it says.
    #[error("its member `{name}` says that it has {said} bytes, but it has {held}")]
    Size { name: String, said: u64, held: u64 },
    /// The archive could not be read, or its files not be written.
    #[error("could not unpack it: {0}")]
    Io(#[from] io::Error),
}

/// What is allowed, so that tests can allow less.
struct Limits {
    packed: u64,
    members: usize,
    unpacked: u64,
    ratio: u64,
    ratio_floor: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            packed: PACKED_BYTES,
            members: MAX_MEMBERS,
            unpacked: MAX_BYTES,
            ratio: RATIO,
            ratio_floor: RATIO_FLOOR,
        }
    }
}

fn unpack_within(archive: &File, into: &Path, limits: &Limits) -> Result<(), ArchiveFault> {
    let size = archive.metadata()?.len();
    if size > limits.packed {
        let limit = limits.packed;
        return Err(ArchiveFault::Packed { size, limit });
    }
    let allowance = Cell::new(Some(DIRECTORY_BYTES));
    let reader = Source {
        file: BufReader::new(archive),
        allowance: &allowance,
    };
    let opened = ZipArchive::new(reader);
    // The crate looks for another end of the archive when reading one fails, so the error may be of something else.
    if allowance.replace(Some(u64::MAX)).is_none() {
        return Err(ArchiveFault::Directory);
    }
    let mut zip = opened.map_err(not_an_archive)?;
    if zip.len() > limits.members {
        return Err(ArchiveFault::Members {
            count: zip.len(),
            limit: limits.members,
        });
    }
    // The crate keeps only the last one.
    if zip.has_duplicate_names() {
        return Err(ArchiveFault::SameNames);
    }
    let members = (0..zip.len())
        .map(|index| Member::inspect(&mut zip, index))
        .collect::<Result<Vec<_>, _>>()?;
    refuse_conflicts(&members, limits)?;
    // Shared bytes make bombs out of small archives, and work for hours out of members that unpack to nothing.
    if zip.has_overlapping_entries().map_err(not_an_archive)? {
        return Err(ArchiveFault::Overlap);
    }

    let skill = skill_folder(&members)?;
    let mut unpacking = Unpacking {
        into,
        limits,
        packed: size,
        unpacked: 0,
        folders: HashSet::new(),
        chunk: vec![0; CHUNK],
    };
    for member in members.iter().filter(|member| !member.is_left_out()) {
        // The skill's folder itself is there already.
        let Some(path) = member.path.strip_prefix(&skill) else {
            continue;
        };
        if member.is_folder {
            unpacking.make_folders(path)?;
        } else {
            unpacking.make_file(&mut zip, member, path)?;
        }
    }
    Ok(())
}

/// The archive's bytes, of which only so many can be had.
///
/// The crate believes what an archive says of the number of its members, so it is stopped from outside.
struct Source<'a> {
    file: BufReader<&'a File>,
    /// How many bytes are left; none after more were wanted.
    allowance: &'a Cell<Option<u64>>,
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        let left = self
            .allowance
            .get()
            .and_then(|left| left.checked_sub(count as u64));
        self.allowance.set(left);
        if left.is_none() {
            return Err(io::Error::other("more is read than is allowed"));
        }
        Ok(count)
    }
}

impl Seek for Source<'_> {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}

type Zip<'a> = ZipArchive<Source<'a>>;

/// A member that may be in an archive.
struct Member {
    index: usize,
    /// For messages.
    name: String,
    /// Relative, with `/`, without `.`, `..` and empty names; empty for the root.
    path: String,
    is_folder: bool,
    is_executable: bool,
}

impl Member {
    /// Looks at what is said of the member at `index`.
    fn inspect(zip: &mut Zip<'_>, index: usize) -> Result<Self, ArchiveFault> {
        const KIND: u32 = 0o170_000;
        const REGULAR: u32 = 0o100_000;
        const FOLDER: u32 = 0o040_000;
        const SYMBOLIC_LINK: u32 = 0o120_000;

        let file = zip.by_index_raw(index).map_err(not_an_archive)?;
        let name = one_line(&String::from_utf8_lossy(file.name_raw()), SHOWN_NAME);
        // Whatever system it says it was packed on: elsewhere these bits are not set, and programs differ in whether
        // they look. The crate's own `is_symlink` also holds for sockets.
        let mode = file.external_attributes() >> 16;
        let path = relative_path(file.name_raw(), &name)?;
        let ends_as_folder = matches!(file.name_raw().last(), Some(b'/' | b'\\'));
        let is_folder = match mode & KIND {
            0 | REGULAR => ends_as_folder,
            FOLDER => true,
            SYMBOLIC_LINK => return Err(ArchiveFault::SymbolicLink(name)),
            _ => return Err(ArchiveFault::Special(name)),
        };
        if is_hard_link(&file) {
            return Err(ArchiveFault::HardLink(name));
        }
        if file.encrypted() {
            return Err(ArchiveFault::Encrypted(name));
        }
        let method = file.compression();
        if !matches!(
            method,
            CompressionMethod::Stored | CompressionMethod::Deflated
        ) {
            let method = method.to_string();
            return Err(ArchiveFault::Method { name, method });
        }
        if path.is_empty() && !is_folder {
            return Err(ArchiveFault::Unnamed);
        }
        Ok(Self {
            index,
            name,
            path,
            is_folder,
            is_executable: mode & 0o111 != 0,
        })
    }

    /// Whether it lies at the root and is no part of a skill.
    fn is_left_out(&self) -> bool {
        let top = top(&self.path);
        top == MAC_FOLDER || top.starts_with('.')
    }
}

/// Whether `file` says that it is another name for a file: after times and owner, PKWARE's field for Unix holds the
/// target of a link.
fn is_hard_link<R: Read>(file: &ZipFile<'_, R>) -> bool {
    const PKWARE_UNIX: u16 = 0x000d;
    const TIMES_AND_OWNER: usize = 12;
    file.extra_data_fields().any(|field| {
        matches!(field, ExtraField::Custom(field)
            if field.header_id == PKWARE_UNIX && field.data.len() > TIMES_AND_OWNER)
    })
}

/// The path that the bytes `raw` mean.
///
/// They are read as UTF-8 whether or not they say so, since many programs do not say it. A backslash separates, since
/// old programs on Windows write it so, and no skill means one.
fn relative_path(raw: &[u8], name: &str) -> Result<String, ArchiveFault> {
    let fault = |of: fn(String) -> ArchiveFault| Err(of(name.to_owned()));
    let Ok(text) = str::from_utf8(raw) else {
        return fault(ArchiveFault::NotUtf8);
    };
    if text.len() > PATH_BYTES {
        return fault(ArchiveFault::LongPath);
    }
    if text.chars().any(char::is_control) {
        return fault(ArchiveFault::ControlCharacter);
    }
    if text.starts_with(['/', '\\']) {
        return fault(ArchiveFault::Absolute);
    }
    if matches!(text.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic()) {
        return fault(ArchiveFault::Drive);
    }
    let names: Vec<&str> = text
        .split(['/', '\\'])
        .filter(|name| !matches!(*name, "" | "."))
        .collect();
    if names.contains(&"..") {
        return fault(ArchiveFault::Outside);
    }
    if names.iter().any(|name| name.len() > NAME_BYTES) {
        return fault(ArchiveFault::LongName);
    }
    if names.len() > DEPTH {
        return fault(ArchiveFault::Deep);
    }
    Ok(names.join("/"))
}

/// Refuses members that cannot lie beside each other.
///
/// Names that differ in case only are two files, as they are everywhere a skill is used; so are names that differ in
/// how Unicode composes them.
fn refuse_conflicts(members: &[Member], limits: &Limits) -> Result<(), ArchiveFault> {
    let mut paths = HashSet::new();
    let mut folders = HashSet::new();
    for member in members {
        if !paths.insert((member.is_folder, &*member.path)) {
            return Err(ArchiveFault::SamePaths(member.name.clone()));
        }
        folders.extend(parents(&member.path));
        if member.is_folder {
            folders.insert(&*member.path);
        }
        if folders.len() > limits.members {
            let limit = limits.members;
            return Err(ArchiveFault::Folders { limit });
        }
    }
    match members
        .iter()
        .find(|member| !member.is_folder && folders.contains(&*member.path))
    {
        Some(file) => Err(ArchiveFault::FileAndFolder(file.name.clone())),
        None => Ok(()),
    }
}

/// What the paths of the skill's files start with.
fn skill_folder(members: &[Member]) -> Result<String, ArchiveFault> {
    let has = |path: &str| {
        members
            .iter()
            .any(|member| !member.is_folder && member.path == path)
    };
    if has(SKILL_MD) {
        return Ok(String::new());
    }
    let mut tops = members
        .iter()
        .filter(|member| !member.path.is_empty() && !member.is_left_out())
        .map(|member| top(&member.path));
    let folder = tops.next().ok_or(ArchiveFault::NoSkillFile)?;
    if tops.any(|top| top != folder) || !has(&format!("{folder}/{SKILL_MD}")) {
        return Err(ArchiveFault::NoSkillFile);
    }
    Ok(format!("{folder}/"))
}

/// The first name in `path`.
fn top(path: &str) -> &str {
    path.split('/').next().unwrap_or_default()
}

/// The folders that `path` lies in, from the root.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// Files on their way out of an archive.
struct Unpacking<'a> {
    into: &'a Path,
    limits: &'a Limits,
    packed: u64,
    unpacked: u64,
    /// Those that were made.
    folders: HashSet<String>,
    chunk: Vec<u8>,
}

impl Unpacking<'_> {
    /// Makes the folder `path` and those it lies in.
    fn make_folders(&mut self, path: &str) -> Result<(), ArchiveFault> {
        const MODE: u32 = 0o755;
        for folder in parents(path).chain([path]) {
            if !folder.is_empty() && !self.folders.contains(folder) {
                let place = self.into.join(folder);
                DirBuilder::new().mode(MODE).create(&place)?;
                // The umask has nothing to say here.
                fs::set_permissions(&place, Permissions::from_mode(MODE))?;
                self.folders.insert(folder.to_owned());
            }
        }
        Ok(())
    }

    /// Makes the file `path` of what `member` holds.
    fn make_file(
        &mut self,
        zip: &mut Zip<'_>,
        member: &Member,
        path: &str,
    ) -> Result<(), ArchiveFault> {
        if let Some((folder, _)) = path.rsplit_once('/') {
            self.make_folders(folder)?;
        }
        let mut packed = zip
            .by_index(member.index)
            .map_err(|error| damaged(member, error))?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(self.into.join(path))?;
        let mut held = 0;
        loop {
            let count = match packed.read(&mut self.chunk) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(damaged(member, error.into())),
            };
            held += count as u64;
            self.unpacked += count as u64;
            self.refuse_bombs()?;
            file.write_all(&self.chunk[..count])?;
        }
        // That it has more was an error already.
        if held != packed.size() {
            return Err(ArchiveFault::Size {
                name: member.name.clone(),
                said: packed.size(),
                held,
            });
        }
        let mode = if member.is_executable { 0o755 } else { 0o644 };
        file.set_permissions(Permissions::from_mode(mode))?;
        Ok(())
    }

    fn refuse_bombs(&self) -> Result<(), ArchiveFault> {
        let limits = self.limits;
        if self.unpacked > limits.unpacked {
            let limit = limits.unpacked;
            return Err(ArchiveFault::Unpacked { limit });
        }
        if self.unpacked > limits.ratio_floor
            && self.unpacked > self.packed.saturating_mul(limits.ratio)
        {
            let limit = limits.ratio;
            return Err(ArchiveFault::Ratio { limit });
        }
        Ok(())
    }
}

fn not_an_archive(error: ZipError) -> ArchiveFault {
    match problem(error) {
        Ok(problem) => ArchiveFault::NotAnArchive(problem),
        Err(error) => ArchiveFault::Io(error),
    }
}

fn damaged(member: &Member, error: ZipError) -> ArchiveFault {
    match problem(error) {
        Ok(problem) => ArchiveFault::Damaged {
            name: member.name.clone(),
            problem,
        },
        Err(error) => ArchiveFault::Io(error),
    }
}

/// What is wrong with an archive, or with reading it.
fn problem(error: ZipError) -> Result<String, io::Error> {
    let words = match error {
        // How the crate and its decompressor say that bytes make no sense.
        ZipError::Io(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::InvalidData
                    | io::ErrorKind::InvalidInput
                    | io::ErrorKind::UnexpectedEof
            ) =>
        {
            return Err(error);
        }
        ZipError::Io(error) => error.to_string(),
        ZipError::InvalidArchive(problem) => problem.into_owned(),
        error => error.to_string(),
    };
    // Some of them quote names.
    Ok(one_line(&words, 2 * SHOWN_NAME))
}
