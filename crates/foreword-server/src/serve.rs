//! Serves connections until told to stop.
//!
//! What a single client can hold is bounded: connections by number, request heads by size and time, answers that are not
//! read by time. Deliberately absent: TLS (a proxy's work), HTTP/2, and signals (`foreword-cli` turns them into the token).

mod patience;

use std::{error::Error, io, pin::pin, sync::Arc, time::Duration};

use axum::Router;
use foreword_sandbox::stop_idle_sandboxes;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::patience::Patience;
use crate::{app::App, router::router, workspace::keep_sweeping};

/// How long running requests may take to finish once the server stops.
pub const GRACE: Duration = Duration::from_secs(10);

/// About how much of a request is read ahead of its handler, and so the largest head, in bytes.
const READ_BUFFER: usize = 64 << 10;

/// How long to wait when the system has no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// How often it is looked for sandboxes that were idle too long.
pub(crate) const IDLE_CHECK: Duration = Duration::from_secs(5);

/// Accepts connections on `listener` until `shutdown` is cancelled, then lets running requests finish within [`GRACE`].
///
/// [`App::stopping`] is cancelled in between, so that answers without an end do not use up the time.
pub async fn serve(listener: TcpListener, app: App, shutdown: CancellationToken) {
    let clients = Clients::new(&app);
    let sweeping = keep_sweeping(app.workspaces().clone(), app.stopping().clone());
    let sweeping = tokio::spawn(sweeping);
    let stopping_idle = stop_idle_sandboxes(Arc::downgrade(app.sandboxes()), IDLE_CHECK);
    let stopping_idle = tokio::spawn(stopping_idle);
    let sandboxes = Arc::clone(app.sandboxes());
    let preparing = tokio::spawn(async move { sandboxes.prepare().await });
    tokio::select! {
        () = clients.accept(listener) => {}
        () = shutdown.cancelled() => {}
    }
    app.stopping().cancel();
    clients.finish().await;
    // What it is at is finished by the next start.
    sweeping.abort();
    stopping_idle.abort();
    preparing.abort();
    // Each waits for what it started.
    tokio::join!(app.sandboxes().close(), app.connections().close());
}

/// Everything that connections share.
struct Clients {
    router: Router,
    protocol: http1::Builder,
    time_limit: Duration,
    room: Arc<Semaphore>,
    open: TaskTracker,
    /// Cancelled when connections are to end with the request that they are at.
    stopping: CancellationToken,
    /// Cancelled when connections are to end at once.
    cut: CancellationToken,
}

impl Clients {
    fn new(app: &App) -> Self {
        let http = &app.config().http;
        let mut protocol = http1::Builder::new();
        protocol
            .timer(TokioTimer::new())
            .header_read_timeout(http.timeout())
            .max_buf_size(READ_BUFFER);
        Self {
            router: router(app.clone()),
            protocol,
            time_limit: http.timeout(),
            room: Arc::new(Semaphore::new(
                http.max_connections.min(Semaphore::MAX_PERMITS),
            )),
            open: TaskTracker::new(),
            stopping: app.stopping().clone(),
            cut: CancellationToken::new(),
        }
    }

    /// Accepts for ever.
    async fn accept(&self, listener: TcpListener) {
        loop {
            // Room comes first: a connection that cannot be served yet stays in the system's queue.
            let room = Arc::clone(&self.room)
                .acquire_owned()
                .await
                .expect("the semaphore is never closed");
            match listener.accept().await {
                Ok((stream, _peer)) => self.spawn(stream, room),
                Err(error) if concerns_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "No further connection can be accepted right now");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn spawn(&self, stream: TcpStream, room: OwnedSemaphorePermit) {
        // Without it a streamed answer waits for the client's delayed acknowledgements, 40 ms at a time.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "A connection keeps its delay");
        }
        let connection = self.protocol.serve_connection(
            TokioIo::new(Patience::new(stream, self.time_limit)),
            TowerToHyperService::new(self.router.clone()),
        );
        let (stopping, cut) = (self.stopping.clone(), self.cut.clone());
        self.open.spawn(async move {
            let _room = room;
            let mut connection = pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = stopping.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    tokio::select! {
                        ended = connection => ended,
                        () = cut.cancelled() => Ok(()),
                    }
                }
            };
            if let Err(error) = ended {
                tracing::debug!(error = &error as &dyn Error, "A connection broke");
            }
        });
    }

    /// Waits until all connections have ended; those that do not are cut.
    async fn finish(&self) {
        self.open.close();
        if timeout(GRACE, self.open.wait()).await.is_err() {
            let connections = self.open.len();
            tracing::warn!(
                connections,
                "Cutting {connections} connections that did not finish"
            );
            self.cut.cancel();
            self.open.wait().await;
        }
    }
}

/// Whether the next `accept` may well succeed.
fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}
