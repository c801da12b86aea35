//! One run of a pipeline of lines, as a shell would start it: a feed, a pipe, a filter, and /dev/null.
//!
//! The programs are held before they begin, so that they can be counted and the clock begins with them; it ends when the
//! filter has ended.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Seek};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::pipe::{PipeFlags, pipe_with};

use super::child::{Begin, Child, wait_for_first};
use super::counters::Counters;
use super::error::{RunError, explained};
use super::feed::{Feeds, Input};
use super::pair::{Conditions, Measured};
use super::proof;
use crate::entrant::{Absent, Entrants};
use crate::model::{ByteSize, Feed, Filter, Lines, PipelineStats, ProcessStats, Sample, Volume};

/// How long a program may take to become ready to begin.
const READY: Duration = Duration::from_secs(20);

/// How long a filter may take to be gone when what feeds it has gone.
const MOMENT: Duration = Duration::from_millis(200);

/// Makes one run of a filter, and before its first one proves what it does.
///
/// # Errors
/// As for a pair: when there was no run, when a process of it failed, or when the filter's output is wrong.
pub fn run(
    Lines { feed, filter, volume }: &Lines,
    conditions: &Conditions<'_>,
    entrants: &Entrants,
    state: &mut State,
) -> Result<Measured, RunError> {
    let (runnable, does) = entrants.filter(filter).map_err(|absent| match absent {
        Absent::Missing(reason) | Absent::Broken(reason) => RunError::Failed(reason),
    })?;
    if !state.proven.contains(filter.as_str()) {
        proof::prove(filter, does, &runnable.words, conditions.limit, conditions.interrupt)?;
        state.proven.insert(filter.to_string());
    }
    let total = if let Volume::Total(total) = *volume { total } else { ByteSize(0) };
    let input = state.feeds.input(*feed, total, conditions.interrupt)?;
    let begin = Instant::now();
    let mut pipeline = Pipeline::start(filter, &runnable.words, input)?;
    let deadline = Instant::now() + conditions.limit;
    pipeline.ready(conditions)?;
    let counters = (Counters::of(pipeline.filter.pid()), pipeline.feed.as_ref().map(|feed| Counters::of(feed.pid())));
    let clock = Instant::now();
    pipeline.go();
    if let Volume::Time(time) = *volume {
        pipeline.flow(clock + time.into(), conditions)?;
        pipeline.cut();
    }
    pipeline.finish(deadline, conditions)?;
    let ns = nanos(clock.elapsed());
    let bytes = pipeline.bytes()?;
    let stats = pipeline.ended(*feed, deadline, conditions, counters)?;
    let all = stats.sum();
    let sample = Sample {
        round: 0,
        started_ns: 0,
        bytes,
        ns,
        wall_ns: nanos(begin.elapsed()),
        user_ns: all.user_ns,
        sys_ns: all.sys_ns,
        voluntary_switches: pipeline.switches(|usage| usage.voluntary_switches),
        involuntary_switches: pipeline.switches(|usage| usage.involuntary_switches),
        capacity_granted: None,
        capacity_after: None,
        send_buffer: None,
        recv_buffer: None,
        message_limit: None,
        latency: None,
        stages: Vec::new(),
        sources: Vec::new(),
        sinks: Vec::new(),
        entrant: None,
        pipeline: Some(stats),
    };
    Ok(Measured { sample, notes: Vec::new() })
}

/// What all runs of a measurement share.
#[derive(Default)]
pub struct State {
    feeds: Feeds,
    /// Programs that have shown that they do what they are timed for.
    pub proven: BTreeSet<String>,
}

/// The processes of a run. Dropping it ends them.
struct Pipeline {
    filter: Child,
    feed: Option<Child>,
    /// The file that the filter or what feeds it reads, and how many bytes go into the filter.
    file: Option<(File, u64)>,
    /// Whether the filter reads that file itself.
    direct: bool,
}

impl Pipeline {
    /// Starts the processes, held.
    fn start(filter: &Filter, words: &[String], input: Input) -> Result<Pipeline, RunError> {
        let failed =
            |error: io::Error| RunError::Failed(format!("the pipeline could not be started: {}", explained(&error)));
        let null = || File::options().read(true).write(true).open("/dev/null").map(OwnedFd::from);
        let (from, feed, file, direct) = match input {
            Input::File(file, bytes) => {
                let ours = File::from(file.try_clone().map_err(failed)?);
                (file, None, Some((ours, bytes)), true)
            }
            Input::Endless(words) => {
                let (from, to) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
                let feed =
                    Child::start_foreign(words[0].clone(), &words, (null().map_err(failed)?, to), None, Begin::Held);
                (from, Some(feed.map_err(failed)?), None, false)
            }
            Input::Unpacked(words, file, bytes) => {
                let ours = File::from(file.try_clone().map_err(failed)?);
                let (from, to) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
                let feed = Child::start_foreign(words[0].clone(), &words, (file, to), None, Begin::Held);
                (from, Some(feed.map_err(failed)?), Some((ours, bytes)), false)
            }
        };
        let output = null().map_err(failed)?;
        let filter =
            Child::start_foreign(filter.to_string(), words, (from, output), None, Begin::Held).map_err(failed)?;
        Ok(Pipeline { filter, feed, file, direct })
    }

    fn all(&self) -> impl Iterator<Item = &Child> {
        std::iter::once(&self.filter).chain(&self.feed)
    }

    /// Waits until all are held.
    fn ready(&self, conditions: &Conditions<'_>) -> Result<(), RunError> {
        let until = Instant::now() + READY;
        self.all().try_for_each(|process| process.wait_until_held(until, conditions.interrupt))
    }

    fn go(&self) {
        self.all().for_each(Child::release);
    }

    /// Lets it flow until then. Nobody may end before.
    fn flow(&mut self, until: Instant, conditions: &Conditions<'_>) -> Result<(), RunError> {
        if wait_for_first(self.all(), until, Some(conditions.interrupt))?.is_none() {
            return Ok(());
        }
        // The filter first: when it ends, its feed is refused and ends as well.
        let moment = Instant::now() + MOMENT;
        for process in std::iter::once(&mut self.filter).chain(&mut self.feed) {
            if process.wait(moment, Some(conditions.interrupt))? {
                return Err(RunError::Failed(format!("{} {}", process.name(), process.how_it_ended(0))));
            }
        }
        Err(RunError::Failed("the pipeline ended before its time".to_owned()))
    }

    /// Handles a feed that does not end by itself.
    fn cut(&self) {
        if let Some(feed) = &self.feed {
            feed.kill();
        }
    }

    /// Waits until the filter has ended; it is not reaped, for its counts are read first.
    fn finish(&self, deadline: Instant, conditions: &Conditions<'_>) -> Result<(), RunError> {
        match wait_for_first([&self.filter], deadline, Some(conditions.interrupt))? {
            Some(_) => Ok(()),
            None => Err(RunError::Failed(format!(
                "{} had not ended when the run reached its limit of {:?}; raise --limit if it only needs longer",
                self.filter.name(),
                conditions.limit
            ))),
        }
    }

    /// How many bytes went into the filter.
    fn bytes(&self) -> Result<u64, RunError> {
        if let Some((_, bytes)) = &self.file {
            return Ok(*bytes);
        }
        let Some(feed) = &self.feed else { return Ok(0) };
        // Killed, it is about to end: what it wrote last is counted when it has.
        let _ = wait_for_first([feed], Instant::now() + MOMENT, None);
        let written = moved(feed, "wchar:");
        let read = moved(&self.filter, "rchar:");
        // What is spliced is not counted. A reader also reads its libraries, so the writer's count comes first.
        match written.max(read) {
            0 => {
                Err(RunError::NotHere("how many bytes passed is not known: /proc/PID/io does not tell here".to_owned()))
            }
            _ if written >= read / 2 => Ok(written),
            _ => Ok(read),
        }
    }

    /// Reaps all, and says what each used if all went well.
    fn ended(
        &mut self,
        feed: Feed,
        deadline: Instant,
        conditions: &Conditions<'_>,
        counters: (Counters, Option<Counters>),
    ) -> Result<PipelineStats, RunError> {
        let late = Instant::now().max(deadline) + Duration::from_secs(1);
        let mut stats = Vec::new();
        for process in std::iter::once(&mut self.filter).chain(&mut self.feed) {
            if !process.wait(late, Some(conditions.interrupt))? {
                return Err(RunError::Failed(format!("{} did not end", process.name())));
            }
            stats.extend(process.end().map(|(_, usage)| usage));
        }
        // A feed that failed is why its filter got less, and a filter that failed why its feed was refused.
        let endless = feed.endless();
        for (process, killed) in [(Some(&self.filter), false), (self.feed.as_ref(), endless)] {
            let Some((process, (status, _))) = process.and_then(|process| Some((process, process.end()?))) else {
                continue;
            };
            if !status.success() && !killed {
                return Err(RunError::Failed(format!("{} {}", process.name(), process.how_it_ended(0))));
            }
        }
        if let Some((file, bytes)) = self.file.as_mut().filter(|_| self.direct) {
            let at = file.stream_position().unwrap_or(*bytes);
            if at != *bytes {
                return Err(RunError::Unverified(format!(
                    "{} ended when it had read {at} of {bytes} bytes",
                    self.filter.name()
                )));
            }
        }
        let mut stats = stats.iter().map(|usage| ProcessStats {
            user_ns: usage.user_ns,
            sys_ns: usage.sys_ns,
            context_switches: usage.voluntary_switches + usage.involuntary_switches,
            page_faults: usage.minor_faults + usage.major_faults,
            ..ProcessStats::default()
        });
        let filter = counters.0.into_stats(stats.next().unwrap_or_default());
        let feed = stats.next().zip(counters.1).map(|(stats, counters)| counters.into_stats(stats));
        Ok(PipelineStats { feed, filter })
    }

    fn switches(&self, count: fn(&pipeio_harness::usage::Usage) -> u64) -> u64 {
        self.all().filter_map(|process| process.end().map(|(_, usage)| count(&usage))).sum()
    }
}

/// Bytes that a process has read or written until now, by /proc/PID/io; 0 where that is not to be had.
fn moved(process: &Child, field: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/io", process.pid().as_raw_nonzero())).unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix(field)?.trim().parse().ok()).unwrap_or(0)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
