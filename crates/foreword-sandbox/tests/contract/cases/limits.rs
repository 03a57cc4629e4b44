//! Limits: what is too much is ended and said, and the next call works.

use std::{path::Path, time::Duration};

use foreword_sandbox::{Content, Ending, InsteadOf, Restart, WriteFile};

use super::life::processes_with;
use crate::support::{Backend, Chat, wait_until};

super::cases! {
    every_limit_says_what_keeps_it
    a_fork_bomb_is_contained_and_ended
    a_background_that_holds_every_process_is_ended_for_the_next_command
    a_restart_for_work_on_files_is_told_by_the_next_command
    a_process_that_could_not_be_made_is_told
    a_background_ended_by_the_memory_limit_is_told_by_the_next_command
    shared_memory_of_system_v_is_limited
    a_memory_bomb_is_ended_and_said
    a_full_tmp_is_no_space_left
    a_large_tmp_does_not_take_all_memory
    open_files_are_limited
    many_open_outputs_leave_descriptors_for_commands
    the_processor_is_shared
    a_workspace_over_its_quota_is_ended_and_may_be_emptied
    directories_that_are_closed_do_not_end_the_count
    over_the_quota_files_are_refused_unless_they_make_it_smaller
    a_background_that_writes_too_much_is_ended_and_told
    a_disk_that_gets_too_full_ends_the_command
    a_disk_filled_by_deleted_files_ends_the_command
    a_background_that_fills_the_disk_is_ended_and_told
    a_single_file_cannot_be_larger_than_the_quota
    a_time_limit_of_the_caller_is_capped
    what_the_whole_host_shares_is_not_taken
    empty_files_count_against_the_quota
}

async fn every_limit_says_what_keeps_it(backend: Backend) {
    let place = backend.open();
    let limits = place.sandboxes.state().limits;
    let settings: Vec<_> = limits.iter().map(|limit| limit.setting).collect();
    assert_eq!(
        settings,
        [
            "memory_bytes",
            "cpu_percent",
            "max_processes",
            "max_open_files",
            "tmp_bytes",
            "workspace_quota_bytes",
            "min_free_bytes"
        ]
    );
    let root = rustix::process::geteuid().is_root();
    assert_eq!(place.has_group_for("memory_bytes"), root, "{limits:?}");
}

async fn a_fork_bomb_is_contained_and_ended(backend: Backend) {
    let place = backend.open_with(|config| config.max_processes = 64);
    let chat = place.chat("a");
    let python = "python3 -c 'import os
while True:
  try: os.fork() or os.setsid()
  except OSError: pass'";
    for bomb in [
        ":(){ :|:& };:; while :; do :; done",
        "f() { f & f & }; f; sleep 9999",
        python,
    ] {
        let ran = chat.run_for(bomb, Duration::from_secs(1)).await;
        assert!(
            matches!(ran.end.ending, Ending::TimedOut { .. } | Ending::Exited(_)),
            "{bomb}: {:?}",
            ran.end.ending
        );
        // Without control groups it competes with everything else for the processors, so it may take a while to end.
        assert!(
            ran.end.duration < Duration::from_mins(1),
            "{bomb}: {:?}",
            ran.end.duration
        );
        let next = chat.run("echo fine").await;
        assert!(
            next.text().ends_with("fine\n"),
            "{bomb}: {}",
            next.summary()
        );
        chat.sandboxes.stop(&chat.spec.key).await;
    }
}

async fn a_background_that_holds_every_process_is_ended_for_the_next_command(backend: Backend) {
    let place = backend.open_with(|config| config.max_processes = 32);
    let chat = place.chat("a");
    take_all_processes(&chat).await;
    let ran = chat.run("echo fine").await;
    assert_eq!(
        ran.summary(),
        r#"Exited(0) "fine\n" restarted NoProcessLeft"#
    );
    assert_eq!(ran.end.restarted, Some(Restart::NoProcessLeft));
    assert_eq!(chat.run("echo fine").await.end.restarted, None);
}

async fn a_restart_for_work_on_files_is_told_by_the_next_command(backend: Backend) {
    let place = backend.open_with(|config| config.max_processes = 32);
    let chat = place.chat("a");
    take_all_processes(&chat).await;
    let found = chat.sandboxes.stat(&chat.spec, Path::new("full")).await;
    assert_eq!(found.unwrap().size, 0);
    assert_eq!(
        chat.run("echo fine").await.end.restarted,
        Some(Restart::NoProcessLeft)
    );
    assert_eq!(chat.run("echo fine").await.end.restarted, None);
}

/// Leaves a background that forks whenever there is room. Nothing else may end once there is none: the next command could take its place.
async fn take_all_processes(chat: &Chat) {
    let hold = "python3 -c 'import os, time
os.setsid()
while True:
  try:
    if os.fork() == 0: time.sleep(9999)
  except OSError: open(\"full\", \"w\").close(); time.sleep(0.001)' > /dev/null 2>&1 &";
    chat.run(hold).await;
    wait_until("all processes are taken", || chat.home("full").exists()).await;
}

async fn a_process_that_could_not_be_made_is_told(backend: Backend) {
    let place = backend.open_with(|config| config.max_processes = 32);
    let chat = place.chat("a");
    let script = "python3 -c 'import os, time
try:
  while True:
    if os.fork() == 0: time.sleep(9999)
except OSError: pass' > /dev/null 2>&1";
    let ran = chat.run(script).await;
    let told = if place.has_group_for("max_processes") {
        " processes"
    } else {
        ""
    };
    assert_eq!(ran.summary(), format!(r#"Exited(0) ""{told}"#));
    // What the note names helps; bash tries again while those that it killed are still there.
    let text = chat
        .text("kill -9 -1; { echo fine | cat; } 2> /dev/null")
        .await;
    assert_eq!(text, "fine\n");
    chat.wait_for_count("python3", ..1).await;
    assert_eq!(chat.run("true").await.summary(), "Exited(0) \"\"");
}

async fn a_background_ended_by_the_memory_limit_is_told_by_the_next_command(backend: Backend) {
    let place = backend.open();
    if !place.has_group_for("memory_bytes") {
        // Without a group a process is refused memory, and not ended.
        return;
    }
    let chat = place.chat("a");
    let eat = "python3 -c 'import os, time
while not os.path.exists(\"go\"): time.sleep(0.01)
b = []
while True: b.append(bytearray(1 << 20))'; touch ended";
    chat.text(&format!("{{ {eat}; }} > /dev/null 2>&1 &")).await;
    std::fs::write(chat.home("go"), "").unwrap();
    wait_until("it was ended", || chat.home("ended").exists()).await;
    assert_eq!(
        chat.run("echo fine").await.summary(),
        r#"Exited(0) "fine\n" memory"#
    );
    assert_eq!(
        chat.run("echo fine").await.summary(),
        r#"Exited(0) "fine\n""#
    );
}

/// It stays when the process that made it has ended, so it could else take the room of all later commands.
async fn shared_memory_of_system_v_is_limited(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    let ran = chat.run("ipcmk -M 32M && ipcmk -M 33M").await;
    if !place.has_group_for("memory_bytes") {
        // Only true root may set the limit, and without groups memory is limited for each process alone anyway.
        assert_eq!(ran.end.ending, Ending::Exited(0), "{}", ran.summary());
        return;
    }
    assert_eq!(ran.end.ending, Ending::Exited(1), "{}", ran.summary());
    let text = ran.text();
    assert!(text.contains("No space left on device"), "{text}");
    let queues = "for i in $(seq 300); do ipcmk -Q || break; done 2>&1 | tail -1";
    let text = chat.text(queues).await;
    assert!(text.contains("failed"), "{text}");
}

async fn a_memory_bomb_is_ended_and_said(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    chat.text("touch /tmp/same").await;
    let bomb = "python3 -c 'b = []
while True: b.append(bytearray(1 << 20))' 2>&1 | tail -1; echo ${PIPESTATUS[0]}";
    let ran = chat.run(bomb).await;
    if place.has_group_for("memory_bytes") {
        assert_eq!(ran.summary(), r#"Exited(0) "137\n" memory"#);
    } else {
        assert_eq!(ran.summary(), r#"Exited(0) "MemoryError\n1\n""#);
    }
    let next = chat.run("ls /tmp").await;
    assert_eq!(next.summary(), r#"Exited(0) "same\n""#);
}

async fn a_full_tmp_is_no_space_left(backend: Backend) {
    let place = backend.open();
    let ran = place.chat("a").run("head -c 1G /dev/zero > /tmp/full; echo $?; stat -c %s /tmp/full; rm /tmp/full; head -c 100M /dev/zero > /dev/shm/full; echo $?").await;
    assert!(
        ran.text().contains("No space left on device"),
        "{}",
        ran.summary()
    );
    assert!(ran.text().contains("\n1\n67108864\n"), "{}", ran.summary());
    if backend.is_podman() {
        // It cannot limit how many files are in memory, so what they take counts as memory only.
        return;
    }
    let small = "for i in $(seq 20000); do : > /dev/shm/$i || break; done 2>&1 | tail -1";
    assert!(
        place
            .chat("b")
            .run(small)
            .await
            .text()
            .contains("No space left")
    );
}

async fn a_large_tmp_does_not_take_all_memory(backend: Backend) {
    let place = backend.open_with(|config| config.tmp_bytes = 1 << 30);
    let chat = place.chat("a");
    let fill = "head -c 900M /dev/zero > /tmp/full; head -c 900M /dev/zero > /dev/shm/full";
    let ran = chat.run(fill).await;
    assert_eq!(
        ran.text().matches("No space left").count(),
        2,
        "{}",
        ran.summary()
    );
    assert_eq!(
        chat.text("rm /tmp/full /dev/shm/full; ls /tmp /dev/shm")
            .await,
        "/dev/shm:\n\n/tmp:\n"
    );
}

async fn open_files_are_limited(backend: Backend) {
    let place = backend.open_with(|config| config.max_open_files = 100);
    let text = place
        .chat("a")
        .text("ulimit -n; ulimit -Hn; ulimit -n 200 2>/dev/null || echo refused; ulimit -c")
        .await;
    assert_eq!(text, "100\n100\nrefused\n0\n");
}

async fn many_open_outputs_leave_descriptors_for_commands(backend: Backend) {
    let place = backend.open_with(|config| config.max_open_files = 64);
    let chat = place.chat("a");
    for number in 0..80 {
        let ran = chat.run_for("sleep 9999 &", Duration::from_secs(20)).await;
        assert_eq!(ran.summary(), r#"Exited(0) "" background"#, "{number}");
    }
    chat.sandboxes
        .stat(&chat.spec, Path::new("."))
        .await
        .unwrap();
}

async fn the_processor_is_shared(backend: Backend) {
    let place = backend.open_with(|config| config.cpu_percent = 50);
    if !place.has_group_for("cpu_percent") {
        let limits = place.sandboxes.state().limits;
        assert!(
            limits.iter().any(|limit| matches!(
                limit.enforcement,
                foreword_sandbox::Enforcement::Missing(_)
            ))
        );
        return;
    }
    let spin = "for i in 1 2 3; do (while :; do :; done) & done; sleep 2; kill $(jobs -p); wait; times | tail -1";
    let text = place
        .chat("a")
        .text(&format!("{{ {spin}; }} 2>/dev/null"))
        .await;
    let seconds: f64 = text
        .split_once('m')
        .and_then(|(_, rest)| rest.split_once('s'))
        .unwrap()
        .0
        .parse()
        .unwrap();
    assert!(seconds < 1.6, "{text}");
}

async fn a_workspace_over_its_quota_is_ended_and_may_be_emptied(backend: Backend) {
    let place = backend.open_with(|config| config.workspace_quota_bytes = 64 << 20);
    let chat = place.chat("a");
    chat.text("true").await;
    let fill = "i=0; while :; do i=$((i + 1)); head -c 8M /dev/zero > file-$i; sleep 0.05; done";
    let ran = chat.run_for(fill, Duration::from_mins(1)).await;
    let Ending::Quota(usage) = ran.end.ending else {
        panic!("{}", ran.summary())
    };
    assert!(
        usage.used > usage.limit && usage.limit == 64 << 20,
        "{usage:?}"
    );
    wait_until_counted(&chat, true).await;
    // Writing on is noticed before a second is over.
    let ran = chat.run("head -c 8M /dev/zero > more; sleep 0.9").await;
    assert!(
        matches!(ran.end.ending, Ending::Quota(_)),
        "{}",
        ran.summary()
    );
    assert_eq!(ran.end.over_quota, None);
    // What is too large already may be made smaller, however long that takes.
    let ran = chat.run("sleep 2.5; rm file-*; echo emptied").await;
    assert_eq!(
        (ran.end.ending, ran.text().as_str()),
        (Ending::Exited(0), "emptied\n")
    );
    // What it deleted is not asked for.
    assert_eq!(ran.end.over_quota, None);
}

async fn directories_that_are_closed_do_not_end_the_count(backend: Backend) {
    let place = backend.open_with(|config| config.workspace_quota_bytes = 1 << 20);
    let chat = place.chat("a");
    let script = "mkdir a b; touch a/in b/in; chmod 400 a; chmod 0 b; head -c 768K /dev/zero | tee one > two";
    chat.text(script).await;
    wait_until_counted(&chat, true).await;
}

async fn over_the_quota_files_are_refused_unless_they_make_it_smaller(backend: Backend) {
    let place = backend.open_with(|config| config.workspace_quota_bytes = 2 << 20);
    let chat = place.chat("a");
    chat.run("head -c 1M /dev/zero | tee one > two; head -c 1M /dev/zero > three")
        .await;
    wait_until_counted(&chat, true).await;
    let write = async |path: &str, instead_of, bytes: usize| {
        let write = WriteFile {
            path: path.into(),
            instead_of,
            mode: None,
            content: Content::Bytes(vec![1; bytes].into()),
        };
        chat.sandboxes
            .write_file(&chat.spec, write)
            .await
            .map_err(|error| error.to_string())
    };
    let refusal = "the workspace holds 4 MiB of the 2 MiB it may hold; delete what is not needed, then write again";
    let refused = Err(refusal.to_owned());
    assert_eq!(write("new", InsteadOf::File, 1).await.map(drop), refused);
    assert_eq!(
        write("one", InsteadOf::File, 2 << 20).await.map(drop),
        refused
    );
    assert!(write("one", InsteadOf::File, 1 << 19).await.is_ok());
    assert!(write("README.md", InsteadOf::Anything, 10).await.is_ok());
    chat.text("rm two").await;
    assert!(write("new", InsteadOf::File, 1).await.is_ok());
    // What is written like this is counted too.
    assert!(write("new", InsteadOf::File, 1 << 20).await.is_ok());
    wait_until_counted(&chat, true).await;
}

async fn a_background_that_writes_too_much_is_ended_and_told(backend: Backend) {
    let place = backend.open_on_quiet_disk(|config| config.workspace_quota_bytes = 32 << 20);
    let chat = place.chat("a");
    let mark = leave_writer(&chat, "> file-$i").await;
    // It is seen from outside: a command would look as well.
    wait_until("it is ended", || processes_with(&mark) == 0).await;
    let ran = chat.run("echo fine").await;
    assert_eq!(
        ran.summary(),
        r#"Exited(0) "fine\n" restarted WroteTooMuch"#
    );
    assert_eq!(chat.run("true").await.end.restarted, None);
}

/// Leaves a background process that waits until this command has ended and then writes 20 MiB ten times, and gives its mark.
async fn leave_writer(chat: &Chat, to: &str) -> String {
    let mark = format!("31339.{}", std::process::id());
    let script = format!(
        "sleep {mark} > /dev/null 2>&1 & {{ until [ -e go ]; do sleep 0.02; done; exec 9> deleted; rm deleted; \
         for i in $(seq 10); do head -c 20M /dev/zero {to}; sleep 0.2; done; }} > /dev/null 2>&1 &"
    );
    chat.text(&script).await;
    // The command may end before its `sleep` is one.
    wait_until("it is there", || processes_with(&mark) > 0).await;
    std::fs::write(chat.home("go"), "").unwrap();
    mark
}

/// Waits until a command is told, or no longer told, that the workspace is over its quota.
async fn wait_until_counted(chat: &crate::support::Chat, over: bool) {
    for _ in 0..500 {
        if chat.run("true").await.end.over_quota.is_some() == over {
            return;
        }
    }
    panic!("it is not said: over the quota {over}");
}

async fn a_disk_that_gets_too_full_ends_the_command(backend: Backend) {
    let place = backend.open_on_quiet_disk(|config| config.min_free_bytes = u64::MAX);
    let chat = place.chat("a");
    // Whoever does not write is not to blame.
    assert_eq!(chat.text("sleep 2.5; echo fine").await, "fine\n");
    let ran = chat
        .run_for(
            "while :; do head -c 1M /dev/zero >> file; sleep 0.05; done",
            Duration::from_mins(1),
        )
        .await;
    assert!(
        matches!(
            ran.end.ending,
            Ending::DiskFull {
                min_free: u64::MAX,
                ..
            }
        ),
        "{}",
        ran.summary()
    );
}

async fn a_disk_filled_by_deleted_files_ends_the_command(backend: Backend) {
    let place = backend.open_on_quiet_disk(|config| config.min_free_bytes = u64::MAX);
    let chat = place.chat("a");
    let fill = "exec 9> x; rm x; for i in $(seq 10); do head -c 20M /dev/zero >&9; sleep 0.4; done; sleep 9999";
    let ran = chat.run_for(fill, Duration::from_mins(1)).await;
    assert!(
        matches!(ran.end.ending, Ending::DiskFull { .. }),
        "{}",
        ran.summary()
    );
}

async fn a_background_that_fills_the_disk_is_ended_and_told(backend: Backend) {
    let place = backend.open_on_quiet_disk(|config| config.min_free_bytes = u64::MAX);
    let chat = place.chat("a");
    let mark = leave_writer(&chat, ">&9").await;
    wait_until("it is ended", || processes_with(&mark) == 0).await;
    let ran = chat.run("echo fine").await;
    assert_eq!(ran.summary(), r#"Exited(0) "fine\n" restarted FilledDisk"#);
    assert_eq!(chat.run("true").await.end.restarted, None);
}

async fn a_single_file_cannot_be_larger_than_the_quota(backend: Backend) {
    let place = backend.open_with(|config| config.workspace_quota_bytes = 32 << 20);
    let ran = place
        .chat("a")
        .run("head -c 1G /dev/zero > large; echo $?; truncate -s 10T sparse; stat -c %s large")
        .await;
    assert!(ran.text().ends_with("\n33554432\n"), "{}", ran.summary());
}

async fn a_time_limit_of_the_caller_is_capped(backend: Backend) {
    let place = backend.open_with(|config| config.command_timeout_max_seconds = 1);
    let ran = place.chat("a").run("sleep 9999").await;
    assert_eq!(
        ran.end.ending,
        Ending::TimedOut {
            after: Duration::from_secs(1)
        }
    );
    let key = foreword_sandbox::SandboxKey::new("b").unwrap();
    assert!(!place.sandboxes.stop(&key).await);
}

async fn what_the_whole_host_shares_is_not_taken(backend: Backend) {
    let place = backend.open();
    let script = "python3 -c 'import ctypes
libc = ctypes.CDLL(None); count = 0
while libc.inotify_init() >= 0: count += 1
print(count)
print(libc.syscall(206, 65536, ctypes.byref(ctypes.c_ulong())))'; ulimit -i; ulimit -q";
    // Programs that watch files work, and root's 128 are far from gone. Number 206 is `io_setup`, of which all share some 65,536.
    // Queued signals and bytes in message queues count against whoever started the server.
    let text = place.chat("a").text(script).await;
    if cfg!(target_arch = "x86_64") {
        if backend.is_container() {
            // An engine has no switch for the first.
            assert!(text.ends_with("\n-1\n1024\n0\n"), "{text}");
        } else {
            assert_eq!(text, "8\n-1\n1024\n0\n");
        }
    }
}

async fn empty_files_count_against_the_quota(backend: Backend) {
    let place = backend.open_with(|config| config.workspace_quota_bytes = 16 << 20);
    let chat = place.chat("a");
    let script = "mkdir d; cd d; i=0; while :; do i=$((i + 1)); : > $i; done";
    let ran = chat.run_for(script, Duration::from_mins(2)).await;
    assert!(
        matches!(ran.end.ending, Ending::Quota(_)),
        "{}",
        ran.summary()
    );
}
