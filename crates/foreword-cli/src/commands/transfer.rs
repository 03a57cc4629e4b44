//! `foreword import`, `export` and `undo`: the library as a whole.

use std::path::Path;

use foreword_store::{Import, LoadError, StoreError};

use super::{print, print_text, read_text};
use crate::{
    config::Loaded,
    failure::{Exit, Failure},
    library::{self, Kept},
};

/// `foreword import`
pub(crate) fn import(
    loaded: &Loaded,
    file: &Path,
    dry_run: bool,
    replace_broken: bool,
) -> anyhow::Result<()> {
    let text = read_text(file)?;
    let kept = if replace_broken {
        Kept::open_to_replace(&loaded.config)?
    } else {
        Kept::open(&loaded.config)?
    };
    let imported = kept.block_on(kept.store().import(Import {
        text,
        dry_run,
        replace_broken,
    }));
    let report = match imported {
        Err(StoreError::Invalid(errors)) => {
            return Err(Failure::new(
                Exit::Failed,
                library::lines(file, &errors, LoadError::in_full),
            )
            .hint("mend the file; the library stays as it is")
            .into());
        }
        imported => imported.map_err(library::refused)?,
    };
    if report.difference.is_empty() && report.kept_as.is_none() {
        return print(&format!("nothing to change; revision {}", report.revision));
    }
    print_text(&report.difference)?;
    if let Some(name) = report.kept_as {
        print(&format!(
            "the file that could not be read is kept as {name}"
        ))?;
    }
    print(&if report.written {
        format!("imported; revision {}", report.revision)
    } else {
        "this is what `import` without `--dry-run` would change".to_owned()
    })
}

/// `foreword export`
pub(crate) fn export(loaded: &Loaded) -> anyhow::Result<()> {
    print_text(&Kept::open_to_read(&loaded.config)?.snapshot().text)
}

/// `foreword undo`
pub(crate) fn undo(loaded: &Loaded) -> anyhow::Result<()> {
    let kept = Kept::open(&loaded.config)?;
    let undone = kept
        .block_on(kept.store().undo())
        .map_err(library::refused)?;
    print(&format!(
        "took back: {}; revision {}",
        undone.what, undone.revision
    ))
}
