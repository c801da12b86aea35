//! One run of a trial: one or more pairs of a source and a sink. Each end is a process, which is supervised until it
//! replies.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use pipemark_host::child::error::{RunError, explained};
use pipemark_host::child::interrupt::Interrupt;
use pipemark_host::child::wait_readable;
use pipemark_model::{EndStats, Ends, Job, PageKind, Sample, StageStats, Verify, Warning, counted};

use crate::link::{self, Handle, Link};
use crate::runner::channel::{Assignment, Done, EndRole, Granted, Reply, Wire, descriptor};
use crate::runner::conditions::{Conditions, RunResult};
use crate::runner::control::Control;
use crate::runner::end_process::EndProcess;
use crate::runner::keeper::{self, Keeper};
use crate::runner::pieces::{IntervalProgress, Sampler};
use crate::runner::stage::RunningStages;

/// Makes one run of a stream, a round trip or a chain. Processes of this program are the source and the sink. `watch`
/// receives the progress.
///
/// # Errors
/// If the run failed or its bytes did not verify. No process and no link remains after either error.
pub fn run(
    job: &Job,
    ends: &Ends,
    conditions: &Conditions<'_>,
    watch: &mut dyn FnMut(IntervalProgress),
) -> Result<RunResult, RunError> {
    let begin = Instant::now();
    let mut run = PairRun::start(job, ends, conditions)?;
    let started = begin.elapsed();
    let deadline = begin + conditions.limit;
    let mut sampler = Sampler::new(&run.processes, job.is_round_trip(), conditions.interval);
    let replies = match wait(&mut run, deadline, conditions, &mut sampler, watch) {
        Err(RunError::Failed(reason)) => return Err(RunError::Failed(run.stages.root_cause(reason))),
        outcome => outcome?,
    };
    let replied = Instant::now();
    let stages = run.stages.finish(deadline, conditions.interrupt)?;
    let ended = replied.elapsed();
    let granted = run.granted;
    let begun_ns = run.control.begun_at();
    // All replies have arrived. An end that doesn't exit by itself, for example because it was stopped, is killed.
    drop(run);
    let mut measured = combine_replies(job, ends, replies, stages, granted, begin.elapsed())?;
    let around = u64::try_from((started + ended).as_nanos()).unwrap_or(u64::MAX);
    measured.sample.real_ns = Some(measured.sample.ns.saturating_add(around));
    measured.sample.pieces = begun_ns.and_then(|begun_ns| sampler.pieces(begun_ns, measured.sample.ns));
    Ok(measured)
}

/// A run in progress. Dropping it ends the processes, then removes the links.
struct PairRun {
    processes: Vec<EndProcess>,
    stages: RunningStages,
    keepers: Vec<Keeper>,
    control: Control,
    /// The limits that the kernel granted to each link. They are equal for all links.
    granted: Granted,
}

impl PairRun {
    fn start(job: &Job, ends: &Ends, conditions: &Conditions<'_>) -> Result<PairRun, RunError> {
        let link = link::of(ends.link);
        let roles = match link {
            Some(_) => [vec![EndRole::Source; ends.writers as usize], vec![EndRole::Sink]].concat(),
            None => vec![EndRole::Copy],
        };
        let count = roles.len() * ends.pairs as usize;
        let (page, control) = Control::create(count).map_err(failed("cannot create shared memory for the run"))?;
        let mut run = PairRun {
            processes: Vec::with_capacity(count),
            stages: RunningStages::default(),
            keepers: Vec::new(),
            control,
            granted: Granted::default(),
        };
        for pair in 0..ends.pairs {
            let handles = match link {
                Some(link) => run.connect(link, job, ends, conditions)?,
                None => [Vec::new(), Vec::new()],
            };
            for &role in &roles {
                let handles = &handles[usize::from(role == EndRole::Sink)];
                let assignment = Assignment {
                    role,
                    parent: std::process::id(),
                    job: job.clone(),
                    pair,
                    line: run.processes.len(),
                    pin: conditions.cpus.map(|(source, sink)| if role == EndRole::Sink { sink } else { source }),
                    seed: conditions.seed,
                    handles: handles.iter().map(Wire::of).collect(),
                    directory: None,
                };
                let descriptors: Vec<_> =
                    std::iter::once(page.as_fd()).chain(handles.iter().filter_map(descriptor)).collect();
                run.processes.push(EndProcess::start(&assignment, &descriptors).map_err(RunError::Failed)?);
            }
        }
        Ok(run)
    }

    /// Creates the link of a pair and, for round trips, the return link. Returns the handles of the source, then those
    /// of the sink.
    fn connect(
        &mut self,
        link: &'static dyn Link,
        job: &Job,
        ends: &Ends,
        conditions: &Conditions<'_>,
    ) -> Result<[Vec<Handle>; 2], RunError> {
        let mut of_both = [Vec::new(), Vec::new()];
        for way in 0..if job.is_round_trip() { 2 } else { 1 } {
            let (made, keeper) = keeper::make(link, job, ends).map_err(|error| match link::not_here(&error) {
                true => RunError::NotHere(format!("--link {}: {error}", ends.link)),
                false => RunError::Failed(format!("cannot create the link: {error}")),
            })?;
            self.keepers.extend(keeper);
            self.granted = Granted { message_limit: made.message_limit, buffers: made.buffers };
            let mut far = made.sink;
            if let Some(chain) = job.chain() {
                // A chain's links are plain pipes and need no keeper.
                let more = || link.connect(ends, Path::new("")).map_err(failed("no link"));
                (self.stages, far) = RunningStages::start(chain, far, conditions, more)?;
            }
            of_both[way].push(made.source);
            of_both[1 - way].push(far);
        }
        Ok(of_both)
    }
}

fn failed(what: &str) -> impl FnOnce(io::Error) -> RunError {
    move |error| RunError::failed(what)(explained(&error))
}

/// Waits for all replies.
fn wait(
    run: &mut PairRun,
    deadline: Instant,
    conditions: &Conditions<'_>,
    sampler: &mut Sampler,
    watch: &mut dyn FnMut(IntervalProgress),
) -> Result<Vec<(EndRole, Done)>, RunError> {
    let PairRun { processes, control, .. } = run;
    while let Some(next) = next_reply(processes, deadline.min(sampler.next), Some(conditions.interrupt))? {
        let nth = match next {
            Some(nth) => nth,
            None if Instant::now() < deadline => {
                sampler.sample(control, watch);
                continue;
            }
            None => return Err(RunError::Failed(describe_hang(processes, control, conditions.limit))),
        };
        processes[nth].take_reply().map_err(RunError::Failed)?;
        match &processes[nth].reply {
            Some(Reply::Failed(reason)) => return Err(root_cause(reason.clone(), processes)),
            Some(Reply::NotHere(reason)) => return Err(RunError::NotHere(reason.clone())),
            _ => {}
        }
    }
    Ok(processes
        .iter_mut()
        .filter_map(|process| match process.reply.take() {
            Some(Reply::Done(done)) => Some((process.role, *done)),
            _ => None,
        })
        .collect())
}

/// If an end is killed, the other end fails shortly afterwards with an error that depends on the link. So the kill is
/// reported instead.
fn root_cause(reason: String, processes: &mut [EndProcess]) -> RunError {
    let timeout = Duration::from_millis(100);
    while let Ok(Some(Some(nth))) = next_reply(processes, Instant::now() + timeout, None) {
        match processes[nth].take_reply() {
            Err(death) => return RunError::Failed(death),
            Ok(_) => match &processes[nth].reply {
                Some(Reply::Failed(other)) => return RunError::Failed(format!("{other}; {reason}")),
                Some(Reply::NotHere(other)) => return RunError::NotHere(other.clone()),
                _ => {}
            },
        }
    }
    RunError::Failed(reason)
}

/// The next process whose reply is ready or that has exited without a reply. `Some(None)` at the deadline, and `None`
/// if all have replied.
fn next_reply(
    processes: &[EndProcess],
    deadline: Instant,
    interrupt: Option<&Interrupt>,
) -> Result<Option<Option<usize>>, RunError> {
    let (waiting, sockets): (Vec<usize>, Vec<_>) = processes
        .iter()
        .enumerate()
        .filter(|(_, process)| process.reply.is_none())
        .map(|(nth, process)| (nth, process.socket()))
        .unzip();
    match waiting.is_empty() {
        true => Ok(None),
        false => Ok(Some(wait_readable(&sockets, deadline, interrupt)?.map(|ready| waiting[ready]))),
    }
}

/// Describes a run that hangs: its progress, the fill level of the pipe, and what each process is waiting for.
fn describe_hang(processes: &[EndProcess], control: &Control, limit: Duration) -> String {
    let phase = match control.barriers_passed() {
        0 => "getting ready",
        1 => "warming up",
        _ => "measuring",
    };
    let mut text = format!("the run was aborted at its limit of {limit:?} while {phase}");
    for process in processes.iter().filter(|process| process.reply.is_none()).take(8) {
        let bytes = counted(control.bytes(process.line) as usize, "byte");
        text.push_str(&format!("; the {} {} after {bytes}", process.role.name(), process.activity()));
        if process.role == EndRole::Sink
            && let Some((fill, capacity)) = process.pipe_fill()
        {
            text.push_str(&format!(", its pipe held {fill} of {capacity} bytes"));
        }
    }
    text.push_str("; raise --limit if it needs longer");
    text
}

/// Checks the replies of the ends and combines them into a sample.
pub(super) fn combine_replies(
    job: &Job,
    ends: &Ends,
    replies: Vec<(EndRole, Done)>,
    stages: Vec<StageStats>,
    granted: Granted,
    wall: Duration,
) -> Result<RunResult, RunError> {
    let (sinks, sources): (Vec<_>, Vec<_>) = replies.into_iter().partition(|&(role, _)| role != EndRole::Source);
    let done = |ends: Vec<(EndRole, Done)>| ends.into_iter().map(|(_, done)| done).collect();
    let (sources, sinks): (Vec<Done>, Vec<Done>) = (done(sources), done(sinks));
    verify(ends, &sources, &sinks)?;
    let mut notes = Vec::new();
    if ends.pages == PageKind::Huge && sources.iter().chain(&sinks).all(|done| done.huge_bytes == Some(0)) {
        notes.push(Warning::NoHugePages {
            reason: "the kernel provided none; see /sys/kernel/mm/transparent_hugepage".to_owned(),
        });
    }
    if let Some(limit) = granted.message_limit.filter(|&limit| limit < ends.block.0) {
        notes.push(Warning::Split { limit });
    }
    if let Some(text) = sources.iter().find_map(|done| done.note.clone()) {
        notes.push(Warning::Sender { text });
    }
    let capacity = sinks.first().and_then(|done| done.capacity);
    let interleaved_percent = sinks.first().and_then(|done| done.interleaved_percent);
    let latency = sources.first().and_then(|done| done.latency.clone());
    let stats = |ends: Vec<Done>| ends.into_iter().map(|done| done.stats).collect();
    let (sources, sinks): (Vec<EndStats>, Vec<EndStats>) = (stats(sources), stats(sinks));
    // The window is timed by the sink's clock. A round trip ends at its source, so it is timed by the source's clock.
    let clocks = if job.is_round_trip() { &sources } else { &sinks };
    // Stages that output nothing, such as grep without a match, have still read everything sent.
    let kept_by_stages =
        job.chain().is_some() && ends.verify == Verify::None && clocks.iter().all(|end| end.bytes == 0);
    let moved = |nth: usize, end: &EndStats| if kept_by_stages { sources[nth].bytes } else { end.bytes };
    let bytes: u64 = clocks.iter().enumerate().map(|(nth, end)| moved(nth, end)).sum();
    // The windows of different pairs end at different times, but each is under full load, so the rates are added.
    let rate: f64 = clocks.iter().enumerate().map(|(nth, end)| moved(nth, end) as f64 / end.ns.max(1) as f64).sum();
    let sum = |of_end: fn(&EndStats) -> u64, of_stage: fn(&StageStats) -> u64| {
        sources.iter().chain(&sinks).map(of_end).chain(stages.iter().map(of_stage)).sum()
    };
    let sample = Sample {
        bytes,
        ns: (bytes as f64 / rate).round() as u64,
        wall_ns: u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX),
        user_ns: sum(|end| end.user_ns, |stage| stage.user_ns),
        sys_ns: sum(|end| end.sys_ns, |stage| stage.sys_ns),
        voluntary_switches: sum(|end| end.voluntary_switches, |stage| stage.voluntary_switches),
        involuntary_switches: sum(|end| end.involuntary_switches, |stage| stage.involuntary_switches),
        capacity_granted: capacity.map(|(before, _)| before),
        capacity_after: capacity.map(|(_, after)| after),
        send_buffer: granted.buffers.map(|(send, _)| send),
        recv_buffer: granted.buffers.map(|(_, recv)| recv),
        message_limit: granted.message_limit,
        interleaved_percent,
        latency,
        stages,
        sources,
        sinks,
        ..Sample::default()
    };
    if sample.bytes == 0 || sample.ns == 0 {
        return Err(RunError::Failed("no byte arrived in the measured window".to_owned()));
    }
    Ok(RunResult { sample, notes })
}

pub(super) fn verify(ends: &Ends, sources: &[Done], sinks: &[Done]) -> Result<(), RunError> {
    if ends.verify == Verify::None || ends.link.is_null() {
        return Ok(());
    }
    if let Some(fault) = sources.iter().chain(sinks).find_map(|end| end.fault.clone()) {
        return Err(RunError::Unverified(fault));
    }
    // Each of several readers receives what the only writer sends.
    let shared = |nth: usize| &sources[if ends.readers > 1 { 0 } else { nth }];
    let pairs = if ends.readers > 1 { sinks.len() } else { sources.len().min(sinks.len()) };
    for (source, sink) in (0..pairs).map(|nth| (shared(nth), &sinks[nth])) {
        // In a round trip, each end both sends and receives.
        let both = source.latency.is_some();
        for (end, writes, reads) in [(source, true, both), (sink, both, true)] {
            let all = end.stats.bytes_in_all;
            let undone =
                [(writes && ends.fresh(), end.written, "newly written"), (reads && ends.touched(), end.read, "read")];
            if let Some((_, done, what)) = undone.into_iter().find(|(wanted, done, _)| *wanted && *done != all) {
                return Err(RunError::Unverified(format!("{done} of {all} bytes were {what}")));
            }
        }
        let (source, sink) = (&source.stats, &sink.stats);
        let sent: u64 = match ends.writers {
            1 => source.bytes_in_all,
            _ => sources.iter().map(|source| source.stats.bytes_in_all).sum(),
        };
        let arrived = sink.bytes_in_all;
        if sent != arrived {
            return Err(RunError::Unverified(format!("{sent} bytes were sent and {arrived} arrived")));
        }
        if source.xor != sink.xor {
            let [sent, arrived] = [source.xor, sink.xor].map(Option::unwrap_or_default);
            return Err(RunError::Unverified(format!("the XOR of the bytes is {arrived} instead of {sent}")));
        }
    }
    Ok(())
}
