//! What the benchmarks of workspaces share: samples, bars, and how long a process takes.

use std::{
    process::{Command as Process, Stdio},
    time::{Duration, Instant},
};

pub(crate) fn time(process: &mut Process) -> Duration {
    let started = Instant::now();
    let status = process.stdin(Stdio::null()).status();
    let took = started.elapsed();
    match status {
        Ok(status) if status.success() => took,
        other => panic!(
            "`{}` did not work: {other:?}; this benchmark needs bash and bubblewrap",
            process.get_program().display()
        ),
    }
}

pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    pub(crate) fn of(mut samples: Vec<Duration>) -> Self {
        samples.sort();
        Self(samples)
    }

    pub(crate) fn median(&self) -> Duration {
        self.0[self.0.len() / 2]
    }
}

impl Samples {
    /// What all but one of a hundred took at most.
    pub(crate) fn p99(&self) -> Duration {
        self.0[self.0.len() * 99 / 100]
    }
}

impl std::fmt::Display for Samples {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let milliseconds = |duration: &Duration| duration.as_secs_f64() * 1e3;
        write!(
            formatter,
            "p50 {:.2} ms   p99 {:.2} ms",
            milliseconds(&self.median()),
            milliseconds(&self.p99())
        )
    }
}

#[derive(Default)]
pub(crate) struct Bars {
    pub(crate) missed: usize,
}

impl Bars {
    pub(crate) fn ratio(&mut self, what: &str, ours: Duration, other: Duration, most: f64) {
        let ratio = ours.as_secs_f64() / other.as_secs_f64();
        self.judge(
            what,
            &format!("{ratio:.2}"),
            &format!("at most {most}"),
            ratio <= most,
        );
    }

    pub(crate) fn at_most(&mut self, what: &str, took: Duration, most: Duration) {
        self.judge(
            what,
            &format!("{:.2} ms", took.as_secs_f64() * 1e3),
            &format!("at most {most:?}"),
            took <= most,
        );
    }

    pub(crate) fn at_least(&mut self, what: &str, value: f64, least: f64) {
        self.judge(
            what,
            &format!("{value:.0}"),
            &format!("at least {least}"),
            value >= least,
        );
    }

    pub(crate) fn bytes(&mut self, what: &str, value: u64, most: u64) {
        self.judge(
            what,
            &format!("{} kB", value >> 10),
            &format!("at most {} kB", most >> 10),
            value <= most,
        );
    }

    fn judge(&mut self, what: &str, value: &str, bar: &str, is_kept: bool) {
        let word = if is_kept { "ok" } else { "MISSED" };
        println!("  {word:6} {what:40} {value:>10}   ({bar})");
        self.missed += usize::from(!is_kept);
    }
}
