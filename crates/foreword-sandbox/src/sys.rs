//! The system calls that no safe crate offers. The only unsafe code of the workspace.
//!
//! But for [`watch`], they run in the single-threaded process that `foreword sandbox-init` is, or in a child that it forked, so
//! nothing else runs while they change the process.

#![expect(
    unsafe_code,
    reason = "cloning into namespaces, forking and replacing a process have no safe interface"
)]

use std::{
    ffi::{CStr, CString, c_char, c_int, c_ulong},
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr,
};

use rustix::process::Pid;
use tokio::io::{Interest, unix::AsyncFd};

/// Which of a mount's attributes to set; the kernel's `struct mount_attr`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MountAttributes {
    pub(crate) set: u64,
    pub(crate) clear: u64,
    pub(crate) propagation: u64,
    pub(crate) user_namespace: u64,
}

pub(crate) const READ_ONLY: u64 = 0x1;
pub(crate) const NO_SETUID: u64 = 0x2;
pub(crate) const NO_DEVICES: u64 = 0x4;
pub(crate) const NO_EXECUTION: u64 = 0x8;

/// Clones this process into new namespaces as a child of this process's parent. The child gets `None`, this process a pidfd.
pub(crate) fn clone_into_namespaces(namespaces: c_int) -> io::Result<Option<(Pid, OwnedFd)>> {
    let mut pidfd: c_int = -1;
    let flags = namespaces | libc::CLONE_PARENT | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: without CLONE_VM the child has a copy of this process's memory and, with a null stack, goes on where this process
    // is, as after `fork`; this process has one thread, so no lock is held by another. `pidfd` outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_clone,
            c_ulong::from(flags.cast_unsigned()),
            ptr::null_mut::<u8>(),
            &raw mut pidfd,
            0 as c_ulong,
            0 as c_ulong,
        )
    };
    match result {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        pid => {
            let pid = i32::try_from(pid)
                .ok()
                .and_then(Pid::from_raw)
                .ok_or(io::ErrorKind::InvalidData)?;
            // SAFETY: the kernel made this descriptor for us just now, and nothing else knows of it.
            Ok(Some((pid, unsafe { OwnedFd::from_raw_fd(pidfd) })))
        }
    }
}

/// Forks. The child gets `None`.
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: this process has one thread, so the child may do whatever this process might.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Replaces this process; comes back only with an error.
pub(crate) fn execute(program: &CStr, arguments: &[CString], environment: &[CString]) -> io::Error {
    let pointers = |strings: &[CString]| -> Vec<*const c_char> {
        strings
            .iter()
            .map(|string| string.as_ptr())
            .chain([ptr::null()])
            .collect()
    };
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    // SAFETY: both arrays end with a null pointer and all strings with a NUL, and they live until the call fails.
    unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}

/// Sets attributes of the mount that `mount` is the root of, and of those below it if `recursive`.
pub(crate) fn set_mount_attributes(
    mount: BorrowedFd<'_>,
    attributes: MountAttributes,
    recursive: bool,
) -> io::Result<()> {
    let mut flags = libc::AT_EMPTY_PATH;
    if recursive {
        flags |= libc::AT_RECURSIVE;
    }
    // SAFETY: the path is a NUL-terminated literal, and the kernel reads `size_of` bytes of a structure laid out as it expects.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Brings the loopback interface of this network namespace up.
pub(crate) fn start_loopback() -> io::Result<()> {
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        None,
    )?;
    let mut name = [0; libc::IFNAMSIZ];
    name[0] = b'l'.cast_signed() as c_char;
    name[1] = b'o'.cast_signed() as c_char;
    let up = libc::IFF_UP | libc::IFF_RUNNING;
    let flags = libc::__c_anonymous_ifr_ifru {
        ifru_flags: i16::try_from(up).unwrap_or_default(),
    };
    let request = libc::ifreq {
        ifr_name: name,
        ifr_ifru: flags,
    };
    // SAFETY: SIOCSIFFLAGS reads an `ifreq` with a NUL-terminated name and the flags, and `request` outlives the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Blocks `SIGCHLD` and gives a descriptor that is readable when one came.
pub(crate) fn child_signals() -> io::Result<OwnedFd> {
    // SAFETY: an all-zero set is a valid set, the pointers are to locals, and only this process's one thread is changed. The
    // descriptor is new and ours.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        match libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
        }
    }
}

/// Gives every signal its default effect and lets all of them through, as a program expects when it starts.
pub(crate) fn reset_signals() {
    // SAFETY: the default action needs no handler that could be wrong, numbers that are no signals are refused, and an all-zero set
    // is a valid set.
    unsafe {
        for signal in 1..=libc::SIGRTMAX() {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, ptr::null_mut());
    }
}

/// Makes `from` the descriptor `to`, open across `execute`. What `to` was before is closed, so nothing may own it.
pub(crate) fn place_descriptor(from: impl AsFd, to: c_int) -> io::Result<()> {
    let from = from.as_fd().as_raw_fd();
    // SAFETY: `dup2` and `fcntl` touch no memory. The caller is about to replace this process, so no owner of `to` will be dropped.
    let result = unsafe {
        if from == to {
            libc::fcntl(to, libc::F_SETFD, 0)
        } else {
            libc::dup2(from, to)
        }
    };
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Closes every descriptor from `first` on.
pub(crate) fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: it touches no memory. The caller is about to replace this process, so no owner of one of them will be dropped.
    let result = unsafe { libc::close_range(first, u32::MAX, 0) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Ends this process at once, without running what was registered for its end.
pub(crate) fn exit(status: i32) -> ! {
    // SAFETY: it does not come back, and leaves nothing in a state that anybody could see.
    unsafe { libc::_exit(status) }
}

/// Lets the runtime watch a descriptor.
pub(crate) fn watch(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open and stays the same descriptor until it is dropped, which only the `AsyncFd` does from here on.
    unsafe { AsyncFd::register_with_interest(descriptor, interest) }.map_err(io::Error::from)
}
