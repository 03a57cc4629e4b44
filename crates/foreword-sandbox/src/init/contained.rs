//! Process 1 of a container: `foreword sandbox-agent`.
//!
//! The engine has made the root directory and the namespaces. This process forks the agent, which speaks to the server and stays what it
//! is: the container's root, whom nobody inside can look into or stop. Then it becomes the sandbox's user and serves as in any other
//! sandbox; when the agent ends, it ends, and the container with it.

use rustix::{
    fs::{Mode, Uid},
    net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socketpair},
    process::umask,
    thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid},
};
use std::{io, os::fd::OwnedFd};

use super::{confine, root, serve};
use crate::{
    docker,
    driver::protocol::{Contained, During, Fault, Reply, Step, receive, send},
    sys,
};

/// Does not come back before the container ends; gives the status to end with.
pub(super) fn run() -> i32 {
    let pair = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    );
    let Ok((ours, theirs)) = pair else { return 1 };
    match sys::fork() {
        Ok(None) => {
            drop(theirs);
            docker::agent_main(ours)
        }
        Ok(Some(_)) => {
            drop(ours);
            be_init(&theirs)
        }
        Err(error) => {
            eprintln!("cannot fork: {error}");
            1
        }
    }
}

fn be_init(socket: &OwnedFd) -> i32 {
    let _ = rustix::thread::set_name(c"init");
    match prepare(socket).and_then(|()| serve::Init::new(socket).during(Step::Receive)) {
        Ok(mut init) => init.serve(),
        Err(fault) => {
            let _ = send(socket, &Reply::Failed(fault), &[], SendFlags::empty());
            1
        }
    }
}

fn prepare(socket: &OwnedFd) -> Result<(), Fault> {
    let received = receive::<Contained>(socket, RecvFlags::empty()).during(Step::Receive)?;
    let (start, _) = received
        .ok_or(io::Error::from(io::ErrorKind::UnexpectedEof))
        .during(Step::Receive)?;
    // This takes a capability that the user will not have.
    confine::empty_bounding_set().during(Step::DropPrivileges)?;
    let (uid, gid) = (
        Uid::from_raw(start.uid),
        rustix::fs::Gid::from_raw(start.gid),
    );
    set_thread_groups(&[]).during(Step::BecomeUser)?;
    set_thread_res_gid(gid, gid, gid).during(Step::BecomeUser)?;
    set_thread_res_uid(uid, uid, uid).during(Step::BecomeUser)?;
    umask(Mode::from_raw_mode(0o022));
    root::find_bash()?;
    confine::confine(&start.limits)
}
