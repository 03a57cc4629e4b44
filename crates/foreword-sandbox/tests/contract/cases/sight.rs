//! What a sandbox sees, and what it does not.

use std::{fs, path::Path};

use crate::support::Backend;

super::cases! {
    nothing_of_the_host_is_seen_but_its_programs
    only_its_own_processes_are_seen
    the_files_of_the_host_belong_to_nobody
    files_made_inside_never_belong_to_root
    the_usual_tools_work
    settings_of_chromium_are_shown_and_keys_are_not
    names_of_the_host_are_not_told
    terminals_can_be_made
    a_root_file_system_of_ones_choice_is_used
}

async fn nothing_of_the_host_is_seen_but_its_programs(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    assert_eq!(
        chat.text("ls -A / | grep -vE '^(bin|lib.*|sbin)$' | tr '\\n' ' '")
            .await,
        "dev etc home mnt proc sys tmp usr var "
    );
    assert_eq!(
        chat.text("ls -A /home /var /sys /mnt /tmp | tr '\\n' ' '")
            .await,
        "/home: assistant  /mnt: skills user-data  /sys:  /tmp:  /var: tmp "
    );
    let gone = format!(
        "cat /etc/shadow /etc/hostname.host /root/.bashrc {} 2>&1 | grep -vc 'No such file'",
        place.directory.path().display()
    );
    assert_eq!(chat.run(&gone).await.text(), "0\n");
    let etc = chat.text("ls -A /etc").await;
    for secret in [
        "shadow",
        "gshadow",
        "sudoers",
        "ssh",
        "machine-id",
        "fstab",
        "crontab",
    ] {
        assert!(!etc.lines().any(|line| line == secret), "{secret}");
    }
    assert_eq!(
        chat.run("ls -A /etc/ssl | grep -v certs | grep -v openssl.cnf")
            .await
            .text(),
        ""
    );
    assert_eq!(
        chat.text("cat /proc/cmdline /proc/keys /proc/kallsyms | wc -c")
            .await,
        "0\n"
    );
}

async fn only_its_own_processes_are_seen(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    // Init, bash and what it starts.
    let count: usize = chat
        .text("ls -d /proc/[0-9]* | wc -l")
        .await
        .trim()
        .parse()
        .unwrap();
    let agent = usize::from(backend.is_container());
    assert!(count <= 4 + agent, "{count}");
    let init = chat.text("cat /proc/1/cmdline | tr '\\0' ' '").await;
    if backend.is_container() {
        assert!(
            init.ends_with("/.foreword/foreword sandbox-agent "),
            "{init}"
        );
    } else {
        assert_eq!(init, "foreword sandbox-init ");
    }
    if backend.is_podman() {
        // It knows no control group namespaces for version 1.
        return;
    }
    assert_eq!(
        chat.text("cat /proc/self/cgroup | cut -d: -f3 | sort -u")
            .await,
        "/\n"
    );
}

async fn the_files_of_the_host_belong_to_nobody(backend: Backend) {
    let place = backend.open();
    assert_eq!(
        place.chat("a").text("stat -c %u /usr /usr/bin/env").await,
        "65534\n65534\n"
    );
}

async fn files_made_inside_never_belong_to_root(backend: Backend) {
    use std::os::unix::fs::MetadataExt;
    let place = backend.open();
    let chat = place.chat("a");
    chat.run("cp /bin/true t; chmod 6755 t; touch /mnt/user-data/outputs/o; mkdir d")
        .await;
    let outputs = [chat.spec.outputs.join("o")];
    // What is carried out belongs to the server.
    let outputs = outputs.into_iter().filter(|_| backend.shares_files());
    for path in [chat.home("t"), chat.home("d")].into_iter().chain(outputs) {
        let found = fs::metadata(&path).unwrap();
        assert!(found.uid() != 0 && found.gid() != 0, "{}", path.display());
    }
}

async fn settings_of_chromium_are_shown_and_keys_are_not(backend: Backend) {
    if !Path::new("/etc/chromium.d/README").exists() {
        eprintln!("not tried: this machine has no chromium");
        return;
    }
    let place = backend.open();
    let chat = place.chat("a");
    let shown = chat.text("ls /etc/chromium.d").await;
    assert!(
        shown.contains("README") && !shown.contains("apikeys"),
        "{shown}"
    );
    let ran = chat
        .run("! [ -x /usr/bin/chromium ] || chromium --version")
        .await;
    assert_eq!(
        ran.end.ending,
        foreword_sandbox::Ending::Exited(0),
        "{}",
        ran.summary()
    );
}

async fn the_usual_tools_work(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    let script = "python3 -c 'import threading, multiprocessing as m, tempfile
t = threading.Thread(target=lambda: print(\"thread\")); t.start(); t.join()
with m.Pool(2) as p: print(sum(p.map(abs, range(10))))
print(tempfile.gettempdir())'
perl -e 'print \"perl\\n\"'; echo a b | awk '{print $2}'; seq 3 | sort -r | head -1
tar cf x.tar /etc/passwd 2>/dev/null && tar tf x.tar; date +%Z; nproc > /dev/null; df . > /dev/null; echo $((6 * 7)) | tee file";
    assert_eq!(
        chat.text(script).await,
        "thread\n45\n/tmp\nperl\nb\n3\netc/passwd\nUTC\n42\n"
    );
    // Its own loopback is there.
    let loopback = "python3 -c 'import socket
s = socket.create_server((\"127.0.0.1\", 0)); c = socket.create_connection(s.getsockname()); s.accept(); print(\"connected\")
print([name for _, name in socket.if_nameindex()])'";
    assert_eq!(chat.text(loopback).await, "connected\n['lo']\n");
}

async fn names_of_the_host_are_not_told(backend: Backend) {
    let place = backend.open();
    assert_eq!(
        place
            .chat("a")
            .text("uname -n; echo $(< /etc/hostname)")
            .await,
        "sandbox\nsandbox\n"
    );
}

async fn terminals_can_be_made(backend: Backend) {
    let place = backend.open();
    let script = "python3 -c 'import pty, sys
pty.spawn([\"tty\"])'";
    assert_eq!(place.chat("a").text(script).await, "/dev/pts/0\r\n");
}

async fn a_root_file_system_of_ones_choice_is_used(backend: Backend) {
    let rootfs = tempfile::tempdir().unwrap();
    let root = rootfs.path();
    fs::set_permissions(root, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let made = std::process::Command::new("bash")
        .arg("-c")
        .arg(
            "set -e; mkdir -p etc srv proc dev usr/bin; echo 'stranger:x:1000:1000::/:/bin/sh' > etc/passwd; echo chosen > srv/mark; \
             for program in bash cat id ls; do cp /usr/bin/$program usr/bin; \
             for library in $(ldd /usr/bin/$program | grep -o '/[^ ]*'); do mkdir -p .$(dirname $library); cp -n $library .$library; done; done; \
             ln -s usr/bin bin",
        )
        .current_dir(root)
        .status()
        .unwrap();
    assert!(made.success());
    let place = backend.open_with(|config| config.rootfs = Some(root.to_owned()));
    let chat = place.chat("a");
    assert_eq!(
        chat.text("cat /srv/mark; id -un; pwd; ls /usr/bin | cat")
            .await,
        "chosen\nassistant\n/home/assistant\nbash\ncat\nid\nls\n"
    );
    assert_eq!(
        chat.run("echo x > /srv/mark").await.end.ending,
        foreword_sandbox::Ending::Exited(1)
    );
}
