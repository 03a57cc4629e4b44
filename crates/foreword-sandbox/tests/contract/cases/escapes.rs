//! Escapes: each attempt is made, and each has to be refused.

use std::{
    net::TcpListener,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener},
    },
};

use foreword_sandbox::Ending;

use crate::support::Backend;

super::cases! {
    commands_that_would_lead_out_are_refused
    system_calls_that_would_lead_out_are_refused
    init_cannot_be_looked_into
    services_of_the_host_are_not_reached
    what_was_refused_did_no_harm
    programs_of_another_architecture_are_ended
    a_child_between_fork_and_exec_shows_no_socket
    with_the_hosts_network_only_the_network_is_shared
}

/// Each succeeds only if the sandbox failed.
const COMMANDS: &[&str] = &[
    "mount -t tmpfs none /tmp",
    "mount --bind /usr /tmp",
    "mount -o remount,rw /",
    "mount -o remount,rw /usr",
    "umount /proc",
    "umount /mnt/user-data/uploads",
    "umount -l /",
    "mount -t proc proc /tmp",
    "chroot / true",
    "pivot_root / /tmp",
    "unshare -U true",
    "unshare -Ur true",
    "unshare -n true",
    "unshare -m true",
    "nsenter -t 1 -m true",
    "nsenter -t 1 -U true",
    "su -c true",
    "sudo -n true",
    "passwd -d assistant",
    "newgrp root < /dev/null && [ $(id -g) = 0 ]",
    "chown 0 /home/assistant",
    "chgrp 0 /home/assistant",
    "mknod /tmp/null c 1 3",
    "mknod /tmp/disk b 254 0",
    "cat /dev/mem",
    "cat /dev/kmsg",
    "dmesg",
    "echo x > /dev/sda",
    "echo x > /proc/sys/kernel/core_pattern",
    "echo 3 > /proc/sys/vm/drop_caches",
    "echo 1 > /proc/sys/net/ipv4/ip_forward",
    "echo b > /proc/sysrq-trigger && false",
    "echo -100 > /proc/self/oom_score_adj",
    "hostname other",
    "date -s 2001-01-01",
    "nice -n -5 sh -c '[ $(nice) -lt 0 ]'",
    "renice -n -5 $$",
    "chrt -f 1 true",
    "ulimit -c unlimited",
    "touch /new",
    "touch /usr/new",
    "touch /usr/bin/new",
    "touch /etc/new",
    "echo >> /etc/passwd",
    "touch /mnt/new",
    "touch /mnt/user-data/new",
    "touch /mnt/user-data/uploads/new",
    "touch /mnt/skills/new",
    "touch /mnt/skills/public/new",
    "touch /dev/new",
    "touch /proc/new",
    "rm -rf /usr/bin/true; [ ! -e /usr/bin/true ]",
    "chmod 777 /usr",
    "ln /usr/bin/true /home/assistant/true",
    "ln /mnt/user-data/uploads/given /home/assistant/given",
    "mv /mnt/user-data/uploads/given /tmp",
    "cat /etc/shadow",
    "ls /root",
    "ls /home/assistant/../../root",
    "cat /proc/1/environ",
    "ls /proc/1/fd/",
    "ls /proc/1/root/",
    "ls /proc/1/cwd/",
    "cat /proc/1/maps | grep .",
    "cat /proc/1/mem",
    "readlink /proc/1/exe",
    "cp /bin/true /proc/1/exe",
    "echo > /proc/1/comm",
    "ls -A /sys/kernel | grep .",
    "ls /sys/fs/cgroup/cgroup.procs",
    "ls /run/docker.sock /var/run/docker.sock",
    "strace true",
    "gdb -batch -ex run true | grep -q normally",
    "cp /usr/bin/id x; chmod 4755 x; ./x -u | grep -x 0",
    "cp /usr/bin/python3 p; setcap cap_sys_admin+ep p",
    "ip link add dummy0 type dummy",
    "ip addr add 10.0.0.1/8 dev lo",
    "iptables -L",
    "ping -c1 -W1 1.1.1.1",
    "echo > /dev/tcp/1.1.1.1/80",
    "getent hosts example.com",
    "swapon /tmp",
    "modprobe dummy",
    "capsh --print | grep -E 'Current: =.*cap'",
    "grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb):.*[1-9a-f]' /proc/self/status",
    "grep -x 'NoNewPrivs:.0' /proc/self/status",
    "grep -x 'Seccomp:.0' /proc/self/status",
    "ls -d /proc/[0-9]* | wc -l | awk '$1 < 12 { exit 1 }'",
];

async fn commands_that_would_lead_out_are_refused(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    std::fs::write(chat.spec.uploads.join("given"), "by the user").unwrap();
    let attempts = COMMANDS.iter().map(|command| {
        let quoted = command.replace('\'', r"'\''");
        format!("if bash -c '{quoted}' > /dev/null 2>&1 < /dev/null; then echo 'LED OUT: {quoted}'; fi\n")
    });
    assert_eq!(chat.run(&attempts.collect::<String>()).await.text(), "");
    assert_eq!(
        std::fs::read_to_string(chat.spec.uploads.join("given")).unwrap(),
        "by the user"
    );
}

/// Calls the kernel directly. What is absent has to answer so, since the C library then does without.
const SYSTEM_CALLS: &str = r#"
import ctypes, os, socket, errno, fcntl, platform
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == "x86_64"
EPERM, ENOSYS = {errno.EPERM}, {errno.ENOSYS}
buffer = ctypes.create_string_buffer(4096)
def call(name, expected, number, *arguments):
    ctypes.set_errno(0)
    arguments = [ctypes.c_ulong(a & (2**64 - 1)) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *arguments)
    if result == 0 and "clone" in name: os._exit(0)
    if result != -1 or ctypes.get_errno() not in expected:
        print("LED OUT:", name, result, errno.errorcode.get(ctypes.get_errno()))
NEWUSER = 0x10000000
if x86:
    for flag in [NEWUSER, 0x20000, 0x20000000, 0x40000000, 0x8000000, 0x4000000, 0x2000000]:
        call(f"clone {flag:x}", EPERM, 56, flag | 17, 0, 0, 0, 0)
        call(f"clone high {flag:x}", EPERM, 56, (1 << 40) | flag | 17, 0, 0, 0, 0)
        call(f"unshare {flag:x}", EPERM, 272, flag)
    # A child of the parent would be init's, and outlive what ends the command.
    call("clone parent", EPERM, 56, 0x8000 | 17, 0, 0, 0, 0)
    call("unshare time", EPERM, 272, 0x80)
    for name, number in dict(ptrace=101, mount=165, umount2=166, pivot_root=155, chroot=161, setns=308, keyctl=250, add_key=248,
            request_key=249, process_vm_readv=310, process_vm_writev=311, kcmp=312, perf_event_open=298, bpf=321, init_module=175,
            finit_module=313, delete_module=176, kexec_load=246, kexec_file_load=320, reboot=169, syslog=103, acct=163, swapon=167,
            swapoff=168, quotactl=179, iopl=172, ioperm=173, modify_ldt=154, settimeofday=164, adjtimex=159, clock_settime=227,
            clock_adjtime=305, sethostname=170, setdomainname=171, name_to_handle_at=303, open_by_handle_at=304,
            fanotify_init=300, lookup_dcookie=212, vhangup=153, uselib=134, ustat=136, sysfs=139, _sysctl=156).items():
        call(name, EPERM, number, 0, 0, 0, 0, 0, 0)
    call("userfaultfd", ENOSYS, 323, 0)
    call("getpid of x32", ENOSYS, 0x40000000 + 39)
    call("ptrace of x32", ENOSYS, 0x40000000 + 521)
for name, number in dict(open_tree=428, move_mount=429, fsopen=430, fsconfig=431, fsmount=432, fspick=433, pidfd_getfd=438,
        mount_setattr=442, process_madvise=440, quotactl_fd=443).items():
    call(name, EPERM, number, 0, 0, 0, 0, 0, 0)
for name, number in dict(io_uring_setup=425, io_uring_enter=426, io_uring_register=427, clone3=435, memfd_secret=447, statmount=457,
        listmount=458, open_tree_attr=467, unknown=600, far=100000, negative=-1).items():
    call(name, ENOSYS, number, 0, 0, 0, 0, 0, 0)
def refused(name, attempt):
    try: attempt(); print("LED OUT:", name)
    except OSError as e:
        if e.errno not in (errno.EPERM, errno.EACCES): print("ODD:", name, e)
AF_VSOCK, AF_PACKET, AF_ALG = 40, 17, 38
for family in [AF_VSOCK, AF_PACKET, AF_ALG, 4, 5, 9, 21, 29, 31, 44]:
    refused(f"family {family}", lambda: socket.socket(family, socket.SOCK_DGRAM))
for protocol in range(1, 23):
    refused(f"netlink {protocol}", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol))
socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
refused("raw socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
master, slave = os.openpty()
for request in [0x5412, 0x541c, 0x100005412, 0xffffffff00005412]:
    ctypes.set_errno(0)
    if libc.ioctl(slave, ctypes.c_ulong(request), buffer) != -1 or ctypes.get_errno() != errno.EPERM: print("LED OUT: ioctl", hex(request))
"#;

async fn system_calls_that_would_lead_out_are_refused(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    chat.text("true").await;
    std::fs::write(chat.home("attack.py"), SYSTEM_CALLS).unwrap();
    let ran = chat.run("python3 attack.py").await;
    assert_eq!(ran.summary(), r#"Exited(0) """#);
}

async fn init_cannot_be_looked_into(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    let script = "cd /proc/1; for name in environ mem maps smaps auxv io stack syscall pagemap map_files personality; do \
        head -c 1 $name > /dev/null 2>&1 && echo \"LED OUT: $name\"; done; \
        for name in exe cwd root; do readlink $name > /dev/null 2>&1 && echo \"LED OUT: $name\"; done; \
        for name in mem clear_refs oom_score_adj coredump_filter timerslack_ns; do \
        (echo 1 > $name) 2>/dev/null && echo \"LED OUT: writing $name\"; done; true";
    assert_eq!(chat.text(script).await, "");
}

async fn services_of_the_host_are_not_reached(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let name = format!("foreword-test-{}", std::process::id());
    let _unix = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let script = format!(
        "python3 -c 'import socket
for family, address in [(socket.AF_INET, (\"127.0.0.1\", {port})), (socket.AF_UNIX, \"\\0{name}\"), (socket.AF_INET, (\"10.0.0.1\", 80)), (socket.AF_INET, (\"169.254.169.254\", 80))]:
  try: s = socket.socket(family); s.settimeout(2); s.connect(address); print(\"connected\")
  except OSError as e: print(e.strerror)'"
    );
    assert_eq!(
        chat.text(&script).await,
        "Connection refused\nConnection refused\nNetwork is unreachable\nNetwork is unreachable\n"
    );
}

async fn what_was_refused_did_no_harm(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    let (signals, waits) = (
        "kill -STOP 1; kill -9 1",
        "python3 -c 'import os\nfor p in range(2, 400):\n  try: os.kill(p, 9)\n  except OSError: pass'",
    );
    chat.run(signals).await;
    chat.run(waits).await;
    assert_eq!(
        chat.run("echo fine").await.summary(),
        r#"Exited(0) "fine\n""#
    );
}

async fn programs_of_another_architecture_are_ended(backend: Backend) {
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let place = backend.open();
    let chat = place.chat("a");
    // `mov eax, 20 (getpid of i386); int 0x80; ret` in memory that may be executed.
    let script = r#"python3 -c 'import ctypes, mmap
m = mmap.mmap(-1, 4096, prot=7); m.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))())'"#;
    let ran = chat.run(script).await;
    assert!(
        matches!(
            ran.end.ending,
            Ending::Killed { signal: 31 } | Ending::Exited(159)
        ),
        "{}",
        ran.summary()
    );
}

/// Races with commands that start, for the moment in which one is still a copy of init.
async fn a_child_between_fork_and_exec_shows_no_socket(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    let race = r#"
import os, time
end = time.time() + 3
seen = set()
while time.time() < end:
    for p in os.listdir("/proc"):
        if not p.isdigit() or int(p) == os.getpid(): continue
        try:
            for fd in os.listdir(f"/proc/{p}/fd"):
                link = os.readlink(f"/proc/{p}/fd/{fd}")
                if link.startswith("socket:") or "signalfd" in link: seen.add(link)
        except OSError: pass
print("SEEN", seen) if seen else print("nothing")
"#;
    chat.text("true").await;
    std::fs::write(chat.home("race.py"), race).unwrap();
    let racing = tokio::spawn({
        let chat = chat.clone();
        async move { chat.text("touch begun; python3 race.py").await }
    });
    while !racing.is_finished() {
        chat.run("true").await;
        let read = foreword_sandbox::ReadFile {
            path: "race.py".into(),
            offset: 0,
            limit: 10,
        };
        chat.sandboxes.read_file(&chat.spec, read).await.unwrap();
    }
    assert_eq!(racing.await.unwrap(), "nothing\n");
}

async fn with_the_hosts_network_only_the_network_is_shared(backend: Backend) {
    let place = backend.open_with(|config| config.network = foreword_sandbox::Network::Host);
    let chat = place.chat("a");
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    assert_eq!(
        chat.text(&format!("echo > /dev/tcp/127.0.0.1/{port} && echo reached"))
            .await,
        "reached\n"
    );
    let refused = chat
        .run("ip link add dummy0 type dummy; ip link set lo down; ping -c1 -W1 127.0.0.1")
        .await;
    assert_ne!(refused.end.ending, Ending::Exited(0));
    assert!(
        place
            .sandboxes
            .state()
            .notes
            .iter()
            .any(|note| note.contains("`sandbox.network` is `host`"))
    );
}
