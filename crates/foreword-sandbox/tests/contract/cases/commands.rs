//! Commands: output, status, time, and what they leave behind.

use std::time::Duration;

use foreword_sandbox::{Command, Ending, SandboxError};

use crate::support::{Backend, wait_until};

super::cases! {
    output_comes_in_the_order_it_was_written
    output_can_be_opened_by_its_name
    the_status_is_told
    the_place_is_home_and_the_user_is_nobody_special
    the_environment_is_made_for_the_sandbox
    a_variable_of_the_caller_is_there
    there_is_nothing_on_standard_input
    bytes_that_are_no_text_arrive_as_they_are
    a_command_may_close_its_output_and_sleep
    a_command_of_a_mebibyte_runs
    a_command_that_bash_cannot_be_given_is_refused
    a_background_process_lives_on_and_does_not_hold_the_call
    what_a_substituted_process_says_last_arrives
    a_time_out_ends_whatever_tries_to_get_away
    a_time_out_spares_the_background_of_earlier_calls
    a_time_out_reaches_a_command_that_stopped_itself
    the_output_before_a_time_out_is_kept
    hanging_up_ends_the_command
    killing_everything_leaves_the_sandbox_usable
    init_cannot_be_killed_or_stopped
    a_flood_of_ten_gigabytes_needs_no_memory
    background_floods_do_not_take_the_sandbox
    a_closed_home_opens_again
    many_commands_at_once_each_get_their_own_output
}

async fn output_comes_in_the_order_it_was_written(backend: Backend) {
    let place = backend.open();
    let script = "for i in 1 2 3; do echo out$i; echo err$i >&2; done";
    assert_eq!(
        place.chat("a").text(script).await,
        "out1\nerr1\nout2\nerr2\nout3\nerr3\n"
    );
}

async fn output_can_be_opened_by_its_name(backend: Backend) {
    let place = backend.open();
    let script = "echo a > /dev/stdout; echo b | tee /dev/stderr > /dev/null; cat < /dev/stdin; echo c >> /proc/self/fd/1";
    assert_eq!(place.chat("a").text(script).await, "a\nb\nc\n");
}

async fn the_status_is_told(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    assert_eq!(chat.run("true").await.summary(), r#"Exited(0) """#);
    assert_eq!(chat.run("exit 7").await.summary(), r#"Exited(7) """#);
    assert_eq!(chat.run("exit 255").await.summary(), r#"Exited(255) """#);
    assert_eq!(
        chat.run("echo a; kill -TERM $$").await.summary(),
        r#"Killed { signal: 15 } "a\n""#
    );
    assert_eq!(
        chat.run("no-such-program-here 2>/dev/null")
            .await
            .end
            .ending,
        Ending::Exited(127)
    );
}

async fn the_place_is_home_and_the_user_is_nobody_special(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    assert_eq!(
        chat.text("pwd; id -u; id -g; id -un; echo ~").await,
        "/home/assistant\n1000\n1000\nassistant\n/home/assistant\n"
    );
    chat.text("echo mine > kept").await;
    assert_eq!(
        std::fs::read_to_string(chat.home("kept")).unwrap(),
        "mine\n"
    );
}

async fn the_environment_is_made_for_the_sandbox(backend: Backend) {
    let place = backend.open();
    let names = place
        .chat("a")
        .text("env | cut -d= -f1 | sort | tr '\\n' ' '")
        .await;
    assert_eq!(
        names,
        "HOME LANG LOGNAME PATH PWD SHELL SHLVL TMPDIR USER _ "
    );
}

async fn a_variable_of_the_caller_is_there(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    let command = Command {
        script: "echo $GREETING $LANG".to_owned(),
        environment: vec![
            ("GREETING".to_owned(), "good day".to_owned()),
            ("LANG".to_owned(), "C".to_owned()),
        ],
        timeout: Duration::from_mins(1),
    };
    let mut bytes = Vec::new();
    chat.sandboxes
        .run(&chat.spec, &command, &mut |chunk: &[u8]| {
            bytes.extend_from_slice(chunk);
        })
        .await
        .unwrap();
    assert_eq!(bytes, b"good day C\n");
}

async fn there_is_nothing_on_standard_input(backend: Backend) {
    let place = backend.open();
    assert_eq!(place.chat("a").text("cat; echo read").await, "read\n");
}

async fn bytes_that_are_no_text_arrive_as_they_are(backend: Backend) {
    let place = backend.open();
    assert_eq!(
        place.chat("a").run("printf '\\xff\\x00\\xc3'").await.bytes,
        [0xff, 0, 0xc3]
    );
}

async fn a_command_may_close_its_output_and_sleep(backend: Backend) {
    let place = backend.open();
    let ran = place
        .chat("a")
        .run("echo before; exec >&- 2>&-; sleep 0.3; exit 3")
        .await;
    assert_eq!(ran.summary(), r#"Exited(3) "before\n""#);
    assert!(ran.end.duration >= Duration::from_millis(300));
}

async fn a_command_of_a_mebibyte_runs(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    for bytes in [119_900, 120_100, (1 << 20) - 100] {
        let script = format!(
            "x='{}'; echo ${{#x}}; ls /proc/self/fd | tr '\\n' ' '; bash -c 'ls /proc/$$/fd'",
            "y".repeat(bytes)
        );
        let text = chat.text(&script).await;
        // Whoever lists has a descriptor for it.
        assert_eq!(text, format!("{bytes}\n0 1 2 3 0\n1\n2\n3\n"));
    }
}

async fn a_command_that_bash_cannot_be_given_is_refused(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    for script in ["x".repeat((1 << 20) + 1), "a\0b".to_owned()] {
        let refused = chat.try_run(&script, Duration::from_secs(1)).await;
        assert!(matches!(refused, Err(SandboxError::InvalidCommand(_))));
    }
}

async fn a_background_process_lives_on_and_does_not_hold_the_call(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    let script = "(while :; do echo tick; date +%s%N > beat; sleep 0.05; done) & echo started";
    let ran = chat.run(script).await;
    assert!(ran.text().contains("started\n"), "{}", ran.summary());
    assert!(ran.summary().ends_with(" background"), "{}", ran.summary());
    assert!(
        ran.end.duration < Duration::from_mins(1),
        "{:?}",
        ran.end.duration
    );
    let alive = "until [ -s beat ]; do sleep 0.02; done; a=$(<beat); until [ \"$(<beat)\" != \"$a\" ]; do sleep 0.02; done; echo alive";
    assert_eq!(chat.text(alive).await, "alive\n");
    assert_eq!(chat.text(alive).await, "alive\n");
}

async fn what_a_substituted_process_says_last_arrives(backend: Backend) {
    let place = backend.open();
    let ran = place.chat("a").run("exec > >(cat); echo hello").await;
    assert_eq!(ran.summary(), r#"Exited(0) "hello\n""#);
}

async fn a_time_out_ends_whatever_tries_to_get_away(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    let script = r#"
        setsid sleep 7777 &
        (setsid bash -c 'trap "" TERM HUP INT; (sleep 7777 &); sleep 7777 & sleep 7777' &)
        env -i setsid bash -c '(exec -a other sleep 7777 &) & sleep 7777' &
        nohup sleep 7777 > /dev/null &
        bash -c 'kill -STOP $$; sleep 7777' &
        python3 -c 'import os, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.execvp("sleep", ["sleep", "7777"])' &
        until [ -e go ]; do sleep 0.01; done
        sleep 7777
    "#;
    let running = tokio::spawn({
        let chat = chat.clone();
        async move { chat.run_for(script, Duration::from_secs(3)).await }
    });
    chat.wait_for_count("sleep", 7..).await;
    std::fs::write(chat.home("go"), "").unwrap();
    let ran = running.await.unwrap();
    assert_eq!(
        ran.end.ending,
        Ending::TimedOut {
            after: Duration::from_secs(3)
        }
    );
    assert!(
        ran.end.duration < Duration::from_mins(1),
        "{:?}",
        ran.end.duration
    );
    assert_eq!(chat.count("sleep").await, 0);
    assert_eq!(ran.end.restarted, None);
}

async fn a_time_out_spares_the_background_of_earlier_calls(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    chat.text("sleep 8888 > /dev/null 2>&1 &").await;
    let ran = chat
        .run_for("sleep 7777 & sleep 7777", Duration::from_millis(300))
        .await;
    assert!(matches!(ran.end.ending, Ending::TimedOut { .. }));
    assert_eq!(chat.count("sleep").await, 1);
}

async fn a_time_out_reaches_a_command_that_stopped_itself(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    for script in [
        "kill -STOP $$",
        "sleep 7777 & kill -STOP -1; kill -STOP $$",
        "trap '' TERM INT HUP; while :; do :; done",
    ] {
        let ran = chat.run_for(script, Duration::from_millis(300)).await;
        assert!(
            matches!(ran.end.ending, Ending::TimedOut { .. }),
            "{script}: {}",
            ran.summary()
        );
        assert!(
            ran.end.duration < Duration::from_mins(1),
            "{script}: {:?}",
            ran.end.duration
        );
    }
    assert_eq!(chat.text("echo fine").await, "fine\n");
}

async fn the_output_before_a_time_out_is_kept(backend: Backend) {
    let place = backend.open();
    let ran = place
        .chat("a")
        .run_for("echo early; sleep 7777", Duration::from_millis(300))
        .await;
    assert_eq!(ran.text(), "early\n");
}

async fn hanging_up_ends_the_command(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    chat.text("sleep 8888 > /dev/null 2>&1 &").await;
    let running = tokio::spawn({
        let chat = chat.clone();
        async move {
            chat.run("touch begun; setsid sleep 7777 & sleep 7777")
                .await
        }
    });
    wait_until("the command begins", || chat.home("begun").exists()).await;
    chat.wait_for_count("sleep", 3..).await;
    running.abort();
    chat.wait_for_count("sleep", ..=1).await;
}

async fn killing_everything_leaves_the_sandbox_usable(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    chat.text("sleep 8888 > /dev/null 2>&1 &").await;
    assert_eq!(
        chat.run("kill -9 -1; echo still here").await.summary(),
        r#"Exited(0) "still here\n""#
    );
    // The kernel delivers a signal when the process is next scheduled, after `kill` has returned.
    chat.wait_for_count("sleep", ..=0).await;
    let ran = chat.run("setsid kill -9 -1; echo unreached").await;
    assert!(
        matches!(
            ran.end.ending,
            Ending::Killed { signal: 9 } | Ending::Exited(_)
        ),
        "{}",
        ran.summary()
    );
    let ran = chat.run("echo fine").await;
    assert_eq!(ran.summary(), r#"Exited(0) "fine\n""#);
}

async fn init_cannot_be_killed_or_stopped(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    chat.text("touch /tmp/same").await;
    let script = "for s in $(seq 1 64); do kill -$s 1 2>/dev/null; done; echo tried";
    assert_eq!(chat.text(script).await, "tried\n");
    let ran = chat.run("ls /tmp/same").await;
    assert_eq!(ran.summary(), r#"Exited(0) "/tmp/same\n""#);
}

async fn a_flood_of_ten_gigabytes_needs_no_memory(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    chat.text("true").await;
    let before = peak_memory();
    let mut count = 0_u64;
    let script = "head -c 10G /dev/zero".to_owned();
    let command = Command {
        script,
        environment: Vec::new(),
        timeout: Duration::from_mins(5),
    };
    let end = chat
        .sandboxes
        .run(&chat.spec, &command, &mut |chunk: &[u8]| {
            count += chunk.len() as u64;
        })
        .await
        .unwrap();
    assert_eq!((end.ending, count), (Ending::Exited(0), 10 << 30));
    let grown = peak_memory() - before;
    assert!(grown < 2 << 20, "{grown} bytes");
}

/// The most memory that this process ever had resident, in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

async fn background_floods_do_not_take_the_sandbox(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    for _ in 0..3 {
        let ran = chat.run("yes & echo begun").await;
        assert!(ran.summary().ends_with(" background"));
    }
    assert_eq!(chat.text("echo fine").await, "fine\n");
    chat.wait_for_count("yes", 3..).await;
}

async fn a_closed_home_opens_again(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    chat.text("chmod 000 ~").await;
    assert_eq!(
        chat.text("pwd; stat -c %a .").await,
        "/home/assistant\n700\n"
    );
    chat.text("chmod 000 ~").await;
    place.sandboxes.stop_all().await;
    assert!(chat.sandboxes.stat(&chat.spec, ".".as_ref()).await.is_ok());
}

async fn many_commands_at_once_each_get_their_own_output(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    let chat = &chat;
    let all = (0..32).map(|number| async move {
        (
            number,
            chat.text(&format!("echo {number}; sleep 0.05; echo {number}"))
                .await,
        )
    });
    for (number, text) in futures::future::join_all(all).await {
        assert_eq!(text, format!("{number}\n{number}\n"));
    }
}
