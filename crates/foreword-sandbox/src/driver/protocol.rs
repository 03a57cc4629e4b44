//! What the server and the init process of a sandbox say to each other: one JSON datagram for each message, with file descriptors
//! beside it.
//!
//! The socket is the sandbox's life: when the server's end closes, for whatever reason, init ends and the kernel ends all that is
//! in its process namespace. Settings go this way too, since `/proc/1/cmdline` can be read inside.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::PathBuf,
};

use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::operation::FileOperation;

/// The user and group inside.
pub(crate) const INSIDE_UID: u32 = 1000;

/// The largest datagram.
const MOST_BYTES: usize = 64 << 10;
/// The most descriptors beside one.
const MOST_DESCRIPTORS: usize = 4;

/// The first message, to stage 1: what the sandbox is made of. Descriptors: the files of the control groups to join.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Start {
    /// The user and group outside that [`INSIDE_UID`] stands for.
    pub(crate) outside_uid: u32,
    pub(crate) outside_gid: u32,
    pub(crate) host_network: bool,
    pub(crate) rootfs: Option<PathBuf>,
    pub(crate) trees: Vec<Tree>,
    pub(crate) tmp_bytes: u64,
    pub(crate) limits: Limits,
}

/// The first message to process 1 of a container, whose root directory is made already.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Contained {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) limits: Limits,
}

/// A directory of the host that the sandbox sees.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Tree {
    pub(crate) host: PathBuf,
    pub(crate) inside: String,
    pub(crate) writable: bool,
}

/// Resource limits of each process.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Limits {
    pub(crate) open_files: u64,
    /// The largest file.
    pub(crate) file_bytes: Option<u64>,
    /// Where no control group counts processes.
    pub(crate) processes: Option<u64>,
    /// Where no control group counts memory.
    pub(crate) data_bytes: Option<u64>,
}

/// From the server to init.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Run bash. Descriptors: where output goes, the script.
    Run {
        id: u32,
        /// The script is too long for an argument: bash reads it from its descriptor.
        sourced: bool,
        environment: Vec<(String, String)>,
    },
    /// Work on files in a process of its own. Descriptor: the socket that content and answer go through.
    File { id: u32, operation: FileOperation },
    /// End a command, or file work, with all that it started.
    Kill { id: u32 },
    /// Read and drop what background processes go on writing. Descriptor: the reading end.
    Drain,
    /// Once the server is gone, end with this status.
    EndWith { status: i32 },
}

/// From stages 1 and 2 to the server.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// Init exists. Descriptor: its pidfd.
    Cloned,
    /// The sandbox is complete.
    Ready,
    /// It could not be made.
    Failed(Fault),
    /// No process could be made for this request.
    NotStarted { id: u32, errno: i32 },
    /// The process of this request ended, and what was killed with it is gone. The wait status is as the kernel gives it.
    Ended { id: u32, status: i32 },
    /// Not all could be killed in time.
    Stuck { id: u32 },
}

/// What went wrong while a sandbox was made.
#[derive(Debug, Clone, Serialize, Deserialize, thiserror::Error)]
#[error("{step}: {}", io::Error::from_raw_os_error(*.errno))]
pub(crate) struct Fault {
    pub(crate) step: Step,
    /// More about the step, such as a path.
    pub(crate) detail: String,
    pub(crate) errno: i32,
}

/// A step of making a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    Receive,
    JoinGroup,
    Clone,
    MapIds,
    Loopback,
    OpenDirectory,
    BecomeUser,
    MakeRoot,
    BindSystem,
    MountProc,
    MountDevices,
    AttachDirectory,
    LeaveHost,
    FindBash,
    DropPrivileges,
    Filter,
}

impl std::fmt::Display for Step {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Receive => "reading what to make",
            Self::JoinGroup => "joining the control groups",
            Self::Clone => "making namespaces",
            Self::MapIds => "mapping the user",
            Self::Loopback => "starting the loopback interface",
            Self::OpenDirectory => "opening the workspace",
            Self::BecomeUser => "becoming the sandbox's user",
            Self::MakeRoot => "making a root directory",
            Self::BindSystem => "showing the system's programs",
            Self::MountProc => "mounting /proc",
            Self::MountDevices => "making /dev",
            Self::AttachDirectory => "showing the workspace",
            Self::LeaveHost => "leaving the host's files",
            Self::FindBash => "looking for bash",
            Self::DropPrivileges => "dropping privileges",
            Self::Filter => "filtering system calls",
        })
    }
}

/// Names the step of an error.
pub(crate) trait During<T> {
    fn during(self, step: Step) -> Result<T, Fault>;
    fn during_with(self, step: Step, detail: impl FnOnce() -> String) -> Result<T, Fault>;
}

impl<T, E: Into<io::Error>> During<T> for Result<T, E> {
    fn during(self, step: Step) -> Result<T, Fault> {
        self.during_with(step, String::new)
    }

    fn during_with(self, step: Step, detail: impl FnOnce() -> String) -> Result<T, Fault> {
        self.map_err(|error| {
            let errno = error.into().raw_os_error().unwrap_or(0);
            Fault {
                step,
                detail: detail(),
                errno,
            }
        })
    }
}

/// Sends one message.
pub(crate) fn send<M: Serialize>(
    socket: impl AsFd,
    message: &M,
    descriptors: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    if bytes.len() > MOST_BYTES {
        return Err(io::ErrorKind::ArgumentListTooLong.into());
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        let fits = control.push(SendAncillaryMessage::ScmRights(descriptors));
        debug_assert!(
            fits,
            "no message has more than {MOST_DESCRIPTORS} descriptors"
        );
    }
    // A server that starts other programs has a handler for their ends, which interrupts this.
    retry_on_intr(|| {
        sendmsg(
            &socket,
            &[IoSlice::new(&bytes)],
            &mut control,
            flags | SendFlags::NOSIGNAL,
        )
    })?;
    Ok(())
}

/// Receives one message, or `None` when the other side is gone.
pub(crate) fn receive<M: DeserializeOwned>(
    socket: impl AsFd,
    flags: RecvFlags,
) -> io::Result<Option<(M, Vec<OwnedFd>)>> {
    let mut bytes = vec![0; MOST_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = retry_on_intr(|| {
        recvmsg(
            &socket,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut control,
            flags | RecvFlags::CMSG_CLOEXEC,
        )
    });
    let received = match received {
        Err(rustix::io::Errno::CONNRESET) => return Ok(None),
        other => other?,
    };
    let descriptors = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        })
        .flatten()
        .collect();
    if received.bytes == 0 {
        return Ok(None);
    }
    if received.flags.contains(ReturnFlags::TRUNC) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(Some((
        serde_json::from_slice(&bytes[..received.bytes])?,
        descriptors,
    )))
}
