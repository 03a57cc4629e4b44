//! How long reading and editing take, against the bars of the specification. Run with `cargo bench -p foreword-store`.

use std::{
    fmt::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use foreword_compose::{LibraryDraft, library::PlaceContent};
use foreword_store::yaml::Document;

fn main() {
    // `cargo test --benches` only asks whether it runs.
    let rounds = if std::env::args().any(|argument| argument == "--bench") {
        15
    } else {
        1
    };
    let large = library(1_000, 10);
    let small = library(5, 9);
    println!(
        "{:<40} {:>10} {:>10} {:>10} {:>8} {:>7}",
        "", "median", "fastest", "processor", "bar", "ratio"
    );
    measure(
        "load 1,000 profiles of 10 sections",
        &large,
        rounds,
        400,
        |text| {
            drop(Document::parse(Arc::clone(text)));
        },
    );
    measure("load a small file", &small, rounds, 5, |text| {
        drop(Document::parse(Arc::clone(text)));
    });
    for (size, text, bar) in [("large", &large, 300), ("small", &small, 5)] {
        let document = Document::parse(Arc::clone(text)).expect("the library is valid");
        for (name, edit) in EDITS {
            let mut draft = document.library().draft().clone();
            edit(&mut draft);
            measure(&format!("{size}: {name}"), text, rounds, bar, |_| {
                drop(document.rewrite(&draft).expect("the edit can be written"));
            });
        }
    }
}

type Edit = fn(&mut LibraryDraft);

const EDITS: &[(&str, Edit)] = &[
    ("no change", |_| {}),
    ("replace a text", |draft| {
        let middle = draft.profiles.len() / 2;
        if let PlaceContent::Inline(section) = &mut draft.profiles[middle].places[5].content {
            "One line.\nAnother line.\n".clone_into(&mut section.content);
        }
    }),
    ("switch a section off", |draft| {
        draft.profiles[0].places[0].enabled = false;
    }),
    ("add a profile", |draft| {
        let mut profile = draft.profiles[0].clone();
        "added".clone_into(&mut profile.id);
        profile.is_default = false;
        draft.profiles.push(profile);
    }),
    ("remove a profile", |draft| {
        let middle = draft.profiles.len() / 2;
        draft.profiles.remove(middle);
    }),
    ("move the last profile to the front", |draft| {
        draft.profiles.rotate_right(1);
    }),
    ("change the global prompt", |draft| {
        draft.global_prompt.as_mut().expect("it has one").enabled = false;
    }),
];

fn measure(name: &str, text: &Arc<str>, rounds: usize, bar: u32, mut work: impl FnMut(&Arc<str>)) {
    let mut times: Vec<Duration> = Vec::with_capacity(rounds);
    let processor_before = processor_time();
    for _ in 0..rounds {
        let start = Instant::now();
        work(text);
        times.push(start.elapsed());
    }
    let processor = processor_time()
        .zip(processor_before)
        .map(|(after, before)| after.saturating_sub(before))
        .map(|time| time / u32::try_from(rounds).expect("there are few rounds"));
    times.sort_unstable();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let median = milliseconds(times[times.len() / 2]);
    println!(
        "{name:<40} {median:>7.2} ms {:>7.2} ms {:>7} ms {bar:>5} ms {:>7.3}",
        milliseconds(times[0]),
        processor.map_or_else(
            || "?".to_owned(),
            |time| format!("{:.2}", milliseconds(time))
        ),
        median / f64::from(bar),
    );
}

/// How long this thread has really run, which says more on a busy machine.
fn processor_time() -> Option<Duration> {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = statistics.split(' ').next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

/// A library as people write it, with about 1 KB of text in each section.
fn library(profiles: usize, sections: usize) -> Arc<str> {
    let mut text = String::from(
        "# A large library.\nglobal_prompt:\n  content: |\n    Be helpful.\n\nprofiles:\n",
    );
    for profile in 0..profiles {
        let _ = write!(
            text,
            "  # profile number {profile}\n  - id: profile-{profile}\n    name: \"Profile {profile}\"\n    is_default: {}\n    sections:\n",
            profile == 0
        );
        for section in 0..sections {
            let _ = write!(
                text,
                "      - id: section-{section}\n        name: Section {section}\n        type: task\n        content: |\n"
            );
            for line in 0..15 {
                let _ = writeln!(
                    text,
                    "          Line {line} of {section} in {profile}: say what is known, and where it is known from."
                );
            }
            let _ = write!(text, "        order: {section}\n\n");
        }
    }
    println!("a library of {profiles} × {sections}: {} bytes", text.len());
    text.into()
}
