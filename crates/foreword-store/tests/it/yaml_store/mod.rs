//! The YAML store: the contract, and what is particular to a file.

mod crash;
mod disk;
mod editing;
mod history;
mod loading;
mod watching;

use std::{
    env,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::Arc,
    time::Duration,
};

use foreword_store::{Health, OpenError, Store, StoreConfig, YamlStore};
use tempfile::TempDir;

use crate::{contract::contract, support::clock};

contract!(factory());

/// Opens the library in a new directory, each time once more.
fn factory() -> impl Fn() -> Arc<dyn Store> {
    let data = Data::new();
    move || data.open()
}

/// A data directory that goes with the test.
struct Data(TempDir);

impl Data {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// A data directory whose library file holds `text`.
    fn with(text: &str) -> Self {
        let data = Self::new();
        data.write(text);
        data
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn file(&self) -> PathBuf {
        self.path().join("system_prompts.yaml")
    }

    fn write(&self, text: impl AsRef<[u8]>) {
        fs::write(self.file(), text).unwrap();
    }

    fn read(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    fn open(&self) -> Arc<dyn Store> {
        Arc::new(self.try_open().unwrap())
    }

    fn try_open(&self) -> Result<YamlStore, OpenError> {
        open_at(self.path())
    }

    /// The names in a folder of the data directory, in order.
    fn names(&self, folder: &str) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.path().join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn open_at(path: &Path) -> Result<YamlStore, OpenError> {
    YamlStore::open(path, &StoreConfig::default(), clock())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Waits for what no event tells.
async fn eventually(fact: &str, holds: impl Fn() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(20), wait).await;
    assert!(waited.is_ok(), "{fact}: not within 20 s");
}

fn is_degraded(store: &dyn Store) -> bool {
    store.status().health != Health::Healthy
}

/// The role of this process where a test runs part of itself in another one.
const ROLE: &str = "FOREWORD_TEST_ROLE";

fn role() -> Option<String> {
    env::var(ROLE).ok()
}

/// Runs `test` once more, in a process of its own that `wrapper` starts, and in the role `role`.
///
/// Whoever cannot run the wrapper fails: a test that was not run has not passed.
fn run_in(wrapper: &[&str], test: &str, role: &str) {
    let program = env::current_exe().unwrap();
    let mut command = Command::new(wrapper[0]);
    command
        .args(&wrapper[1..])
        .arg(program)
        .args(["--exact", test, "--nocapture"])
        .env(ROLE, role);
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .unwrap_or_else(|error| panic!("this test needs `{}`: {error}", wrapper[0]));
    let stdout = String::from_utf8_lossy(&stdout);
    assert!(
        status.success() && stdout.contains("1 passed"),
        "in `{}` (which needs root):\n{stdout}\n{}",
        wrapper.join(" "),
        String::from_utf8_lossy(&stderr)
    );
}
