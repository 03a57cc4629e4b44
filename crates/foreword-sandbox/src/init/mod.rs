//! The init process of a sandbox: `foreword sandbox-init`.
//!
//! Stage 1 is a fresh process with one thread. It joins control groups, clones itself into new namespaces, says from
//! outside who the user inside is, and ends. Stage 2 is that clone, process 1 inside: it builds the root directory, drops all
//! that it may do, and then does what the server asks until the socket closes.
//!
//! Nothing here reads the environment or its arguments: all comes over the socket, which is standard input.

mod command;
mod confine;
mod contained;
mod etc;
mod files;
mod kill;
mod root;
mod seccomp;
mod serve;

use std::{
    fs,
    io::{self, Read, Write},
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    net::{RecvFlags, SendFlags},
    pipe::{PipeFlags, pipe_with},
    process::Pid,
};

use crate::{
    docker,
    driver::protocol::{During, Fault, INSIDE_UID, Reply, Start, Step, receive, send},
    sys,
};

/// The argument that makes a process the init process of a sandbox.
pub const INIT_ARGUMENT: &str = "sandbox-init";

pub(crate) use files::stat;

/// See [`crate::init_main`].
pub(crate) fn init_main() {
    let argument = std::env::args_os().nth(1);
    if argument.as_deref() == Some(docker::AGENT_ARGUMENT.as_ref()) {
        sys::exit(contained::run());
    }
    if argument.as_deref() == Some(docker::BRIDGE_ARGUMENT.as_ref()) {
        sys::exit(docker::bridge_main());
    }
    if argument.as_deref() == Some(INIT_ARGUMENT.as_ref()) {
        let status = if let Ok(socket) = take_socket() {
            stage_1(&socket)
        } else {
            eprintln!("{INIT_ARGUMENT} is started by the server only");
            2
        };
        sys::exit(status);
    }
}

/// Takes the socket from standard input, and leaves `/dev/null` there.
fn take_socket() -> io::Result<OwnedFd> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    rustix::net::sockopt::socket_type(&socket)?;
    sys::place_descriptor(fs::File::open("/dev/null")?, 0)?;
    Ok(socket)
}

fn stage_1(socket: &OwnedFd) -> i32 {
    match enter(socket) {
        Ok(Entered::Outside) => 0,
        Ok(Entered::Inside(start, trees)) => stage_2(socket, &start, trees),
        Err(fault) => {
            let _ = send(socket, &Reply::Failed(fault), &[], SendFlags::empty());
            1
        }
    }
}

fn stage_2(socket: &OwnedFd, start: &Start, trees: Vec<Option<OwnedFd>>) -> i32 {
    let _ = rustix::thread::set_name(c"init");
    let made = root::build(start, trees).and_then(|()| confine::confine(&start.limits));
    match made.and_then(|()| serve::Init::new(socket).during(Step::Receive)) {
        Ok(mut init) => init.serve(),
        Err(fault) => {
            let _ = send(socket, &Reply::Failed(fault), &[], SendFlags::empty());
            1
        }
    }
}

enum Entered {
    Outside,
    Inside(Start, Vec<Option<OwnedFd>>),
}

fn enter(socket: &OwnedFd) -> Result<Entered, Fault> {
    let received = receive::<Start>(socket, RecvFlags::empty()).during(Step::Receive)?;
    let (start, groups) = received
        .ok_or(io::Error::from(io::ErrorKind::UnexpectedEof))
        .during(Step::Receive)?;
    for group in groups {
        fs::File::from(group)
            .write_all(b"0")
            .during(Step::JoinGroup)?;
    }
    // True root may open what it is then not allowed to see as the sandbox's user. Whoever may not do it here does it inside.
    let trees = start
        .trees
        .iter()
        .map(|tree| root::open_tree(&tree.host).ok())
        .collect();
    let (wait, release) = pipe_with(PipeFlags::CLOEXEC).during(Step::Clone)?;
    let mut namespaces = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP;
    if !start.host_network {
        namespaces |= libc::CLONE_NEWNET;
    }
    match sys::clone_into_namespaces(namespaces).during(Step::Clone)? {
        None => {
            drop(release);
            // No byte means that stage 1 failed, and has said so.
            match fs::File::from(wait).read(&mut [0]) {
                Ok(1) => Ok(Entered::Inside(start, trees)),
                _ => sys::exit(1),
            }
        }
        Some((pid, pidfd)) => {
            send(socket, &Reply::Cloned, &[pidfd.as_fd()], SendFlags::empty())
                .during(Step::Clone)?;
            map_ids(pid, &start)?;
            fs::File::from(release)
                .write_all(&[1])
                .during(Step::MapIds)?;
            Ok(Entered::Outside)
        }
    }
}

/// Says who the user inside is outside.
fn map_ids(pid: Pid, start: &Start) -> Result<(), Fault> {
    let pid = pid.as_raw_nonzero();
    let write = |name: &str, text: String| {
        fs::write(format!("/proc/{pid}/{name}"), text).during_with(Step::MapIds, || name.to_owned())
    };
    if !rustix::process::geteuid().is_root() {
        write("setgroups", "deny".to_owned())?;
    }
    write("uid_map", format!("{INSIDE_UID} {} 1", start.outside_uid))?;
    write("gid_map", format!("{INSIDE_UID} {} 1", start.outside_gid))
}
