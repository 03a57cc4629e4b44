//! The library as a whole: how it is, out, in, one step back.

use std::sync::Arc;

use foreword_store::{Import, ImportReport, Snapshot, Status, StoreError, Undone};

use crate::app::App;

/// How the library is.
#[must_use]
pub fn get_status(app: &App) -> Status {
    app.store().status()
}

/// The library as it is kept.
#[must_use]
pub fn export_library(app: &App) -> Arc<Snapshot> {
    app.store().snapshot()
}

/// Replaces the whole library, or says what that would change.
pub async fn import_library(app: &App, import: Import) -> Result<ImportReport, StoreError> {
    let _permit = app.library_texts().acquire().await;
    app.store().import(import).await
}

/// Goes one edit back.
pub async fn undo_edit(app: &App) -> Result<Undone, StoreError> {
    app.store().undo().await
}
