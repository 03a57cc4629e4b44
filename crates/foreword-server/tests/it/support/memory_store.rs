//! A library in memory, until the YAML store is there.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use foreword_compose::Library;
use foreword_store::{
    Change, Clock, Edit, EditError, Health, Import, ImportReport, Snapshot, Source, Status, Store,
    StoreError, Undone, parse_library,
};
use tokio::sync::broadcast;

pub struct MemoryStore {
    snapshot: Mutex<Arc<Snapshot>>,
    changes: broadcast::Sender<Arc<Change>>,
}

impl MemoryStore {
    pub fn new(text: &str, clock: &Clock) -> Self {
        Self {
            snapshot: Mutex::new(Arc::new(Snapshot {
                library: parse_library(text).unwrap(),
                text: text.into(),
                revision: foreword_compose::revision(text, None),
                source: Source::BuiltIn,
                loaded_at: clock(),
            })),
            changes: broadcast::channel(8).0,
        }
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.lock().unwrap())
    }

    fn status(&self) -> Status {
        let snapshot = self.snapshot();
        Status {
            revision: snapshot.revision.clone(),
            source: snapshot.source.clone(),
            loaded_at: snapshot.loaded_at,
            health: Health::Healthy,
        }
    }

    async fn edit(&self, edit: Edit) -> Result<Arc<Snapshot>, StoreError> {
        let old = self.snapshot();
        let library = Library::new(edit.apply(&old.library)?).map_err(EditError::Invalid)?;
        let snapshot = Arc::new(Snapshot {
            library,
            text: Arc::clone(&old.text),
            revision: old.revision.clone(),
            source: old.source.clone(),
            loaded_at: old.loaded_at,
        });
        *self.snapshot.lock().unwrap() = Arc::clone(&snapshot);
        Ok(snapshot)
    }

    async fn import(&self, _import: Import) -> Result<ImportReport, StoreError> {
        Err(StoreError::Conflict)
    }

    async fn undo(&self) -> Result<Undone, StoreError> {
        Err(StoreError::NothingToUndo)
    }

    fn changes(&self) -> broadcast::Receiver<Arc<Change>> {
        self.changes.subscribe()
    }

    fn recent_changes(&self) -> Vec<Arc<Change>> {
        Vec::new()
    }
}
