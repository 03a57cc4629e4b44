//! `view`: files with line numbers, directories two levels deep, pictures as pictures.

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

use foreword_sandbox::{FileKind, FileStat, ListDirectory, Listing, ReadFile, SandboxError};
use tokio::sync::Semaphore;

use super::{
    MAX_CHARACTERS, Outcome, Place,
    bash::bytes as size_in_words,
    edit::counted,
    image::{self, Picture, Scaled},
    queue::ChatQueue,
    scan::{Lines, Scan},
};

/// How much of a file is read at a time, in bytes.
const PIECE: u64 = 1 << 20;

/// The largest picture that is shown, in bytes.
const MAX_PICTURE: u64 = 20 << 20;

/// Who may have a picture decoded: two at a time, since one may take half a gibibyte while it is.
static DECODING: Semaphore = Semaphore::const_new(2);

/// Whose turn it is to have a picture read: one of each chat, which can make that take as long as it likes.
static READING: LazyLock<ChatQueue> = LazyLock::new(ChatQueue::default);

/// How much of a file tells what it is, in bytes.
const BEGINNING: usize = 8 << 10;

/// The most entries of a directory that are listed.
const MOST_ENTRIES: u32 = 1_000;

/// What is seen.
#[derive(Debug)]
pub enum Seen {
    /// Words.
    Text(Outcome),
    /// A picture.
    Picture {
        /// The encoded picture.
        bytes: Vec<u8>,
        /// Its type.
        mime_type: &'static str,
        /// What else there is to say about it.
        note: Option<String>,
    },
}

impl From<Outcome> for Seen {
    fn from(outcome: Outcome) -> Self {
        Self::Text(outcome)
    }
}

/// Which lines: from, to; from 1, and -1 for the last.
pub type ViewRange = [i64; 2];

/// Shows what is at `path`.
pub async fn view(
    place: Place<'_>,
    path: PathBuf,
    range: Option<ViewRange>,
) -> Result<Seen, SandboxError> {
    let wanted = match range.map(lines).transpose() {
        Ok(wanted) => wanted,
        Err(fault) => return Ok(Outcome::failed(fault).into()),
    };
    let first = read(place, &path, 0).await?;
    let (stat, beginning) = (first.stat, first.bytes);
    if stat.kind == FileKind::Directory {
        if wanted.is_some() {
            let fault = format!(
                "`{}` is a directory, which has no lines: leave `view_range` out",
                path.display()
            );
            return Ok(Outcome::failed(fault).into());
        }
        return directory(place, path).await.map(Seen::Text);
    }
    if stat.size == 0 && beginning.is_empty() {
        return Ok(Outcome::done(format!("`{}` is empty", path.display())).into());
    }
    let opening = &beginning[..beginning.len().min(BEGINNING)];
    if let Some(format) = image::format_of(opening) {
        return picture(place, &path, stat, beginning.to_vec(), format).await;
    }
    if opening.contains(&0) {
        return Ok(Outcome::done(describe_binary(&path, stat, opening)).into());
    }
    text(place, &path, stat, &beginning, wanted.unwrap_or(Lines::ALL))
        .await
        .map(Seen::Text)
}

fn lines([first, last]: ViewRange) -> Result<Lines, String> {
    let start = u64::try_from(first).ok().filter(|first| *first > 0);
    let Some(start) = start else {
        return Err(format!(
            "`view_range` begins with line {first}, but lines are counted from 1"
        ));
    };
    match last {
        -1 => Ok(Lines {
            first: start,
            last: None,
        }),
        last if last >= first => Ok(Lines {
            first: start,
            last: u64::try_from(last).ok(),
        }),
        last => Err(format!(
            "`view_range` ends with line {last}, before it begins with line {first}; give [first, last], with -1 as last for \
             the end of the file"
        )),
    }
}

async fn read(
    place: Place<'_>,
    path: &Path,
    offset: u64,
) -> Result<foreword_sandbox::FileRead, SandboxError> {
    let read = ReadFile {
        path: path.to_owned(),
        offset,
        limit: PIECE,
    };
    place.sandboxes.read_file(place.spec, read).await
}

/// A file that grows while it is read is shown as large as it was.
async fn text(
    place: Place<'_>,
    path: &Path,
    stat: FileStat,
    beginning: &[u8],
    wanted: Lines,
) -> Result<Outcome, SandboxError> {
    let mut scan = Scan::new(wanted);
    let mut offset = beginning.len() as u64;
    let mut more = scan.take(beginning);
    while more && offset < stat.size {
        let piece = read(place, path, offset).await?.bytes;
        if piece.is_empty() {
            break;
        }
        let left = usize::try_from(stat.size - offset).unwrap_or(usize::MAX);
        let piece = &piece[..piece.len().min(left)];
        offset += piece.len() as u64;
        more = scan.take(piece);
    }
    let scanned = scan.finish();
    if scanned.lines < wanted.first {
        return Ok(Outcome::failed(format!(
            "`view_range` begins with line {}, but `{}` has {}",
            wanted.first,
            path.display(),
            counted(usize::try_from(scanned.lines).unwrap_or(usize::MAX), "line")
        )));
    }
    Ok(Outcome::done(scanned.text))
}

async fn directory(place: Place<'_>, path: PathBuf) -> Result<Outcome, SandboxError> {
    let shown = path.display().to_string();
    let list = ListDirectory {
        path,
        depth: 2,
        max_entries: MOST_ENTRIES,
        hidden: false,
    };
    let Listing { entries, truncated } = place.sandboxes.list_directory(place.spec, list).await?;
    if entries.is_empty() {
        return Ok(Outcome::done(format!(
            "{shown}: an empty directory (hidden files are not shown)"
        )));
    }
    let mut text = format!("{shown}, two levels deep, without hidden files:");
    let mut listed = 0;
    for entry in &entries {
        let line = match entry.kind {
            FileKind::Directory => format!("\n{:>12}  {}/", "", entry.path),
            FileKind::File => format!("\n{:>12}  {}", size_in_words(entry.size), entry.path),
            FileKind::Link => format!("\n{:>12}  {}", "link", entry.path),
            FileKind::Special => format!("\n{:>12}  {}", "special", entry.path),
        };
        if text.chars().count() + line.chars().count() > MAX_CHARACTERS {
            break;
        }
        text += &line;
        listed += 1;
    }
    if truncated || listed < entries.len() {
        let note = format!(
            "\n[there is more than these {listed} entries; list a part of it, or use `find` with `bash_tool`]"
        );
        text += &note;
    }
    Ok(Outcome::done(text))
}

async fn picture(
    place: Place<'_>,
    path: &Path,
    stat: FileStat,
    mut bytes: Vec<u8>,
    format: ::image::ImageFormat,
) -> Result<Seen, SandboxError> {
    let shown = path.display();
    if stat.size > MAX_PICTURE {
        let fault = format!(
            "`{shown}` is a picture of {}, and at most {} are shown; make it smaller first",
            size_in_words(stat.size),
            size_in_words(MAX_PICTURE)
        );
        return Ok(Outcome::failed(fault).into());
    }
    let _turn = READING.turn(&place.spec.key).await;
    while (bytes.len() as u64) < stat.size {
        let piece = read(place, path, bytes.len() as u64).await?.bytes;
        if piece.is_empty() {
            break;
        }
        bytes.extend_from_slice(&piece);
    }
    let _turn = DECODING
        .acquire()
        .await
        .expect("the semaphore is never closed");
    let prepared = tokio::task::spawn_blocking(move || image::prepare(bytes, format))
        .await
        .unwrap_or_else(|_| Err("it made the decoder fail".to_owned()));
    Ok(match prepared {
        Ok(Picture {
            bytes,
            mime_type,
            scaled,
        }) => Seen::Picture {
            bytes,
            mime_type,
            note: scaled.map(|Scaled { from, to }| {
                format!(
                    "[shown at {} × {} pixels; `{shown}` has {} × {}]",
                    to.0, to.1, from.0, from.1
                )
            }),
        },
        Err(reason) => Outcome::failed(format!(
            "`{shown}` is a picture that cannot be shown: {reason}"
        ))
        .into(),
    })
}

/// What it is, and what to use.
fn describe_binary(path: &Path, stat: FileStat, beginning: &[u8]) -> String {
    let kinds: [(&[u8], &str, &str); 9] = [
        (
            b"PK\x03\x04",
            "a ZIP archive (also .docx, .xlsx, .pptx, .jar)",
            "list it with `unzip -l`",
        ),
        (
            b"%PDF-",
            "a PDF document",
            "read its text with `pdftotext FILE -`, if it is there",
        ),
        (b"\x1F\x8B", "gzip", "look with `zcat`, or `tar -tzf`"),
        (b"BZh", "bzip2", "look with `bzcat`, or `tar -tjf`"),
        (b"\xFD7zXZ\x00", "xz", "look with `xzcat`, or `tar -tJf`"),
        (
            b"SQLite format 3\x00",
            "an SQLite database",
            "open it with `sqlite3`, or Python's `sqlite3`",
        ),
        (
            b"\x7FELF",
            "a program or library (ELF)",
            "look with `file`, or `readelf`",
        ),
        (b"RIFF", "sound or video (RIFF)", "look with `file`"),
        (b"OggS", "sound or video (Ogg)", "look with `file`"),
    ];
    let found = kinds
        .into_iter()
        .find(|(magic, ..)| beginning.starts_with(magic));
    let (what, advice) = found.map_or(
        ("a binary file", "look with `file`, or `xxd FILE | head`"),
        |(_, what, advice)| (what, advice),
    );
    format!(
        "`{}` is {what} of {}; {advice} with `bash_tool`",
        path.display(),
        size_in_words(stat.size)
    )
}
