//! One run of a trial: pairs of source and sink in processes of their own, watched until they report.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use pipeio::pipe::{Pipe, set_capacity};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::control::Control;
use super::interrupt::Interrupt;
use super::job::{Done, Job, Report, Role};
use super::process::Process;
use crate::model::{Capacity, Cpu, EndStats, LinkKind, NamedCapacity, PageKind, Params, Sample, Verify, Warning};

/// Why a run gave no sample.
#[derive(Debug, PartialEq, Eq)]
pub enum RunError {
    /// Something went wrong; a sentence.
    Failed(String),
    /// The bytes that arrived are not the bytes that were sent; a sentence.
    Unverified(String),
    /// The person asked to stop.
    Interrupted,
}

impl RunError {
    fn failed(what: &str) -> impl FnOnce(io::Error) -> RunError {
        move |error| RunError::Failed(format!("{what}: {error}"))
    }
}

/// What a run is made with, besides its parameters.
pub struct Setting<'a> {
    /// CPUs of source and sink; `None` leaves them to the scheduler.
    pub cpus: Option<(Cpu, Cpu)>,
    /// Content and delays are drawn from this.
    pub seed: u64,
    /// The run is ended after this.
    pub limit: Duration,
    /// Ends the run early.
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
pub fn run(params: &Params, setting: &Setting<'_>) -> Result<Measured, RunError> {
    let begin = Instant::now();
    let mut processes = start(params, setting)?;
    let reports = wait(&mut processes, begin + setting.limit, setting)?;
    for process in &mut processes {
        process.reap().map_err(RunError::failed("a process could not be waited for"))?;
    }
    measured(params, reports, begin.elapsed())
}

/// The processes of a run, and the page they share.
struct Processes {
    list: Vec<Process>,
    control: Control,
}

impl std::ops::Deref for Processes {
    type Target = Vec<Process>;

    fn deref(&self) -> &Vec<Process> {
        &self.list
    }
}

impl std::ops::DerefMut for Processes {
    fn deref_mut(&mut self) -> &mut Vec<Process> {
        &mut self.list
    }
}

impl<'a> IntoIterator for &'a mut Processes {
    type Item = &'a mut Process;
    type IntoIter = std::slice::IterMut<'a, Process>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter_mut()
    }
}

fn start(params: &Params, setting: &Setting<'_>) -> Result<Processes, RunError> {
    let roles: &[Role] = match params.link {
        LinkKind::MemoryCopy => &[Role::Copy],
        LinkKind::Pipe => &[Role::Source, Role::Sink],
    };
    let ends = roles.len() * params.pairs as usize;
    let (page, control) = Control::create(ends).map_err(RunError::failed("no shared memory for the run"))?;
    let mut processes = Processes { list: Vec::with_capacity(ends), control };
    for pair in 0..params.pairs {
        let mut link = link(params)?;
        for &role in roles {
            let pin = setting.cpus.map(|(source, sink)| if role == Role::Sink { sink } else { source });
            let job = Job { role, pair, line: processes.len(), pin, params: params.clone(), seed: setting.seed };
            let end = match role {
                Role::Source => link.as_mut().and_then(|link| link.writer.take()),
                Role::Sink => link.as_mut().and_then(|link| link.reader.take()),
                Role::Copy => None,
            };
            let descriptors: Vec<_> =
                std::iter::once(page.as_fd()).chain(end.as_ref().map(|end| end.as_fd())).collect();
            let process = Process::start(&job, &descriptors).map_err(|error| RunError::Failed(error.to_string()))?;
            processes.push(process);
        }
    }
    Ok(processes)
}

/// A link's ends, until each is given to its process.
struct Link {
    reader: Option<OwnedFd>,
    writer: Option<OwnedFd>,
}

fn link(params: &Params) -> Result<Option<Link>, RunError> {
    if params.link == LinkKind::MemoryCopy {
        return Ok(None);
    }
    let pipe = Pipe::new().map_err(RunError::failed("no pipe"))?;
    let wanted = match params.capacity {
        Capacity::Named(NamedCapacity::Default) => None,
        Capacity::Named(NamedCapacity::Quota) => Some(2 * pipeio::memory::page_size()),
        Capacity::Bytes(size) => Some(size.as_usize()),
    };
    if let Some(bytes) = wanted {
        set_capacity(&pipe.writer, bytes).map_err(|error| {
            RunError::Failed(format!(
                "the kernel refused a pipe capacity of {}: {error}; lower --capacity, or see /proc/sys/fs/pipe-max-size and pipe-user-pages-soft",
                params.capacity
            ))
        })?;
    }
    Ok(Some(Link { reader: Some(pipe.reader), writer: Some(pipe.writer) }))
}

/// Waits for all reports.
fn wait(processes: &mut Processes, deadline: Instant, setting: &Setting<'_>) -> Result<Vec<(Role, Done)>, RunError> {
    loop {
        let waiting: Vec<usize> = (0..processes.len()).filter(|&i| processes[i].report.is_none()).collect();
        if waiting.is_empty() {
            break;
        }
        let ready = {
            let mut fds = vec![PollFd::new(setting.interrupt, PollFlags::IN)];
            fds.extend(waiting.iter().map(|&i| PollFd::from_borrowed_fd(processes[i].socket(), PollFlags::IN)));
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
            match poll(&mut fds, Some(&left)) {
                Ok(0) => return Err(RunError::Failed(hang(processes, setting.limit))),
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(RunError::Failed(format!("the processes could not be watched: {error}"))),
            }
            fds.iter().map(|fd| !fd.revents().is_empty()).collect::<Vec<bool>>()
        };
        if ready[0] {
            return Err(RunError::Interrupted);
        }
        for (&i, _) in waiting.iter().zip(&ready[1..]).filter(|&(_, &ready)| ready) {
            processes[i].take_report().map_err(RunError::Failed)?;
            if let Some(Report::Failed(reason)) = &processes[i].report {
                return Err(RunError::Failed(reason_behind(reason.clone(), processes)));
            }
        }
    }
    Ok(processes
        .iter_mut()
        .filter_map(|process| match process.report.take() {
            Some(Report::Done(done)) => Some((process.role, *done)),
            _ => None,
        })
        .collect())
}

/// When one end dies, the other fails a moment later with a broken pipe or an early end. The death is the news.
fn reason_behind(reason: String, processes: &mut Processes) -> String {
    let consequence = ["Broken pipe", "ended before"].iter().any(|sign| reason.contains(sign));
    if !consequence {
        return reason;
    }
    let patience = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    for process in processes.iter_mut().filter(|process| process.report.is_none()) {
        let ready = poll(&mut [PollFd::from_borrowed_fd(process.socket(), PollFlags::IN)], Some(&patience));
        if matches!(ready, Ok(1..)) {
            match process.take_report() {
                Err(death) => return death,
                Ok(()) => {
                    if let Some(Report::Failed(other)) = &process.report {
                        return format!("{other}; {reason}");
                    }
                }
            }
        }
    }
    reason
}

/// Says how a hanging run looked: how far it was, how full the pipe, who waited on what.
fn hang(processes: &Processes, limit: Duration) -> String {
    let phase = match processes.control.met() {
        0 => "getting ready",
        1 => "warming up",
        _ => "measuring",
    };
    let mut text = format!("the run was ended after its limit of {limit:?} while {phase}");
    for process in processes.iter().filter(|process| process.report.is_none()).take(8) {
        let bytes = processes.control.bytes(process.line);
        text.push_str(&format!("; the {} {} after {bytes} bytes", process.role.name(), process.doing()));
        if process.role == Role::Sink {
            if let Some((fill, capacity)) = process.pipe_fill() {
                text.push_str(&format!(", its pipe held {fill} of {capacity} bytes"));
            }
        }
    }
    text.push_str("; raise --limit if it only needs longer");
    text
}

/// Proves and adds up what the ends reported.
fn measured(params: &Params, reports: Vec<(Role, Done)>, wall: Duration) -> Result<Measured, RunError> {
    let (sinks, sources): (Vec<_>, Vec<_>) = reports.into_iter().partition(|&(role, _)| role != Role::Source);
    verify(params, &sources, &sinks)?;
    let capacity = sinks.first().and_then(|(_, done)| done.capacity);
    let mut notes = Vec::new();
    if params.pages == PageKind::Huge && sources.iter().chain(&sinks).all(|(_, done)| done.huge_bytes == Some(0)) {
        notes.push(Warning::NoHugePages {
            reason: "the kernel gave none; see /sys/kernel/mm/transparent_hugepage".to_owned(),
        });
    }
    let stats = |ends: Vec<(Role, Done)>| -> Vec<EndStats> { ends.into_iter().map(|(_, done)| done.stats).collect() };
    let (sources, sinks) = (stats(sources), stats(sinks));
    let all = || sources.iter().chain(&sinks);
    let bytes: u64 = sinks.iter().map(|sink| sink.bytes).sum();
    // Windows of different pairs end at different times, each under full load: their rates add up.
    let rate: f64 = sinks.iter().map(|sink| sink.bytes as f64 / sink.ns.max(1) as f64).sum();
    let sample = Sample {
        round: 0,
        started_ns: 0,
        bytes,
        ns: (bytes as f64 / rate).round() as u64,
        wall_ns: u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX),
        user_ns: all().map(|end| end.user_ns).sum(),
        sys_ns: all().map(|end| end.sys_ns).sum(),
        voluntary_switches: all().map(|end| end.voluntary_switches).sum(),
        involuntary_switches: all().map(|end| end.involuntary_switches).sum(),
        capacity_granted: capacity.map(|(before, _)| before),
        capacity_after: capacity.map(|(_, after)| after),
        sources,
        sinks,
        entrant: None,
    };
    if sample.bytes == 0 || sample.ns == 0 {
        return Err(RunError::Failed("no byte arrived in the measured window".to_owned()));
    }
    Ok(Measured { sample, notes })
}

fn verify(params: &Params, sources: &[(Role, Done)], sinks: &[(Role, Done)]) -> Result<(), RunError> {
    if params.verify == Verify::None {
        return Ok(());
    }
    for (_, sink) in sinks {
        if let Some(fault) = &sink.fault {
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
