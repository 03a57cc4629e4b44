//! Keeps one connection: makes it, lists its tools again when they change, and makes it anew when it ends.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use tokio::{
    pin,
    time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    Shared,
    board::Turn,
    config::{Connection, Transport},
    link::{Link, NotListed, Opening},
};

/// The shortest and the longest pause before a connection is tried again.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// A connection that lasted so long ended for a reason of its own, and is tried again soon.
const LASTED: Duration = Duration::from_mins(1);

/// How long the tools of a server that is down stay in the prompt: most are back before anybody notices.
pub(super) const GRACE: Duration = Duration::from_mins(1);

/// How long to wait for the end of a program that did not list its tools.
const TO_SAY_MORE: Duration = Duration::from_millis(500);

/// How long to wait between two lists, however often a server says that its tools have changed.
const BETWEEN_LISTS: Duration = Duration::from_millis(500);

/// When a keeper begins and ends.
pub(super) struct Life {
    /// Ends it.
    pub(super) stop: CancellationToken,
    /// Cancelled when the one before it is over, where there was one.
    pub(super) before: Option<CancellationToken>,
    /// To be cancelled when this one is over.
    pub(super) over: CancellationToken,
}

/// Keeps the connection of `turn` until it is stopped.
pub(super) async fn keep(shared: Arc<Shared>, turn: Turn, connection: Arc<Connection>, life: Life) {
    let Life { stop, before, over } = life;
    let _over = over.drop_guard();
    let mut pause = FIRST_PAUSE;
    let mut opening = Opening::Newest;
    // Until the first list there is nothing to withdraw, but what an edit left.
    let mut withdraw_at = Some(Instant::now() + GRACE);
    if let Some(before) = before {
        // Of one connection there is one program.
        withdrawing(&shared, &turn, &mut withdraw_at, before.cancelled()).await;
    }
    loop {
        shared.connecting(&turn);
        let opened = Link::open(&turn.name, &connection, &shared.launch, opening);
        let opened = tokio::select! {
            opened = withdrawing(&shared, &turn, &mut withdraw_at, opened) => opened,
            () = stop.cancelled() => return,
        };
        let why = match opened {
            Ok(mut link) => {
                let started = Instant::now();
                let why = tokio::select! {
                    why = serve(&shared, &turn, &connection, &mut link, &mut withdraw_at) => Some(why),
                    () = stop.cancelled() => None,
                };
                shared.disconnected(&turn);
                // Of one connection there is one program, here too.
                withdraw_at.get_or_insert(Instant::now() + GRACE);
                withdrawing(&shared, &turn, &mut withdraw_at, link.close()).await;
                let Some(why) = why else {
                    return;
                };
                if started.elapsed() >= LASTED {
                    pause = FIRST_PAUSE;
                }
                why
            }
            Err(why) => {
                opening = next_opening(opening, &connection);
                why
            }
        };
        shared.down(&turn, connection.secrets.shown(why));
        withdraw_at.get_or_insert(Instant::now() + GRACE);
        let waiting = sleep(pause + jitter(&turn, pause));
        tokio::select! {
            () = withdrawing(&shared, &turn, &mut withdraw_at, waiting) => {}
            () = stop.cancelled() => return,
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// The other way of opening, for programs; a server on the network answers each question by itself.
fn next_opening(opening: Opening, connection: &Connection) -> Opening {
    match (opening, &connection.transport) {
        (Opening::Newest, Transport::Stdio(_)) => Opening::Older,
        _ => Opening::Newest,
    }
}

/// Up to a quarter more, another for each connection and pause: servers that went down together are not tried together for ever.
fn jitter(turn: &Turn, pause: Duration) -> Duration {
    let mut hasher = DefaultHasher::new();
    (turn, pause).hash(&mut hasher);
    pause / 4 * u32::from(hasher.finish().to_le_bytes()[0]) / u32::from(u8::MAX)
}

/// Does `work`, and takes the tools out of the prompt in between when their time is over.
async fn withdrawing<T>(
    shared: &Shared,
    turn: &Turn,
    at: &mut Option<Instant>,
    work: impl Future<Output = T>,
) -> T {
    pin!(work);
    loop {
        let Some(due) = *at else {
            return work.await;
        };
        tokio::select! {
            done = &mut work => return done,
            () = sleep_until(due) => {
                shared.withdraw(turn);
                *at = None;
            }
        }
    }
}

/// Serves a live connection until it ends, and says why it did.
async fn serve(
    shared: &Shared,
    turn: &Turn,
    connection: &Connection,
    link: &mut Link,
    withdraw_at: &mut Option<Instant>,
) -> String {
    let wanted = connection.tools.as_deref();
    let first = Instant::now() + connection.refresh;
    let mut ticks = interval_at(first, connection.refresh);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let changed = Arc::clone(&link.changed);
    let mut listens = false;
    loop {
        let listed = withdrawing(shared, turn, withdraw_at, link.offered(wanted)).await;
        match listed {
            Ok((offered, problems)) => {
                *withdraw_at = None;
                shared.ready(turn, link, offered, problems);
            }
            // It is at work, and will answer later; unless it never did.
            Err(NotListed::InTime) if listens && link.is_busy() => {}
            // One that lists its tools no more is as good as gone. How it ended says more, if it did.
            Err(why) => {
                let ended = timeout(TO_SAY_MORE, link.ended()).await;
                return ended.unwrap_or_else(|_| why.to_string());
            }
        }
        if !listens {
            link.listen();
            listens = true;
        }
        let pausing = sleep(BETWEEN_LISTS);
        tokio::select! {
            why = link.ended() => return why,
            () = pausing => {}
        }
        loop {
            tokio::select! {
                why = link.ended() => return why,
                () = changed.notified() => break,
                _ = ticks.tick() => {
                    // What is at work is alive.
                    if !link.is_busy() {
                        break;
                    }
                }
            }
        }
    }
}
