//! When sandboxes start and end, and that nothing is left of them.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use foreword_sandbox::{Restart, SandboxError, remove_tree};

use crate::{
    server,
    support::{Backend, wait_until},
};

super::cases! {
    fifty_first_calls_start_one_sandbox
    opening_says_whether_it_was_started
    the_longest_idle_one_makes_room_and_its_files_stay
    when_all_are_busy_the_next_is_refused
    an_idle_sandbox_is_stopped_and_a_busy_one_is_not
    stopping_ends_what_runs
    nothing_is_left_when_the_server_is_killed
    nothing_is_left_after_many_starts
    what_a_sandbox_left_can_be_deleted
    a_workspace_that_is_not_there_is_an_error
    an_idle_stop_that_cost_background_processes_is_told_by_the_next_command
    a_workspace_that_was_deleted_and_made_again_is_used
}

async fn fifty_first_calls_start_one_sandbox(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    let chat = &chat;
    // The first of all makes a directory where all look.
    let calls = (0..50).map(|_| async move {
        chat.text("mkdir /tmp/first 2>/dev/null && echo first || true")
            .await
    });
    let firsts = futures::future::join_all(calls)
        .await
        .into_iter()
        .filter(|text| text == "first\n")
        .count();
    assert_eq!((firsts, place.sandboxes.state().running), (1, 1));
}

async fn opening_says_whether_it_was_started(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    assert!(chat.sandboxes.open(&chat.spec).await.unwrap());
    assert!(!chat.sandboxes.open(&chat.spec).await.unwrap());
    assert!(chat.sandboxes.stop(&chat.spec.key).await);
    assert!(!chat.sandboxes.stop(&chat.spec.key).await);
    assert!(chat.sandboxes.open(&chat.spec).await.unwrap());
}

async fn the_longest_idle_one_makes_room_and_its_files_stay(backend: Backend) {
    let place = backend.open_with(|config| config.max_running = 2);
    let chats = [place.chat("a"), place.chat("b"), place.chat("c")];
    for chat in &chats {
        chat.text("touch kept /tmp/lost").await;
    }
    assert_eq!(place.sandboxes.state().running, 2);
    assert_eq!(chats[2].text("ls kept /tmp").await, "kept\n\n/tmp:\nlost\n");
    assert_eq!(chats[0].text("ls kept /tmp").await, "kept\n\n/tmp:\n");
}

async fn when_all_are_busy_the_next_is_refused(backend: Backend) {
    let place = backend.open_with(|config| config.max_running = 1);
    let (busy, other) = (place.chat("busy"), place.chat("other"));
    let running = tokio::spawn({
        let busy = busy.clone();
        async move {
            busy.run("touch begun; until [ -e go ]; do sleep 0.02; done")
                .await
        }
    });
    wait_until("it is busy", || busy.home("begun").exists()).await;
    let refused = other
        .try_run("true", Duration::from_secs(1))
        .await
        .map(|ran| ran.summary());
    assert!(
        matches!(refused, Err(SandboxError::Exhausted { limit: 1 })),
        "{refused:?}"
    );
    fs::write(busy.home("go"), "").unwrap();
    running.await.unwrap();
    assert_eq!(other.text("echo fine").await, "fine\n");
}

async fn an_idle_sandbox_is_stopped_and_a_busy_one_is_not(backend: Backend) {
    let place = backend.open();
    let (idle, busy) = (place.chat("idle"), place.chat("busy"));
    idle.text("touch kept; sleep 9999 > /dev/null 2>&1 &").await;
    let running = tokio::spawn({
        let busy = busy.clone();
        async move {
            busy.text("touch begun; until [ -e go ]; do sleep 0.02; done; echo done")
                .await
        }
    });
    wait_until("it is busy", || busy.home("begun").exists()).await;
    let timeout = place.config.idle_timeout();
    assert_eq!(place.sandboxes.stop_idle(Instant::now()).await, 0);
    assert_eq!(place.sandboxes.stop_idle(Instant::now() + timeout).await, 1);
    fs::write(busy.home("go"), "").unwrap();
    assert_eq!(running.await.unwrap(), "done\n");
    assert_eq!(idle.text("ls kept").await, "kept\n");
    assert_eq!(idle.count("sleep").await, 0);
}

async fn stopping_ends_what_runs(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    let running = tokio::spawn({
        let chat = chat.clone();
        async move {
            chat.try_run("touch begun; sleep 9999", Duration::from_mins(1))
                .await
                .map(|ran| ran.summary())
        }
    });
    wait_until("it runs", || chat.home("begun").exists()).await;
    assert!(chat.sandboxes.stop(&chat.spec.key).await);
    assert!(matches!(
        running.await.unwrap(),
        Err(SandboxError::Stopped(_))
    ));
}

async fn nothing_is_left_when_the_server_is_killed(_backend: Backend) {
    let mark = format!("31337.{}", std::process::id());
    let mut server = Command::new("/proc/self/exe")
        .args([server::ARGUMENT, &mark])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let directory = line
        .trim()
        .strip_prefix("ready ")
        .unwrap_or_else(|| panic!("{line}"))
        .to_owned();
    assert_eq!(processes_with(&mark), server::SANDBOXES * 3);
    assert!(mounted(&directory) > 0);
    // As hard as can be, while its commands run.
    server.kill().unwrap();
    server.wait().unwrap();
    wait_until("all processes are gone", || processes_with(&mark) == 0).await;
    wait_until("all mounts are gone", || mounted(&directory) == 0).await;
    remove_tree(directory.as_ref()).unwrap();
}

/// How many processes of this machine have `mark` in their command.
pub(super) fn processes_with(mark: &str) -> usize {
    let commands = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    commands
        .filter(|command| {
            command.starts_with(b"sleep\0")
                && command
                    .windows(mark.len())
                    .any(|part| part == mark.as_bytes())
        })
        .count()
}

/// How many processes of this machine have something below `directory` mounted.
fn mounted(directory: &str) -> usize {
    let below = directory.trim_start_matches('/');
    let mounts = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.path().join("mountinfo")).ok());
    mounts.filter(|mounts| mounts.contains(below)).count()
}

async fn nothing_is_left_after_many_starts(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    let count = || (fs::read_dir("/proc/self/fd").unwrap().count(), children());
    chat.text("true").await;
    place.sandboxes.stop_all().await;
    let before = count();
    for _ in 0..20 {
        chat.text("sleep 9999 & disown; echo x | cat > file").await;
        place.sandboxes.stop_all().await;
    }
    // Given up while it starts.
    for microseconds in (0..40).map(|number| number * 150) {
        let patience = Duration::from_micros(microseconds);
        let _ = tokio::time::timeout(patience, chat.sandboxes.open(&chat.spec)).await;
    }
    // Dropped, not stopped.
    chat.text("true").await;
    drop((chat, place.chat("b")));
    let groups = || {
        let own = format!("foreword.{}.*", std::process::id());
        let found = Command::new("find")
            .args([
                "/sys/fs/cgroup",
                "-path",
                &format!("*/{own}/*"),
                "-type",
                "d",
            ])
            .output()
            .unwrap();
        String::from_utf8_lossy(&found.stdout).lines().count()
    };
    place.sandboxes.stop_all().await;
    // What was aborted lets go of its descriptor when its turn comes.
    wait_until("its descriptors and children are gone", || {
        count() <= before
    })
    .await;
    wait_until("its control groups are gone", || groups() == 0).await;
}

/// How many children this process has, zombies included.
fn children() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    tasks
        .map(|task| {
            fs::read_to_string(task.path().join("children"))
                .unwrap_or_default()
                .split_ascii_whitespace()
                .count()
        })
        .sum()
}

async fn what_a_sandbox_left_can_be_deleted(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    let script = "mkdir -p a/b; touch a/b/f a/locked; chmod 400 a/locked; mkfifo a/p; ln -s / a/root; chmod 000 a/b a
        mkdir deep; cd deep; python3 -c 'import os
for i in range(5000): os.mkdir(\"d\"); os.chdir(\"d\")
open(\"bottom\", \"w\"); os.chmod(\".\", 0)'
        cd /mnt/user-data/outputs && mkdir x && chmod 000 x";
    assert_eq!(
        chat.run(script).await.end.ending,
        foreword_sandbox::Ending::Exited(0)
    );
    place.sandboxes.stop_all().await;
    let root = chat.spec.home.parent().unwrap();
    remove_tree(root).unwrap();
    assert!(!root.exists());
}

async fn a_workspace_that_is_not_there_is_an_error(backend: Backend) {
    let place = backend.open();
    let mut chat = place.chat("a");
    chat.spec.home = place.directory.path().join("nowhere");
    let error = chat
        .try_run("true", Duration::from_secs(1))
        .await
        .map(|ran| ran.summary())
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("/home/assistant")
            && !text.contains(place.directory.path().to_str().unwrap()),
        "{text}"
    );
    assert_eq!(place.sandboxes.state().running, 0);
}

async fn an_idle_stop_that_cost_background_processes_is_told_by_the_next_command(backend: Backend) {
    let place = backend.open_with(|config| config.max_running = 1);
    let (with, without) = (place.chat("with"), place.chat("without"));
    with.text("sleep 9999 > /dev/null 2>&1 &").await;
    let stop_idle = async || {
        let later = Instant::now() + place.config.idle_timeout();
        assert_eq!(place.sandboxes.stop_idle(later).await, 1);
    };
    stop_idle().await;
    // Work on files cannot say it, so it stays to be said.
    assert!(with.sandboxes.open(&with.spec).await.unwrap());
    stop_idle().await;
    assert_eq!(
        with.run("echo fine").await.summary(),
        r#"Exited(0) "fine\n" restarted Idle"#
    );
    assert_eq!(
        with.run("sleep 9999 > /dev/null 2>&1 &")
            .await
            .end
            .restarted,
        None
    );
    // Pushed out.
    assert_eq!(without.run("true").await.end.restarted, None);
    assert_eq!(with.run("true").await.end.restarted, Some(Restart::Idle));
    // Nothing was lost.
    assert_eq!(without.run("true").await.end.restarted, None);
    // It was asked for.
    without.text("sleep 9999 > /dev/null 2>&1 &").await;
    assert!(place.sandboxes.stop(&without.spec.key).await);
    assert_eq!(without.run("true").await.end.restarted, None);
}

async fn a_workspace_that_was_deleted_and_made_again_is_used(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    let root = chat.spec.home.parent().unwrap();
    chat.text("touch old").await;
    // One is deleted; of another only a part is replaced.
    for replaced in ["", "outputs", "uploads"] {
        remove_tree(&root.join(replaced)).unwrap();
        let chat = place.chat("a");
        let script = "ls; echo new > file; cp file /mnt/user-data/outputs; ls /mnt/user-data/uploads; rm file";
        let ran = chat.run(script).await;
        assert_eq!(
            ran.summary(),
            r#"Exited(0) "" restarted Remade"#,
            "{replaced}"
        );
        let output = fs::read_to_string(chat.spec.outputs.join("file"));
        assert_eq!(output.unwrap(), "new\n", "{replaced}");
        assert_eq!(chat.run("true").await.summary(), r#"Exited(0) """#);
    }
}
