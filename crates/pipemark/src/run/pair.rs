//! One run of a trial: pairs of source and sink in processes of their own, watched until they report.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use super::channel::{Assignment, Done, Reply, Role};
use super::child::wait_readable;
use super::control::Control;
use super::error::{RunError, explained};
use super::interrupt::Interrupt;
use super::keeper::{self, Keeper, Wire};
use super::process::Process;
use super::stage::RunningStages;
use crate::link;
use crate::model::{Cpu, EndStats, Ends, Job, LinkKind, Mode, PageKind, Sample, StageStats, Verify, Warning};

/// What a run is made with, besides its parameters.
pub struct Conditions<'a> {
    /// CPUs of source and sink; `None` leaves them to the scheduler.
    pub cpus: Option<(Cpu, Cpu)>,
    /// Content and delays are drawn from this.
    pub seed: u64,
    /// The run is ended after this.
    pub limit: Duration,
    /// Handles the run early.
    pub interrupt: &'a Interrupt,
}

/// What one run gave.
pub struct Measured {
    /// The figures; round and start are the schedule's to fill in.
    pub sample: Sample,
    /// What was different from what was asked for.
    pub notes: Vec<Warning>,
}

/// Makes one run.
///
/// # Errors
/// When it could not be made or its bytes did not verify. Nothing of it is left in either case.
pub fn run(job: &Job, conditions: &Conditions<'_>) -> Result<Measured, RunError> {
    let begin = Instant::now();
    let mut run = start(job, conditions)?;
    let deadline = begin + conditions.limit;
    let reports = match wait(&mut run, deadline, conditions) {
        Err(RunError::Failed(reason)) => return Err(RunError::Failed(run.stages.reason_behind(reason))),
        outcome => outcome?,
    };
    let stages = run.stages.finish(deadline, conditions.interrupt)?;
    let grants = run.grants;
    // What an end has to say it has said: one that does not go by itself, because someone stopped it, is ended.
    drop(run);
    measured(job, reports, stages, grants, begin.elapsed())
}

/// A run on its way. Dropping it ends its processes and removes its links, in this order.
struct Run {
    processes: Vec<Process>,
    stages: RunningStages,
    keepers: Vec<Keeper>,
    control: Control,
    grants: Grants,
}

/// What the kernel granted to the links, which are all alike.
#[derive(Clone, Copy, Default)]
struct Grants {
    message_limit: Option<u64>,
    buffers: Option<(u64, u64)>,
}

/// Only jobs with ends are run here.
fn own_ends(job: &Job) -> Result<&Ends, RunError> {
    job.ends().ok_or_else(|| RunError::Failed("this job has no ends of ours".to_owned()))
}

fn start(job: &Job, conditions: &Conditions<'_>) -> Result<Run, RunError> {
    let own = own_ends(job)?;
    let link = link::of(own.link);
    let roles: &[Role] = if link.is_some() { &[Role::Source, Role::Sink] } else { &[Role::Copy] };
    let links_per_pair = match job.mode() {
        Mode::Throughput => 1,
        Mode::Latency => 2,
    };
    let ends = roles.len() * own.pairs as usize;
    let (page, control) = Control::create(ends).map_err(failed("no shared memory for the run"))?;
    let mut run = Run {
        processes: Vec::with_capacity(ends),
        stages: RunningStages::default(),
        keepers: Vec::new(),
        control,
        grants: Grants::default(),
    };
    for pair in 0..own.pairs {
        // The source has the sending end of the link there and the receiving end of the one back.
        let (mut of_source, mut of_sink) = (Vec::new(), Vec::new());
        for back in (0..links_per_pair).map(|nth| nth == 1) {
            let Some(link) = link else { continue };
            let (ends, keeper) = keeper::make(link, own).map_err(|error| match link::not_here(&error) {
                true => RunError::NotHere(format!("--link {}: {error}", own.link)),
                false => RunError::Failed(format!("no link: {error}")),
            })?;
            run.keepers.extend(keeper);
            run.grants = Grants { message_limit: ends.message_limit, buffers: ends.buffers };
            let (near, far) = if back { (&mut of_sink, &mut of_source) } else { (&mut of_source, &mut of_sink) };
            near.push(ends.source);
            let end = if let Some(chain) = job.chain() {
                // A chain's links are plain pipes: nobody has to keep them.
                let more = || link.connect(own, Path::new("")).map_err(failed("no link"));
                let (stages, end) = RunningStages::start(chain, ends.sink, conditions, more)?;
                run.stages = stages;
                end
            } else {
                ends.sink
            };
            far.push(end);
        }
        for &role in roles {
            let handles = std::mem::take(if role == Role::Sink { &mut of_sink } else { &mut of_source });
            let pin = conditions.cpus.map(|(source, sink)| if role == Role::Sink { sink } else { source });
            let assignment = Assignment {
                role,
                parent: std::process::id(),
                pair,
                line: run.processes.len(),
                pin,
                job: job.clone(),
                seed: conditions.seed,
                handles: handles.iter().map(Wire::of).collect(),
                folder: None,
            };
            let descriptors: Vec<_> =
                std::iter::once(page.as_fd()).chain(handles.iter().filter_map(keeper::descriptor)).collect();
            run.processes.push(Process::start(&assignment, &descriptors).map_err(RunError::Failed)?);
        }
    }
    Ok(run)
}

fn failed(what: &str) -> impl FnOnce(io::Error) -> RunError {
    move |error| RunError::failed(what)(explained(&error))
}

/// Waits for all replies.
fn wait(run: &mut Run, deadline: Instant, conditions: &Conditions<'_>) -> Result<Vec<(Role, Done)>, RunError> {
    let Run { processes, control, .. } = run;
    while let Some(next) = next_reply(processes, deadline, Some(conditions.interrupt))? {
        let Some(nth) = next else { return Err(RunError::Failed(hang(processes, control, conditions.limit))) };
        processes[nth].take_reply().map_err(RunError::Failed)?;
        match &processes[nth].reply {
            Some(Reply::Failed(reason)) => return Err(reason_behind(reason.clone(), processes)),
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

/// When one end dies, the other fails a moment later, each link with an error of its own. The death is the news.
fn reason_behind(reason: String, processes: &mut [Process]) -> RunError {
    let patience = Duration::from_millis(100);
    while let Ok(Some(Some(nth))) = next_reply(processes, Instant::now() + patience, None) {
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

/// Which process has a reply to take, or has ended without one; `Some(None)` at the deadline, and `None` when all have
/// replied.
fn next_reply(
    processes: &[Process],
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

/// Says how a hanging run looked: how far it was, how full the pipe, who waited on what.
fn hang(processes: &[Process], control: &Control, limit: Duration) -> String {
    let phase = match control.met() {
        0 => "getting ready",
        1 => "warming up",
        _ => "measuring",
    };
    let mut text = format!("the run was ended after its limit of {limit:?} while {phase}");
    for process in processes.iter().filter(|process| process.reply.is_none()).take(8) {
        let bytes = control.bytes(process.line);
        text.push_str(&format!("; the {} {} after {bytes} bytes", process.role.name(), process.doing()));
        if process.role == Role::Sink
            && let Some((fill, capacity)) = process.pipe_fill()
        {
            text.push_str(&format!(", its pipe held {fill} of {capacity} bytes"));
        }
    }
    text.push_str("; raise --limit if it only needs longer");
    text
}

/// Proves and adds up what the ends reported.
fn measured(
    job: &Job,
    reports: Vec<(Role, Done)>,
    stages: Vec<StageStats>,
    grants: Grants,
    wall: Duration,
) -> Result<Measured, RunError> {
    let (sinks, sources): (Vec<_>, Vec<_>) = reports.into_iter().partition(|&(role, _)| role != Role::Source);
    let own = own_ends(job)?;
    verify(own, &sources, &sinks)?;
    let capacity = sinks.first().and_then(|(_, done)| done.capacity);
    let mut notes = Vec::new();
    if own.pages == PageKind::Huge && sources.iter().chain(&sinks).all(|(_, done)| done.huge_bytes == Some(0)) {
        notes.push(Warning::NoHugePages {
            reason: "the kernel gave none; see /sys/kernel/mm/transparent_hugepage".to_owned(),
        });
    }
    if let Some(limit) = grants.message_limit.filter(|&limit| limit < own.block.0) {
        notes.push(Warning::Split { limit });
    }
    if let Some(text) = sources.iter().find_map(|(_, done)| done.note.clone()) {
        notes.push(Warning::Sender { text });
    }
    let latency = sources.first().and_then(|(_, done)| done.latency.clone());
    let stats = |ends: Vec<(Role, Done)>| -> Vec<EndStats> { ends.into_iter().map(|(_, done)| done.stats).collect() };
    let (sources, sinks) = (stats(sources), stats(sinks));
    let all = || sources.iter().chain(&sinks);
    // The sink has the clock that counts, but a round trip ends where it began.
    let clocks = if job.is_round_trip() { &sources } else { &sinks };
    let arrived: u64 = clocks.iter().map(|end| end.bytes).sum();
    // Stages that answer with their exit code alone, as grep does that finds nothing, have taken what was sent.
    let kept_by_stages = job.chain().is_some() && own.verify == Verify::None && arrived == 0;
    let moved = |nth: usize, end: &EndStats| if kept_by_stages { sources[nth].bytes } else { end.bytes };
    let bytes: u64 = clocks.iter().enumerate().map(|(nth, end)| moved(nth, end)).sum();
    // Windows of different pairs end at different times, each under full load: their rates add up.
    let rate: f64 = clocks.iter().enumerate().map(|(nth, end)| moved(nth, end) as f64 / end.ns.max(1) as f64).sum();
    let sample = Sample {
        round: 0,
        started_ns: 0,
        bytes,
        ns: (bytes as f64 / rate).round() as u64,
        wall_ns: u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX),
        user_ns: all().map(|end| end.user_ns).chain(stages.iter().map(|stage| stage.user_ns)).sum(),
        sys_ns: all().map(|end| end.sys_ns).chain(stages.iter().map(|stage| stage.sys_ns)).sum(),
        voluntary_switches: all()
            .map(|end| end.voluntary_switches)
            .chain(stages.iter().map(|stage| stage.voluntary_switches))
            .sum(),
        involuntary_switches: all()
            .map(|end| end.involuntary_switches)
            .chain(stages.iter().map(|stage| stage.involuntary_switches))
            .sum(),
        capacity_granted: capacity.map(|(before, _)| before),
        capacity_after: capacity.map(|(_, after)| after),
        send_buffer: grants.buffers.map(|(send, _)| send),
        recv_buffer: grants.buffers.map(|(_, recv)| recv),
        message_limit: grants.message_limit,
        latency,
        stages,
        sources,
        sinks,
        entrant: None,
        pipeline: None,
    };
    if sample.bytes == 0 || sample.ns == 0 {
        return Err(RunError::Failed("no byte arrived in the measured window".to_owned()));
    }
    Ok(Measured { sample, notes })
}

fn verify(own: &Ends, sources: &[(Role, Done)], sinks: &[(Role, Done)]) -> Result<(), RunError> {
    if own.verify == Verify::None || own.link == LinkKind::Null {
        return Ok(());
    }
    for (_, end) in sources.iter().chain(sinks) {
        if let Some(fault) = &end.fault {
            return Err(RunError::Unverified(fault.clone()));
        }
    }
    for ((_, source), (_, sink)) in sources.iter().zip(sinks) {
        let (sent, arrived) = (source.stats.bytes_in_all, sink.stats.bytes_in_all);
        if sent != arrived {
            return Err(RunError::Unverified(format!("{sent} bytes were sent and {arrived} arrived")));
        }
        if source.stats.xor != sink.stats.xor {
            return Err(RunError::Unverified(format!(
                "the XOR of the bytes is {:?} where {:?} was sent",
                sink.stats.xor.unwrap_or_default(),
                source.stats.xor.unwrap_or_default()
            )));
        }
    }
    Ok(())
}
