//! Process 1 of a sandbox: starts what the server asks for, reaps, kills, and ends when the server does.
//!
//! It never waits for anything that the sandbox could hold back: pipes are read without blocking and a little at a time, and what the
//! server does not take at once is kept until it does.

use std::{
    collections::{HashMap, VecDeque},
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::Errno,
    net::{RecvFlags, SendFlags},
    pipe::{SpliceFlags, splice},
    process::{Pid, Resource, Signal, WaitOptions, getrlimit, kill_process, wait},
};

use super::{
    command::{self, Job},
    files,
    kill::kill_tree,
};
use crate::{
    driver::protocol::{Reply, Request, receive, send},
    sys,
};

/// The most pipes that are drained for background processes, and never more than half of the descriptors that init may have, or none
/// would be left for commands; one more closes the oldest, whose writer is then told by a signal.
const MOST_DRAINS: usize = 256;
/// What is taken from a pipe at a time, and how long it rests afterwards: some 200 MB a second, so a flood in the background does not take
/// the processor.
const DRAINED_AT_ONCE: usize = 1 << 20;
const DRAIN_REST: Duration = Duration::from_millis(5);
/// How many children are reaped before others get a turn.
const REAPED_AT_ONCE: usize = 1024;

/// The state of process 1.
pub(crate) struct Init<'socket> {
    socket: &'socket OwnedFd,
    child_signals: OwnedFd,
    jobs: HashMap<Pid, Work>,
    drains: VecDeque<OwnedFd>,
    most_drains: usize,
    rest_until: Option<Instant>,
    nowhere: File,
    unsent: VecDeque<Reply>,
    /// The status to end with when the server is gone.
    status: i32,
}

struct Work {
    id: u32,
    is_command: bool,
}

impl<'socket> Init<'socket> {
    pub(crate) fn new(socket: &'socket OwnedFd) -> io::Result<Self> {
        // Standard input is `/dev/null` from here on.
        let nothing = File::open("/dev/null")?;
        for standard in 0..3 {
            sys::place_descriptor(&nothing, standard)?;
        }
        Ok(Self {
            socket,
            child_signals: sys::child_signals()?,
            jobs: HashMap::new(),
            drains: VecDeque::new(),
            most_drains: most_drains(),
            rest_until: None,
            nowhere: File::options().write(true).open("/dev/null")?,
            unsent: VecDeque::from([Reply::Ready]),
            status: 0,
        })
    }

    /// Serves until the server is gone, and says with which status to end.
    pub(crate) fn serve(&mut self) -> i32 {
        loop {
            self.send_unsent();
            let Ok(ready) = self.wait() else { return 1 };
            if ready.children {
                self.reap();
            }
            if ready.request {
                match receive::<Request>(self.socket, RecvFlags::DONTWAIT) {
                    Ok(Some((request, descriptors))) => self.handle(request, descriptors),
                    Ok(None) => return self.status,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return 1,
                }
            }
            self.drain(&ready.drains);
        }
    }

    fn wait(&mut self) -> io::Result<Ready> {
        let now = Instant::now();
        let rest = self
            .rest_until
            .filter(|until| *until > now)
            .map(|until| until - now);
        let mut control = PollFlags::IN;
        if !self.unsent.is_empty() {
            control |= PollFlags::OUT;
        }
        let mut polled = vec![
            PollFd::new(self.socket, control),
            PollFd::new(&self.child_signals, PollFlags::IN),
        ];
        if rest.is_none() {
            polled.extend(
                self.drains
                    .iter()
                    .map(|drain| PollFd::new(drain, PollFlags::IN)),
            );
        }
        let timeout = rest
            .map(Timespec::try_from)
            .transpose()
            .map_err(io::Error::other)?;
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let readable = |polled: &PollFd<'_>| {
            polled
                .revents()
                .intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR)
        };
        Ok(Ready {
            request: readable(&polled[0]),
            children: readable(&polled[1]),
            drains: polled[2..].iter().map(readable).collect(),
        })
    }

    fn handle(&mut self, request: Request, descriptors: Vec<OwnedFd>) {
        let mut descriptors = descriptors.into_iter();
        match request {
            Request::Run {
                id,
                sourced,
                environment,
            } => {
                let (Some(output), Some(script)) = (descriptors.next(), descriptors.next()) else {
                    return self.refuse(id);
                };
                let job = Job {
                    output,
                    script,
                    sourced,
                    environment,
                };
                self.start(
                    Work {
                        id,
                        is_command: true,
                    },
                    || command::run(job),
                );
            }
            Request::File { id, operation } => {
                let Some(channel) = descriptors.next() else {
                    return self.refuse(id);
                };
                self.start(
                    Work {
                        id,
                        is_command: false,
                    },
                    || files::work(operation, channel),
                );
            }
            Request::Kill { id } => self.kill(id),
            Request::Drain => self.drains.extend(descriptors.next().filter(|drain| {
                let flags =
                    fcntl_getfl(drain).map(|flags| fcntl_setfl(drain, flags | OFlags::NONBLOCK));
                matches!(flags, Ok(Ok(())))
            })),
            Request::EndWith { status } => self.status = status,
        }
        while self.drains.len() > self.most_drains {
            self.drains.pop_front();
        }
    }

    /// Answers a request whose descriptors did not arrive, as happens when this process has too many.
    fn refuse(&mut self, id: u32) {
        let errno = Errno::MFILE.raw_os_error();
        self.unsent.push_back(Reply::NotStarted { id, errno });
    }

    fn start(&mut self, work: Work, child: impl FnOnce() -> i32) {
        match sys::fork() {
            Ok(Some(pid)) => {
                self.jobs.insert(pid, work);
            }
            Ok(None) => {
                let status = child();
                sys::exit(status)
            }
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(0);
                self.unsent
                    .push_back(Reply::NotStarted { id: work.id, errno });
            }
        }
    }

    fn kill(&mut self, id: u32) {
        let Some((pid, work)) = self.jobs.iter().find(|(_, work)| work.id == id) else {
            return;
        };
        let gone = if work.is_command {
            kill_tree(*pid)
        } else {
            kill_process(*pid, Signal::KILL).is_ok()
        };
        if !gone {
            self.unsent.push_back(Reply::Stuck { id });
        }
    }

    fn reap(&mut self) {
        let _ = rustix::io::read(&self.child_signals, &mut [0_u8; 1024][..]);
        for _ in 0..REAPED_AT_ONCE {
            let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) else {
                return;
            };
            if let Some(work) = self.jobs.remove(&pid) {
                self.unsent.push_back(Reply::Ended {
                    id: work.id,
                    status: status.as_raw(),
                });
            }
        }
        // Several signals count as one, so nothing would wake us for the others.
        let _ = kill_process(rustix::process::getpid(), Signal::CHILD);
    }

    fn drain(&mut self, readable: &[bool]) {
        if !readable.contains(&true) {
            return;
        }
        let mut readable = readable.iter();
        let nowhere = &self.nowhere;
        self.drains.retain(|drain| {
            if readable.next() != Some(&true) {
                return true;
            }
            let flags = SpliceFlags::NONBLOCK;
            let taken = splice(
                drain.as_fd(),
                None,
                nowhere.as_fd(),
                None,
                DRAINED_AT_ONCE,
                flags,
            );
            !matches!(taken, Ok(0))
                && !matches!(taken, Err(error) if error != Errno::AGAIN && error != Errno::INTR)
        });
        self.rest_until = Some(Instant::now() + DRAIN_REST);
    }

    fn send_unsent(&mut self) {
        while let Some(reply) = self.unsent.front() {
            match send(self.socket, reply, &[], SendFlags::DONTWAIT) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // If the server is gone, reading says so.
                _ => self.unsent.pop_front(),
            };
        }
    }
}

fn most_drains() -> usize {
    let half = getrlimit(Resource::Nofile).current.map(|most| most / 2);
    half.and_then(|half| usize::try_from(half).ok())
        .map_or(MOST_DRAINS, |half| half.min(MOST_DRAINS))
}

/// What poll found.
struct Ready {
    request: bool,
    children: bool,
    /// In the order of the drains; empty while they rest.
    drains: Vec<bool>,
}
