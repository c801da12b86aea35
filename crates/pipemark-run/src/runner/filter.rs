//! One run of a line filter in a pipeline, as started by a shell: the programs that write the input (the feed), a pipe,
//! the filter, and /dev/null or a program that reads the output.
//!
//! The processes are held before they execute their programs, until the counters are attached and the clock is started.
//! The clock stops when the filter has exited, or the reader of its output.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Seek};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use pipemark_sys::usage::Usage;
use rustix::pipe::{PipeFlags, pipe_with};

use pipemark_entrants::Entrants;
use pipemark_host::child::error::{RunError, explained};
use pipemark_host::child::{Begin, Child, wait_for_first};
use pipemark_model::{ByteSize, Filter, LinesJob, Nanos, PipelineStats, ProcessStats, Sample, Volume};

use crate::runner::conditions::{Conditions, RunResult};
use crate::runner::feed::{Feeds, FilterInput};
use crate::runner::hardware_counters::{CounterSet, process_stats};
use crate::runner::{proof, timed};

/// The time limit for a child to become ready to execute its program.
const READY_TIMEOUT: Duration = Duration::from_secs(20);

/// The time limit for a process to exit after it was killed or the other process has ended.
const EXIT_TIMEOUT: Duration = Duration::from_millis(200);

/// Makes one run of a filter. Before the filter's first run, its output is checked.
///
/// # Errors
/// If the filter can't run here, a process failed, or the filter's output is wrong.
pub fn run(
    LinesJob { feed, filter, volume, rate }: &LinesJob,
    conditions: &Conditions<'_>,
    entrants: &Entrants,
    state: &mut FilterState,
) -> Result<RunResult, RunError> {
    let (runnable, does) = entrants.filter(filter)?;
    if !state.proven.contains(filter.as_str()) {
        proof::check_filter(filter, does, &runnable.words, conditions)?;
        state.proven.insert(filter.to_string());
    }
    if let (Some(rate), Volume::Time(time)) = (*rate, *volume) {
        return timed::run((filter, does, &runnable.words), (rate, time), conditions);
    }
    let total = if let Volume::Total(total) = *volume { total } else { ByteSize(0) };
    let input = state.feeds.input(*feed, total, conditions.interrupt)?;
    let begin = Instant::now();
    let mut pipeline = FilterPipeline::start(filter, &runnable.words, input)
        .map_err(|error| RunError::Failed(format!("the pipeline could not be started: {}", explained(&error))))?;
    let deadline = begin + conditions.limit;
    let ready = Instant::now() + READY_TIMEOUT;
    pipeline.all().try_for_each(|process| process.wait_until_held(ready, conditions.interrupt))?;
    let counters: Vec<CounterSet> = pipeline.all().map(|process| CounterSet::of(process.pid())).collect();
    let clock = Instant::now();
    pipeline.all().for_each(Child::release);
    let mut worker_ns = None;
    if let Volume::Time(time) = *volume {
        pipeline.flow(clock + time.into(), conditions)?;
        worker_ns = cpu_time_of_workers(&pipeline.filter);
        // An endless feed has to be killed.
        pipeline.feed.iter().for_each(Child::kill);
    }
    pipeline.finish(deadline, conditions)?;
    let ns = Nanos::from(clock.elapsed()).0;
    let bytes = pipeline.bytes()?;
    let usages = pipeline.reap(deadline, feed.endless(), conditions)?;
    let mut stats = usages.iter().zip(counters).map(|(usage, counters)| counters.into_stats(process_stats(usage)));
    let filter = ProcessStats { worker_ns, ..stats.next().unwrap_or_default() };
    let feed = stats.by_ref().take(pipeline.feed.len()).reduce(|sum, other| sum.plus(&other));
    let stats = PipelineStats { filter, feed, reader: stats.next() };
    let sample = Sample {
        bytes,
        ns,
        wall_ns: Nanos::from(begin.elapsed()).0,
        user_ns: stats.sum().user_ns,
        sys_ns: stats.sum().sys_ns,
        voluntary_switches: usages.iter().map(|usage| usage.voluntary_switches).sum(),
        involuntary_switches: usages.iter().map(|usage| usage.involuntary_switches).sum(),
        pipeline: Some(stats),
        ..Sample::default()
    };
    Ok(RunResult { sample, notes: Vec::new() })
}

/// The state that all runs of a measurement have in common.
#[derive(Default)]
pub struct FilterState {
    feeds: Feeds,
    /// Programs whose output has been checked.
    pub proven: BTreeSet<String>,
}

/// The processes of a run. Dropping them kills them.
struct FilterPipeline {
    filter: Child,
    /// The processes that write the input, in order.
    feed: Vec<Child>,
    reader: Option<Child>,
    /// The file read by the filter or its feed.
    file: Option<File>,
    /// The number of bytes that reach the filter; `None` if the input is endless.
    bytes: Option<u64>,
}

impl FilterPipeline {
    /// Starts the processes, and holds them before they execute their programs.
    fn start(filter: &Filter, words: &[String], input: FilterInput) -> io::Result<FilterPipeline> {
        let null = || File::options().read(true).write(true).open("/dev/null");
        let mut from: OwnedFd = input.file.as_ref().map_or_else(null, File::try_clone)?.into();
        let mut feed = Vec::new();
        for words in &input.commands {
            let (next, to) = pipe_with(PipeFlags::CLOEXEC)?;
            feed.push(Child::start_foreign(&words[0], words, (from, to), None, Begin::Held)?);
            from = next;
        }
        let (output, reader) = match &input.reader {
            None => (null()?.into(), None),
            Some(words) => {
                let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
                let streams = (read, null()?.into());
                (write, Some(Child::start_foreign(&words[0], words, streams, None, Begin::Held)?))
            }
        };
        let filter = Child::start_foreign(filter.as_str(), words, (from, output), None, Begin::Held)?;
        Ok(FilterPipeline { filter, feed, reader, file: input.file, bytes: input.bytes })
    }

    fn all(&self) -> impl Iterator<Item = &Child> {
        std::iter::once(&self.filter).chain(&self.feed).chain(&self.reader)
    }

    /// Lets data flow until the time `until`. It is an error if a process ends earlier.
    fn flow(&mut self, until: Instant, conditions: &Conditions<'_>) -> Result<(), RunError> {
        if wait_for_first(self.all(), until, Some(conditions.interrupt))?.is_none() {
            return Ok(());
        }
        // The filter is checked first, because when it exits, its feed gets a broken pipe and exits too.
        let exit_deadline = Instant::now() + EXIT_TIMEOUT;
        for process in std::iter::once(&mut self.filter).chain(&mut self.feed) {
            if process.wait(exit_deadline, Some(conditions.interrupt))? {
                return Err(RunError::Failed(format!("{} {}", process.name(), process.describe_end(0))));
            }
        }
        Err(RunError::Failed("the pipeline ended before the measurement was over".to_owned()))
    }

    /// Waits until the filter and its reader have exited, without reaping them, because their counters are read first.
    fn finish(&self, deadline: Instant, conditions: &Conditions<'_>) -> Result<(), RunError> {
        for process in std::iter::once(&self.filter).chain(&self.reader) {
            if wait_for_first([process], deadline, Some(conditions.interrupt))?.is_none() {
                return Err(RunError::Failed(format!(
                    "{} was still running at the limit of {:?} per run; raise --limit if it needs longer",
                    process.name(),
                    conditions.limit
                )));
            }
        }
        Ok(())
    }

    /// The number of bytes of the filter's input.
    fn bytes(&self) -> Result<u64, RunError> {
        if let Some(bytes) = self.bytes {
            return Ok(bytes);
        }
        let Some(feed) = self.feed.last() else { return Ok(0) };
        // The feed was killed, and its last write is counted only once it has exited.
        let _ = wait_for_first([feed], Instant::now() + EXIT_TIMEOUT, None);
        let written = moved(feed, "wchar");
        let read = moved(&self.filter, "rchar");
        // /proc/PID/io doesn't count splice(2). A reader's count includes the libraries it loads, so the writer's count
        // is preferred.
        match written.max(read) {
            0 => Err(RunError::NotHere(
                "the number of bytes passed is unknown: /proc/PID/io counts nothing here".to_owned(),
            )),
            _ if written >= read / 2 => Ok(written),
            _ => Ok(read),
        }
    }

    /// Reaps all processes. On success, returns their usages in the order of `all`. With `killed`, it is no error if the
    /// feed was killed. It is never an error of a process whose output goes to another process of the feed, because that
    /// process may end first.
    fn reap(&mut self, deadline: Instant, killed: bool, conditions: &Conditions<'_>) -> Result<Vec<Usage>, RunError> {
        let late = Instant::now().max(deadline) + Duration::from_secs(1);
        let mut usages = Vec::new();
        // The filter's failure is reported first, because it usually causes the feed's broken pipe.
        let last = self.feed.len().saturating_sub(1);
        let feed = self.feed.iter_mut().enumerate().map(|(at, process)| (process, killed || at < last));
        let reader = self.reader.iter_mut().map(|process| (process, false));
        for (process, killed) in std::iter::once((&mut self.filter, false)).chain(feed).chain(reader) {
            process.wait(late, Some(conditions.interrupt))?;
            usages.push(match process.end() {
                Some((_, usage)) if killed => usage,
                _ => process.succeeded()?,
            });
        }
        if let (Some(file), Some(bytes), true) = (&mut self.file, self.bytes, self.feed.is_empty()) {
            let at = file.stream_position().unwrap_or(bytes);
            if at != bytes {
                let name = self.filter.name();
                return Err(RunError::Unverified(format!("{name} ended after reading {at} of {bytes} bytes")));
            }
        }
        Ok(usages)
    }
}

/// CPU time in nanoseconds of a process's threads named worker-N; `None` if it has none.
fn cpu_time_of_workers(process: &Child) -> Option<u64> {
    let threads = fs::read_dir(format!("/proc/{}/task", process.pid().as_raw_nonzero())).ok()?;
    let of_thread = |path: std::path::PathBuf| {
        let name = fs::read_to_string(path.join("comm")).ok()?;
        name.starts_with("worker-").then_some(())?;
        fs::read_to_string(path.join("schedstat")).ok()?.split_whitespace().next()?.parse::<u64>().ok()
    };
    threads.filter_map(|thread| of_thread(thread.ok()?.path())).reduce(|sum, other| sum + other)
}

/// Bytes that a process has read or written so far, from /proc/PID/io; 0 if unavailable.
fn moved(process: &Child, field: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/io", process.pid().as_raw_nonzero())).unwrap_or_default();
    pipemark_host::field(&text, field).and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}
