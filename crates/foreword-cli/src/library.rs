//! The library of the data directory, opened for one command.
//!
//! Edits go through the same store as those of a running server, which sees the file change and takes it up.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use foreword_compose::WorkspaceGuide;
use foreword_store::{
    Clock, Edit, EditError, LoadError, OpenError, Snapshot, Store, StoreError, YamlStore,
    yaml::DEFAULT_WORKSPACE_GUIDE,
};
use jiff::Timestamp;
use tokio::runtime::Runtime;

use crate::{
    config::Config,
    failure::{Exit, Failure},
};

/// The library, with a runtime to wait for it.
pub(crate) struct Kept {
    runtime: Runtime,
    store: Arc<dyn Store>,
}

impl Kept {
    /// Opens the library.
    pub(crate) fn open(config: &Config) -> anyhow::Result<Self> {
        Self::new(open(config)?)
    }

    /// Opens the library even if its file is broken or missing, so that an import can replace it.
    pub(crate) fn open_to_replace(config: &Config) -> anyhow::Result<Self> {
        let opened = YamlStore::open_to_replace(&config.data_dir, &config.library, clock());
        Self::new(Arc::new(opened.map_err(|error| unusable(&error))?))
    }

    fn new(store: Arc<dyn Store>) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("could not start")?;
        Ok(Self { runtime, store })
    }

    /// The library as it is.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.store.snapshot()
    }

    /// Does an edit and says what it did.
    pub(crate) fn edit(&self, edit: Edit) -> anyhow::Result<String> {
        let before = self.snapshot().revision.clone();
        let what = edit.what.clone();
        let after = self.block_on(self.store.edit(edit)).map_err(refused)?;
        Ok(if after.revision == before {
            format!("nothing to change; revision {before}")
        } else {
            format!("{what}; revision {}", after.revision)
        })
    }

    /// Waits for something that the store does.
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// The store behind it.
    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }
}

/// Opens the library of the data directory; it is watched until the store is dropped.
pub(crate) fn open(config: &Config) -> Result<Arc<dyn Store>, Failure> {
    match YamlStore::open(&config.data_dir, &config.library, clock()) {
        Ok(store) => Ok(Arc::new(store)),
        Err(error) => Err(unusable(&error)),
    }
}

/// The library's file in a data directory.
pub(crate) fn file(data_dir: &Path) -> PathBuf {
    data_dir.join("system_prompts.yaml")
}

/// The workspace guide of libraries that have none.
pub(crate) fn shipped_guide() -> WorkspaceGuide {
    WorkspaceGuide {
        content: DEFAULT_WORKSPACE_GUIDE.to_owned(),
        enabled: true,
    }
}

/// The clock of this machine.
pub(crate) fn clock() -> Clock {
    Arc::new(Timestamp::now)
}

/// What to tell about a library that cannot be used as it is.
fn unusable(error: &OpenError) -> Failure {
    let failure = |what: String| Failure::new(Exit::Unusable, what);
    match error {
        OpenError::Broken { path, errors } => failure(lines(path, errors)).hint(
            "mend the file, which was not touched, or replace it with `foreword import FILE --replace-broken`",
        ),
        OpenError::Io { source, .. } => failure(format!("{error}: {source}"))
            .hint("name another data directory with `--data`, or make this one readable"),
        _ => failure(error.to_string()),
    }
}

/// What to tell about an edit that was not done.
pub(crate) fn refused(error: StoreError) -> anyhow::Error {
    let failure = |hint: &str| Failure::new(Exit::Failed, error.to_string()).hint(hint);
    match &error {
        StoreError::Refused(EditError::NotFound { kind, .. }) => {
            failure(&format!("`foreword {kind}s list` shows what there is"))
        }
        StoreError::Refused(EditError::Invalid(faults)) => {
            let what: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
            let failure = Failure::new(Exit::Failed, what.join("\n"));
            match faults.iter().find_map(|fault| fault.hint.as_deref()) {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        }
        StoreError::Broken(errors) => Failure::new(Exit::Unusable, messages(errors))
            .hint("mend the file, or replace it with `foreword import FILE --replace-broken`"),
        StoreError::Conflict => failure("run the command again"),
        _ => return error.into(),
    }
    .into()
}

/// Mistakes of a library's file, one a line.
pub(crate) fn lines(file: &Path, errors: &[LoadError]) -> String {
    let lines: Vec<String> = errors
        .iter()
        .map(|error| format!("{}:{error}", file.display()))
        .collect();
    lines.join("\n")
}

fn messages(errors: &[LoadError]) -> String {
    let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
    messages.join("\n")
}
