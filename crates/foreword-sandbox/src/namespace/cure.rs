//! Says why there is no sandbox here and what to do, for each way in which making one can fail.

use std::fs;

use crate::{
    driver::protocol::{Fault, Step},
    state::Unavailable,
};

/// What the host says of itself, as far as a cure depends on it.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the host, none excludes another"
)]
#[derive(Debug, Clone, Default)]
pub(super) struct Host {
    /// `kernel.apparmor_restrict_unprivileged_userns` is 1.
    pub(super) apparmor_restricts: bool,
    /// `kernel.unprivileged_userns_clone` is 0.
    pub(super) debian_forbids: bool,
    /// `user.max_user_namespaces` is 0.
    pub(super) none_allowed: bool,
    /// The server itself is in a container.
    pub(super) in_container: bool,
}

impl Host {
    pub(super) fn look() -> Self {
        let is = |name: &str, value: &str| {
            fs::read_to_string(format!("/proc/sys/{name}")).is_ok_and(|text| text.trim() == value)
        };
        let exists = |path: &str| fs::exists(path).unwrap_or(false);
        Self {
            apparmor_restricts: is("kernel/apparmor_restrict_unprivileged_userns", "1"),
            debian_forbids: is("kernel/unprivileged_userns_clone", "0"),
            none_allowed: is("user/max_user_namespaces", "0"),
            in_container: exists("/.dockerenv") || exists("/run/.containerenv"),
        }
    }
}

const CONTAINER: &str = "start this container with `--security-opt seccomp=unconfined --security-opt systempaths=unconfined` \
    (and `--security-opt apparmor=unconfined` where AppArmor is on), or set `sandbox.backend` to `none`";
const APPARMOR: &str = "allow it with `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, or give this program an AppArmor \
    profile with `userns,`, or start it as root";

/// Explains a failure.
pub(super) fn explain(fault: &Fault, host: &Host) -> Unavailable {
    let detail = if fault.detail.is_empty() {
        String::new()
    } else {
        format!(" ({})", fault.detail)
    };
    let reason = format!("{fault}{detail}");
    Unavailable {
        reason,
        cure: cure(fault, host),
    }
}

fn cure(fault: &Fault, host: &Host) -> String {
    let forbidden = matches!(fault.errno, libc::EPERM | libc::EACCES);
    match (fault.step, fault.errno) {
        (Step::Clone, libc::ENOSPC) if host.none_allowed => {
            "user namespaces are switched off; allow them with `sysctl -w user.max_user_namespaces=15000`".to_owned()
        }
        (Step::Clone, libc::ENOSPC) => {
            "all user namespaces that this user may have are taken; raise `user.max_user_namespaces` with sysctl".to_owned()
        }
        (Step::Clone, libc::EINVAL) => "this kernel has no user namespaces; use one with CONFIG_USER_NS".to_owned(),
        (Step::Clone, libc::EPERM) if host.debian_forbids => {
            "allow it with `sysctl -w kernel.unprivileged_userns_clone=1`, or start the server as root".to_owned()
        }
        (Step::Clone, libc::EPERM) if host.in_container => format!("an outer container forbids namespaces: {CONTAINER}"),
        (Step::Clone, libc::EPERM) => {
            "something forbids namespaces, most likely the seccomp filter of a service manager or container around the server: for \
             systemd, remove `RestrictNamespaces=`; for Docker, use `--security-opt seccomp=unconfined --security-opt \
             systempaths=unconfined`"
                .to_owned()
        }
        (Step::Clone | Step::Receive, libc::EAGAIN) => {
            "this user or the server's control group has no process left; raise its limit (`ulimit -u`, `TasksMax=`)".to_owned()
        }
        (Step::MapIds, _) => "the number of `sandbox.host_uid` does not exist where the server runs (a container with few users?); \
             choose one that does, or start the server as another user than root"
            .to_owned(),
        (Step::JoinGroup, _) => "the server may make control groups but not fill them; look at who owns its group".to_owned(),
        _ if forbidden && host.apparmor_restricts => format!("AppArmor restricts user namespaces: {APPARMOR}"),
        (Step::MountProc, _) if forbidden => format!("an outer container hides parts of /proc: {CONTAINER}"),
        (Step::MakeRoot | Step::BindSystem | Step::MountDevices | Step::LeaveHost, _) if forbidden && host.in_container => {
            format!("an outer container forbids mounts: {CONTAINER}")
        }
        (Step::MakeRoot, libc::EINVAL) => {
            "the host's root is an initramfs, which cannot be left; start the system from a real root file system".to_owned()
        }
        (Step::MakeRoot, libc::ENOENT) => "the host needs a directory `/tmp`".to_owned(),
        (Step::OpenDirectory, _) if fault.detail.starts_with('`') => "`sandbox.rootfs` has to be a directory that exists".to_owned(),
        (Step::OpenDirectory, _) if forbidden => {
            "the server's user may not enter the data directory; it has to own it, or be root".to_owned()
        }
        (Step::OpenDirectory, libc::ENOENT) => "a directory of the workspace went away; try again".to_owned(),
        (Step::FindBash, _) => {
            "there is no bash in `/usr/bin`; install bash, or set `sandbox.rootfs` to a directory with a root file system that has it"
                .to_owned()
        }
        (_, libc::ENOSYS) => "this kernel is too old; use Linux 5.12 or newer".to_owned(),
        (Step::Filter, _) => "use a kernel with CONFIG_SECCOMP_FILTER".to_owned(),
        _ if forbidden => "something around the server forbids it: a container, a security module or a service manager; see \
             docs/sandbox.md, or set `sandbox.backend` to `none`"
            .to_owned(),
        _ => "see docs/sandbox.md, or set `sandbox.backend` to `none`".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cure_of(step: Step, errno: i32, host: &Host) -> String {
        explain(
            &Fault {
                step,
                detail: String::new(),
                errno,
            },
            host,
        )
        .to_string()
    }

    #[test]
    fn each_known_failure_names_its_switch() {
        let plain = Host::default();
        let container = Host {
            in_container: true,
            ..plain.clone()
        };
        let ubuntu = Host {
            apparmor_restricts: true,
            ..plain.clone()
        };
        let debian = Host {
            debian_forbids: true,
            ..plain.clone()
        };
        let off = Host {
            none_allowed: true,
            ..plain.clone()
        };
        for (step, errno, host, word) in [
            (
                Step::Clone,
                libc::ENOSPC,
                &off,
                "sysctl -w user.max_user_namespaces=15000",
            ),
            (
                Step::Clone,
                libc::ENOSPC,
                &plain,
                "raise `user.max_user_namespaces`",
            ),
            (Step::Clone, libc::EPERM, &container, "seccomp=unconfined"),
            (
                Step::Clone,
                libc::EPERM,
                &debian,
                "kernel.unprivileged_userns_clone=1",
            ),
            (Step::Clone, libc::EINVAL, &plain, "CONFIG_USER_NS"),
            (
                Step::MountProc,
                libc::EPERM,
                &container,
                "systempaths=unconfined",
            ),
            (
                Step::MakeRoot,
                libc::EACCES,
                &ubuntu,
                "apparmor_restrict_unprivileged_userns=0",
            ),
            (
                Step::MakeRoot,
                libc::EPERM,
                &container,
                "apparmor=unconfined",
            ),
            (Step::MapIds, libc::EPERM, &plain, "sandbox.host_uid"),
            (Step::FindBash, libc::ENOENT, &plain, "sandbox.rootfs"),
        ] {
            let text = cure_of(step, errno, host);
            assert!(text.contains(word), "{step:?} {errno}: {text}");
        }
    }

    #[test]
    fn a_failure_reads_as_a_sentence() {
        assert_eq!(
            cure_of(Step::Clone, libc::EINVAL, &Host::default()),
            "there is no sandbox: making namespaces: Invalid argument (os error 22); this kernel has no user namespaces; use one \
             with CONFIG_USER_NS"
        );
    }
}
