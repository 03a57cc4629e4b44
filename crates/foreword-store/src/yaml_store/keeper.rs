//! Keeps the library in memory and the one on disk the same: the one path of every edit, reload, import and undo.
//!
//! All of it blocks, so it runs off the async threads, one at a time in this process (`writing`) and between processes
//! (the lock of the data directory). The order never changes: look at the disk, validate the whole result, write it
//! durably, publish it. Readers have no part in this; they load a pointer.

use std::{
    collections::BTreeSet,
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use foreword_compose::revision;
use jiff::Timestamp;
use similar::TextDiff;
use tracing::{error, info, warn};

use super::{
    data_directory::DataDirectory,
    describe::describe,
    feed::Feed,
    file::{LibraryFile, Replaced, Stamp},
    history::History,
};
use crate::{
    config::StoreConfig,
    edit::Edit,
    error::{OpenError, StoreError},
    store::{Clock, Health, Import, ImportReport, Snapshot, Source, Undone},
    yaml::{BUILTIN, Document, LoadError, MAX_FILE_BYTES},
};

/// How often a change is tried again because the file changed under it.
const ATTEMPTS: usize = 5;

/// How long an import looks for the smallest difference before it takes a larger one.
const DIFFERENCE_TIME: Duration = Duration::from_secs(1);

/// The name of the library's file.
const FILE: &str = "system_prompts.yaml";

/// The library in memory and on disk.
pub(super) struct Keeper {
    directory: DataDirectory,
    file: LibraryFile,
    history: History,
    feed: Feed,
    clock: Clock,
    state: ArcSwap<State>,
    /// The state before, kept until the next look: taking a large one apart costs tens of milliseconds, which neither an
    /// edit's answer nor a reader who held it should wait for.
    retired: Mutex<Option<Arc<State>>>,
    writing: Mutex<()>,
}

/// All that is known at one moment.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) health: Health,
    /// The snapshot's text with all that an edit needs to know about it.
    document: Arc<Document>,
    /// The file as it was last seen.
    stamp: Option<Stamp>,
    /// What led to this library.
    what: String,
}

/// What a store starts with.
struct Start {
    document: Document,
    source: Source,
    stamp: Option<Stamp>,
    what: &'static str,
    health: Health,
}

impl Start {
    /// The library of the file, or the built-in one where there never was a file.
    fn read(directory: &DataDirectory, file: &LibraryFile) -> Result<Self, OpenError> {
        let path = || file.path().to_owned();
        let found = file.read().map_err(|source| OpenError::Io {
            path: path(),
            source,
        })?;
        if let Some(found) = found {
            let document = read_document(found.bytes).map_err(|errors| OpenError::Broken {
                path: path(),
                errors,
            })?;
            directory.mark_seen();
            Ok(Self {
                document,
                source: Source::File(path()),
                stamp: Some(found.stamp),
                what: "found at a start",
                health: Health::Healthy,
            })
        } else if directory.was_seen() {
            Err(OpenError::Missing {
                path: path(),
                marker: directory.marker(),
            })
        } else {
            Ok(Self::built_in(Source::BuiltIn, Health::Healthy))
        }
    }

    /// The built-in library, in the place of one that cannot be read.
    fn instead_of(file: &LibraryFile, errors: Vec<LoadError>) -> Self {
        Self::built_in(
            Source::File(file.path().to_owned()),
            Health::Degraded(errors),
        )
    }

    fn built_in(source: Source, health: Health) -> Self {
        Self {
            document: Document::parse(BUILTIN.into()).expect("the built-in library is valid"),
            source,
            stamp: None,
            what: "the built-in library",
            health,
        }
    }
}

impl Keeper {
    /// Loads the library, or the built-in one where there never was a file.
    pub(super) fn open(
        directory: DataDirectory,
        config: &StoreConfig,
        clock: Clock,
    ) -> Result<Self, OpenError> {
        let file = LibraryFile::new(directory.join(FILE));
        let start = Start::read(&directory, &file)?;
        Ok(Self::new(directory, file, start, config, clock))
    }

    /// Loads the library; where it is broken or missing, starts degraded on the built-in one.
    pub(super) fn open_to_replace(
        directory: DataDirectory,
        config: &StoreConfig,
        clock: Clock,
    ) -> Result<Self, OpenError> {
        let file = LibraryFile::new(directory.join(FILE));
        let start = match Start::read(&directory, &file) {
            Err(OpenError::Broken { errors, .. }) => Start::instead_of(&file, errors),
            Err(OpenError::Missing { .. }) => Start::instead_of(&file, vec![missing()]),
            start => start?,
        };
        Ok(Self::new(directory, file, start, config, clock))
    }

    fn new(
        directory: DataDirectory,
        file: LibraryFile,
        start: Start,
        config: &StoreConfig,
        clock: Clock,
    ) -> Self {
        let Start {
            document,
            source,
            stamp,
            what,
            health,
        } = start;
        let state = State {
            health,
            ..State::new(document, source, stamp, clock(), what)
        };
        Self {
            history: History::new(directory.join("history"), config.history),
            state: ArcSwap::from_pointee(state),
            feed: Feed::new(),
            retired: Mutex::new(None),
            writing: Mutex::new(()),
            directory,
            file,
            clock,
        }
    }

    /// The state; never waits.
    pub(super) fn state(&self) -> arc_swap::Guard<Arc<State>> {
        self.state.load()
    }

    pub(super) fn feed(&self) -> &Feed {
        &self.feed
    }

    /// The directories in which something can happen to the file.
    pub(super) fn directories(&self) -> BTreeSet<PathBuf> {
        self.file.directories()
    }

    /// Takes over what is on disk, if it changed.
    pub(super) fn reload(&self) {
        let retired = lock(&self.retired).take();
        drop(retired);
        let _writing = lock(&self.writing);
        let before = self.state.load_full();
        match self.catch_up() {
            Ok(after) if after.snapshot.revision != before.snapshot.revision => {
                if let Err(error) = self.keep_versions(&before, &after) {
                    warn!(%error, "Could not keep the changed library in the history");
                }
            }
            Ok(_) => {}
            Err(error) => {
                self.degrade(&before, before.stamp, vec![unreadable(&error)]);
            }
        }
    }

    /// Applies one edit.
    pub(super) fn edit(&self, edit: &Edit) -> Result<Arc<Snapshot>, StoreError> {
        let _writing = lock(&self.writing);
        let _lock = self.directory.lock()?;
        for _ in 0..ATTEMPTS {
            let state = self.catch_up()?;
            state.refuse_broken()?;
            let library = state.document.library();
            let draft = edit.apply(library)?;
            if draft == *library.draft() {
                return Ok(Arc::clone(&state.snapshot));
            }
            let document = state.document.rewrite(&draft)?;
            self.keep_version(&state)?;
            if let Some(snapshot) = self.replace(&state, document, &edit.what)? {
                return Ok(snapshot);
            }
        }
        Err(StoreError::Conflict)
    }

    /// Replaces the whole library.
    pub(super) fn import(&self, import: Import) -> Result<ImportReport, StoreError> {
        let text: Arc<str> = import.text.into();
        let parse = || Document::parse(Arc::clone(&text)).map_err(StoreError::Invalid);
        let mut document = Some(parse()?);
        let _writing = lock(&self.writing);
        let _lock = (!import.dry_run)
            .then(|| self.directory.lock())
            .transpose()?;
        for _ in 0..ATTEMPTS {
            let state = self.catch_up()?;
            if !import.replace_broken {
                state.refuse_broken()?;
            }
            let mut report = ImportReport {
                difference: difference(&state.snapshot.text, &text),
                revision: revision(&text, None),
                written: false,
                kept_as: None,
            };
            let broken = state.health != Health::Healthy;
            if import.dry_run || (!broken && state.snapshot.text == text) {
                return Ok(report);
            }
            if broken {
                report.kept_as = self.file.keep_as(&self.broken_suffix())?;
            }
            let document = document.take().map_or_else(&parse, Ok)?;
            self.keep_version(&state)?;
            if self
                .replace(&state, document, "imported a library")?
                .is_some()
            {
                report.written = true;
                return Ok(report);
            }
        }
        Err(StoreError::Conflict)
    }

    /// Goes one version back.
    pub(super) fn undo(&self) -> Result<Undone, StoreError> {
        let _writing = lock(&self.writing);
        let _lock = self.directory.lock()?;
        for _ in 0..ATTEMPTS {
            let state = self.catch_up()?;
            state.refuse_broken()?;
            if self.history.newest(1)?.is_empty() {
                return Err(StoreError::NothingToUndo);
            }
            // A change by hand since the last edit is the last change.
            self.keep_version(&state)?;
            let mut versions = self.history.newest(2)?.into_iter();
            let (Some(undone), Some(earlier)) = (versions.next(), versions.next()) else {
                return Err(StoreError::NothingToUndo);
            };
            let document = Document::parse(earlier.text.into()).map_err(StoreError::Invalid)?;
            // First, so that a crash in between leaves a file that no version knows: a change by hand.
            undone.mark_undone()?;
            let what = format!("undid: {}", undone.what);
            let replaced = self.replace(&state, document, &what);
            match replaced {
                Ok(Some(snapshot)) => {
                    return Ok(Undone {
                        what: undone.what,
                        revision: snapshot.revision.clone(),
                    });
                }
                Ok(None) => undone.mark_live()?,
                Err(error) => {
                    if !matches!(error, StoreError::Unconfirmed(_)) {
                        undone.mark_live()?;
                    }
                    return Err(error);
                }
            }
        }
        Err(StoreError::Conflict)
    }

    /// Writes `document` over the file that `state` was read from, and publishes it; nothing if somebody was faster.
    fn replace(
        &self,
        state: &State,
        document: Document,
        what: &str,
    ) -> Result<Option<Arc<Snapshot>>, StoreError> {
        let replaced = self.file.replace(document.text(), state.stamp)?;
        if matches!(replaced, Replaced::ChangedMeanwhile) {
            return Ok(None);
        }
        self.directory.mark_seen();
        let stamp = self.file.stamp().unwrap_or_default();
        let snapshot = self.publish(document, stamp, what);
        if let Err(error) = self.history.ensure(&snapshot, what) {
            // The edit is done; the next one keeps this version.
            warn!(%error, "Could not keep the edited library in the history");
        }
        info!(library.revision = %snapshot.revision, "Library changed: {what}");
        match replaced {
            Replaced::Unconfirmed(error) => Err(StoreError::Unconfirmed(error)),
            Replaced::Yes | Replaced::ChangedMeanwhile => Ok(Some(snapshot)),
        }
    }

    /// Looks at the disk, and makes the state agree with it.
    fn catch_up(&self) -> io::Result<Arc<State>> {
        let state = self.state.load_full();
        let mut found = self.file.read()?;
        if found.as_ref().is_some_and(|found| !state.is(&found.bytes)) {
            found = self.file.read_settled(found, state.stamp)?;
        }
        let Some(found) = found else {
            return Ok(match &state.snapshot.source {
                Source::BuiltIn if state.stamp.is_none() => state,
                _ => self.degrade(&state, None, vec![missing()]),
            });
        };
        if state.is(&found.bytes) {
            return Ok(self.confirm(&state, found.stamp));
        }
        match read_document(found.bytes) {
            Ok(document) => {
                self.directory.mark_seen();
                let what = describe(state.document.library().draft(), document.library().draft());
                let snapshot = self.publish(document, Some(found.stamp), &what);
                info!(library.revision = %snapshot.revision, "Library reloaded: {what}");
                Ok(self.state.load_full())
            }
            Err(errors) => Ok(self.degrade(&state, Some(found.stamp), errors)),
        }
    }

    /// Notes that the file holds what is in memory.
    fn confirm(&self, state: &Arc<State>, stamp: Stamp) -> Arc<State> {
        if state.health == Health::Healthy && state.stamp == Some(stamp) {
            return Arc::clone(state);
        }
        if state.health != Health::Healthy {
            info!(library.revision = %state.snapshot.revision, "The library file is as it was, and valid, again");
        }
        self.store(State {
            health: Health::Healthy,
            stamp: Some(stamp),
            ..State::clone(state)
        })
    }

    /// Notes that the file does not hold a library; the last good one stays.
    fn degrade(
        &self,
        state: &Arc<State>,
        stamp: Option<Stamp>,
        errors: Vec<LoadError>,
    ) -> Arc<State> {
        let health = Health::Degraded(errors);
        if state.health != health
            && let Health::Degraded(errors) = &health
        {
            // Places and codes only: messages repeat words of the file, and prompt text is never logged.
            let errors: Vec<_> = errors
                .iter()
                .map(|error| format!("{}:{}: {}", error.line, error.column, error.code))
                .collect();
            error!(
                library.revision = %state.snapshot.revision,
                "The library file cannot be used, the last good library stays in force: {}",
                errors.join("; ")
            );
        }
        self.store(State {
            health,
            stamp,
            ..State::clone(state)
        })
    }

    fn publish(&self, document: Document, stamp: Option<Stamp>, what: &str) -> Arc<Snapshot> {
        let at = (self.clock)();
        let source = Source::File(self.file.path().to_owned());
        let state = self.store(State::new(document, source, stamp, at, what));
        self.feed
            .publish(state.snapshot.revision.clone(), at, what.to_owned());
        Arc::clone(&state.snapshot)
    }

    fn store(&self, state: State) -> Arc<State> {
        let state = Arc::new(state);
        let before = self.state.swap(Arc::clone(&state));
        let _ = lock(&self.retired).replace(before);
        state
    }

    /// Keeps the version in force; one that an edit made is kept already.
    fn keep_version(&self, state: &State) -> io::Result<()> {
        self.history.ensure(&state.snapshot, &state.what)
    }

    /// Keeps what a change from outside replaced, and what it led to.
    fn keep_versions(&self, before: &State, after: &State) -> io::Result<()> {
        // Under the lock, another process that made the change has kept it already.
        let _lock = self.directory.lock()?;
        if self.history.is_newest(&after.snapshot)? {
            return Ok(());
        }
        if before.snapshot.source != Source::BuiltIn && !self.history.contains(&before.snapshot)? {
            self.keep_version(before)?;
        }
        self.keep_version(after)
    }

    fn broken_suffix(&self) -> String {
        format!("broken-{}", file_time((self.clock)()))
    }
}

impl State {
    fn new(
        document: Document,
        source: Source,
        stamp: Option<Stamp>,
        at: Timestamp,
        what: &str,
    ) -> Self {
        Self {
            snapshot: Arc::new(Snapshot {
                library: document.library().clone(),
                text: Arc::clone(document.text()),
                revision: revision(document.text(), None),
                source,
                loaded_at: at,
            }),
            health: Health::Healthy,
            document: Arc::new(document),
            stamp,
            what: what.to_owned(),
        }
    }

    fn is(&self, bytes: &[u8]) -> bool {
        self.snapshot.source != Source::BuiltIn && self.snapshot.text.as_bytes() == bytes
    }

    fn refuse_broken(&self) -> Result<(), StoreError> {
        match &self.health {
            Health::Healthy => Ok(()),
            Health::Degraded(errors) => Err(StoreError::Broken(errors.clone())),
        }
    }
}

/// What is guarded is replaced whole, so a panic leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A time as it stands in names of files.
pub(super) fn file_time(at: Timestamp) -> impl std::fmt::Display {
    at.strftime("%Y%m%dT%H%M%SZ")
}

fn read_document(bytes: Vec<u8>) -> Result<Document, Vec<LoadError>> {
    if bytes.len() > MAX_FILE_BYTES {
        // Cut off, perhaps within a character; the parser says that it is too large.
        return Document::parse(String::from_utf8_lossy(&bytes).into());
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        let last_line = before.rsplit('\n').next().unwrap_or_default();
        vec![LoadError {
            line: before.matches('\n').count() + 1,
            column: last_line.chars().count() + 1,
            pointer: None,
            code: "not-utf8",
            message: "the file is not UTF-8 text from here on".to_owned(),
            hint: Some("save it as UTF-8".to_owned()),
        }]
    })?;
    Document::parse(text.into())
}

fn difference(old: &str, new: &str) -> String {
    TextDiff::configure()
        .timeout(DIFFERENCE_TIME)
        .diff_lines(old, new)
        .unified_diff()
        .header("now", "imported")
        .to_string()
}

fn missing() -> LoadError {
    LoadError {
        line: 1,
        column: 1,
        pointer: None,
        code: "missing-file",
        message: "the library file is missing".to_owned(),
        hint: Some("put it back, or import a library with `replace_broken`".to_owned()),
    }
}

fn unreadable(error: &io::Error) -> LoadError {
    LoadError {
        line: 1,
        column: 1,
        pointer: None,
        code: "unreadable-file",
        message: format!("the library file cannot be read: {error}"),
        hint: None,
    }
}
