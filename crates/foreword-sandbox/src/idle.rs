//! Stops idle sandboxes by the server's clock, whatever happens inside them.

use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use crate::backend::Sandboxes;

/// Stops what has been idle too long, looking every `period`, until the sandboxes are dropped.
///
/// Run it as one task of the server. The period is how much later than `sandbox.idle_timeout` a sandbox may be stopped.
pub async fn stop_idle_sandboxes(sandboxes: Weak<dyn Sandboxes>, period: Duration) {
    loop {
        tokio::time::sleep(period).await;
        let Some(sandboxes) = Weak::upgrade(&sandboxes) else {
            return;
        };
        stop_idle(&sandboxes).await;
    }
}

async fn stop_idle(sandboxes: &Arc<dyn Sandboxes>) {
    let stopped = sandboxes.stop_idle(Instant::now()).await;
    if stopped > 0 {
        tracing::info!(
            stopped,
            "Stopped {stopped} idle sandboxes; their files stay"
        );
    }
}
