//! `pipemark why`: names the bottleneck of a pipeline that it runs, or of a running one.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use clap::Args;
use pipemark_sys::signals::end_by;
use pipemark_sys::start::sigpipe_was_ignored;
use rustix::process::Signal;

use pipemark_causes::exact_text::ExactText;
use pipemark_causes::verdict::verdict;
use pipemark_causes::{Interval, PipelineEvidence, PipelineFigures, PipelineReport, Timeline, trace};
use pipemark_console::{
    Destination, ExitError, FormatOption, Progress, VerbResult, WordChoice, create_file, destination, exit, one_of,
    say_error, terminal_of,
};
use pipemark_host::child::{Child, Interrupt, ProcessGroup, RunError, wait_readable};
use pipemark_model::{neutral, parse_duration};
use pipemark_proc::control_group::GroupName;
use pipemark_show::{Sheet, json_line};

use crate::screen::KeyPress;
use crate::verbs::search_term::SearchTerm;
use crate::verbs::signal_relay::SignalRelay;
use crate::{ProcFile, SamplingOptions, Subject, Watcher, live, sheet};

/// The longest delay of a signal to a pipeline that is no longer sampled.
const WAIT: Duration = Duration::from_millis(100);

/// The exit code if `why` itself fails. This code and the next two are those of `env` and `timeout`. All other exit
/// codes are the pipeline's.
pub const FAILED: u8 = 125;
/// The exit code if the command can't be executed.
const NOT_EXECUTABLE: u8 = 126;
/// The exit code if the command doesn't exist.
const NOT_FOUND: u8 = 127;

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

/// The options that `why` and `watch` share: what to watch, and how.
#[derive(Debug, Clone, Args)]
pub struct WatchedOptions {
    /// A pipeline in quotes, to run in your shell, or PIDs of a running one
    #[arg(value_name = "'A | B'|PID")]
    words: Vec<OsString>,
    /// A command and its arguments, to run without a shell
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Sample the running pipelines that have a process of this name
    #[arg(long, value_name = "NAME", conflicts_with_all = ["words", "command"])]
    name: Option<String>,
    /// Sample the running pipelines of a unit of systemd, such as nightly.service
    #[arg(long, value_name = "UNIT", conflicts_with_all = ["words", "command", "name"])]
    unit: Option<String>,
    /// Sample the running pipelines in a container of docker or podman, given by its name or ID
    #[arg(long, value_name = "NAME", conflicts_with_all = ["words", "command", "name", "unit"])]
    container: Option<String>,
    /// Sample the running pipelines in the control group PATH, and in those below it
    #[arg(long, value_name = "PATH", conflicts_with_all = ["words", "command", "name", "unit", "container"])]
    cgroup: Option<String>,
    /// Write all results as JSON to FILE; '-' is standard output
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    pub json: Option<Destination>,
    /// Save the activity of each stage in the history; 'pipemark report' charts it over time
    #[arg(long)]
    pub record: bool,
    /// Never open a pipe, not even to read its capacity
    #[arg(long)]
    pub no_touch: bool,
    /// Don't sample which functions the busiest stages execute
    #[arg(long)]
    pub no_profile: bool,
    /// Whether to keep the sampled stacks.
    #[arg(skip)]
    keeps_stacks: bool,
    /// Read thread states from /proc/PID/FILE; if that file is unreadable, from the next in this list
    #[arg(long, value_name = "FILE", value_parser = one_of(&FILES), default_value = "syscall")]
    access: ProcFile,
}

/// The choices of `--access`: files in /proc/PID.
const FILES: [WordChoice<ProcFile>; 3] = [
    ("syscall", ProcFile::Syscall, "The system call in which a thread waits"),
    ("wchan", ProcFile::Wchan, "The kernel function in which a thread waits"),
    ("stat", ProcFile::Stat, "Whether a thread runs or sleeps"),
];

impl WatchedOptions {
    /// What running processes are looked for by; `None` if they are given otherwise.
    pub fn search_term(&self) -> Option<SearchTerm> {
        let name = self.name.clone().map(SearchTerm::Name);
        let unit = || self.unit.clone().map(GroupName::Unit);
        let container = || self.container.clone().map(GroupName::Container);
        let path = || self.cgroup.clone().map(GroupName::Path);
        name.or_else(|| unit().or_else(container).or_else(path).map(SearchTerm::Group))
    }

    /// Starts to sample these processes. Processes that were looked for may have ended since. Then, later ones that fit
    /// are sampled.
    pub fn start_watcher(&self, pids: &[u32]) -> Result<Watcher, ExitError> {
        const PATIENCE: Duration = Duration::from_secs(5);
        let end = Instant::now() + PATIENCE;
        let term = self.search_term();
        let mut pids = pids.to_vec();
        loop {
            let may_retry = term.is_some() && Instant::now() < end;
            if may_retry {
                pids.retain(|&pid| live::refusal(pid).is_none());
            }
            if !pids.is_empty() {
                let refusal = pids.iter().find_map(|&pid| live::refusal(pid));
                match (refusal, &term) {
                    (Some(_), Some(term)) if !may_retry => return Err(term.ended()),
                    (Some(stop), None) => return Err(stop),
                    // A process has ended since the line above.
                    (Some(_), Some(_)) => {}
                    (None, _) => {
                        let mut watcher = Watcher::new(Subject::Processes(pids), self.sampling());
                        if watcher.is_alive() || !may_retry {
                            return Ok(watcher);
                        }
                    }
                }
            }
            // Between two short processes, there may be none for a while.
            pids = match term.as_ref().map(SearchTerm::find) {
                Some(Ok(found)) => found,
                Some(Err(stop)) if !may_retry => return Err(stop),
                _ => Vec::new(),
            };
        }
    }

    /// A pipeline that was given as text; `None` for PIDs, names, single words and commands without a shell.
    pub fn typed_pipeline(&self) -> Option<OsString> {
        let text = match (&self.name, &self.words[..], &self.command[..]) {
            (None, [text], []) | (None, [], [text]) => text,
            _ => return None,
        };
        let bytes = text.as_encoded_bytes();
        let has_blank = bytes.trim_ascii().iter().any(u8::is_ascii_whitespace) || bytes.contains(&b'|');
        let is_number = bytes.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_whitespace());
        (has_blank && !is_number).then(|| text.clone())
    }

    pub fn sampling(&self) -> SamplingOptions {
        SamplingOptions {
            touch: !self.no_touch,
            access: self.access,
            profile: !self.no_profile,
            keeps_stacks: self.keeps_stacks,
            period: Duration::from_millis(10),
        }
    }
}

/// What to watch.
pub enum WatchTarget {
    /// Nothing: list the live pipelines.
    Live,
    Processes(Vec<u32>),
    /// A command, and its text.
    Start(Command, OsString),
}

/// What to watch, according to the command line.
pub fn watch_target(options: &WatchedOptions) -> Result<WatchTarget, ExitError> {
    let usage = |sentence: &str| ExitError::with(FAILED, sentence);
    // The destination is checked now, before a pipeline runs for hours.
    if let Some(destination) = &options.json {
        destination.check("JSON").map_err(|error| ExitError::with(FAILED, error))?;
    }
    if let Some(term) = options.search_term() {
        return term.find().map(WatchTarget::Processes);
    }
    if !options.command.is_empty() {
        if !options.words.is_empty() {
            return Err(usage("give either a pipeline in quotes or a command after --, not both"));
        }
        // One word with blanks is a quoted pipeline.
        if let [pipeline] = &options.command[..]
            && pipeline.as_encoded_bytes().contains(&b' ')
        {
            return Ok(in_shell(pipeline));
        }
        return Ok(WatchTarget::Start(command_of(&options.command), options.command.join(OsStr::new(" "))));
    }
    if options.words.is_empty() {
        return Ok(WatchTarget::Live);
    }
    let joined = options.words.join(OsStr::new(" "));
    if joined.as_encoded_bytes().trim_ascii().is_empty() {
        return Err(usage("the pipeline is empty; 'pipemark why' without arguments lists running pipelines"));
    }
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = joined.to_str().filter(|text| text.split_whitespace().all(is_number));
    let pid = |word: &str| word.parse().map_err(|_| live::no_process(word));
    match (numbers, options.words.len()) {
        (Some(numbers), _) => {
            Ok(WatchTarget::Processes(numbers.split_whitespace().map(pid).collect::<Result<_, _>>()?))
        }
        (None, 1) => match bare_name(&joined) {
            Some(stop) => Err(stop),
            None => Ok(in_shell(&joined)),
        },
        _ => Err(usage("put the pipeline in quotes, or put a command after --")),
    }
}

/// How often processes are looked for that end before they are sampled.
const ROUNDS_OF_SEARCH: u32 = 5;

/// The error for a single bare word, which may be meant as a process name; `None` for other words.
fn bare_name(word: &OsStr) -> Option<ExitError> {
    let word =
        word.to_str().filter(|word| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)))?;
    Some(ExitError::with(
        FAILED,
        format_args!(
            "'{word}' is neither a PID nor a pipeline; use '--name {word}' to sample a running {word}, or '-- {word}' to start one"
        ),
    ))
}

fn in_shell(pipeline: &OsStr) -> WatchTarget {
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into());
    WatchTarget::Start(command_of(&[shell, "-c".into(), pipeline.to_owned()]), pipeline.to_owned())
}

/// The command that these words form. If SIGPIPE is ignored, it stays ignored; std's Command alone would reset it.
fn command_of(words: &[OsString]) -> Command {
    let ignores: &[&str] =
        if sigpipe_was_ignored() { &["/bin/sh", "-c", "trap '' PIPE; exec \"$@\"", "sh"] } else { &[] };
    let words: Vec<&OsStr> = ignores.iter().map(OsStr::new).chain(words.iter().map(OsString::as_os_str)).collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

/// Stores a report in the history.
pub type Keep<'a> = &'a dyn Fn(&PipelineReport);

/// Stores what was seen, if that was asked for.
pub type KeepEvidence<'a> = &'a dyn Fn(&PipelineEvidence) -> VerbResult;

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
    let mut file = std::fs::File::open(path).map_err(|error| failed(&error))?;
    trace::read(&mut file).map_err(|error| failed(&error))
}

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

/// Runs the verb.
pub fn run(options: &WhyOptions, keep: Keep<'_>) -> VerbResult {
    let watched = &WatchedOptions { keeps_stacks: options.folded.is_some(), ..options.watched.clone() };
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
    if let Err(stop) = trace(&evidence).and_then(|()| write(options, live, &report, print)) {
        say_error(stop);
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
