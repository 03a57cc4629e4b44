//! `foreword init`: a library and a configuration to start from; what is there already is never touched.

use std::{io, path::Path};

use anyhow::Context;
use foreword_store::yaml::BUILTIN;

use super::print;
use crate::{
    config::{self, Loaded, reference},
    library, private,
};

pub(crate) fn run(loaded: &Loaded) -> anyhow::Result<()> {
    let data_dir = &loaded.config.data_dir;
    private::make_directory(data_dir)
        .with_context(|| format!("could not make `{}`", data_dir.display()))?;
    let configuration = loaded.file.as_deref().unwrap_or(Path::new(config::FILE));
    write(
        &library::file(data_dir),
        BUILTIN,
        "the library, with comments that explain it",
    )?;
    write(
        configuration,
        &reference::example(),
        "every setting with its default or an example",
    )?;
    print("next: `foreword check` looks for mistakes, `foreword` serves")
}

/// Writes a file that does not exist yet.
fn write(path: &Path, text: &str, what: &str) -> anyhow::Result<()> {
    match private::write_new(path, text.as_bytes()) {
        Ok(()) => print(&format!("wrote  {}: {what}", path.display())),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            print(&format!("kept   {}: it exists", path.display()))
        }
        Err(error) => Err(error).with_context(|| format!("could not write `{}`", path.display())),
    }
}
