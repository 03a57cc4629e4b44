//! Reads secrets from the files that `…_file` settings name.

use std::{fs, path::Path};

use serde_json::Value;

use super::{
    layer::{Layer, Origin},
    shape::Shape,
};

/// The secret in `path`, in the shape of its setting; mistakes and warnings go to `layer`.
///
/// A list may stand in one file, its items on lines of their own or separated by commas.
pub(super) fn read(
    path: &Path,
    shape: &Shape,
    origin: &Origin,
    layer: &mut Layer,
) -> Option<Value> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            layer.mistake(
                origin.clone(),
                format!("could not read `{}`: {error}", path.display()),
                None,
            );
            return None;
        }
    };
    if readable_by_everyone(path) {
        layer.warnings.push(format!(
            "every user of this machine can read the key file `{0}`; run `chmod 600 {0}`",
            path.display()
        ));
    }
    let items: Vec<&str> = text
        .split(['\n', ','])
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .collect();
    match (shape, &items[..]) {
        (_, []) => {
            layer.mistake(
                origin.clone(),
                format!("the key file `{}` is empty", path.display()),
                None,
            );
            None
        }
        (Shape::Secrets, items) => Some(items.into()),
        (_, _) => Some(text.trim().into()),
    }
}

#[cfg(unix)]
fn readable_by_everyone(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o004 != 0)
}

#[cfg(not(unix))]
fn readable_by_everyone(_path: &Path) -> bool {
    false
}
