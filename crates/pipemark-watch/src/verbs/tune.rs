//! `pipemark tune`: tries whether larger pipes make a running pipeline faster.

use std::time::Duration;

use clap::Args;

use pipemark_console::{ExitError, VerbResult, count, say};
use pipemark_model::{ByteSize, parse_duration};
use pipemark_show::{Note, Sheet, Style};
use pipemark_sys::signals::SignalQueue;

use crate::screen::KeyPress;
use crate::tuning::{BASELINE_TURNS, TuneOutcome, Tuning};
use crate::verbs::sampling::{self, Keep, WatchView};
use crate::verbs::target::{FAILED, WatchTarget, WatchedOptions, watch_target};
use crate::watcher::INTERVAL;
use crate::{PipelineReport, Timeline, Watcher};

/// The options of `pipemark tune`.
#[derive(Debug, Clone, Args)]
#[group(id = "live-tune")]
#[command(mut_arg("no_touch", |own| own.hide(true)))]
pub struct LiveTuneOptions {
    #[command(flatten)]
    pub watched: WatchedOptions,
    /// Compare for TIME; a longer time gives a narrower confidence interval
    #[arg(long = "for", value_name = "TIME", value_parser = time, default_value = "12s")]
    time: Duration,
    /// Capacity to try
    #[arg(long, value_name = "SIZE", default_value = "1m")]
    capacity: ByteSize,
    /// Change only the N-th pipe, counted from the source
    #[arg(long, value_name = "N", value_parser = count::<usize>(1, 10_000))]
    pipe: Option<usize>,
}

fn time(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        time if (8..=300).contains(&time.as_secs()) => Ok(time),
        _ => Err("the time is out of range; use 8s to 5min".to_owned()),
    }
}

/// Runs the experiment.
pub fn run(options: &LiveTuneOptions, keep: Keep<'_>) -> VerbResult {
    let watched = &options.watched;
    if watched.no_touch {
        return Err(ExitError::with(FAILED, "tune must open pipes to change them; omit --no-touch"));
    }
    let turns = (options.time.as_millis() / INTERVAL.as_millis()) as usize;
    let mut trial = TuneTrial {
        tuning: Tuning::new(options.capacity.0, (turns - BASELINE_TURNS) / 2, options.pipe),
        quits: false,
        signals: None,
    };
    let target = watch_target(watched)?;
    // If there is nothing to try, the experiment itself reports why.
    let has_pipes = match &target {
        WatchTarget::Processes(pids) => Tuning::can_try(&watched.start_watcher(pids)?),
        WatchTarget::Start(..) => true,
        WatchTarget::Live => false,
    };
    if has_pipes {
        let pipes =
            options.pipe.map_or_else(|| "all pipes alternate".to_owned(), |number| format!("pipe {number} alternates"));
        let size = options.capacity;
        let seconds = options.time.as_secs_f64();
        say(format_args!("tune: {pipes} between {size} and the current capacity for {seconds:.0} s"));
    }
    match target {
        WatchTarget::Live => sampling::list(watched, "tune"),
        WatchTarget::Start(command, text) => {
            sampling::start(watched, command, &text, None, &mut trial, keep, &|_| Ok(()))
        }
        WatchTarget::Processes(pids) => {
            trial.quits = true;
            trial.signals = Some(SignalQueue::block(&not_caught()).map_err(ExitError::failed)?);
            let (report, key) = sampling::sample_running(watched, &pids, None, &mut trial, keep, &|_| Ok(()))?;
            let nothing = trial.tuning.outcome().filter(|outcome| outcome.verdict.is_none());
            let print = || sampling::print(&trial.sheet(&report));
            match nothing {
                Some(outcome) if key != Some(KeyPress::Interrupt) => {
                    sampling::write(watched, &trial, &report, || Ok(()))?;
                    return Err(ExitError::failed(&outcome.text));
                }
                _ => sampling::write(watched, &trial, &report, print)?,
            }
            sampling::exit_for(key)
        }
    }
}

/// Signals left as they are: those that don't end this program, and those that other code catches.
fn not_caught() -> Vec<i32> {
    let harmless = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH, libc::SIGPIPE];
    let stopping = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
    let caught = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
    [&harmless[..], &stopping, &caught].concat()
}

struct TuneTrial {
    tuning: Tuning,
    /// Whether sampling ends with the experiment, because this program did not start the pipeline.
    quits: bool,
    /// Catches the signals that would end this program while pipes are enlarged.
    signals: Option<SignalQueue>,
}

impl WatchView for TuneTrial {
    fn show(&mut self, watcher: &Watcher, timeline: &Timeline) {
        if let Some(turn) = timeline.intervals.last() {
            self.tuning.step(watcher, turn);
        }
    }

    fn requested_key(&mut self) -> Option<KeyPress> {
        if self.signals.as_ref().is_some_and(|signals| !signals.take().is_empty()) {
            return Some(KeyPress::Interrupt);
        }
        (self.quits && self.tuning.outcome().is_some()).then_some(KeyPress::Quit)
    }

    fn close(&mut self, watcher: &Watcher) {
        self.tuning.finish(watcher);
    }

    fn sheet(&self, report: &PipelineReport) -> Sheet {
        let mut sheet = Sheet::default();
        sheet.text(Style::Heading, [format!("tune · {}", report.pipeline), format!("{:.1} s", report.seconds)]);
        if let Some(table) = self.tuning.outcome().and_then(TuneOutcome::table) {
            sheet.grid(table);
        }
        sheet.notes(self.tuning.outcome().map(|outcome| Note::plain(outcome.text.clone())));
        sheet
    }

    fn json(&self, _: &PipelineReport) -> serde_json::Result<String> {
        serde_json::to_string(&self.tuning.outcome())
    }
}
