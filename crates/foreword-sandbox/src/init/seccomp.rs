//! Refuses system calls that no program in a sandbox needs and that have let others out of theirs.
//!
//! Three filters, each short, since the kernel tries every system call on each when it is loaded. What is refused for good answers
//! "not permitted"; what a program does without answers "not implemented", and so does whatever is newer than this list. Calls of
//! another architecture end the process.

use std::{collections::BTreeMap, io};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter, sock_filter,
};

use crate::driver::protocol::{Fault, Step};

/// Refused for good.
const FORBIDDEN: &[libc::c_long] = &[
    // Mounts and roots.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    // Namespaces.
    libc::SYS_setns,
    libc::SYS_unshare,
    // Other processes' memory and descriptors.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // The kernel.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    libc::SYS_vhangup,
    libc::SYS_fanotify_init,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    // The clock.
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    KEXEC_FILE_LOAD,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ustat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_sysfs,
    #[cfg(target_arch = "x86_64")]
    libc::SYS__sysctl,
];

/// Answered as if the kernel did not have them: programs then do without. `clone3` is among them because what it is asked to do cannot
/// be looked at; the C library falls back to `clone`.
const ABSENT: &[libc::c_long] = &[
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    // There is one small share of these for the whole host.
    libc::SYS_io_setup,
    libc::SYS_memfd_secret,
    STATMOUNT,
    LISTMOUNT,
];
#[cfg(target_arch = "x86_64")]
const KEXEC_FILE_LOAD: libc::c_long = 320;
#[cfg(target_arch = "aarch64")]
const KEXEC_FILE_LOAD: libc::c_long = 294;
const STATMOUNT: libc::c_long = 457;
const LISTMOUNT: libc::c_long = 458;

/// `TIOCSTI` and `TIOCLINUX`, whose types differ between C libraries.
const PUSH_INPUT: u64 = 0x5412;
const TELL_CONSOLE: u64 = 0x541c;

/// The newest system call that was looked at (`removexattrat`). The numbers are the same on all architectures from 424 on.
const NEWEST: u32 = 466;

/// What `clone` must not be asked for: namespaces, and a child that would be init's and so outlive its command.
const FORBIDDEN_CLONES: [libc::c_int; 8] = [
    libc::CLONE_PARENT,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Loads the filters.
pub(crate) fn apply() -> Result<(), Fault> {
    let apply = || -> Result<(), Box<dyn std::error::Error>> {
        for program in [forbidden()?, absent()?, unknown()] {
            apply_filter(&program)?;
        }
        Ok(())
    };
    apply().map_err(|error| Fault {
        step: Step::Filter,
        detail: error.to_string(),
        errno: io::Error::last_os_error().raw_os_error().unwrap_or(0),
    })
}

fn forbidden() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = FORBIDDEN
        .iter()
        .map(|number| (*number, Vec::new()))
        .collect();
    let clones = FORBIDDEN_CLONES.iter().map(|flag| {
        let flag = u64::from(flag.cast_unsigned());
        rule(&[(0, SeccompCmpOp::MaskedEq(flag), flag)])
    });
    rules.insert(libc::SYS_clone, clones.collect::<Result<_, _>>()?);
    // Pushing input into a terminal. The kernel looks at the lower half of the number only, and so do we.
    let terminal =
        [PUSH_INPUT, TELL_CONSOLE].map(|request| rule(&[(1, SeccompCmpOp::Eq, request)]));
    rules.insert(
        libc::SYS_ioctl,
        terminal.into_iter().collect::<Result<_, _>>()?,
    );
    rules.insert(libc::SYS_socket, sockets()?);
    filter(rules, libc::EPERM)
}

/// Unix, internet, and the netlink of `getifaddrs`: nothing else.
fn sockets() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let number = |family: libc::c_int| u64::from(family.cast_unsigned());
    let families = [
        libc::AF_UNIX,
        libc::AF_INET,
        libc::AF_INET6,
        libc::AF_NETLINK,
    ];
    let others: Vec<_> = families
        .iter()
        .map(|family| (0, SeccompCmpOp::Ne, number(*family)))
        .collect();
    let netlink = [
        (0, SeccompCmpOp::Eq, number(libc::AF_NETLINK)),
        (2, SeccompCmpOp::Ne, number(libc::NETLINK_ROUTE)),
    ];
    Ok(vec![rule(&others)?, rule(&netlink)?])
}

fn absent() -> Result<BpfProgram, seccompiler::BackendError> {
    filter(
        ABSENT.iter().map(|number| (*number, Vec::new())).collect(),
        libc::ENOSYS,
    )
}

/// Answers everything newer than [`NEWEST`], and the x32 numbers with them, as not implemented.
fn unknown() -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_GREATER: u16 = 0x25;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const ERROR: u32 = 0x0005_0000;
    let statement = |code, k| sock_filter {
        code,
        jt: 0,
        jf: 0,
        k,
    };
    vec![
        statement(LOAD_WORD, 0),
        sock_filter {
            code: JUMP_IF_GREATER,
            jt: 1,
            jf: 0,
            k: NEWEST,
        },
        statement(RETURN, ALLOW),
        statement(RETURN, ERROR | libc::ENOSYS.cast_unsigned()),
    ]
}

/// Arguments by position, compared in their lower half, all of which have to be as said.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions = conditions.iter().map(|(position, operator, value)| {
        SeccompCondition::new(*position, SeccompCmpArgLen::Dword, operator.clone(), *value)
    });
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}

fn filter(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    errno: libc::c_int,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let answer = SeccompAction::Errno(errno.cast_unsigned());
    let architecture = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, answer, architecture)?.try_into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_stay_short() {
        let lengths = [
            forbidden().unwrap().len(),
            absent().unwrap().len(),
            unknown().len(),
        ];
        assert!(lengths.iter().sum::<usize>() < 420, "{lengths:?}");
    }
}
