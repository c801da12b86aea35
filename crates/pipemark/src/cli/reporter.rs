//! Shows a measurement while it runs: its progress, or a line per interval.

use std::io::{Write, stdout};

use pipemark_console::Progress;
use pipemark_model::{Throughput, Unit, neutral};
use pipemark_run::{Observer, Passed};

/// Tells it.
pub enum Reporter {
    /// In a line on a terminal.
    Line(Progress),
    /// As results, by interval; the trial that was announced.
    Intervals(String),
}

impl Reporter {
    /// By interval, or in a line that is not shown where it should be `quiet`.
    pub fn new(by_interval: bool, quiet: bool) -> Reporter {
        if by_interval { Reporter::Intervals(String::new()) } else { Reporter::Line(Progress::new(quiet)) }
    }
}

impl Observer for Reporter {
    fn update(&mut self, done: u64, total: u64, trial: &str) {
        match self {
            Reporter::Line(progress) => progress.update(done, total, trial),
            Reporter::Intervals(announced) if announced == trial => {}
            Reporter::Intervals(announced) => {
                trial.clone_into(announced);
                // Who reads it may be gone; the run goes on.
                let _ = writeln!(stdout(), "{}", neutral(trial));
            }
        }
    }

    fn passed(&mut self, Passed { from_ns, to_ns, bytes, switches }: Passed) {
        if let Reporter::Line(_) = self {
            return;
        }
        let seconds = |ns: u64| ns as f64 / 1e9;
        let rate = Throughput(bytes as f64 / seconds(to_ns - from_ns).max(1e-9));
        let switches = switches.map_or_else(String::new, |count| format!("  {count:>7} switches"));
        let (from, to, size) = (seconds(from_ns), seconds(to_ns), Unit::Bytes.brief(bytes as f64));
        let _ = writeln!(stdout(), "{from:8.3}-{to:<8.3} s {size:>7}B {:>12}{switches}", rate.to_string());
    }
}
