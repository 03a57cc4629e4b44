//! Builds what a sandbox sees: its root directory, from the host's programs and the chat's workspace, and nothing else.
//!
//! The order matters. Directories are opened while the process may still look for them as whoever started it; then it becomes
//! the sandbox's user, since whoever is nobody inside cannot make a file; `/proc` is mounted while the host's is still there,
//! which the kernel asks for; and the host's root goes last.

use std::{
    ffi::CString,
    fs, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{DirBuilderExt, PermissionsExt, symlink},
    },
    path::Path,
};

use rustix::{
    fs::{CWD, Gid, Mode, Uid},
    mount::{
        MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount,
        mount_change, move_mount, unmount,
    },
    param::page_size,
    process::{DumpableBehavior, chdir, pivot_root, set_dumpable_behavior, umask},
    thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid},
};

use super::etc;
use crate::{
    driver::protocol::{During, Fault, INSIDE_UID, Start, Step, Tree},
    sys::{self, MountAttributes, NO_DEVICES, NO_EXECUTION, NO_SETUID, READ_ONLY},
};

/// Where the host's root is while the new one is made.
const OLD: &str = "/.old";
/// What of the host's root directory holds programs.
const PROGRAMS: [&str; 7] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];
/// What a root file system of the operator's choice does not decide.
const OURS: [&str; 9] = [
    "proc", "sys", "dev", "tmp", "run", "home", "mnt", "root", ".old",
];
/// The most that `/dev/shm` holds, and the most in segments of System V.
const SHARED_MEMORY_BYTES: u64 = 64 << 20;
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Facts about the host's kernel that nobody needs.
const MASKED: [&str; 13] = [
    "cmdline",
    "config.gz",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "latency_stats",
    "pressure/cpu",
    "pressure/io",
    "pressure/memory",
    "sched_debug",
    "sysrq-trigger",
    "timer_list",
];
const BASH: [&str; 2] = ["/bin/bash", "/usr/bin/bash"];

/// Gives a mount of its own of what is at `path`, with all that is mounted below.
pub(crate) fn open_tree(path: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    Ok(rustix::mount::open_tree(CWD, path, flags)?)
}

/// Makes the root directory. `trees` are those of `start` that could be opened already.
pub(crate) fn build(start: &Start, trees: Vec<Option<OwnedFd>>) -> Result<(), Fault> {
    mount_change(
        "/",
        MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC,
    )
    .during(Step::MakeRoot)?;
    if !start.host_network {
        sys::start_loopback().during(Step::Loopback)?;
    }
    rustix::system::sethostname(b"sandbox").during(Step::MakeRoot)?;
    limit_namespace();
    let trees = open_trees(start, trees)?;
    let rootfs = start.rootfs.as_deref().map(open_tree).transpose();
    let rootfs = rootfs.during_with(Step::OpenDirectory, || "`sandbox.rootfs`".to_owned())?;
    become_user()?;
    enter_new_root().during(Step::MakeRoot)?;
    // The host's directories are below `/.old` from here on.
    bind_system(rootfs).during(Step::BindSystem)?;
    etc::make(Path::new(OLD), start).during_with(Step::BindSystem, || "/etc".to_owned())?;
    mount_proc().during(Step::MountProc)?;
    make_devices(start.tmp_bytes).during(Step::MountDevices)?;
    make_tmp(start.tmp_bytes).during(Step::AttachDirectory)?;
    for (tree, description) in trees.into_iter().zip(&start.trees) {
        let read_only = if description.writable { 0 } else { READ_ONLY };
        directory(&description.inside)
            .and_then(|()| {
                attach(
                    &tree,
                    &description.inside,
                    read_only | NO_SETUID | NO_DEVICES,
                )
            })
            .during_with(Step::AttachDirectory, || description.inside.clone())?;
    }
    mask_facts().during(Step::MountProc)?;
    leave_host().during(Step::LeaveHost)?;
    find_bash()
}

/// Looks for the one program that a sandbox cannot do without.
pub(super) fn find_bash() -> Result<(), Fault> {
    let has_bash = BASH
        .iter()
        .any(|path| rustix::fs::access(*path, rustix::fs::Access::EXEC_OK).is_ok());
    has_bash
        .then_some(())
        .ok_or(io::Error::from_raw_os_error(libc::ENOENT))
        .during(Step::FindBash)
}

/// Limits what counts against the user who started the server, of whose share one sandbox could else take all.
///
/// The host's own programs would then be refused: root has 128 inotify instances by default, all sandboxes of a root server included.
fn limit_namespace() {
    for (name, most) in [
        ("max_inotify_instances", "8"),
        ("max_inotify_watches", "16384"),
        ("max_user_namespaces", "0"),
    ] {
        // A kernel without inotify has no such file, and needs no such limit.
        let _ = fs::write(format!("/proc/sys/user/{name}"), most);
    }
    // What System V holds outlives its processes, and would leave no memory for the command that is to remove it. Only true
    // root may set these; an unprivileged server has no limit for the memory of all processes together anyway.
    for (name, most) in [
        (
            "shmall",
            (SHARED_MEMORY_BYTES / page_size() as u64).to_string(),
        ),
        ("msgmni", "64".to_owned()),
        ("sem", "250 32000 100 128".to_owned()),
    ] {
        let _ = fs::write(format!("/proc/sys/kernel/{name}"), most);
    }
}

fn open_trees(start: &Start, trees: Vec<Option<OwnedFd>>) -> Result<Vec<OwnedFd>, Fault> {
    let open = |(tree, opened): (&Tree, Option<OwnedFd>)| match opened {
        Some(opened) => Ok(opened),
        None => open_tree(&tree.host).during_with(Step::OpenDirectory, || tree.inside.clone()),
    };
    start.trees.iter().zip(trees).map(open).collect()
}

/// Becomes the user that owns the files. An unprivileged start is that user already, and keeps its other groups.
fn become_user() -> Result<(), Fault> {
    let (uid, gid) = (Uid::from_raw(INSIDE_UID), Gid::from_raw(INSIDE_UID));
    if rustix::process::geteuid() != uid {
        set_thread_groups(&[]).during(Step::BecomeUser)?;
        set_thread_res_gid(gid, gid, gid).during(Step::BecomeUser)?;
        set_thread_res_uid(uid, uid, uid).during(Step::BecomeUser)?;
    }
    // Else our own files in /proc would belong to root, who is nobody here.
    set_dumpable_behavior(DumpableBehavior::Dumpable).during(Step::BecomeUser)?;
    umask(Mode::from_raw_mode(0o022));
    Ok(())
}

fn enter_new_root() -> io::Result<()> {
    mount(
        "tmpfs",
        "/tmp",
        "tmpfs",
        MountFlags::NOSUID | MountFlags::NODEV,
        c"mode=0755,size=4m,nr_inodes=4096",
    )?;
    chdir("/tmp")?;
    fs::create_dir(".old")?;
    pivot_root(".", ".old")?;
    chdir("/")?;
    Ok(())
}

fn bind_system(rootfs: Option<OwnedFd>) -> io::Result<()> {
    let from = format!("{OLD}/");
    let Some(rootfs) = rootfs else {
        for name in PROGRAMS {
            show(&format!("{from}{name}"), &format!("/{name}"))?;
        }
        return Ok(());
    };
    // A mount can be read only if it is attached somewhere; this place goes with the host's root.
    directory("/.rootfs")?;
    attach(&rootfs, "/.rootfs", READ_ONLY | NO_SETUID | NO_DEVICES)?;
    for entry in fs::read_dir("/.rootfs")? {
        let name = entry?.file_name();
        if let Some(name) = name.to_str()
            && !OURS.contains(&name)
        {
            show(&format!("/.rootfs/{name}"), &format!("/{name}"))?;
        }
    }
    unmount("/.rootfs", UnmountFlags::DETACH)?;
    fs::remove_dir("/.rootfs")
}

/// Shows `from` at `to`, read only: a directory or file as a mount, a link as a link, and what is absent not at all.
pub(crate) fn show(from: &str, to: &str) -> io::Result<()> {
    let found = match fs::symlink_metadata(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?.file_type(),
    };
    if found.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if found.is_dir() {
        directory(to)?;
    } else if found.is_file() {
        fs::File::create(to)?;
    } else {
        return Ok(());
    }
    attach(
        &open_tree(Path::new(from))?,
        to,
        READ_ONLY | NO_SETUID | NO_DEVICES,
    )
}

/// Puts a mount of our own at `to`, cut off from where it came from.
fn attach(tree: &OwnedFd, to: &str, attributes: u64) -> io::Result<()> {
    let attributes = MountAttributes {
        set: attributes,
        propagation: libc::MS_PRIVATE,
        ..MountAttributes::default()
    };
    sys::set_mount_attributes(tree.as_fd(), attributes, true)?;
    move_mount(tree, "", CWD, to, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    Ok(())
}

fn mount_proc() -> io::Result<()> {
    directory("/proc")?;
    directory("/sys")?;
    mount(
        "proc",
        "/proc",
        "proc",
        MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
        None,
    )?;
    Ok(())
}

fn mask_facts() -> io::Result<()> {
    for name in MASKED {
        let path = format!("/proc/{name}");
        if Path::new(&path).exists() {
            attach(
                &open_tree(Path::new("/dev/null"))?,
                &path,
                READ_ONLY | NO_SETUID | NO_EXECUTION,
            )?;
        }
    }
    Ok(())
}

fn make_devices(tmp_bytes: u64) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    directory("/dev")?;
    mount(
        "tmpfs",
        "/dev",
        "tmpfs",
        flags,
        c"mode=0755,size=64k,nr_inodes=64",
    )?;
    for name in DEVICES {
        let path = format!("/dev/{name}");
        fs::File::create(&path)?;
        attach(
            &open_tree(Path::new(&format!("{OLD}/dev/{name}")))?,
            &path,
            NO_SETUID | NO_EXECUTION,
        )?;
    }
    directory("/dev/pts")?;
    mount(
        "devpts",
        "/dev/pts",
        "devpts",
        flags,
        c"newinstance,ptmxmode=0666,mode=620",
    )?;
    make_memory_directory("/dev/shm", SHARED_MEMORY_BYTES.min(tmp_bytes / 2), 16_384)?;
    symlink("pts/ptmx", "/dev/ptmx")?;
    symlink("/proc/self/fd", "/dev/fd")?;
    for (number, name) in ["stdin", "stdout", "stderr"].into_iter().enumerate() {
        symlink(format!("/proc/self/fd/{number}"), format!("/dev/{name}"))?;
    }
    make_read_only("/dev", NO_SETUID | NO_EXECUTION)
}

fn make_tmp(bytes: u64) -> io::Result<()> {
    make_memory_directory("/tmp", bytes, 262_144)?;
    if !Path::new("/var").exists() {
        directory("/var")?;
        symlink("/tmp", "/var/tmp")?;
    }
    Ok(())
}

/// A directory that everybody may write to, of which so much is kept in memory.
fn make_memory_directory(path: &str, bytes: u64, files: u64) -> io::Result<()> {
    directory(path)?;
    let options = CString::new(format!("mode=1777,size={bytes},nr_inodes={files}"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", path, "tmpfs", flags, options.as_c_str())?;
    Ok(())
}

fn leave_host() -> io::Result<()> {
    unmount(OLD, UnmountFlags::DETACH)?;
    fs::remove_dir(OLD)?;
    make_read_only("/", NO_SETUID | NO_DEVICES)
}

fn make_read_only(path: &str, more: u64) -> io::Result<()> {
    let here = rustix::mount::open_tree(CWD, path, OpenTreeFlags::OPEN_TREE_CLOEXEC)?;
    let attributes = MountAttributes {
        set: READ_ONLY | more,
        ..MountAttributes::default()
    };
    sys::set_mount_attributes(here.as_fd(), attributes, false)
}

/// Makes a directory that everybody may enter, and those above it.
pub(crate) fn directory(path: &str) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(path)
}

/// Makes a file that everybody may read.
pub(crate) fn file(path: &str, content: &str) -> io::Result<()> {
    fs::write(path, content)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}

/// Puts the file `from` over the file `over`, read only. It stays there when its own name goes.
pub(crate) fn cover(from: &str, over: &str) -> io::Result<()> {
    attach(
        &open_tree(Path::new(from))?,
        over,
        READ_ONLY | NO_SETUID | NO_DEVICES,
    )
}
