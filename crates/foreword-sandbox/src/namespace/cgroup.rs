//! Limits of a whole sandbox, by control groups: version 2 if its controllers can be had, else version 1, without systemd.
//!
//! Groups are made below the server's own, so no right is needed that the server does not have. They are in a directory with the
//! server's process number in its name, and with the namespace in which it has that number: servers in containers may share a
//! parent. What a killed server left behind is swept by the next in that namespace; groups of a namespace that is gone too stay, empty.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{
    config::SandboxConfig,
    driver::group::{Group, Version},
    state::Enforcement,
};

const PREFIX: &str = "foreword.";
/// Tells the backends of one process apart.
static INSTANCES: AtomicU64 = AtomicU64::new(0);
/// The leaf that the server moves to, since a group of version 2 that has processes may not hand controllers down.
const SERVER_LEAF: &str = "foreword-server";
const CPU_PERIOD_MICROSECONDS: u64 = 100_000;

/// Where groups are made.
pub(super) struct Groups {
    /// One for version 2, one for each controller for version 1.
    roots: Vec<Root>,
    next: AtomicU64,
    memory: u64,
    processes: u64,
    cpu_percent: u64,
    /// Why a controller is missing, in words; empty if none is.
    why_missing: String,
}

#[derive(Debug, Clone)]
struct Root {
    path: PathBuf,
    version: Version,
    controllers: Vec<Controller>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Controller {
    Memory,
    Pids,
    Cpu,
}

impl Controller {
    const ALL: [Self; 3] = [Self::Memory, Self::Pids, Self::Cpu];

    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
        }
    }
}

impl Groups {
    /// Finds out what can be had here, and makes the server's directories.
    pub(super) fn open(config: &SandboxConfig) -> Self {
        let host = Host {
            membership: fs::read_to_string("/proc/self/cgroup").unwrap_or_default(),
            mounts: fs::read_to_string("/proc/self/mountinfo").unwrap_or_default(),
            namespace: fs::metadata("/proc/self/ns/pid")
                .ok()
                .map(|namespace| namespace.ino()),
        };
        Self::on(&host, config)
    }

    fn on(host: &Host, config: &SandboxConfig) -> Self {
        let mut why_missing = Vec::new();
        let mut roots = Vec::new();
        let mut missing = Controller::ALL.to_vec();
        match host
            .unified()
            .map(|group| hand_down(&group).map(|controllers| (group, controllers)))
        {
            Some(Ok((group, controllers))) if !controllers.is_empty() => {
                missing.retain(|controller| !controllers.contains(controller));
                roots.push(Root {
                    path: group,
                    version: Version::Two,
                    controllers,
                });
            }
            Some(Err(error)) => why_missing.push(format!("version 2: {error}")),
            _ => {}
        }
        for controller in std::mem::take(&mut missing) {
            match host.legacy(controller) {
                Some(path) => roots.push(Root {
                    path,
                    version: Version::One,
                    controllers: vec![controller],
                }),
                None => missing.push(controller),
            }
        }
        let name = format!(
            "{PREFIX}{}.{}.{}",
            std::process::id(),
            INSTANCES.fetch_add(1, Ordering::Relaxed),
            host.namespace.unwrap_or_default()
        );
        roots.retain_mut(|root| {
            if let Some(namespace) = host.namespace {
                sweep(&root.path, namespace);
            }
            let own = root.path.join(&name);
            let made = make_group(&own).and_then(|()| prepare(&own, root));
            root.path = own;
            made.map_err(|error| {
                missing.extend(&root.controllers);
                why_missing.push(format!("{}: {error}", root.path.display()));
            })
            .is_ok()
        });
        if !missing.is_empty() && why_missing.is_empty() {
            let names: Vec<_> = missing.iter().map(|controller| controller.name()).collect();
            why_missing.push(format!(
                "this host has no controller for {}",
                names.join(", ")
            ));
        }
        Self {
            roots,
            next: AtomicU64::new(0),
            memory: config.memory_bytes,
            processes: config.max_processes,
            cpu_percent: config.cpu_percent,
            why_missing: why_missing.join("; "),
        }
    }

    /// Why some limits have no group.
    pub(super) fn why_missing(&self) -> Option<&str> {
        let some_missing = Controller::ALL
            .into_iter()
            .any(|controller| self.enforcement(controller).is_err());
        some_missing.then_some(self.why_missing.as_str())
    }

    /// What keeps `controller`'s limit, or why nothing does.
    pub(super) fn enforcement(&self, controller: Controller) -> Result<Enforcement, String> {
        let root = self
            .roots
            .iter()
            .find(|root| root.controllers.contains(&controller));
        match root.map(|root| root.version) {
            Some(Version::Two) => Ok(Enforcement::Cgroup2),
            Some(Version::One) => Ok(Enforcement::Cgroup1),
            None => Err(self.why_missing.clone()),
        }
    }

    /// Makes the groups of one sandbox.
    pub(super) fn make(&self) -> io::Result<Group> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut group = Group::default();
        match self.make_all(number, &mut group) {
            Ok(()) => Ok(group),
            Err(error) => {
                // Nobody has joined them yet, so they go at once.
                group.try_remove();
                Err(error)
            }
        }
    }

    fn make_all(&self, number: u64, group: &mut Group) -> io::Result<()> {
        for root in &self.roots {
            let path = root.path.join(number.to_string());
            make_group(&path)?;
            group.add(path.clone(), root.version);
            for controller in &root.controllers {
                self.limit(&path, root.version, *controller)?;
            }
        }
        Ok(())
    }

    fn limit(&self, path: &Path, version: Version, controller: Controller) -> io::Result<()> {
        let set = |name: &str, value: String| fs::write(path.join(name), value);
        // Swap may not be counted on this host; then there is nothing to forbid.
        let set_if_there = |name: &str, value: String| match set(name, value) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            other => other,
        };
        let quota = self.cpu_percent * CPU_PERIOD_MICROSECONDS / 100;
        match (version, controller) {
            (Version::Two, Controller::Memory) => {
                set("memory.max", self.memory.to_string())?;
                set_if_there("memory.swap.max", "0".to_owned())
            }
            (Version::Two, Controller::Cpu) => {
                set("cpu.max", format!("{quota} {CPU_PERIOD_MICROSECONDS}"))
            }
            (Version::One, Controller::Memory) => {
                set("memory.limit_in_bytes", self.memory.to_string())?;
                set_if_there("memory.memsw.limit_in_bytes", self.memory.to_string())
            }
            (Version::One, Controller::Cpu) => {
                set("cpu.cfs_period_us", CPU_PERIOD_MICROSECONDS.to_string())?;
                set("cpu.cfs_quota_us", quota.to_string())
            }
            (_, Controller::Pids) => set("pids.max", self.processes.to_string()),
        }
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for root in &self.roots {
            remove_with_children(&root.path);
        }
    }
}

/// Makes the directory of a group; there is nothing wrong with one that is there.
fn make_group(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

fn prepare(own: &Path, root: &Root) -> io::Result<()> {
    if root.version == Version::Two {
        enable(own, &root.controllers)?;
    }
    Ok(())
}

fn enable(group: &Path, controllers: &[Controller]) -> io::Result<()> {
    let words: Vec<_> = controllers
        .iter()
        .map(|controller| format!("+{}", controller.name()))
        .collect();
    fs::write(group.join("cgroup.subtree_control"), words.join(" "))
}

/// Lets groups below `group` have its controllers, and says which. If the server is in the way, it moves into a leaf.
fn hand_down(group: &Path) -> io::Result<Vec<Controller>> {
    let offered = fs::read_to_string(group.join("cgroup.controllers"))?;
    let offered: Vec<_> = offered.split_ascii_whitespace().collect();
    let controllers: Vec<_> = Controller::ALL
        .into_iter()
        .filter(|controller| offered.contains(&controller.name()))
        .collect();
    if controllers.is_empty() {
        return Ok(controllers);
    }
    match enable(group, &controllers) {
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            let leaf = group.join(SERVER_LEAF);
            make_group(&leaf)?;
            fs::write(leaf.join("cgroup.procs"), "0")?;
            enable(group, &controllers).inspect_err(|_| {
                // Others are in the group as well, so it was for nothing.
                let _ = fs::write(group.join("cgroup.procs"), "0");
                let _ = fs::remove_dir(&leaf);
            })?;
        }
        other => other?,
    }
    Ok(controllers)
}

/// Removes what servers left behind that are gone; those of another namespace are not ours to judge.
fn sweep(parent: &Path, namespace: u64) {
    let namespace = format!(".{namespace}");
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| {
            let ours = name.strip_prefix(PREFIX)?.strip_suffix(&namespace)?;
            ours.split('.').next()?.parse::<u32>().ok()
        });
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            remove_with_children(&entry.path());
        }
    }
}

fn remove_with_children(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
    let _ = fs::remove_dir(group);
}

/// What the kernel says of this process's groups.
struct Host {
    /// `/proc/self/cgroup`.
    membership: String,
    /// `/proc/self/mountinfo`.
    mounts: String,
    /// Tells the namespace of process numbers from others; none where the kernel does not say.
    namespace: Option<u64>,
}

impl Host {
    /// Our group of version 2, as a directory.
    fn unified(&self) -> Option<PathBuf> {
        let path = self
            .membership
            .lines()
            .find_map(|line| line.strip_prefix("0::"))?;
        self.directory(path, |kind, _| kind == "cgroup2")
    }

    /// Our group of version 1 for `controller`, as a directory.
    fn legacy(&self, controller: Controller) -> Option<PathBuf> {
        let path = self.membership.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            fields
                .next()?
                .split(',')
                .any(|name| name == controller.name())
                .then(|| fields.next())?
        })?;
        self.directory(path, |kind, options| {
            kind == "cgroup" && options.split(',').any(|option| option == controller.name())
        })
    }

    /// Where the group `path` of a hierarchy is, whose mount shows the part of it below its root.
    fn directory(&self, path: &str, is_it: impl Fn(&str, &str) -> bool) -> Option<PathBuf> {
        self.mounts.lines().find_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let mut after = after.split(' ');
            let (kind, options) = (after.next()?, after.nth(1)?);
            if !is_it(kind, options) {
                return None;
            }
            let mut before = before.split(' ');
            let (root, mount) = (before.nth(3)?, before.next()?);
            let below = if root == "/" {
                path
            } else {
                path.strip_prefix(root)?
            };
            let directory = Path::new(mount).join(below.trim_start_matches('/'));
            directory.is_dir().then_some(directory)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host whose control groups are plain files, so that every version can be tried on every machine.
    fn host(place: &Path, membership: &str, mounts: &[(&str, &str, &str)]) -> Host {
        let mounts = mounts.iter().map(|(directory, kind, options)| {
            let path = place.join(directory);
            fs::create_dir_all(&path).unwrap();
            format!(
                "30 20 0:25 / {} rw,relatime shared:5 - {kind} cgroup {options}\n",
                path.display()
            )
        });
        Host {
            membership: membership.to_owned(),
            mounts: mounts.collect(),
            namespace: Some(7),
        }
    }

    #[test]
    fn version_2_is_used_where_its_controllers_are() {
        let place = tempfile::tempdir().unwrap();
        let host = host(place.path(), "0::/unit\n", &[("two", "cgroup2", "rw")]);
        let unit = place.path().join("two/unit");
        fs::create_dir(&unit).unwrap();
        fs::write(unit.join("cgroup.controllers"), "cpuset cpu memory pids\n").unwrap();
        let groups = Groups::on(&host, &SandboxConfig::default());
        assert_eq!(
            groups.enforcement(Controller::Memory),
            Ok(Enforcement::Cgroup2)
        );
        assert_eq!(
            fs::read_to_string(unit.join("cgroup.subtree_control")).unwrap(),
            "+memory +pids +cpu"
        );
        let (path, _) = groups.make().unwrap().paths.remove(0);
        assert_eq!(
            fs::read_to_string(path.join("memory.max")).unwrap(),
            "2147483648"
        );
        assert_eq!(
            fs::read_to_string(path.join("memory.swap.max")).unwrap(),
            "0"
        );
        assert_eq!(fs::read_to_string(path.join("pids.max")).unwrap(), "512");
        assert_eq!(
            fs::read_to_string(path.join("cpu.max")).unwrap(),
            "100000 100000"
        );
    }

    #[test]
    fn version_1_fills_in_what_version_2_lacks() {
        let place = tempfile::tempdir().unwrap();
        let membership = "8:pids:/\n4:memory:/own/group\n2:cpu,cpuacct:/\n0::/\n";
        let mounts = [
            ("two", "cgroup2", "rw"),
            ("memory", "cgroup", "rw,memory"),
            ("pids", "cgroup", "rw,pids"),
        ];
        let host = host(place.path(), membership, &mounts);
        fs::write(place.path().join("two/cgroup.controllers"), "hugetlb\n").unwrap();
        fs::create_dir_all(place.path().join("memory/own/group")).unwrap();
        let groups = Groups::on(&host, &SandboxConfig::default());
        assert_eq!(
            groups.enforcement(Controller::Memory),
            Ok(Enforcement::Cgroup1)
        );
        assert_eq!(
            groups.enforcement(Controller::Pids),
            Ok(Enforcement::Cgroup1)
        );
        let why = groups.enforcement(Controller::Cpu).unwrap_err();
        assert_eq!(why, "this host has no controller for cpu");
        let group = groups.make().unwrap();
        let memory = &group
            .paths
            .iter()
            .find(|(path, _)| path.starts_with(place.path().join("memory/own/group")))
            .unwrap()
            .0;
        assert_eq!(
            fs::read_to_string(memory.join("memory.limit_in_bytes")).unwrap(),
            "2147483648"
        );
        fs::write(
            memory.join("memory.oom_control"),
            "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
        )
        .unwrap();
        assert_eq!(group.memory_kills(), 3);
    }

    #[test]
    fn groups_whose_limit_cannot_be_set_are_removed() {
        let config = SandboxConfig {
            // More than the kernel can count.
            max_processes: 1 << 40,
            ..SandboxConfig::default()
        };
        let groups = Groups::open(&config);
        if groups.enforcement(Controller::Pids).is_err() {
            assert!(
                !rustix::process::geteuid().is_root(),
                "{}",
                groups.why_missing
            );
            eprintln!("not tried: this user may make no control groups here");
            return;
        }
        groups.make().unwrap_err();
        for root in &groups.roots {
            let left = fs::read_dir(&root.path).unwrap().flatten();
            let left = left.filter(|entry| entry.path().is_dir()).count();
            assert_eq!(left, 0, "{}", root.path.display());
        }
    }

    #[test]
    fn what_a_killed_server_left_is_swept_and_what_a_live_one_has_stays() {
        let place = tempfile::tempdir().unwrap();
        let host = host(place.path(), "8:pids:/\n", &[("pids", "cgroup", "rw,pids")]);
        let left = place.path().join("pids/foreword.4294967295.0.7");
        let alive = place.path().join("pids/foreword.1.0.7");
        let elsewhere = place.path().join("pids/foreword.4294967295.0.8");
        fs::create_dir_all(left.join("3")).unwrap();
        fs::create_dir_all(&alive).unwrap();
        fs::create_dir_all(&elsewhere).unwrap();
        let _groups = Groups::on(&host, &SandboxConfig::default());
        assert!(!left.exists() && alive.exists() && elsewhere.exists());
    }
}
