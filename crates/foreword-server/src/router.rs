//! Every route on one page.

use axum::Router;

use crate::app::App;

/// The whole service.
pub fn router(app: App) -> Router {
    Router::new().with_state(app)
}
