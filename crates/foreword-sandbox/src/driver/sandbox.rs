//! One running sandbox, as the server sees it: the socket to its init process, and who waits for which answer.

use std::{
    collections::HashMap,
    fs, io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use rustix::{
    net::{RecvFlags, SendFlags},
    process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid},
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    runtime::Handle,
    sync::{Notify, oneshot},
    task::AbortHandle,
};

use super::{
    group::Group,
    guard::Work,
    protocol::{Reply, Request, receive, send},
    usage::UsageWatch,
};
use crate::{command::Restart, pool::Life, spec::Directories, sys};

/// How long init gets to end by itself once its socket is closed; it takes a millisecond.
const STOP_PATIENCE: Duration = Duration::from_secs(2);

/// An init process that is ready.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) socket: OwnedFd,
    /// Its pidfd; none for process 1 of the container that we are in, whose end is ours too.
    pub(crate) pidfd: Option<OwnedFd>,
}

/// A running sandbox. Dropping it ends it; [`Life::stop`] also waits.
pub(crate) struct Sandbox {
    link: Arc<Link>,
    reader: AbortHandle,
    runtime: Handle,
    remains: Clearing,
    next_id: AtomicU32,
    /// Why it took the place of another, until somebody who can tell the model was told.
    untold: Mutex<Option<Restart>>,
    told_memory_kills: AtomicU64,
    /// What it is doing for the server.
    pub(crate) work: Work,
    /// What it was started with.
    pub(crate) directories: Directories,
    /// What its workspace holds.
    pub(crate) usage: Arc<UsageWatch>,
}

/// The socket, and who waits for an answer.
struct Link {
    socket: AsyncFd<OwnedFd>,
    waiting: Mutex<HashMap<u32, oneshot::Sender<Answer>>>,
    dead: AtomicBool,
    gone: Notify,
}

/// What init says to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// No process could be made for it.
    NotStarted,
    /// Its process ended with this wait status.
    Ended(i32),
    /// Not all that it started could be killed.
    Stuck,
}

/// What has to be cleared away after the end.
struct Remains {
    pidfd: Option<OwnedFd>,
    group: Group,
    cleared: tokio::sync::Mutex<bool>,
}

/// Clears away what remains, when it is dropped or before.
struct Clearing {
    remains: Arc<Remains>,
    runtime: Handle,
}

impl std::ops::Deref for Clearing {
    type Target = Remains;

    fn deref(&self) -> &Remains {
        &self.remains
    }
}

impl Drop for Clearing {
    fn drop(&mut self) {
        let remains = Arc::clone(&self.remains);
        self.runtime.spawn(async move { remains.clear().await });
    }
}

impl Sandbox {
    pub(crate) fn new(
        started: Started,
        group: Group,
        directories: Directories,
        usage: Arc<UsageWatch>,
    ) -> io::Result<Self> {
        // First, so that what cannot become a sandbox is cleared away too.
        let remains = Clearing {
            remains: Arc::new(Remains {
                pidfd: started.pidfd,
                group,
                cleared: tokio::sync::Mutex::new(false),
            }),
            runtime: Handle::current(),
        };
        rustix::io::ioctl_fionbio(&started.socket, true)?;
        let link = Arc::new(Link {
            socket: sys::watch(started.socket, Interest::READABLE | Interest::WRITABLE)?,
            waiting: Mutex::default(),
            dead: AtomicBool::new(false),
            gone: Notify::new(),
        });
        let reader = tokio::spawn(Arc::clone(&link).read()).abort_handle();
        Ok(Self {
            link,
            reader,
            runtime: Handle::current(),
            remains,
            next_id: AtomicU32::new(0),
            untold: Mutex::new(None),
            told_memory_kills: AtomicU64::new(0),
            work: Work::default(),
            directories,
            usage,
        })
    }

    /// A number for a request, and where its answer will come. Nothing comes if the sandbox ends.
    pub(crate) fn expect_answer(&self) -> Expected {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        // With the lock held, so that the end of the reader is not missed.
        let mut waiting = self.link.waiting();
        if self.is_alive() {
            waiting.insert(id, sender);
        }
        drop(waiting);
        Expected {
            id,
            answer,
            link: Arc::clone(&self.link),
        }
    }

    /// Sends a request.
    pub(crate) async fn send(
        &self,
        request: &Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        self.link.send(request, descriptors).await
    }

    /// Sends a request from where one cannot wait.
    pub(crate) fn send_later(&self, request: Request, descriptor: Option<OwnedFd>) {
        let link = Arc::clone(&self.link);
        self.runtime.spawn(async move {
            let descriptors: Vec<_> = descriptor.iter().map(AsFd::as_fd).collect();
            // If init is gone, so is what the request is about.
            let _ = link.send(&request, &descriptors).await;
        });
    }

    /// Remembers why it took the place of another, for the next command: only a command's end can say so.
    pub(crate) fn owe(&self, restart: Restart) {
        self.untold().get_or_insert(restart);
    }

    /// Why it took the place of another, if nobody was told yet.
    pub(crate) fn take_owed(&self) -> Option<Restart> {
        self.untold().take()
    }

    /// Ends it, for which the next one says this reason.
    pub(crate) async fn end_for(&self, restart: Restart) {
        *self.untold() = Some(restart);
        self.stop().await;
    }

    fn untold(&self) -> MutexGuard<'_, Option<Restart>> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many processes the memory limit has ended so far.
    pub(crate) fn memory_kills(&self) -> u64 {
        self.remains.group.memory_kills()
    }

    /// Whether the memory limit ended a process since there were `before`, or since this was last asked: one that ended while no
    /// command ran is told by the next.
    pub(crate) fn memory_killed(&self, before: u64) -> bool {
        let now = self.memory_kills();
        let told = self.told_memory_kills.fetch_max(now, Ordering::Relaxed);
        now > before.min(told)
    }

    /// How many processes the limit of processes has refused so far, if a group keeps it.
    pub(crate) fn process_refusals(&self) -> u64 {
        self.remains.group.process_refusals()
    }

    /// Whether there are processes besides init, if that can be seen.
    pub(crate) fn has_background(&self) -> Option<bool> {
        match self.remains.group.processes() {
            Some(count) if self.remains.pidfd.is_some() => Some(count > 1),
            _ => self.remains.has_children(),
        }
    }

    /// Waits until it has ended or been closed; for one at a time.
    pub(crate) async fn gone(&self) {
        self.link.gone.notified().await;
    }

    fn close(&self) {
        self.link.end();
        self.reader.abort();
        if self.remains.pidfd.is_none() {
            // Init would take us with it, and there may be something to say yet.
            return;
        }
        let _ = rustix::net::shutdown(self.link.socket.get_ref(), rustix::net::Shutdown::Both);
    }
}

#[async_trait]
impl Life for Sandbox {
    fn is_alive(&self) -> bool {
        !self.link.dead.load(Ordering::SeqCst)
    }

    async fn why_ended(&self) -> Restart {
        self.take_owed().unwrap_or(Restart::Ended)
    }

    async fn would_lose(&self) -> Option<Restart> {
        if !self.is_alive() {
            return Some(self.why_ended().await);
        }
        let idle = || (self.has_background() == Some(true)).then_some(Restart::Idle);
        self.take_owed().or_else(idle)
    }

    async fn stop(&self) {
        self.close();
        self.remains.clear().await;
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.close();
    }
}

impl Link {
    /// Hands each answer to whoever waits for it, until init is gone.
    async fn read(self: Arc<Self>) {
        while let Ok(received) = self.receive().await {
            let (id, answer) = match received {
                Some(Reply::NotStarted { id, .. }) => (id, Answer::NotStarted),
                Some(Reply::Ended { id, status }) => (id, Answer::Ended(status)),
                Some(Reply::Stuck { id }) => (id, Answer::Stuck),
                Some(Reply::Cloned | Reply::Ready | Reply::Failed(_)) => continue,
                None => break,
            };
            if let Some(waiting) = self.waiting().remove(&id) {
                let _ = waiting.send(answer);
            }
        }
        self.end();
    }

    async fn receive(&self) -> io::Result<Option<Reply>> {
        let received = self
            .socket
            .async_io(Interest::READABLE, |socket| {
                receive::<Reply>(socket, RecvFlags::DONTWAIT)
            })
            .await?;
        Ok(received.map(|(reply, _descriptors)| reply))
    }

    async fn send(&self, request: &Request, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let send = |socket: &OwnedFd| send(socket, request, descriptors, SendFlags::DONTWAIT);
        self.socket.async_io(Interest::WRITABLE, send).await
    }

    /// Whoever waits now waits in vain.
    fn end(&self) {
        let mut waiting = self.waiting();
        self.dead.store(true, Ordering::SeqCst);
        waiting.clear();
        drop(waiting);
        self.gone.notify_one();
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u32, oneshot::Sender<Answer>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer that will come.
pub(crate) struct Expected {
    pub(crate) id: u32,
    pub(crate) answer: oneshot::Receiver<Answer>,
    link: Arc<Link>,
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.link.waiting().remove(&self.id);
    }
}

impl Remains {
    /// Waits until the process namespace is empty, reaps its init, removes the groups.
    async fn clear(&self) {
        let mut cleared = self.cleared.lock().await;
        let Some(pidfd) = self.pidfd.as_ref().filter(|_| !*cleared) else {
            return;
        };
        if tokio::time::timeout(STOP_PATIENCE, ended(pidfd))
            .await
            .is_err()
        {
            let _ = pidfd_send_signal(pidfd, Signal::KILL);
            let _ = tokio::time::timeout(STOP_PATIENCE, ended(pidfd)).await;
        }
        self.group.remove().await;
        *cleared = true;
    }

    /// Whether init has a child besides us, if that can be seen: what loses its parent becomes a child of init.
    fn has_children(&self) -> Option<bool> {
        let pid = match &self.pidfd {
            Some(pidfd) => pid_of(pidfd)?,
            None => 1,
        };
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        let ourselves = std::process::id().to_string();
        Some(
            children
                .split_ascii_whitespace()
                .any(|child| child != ourselves),
        )
    }
}

fn pid_of(pidfd: &OwnedFd) -> Option<u32> {
    let about = fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    let pid = about.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    pid.trim().parse().ok()
}

/// Waits until a child has ended, and reaps it.
async fn ended(process: &OwnedFd) {
    let reap = || {
        waitid(
            WaitId::PidFd(process.as_fd()),
            WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
        )
    };
    let Ok(watched) = process
        .try_clone()
        .and_then(|process| sys::watch(process, Interest::READABLE))
    else {
        return;
    };
    // A pidfd is readable once its process has ended, which for the first of a namespace means: and all others.
    while let Ok(None) = reap() {
        match watched.readable().await {
            Ok(mut ready) => ready.clear_ready(),
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::process::{Pid, PidfdFlags, WaitOptions, WaitStatus, pidfd_open, waitpid};

    use super::{super::usage::Disk, *};

    #[tokio::test]
    async fn what_cannot_become_a_sandbox_is_cleared_away() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("group");
        fs::create_dir(&directory).unwrap();
        #[expect(
            clippy::zombie_processes,
            reason = "that it is reaped is what is tried"
        )]
        let process = Command::new("true").spawn().unwrap();
        let pid = Pid::from_child(&process);
        let started = Started {
            // The runtime cannot watch a regular file.
            socket: tempfile::tempfile().unwrap().into(),
            pidfd: Some(pidfd_open(pid, PidfdFlags::empty()).unwrap()),
        };
        let group = Group::of_directory(directory.clone());
        let usage = UsageWatch::new(Vec::new(), 0, 0, Arc::new(Disk::default()));
        let nothing = Directories::default();
        assert!(Sandbox::new(started, group, nothing, usage).is_err());
        while directory.exists() {
            tokio::task::yield_now().await;
        }
        let reaped: rustix::io::Result<Option<(Pid, WaitStatus)>> =
            waitpid(Some(pid), WaitOptions::NOHANG);
        assert_eq!(reaped.unwrap_err(), rustix::io::Errno::CHILD);
    }
}
