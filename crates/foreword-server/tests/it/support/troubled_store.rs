//! A store that reads like the one inside it and whose edits end as a test says.

use std::sync::Arc;

use async_trait::async_trait;
use foreword_store::{
    Change, Edit, Health, Import, ImportReport, Snapshot, Status, Store, StoreError, Undone,
};
use tokio::sync::broadcast;

pub(crate) struct TroubledStore {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) trouble: Trouble,
}

/// What goes wrong.
pub(crate) enum Trouble {
    /// The file is broken; edits are not tried.
    Degraded(Health),
    /// Edits fail.
    EditsFail(Box<dyn Fn() -> StoreError + Send + Sync>),
    /// Edits never end.
    EditsHang,
    /// Edits panic.
    EditsPanic,
}

#[async_trait]
impl Store for TroubledStore {
    fn snapshot(&self) -> Arc<Snapshot> {
        self.inner.snapshot()
    }

    fn status(&self) -> Status {
        let status = self.inner.status();
        match &self.trouble {
            Trouble::Degraded(health) => Status {
                health: health.clone(),
                ..status
            },
            _ => status,
        }
    }

    async fn edit(&self, edit: Edit) -> Result<Arc<Snapshot>, StoreError> {
        match &self.trouble {
            Trouble::Degraded(_) => self.inner.edit(edit).await,
            Trouble::EditsFail(error) => Err(error()),
            Trouble::EditsHang => std::future::pending().await,
            Trouble::EditsPanic => panic!("a panic on purpose, with a secret in it"),
        }
    }

    async fn import(&self, import: Import) -> Result<ImportReport, StoreError> {
        self.inner.import(import).await
    }

    async fn undo(&self) -> Result<Undone, StoreError> {
        self.inner.undo().await
    }

    fn changes(&self) -> broadcast::Receiver<Arc<Change>> {
        self.inner.changes()
    }

    fn recent_changes(&self) -> Vec<Arc<Change>> {
        self.inner.recent_changes()
    }
}
