//! Reports a measurement while it runs: progress or a line per interval for people, and a line of JSON per run and
//! trial for programs.

use std::io::{Write, stdout};

use pipemark_console::{ExitError, JsonLines, Progress, say};
use pipemark_model::{Outcome, Sample, Throughput, Trial, Unit, Warning, neutral};
use pipemark_run::{IntervalProgress, Observer};
use pipemark_stats::estimate;
use serde::Serialize;

/// Reports the progress of a measurement.
pub struct Reporter<'a> {
    shown: ProgressView,
    quiet: bool,
    lines: Option<&'a mut JsonLines>,
    session: u32,
    /// The error of the first line that could not be written; `None` if all were written. No lines are written after an
    /// error.
    failed: Option<ExitError>,
}

/// The view for people.
enum ProgressView {
    /// One line on a terminal.
    Line(Progress),
    /// A line of results for each interval. Holds the last announced trial.
    Intervals(String),
}

/// A run, as a line of JSON.
#[derive(Serialize)]
struct SampleLine<'a> {
    kind: &'static str,
    session: u32,
    experiment: &'a str,
    id: &'a str,
    /// The run's main figure: bytes per second, or nanoseconds per round trip.
    figure: f64,
    #[serde(flatten)]
    sample: &'a Sample,
}

/// A trial that has ended, as a line of JSON.
#[derive(Serialize)]
struct TrialLine<'a> {
    kind: &'static str,
    session: u32,
    experiment: &'a str,
    id: &'a str,
    status: String,
    reason: Option<&'a str>,
    runs: usize,
    median: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

impl<'a> Reporter<'a> {
    /// A reporter that prints a line per interval with `by_interval`. Without it, the reporter shows one progress line,
    /// unless `quiet` is set.
    pub fn new(by_interval: bool, quiet: bool) -> Reporter<'a> {
        let shown =
            if by_interval { ProgressView::Intervals(String::new()) } else { ProgressView::Line(Progress::new(quiet)) };
        Reporter { shown, quiet, lines: None, session: 1, failed: None }
    }

    /// Adds lines of JSON for programs, if requested.
    pub fn with_lines(self, lines: Option<&'a mut JsonLines>, session: u32) -> Reporter<'a> {
        Reporter { lines, session, ..self }
    }

    /// Checks that all lines were written.
    ///
    /// # Errors
    /// The first error.
    pub fn check_written(self) -> Result<(), ExitError> {
        self.failed.map_or(Ok(()), Err)
    }

    fn line(&mut self, line: &impl Serialize) {
        if let (Some(lines), None) = (&mut self.lines, &self.failed) {
            self.failed = lines.line(line).err();
        }
    }
}

impl Observer for Reporter<'_> {
    fn sampled(&mut self, trial: &Trial, sample: &Sample) {
        let (session, experiment, id) = (self.session, trial.experiment.as_str(), trial.id.as_str());
        self.line(&SampleLine { kind: "sample", session, experiment, id, figure: sample.headline(), sample });
    }

    fn ended(&mut self, outcome: &Outcome) {
        let figures: Vec<f64> = outcome.samples.iter().map(Sample::headline).collect();
        let estimate = estimate::from_runs(&figures);
        self.line(&TrialLine {
            kind: "trial",
            session: self.session,
            experiment: &outcome.trial.experiment,
            id: &outcome.trial.id,
            status: outcome.status.to_string(),
            reason: outcome.reason.as_deref(),
            runs: figures.len(),
            median: estimate.map(|estimate| estimate.median),
            low: estimate.and_then(|estimate| estimate.low),
            high: estimate.and_then(|estimate| estimate.high),
        });
    }

    fn short_of_time(&mut self, warning: &Warning) {
        if let ProgressView::Line(progress) = &mut self.shown {
            progress.clear();
        }
        if !self.quiet {
            say(format_args!("! {warning}"));
        }
    }

    fn update(&mut self, done: u64, total: u64, trial: &str) {
        match &mut self.shown {
            ProgressView::Line(progress) => progress.update(done, total, trial),
            ProgressView::Intervals(announced) if announced == trial => {}
            ProgressView::Intervals(announced) => {
                trial.clone_into(announced);
                // The error is ignored: the measurement continues even if the reader is gone.
                let _ = writeln!(stdout(), "{}", neutral(trial));
            }
        }
    }

    fn passed(&mut self, IntervalProgress { from_ns, to_ns, bytes, switches }: IntervalProgress) {
        if let ProgressView::Line(_) = self.shown {
            return;
        }
        let seconds = |ns: u64| ns as f64 / 1e9;
        let rate = Throughput(bytes as f64 / seconds(to_ns - from_ns).max(1e-9));
        let switches = switches.map_or_else(String::new, |count| format!("  {count:>7} switches"));
        let (from, to, size) = (seconds(from_ns), seconds(to_ns), Unit::Bytes.brief(bytes as f64));
        let _ = writeln!(stdout(), "{from:8.3}-{to:<8.3} s {size:>7}B {:>12}{switches}", rate.to_string());
    }
}
