//! What a container is like: its limits, what it sees, what it may do.

use std::path::Path;

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig,
    Mount, MountType, ResourcesUlimits,
};

use super::{MEETING_PLACE, OWN_PROCESSES, image::User};
use crate::config::{CONTAINER_UID, Network, SandboxConfig};

/// What init needs to become the sandbox's user and to give up the rest, and the agent to count in closed directories. No command
/// has any of it.
const CAPABILITIES: [&str; 4] = ["SETUID", "SETGID", "SETPCAP", "DAC_READ_SEARCH"];
/// Facts about the host that nobody needs. Those that an engine hides by itself are here too, since our list takes the place of its own.
const MASKED: [&str; 33] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/cmdline",
    "/proc/config.gz",
    "/proc/interrupts",
    "/proc/kallsyms",
    "/proc/kcore",
    "/proc/key-users",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/pressure",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/sysrq-trigger",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/block",
    "/sys/bus",
    "/sys/class",
    "/sys/dev",
    "/sys/devices",
    "/sys/firmware",
    "/sys/fs/bpf",
    "/sys/fs/btrfs",
    "/sys/fs/ext4",
    "/sys/fs/fuse",
    "/sys/fs/pstore",
    "/sys/fs/selinux",
    "/sys/fs/xfs",
    "/sys/hypervisor",
    "/sys/kernel",
    "/sys/module",
    "/sys/power",
];
const READ_ONLY: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];
/// The most that `/dev/shm` holds, and the most in segments of System V.
const SHARED_MEMORY_BYTES: u64 = 64 << 20;
/// What a place holds that the image has a volume for.
const COVERED_BYTES: u64 = 16 << 20;
const PAGE_BYTES: u64 = 4096;
/// Open files of init and the agent, at least.
const OPEN_FILES: u64 = 4096;
/// Processes of one user, at least.
const PROCESSES: u64 = 32_768;
const CPU_PERIOD_MICROSECONDS: u64 = 100_000;

/// Describes the container of one chat.
pub(super) fn body(
    config: &SandboxConfig,
    image: &str,
    command: Vec<String>,
    mounts: Vec<Mount>,
    covered: &[String],
    is_podman: bool,
) -> ContainerCreateBody {
    let tmp = config.tmp_in_force();
    let in_memory = |bytes: u64, files: u64| {
        // Podman does not know how to limit files; there the memory limit has to do.
        let files = if is_podman {
            String::new()
        } else {
            format!(",nr_inodes={files}")
        };
        format!("rw,exec,nosuid,nodev,mode=1777,size={bytes}{files}")
    };
    let memory = signed(config.memory_bytes);
    // Places that the image has volumes for would be outside of every limit.
    let covered = covered
        .iter()
        .map(|path| (path.clone(), in_memory(COVERED_BYTES, 1024)));
    let host_network = config.network == Network::Host;
    ContainerCreateBody {
        image: Some(image.to_owned()),
        entrypoint: Some(command),
        cmd: Some(Vec::new()),
        user: Some("0:0".to_owned()),
        working_dir: Some("/".to_owned()),
        env: Some(loader_environment()),
        hostname: (!host_network).then(|| "sandbox".to_owned()),
        open_stdin: Some(true),
        stdin_once: Some(false),
        attach_stdin: Some(false),
        tty: Some(false),
        // Podman would make a timer of systemd's for it.
        healthcheck: (!is_podman).then(|| HealthConfig {
            test: Some(vec!["NONE".to_owned()]),
            ..HealthConfig::default()
        }),
        host_config: Some(HostConfig {
            mounts: Some(mounts),
            tmpfs: Some(
                [
                    ("/tmp".to_owned(), in_memory(tmp, 262_144)),
                    // Together they leave room in memory, of which /tmp alone may take half.
                    ("/var/tmp".to_owned(), in_memory(tmp / 4, 65_536)),
                    (
                        MEETING_PLACE.to_owned(),
                        "rw,noexec,nosuid,nodev,mode=0700,size=64k".to_owned(),
                    ),
                    (
                        "/dev/shm".to_owned(),
                        in_memory(SHARED_MEMORY_BYTES.min(tmp / 2), 16_384),
                    ),
                ]
                .into_iter()
                .chain(covered)
                .collect(),
            ),
            readonly_rootfs: Some(true),
            cap_drop: Some(vec!["ALL".to_owned()]),
            cap_add: Some(CAPABILITIES.map(str::to_owned).into()),
            security_opt: Some(security_options(is_podman)),
            masked_paths: Some(MASKED.map(str::to_owned).into()),
            readonly_paths: Some(READ_ONLY.map(str::to_owned).into()),
            network_mode: Some(if host_network { "host" } else { "none" }.to_owned()),
            ipc_mode: Some("none".to_owned()),
            cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
            memory: Some(memory),
            memory_swap: Some(memory),
            // Not as a number of processors, of which an engine refuses more than there are.
            cpu_period: Some(signed(CPU_PERIOD_MICROSECONDS)),
            cpu_quota: Some(signed(config.cpu_percent * CPU_PERIOD_MICROSECONDS / 100)),
            // Of all in the container: a command has less, which init sees to. Unset, Podman asks for more than it may have itself.
            ulimits: Some(ulimits(
                config.max_open_files.max(OPEN_FILES),
                (config.max_running as u64)
                    .saturating_mul(config.max_processes)
                    .max(PROCESSES),
            )),
            // Our own do not count.
            pids_limit: Some(signed(config.max_processes + OWN_PROCESSES)),
            sysctls: Some(
                [
                    (
                        "kernel.shmall".to_owned(),
                        (SHARED_MEMORY_BYTES / PAGE_BYTES).to_string(),
                    ),
                    ("kernel.msgmni".to_owned(), "64".to_owned()),
                    ("kernel.sem".to_owned(), "250 32000 100 128".to_owned()),
                ]
                .into(),
            ),
            log_config: Some(HostConfigLogConfig {
                typ: Some("none".to_owned()),
                config: None,
            }),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    }
}

/// What an image says to the loader is not for our program, which has libraries of its own; commands get it.
pub(super) fn loader_environment() -> Vec<String> {
    [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "GLIBC_TUNABLES",
    ]
    .map(|name| format!("{name}="))
    .into()
}

fn security_options(is_podman: bool) -> Vec<String> {
    let mut options = vec!["no-new-privileges".to_owned()];
    if is_podman {
        // It does not heed the list in the other place.
        options.push(format!("mask={}", MASKED.join(":")));
    }
    options
}

/// Open files of each process, and processes of the user: in all containers together, and of whoever has that number on the host.
pub(super) fn ulimits(open_files: u64, processes: u64) -> Vec<ResourcesUlimits> {
    let ulimit = |name: &str, most| ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(signed(most)),
        hard: Some(signed(most)),
    };
    vec![ulimit("nofile", open_files), ulimit("nproc", processes)]
}

/// Shows a directory of the engine's host.
pub(super) fn bind(host: &Path, inside: &str, writable: bool) -> Mount {
    Mount {
        typ: Some(MountType::BIND),
        source: Some(host.display().to_string()),
        target: Some(inside.to_owned()),
        read_only: Some(!writable),
        ..Mount::default()
    }
}

/// Shows a volume.
pub(super) fn volume(name: &str, inside: &str) -> Mount {
    Mount {
        typ: Some(MountType::VOLUME),
        source: Some(name.to_owned()),
        target: Some(inside.to_owned()),
        read_only: Some(false),
        ..Mount::default()
    }
}

/// Who works in a sandbox whose files are shared with this server: whoever owns them here.
///
/// Its group is not the one that may use the engine's socket: a file with the set-group-id bit would give that away.
pub(super) fn user_of_shared_files(host: &str) -> User {
    #[cfg(target_os = "linux")]
    if !is_root() {
        use std::os::unix::fs::MetadataExt;
        let (uid, gid) = (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        );
        let socket = host.strip_prefix("unix://").unwrap_or(host);
        let is_the_sockets = std::fs::metadata(socket).is_ok_and(|found| found.gid() == gid);
        return User {
            uid,
            gid: if is_the_sockets { uid } else { gid },
        };
    }
    let _ = host;
    USER
}

/// Whether this server is root here.
#[cfg(target_os = "linux")]
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether this server is root here, which does not help with a machine of Docker's own.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn is_root() -> bool {
    false
}

/// Who works in a sandbox.
pub(super) const USER: User = User {
    uid: CONTAINER_UID,
    gid: CONTAINER_UID,
};

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
