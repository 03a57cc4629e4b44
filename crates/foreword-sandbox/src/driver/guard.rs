//! Looks after what a sandbox does in the background: while no command runs, nobody else would see what it writes.
//!
//! Looking costs a system call. Only when free space fell, and there is a process that may have taken it, the workspace is walked.

use std::{
    sync::{Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::{
    sandbox::Sandbox,
    usage::{Fall, Falling, REST_FACTOR},
};
use crate::{command::Restart, pool::Life};

/// Ends the sandbox when its background wrote too much, and comes back when it has ended, whatever for.
pub(crate) async fn watch(sandbox: Weak<Sandbox>, period: Duration) {
    let mut seen = None;
    let mut rest = period;
    loop {
        sleep(rest).await;
        let Some(sandbox) = sandbox.upgrade().filter(|sandbox| sandbox.is_alive()) else {
            return;
        };
        let started = Instant::now();
        if let Some(restart) = look(&sandbox, &mut seen).await {
            sandbox.end_for(restart).await;
            return;
        }
        rest = period.max(started.elapsed() * REST_FACTOR);
    }
}

/// What was seen since work last ended.
struct Seen {
    begun: u64,
    used: u64,
    falling: Falling,
}

/// Says for what the sandbox has to end. It is closed to work then.
async fn look(sandbox: &Sandbox, seen: &mut Option<Seen>) -> Option<Restart> {
    let usage = &sandbox.usage;
    let begun = sandbox.work.begun_if_quiet();
    let free = usage.free();
    let Some(Seen { used, falling, .. }) = seen.as_mut().filter(|seen| Some(seen.begun) == begun)
    else {
        // What the work wrote is not the background's, so counting starts anew.
        *seen = begun.zip(usage.settled()).map(|(begun, used)| Seen {
            begun,
            used,
            falling: Falling::from(free.room, usage.disk()),
        });
        return None;
    };
    let fall = falling.look(free.room, usage.is_low(free), usage.disk());
    if fall == Fall::No || sandbox.has_background() == Some(false) {
        return None;
    }
    let (now, free) = usage.clone().sample().await?;
    let grown = now > *used;
    *used = now;
    let restart = if grown && usage.beyond_quota(now).is_some() {
        Restart::WroteTooMuch
    } else if usage.is_low(free) && (grown || fall == Fall::Again) {
        Restart::FilledDisk
    } else {
        return None;
    };
    sandbox.work.close(begun?).then(|| {
        if restart == Restart::FilledDisk {
            usage.disk().note_end();
        }
        restart
    })
}

/// Which work is being done for the server: commands and work on files.
#[derive(Default)]
pub(crate) struct Work(Mutex<State>);

#[derive(Default)]
struct State {
    running: u32,
    begun: u64,
    closed: bool,
}

/// Work that is being done, until it is dropped.
pub(crate) struct Running<'work>(&'work Work);

impl Work {
    /// Begins; not in a sandbox that is being ended.
    pub(crate) fn begin(&self) -> Option<Running<'_>> {
        let mut state = self.state();
        if state.closed {
            return None;
        }
        state.running += 1;
        state.begun += 1;
        Some(Running(self))
    }

    /// How many have begun so far, if all have ended.
    fn begun_if_quiet(&self) -> Option<u64> {
        let state = self.state();
        (state.running == 0).then_some(state.begun)
    }

    /// Lets no more begin, unless some did since there were `begun`.
    fn close(&self, begun: u64) -> bool {
        let mut state = self.state();
        state.closed = state.running == 0 && state.begun == begun;
        state.closed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.state().running -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_quiet_is_closed_and_then_nothing_begins() {
        let work = Work::default();
        let running = work.begin();
        assert_eq!(work.begun_if_quiet(), None);
        assert!(!work.close(1));
        drop(running);
        assert!(!work.close(0));
        assert_eq!(work.begun_if_quiet(), Some(1));
        assert!(work.close(1));
        assert!(work.begin().is_none());
    }
}
