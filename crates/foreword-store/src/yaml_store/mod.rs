//! The library in a YAML file: [`YamlStore`].
//!
//! It promises that success means fsynced, that a crash leaves the old file or the new one, that a file which could not
//! be read is never overwritten, and that a change made by somebody else in the meantime, by hand or by another
//! process, is merged rather than lost. Deliberately absent: what YAML looks like (`yaml`) and what edits mean (`edit`).

mod data_directory;
mod describe;
mod feed;
mod file;
mod history;
mod keeper;
mod watch;

use std::{fmt, path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::{
    sync::{Semaphore, broadcast},
    task::spawn_blocking,
};

use self::{data_directory::DataDirectory, keeper::Keeper, watch::Watch};
use crate::{
    config::StoreConfig,
    edit::Edit,
    error::{OpenError, StoreError},
    store::{Change, Clock, Import, ImportReport, Snapshot, Status, Store, Undone},
};

/// Keeps the library in `system_prompts.yaml` in the data directory.
pub struct YamlStore {
    keeper: Arc<Keeper>,
    /// One change at a time, so that waiting ones hold no thread.
    turn: Arc<Semaphore>,
    _watch: Watch,
}

impl YamlStore {
    /// Opens the library in `data_dir`, which is made if it does not exist, and watches it until it is dropped.
    ///
    /// Blocks while it reads; no async runtime is needed. Where there never was a file, the built-in library is used
    /// and nothing is written before the first edit.
    pub fn open(data_dir: &Path, config: &StoreConfig, clock: Clock) -> Result<Self, OpenError> {
        let directory = DataDirectory::open(data_dir)?;
        Self::watching(Keeper::open(directory, config, clock)?, data_dir, config)
    }

    /// The same, even where the file is broken or missing, so that an import can replace it.
    ///
    /// The store is degraded then, on the built-in library, and refuses everything but an import with `replace_broken`.
    pub fn open_to_replace(
        data_dir: &Path,
        config: &StoreConfig,
        clock: Clock,
    ) -> Result<Self, OpenError> {
        let directory = DataDirectory::open(data_dir)?;
        let keeper = Keeper::open_to_replace(directory, config, clock)?;
        Self::watching(keeper, data_dir, config)
    }

    fn watching(keeper: Keeper, data_dir: &Path, config: &StoreConfig) -> Result<Self, OpenError> {
        let keeper = Arc::new(keeper);
        let every = Duration::from_secs(config.poll_seconds.max(1));
        let watch =
            Watch::start(Arc::downgrade(&keeper), every).map_err(|source| OpenError::Io {
                path: data_dir.to_owned(),
                source,
            })?;
        Ok(Self {
            keeper,
            turn: Arc::new(Semaphore::new(1)),
            _watch: watch,
        })
    }

    /// Does `work`, which blocks, when it is its turn. It is finished even if the caller goes away.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Keeper) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let turn = Arc::clone(&self.turn)
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        let keeper = Arc::clone(&self.keeper);
        spawn_blocking(move || {
            let _turn = turn;
            work(&keeper)
        })
        .await
        .map_err(|error| StoreError::Unavailable(Box::new(error)))?
    }
}

#[async_trait]
impl Store for YamlStore {
    fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.keeper.state().snapshot)
    }

    fn status(&self) -> Status {
        let state = self.keeper.state();
        Status {
            revision: state.snapshot.revision.clone(),
            source: state.snapshot.source.clone(),
            loaded_at: state.snapshot.loaded_at,
            health: state.health.clone(),
        }
    }

    async fn edit(&self, edit: Edit) -> Result<Arc<Snapshot>, StoreError> {
        self.blocking(move |keeper| keeper.edit(&edit)).await
    }

    async fn import(&self, import: Import) -> Result<ImportReport, StoreError> {
        self.blocking(move |keeper| keeper.import(import)).await
    }

    async fn undo(&self) -> Result<Undone, StoreError> {
        self.blocking(Keeper::undo).await
    }

    fn changes(&self) -> broadcast::Receiver<Arc<Change>> {
        self.keeper.feed().subscribe()
    }

    fn recent_changes(&self) -> Vec<Arc<Change>> {
        self.keeper.feed().recent()
    }
}

impl fmt::Debug for YamlStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("YamlStore")
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
