//! Merges what a scan found with the stages and pipes of the last scan.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Instant;

use pipemark_causes::{naming, programs};
use pipemark_host::ControlGroups;
use pipemark_proc::process::{self, Direction, PipeId, Process};
use pipemark_proc::state::WaitTarget;
use pipemark_proc::thread::Thread;
use pipemark_proc::topology::StageShape;
use pipemark_proc::watched::WatchedProcess;
use rustix::process::{Pid, Resource, getrlimit};
use rustix::thread::sched_getaffinity;

use super::extent::ScanExtent;
use crate::pipeline::WatchedPipeline;
use crate::pipeline::pipe::WatchedPipe;
use crate::pipeline::stage::WatchedStage;
use crate::program_details;
use crate::subject::Subject;

/// The maximum number of stages. Later stages, such as more iterations of a loop, are counted with the last stage.
const MAX_STAGES: usize = 400;

/// The maximum number of processes of a stage whose other files are examined.
const MAX_PROCESSES_FOR_FILES: usize = 32;

/// Merges this scan with the last one. Matches each stage with an earlier stage, or adds it.
pub fn adopt(
    pipeline: &mut WatchedPipeline,
    processes: Vec<Process>,
    shapes: &[StageShape],
    hidden: &HashSet<u32>,
    extent: ScanExtent<'_>,
) {
    // Each thread and each process opens up to four files. Together they may use half of the available descriptors.
    let most = getrlimit(Resource::Nofile).current.unwrap_or(1024).min(8192) / 16;
    let mut open = pipeline.known.values().map(|known| known.threads.len() as u64).sum::<u64>();
    let mut before = std::mem::take(&mut pipeline.known);
    let mut wanted: HashSet<u32> = shapes.iter().flat_map(|shape| &shape.pids).copied().collect();
    if let Subject::Processes(seeds) = &pipeline.subject {
        wanted.extend(seeds);
    }
    let stages = pipeline.stages.iter().enumerate();
    let stage_of: HashMap<u32, usize> =
        stages.flat_map(|(at, stage)| stage.pids.iter().map(move |&pid| (pid, at))).collect();
    for process in processes {
        let pid = process.pid;
        if matches!(pipeline.subject, Subject::Processes(_)) && !wanted.contains(&pid) {
            continue;
        }
        let mut old = before.remove(&pid).filter(|old| old.process.start == process.start);
        if let Some(mut old) = old.take_if(|_| !extent.includes(pid)) {
            old.update(process);
            pipeline.known.insert(pid, old);
            continue;
        }
        let mut known = old.unwrap_or_else(|| {
            let mut new = WatchedProcess::new(process.clone(), open < most);
            new.list_children();
            new
        });
        let ids: BTreeSet<u32> = process.thread_ids().into_iter().collect();
        let count = known.threads.len();
        known.threads.retain(|thread| ids.contains(&thread.id));
        if known.threads.len() < count
            && let Some(&at) = stage_of.get(&pid)
        {
            pipeline.stages[at].losses += 1;
        }
        let known_ids: BTreeSet<u32> = known.threads.iter().map(|thread| thread.id).collect();
        for &id in ids.difference(&known_ids) {
            open += 1;
            known.threads.push(Thread::new(pid, id, pipeline.options.access, open < most));
        }
        known.update(process);
        pipeline.known.insert(pid, known);
    }
    let mut taken = vec![false; pipeline.stages.len()];
    // Stages that still have their first process are matched first, because another of their processes may now
    // belong to another stage.
    let living = pipeline.stages.iter().enumerate().rev().filter(|(_, stage)| stage.alive);
    let by_first: HashMap<u32, usize> = living.filter_map(|(at, stage)| Some((*stage.pids.first()?, at))).collect();
    let kept: Vec<Option<usize>> = shapes.iter().map(|shape| by_first.get(&shape.pids[0]).copied()).collect();
    kept.iter().flatten().for_each(|&place| taken[place] = true);
    let mut places = Vec::new();
    for (shape, kept) in shapes.iter().zip(kept) {
        let place = kept.unwrap_or_else(|| place_of(pipeline, shape, &taken));
        taken.resize(pipeline.stages.len(), false);
        taken[place] = true;
        let old = &pipeline.stages[place];
        let is_same = old.alive && (&old.pids, &old.ins, &old.outs) == (&shape.pids, &shape.ins, &shape.outs);
        if !is_same || shape.pids.iter().any(|&pid| extent.includes(pid)) {
            update(pipeline, place, shape);
        }
        mark_inner_pipes(pipeline, place);
        pipeline.stages[place].hidden = hidden.contains(&shape.pids[0]);
        places.push(place);
    }
    let now = Some(Instant::now());
    for (stage, &taken) in pipeline.stages.iter_mut().zip(&taken) {
        if !(stage.alive && taken) {
            // The next iteration of a shell loop starts a new process, whose counters start at 0.
            stage.since = now;
            stage.restarts += 1;
        }
        stage.alive = taken;
    }
    update_pipes(pipeline, shapes, &places);
}

/// The earlier stage that these processes continue, or a new one.
fn place_of(pipeline: &mut WatchedPipeline, shape: &StageShape, taken: &[bool]) -> usize {
    let free = |place: &usize| !taken.get(*place).copied().unwrap_or(false);
    let parents = parents(pipeline, shape.pids[0]);
    let name = name(pipeline, shape);
    let own: HashSet<u32> = shape.pids.iter().copied().collect();
    let shares = |stage: &WatchedStage| stage.alive && stage.pids.iter().any(|pid| own.contains(pid));
    // The stage is the next iteration of a loop, or the next command that xargs runs.
    let related =
        |stage: &WatchedStage| stage.parents.iter().zip(parents).any(|(&old, new)| old == new && new.is_some());
    let lives = |stage: &WatchedStage| stage.pids.iter().any(|pid| pipeline.known.contains_key(pid));
    let again = |stage: &WatchedStage| !lives(stage) && stage.name == name && related(stage);
    let find = |is: &dyn Fn(&WatchedStage) -> bool| {
        (0..pipeline.stages.len()).filter(free).find(|&at| is(&pipeline.stages[at]))
    };
    if let Some(place) = find(&shares).or_else(|| find(&again)) {
        return place;
    }
    if pipeline.stages.len() < MAX_STAGES {
        pipeline.stages.push(WatchedStage { name, parents, ..WatchedStage::default() });
    }
    pipeline.stages.len() - 1
}

/// The parent of a process, and the parent's parent if it is watched too.
fn parents(pipeline: &WatchedPipeline, pid: u32) -> [Option<u32>; 2] {
    let parent = |pid: u32| pipeline.known.get(&pid).map(|known| known.process.parent);
    [parent(pid), parent(pid).and_then(parent)]
}

/// The process that names a stage: its first process, or the process that a shell or similar wrapper started to do
/// its work.
fn naming_process<'p>(pipeline: &'p WatchedPipeline, shape: &StageShape) -> &'p Process {
    const STARTERS: [&str; 14] = [
        "sh", "bash", "dash", "zsh", "ksh", "timeout", "time", "flock", "sudo", "su", "runuser", "doas", "unshare",
        "cpulimit",
    ];
    const AT_ONCE: u64 = 2;
    let first = &pipeline.known[&shape.pids[0]].process;
    let known = shape.pids[1..].iter().filter_map(|pid| pipeline.known.get(pid)).map(|known| &known.process);
    let mut children = known.filter(|process| process.parent == first.pid);
    let (Some(child), None) = (children.next(), children.next()) else { return first };
    let at_once = child.start <= first.start + AT_ONCE;
    if at_once && STARTERS.contains(&first.comm.as_str()) { child } else { first }
}

/// The name of a stage: the name of its first process, as typed.
fn name(pipeline: &WatchedPipeline, shape: &StageShape) -> String {
    let naming = naming_process(pipeline, shape);
    naming::name_of(&naming.comm, &naming.words(), pipeline.typed_text())
}

fn update(pipeline: &mut WatchedPipeline, place: usize, shape: &StageShape) {
    let (naming, old) = (naming_process(pipeline, shape), &pipeline.stages[place]);
    let words = naming.words();
    let name = naming::name_of(&naming.comm, &words, pipeline.typed_text());
    // A process keeps its pid when it executes another program.
    if old.command.is_empty() || old.name != name || old.pids.first() != shape.pids.first() {
        let (pid, command) = (naming.files_of, naming.command(&words));
        let is_child = matches!(pipeline.subject, Subject::Child(_));
        let arguments = program_details::exact_arguments(naming, &words, is_child);
        let environment = program_details::environment(pid, is_child);
        let collates = program_details::collates(programs::program(&words), &environment);
        let variables = pipemark_causes::environment::variables(programs::program(&words), &environment);
        let stage = &mut pipeline.stages[place];
        (stage.name, stage.command, stage.since) = (name, command, Some(Instant::now()));
        (stage.arguments, stage.variables) = (arguments, variables);
        stage.has_many_names = program_details::has_many_names(pid);
        (stage.words, stage.collates, stage.low_priority) = (words, collates, process::low_priority(pid));
        (stage.programs, stage.naming_pid) = (stage.programs + 1, pid);
    }
    let stage = &mut pipeline.stages[place];
    stage.updates += 1;
    let first = &pipeline.known[&shape.pids[0]].process;
    let threads = shape.pids.iter().filter_map(|pid| pipeline.known.get(pid)).map(|known| known.threads.len()).sum();
    stage.threads_now = threads;
    if stage.pids != shape.pids {
        stage.cpus = sched_getaffinity(Pid::from_raw(first.pid.cast_signed()))
            .map(|set| (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
            .unwrap_or_default();
        // A process that became a separate stage took its CPU time with it.
        let now: HashSet<u32> = shape.pids.iter().copied().collect();
        let lost = stage.pids.iter().any(|pid| !now.contains(pid) && !pipeline.known.contains_key(pid));
        stage.losses += u32::from(lost);
        stage.pids.clone_from(&shape.pids);
    }
    // A process may move to another group after it has started.
    let name = process::control_groups(first.files_of);
    let known = pipeline.groups.iter().position(|(known, _)| *known == name);
    let group = Some(known.unwrap_or(pipeline.groups.len()));
    if known.is_none() {
        pipeline.groups.push((name, ControlGroups::of_process(first.files_of)));
    }
    stage.group = group;
    stage.processes = stage.processes.max(shape.pids.len());
    stage.threads = stage.threads.max(threads);
    stage.ins.clone_from(&shape.ins);
    stage.outs.clone_from(&shape.outs);
    let processes = || shape.pids.iter().filter_map(|pid| pipeline.known.get(pid)).map(|known| &known.process);
    let ends = || processes().flat_map(|process| process.ends.iter().flatten());
    let held = |not: Direction| {
        ends().filter(move |end| end.direction != not).map(|end| end.pipe).collect::<HashSet<PipeId>>()
    };
    let (reads, writes) = (held(Direction::Out), held(Direction::In));
    let leads: HashSet<PipeId> = shape.ins.iter().chain(&shape.outs).copied().collect();
    let is_inner = |pipe: &PipeId| !leads.contains(pipe) && reads.contains(pipe) && writes.contains(pipe);
    let pipes = ends().map(|end| end.pipe).collect::<BTreeSet<PipeId>>();
    (stage.inner, stage.outer) = pipes.into_iter().partition(is_inner);
    stage.has_eventfd = processes().any(|process| process.others.eventfd);
    let sockets = processes().any(|process| !process.others.sockets.is_empty());
    (stage.reads_others, stage.writes_others) = (sockets, sockets);
    for process in processes().take(MAX_PROCESSES_FOR_FILES) {
        if stage.reads_others && stage.writes_others {
            break;
        }
        let (reads, writes) = process.file_directions();
        (stage.reads_others, stage.writes_others) = (stage.reads_others || reads, stage.writes_others || writes);
    }
}

/// Marks pipes within a stage as waits of the stage for itself.
fn mark_inner_pipes(pipeline: &mut WatchedPipeline, place: usize) {
    let stage = &pipeline.stages[place];
    for pid in stage.pids.iter().filter(|_| !stage.inner.is_empty()) {
        let targets = pipeline.known.get_mut(pid).into_iter().flat_map(|known| known.ends.values_mut());
        for target in targets {
            if let WaitTarget::In(pipe) | WaitTarget::Out(pipe) = target
                && stage.inner.contains(pipe)
            {
                *target = WaitTarget::Own;
            }
        }
    }
}

/// Updates the pipes between the current stages. A pipe between the same two stages counts as the same pipe,
/// whatever its inode.
fn update_pipes(pipeline: &mut WatchedPipeline, shapes: &[StageShape], places: &[usize]) {
    let now = Some(Instant::now());
    // The stages that read each pipe, and the pipes between two stages. Shapes beyond the limit share a stage.
    let mut readers: HashMap<PipeId, BTreeSet<usize>> = HashMap::new();
    for (reader, &to) in shapes.iter().zip(places) {
        for &id in &reader.ins {
            readers.entry(id).or_default().insert(to);
        }
    }
    let mut between: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
    for (at, pipe) in pipeline.pipes.iter().enumerate() {
        between.entry((pipe.from, pipe.to)).or_default().push(at);
    }
    let mut seen: HashSet<(PipeId, usize)> = HashSet::new();
    for (writer, &from) in shapes.iter().zip(places) {
        let written: HashSet<PipeId> = writer.outs.iter().copied().collect();
        for &id in writer.outs.iter().filter(|&&id| seen.insert((id, from))) {
            for &to in readers.get(&id).into_iter().flatten().filter(|&&to| to != from) {
                let same = between.entry((from, to)).or_default();
                let current = |pipe: &WatchedPipe| pipe.id == id || !written.contains(&pipe.id);
                match same.iter().copied().find(|&at| current(&pipeline.pipes[at])) {
                    Some(at) if pipeline.pipes[at].id == id => {}
                    Some(at) => (pipeline.pipes[at].id, pipeline.pipes[at].unread_since) = (id, now),
                    None => {
                        same.push(pipeline.pipes.len());
                        pipeline.pipes.push(WatchedPipe::new(from, to, id, now));
                    }
                }
            }
        }
    }
}
