//! Uploads in and outputs out, over HTTP.

mod capabilities;
mod outputs;
mod owners;
mod uploads;

use std::path::PathBuf;

use crate::support::TestServer;

/// A chat that has been used, and where its outputs lie.
pub(super) async fn outputs(server: &TestServer, chat: &str) -> PathBuf {
    server
        .put(&format!("/api/uploads/{chat}/seen"))
        .header("x-foreword-key", crate::support::ADMIN_KEY)
        .body("")
        .await;
    let directory = server.data.path().join("workspaces").join(chat);
    directory.join("outputs")
}
