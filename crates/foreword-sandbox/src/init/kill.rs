//! Kills a process with all that it started, however that tried to get away.
//!
//! The root of the tree is the sub-reaper of what it started: whoever loses his parent (`setsid`, a double fork) becomes its child, so
//! everything stays below it in the chain of parents. That is why the root dies last. All are stopped first, until no new one is found:
//! a tree that is stopped does not grow.

use std::{
    collections::{HashMap, HashSet},
    fs,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

/// How long the tree is hunted. It is also how long others of the sandbox wait, so it is short.
const PATIENCE: Duration = Duration::from_secs(2);

/// Kills `root` and all below it; says whether nothing but zombies is left.
pub(crate) fn kill_tree(root: Pid) -> bool {
    let deadline = Instant::now() + PATIENCE;
    let _ = kill_process(root, Signal::STOP);
    let mut stopped = HashSet::new();
    loop {
        let mut found_new = false;
        for pid in descendants(root) {
            if stopped.insert(pid) {
                found_new = true;
                let _ = kill_process(pid, Signal::STOP);
            }
        }
        if !found_new || Instant::now() > deadline {
            break;
        }
    }
    let deadline = deadline + PATIENCE;
    let gone = loop {
        let alive = descendants(root);
        for pid in &alive {
            let _ = kill_process(*pid, Signal::KILL);
        }
        if alive.is_empty() {
            break true;
        }
        if Instant::now() > deadline {
            break false;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let _ = kill_process(root, Signal::KILL);
    gone
}

/// What lives below `root`.
fn descendants(root: Pid) -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in processes() {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut waiting = vec![root.as_raw_nonzero().get()];
    while let Some(parent) = waiting.pop() {
        for process in children.remove(&parent).unwrap_or_default() {
            waiting.push(process.pid);
            if let Some(pid) = Pid::from_raw(process.pid)
                && process.alive
            {
                found.push(pid);
            }
        }
    }
    found
}

#[derive(Debug, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    alive: bool,
}

fn processes() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
    })
}

/// Reads `1234 (name) S 1 …`, where the name may hold anything.
fn parse(pid: i32, stat: &[u8]) -> Option<Process> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[end + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let alive = !matches!(fields.next()?, "Z" | "X");
    Some(Process {
        pid,
        parent: fields.next()?.parse().ok()?,
        alive,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_be_called_anything() {
        let process = parse(7, b"7 (a) Z 1 \xff(b) ) S 42 7 7 0").unwrap();
        assert_eq!(
            process,
            Process {
                pid: 7,
                parent: 42,
                alive: true
            }
        );
        assert!(!parse(7, b"7 (x) Z 42 7 7 0").unwrap().alive);
        assert_eq!(parse(7, b"7 (x"), None);
    }
}
