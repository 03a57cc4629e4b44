//! Starts the init process of a sandbox, and waits until it is ready.
//!
//! The process is this same program, started with `posix_spawn` (no `pre_exec`), so the price does not grow with the server. It blocks
//! for some milliseconds, so it runs on a thread for such things.

use std::{
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use rustix::{
    io::retry_on_intr,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socketpair,
        sockopt::{Timeout, set_socket_timeout},
    },
    process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid},
};

use crate::{
    driver::{
        group::Group,
        protocol::{Fault, Reply, Start, receive, send},
        sandbox::Started,
    },
    init::INIT_ARGUMENT,
};

/// This program, also when its file was replaced meanwhile.
const OURSELVES: &str = "/proc/self/exe";
/// How long making a sandbox may take. It takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// A sandbox that nobody has taken yet. Dropped like that, it is ended, reaped and its groups removed, on the thread that made it.
pub(super) struct Fresh {
    started: Option<Started>,
    group: Option<Group>,
}

impl Fresh {
    pub(super) fn start(start: &Start, group: Group) -> Result<Self, StartError> {
        let mut fresh = Self {
            started: None,
            group: Some(group),
        };
        let doors = fresh.group.as_ref().map(Group::doors).transpose()?;
        let doors: Vec<_> = doors.into_iter().flatten().map(OwnedFd::from).collect();
        fresh.started = Some(self::start(start, &doors)?);
        Ok(fresh)
    }

    /// What it is made of.
    pub(super) fn take(mut self) -> Option<(Started, Group)> {
        self.started.take().zip(self.group.take())
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if let Some(Started { socket, pidfd }) = self.started.take() {
            drop(socket);
            if let Some(pidfd) = pidfd {
                let ended = || waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
                let _ = retry_on_intr(ended);
            }
        }
        if let Some(group) = &self.group {
            group.remove_blocking();
        }
    }
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error("could not start the init process of a sandbox")]
    Io(#[from] io::Error),
    #[error("the init process of a sandbox ended before it was ready")]
    Ended,
}

/// Starts one, in the groups that `doors` lead to.
fn start(start: &Start, doors: &[OwnedFd]) -> Result<Started, StartError> {
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(io::Error::from)?;
    set_socket_timeout(&ours, Timeout::Recv, Some(PATIENCE)).map_err(io::Error::from)?;
    let mut stage_1 = Command::new(Path::new(OURSELVES))
        .arg0("foreword")
        .arg(INIT_ARGUMENT)
        .env_clear()
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let doors: Vec<_> = doors.iter().map(AsFd::as_fd).collect();
    let ready = send(&ours, start, &doors, SendFlags::empty())
        .map_err(StartError::from)
        .and_then(|()| wait_until_ready(&ours));
    if ready.is_err() {
        let _ = stage_1.kill();
    }
    stage_1.wait()?;
    let pidfd = ready?;
    Ok(Started {
        socket: ours,
        pidfd: Some(pidfd),
    })
}

fn wait_until_ready(socket: &OwnedFd) -> Result<OwnedFd, StartError> {
    let mut init = Unready(None);
    loop {
        match receive::<Reply>(socket, RecvFlags::empty())? {
            Some((Reply::Cloned, descriptors)) => init.0 = descriptors.into_iter().next(),
            Some((Reply::Ready, _)) => return init.0.take().ok_or(StartError::Ended),
            Some((Reply::Failed(fault), _)) => return Err(fault.into()),
            Some(_) => {}
            None => return Err(StartError::Ended),
        }
    }
}

/// An init process that did not get ready has no place to go.
struct Unready(Option<OwnedFd>);

impl Drop for Unready {
    fn drop(&mut self) {
        if let Some(pidfd) = &self.0 {
            let _ = pidfd_send_signal(pidfd, Signal::KILL);
            let ended = || waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
            let _ = retry_on_intr(ended);
        }
    }
}
