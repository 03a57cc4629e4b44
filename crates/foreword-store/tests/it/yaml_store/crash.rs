//! Processes that die, and processes that edit at the same time.

use std::{
    collections::BTreeSet,
    env,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use foreword_store::Store;

use super::{Data, ROLE, eventually, open_at, role};
use crate::support::{add_variable, variables};

const DATA: &str = "FOREWORD_TEST_DATA";
const NAMES: &str = "FOREWORD_TEST_NAMES";

/// Starts this very test in another process, which edits the library in `data` and says so.
fn start_editor(test: &str, data: &Path, names: &str) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(ROLE, "editor")
        .env(DATA, data)
        .env(NAMES, names)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What the other process does: adds one variable after the other, and prints the name of each that was acknowledged.
async fn edit_and_say_so(count: usize) {
    let data = env::var(DATA).unwrap();
    let names = env::var(NAMES).unwrap();
    let store = open_at(Path::new(&data)).unwrap();
    for number in 0..count {
        let name = format!("{names}_{number}");
        store.edit(add_variable(&name)).await.unwrap();
        println!("acknowledged {name}");
    }
}

/// The acknowledged names, as they are printed.
fn acknowledgements(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let stdout = child.stdout.take().unwrap();
    BufReader::new(stdout)
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| Some(line.strip_prefix("acknowledged ")?.to_owned()))
}

#[tokio::test]
async fn kill_9_at_any_moment_loses_no_acknowledged_edit() {
    const TEST: &str = "yaml_store::crash::kill_9_at_any_moment_loses_no_acknowledged_edit";
    if role().is_some() {
        return edit_and_say_so(usize::MAX).await;
    }
    let data = Data::with("global_prompt: Be brief.\n");
    // A small generator, so that a failure can be repeated as far as the machine allows.
    let mut random: u64 = 0x5EED;
    let mut next = |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % below
    };
    let mut acknowledged = BTreeSet::new();
    let mut kills = 0;
    while acknowledged.len() < 200 {
        let mut child = start_editor(TEST, data.path(), &format!("v_{kills}"));
        let mut names = acknowledgements(&mut child);
        let wanted = usize::try_from(1 + next(9)).unwrap();
        acknowledged.extend(names.by_ref().take(wanted));
        // Somewhere in the next edits.
        thread::sleep(Duration::from_micros(next(6_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        // What it said before it died counts.
        acknowledged.extend(names);

        let store = open_at(data.path()).expect("the file can be read after a kill");
        let kept: BTreeSet<_> = variables(&store).into_iter().collect();
        let lost: Vec<_> = acknowledged.difference(&kept).collect();
        assert!(lost.is_empty(), "lost after {kills} kills: {lost:?}");
        let unasked = kept.difference(&acknowledged).count();
        assert!(
            unasked <= kills,
            "more than one edit per kill was under way"
        );
    }
    let mut left: Vec<_> = data.names("");
    left.retain(|name| name != ".system_prompts.yaml.new");
    assert_eq!(
        left,
        [
            "VERSION",
            "history",
            "library.lock",
            "library.seen",
            "system_prompts.yaml"
        ]
    );
}

#[tokio::test]
async fn two_processes_that_edit_at_once_lose_nothing() {
    const TEST: &str = "yaml_store::crash::two_processes_that_edit_at_once_lose_nothing";
    const EDITS: usize = 40;
    if role().is_some() {
        return edit_and_say_so(EDITS).await;
    }
    let data = Data::with("global_prompt: Be brief.\n");
    let store = data.open();
    let editors = ["a", "b"].map(|names| {
        let mut child = start_editor(TEST, data.path(), names);
        thread::spawn(move || {
            let names: Vec<_> = acknowledgements(&mut child).collect();
            assert!(child.wait().unwrap().success());
            names
        })
    });
    let mut wanted = BTreeSet::new();
    for editor in editors {
        let names = editor.join().unwrap();
        assert_eq!(names.len(), EDITS);
        wanted.extend(names);
    }
    // Here, too, where nobody edited.
    eventually("all edits are live", || {
        variables(&*store).into_iter().collect::<BTreeSet<_>>() == wanted
    })
    .await;
}
