//! The library of the data directory, opened for one command.
//!
//! Edits go through the same store as those of a running server, which sees the file change and takes it up.

use std::{
    fs::{self, File},
    io::{self, IsTerminal, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use foreword_compose::WorkspaceGuide;
use foreword_store::{
    Clock, Edit, EditError, LoadError, OpenError, Snapshot, Source, Store, StoreError, YamlStore,
    yaml::{DEFAULT_WORKSPACE_GUIDE, MAX_ERRORS, MAX_FILE_BYTES},
};
use jiff::Timestamp;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::{
    config::Config,
    failure::{Exit, Failure},
    terminal::{self, count},
};

/// The library, with a runtime to wait for it.
pub(crate) struct Kept {
    runtime: Runtime,
    store: Arc<dyn Store>,
    /// Where the store was opened instead, if there is no data directory. Dropped after the store.
    elsewhere: Option<TempDir>,
}

impl Kept {
    /// Opens the library.
    pub(crate) fn open(config: &Config) -> anyhow::Result<Self> {
        match YamlStore::open(&config.data_dir, &config.library, clock()) {
            Ok(store) => Self::new(Arc::new(store), None),
            Err(error) => Err(unusable(&error, LoadError::in_full).into()),
        }
    }

    /// Opens the library for a command that only reads it, or changes it.
    pub(crate) fn open_for(config: &Config, reads: bool) -> anyhow::Result<Self> {
        if reads {
            return Self::open_to_read(config);
        }
        let kept = Self::open(config)?;
        kept.note_if_built_in(config);
        Ok(kept)
    }

    /// Opens the library for a command that changes nothing, and so makes no data directory where there is none.
    pub(crate) fn open_to_read(config: &Config) -> anyhow::Result<Self> {
        // What cannot be looked at, or leads nowhere, is no library that does not exist.
        let is_absent = fs::symlink_metadata(&config.data_dir)
            .is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        let kept = if is_absent {
            let elsewhere = tempfile::tempdir().context("could not make a temporary directory")?;
            let opened = YamlStore::open(elsewhere.path(), &config.library, clock());
            let store = opened.map_err(|error| unusable(&error, LoadError::in_full))?;
            Self::new(Arc::new(store), Some(elsewhere))?
        } else {
            Self::open(config)?
        };
        kept.note_if_built_in(config);
        Ok(kept)
    }

    /// In another directory than was meant, this is what is found.
    fn note_if_built_in(&self, config: &Config) {
        if self.snapshot().source == Source::BuiltIn {
            terminal::note(&format!(
                "there is no `{}`, so this is the built-in library",
                file(&config.data_dir).display()
            ));
        }
    }

    /// Whether there is a data directory.
    pub(crate) fn has_data_dir(&self) -> bool {
        self.elsewhere.is_none()
    }

    /// Opens the library even if its file is broken or missing, so that an import can replace it.
    pub(crate) fn open_to_replace(config: &Config) -> anyhow::Result<Self> {
        let opened = YamlStore::open_to_replace(&config.data_dir, &config.library, clock());
        let store = opened.map_err(|error| unusable(&error, LoadError::in_full))?;
        Self::new(Arc::new(store), None)
    }

    fn new(store: Arc<dyn Store>, elsewhere: Option<TempDir>) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("could not start")?;
        Ok(Self {
            runtime,
            store,
            elsewhere,
        })
    }

    /// The library as it is.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.store.snapshot()
    }

    /// Does an edit and says what it did.
    pub(crate) fn edit(&self, edit: Edit) -> anyhow::Result<String> {
        let before = self.snapshot();
        let what = edit.what.clone();
        let after = self.block_on(self.store.edit(edit)).map_err(refused)?;
        if let (Source::BuiltIn, Source::File(path)) = (&before.source, &after.source) {
            terminal::note(&format!(
                "wrote `{}`: the built-in library with this edit; if a server has another data directory, name it with `--data`",
                path.display()
            ));
        }
        Ok(if after.revision == before.revision {
            format!("nothing to change; revision {}", before.revision)
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

/// Opens the library of the data directory for a server; it is watched until the store is dropped.
///
/// What a server says ends in a log, so mistakes are named by line and code there, without words of the file.
pub(crate) fn open_to_serve(config: &Config) -> Result<Arc<dyn Store>, Failure> {
    let show: fn(&LoadError) -> String = if io::stderr().is_terminal() {
        LoadError::in_full
    } else {
        LoadError::to_string
    };
    match YamlStore::open(&config.data_dir, &config.library, clock()) {
        Ok(store) => Ok(Arc::new(store)),
        Err(error) => Err(unusable(&error, show)),
    }
}

/// The library as a server would find it, looked at without touching: a copy is opened in its place.
///
/// Only for commands that start no log: the copy may be gone before its store has stopped to watch it.
pub(crate) fn look(config: &Config) -> Result<Arc<Snapshot>, OpenError> {
    let data_dir = &config.data_dir;
    let copy = tempfile::tempdir().map_err(|source| OpenError::Io {
        path: std::env::temp_dir(),
        source,
    })?;
    for name in [FILE, VERSION, MARKER] {
        let from = data_dir.join(name);
        copy_start(&from, &copy.path().join(name))
            .map_err(|source| OpenError::Io { path: from, source })?;
    }
    match YamlStore::open(copy.path(), &config.library, clock()) {
        Ok(store) => Ok(store.snapshot()),
        Err(error) => Err(in_place(error, data_dir)),
    }
}

/// The library's file, and those files of a data directory that say whether it can be used.
const FILE: &str = "system_prompts.yaml";
const VERSION: &str = "VERSION";
const MARKER: &str = "library.seen";

/// Copies a file if it exists, up to where it would be too large for a library.
fn copy_start(from: &Path, to: &Path) -> io::Result<()> {
    let file = match File::open(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    fs::write(to, bytes)
}

/// The error of a copy, said of the data directory that was copied.
fn in_place(error: OpenError, data_dir: &Path) -> OpenError {
    match error {
        OpenError::Broken { errors, .. } => OpenError::Broken {
            path: data_dir.join(FILE),
            errors,
        },
        OpenError::Missing { .. } => OpenError::Missing {
            path: data_dir.join(FILE),
            marker: data_dir.join(MARKER),
        },
        OpenError::NewerVersion {
            found, supported, ..
        } => OpenError::NewerVersion {
            path: data_dir.to_owned(),
            found,
            supported,
        },
        error @ OpenError::Io { .. } => error,
    }
}

/// Which library it is, and how large.
pub(crate) fn describe(config: &Config, snapshot: &Snapshot) -> String {
    let profiles = count(snapshot.library.draft().profiles.len(), "profile");
    match &snapshot.source {
        Source::File(path) => format!("{}, {profiles}", path.display()),
        Source::BuiltIn => format!(
            "built in, {profiles}; the first edit, or `foreword init`, writes {}",
            file(&config.data_dir).display()
        ),
    }
}

/// The library's file in a data directory.
pub(crate) fn file(data_dir: &Path) -> PathBuf {
    data_dir.join(FILE)
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
pub(crate) fn unusable(error: &OpenError, show: fn(&LoadError) -> String) -> Failure {
    let failure = |what: String| Failure::new(Exit::Unusable, what);
    match error {
        OpenError::Broken { path, errors } => failure(lines(path, errors, show)).hint(format!(
            "mend the file, which was not touched (`foreword check {}` says what is wrong), or replace it with \
             `foreword import FILE --replace-broken`",
            path.display()
        )),
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
pub(crate) fn lines(file: &Path, errors: &[LoadError], show: fn(&LoadError) -> String) -> String {
    let mut lines: Vec<String> = errors
        .iter()
        .map(|error| format!("{}:{}", file.display(), show(error)))
        .collect();
    if errors.len() == MAX_ERRORS {
        lines.push(format!(
            "only the first {MAX_ERRORS} are shown; there may be more"
        ));
    }
    lines.join("\n")
}

fn messages(errors: &[LoadError]) -> String {
    let messages: Vec<String> = errors.iter().map(LoadError::in_full).collect();
    messages.join("\n")
}
