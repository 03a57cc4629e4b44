//! The control groups of one sandbox: what they have counted, and their removal.

use std::{
    fs::{self, File},
    io,
    path::PathBuf,
    time::Duration,
};

const REMOVE_ATTEMPTS: u32 = 100;
const REMOVE_REST: Duration = Duration::from_millis(2);

/// Which of the kernel's two kinds of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

/// The groups of one sandbox. Removed by [`Group::remove`], or swept later.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) paths: Vec<(PathBuf, Version)>,
}

impl Group {
    #[cfg(test)]
    pub(crate) fn of_directory(path: PathBuf) -> Self {
        Self {
            paths: vec![(path, Version::Two)],
        }
    }

    /// One more directory, that exists.
    pub(crate) fn add(&mut self, path: PathBuf, version: Version) {
        self.paths.push((path, version));
    }

    /// What a process with one thread writes "0" to in order to join.
    ///
    /// In version 1 that is `tasks`, since a thread moves itself without the lock of all processes, for which `cgroup.procs` may wait ten
    /// milliseconds.
    pub(crate) fn doors(&self) -> io::Result<Vec<File>> {
        let open = |(path, version): &(PathBuf, Version)| {
            let name = match version {
                Version::One => "tasks",
                Version::Two => "cgroup.procs",
            };
            File::options().write(true).open(path.join(name))
        };
        self.paths.iter().map(open).collect()
    }

    /// How many processes and threads there are, if that is counted.
    pub(crate) fn processes(&self) -> Option<u64> {
        let count = |(path, _): &(PathBuf, Version)| {
            let text = fs::read_to_string(path.join("pids.current")).ok()?;
            text.trim().parse().ok()
        };
        self.paths.iter().find_map(count)
    }

    /// How many processes the memory limit has ended.
    pub(crate) fn memory_kills(&self) -> u64 {
        let name = |version| match version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        self.count(name, "oom_kill ")
    }

    /// How many processes and threads the limit of them has refused.
    pub(crate) fn process_refusals(&self) -> u64 {
        self.count(|_| "pids.events", "max ")
    }

    fn count(&self, name: impl Fn(Version) -> &'static str, key: &str) -> u64 {
        let count = |(path, version): &(PathBuf, Version)| {
            let text = fs::read_to_string(path.join(name(*version))).ok()?;
            text.lines()
                .find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok())
        };
        self.paths.iter().filter_map(count).sum()
    }

    /// Removes the groups once their last process is gone, which may take some milliseconds.
    pub(crate) async fn remove(&self) {
        for _ in 0..REMOVE_ATTEMPTS {
            if self.try_remove() {
                return;
            }
            tokio::time::sleep(REMOVE_REST).await;
        }
    }

    /// The same, on a thread that may wait.
    pub(crate) fn remove_blocking(&self) {
        for _ in 0..REMOVE_ATTEMPTS {
            if self.try_remove() {
                return;
            }
            std::thread::sleep(REMOVE_REST);
        }
    }

    pub(crate) fn try_remove(&self) -> bool {
        self.paths
            .iter()
            .all(|(path, _)| match fs::remove_dir(path) {
                Ok(()) => true,
                Err(error) => error.kind() == io::ErrorKind::NotFound,
            })
    }
}
