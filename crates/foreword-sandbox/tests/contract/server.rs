//! A server that a test can kill.

use std::{io::Read, time::Duration};

use crate::support::Backend;

/// The argument that makes this program such a server; the next is what its commands have in their names.
pub(crate) const ARGUMENT: &str = "a-server-to-kill";
/// How many sandboxes it has.
pub(crate) const SANDBOXES: usize = 8;

/// Says its directory once each sandbox has a command and two background processes, then waits to be killed.
pub(crate) fn serve() {
    let mark = std::env::args().nth(2).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let place = Backend::namespace().open();
    runtime.block_on(async {
        for number in 0..SANDBOXES {
            let chat = place.chat(&format!("chat-{number}"));
            let script = format!("sleep {mark} & setsid sleep {mark} > /dev/null & yes & touch begun; sleep {mark}; true");
            tokio::spawn({
                let chat = chat.clone();
                async move { chat.run(&script).await }
            });
            while chat.count("sleep").await < 3 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    });
    println!("ready {}", place.directory.path().display());
    let _ = std::io::stdin().read(&mut [0]);
}
