//! How fast prompts are delivered, side by side with the least that could deliver the same bytes.
//!
//! `cargo bench -p foreword-server --bench delivery` starts this server, a bare rmcp server with constant instructions
//! and a bare axum handler, each in a process of its own, and asks them in turns over 16 connections. It prints medians,
//! ratios and the bars that `docs` promise, and ends with status 1 if one is missed. `--rounds N` and `--seconds S` make
//! it longer or shorter; `--chat` measures the chat endpoint only.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "counts and shares of a measurement are far from the limits of their types"
)]

#[path = "delivery/chat.rs"]
mod chat;
#[path = "delivery/load.rs"]
mod load;
#[path = "delivery/servers.rs"]
mod servers;

use std::{process::ExitCode, time::Duration};

use load::{Load, Request};
use servers::{Kind, Server};

/// How many connections ask at once.
const CONNECTIONS: usize = 16;

/// How many chats are rendered for the first time.
const COLD_CHATS: u64 = 100_000;

/// What the process may hold resident after that, in MiB: the cache, and 60 for everything else.
const RESIDENT_BAR: f64 = 64.0 + 60.0;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(kind) = value_of(&arguments, "--serve") {
        let upstream = value_of(&arguments, "--upstream")
            .map(|address| address.parse().expect("this program starts itself rightly"));
        let kind = kind.parse().expect("this program starts itself rightly");
        servers::serve(kind, upstream);
        return ExitCode::SUCCESS;
    }
    let number = |name| value_of(&arguments, name).and_then(|value| value.parse::<f64>().ok());
    let rounds = number("--rounds").map_or(5, |rounds| rounds as usize);
    let round = Duration::from_secs_f64(number("--seconds").unwrap_or(1.0));
    let runtime = tokio::runtime::Runtime::new().expect("threads can be started");
    if arguments.iter().any(|argument| argument == "--chat") {
        let mut report = Report::default();
        runtime.block_on(chat::measure(round, &mut report));
        return report.exit_code();
    }
    runtime.block_on(measure(rounds, round))
}

async fn measure(rounds: usize, round: Duration) -> ExitCode {
    let foreword = Server::start(Kind::Foreword);
    let rmcp = Server::start(Kind::Rmcp);
    let axum = Server::start(Kind::Axum);
    let prompt = load::once(foreword.address, &Request::system_prompt("hot")).await;
    println!(
        "{} bytes of prompt, {CONNECTIONS} connections, {rounds} rounds of {round:?}\n",
        prompt.len()
    );
    let mut report = Report::default();

    for work in [
        Work::Initialize,
        Work::Discover,
        Work::ListTools,
        Work::SystemPrompt,
    ] {
        let baselines: &[&Server] = match work {
            Work::SystemPrompt => &[&axum],
            _ => &[&rmcp, &axum],
        };
        let mut rates = vec![Vec::new(); 1 + baselines.len()];
        for _ in 0..rounds {
            for (server, rates) in [&foreword]
                .into_iter()
                .chain(baselines.iter().copied())
                .zip(&mut rates)
            {
                rates.push(
                    Load::new(server.address, CONNECTIONS)
                        .run(round, &work.request())
                        .await
                        .per_second(),
                );
            }
        }
        let medians: Vec<f64> = rates.into_iter().map(median).collect();
        println!("{}: {:.0}/s", work.name(), medians[0]);
        for (server, baseline) in baselines.iter().zip(&medians[1..]) {
            let ratio = medians[0] / baseline;
            let label = format!("  bare {}: {baseline:.0}/s, ratio", server.kind);
            report.at_least(&label, ratio, work.bar(server.kind));
        }
    }

    for work in [Work::Initialize, Work::SystemPrompt] {
        let (mut hot, mut cold) = (Vec::new(), Vec::new());
        let mut chats = 0..;
        for _ in 0..rounds {
            hot.push(
                Load::new(foreword.address, CONNECTIONS)
                    .run(round, &work.request())
                    .await
                    .per_second(),
            );
            let share = COLD_CHATS / rounds as u64;
            let names: Vec<String> = chats
                .by_ref()
                .take(share as usize)
                .map(|chat: u64| format!("{}-{chat}", work.name()))
                .collect();
            cold.push(
                Load::new(foreword.address, CONNECTIONS)
                    .run_each(names, |chat| work.request_of(chat))
                    .await
                    .per_second(),
            );
        }
        let (hot, cold) = (median(hot), median(cold));
        println!("{COLD_CHATS} different chats, {}: {cold:.0}/s", work.name());
        report.at_most(
            &format!("  hot: {hot:.0}/s, cost ratio"),
            hot / cold,
            Some(3.0),
        );
    }
    report.at_most(
        "resident after that, MiB",
        foreword.resident_mebibytes(),
        Some(RESIDENT_BAR),
    );

    for work in [Work::Initialize, Work::SystemPrompt] {
        let most = Load::new(foreword.address, CONNECTIONS)
            .run(round, &work.request())
            .await
            .per_second();
        let latencies = Load::new(foreword.address, CONNECTIONS)
            .paced(round * 3, most / 2.0, &work.request())
            .await;
        let p99 = latencies.percentile(0.99).as_secs_f64() * 1_000.0;
        report.at_most(
            &format!("p99 at {:.0}/s, {}, ms", most / 2.0, work.name()),
            p99,
            Some(5.0),
        );
    }
    chat::measure(round, &mut report).await;
    report.exit_code()
}

/// What is asked.
#[derive(Clone, Copy)]
enum Work {
    Initialize,
    Discover,
    ListTools,
    SystemPrompt,
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::Discover => "server-discover",
            Self::ListTools => "tools-list",
            Self::SystemPrompt => "system-prompt",
        }
    }

    fn request(self) -> Request {
        self.request_of("hot")
    }

    fn request_of(self, chat: &str) -> Request {
        match self {
            Self::Initialize => Request::initialize(chat),
            Self::Discover => Request::discover(chat),
            Self::ListTools => Request::list_tools(chat),
            Self::SystemPrompt => Request::system_prompt(chat),
        }
    }

    /// The least ratio to a baseline; none where the ratio is only for orientation.
    fn bar(self, baseline: Kind) -> Option<f64> {
        match (self, baseline) {
            (Self::SystemPrompt, Kind::Axum) => Some(0.8),
            (_, Kind::Rmcp) => Some(0.9),
            _ => None,
        }
    }
}

/// What was found, against what was promised.
#[derive(Default)]
struct Report {
    missed: usize,
}

impl Report {
    fn at_least(&mut self, label: &str, value: f64, bar: Option<f64>) {
        self.line(label, value, bar, "≥", |bar| value >= bar);
    }

    fn at_most(&mut self, label: &str, value: f64, bar: Option<f64>) {
        self.line(label, value, bar, "≤", |bar| value <= bar);
    }

    fn line(
        &mut self,
        label: &str,
        value: f64,
        bar: Option<f64>,
        sign: &str,
        holds: impl Fn(f64) -> bool,
    ) {
        let Some(bar) = bar else {
            println!("{label}: {value:.2}");
            return;
        };
        let verdict = if holds(bar) { "ok" } else { "MISSED" };
        self.missed += usize::from(!holds(bar));
        println!("{label}: {value:.2} (bar {sign} {bar}: {verdict})");
    }

    fn exit_code(self) -> ExitCode {
        ExitCode::from(u8::from(self.missed > 0))
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn value_of<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    let at = arguments.iter().position(|argument| argument == name)?;
    arguments.get(at + 1).map(String::as_str)
}
