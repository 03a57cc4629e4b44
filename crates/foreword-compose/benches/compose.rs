//! Measures composing against baselines of the same run, and prints the ratios beside the bars they must reach.
//!
//! Works that are compared take turns round by round, so that a busy machine slows all of them. Run it with
//! `cargo bench -p foreword-compose`; it ends with an error if a bar is missed.
#![expect(clippy::disallowed_types, reason = "a benchmark needs the clock")]

use std::{
    hint::black_box,
    process::ExitCode,
    time::{Duration, Instant},
};

use foreword_compose::{
    Composition, GlobalPrompt, Library, LibraryDraft, Place, Profile, Request, Section,
    SectionType, SessionName, SessionValues, Tool, ToolServer, ToolsPromptOptions, compose,
    library::PlaceContent, revision, tools_prompt,
};
use serde_json::json;
use sha2::{Digest, Sha256};

fn main() -> ExitCode {
    let mut report = Report::default();
    typical_library(&mut report);
    large_library(&mut report);
    many_profiles(&mut report);
    many_tools(&mut report);
    report.exit_code()
}

/// 3 KB of global prompt, 8 sections of 1.5 KB, 10 KB of tools prompt.
fn typical_library(report: &mut Report) {
    let sections = (0..8).map(|at| text(1_500, 2, at)).collect();
    let library = library(text(3_000, 2, 99), vec![sections]);
    let tools = text(10_000, 20, 100);
    let request = Request {
        tools_prompt: &tools,
        ..request()
    };
    let composition = composed(&library, &request);
    let [composing, copying, hashing, both] = measure([
        &mut || drop(black_box(composed(&library, &request))),
        &mut || drop(black_box(copy_by_part(&composition))),
        &mut || _ = black_box(Sha256::digest(&composition.text)),
        &mut || {
            let composition = composed(&library, &request);
            drop(black_box(revision(&composition.text, None)));
            drop(black_box(composition));
        },
    ]);
    report.time(
        "compose a typical library",
        composing,
        Duration::from_micros(15),
    );
    report.ratio(
        "  against copying its bytes part by part",
        composing,
        copying,
        8.0,
    );
    report.ratio(
        "  with the revision, against it + SHA-256",
        both,
        composing + hashing,
        1.2,
    );
}

/// 1 MB of sections with 1,000 placeholders, and the same in ten libraries.
///
/// The tenths are composed and kept one after the other: alone, one of them would fit into a cache that the whole does
/// not fit into, and the ratio would tell about the machine.
fn large_library(report: &mut Report) {
    let section = |at| text(10_000, 10, at);
    let whole = library(String::new(), vec![(0..100).map(section).collect()]);
    let tenth = |at: usize| {
        library(
            String::new(),
            vec![(at * 10..at * 10 + 10).map(section).collect()],
        )
    };
    let tenths: Vec<Library> = (0..10).map(tenth).collect();
    let request = request();
    let compose_all = || tenths.iter().map(|tenth| composed(tenth, &request));
    let [whole, tenths] = measure([
        &mut || drop(black_box(composed(&whole, &request))),
        &mut || drop(black_box(compose_all().collect::<Vec<_>>())),
    ]);
    report.time(
        "compose 1 MB with 1,000 placeholders",
        whole,
        Duration::from_millis(2),
    );
    report.ratio("  against a tenth of it", whole, tenths / 10, 11.0);
}

/// One profile out of 10,000.
fn many_profiles(report: &mut Report) {
    let sized = |profiles: usize| {
        let sections = |at| (0..3).map(|part| text(500, 1, at * 3 + part)).collect();
        library(text(500, 1, 99), (0..profiles).map(sections).collect())
    };
    let (few, many) = (sized(10), sized(10_000));
    let request = Request {
        profile_id: Some("profile-7"),
        ..request()
    };
    let [few, many] = measure([
        &mut || drop(black_box(composed(&few, &request))),
        &mut || drop(black_box(composed(&many, &request))),
    ]);
    report.ratio(
        "choose one of 10,000 profiles, against one of 10",
        many,
        few,
        1.1,
    );
}

/// 20 servers with 50 tools each.
fn many_tools(report: &mut Report) {
    let tool = |server: usize, at: usize| Tool {
        name: format!("server-{server}__tool-{at}"),
        description: Some(text(60, 0, at)),
        input_schema: Some(json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The path."},
                "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null},
            },
            "required": ["path"],
        })),
    };
    let server = |server: usize| ToolServer {
        name: format!("server-{server}"),
        instructions: Some(text(200, 0, server)),
        tools: (0..50).map(|at| tool(server, at)).collect(),
    };
    let servers: Vec<ToolServer> = (0..20).map(server).collect();
    let options = ToolsPromptOptions::default();
    let [making] = measure([&mut || drop(black_box(tools_prompt(&servers, options)))]);
    report.time(
        "make the tools prompt of 1,000 tools",
        making,
        Duration::from_millis(1),
    );
}

fn composed(library: &Library, request: &Request<'_>) -> Composition {
    compose(library, request).expect("the profile exists")
}

/// What composing could cost if everything were known before: one allocation, and a copy of each part.
fn copy_by_part(composition: &Composition) -> String {
    let mut copy = String::with_capacity(composition.text.len());
    for part in &composition.parts {
        if !copy.is_empty() {
            copy.push_str("\n\n");
        }
        copy.push_str(&composition.text[part.range.clone()]);
    }
    copy
}

fn request() -> Request<'static> {
    Request {
        session: SessionValues::default().with(SessionName::Date, Some("2026-11-30")),
        ..Request::default()
    }
}

/// A library with a profile for each list of section texts.
fn library(global: String, profiles: Vec<Vec<String>>) -> Library {
    let section = |(at, content): (usize, String)| Place {
        content: PlaceContent::Inline(Section {
            id: format!("section-{at}"),
            name: format!("Section {at}"),
            section_type: SectionType::Custom,
            content,
        }),
        enabled: true,
        order: 0,
        priority: 0,
    };
    let profile = |(at, contents): (usize, Vec<String>)| Profile {
        id: format!("profile-{at}"),
        name: format!("Profile {at}"),
        description: None,
        is_default: false,
        tools_prompt: true,
        places: contents.into_iter().enumerate().map(section).collect(),
        section_ids: Vec::new(),
    };
    let draft = LibraryDraft {
        global_prompt: Some(GlobalPrompt {
            content: global,
            enabled: true,
        }),
        variables: [("company".to_owned(), "Example Ltd".to_owned())].into(),
        profiles: profiles.into_iter().enumerate().map(profile).collect(),
        ..LibraryDraft::default()
    };
    Library::new(draft).expect("the library is valid")
}

/// Prose of `length` bytes with `placeholders` evenly in it, and a few braces that are none; `seed` makes it unlike others.
fn text(length: usize, placeholders: usize, seed: usize) -> String {
    const PROSE: &str =
        "Answer briefly, and keep what is quoted as it is. Say so when you are not sure.\n";
    const BRACES: &str = "Objects look like {\"name\": {\"first\": \"A\"}}.\n";
    let mut text = format!("Text {seed}.\n");
    let mut lines = 0;
    let mut put = 0;
    while text.len() < length {
        lines += 1;
        text.push_str(if lines % 8 == 0 { BRACES } else { PROSE });
        if put < placeholders && text.len() * placeholders >= put * length {
            text.push_str("You work for {company}.\n");
            put += 1;
        }
    }
    text.truncate(length);
    text
}

/// The median time of each work, over rounds in which each has its turn.
fn measure<const N: usize>(works: [&mut dyn FnMut(); N]) -> [Duration; N] {
    const ROUNDS: usize = 501;
    // Short, so that on a busy machine most turns pass without an interruption.
    const TURN: Duration = Duration::from_micros(300);
    let mut works = works.map(|work| {
        let once = (0..10).map(|_| time(work)).min();
        let once = once
            .expect("ten calls were timed")
            .max(Duration::from_nanos(1));
        let calls =
            u32::try_from(TURN.as_nanos() / once.as_nanos()).map_or(u32::MAX, |calls| calls.max(1));
        (work, calls, Vec::with_capacity(ROUNDS))
    });
    for _ in 0..ROUNDS {
        for (work, calls, times) in &mut works {
            let turn = time(&mut || (0..*calls).for_each(|_| work()));
            times.push(turn / *calls);
        }
    }
    works.map(|(_, _, mut times)| {
        times.sort_unstable();
        times[ROUNDS / 2]
    })
}

fn time(work: &mut dyn FnMut()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// Prints what was measured and remembers whether a bar was missed.
#[derive(Default)]
struct Report {
    missed: bool,
}

impl Report {
    fn time(&mut self, work: &str, time: Duration, bar: Duration) {
        self.line(
            work,
            &format!("{time:.1?}"),
            &format!("{bar:?}"),
            time <= bar,
        );
    }

    fn ratio(&mut self, work: &str, time: Duration, baseline: Duration, bar: f64) {
        let ratio = time.as_secs_f64() / baseline.as_secs_f64();
        let measured = format!("{ratio:.2} × {baseline:.1?}");
        self.line(work, &measured, &format!("{bar} ×"), ratio <= bar);
    }

    fn line(&mut self, work: &str, measured: &str, bar: &str, reached: bool) {
        let verdict = if reached { "reached" } else { "MISSED" };
        println!("{work:<50} {measured:>20}   bar {bar:>6}   {verdict}");
        self.missed |= !reached;
    }

    fn exit_code(&self) -> ExitCode {
        if self.missed {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }
}
