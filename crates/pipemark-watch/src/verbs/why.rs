//! `pipemark why`: names the bottleneck of a pipeline that it runs, or of a running one.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use pipemark_causes::verdict::verdict;
use pipemark_causes::{PipelineEvidence, PipelineFigures, PipelineReport, Timeline, trace};
use pipemark_console::{ExitError, Progress, VerbResult, create_file};
use pipemark_model::{neutral, parse_duration};
use pipemark_show::Sheet;

use crate::verbs::sampling::{
    Keep, KeepEvidence, WatchView, exit_for, is_free, list, print, sample_running, start, write,
};
use crate::verbs::target::{FAILED, WatchTarget, WatchedOptions, watch_target};
use crate::{Watcher, sheet};

/// Examples at the end of the long help.
pub const EXAMPLES: &str = include_str!("why.txt").trim_ascii_end();

/// The options of `pipemark why`.
#[derive(Debug, Clone, Args)]
pub struct WhyOptions {
    #[command(flatten)]
    watched: WatchedOptions,
    /// Sample for TIME, then leave the pipeline running [default: 2s for a running pipeline, otherwise until it ends]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    time: Option<Duration>,
    /// Write what was seen to FILE, as a trace that --replay reads
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Conclude from the trace in FILE, without a pipeline
    #[arg(long, value_name = "FILE", conflicts_with_all = ["words", "command", "name", "unit", "container", "cgroup", "time", "record", "no_touch"])]
    replay: Option<PathBuf>,
    /// Also list the other causes that were considered, with the gain without each, and why they weren't chosen
    #[arg(long)]
    explain: bool,
    /// Also list the functions in which the busiest stages spent most time
    #[arg(long, conflicts_with = "no_profile")]
    functions: bool,
    /// Write the sampled stacks to FILE, one per line with its count, as flame graph tools read them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["no_profile", "replay"])]
    folded: Option<PathBuf>,
    /// In the trace, replace arguments and names of files, hosts and unknown programs by placeholders
    #[arg(long, requires = "trace")]
    redact: bool,
}

/// How often processes are looked for that end before they are sampled.
const ROUNDS_OF_SEARCH: u32 = 5;

impl WhyOptions {
    /// What the report shows besides the verdict.
    fn extras(&self) -> Extras {
        Extras { explain: self.explain, functions: self.functions }
    }

    /// Writes the files with what was seen that were asked for.
    fn keep(&self, evidence: &PipelineEvidence) -> VerbResult {
        self.keep_stacks(evidence)?;
        self.keep_trace(evidence)
    }

    /// Writes the sampled stacks, if they were asked for.
    fn keep_stacks(&self, evidence: &PipelineEvidence) -> VerbResult {
        let Some(path) = &self.folded else { return Ok(()) };
        let profiles = evidence.stages.iter().filter_map(|stage| stage.profile.as_ref());
        let stacks = profiles.flat_map(|profile| &profile.folded);
        let text: String = stacks.map(|(stack, count)| format!("{} {count}\n", neutral(stack))).collect();
        create_file(path).and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| {
            ExitError::with(
                FAILED,
                format_args!("cannot write the stacks {}: {error}", neutral(&path.to_string_lossy())),
            )
        })
    }

    /// Writes the trace, if one was asked for.
    fn keep_trace(&self, evidence: &PipelineEvidence) -> VerbResult {
        let Some(path) = &self.trace else { return Ok(()) };
        let failed = |error: &dyn std::fmt::Display| {
            ExitError::with(
                FAILED,
                format_args!("cannot write the trace {}: {error}", neutral(&path.to_string_lossy())),
            )
        };
        let evidence = if self.redact { &trace::redact(evidence) } else { evidence };
        let bytes = trace::write(evidence).map_err(|error| failed(&error))?;
        create_file(path).and_then(|mut file| file.write_all(&bytes)).map_err(|error| failed(&error))
    }
}

/// Reads the evidence in a trace.
fn read_trace(path: &Path) -> Result<PipelineEvidence, ExitError> {
    let failed = |error: &dyn std::fmt::Display| {
        ExitError::with(FAILED, format_args!("cannot read the trace {}: {error}", neutral(&path.to_string_lossy())))
    };
    let mut file = pipemark_host::open_input(path).map_err(|error| failed(&error))?;
    trace::read(&mut file).map_err(|error| failed(&error))
}

/// Runs the verb.
pub fn run(options: &WhyOptions, keep: Keep<'_>) -> VerbResult {
    let mut watched = options.watched.clone();
    watched.keeps_stacks = options.folded.is_some();
    let watched = &watched;
    if let Some(path) = &options.replay {
        let evidence = read_trace(path)?;
        options.keep_trace(&evidence)?;
        let report = PipelineReport::of(&evidence);
        let view = Quiet { extras: options.extras() };
        return write(watched, &view, &report, || print(&view.sheet(&report)));
    }
    let extras = options.extras();
    let trace: KeepEvidence<'_> = &|evidence| options.keep(evidence);
    match watch_target(watched)? {
        WatchTarget::Live => list(watched, "why"),
        WatchTarget::Processes(pids) => {
            let time = options.time.unwrap_or(Duration::from_secs(2));
            let mut view = Quiet { extras };
            let (mut report, mut key) = sample_running(watched, &pids, Some(time), &mut view, keep, trace)?;
            // All processes that were found may end between the scan and the first sample.
            for _ in 1..ROUNDS_OF_SEARCH {
                let Some(term) = watched.search_term().filter(|_| report.stages.is_empty() && key.is_none()) else {
                    break;
                };
                (report, key) = sample_running(watched, &term.find()?, Some(time), &mut view, keep, trace)?;
            }
            if report.stages.is_empty() && key.is_none() {
                write(watched, &view, &report, || Ok(()))?;
                return Err(ExitError::failed(&report.verdict.text));
            }
            write(watched, &view, &report, || print(&view.sheet(&report)))?;
            exit_for(key)
        }
        WatchTarget::Start(command, text) if is_free() => {
            let mut view = Brief { progress: Progress::new(false), extras };
            start(watched, command, &text, options.time, &mut view, keep, trace)
        }
        WatchTarget::Start(command, text) => {
            start(watched, command, &text, options.time, &mut Quiet { extras }, keep, trace)
        }
    }
}

/// What the report shows besides the verdict.
#[derive(Debug, Clone, Copy)]
struct Extras {
    /// The other causes that were considered.
    explain: bool,
    /// The functions that were executed.
    functions: bool,
}

/// The sheet shown at the end.
fn final_sheet(report: &PipelineReport, extras: Extras) -> Sheet {
    let mut sheet = sheet::why(report);
    if extras.explain {
        sheet::explain(&mut sheet, report);
    }
    if extras.functions {
        sheet::functions(&mut sheet, report);
    }
    sheet
}

/// Shows nothing before the end.
struct Quiet {
    extras: Extras,
}

impl WatchView for Quiet {
    fn sheet(&self, report: &PipelineReport) -> Sheet {
        final_sheet(report, self.extras)
    }
}

/// Shows the latest verdict on one line.
struct Brief {
    progress: Progress,
    extras: Extras,
}

impl WatchView for Brief {
    fn sheet(&self, report: &PipelineReport) -> Sheet {
        final_sheet(report, self.extras)
    }

    fn show(&mut self, watcher: &Watcher, timeline: &Timeline) {
        if let Some(last) = timeline.intervals.last() {
            self.progress
                .show(&neutral(&verdict(&PipelineFigures::of(&watcher.evidence(Timeline::default()), last)).text));
        }
    }

    fn close(&mut self, _: &Watcher) {
        self.progress.clear();
    }
}
