//! A chat's outputs as one ZIP, made while it is sent.
//!
//! Sorted by name; links, dot files and what is no regular file are left out. One chunk is in memory at a time, and no
//! thread waits for a slow client: each step runs to the next chunk and hands everything back. Names in it are such that
//! every program can unpack them, whatever a sandbox called its files.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use cap_std::fs::Dir;
use jiff::tz::Offset;
use zip::{
    CompressionMethod, DateTime, ZipWriter,
    write::{SimpleFileOptions, StreamWriter},
};

use super::files::{self, DotFiles};

/// How much is read of a file at a time.
const CHUNK: usize = 256 << 10;

/// From which size on, in bytes, a file is written with the numbers of Zip64: below the limit, since what cannot be
/// compressed grows a little.
const LARGE: u64 = 0xF000_0000;

/// What is compressed already is stored as it is.
const COMPRESSED: &[&str] = &[
    "7z", "avif", "bz2", "docx", "epub", "flac", "gif", "gz", "jpeg", "jpg", "m4a", "mkv", "mov",
    "mp3", "mp4", "odt", "ogg", "opus", "pdf", "png", "pptx", "webm", "webp", "woff2", "xlsx",
    "xz", "zip", "zst",
];

/// Says in an archive that it does not hold everything.
const INCOMPLETE: (&str, &str) = (
    "INCOMPLETE.txt",
    "This archive does not hold all files of the chat: there are more than can be looked at.\n",
);

/// An archive on its way.
pub(crate) struct Archive {
    outputs: Dir,
    /// The last one is the next.
    waiting: Vec<PathBuf>,
    current: Option<io::Take<File>>,
    names: Names,
    complete: bool,
    zip: Option<ZipWriter<StreamWriter<Sink>>>,
    sink: Sink,
}

impl Archive {
    /// Looks which files there are.
    pub(crate) fn new(outputs: Dir) -> io::Result<Self> {
        let listing = files::list(&outputs, DotFiles::LeftOut)?.by_name();
        let sink = Sink::default();
        Ok(Self {
            outputs,
            waiting: listing
                .files
                .into_iter()
                .rev()
                .map(|file| file.path)
                .collect(),
            current: None,
            names: Names::default(),
            complete: listing.complete,
            zip: Some(ZipWriter::new_stream(sink.clone())),
            sink,
        })
    }

    /// The next bytes; none at the end.
    pub(crate) fn step(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let bytes = self.sink.take();
            if !bytes.is_empty() {
                return Ok(Some(bytes));
            }
            let Some(zip) = &mut self.zip else {
                return Ok(None);
            };
            if let Some(file) = &mut self.current {
                let mut chunk = vec![0; CHUNK];
                let count = file.read(&mut chunk)?;
                if count == 0 {
                    self.current = None;
                } else {
                    zip.write_all(&chunk[..count])?;
                }
            } else if let Some(path) = self.waiting.pop() {
                // It may be gone by now.
                if let Some(opened) = files::open(&self.outputs, &path)? {
                    zip.start_file(self.names.name(&path), options(&path, &opened))?;
                    self.current = Some(opened.file.take(opened.size));
                }
            } else if !self.complete {
                let (name, text) = INCOMPLETE;
                zip.start_file(
                    self.names.name(Path::new(name)),
                    SimpleFileOptions::default(),
                )?;
                zip.write_all(text.as_bytes())?;
                self.complete = true;
            } else if let Some(zip) = self.zip.take() {
                zip.finish()?;
            }
        }
    }
}

/// The names that are taken, with how often each was wanted.
#[derive(Debug, Default)]
struct Names(HashMap<String, usize>);

impl Names {
    /// What the file at `path` is called: no name twice, since no program unpacks the second one.
    fn name(&mut self, path: &Path) -> String {
        let plain = portable(&path.to_string_lossy());
        let mut name = plain.clone();
        loop {
            if !self.0.contains_key(&name) {
                self.0.insert(name.clone(), 1);
                return name;
            }
            let wanted = self.0.entry(plain.clone()).or_insert(1);
            *wanted += 1;
            name = numbered(&plain, *wanted);
        }
    }
}

/// The name without what leads out of a directory on other systems.
fn portable(name: &str) -> String {
    let name = name.replace('\\', "_");
    let mut characters = name.chars();
    match (characters.next(), characters.next()) {
        (Some(drive), Some(':')) if drive.is_ascii_alphabetic() => {
            format!("{drive}_{}", characters.as_str())
        }
        _ => name,
    }
}

/// `a/b.txt` becomes `a/b (2).txt`.
fn numbered(name: &str, number: usize) -> String {
    let start = name.rfind('/').map_or(0, |slash| slash + 1);
    let end = match name[start..].rfind('.') {
        Some(dot) if dot > 0 => start + dot,
        _ => name.len(),
    };
    format!("{} ({number}){}", &name[..end], &name[end..])
}

fn options(path: &Path, opened: &files::OpenFile) -> SimpleFileOptions {
    let extension = path.extension().map(OsStr::to_ascii_lowercase);
    let is_compressed = COMPRESSED.iter().any(|known| {
        extension
            .as_ref()
            .is_some_and(|extension| extension == *known)
    });
    let method = if is_compressed {
        CompressionMethod::Stored
    } else {
        CompressionMethod::Deflated
    };
    let options = SimpleFileOptions::default()
        .compression_method(method)
        .large_file(opened.size >= LARGE)
        .unix_permissions(0o644);
    match dos_time(opened.modified) {
        Some(time) => options.last_modified_time(time),
        None => options,
    }
}

/// ZIP knows the years 1980 to 2107 and no time zones.
fn dos_time(modified: jiff::Timestamp) -> Option<DateTime> {
    let civil = Offset::UTC.to_datetime(modified);
    let small = |value: i8| u8::try_from(value).ok();
    DateTime::from_date_and_time(
        u16::try_from(civil.year()).ok()?,
        small(civil.month())?,
        small(civil.day())?,
        small(civil.hour())?,
        small(civil.minute())?,
        small(civil.second())?,
    )
    .ok()
}

/// Where the writer of the ZIP leaves its bytes.
#[derive(Debug, Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    fn take(&self) -> Vec<u8> {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut bytes)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[&str]) -> String {
        let mut names = Names::default();
        let names = paths.iter().map(|path| names.name(Path::new(path)));
        names.collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn no_two_names_are_the_same() {
        let taken = names(&[
            "a/b.txt",
            "a/b.txt",
            "a/b (2).txt",
            "a/b.txt",
            "c",
            "c",
            "a.b/c",
            "a.b/c",
        ]);
        assert_eq!(
            taken,
            "a/b.txt | a/b (2).txt | a/b (2) (2).txt | a/b (3).txt | c | c (2) | a.b/c | a.b/c (2)"
        );
    }

    #[test]
    fn no_name_leads_elsewhere_on_other_systems() {
        let safe = names(&[
            r"..\..\x.bat",
            ".._.._x.bat",
            "C:/x",
            "C:x",
            "a:",
            "ab:c",
            "é:",
        ]);
        assert_eq!(
            safe,
            ".._.._x.bat | .._.._x (2).bat | C_/x | C_x | a_ | ab:c | é:"
        );
    }
}
