//! Chats never mix.

use std::fs;

use crate::support::Backend;

super::cases! {
    one_chat_sees_nothing_of_another
    sixty_four_chats_at_once_do_not_mix
    a_long_command_does_not_delay_other_chats
}

async fn one_chat_sees_nothing_of_another(backend: Backend) {
    let place = backend.open();
    let (one, other) = (place.chat("one"), place.chat("other"));
    one.text("echo secret > file; echo secret > /tmp/file; echo secret > /dev/shm/file; sleep 9999 > /dev/null 2>&1 &").await;
    one.text("python3 -c 'import socket, time
s = socket.socket(socket.AF_UNIX); s.bind(\"\\0abstract\"); s.listen()
t = socket.create_server((\"127.0.0.1\", 5555)); open(\"ready\", \"w\").close(); time.sleep(9999)' > /dev/null 2>&1 &").await;
    one.text("until [ -e ready ]; do sleep 0.02; done").await;
    let search =
        "find / -name file -not -path '/proc/*' -not -path '/usr/*' 2>/dev/null; ls /dev/shm /tmp";
    assert_eq!(other.run(search).await.text(), "/dev/shm:\n\n/tmp:\n");
    assert_eq!(other.count("sleep").await, 0);
    let connect = "python3 -c 'import socket
for family, address in [(socket.AF_UNIX, \"\\0abstract\"), (socket.AF_INET, (\"127.0.0.1\", 5555))]:
  try: socket.socket(family).connect(address); print(\"connected\")
  except OSError as e: print(e.strerror)'";
    assert_eq!(
        other.text(connect).await,
        "Connection refused\nConnection refused\n"
    );
    let climb = format!(
        "ls {}/../.. 2>&1 | head -1",
        place.directory.path().join("one").display()
    );
    assert!(other.run(&climb).await.text().contains("No such file"));
    assert_eq!(fs::read_dir(other.home("")).unwrap().count(), 0);
}

async fn sixty_four_chats_at_once_do_not_mix(backend: Backend) {
    let place = backend.open();
    let chats: Vec<_> = (0..64)
        .map(|number| place.chat(&format!("chat-{number}")))
        .collect();
    let work = chats.iter().enumerate().map(|(number, chat)| async move {
        for call in 0..5 {
            let text = chat
                .text(&format!("echo {number} >> log; wc -l < log; tail -1 log"))
                .await;
            assert_eq!(text, format!("{}\n{number}\n", call + 1));
        }
    });
    futures::future::join_all(work).await;
    assert_eq!(place.sandboxes.state().running, 64);
    place.sandboxes.stop_all().await;
    assert_eq!(place.sandboxes.state().running, 0);
}

async fn a_long_command_does_not_delay_other_chats(backend: Backend) {
    let place = backend.open();
    let busy: Vec<_> = (0..12)
        .map(|number| place.chat(&format!("busy-{number}")))
        .collect();
    let tasks: Vec<_> = busy
        .iter()
        .cloned()
        .map(|chat| tokio::spawn(async move { chat.run("touch begun; sleep 9999").await }))
        .collect();
    for chat in &busy {
        crate::support::wait_until("it is busy", || chat.home("begun").exists()).await;
    }
    assert_eq!(place.chat("other").text("echo fine").await, "fine\n");
    for task in tasks {
        assert!(!task.is_finished());
        task.abort();
    }
}
