//! The skills that come with Foreword, put where sandboxes can be shown them: a directory that is named by their content, so that two
//! versions of Foreword on one data directory do not disturb each other.

use std::{fs, io, os::unix::fs::PermissionsExt, path::Path};

use sha2::{Digest, Sha256};

use super::{
    cache,
    local::{self, Found},
};

/// A file of a shipped skill: its path, its text, whether it is a program.
struct ShippedFile {
    path: &'static str,
    text: &'static str,
    is_program: bool,
}

const FILES: &[ShippedFile] = &[
    ShippedFile {
        path: "file-handling/SKILL.md",
        text: include_str!("../../skills/file-handling/SKILL.md"),
        is_program: false,
    },
    ShippedFile {
        path: "file-handling/scripts/look.py",
        text: include_str!("../../skills/file-handling/scripts/look.py"),
        is_program: true,
    },
    ShippedFile {
        path: "skill-creator/scripts/check-skill.sh",
        text: include_str!("../../skills/skill-creator/scripts/check-skill.sh"),
        is_program: true,
    },
    ShippedFile {
        path: "skill-creator/SKILL.md",
        text: include_str!("../../skills/skill-creator/SKILL.md"),
        is_program: false,
    },
];

/// Puts them in place below `root`, unless they are there, and reads them.
pub(super) fn unpack(root: &Path) -> io::Result<Found> {
    let mut hasher = Sha256::new();
    for file in FILES {
        hasher.update(file.path);
        hasher.update([0, u8::from(file.is_program)]);
        hasher.update(file.text);
        hasher.update([0]);
    }
    let version = hex::encode(&hasher.finalize()[..8]);
    let place = root.join("shipped").join(version);
    if !place.is_dir() {
        let parent = place.parent().expect("it was joined");
        fs::create_dir_all(parent)?;
        let making = tempfile::Builder::new()
            .prefix(".making-")
            .tempdir_in(parent)?;
        for file in FILES {
            let path = making.path().join(file.path);
            fs::create_dir_all(path.parent().expect("it was joined"))?;
            fs::write(&path, file.text)?;
            let mode = if file.is_program { 0o755 } else { 0o644 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        }
        cache::place(making, &place)?;
    }
    Ok(local::look(&place))
}
