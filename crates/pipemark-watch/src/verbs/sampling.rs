//! Samples a pipeline until it ends, the time is over or the user asks for something, while a view shows it.

use std::cell::Cell;
use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use pipemark_sys::signals::end_by;
use rustix::process::Signal;

use pipemark_causes::exact_text::ExactText;
use pipemark_causes::{Interval, PipelineEvidence, PipelineReport, Timeline};
use pipemark_console::{Destination, ExitError, FormatOption, VerbResult, exit, say_error, terminal_of};
use pipemark_host::child::{Child, Interrupt, ProcessGroup, RunError, wait_readable};
use pipemark_model::neutral;
use pipemark_show::{Sheet, json_line};

use crate::screen::KeyPress;
use crate::verbs::signal_relay::SignalRelay;
use crate::verbs::target::{FAILED, WatchedOptions};
use crate::{Subject, Watcher, live, sheet};

/// The longest delay of a signal to a pipeline that is no longer sampled.
const WAIT: Duration = Duration::from_millis(100);

/// The exit code if the command can't be executed.
const NOT_EXECUTABLE: u8 = 126;
/// The exit code if the command doesn't exist.
const NOT_FOUND: u8 = 127;

/// Stores a report in the history.
pub type Keep<'a> = &'a dyn Fn(&PipelineReport);

/// Stores what was seen, if that was asked for.
pub type KeepEvidence<'a> = &'a dyn Fn(&PipelineEvidence) -> VerbResult;

/// A view of a pipeline while it is watched.
pub trait WatchView {
    /// Called with the counts of each half second, before the timeline merges them with earlier ones.
    fn add(&mut self, _: &Interval) {}

    /// Called twice a second with the counts so far.
    fn show(&mut self, _: &Watcher, _: &Timeline) {}

    /// The user's request since the last call; `None` without one.
    fn requested_key(&mut self) -> Option<KeyPress> {
        None
    }

    /// Called when watching ends, before anything else is written.
    fn close(&mut self, _: &Watcher) {}

    /// Whether another pipeline is watched after this one, in the same process.
    fn goes_on(&self) -> bool {
        false
    }

    /// The sheet shown at the end.
    fn sheet(&self, report: &PipelineReport) -> Sheet {
        sheet::why(report)
    }

    /// The JSON that `--json` writes at the end.
    fn json(&self, report: &PipelineReport) -> serde_json::Result<String> {
        serde_json::to_string(report)
    }
}

/// The exit status when watching ends: interrupted if the user pressed Ctrl-C, otherwise success.
pub fn exit_for(key: Option<KeyPress>) -> VerbResult {
    if key == Some(KeyPress::Interrupt) { Err(ExitError::code(exit::INTERRUPTED)) } else { Ok(()) }
}

/// Lists the live pipelines.
pub fn list(options: &WatchedOptions, verb: &str) -> VerbResult {
    let found = live::live_pipelines();
    match &options.json {
        Some(destination) => destination.write("JSON", Ok(json_line(&serde_json::to_string(&found)?)))?,
        None => print(&sheet::live(&found, verb))?,
    }
    Ok(())
}

/// Prints a sheet on standard output.
pub fn print(sheet: &Sheet) -> VerbResult {
    Ok(FormatOption::default().print(sheet, None)?)
}

/// Whether standard error is a terminal that can be drawn on.
pub fn can_draw() -> bool {
    let kind = std::env::var_os("TERM").filter(|kind| !kind.is_empty());
    io::stderr().is_terminal() && kind.is_some_and(|kind| kind != "dumb")
}

/// Whether standard error can be drawn on while a pipeline has this program's standard input and output.
pub fn is_free() -> bool {
    can_draw() && !io::stdout().is_terminal() && !io::stdin().is_terminal()
}

/// Samples until `ended` returns true or the user makes a request. `ended(watcher, until)` may block until the moment
/// `until`, which is the time of the next sample.
fn watch(
    watcher: &mut Watcher,
    live: &mut dyn WatchView,
    mut ended: impl FnMut(&mut Watcher, Instant) -> bool,
) -> (Timeline, Option<KeyPress>) {
    let mut timeline = Timeline::default();
    let key = loop {
        let until = Instant::now() + watcher.pause();
        if ended(watcher, until) {
            break None;
        }
        watcher.sample();
        if watcher.is_interval_over() {
            let interval = watcher.close_interval();
            live.add(&interval);
            timeline.add(interval);
            watcher.show(|watcher| live.show(watcher, &timeline));
        }
        if let Some(key) = live.requested_key() {
            break Some(key);
        }
    };
    let interval = watcher.close_interval();
    live.add(&interval);
    timeline.add(interval);
    watcher.finish_profiling();
    // On a busy machine, perhaps the last frame hasn't been shown, or none at all.
    live.show(watcher, &timeline);
    live.close(watcher);
    (timeline, key)
}

/// Samples a running pipeline for `time`, or until it ends. Returns the user's request; `None` without one.
pub fn sample_running(
    options: &WatchedOptions,
    pids: &[u32],
    time: Option<Duration>,
    live: &mut dyn WatchView,
    keep: Keep<'_>,
    trace: KeepEvidence<'_>,
) -> Result<(PipelineReport, Option<KeyPress>), ExitError> {
    // This program starts no process here, so no guards are needed.
    let interrupt = Interrupt::catch().map_err(ExitError::failed)?;
    sample_until(&interrupt, options, pids, time, live, keep, trace)
}

/// Like [`sample_running`], for a caller that has caught the signals that end sampling.
pub fn sample_until(
    interrupt: &Interrupt,
    options: &WatchedOptions,
    pids: &[u32],
    time: Option<Duration>,
    live: &mut dyn WatchView,
    keep: Keep<'_>,
    trace: KeepEvidence<'_>,
) -> Result<(PipelineReport, Option<KeyPress>), ExitError> {
    let mut watcher = options.start_watcher(pids)?;
    let deadline = time.map(|time| Instant::now() + time);
    let mut interrupted = false;
    let mut alive = Instant::now();
    let (timeline, key) = watch(&mut watcher, live, |watcher, until| {
        let until = deadline.map_or(until, |deadline| deadline.min(until));
        interrupted |= wait_readable(&[], until, Some(interrupt)) == Err(RunError::Interrupted);
        if watcher.is_alive() {
            alive = Instant::now();
        }
        let over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        // Perhaps the pipeline is in a loop, and the next round starts soon.
        interrupted || over || alive.elapsed() > Duration::from_secs(1)
    });
    let evidence = watcher.evidence(timeline.clone());
    trace(&evidence)?;
    let mut report = PipelineReport::of(&evidence);
    record(options, &mut report, &timeline, keep);
    if !matches!(key, Some(KeyPress::Next)) && !live.goes_on() {
        leave_to_kernel(watcher);
    }
    Ok((report, if interrupted { Some(KeyPress::Interrupt) } else { key }))
}

/// Leaves a watcher's memory to the kernel, because the program ends soon. On a machine with tens of thousands of
/// processes, freeing the list of them piece by piece would take as much CPU time as seconds of sampling.
fn leave_to_kernel(watcher: Watcher) {
    std::mem::forget(watcher);
}

/// If `--record` was given, stores the report in the history, with each stage's activity over time.
fn record(options: &WatchedOptions, report: &mut PipelineReport, timeline: &Timeline, keep: Keep<'_>) {
    if options.record {
        report.add_moments(timeline);
        keep(report);
    }
}

/// Writes the requested file, and prints the report unless the file replaces it.
pub fn write(
    options: &WatchedOptions,
    live: &dyn WatchView,
    report: &PipelineReport,
    print: impl FnOnce() -> VerbResult,
) -> VerbResult {
    if let Some(destination) = &options.json {
        destination.write("JSON", Ok(json_line(&live.json(report)?)))?;
    }
    if options.json == Some(Destination::Stdout) { Ok(()) } else { print() }
}

/// Runs the pipeline as the shell would. At the end, or after a time, reports what limited it.
pub fn start(
    options: &WatchedOptions,
    mut command: Command,
    text: &OsStr,
    time: Option<Duration>,
    live: &mut dyn WatchView,
    keep: Keep<'_>,
    trace: KeepEvidence<'_>,
) -> VerbResult {
    let failed =
        |error: io::Error| ExitError::with(FAILED, format_args!("cannot catch signals: {}", with_advice(&error)));
    let mut signals = SignalRelay::catch().map_err(failed)?;
    signals.restore_in(&mut command);
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = Child::start(&program, &mut command, ProcessGroup::Inherited).map_err(|error| {
        let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE };
        ExitError::with(code, format_args!("cannot start '{}': {}", neutral(&program), with_advice(&error)))
    })?;
    let pid = child.pid();
    let mut watcher = Watcher::new(Subject::Child(pid.as_raw_nonzero().get().cast_unsigned()), options.sampling());
    let mut broken = None;
    let mut timeline = Timeline::default();
    // The pidfd is opened once. Opening it for each sample would cost the pipeline a tenth of its speed.
    let end = child.pidfd().ok();
    let deadline = time.map(|time| Instant::now() + time);
    let code = Cell::new(None);
    let mut has_ended = |until: Instant| {
        signals.pass_on(pid);
        if child.end().is_some() || broken.is_some() {
            return true;
        }
        if end.as_ref().is_some_and(|end| wait_readable(&[end.as_fd()], until, None) == Ok(None)) {
            return false;
        }
        let has_ended = child.wait(until, None).unwrap_or_else(|error| {
            broken = Some(error);
            true
        });
        code.set(child.end().and_then(|(status, _)| status.code()));
        has_ended
    };
    loop {
        let (part, key) = watch(&mut watcher, live, |_, until| {
            let over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            over || has_ended(deadline.map_or(until, |deadline| deadline.min(until)))
        });
        part.intervals.into_iter().for_each(|interval| timeline.add(interval));
        match key {
            None => break,
            // The screen gets Ctrl-C as a key, so the signal must be sent to the pipeline here.
            Some(KeyPress::Interrupt) => drop(rustix::process::kill_current_process_group(Signal::INT)),
            // The screen closes, and the pipeline continues.
            Some(KeyPress::Quit | KeyPress::Next) => {}
        }
    }
    let evidence = PipelineEvidence {
        pipeline: Some(ExactText(text.as_bytes().to_vec())),
        exit_code: code.get(),
        ..watcher.evidence(timeline.clone())
    };
    let mut report = PipelineReport::of(&evidence);
    let mut wait = || while !has_ended(Instant::now() + WAIT) {};
    // A pipeline that continues and uses the terminal must end before anything is printed there.
    if io::stderr().is_terminal() && watcher.uses_terminal() {
        wait();
    }
    // If the reader of standard error has gone, this program still ends with the pipeline's exit status.
    let print = || {
        let _ = write!(io::stderr(), "{}", terminal_of(&io::stderr()).render(&live.sheet(&report)));
        Ok(())
    };
    // The verdict is printed even if the trace can't be written.
    for written in [trace(&evidence), write(options, live, &report, print)] {
        written.unwrap_or_else(say_error);
    }
    record(options, &mut report, &timeline, keep);
    wait();
    leave_to_kernel(watcher);
    match (broken, child.end()) {
        (Some(error), _) => Err(ExitError::with(FAILED, error)),
        (None, Some((status, _))) => end_like_pipeline(status),
        (None, None) => Err(ExitError::code(FAILED)),
    }
}

/// An error message, with advice if a resource is exhausted.
fn with_advice(error: &io::Error) -> String {
    let advice = match error.raw_os_error() {
        Some(libc::EMFILE) => "raise the limit on open files (ulimit -n)",
        Some(libc::ENFILE) => "raise the system's limit on open files (/proc/sys/fs/file-max)",
        Some(libc::EAGAIN) => "raise the limit on processes (ulimit -u)",
        _ => return error.to_string(),
    };
    format!("{error}; {advice}")
}

/// Exits or dies as the pipeline did.
fn end_like_pipeline(status: ExitStatus) -> VerbResult {
    if let Some(signal) = status.signal() {
        // Only the pipeline writes a core file.
        let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
        end_by(signal);
        return Err(ExitError::code(128_u8.saturating_add(u8::try_from(signal).unwrap_or(0))));
    }
    match status.code().and_then(|code| u8::try_from(code).ok()) {
        Some(0) => Ok(()),
        code => Err(ExitError::code(code.unwrap_or(FAILED))),
    }
}
