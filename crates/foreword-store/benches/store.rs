//! Measures loading, editing, and reading while an edit is written, and prints each beside the bar it must reach.
//!
//! What an edit may take depends on the disk, so edits and plain fsyncs in the same directory take turns. Run it with
//! `cargo bench -p foreword-store`; it ends with an error if a bar is missed.

use std::{
    fmt::Write as _,
    fs::{self, File},
    hint::black_box,
    io::Write as _,
    path::Path,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use foreword_store::{
    Store, StoreConfig, YamlStore,
    edit::{PlacePatch, patch_place},
};
use jiff::Timestamp;
use tempfile::TempDir;
use tokio::runtime::Runtime;

const MILLISECOND: Duration = Duration::from_millis(1);

fn main() -> ExitCode {
    let runtime = Runtime::new().expect("a runtime starts");
    let mut report = Report { missed: false };
    let small = Data::new(5);
    editing(&mut report, &runtime, &small, 40, |fsync, _| {
        2 * fsync + 5 * MILLISECOND
    });
    let large = Data::new(1_000);
    loading(&mut report, &large);
    editing(&mut report, &runtime, &large, 10, |_, fsync| {
        300 * MILLISECOND + fsync
    });
    reading(&mut report, &runtime, &large);
    report.exit_code()
}

/// Opening the store, parsing and checking included.
fn loading(report: &mut Report, data: &Data) {
    let times = (0..5).map(|_| {
        let start = Instant::now();
        black_box(data.open());
        start.elapsed()
    });
    let load = median(times.collect());
    report.line(&format!("load {}", data.size()), load, 400 * MILLISECOND);
}

/// One edit, against an fsync of as much in the same directory.
fn editing(
    report: &mut Report,
    runtime: &Runtime,
    data: &Data,
    rounds: usize,
    bar: impl Fn(Duration, Duration) -> Duration,
) {
    let store = data.open();
    let length = store.snapshot().text.len();
    let (mut edits, mut small_fsyncs, mut fsyncs) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        small_fsyncs.push(write_and_fsync(data.path(), 1));
        fsyncs.push(write_and_fsync(data.path(), length));
        let start = Instant::now();
        edit(runtime, &store, round);
        edits.push(start.elapsed());
    }
    let (small_fsync, fsync) = (median(small_fsyncs), median(fsyncs));
    println!(
        "{:<44} {small_fsync:>10.1?} for a byte, {fsync:.1?} for {}",
        "this disk: write and fsync",
        data.size()
    );
    let edit = median(edits);
    report.line(
        &format!("one edit in {}", data.size()),
        edit,
        bar(small_fsync, fsync),
    );
}

/// Reading while edits are written, against reading while none is.
fn reading(report: &mut Report, runtime: &Runtime, data: &Data) {
    let store = data.open();
    let idle = read_for(&store, || thread::sleep(Duration::from_secs(1)));
    let busy = read_for(&store, || {
        for round in 0..10 {
            edit(runtime, &store, round);
        }
    });
    println!(
        "{:<44} {:>10.1?} at the 99.9th percentile, {:.1?} at most, of {} reads",
        "reads while nothing is written", idle.slow, idle.slowest, idle.count
    );
    println!(
        "{:<44} {:>10.1?} at the 99.9th percentile, {:.1?} at most, of {} reads",
        "reads while edits are written", busy.slow, busy.slowest, busy.count
    );
    // A read that waited would take as long as an edit: a hundred times this.
    let bar = (3 * idle.slow).max(MILLISECOND);
    report.line("reads while edits are written, 99.9 %", busy.slow, bar);
}

struct Reads {
    count: usize,
    slow: Duration,
    slowest: Duration,
}

/// How long reads take, on a thread of their own, while `work` is done.
fn read_for(store: &Arc<YamlStore>, work: impl FnOnce()) -> Reads {
    let stop = Arc::new(AtomicBool::new(false));
    let reader = thread::spawn({
        let (store, stop) = (Arc::clone(store), Arc::clone(&stop));
        move || {
            let mut times = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let start = Instant::now();
                let snapshot = store.snapshot();
                black_box(snapshot.library.profile("p3"));
                drop(snapshot);
                times.push(start.elapsed());
                thread::sleep(Duration::from_micros(20));
            }
            times
        }
    });
    work();
    stop.store(true, Ordering::Relaxed);
    let mut times = reader.join().expect("the reader does not panic");
    times.sort_unstable();
    Reads {
        count: times.len(),
        slow: times[times.len() * 999 / 1_000],
        slowest: *times.last().expect("something was read"),
    }
}

fn edit(runtime: &Runtime, store: &Arc<YamlStore>, round: usize) {
    let patch = PlacePatch {
        content: Some(format!("Round {round}.\n{}", text(round))),
        ..PlacePatch::default()
    };
    let edit = patch_place("p3", "s5", patch);
    runtime
        .block_on(store.edit(edit))
        .expect("the edit is done");
}

fn write_and_fsync(directory: &Path, length: usize) -> Duration {
    let path = directory.join("fsync");
    let bytes = vec![b'x'; length];
    let start = Instant::now();
    let mut file = File::create(&path).expect("the directory can be written to");
    file.write_all(&bytes).expect("there is room");
    file.sync_all().expect("the disk works");
    let elapsed = start.elapsed();
    fs::remove_file(path).expect("it was made above");
    elapsed
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// A data directory with a library of some profiles of ten sections of 1 KB.
struct Data(TempDir);

impl Data {
    fn new(profiles: usize) -> Self {
        let mut library = String::from("# A library to measure with\nprofiles:\n");
        for profile in 0..profiles {
            writeln!(library, "  - id: p{profile}\n    sections:").expect("a string takes all");
            for section in 0..10 {
                writeln!(
                    library,
                    "      - id: s{section}\n        order: {section}\n        content: |\n{}",
                    text(profile * 10 + section)
                        .lines()
                        .fold(String::new(), |text, line| text
                            + "          "
                            + line
                            + "\n")
                )
                .expect("a string takes all");
            }
        }
        let directory = TempDir::new().expect("there is a place for temporary files");
        fs::write(directory.path().join("system_prompts.yaml"), library).expect("there is room");
        Self(directory)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn size(&self) -> String {
        let file = self.path().join("system_prompts.yaml");
        let bytes = file.metadata().expect("it was written").len();
        format!("{} KB", bytes / 1_000)
    }

    fn open(&self) -> Arc<YamlStore> {
        let clock = Arc::new(Timestamp::now);
        let store = YamlStore::open(self.path(), &StoreConfig::default(), clock);
        Arc::new(store.expect("the library is valid"))
    }
}

/// About 1 KB of lines.
fn text(seed: usize) -> String {
    (0..14).fold(String::new(), |text, line| {
        let number = seed * 31 + line * 17;
        text + &format!("Rule {number}: keep to what was asked, and say what you did not do.\n")
    })
}

struct Report {
    missed: bool,
}

impl Report {
    fn line(&mut self, work: &str, measured: Duration, bar: Duration) {
        let kept = measured <= bar;
        self.missed |= !kept;
        let share = measured.as_secs_f64() / bar.as_secs_f64();
        let verdict = if kept { "" } else { "   MISSED" };
        println!("{work:<44} {measured:>10.1?}   bar {bar:>9.1?}   {share:>5.2} of it{verdict}");
    }

    fn exit_code(&self) -> ExitCode {
        if self.missed {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }
}
