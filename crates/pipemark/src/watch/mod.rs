//! Running pipelines seen from outside: which processes are one, what each waits for, and what holds it back.
//!
//! The way of the data: [`process`] reads /proc, [`topology`] makes stages of processes, [`state`] says what a thread waits
//! for, [`Watcher`] looks many times a second and counts, [`Figures`] are what the counts come to, and [`verdict()`] is what
//! follows. All but the reading is pure.

mod advice;
mod counters;
mod figures;
mod phases;
mod process;
mod sampler;
mod scan;
mod state;
mod thread;
mod topology;
mod tune;
mod verdict;

pub use figures::Figures;
pub use phases::Timeline;
pub use sampler::{Manner, Subject, Watcher};
pub use tune::{LOOKS, Tuning};
pub use verdict::{percent, verdict};

use process::Process;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::model::{Access, PipelineReport, StageFigures, StageMoment};

/// Sampled shares that are off by more are called rough.
const ROUGH: f64 = 0.05;

impl PipelineReport {
    /// Of all that was counted.
    pub fn of(watcher: &Watcher, timeline: &Timeline, pipeline: Option<&str>) -> PipelineReport {
        let figures = Figures::of(watcher, &timeline.total());
        let phases = timeline.phases(watcher);
        let longest = phases.iter().max_by(|a, b| (a.end - a.begin).total_cmp(&(b.end - b.begin)));
        let verdict = match longest {
            Some(phase) if phases.len() > 1 => phase.verdict.clone(),
            _ if figures.stages.is_empty() && watcher.is_alive() => verdict::too_short(figures.samples),
            _ => verdict(&figures),
        };
        let elapsed = watcher.elapsed().as_secs_f64();
        let names = || figures.stages.iter().map(|stage| stage.name.as_str()).collect::<Vec<_>>().join(" | ");
        PipelineReport {
            schema: "pipemark-why/1".to_owned(),
            pipeline: pipeline.map_or_else(names, str::to_owned),
            verdict,
            phases: if phases.len() > 1 { phases } else { Vec::new() },
            seconds: figures.seconds,
            samples: figures.samples,
            samples_per_second: f64::from(figures.samples) / figures.seconds.max(1e-3),
            access: watcher.access(),
            own_cpu: sampler::own_time().as_secs_f64() / elapsed.max(1e-3),
            notes: notes(watcher, &figures),
            stages: figures.stages,
            pipes: figures.pipes,
            places: figures.places,
        }
    }

    /// Notes what each stage did when.
    pub fn add_moments(&mut self, timeline: &Timeline) {
        let round = |number: f64| (number * 1e3).round() / 1e3;
        let moment = |interval: &figures::Interval, place: usize| {
            let seen: u32 = interval.stages.get(place)?.states.iter().sum();
            let share = |state| f64::from(interval.stages[place].states[state as usize]) / f64::from(seen.max(1));
            let (starved, blocked) = (round(share(state::State::Starved)), round(share(state::State::Blocked)));
            let seconds = round(interval.begin + interval.seconds / 2.0);
            (seen > 0).then_some(StageMoment { seconds, busy: round(1.0 - starved - blocked), starved, blocked })
        };
        for (stage, &place) in self.stages.iter_mut().zip(&self.places) {
            stage.moments = timeline.intervals.iter().filter_map(|interval| moment(interval, place)).collect();
        }
    }

    /// How busy each stage was in the last intervals.
    pub fn history(&self, timeline: &Timeline, count: usize) -> Vec<Vec<f64>> {
        let recent = &timeline.intervals[timeline.intervals.len().saturating_sub(count)..];
        self.places.iter().map(|&place| recent.iter().map(|interval| interval.busy(place)).collect()).collect()
    }
}

fn notes(watcher: &Watcher, figures: &Figures) -> Vec<String> {
    let mut notes = Vec::new();
    match watcher.access() {
        Access::Syscall => {}
        Access::Wchan => notes.push(
            "/proc/PID/syscall can't be read here, so waits are told by /proc/PID/wchan, which knows poll and splice less \
             well: to see all, run the pipeline by 'pipemark why', or as root (kernel.yama.ptrace_scope)"
                .to_owned(),
        ),
        Access::Stat => notes.push(
            "only whether threads run or sleep can be seen here, and the rest is inferred: to see more, run pipemark as \
             the pipeline's user, or as root"
                .to_owned(),
        ),
    }
    if let (Subject::Processes(_), [alone]) = (&watcher.subject, &figures.stages[..])
        && watcher.pipes.is_empty()
        && !alone.hidden
    {
        notes.push(format!("no pipe joins {} to another process", alone.name));
    }
    let hidden = figures.stages.iter().filter(|stage| stage.hidden);
    let hidden: Vec<String> = hidden.map(|stage| verdict::name(figures, stage.number)).collect();
    if !hidden.is_empty() {
        notes.push(format!(
            "{}: another user's, so only whether it runs or sleeps can be seen; as root pipemark sees more",
            hidden.join(", ")
        ));
    }
    let error = |stage: &StageFigures| stage.sampling_error.filter(|&error| error > ROUGH);
    let rough = figures.stages.iter().filter_map(|stage| Some((error(stage)?, stage.number)));
    if let Some((error, number)) = rough.max_by(|a, b| a.0.total_cmp(&b.0)) {
        notes.push(format!(
            "samples are rough: those of {} were {:.0} points off what the kernel counted, to which the shares are corrected",
            verdict::name(figures, number),
            error * 100.0
        ));
    }
    notes
}

/// A live pipeline of this user.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Live {
    /// A process of it, to name it by.
    pub pid: u32,
    /// Its stages, in the order of the data.
    pub stages: Vec<String>,
}

/// The live pipelines whose processes may be looked at: stages that standard input and output join.
pub fn live() -> Vec<Live> {
    let mut processes = process::all();
    for ends in processes.iter_mut().filter_map(|process| process.ends.as_mut()) {
        ends.retain(|end| end.fd < 2);
    }
    let pids: Vec<u32> = processes.iter().map(|process| process.pid).collect();
    let mut left = topology::stages(&processes, &pids, topology::Reach::Given);
    left.retain(|shape| !shape.ins.is_empty() || !shape.outs.is_empty());
    let mut found = Vec::new();
    while !left.is_empty() {
        let mut one = vec![left.remove(0)];
        let joined = |one: &[topology::Shape], shape: &topology::Shape| {
            let of = |shape: &topology::Shape| shape.ins.iter().chain(&shape.outs).copied().collect::<Vec<_>>();
            one.iter().flat_map(of).any(|pipe| of(shape).contains(&pipe))
        };
        while let Some(place) = left.iter().position(|shape| joined(&one, shape)) {
            one.push(left.remove(place));
        }
        let stage = |shape: &topology::Shape| {
            processes.iter().find(|process| process.pid == shape.pids[0]).map(Process::command).unwrap_or_default()
        };
        found.push(Live { pid: one[0].pids[0], stages: one.iter().map(stage).collect() });
    }
    found
}

/// The processes called so.
pub fn named(name: &str) -> Vec<u32> {
    let processes = process::all();
    let called = |process: &&Process| process.comm == name.chars().take(15).collect::<String>();
    processes.iter().filter(called).map(|process| process.pid).collect()
}

/// Why a process can't be looked at, if it can't.
pub fn refusal(pid: u32) -> Option<String> {
    // The kernel knows it, and /proc doesn't show it.
    let hidden = || Pid::from_raw(pid.cast_signed()).map(test_kill_process) == Some(Err(Errno::PERM));
    match Process::read(pid) {
        Some(Process { of_kernel: true, comm, .. }) => {
            Some(format!("process {pid} is a thread of the kernel ({comm}), which no pipe joins to anything"))
        }
        Some(process) if process.state != 'Z' => None,
        _ if hidden() => {
            Some(format!("process {pid} is another user's, and hidden here (hidepid); look as that user, or as root"))
        }
        _ => Some(format!("there is no process {pid}; 'pipemark why' lists live pipelines")),
    }
}
