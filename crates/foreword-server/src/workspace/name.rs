//! What a file of a chat may be called: any Unicode in segments parted by `/`, none of which leads elsewhere.

use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

/// The largest length of one segment, in bytes; no file system in use takes more.
const MAX_SEGMENT: usize = 255;

/// The largest length of a whole name, in bytes.
const MAX_NAME: usize = 1024;

/// The checked name of an upload, relative to the chat's uploads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UploadName(String);

/// A text that cannot be the name of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the file's name is not valid: {0}")]
pub(crate) struct InvalidName(&'static str);

impl UploadName {
    pub(crate) fn parse(name: &[u8]) -> Result<Self, InvalidName> {
        let Ok(name) = std::str::from_utf8(name) else {
            return Err(InvalidName("it is not UTF-8"));
        };
        if name.len() > MAX_NAME {
            return Err(InvalidName("it has more than 1024 bytes"));
        }
        for segment in name.split('/') {
            let reason = match segment {
                "" => "a segment between two `/` is empty",
                "." | ".." => "it has a segment `.` or `..`",
                segment if segment.contains('\0') => "it has a NUL character",
                segment if segment.len() > MAX_SEGMENT => "a segment has more than 255 bytes",
                _ => continue,
            };
            return Err(InvalidName(reason));
        }
        Ok(Self(name.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }

    /// The last segment.
    pub(crate) fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }
}

/// A path that may name a file here; sandboxes name theirs as they like, so it need not be UTF-8.
pub(crate) fn relative_path(name: Vec<u8>) -> Option<PathBuf> {
    let leads_elsewhere = name
        .split(|byte| *byte == b'/')
        .any(|segment| matches!(segment, b"" | b"." | b".."));
    if leads_elsewhere || name.contains(&0) {
        return None;
    }
    Some(OsString::from_vec(name).into())
}
