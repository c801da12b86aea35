//! Advice for a verdict: rows of the table of remedies, and remedies for any program. Omits remedies that this machine
//! doesn't allow or has no resources for, and experiments that would outlast the pipeline.

use std::collections::BTreeSet;

use pipemark_model::ByteSize;

use crate::cause::{Activity, Cause, CycleKind};
use crate::causes;
use crate::causes::burst::{self, beyond_pipes, buffer, mebibytes, near_pipe_size};
use crate::causes::small_pipe::{BOTH_WAIT, bound, bursting, is_read_by_sort, is_tiny};
use crate::causes::stopped::STOPPED;
use crate::causes::work::ALSO;
use crate::commands::{experiments, with_stage_between};
use crate::evidence::PeerFigures;
use crate::figures::PipelineFigures;
use crate::hypothesis::Hypothesis;
use crate::judge::BUSY;
use crate::pipe_figures::PipeFigures;
use crate::remedies;
use crate::report::{Remedy, VerdictKind};
use crate::sentences::{name, percent};
use crate::stage_figures::StageFigures;

/// The shortest running time in seconds for which `tune` is advised. A shorter pipeline ends before `tune` has compared
/// anything.
const MIN_TUNE_SECONDS: f64 = 12.0;

/// The remedies, best first.
pub fn remedies_for(verdict: &Hypothesis, figures: &PipelineFigures) -> Vec<Remedy> {
    let mut found = Vec::new();
    let cause = verdict.cause;
    let stage = verdict.stage.and_then(|number| figures.stages.get(number - 1));
    let pipe = verdict.pipe.and_then(|number| figures.pipes.get(number - 1));
    let limit_remedy = pipe_limit_remedy(figures);
    match cause {
        Cause::Stopped | Cause::Activity(Activity::Stopped) => {
            let is_stopped = |one: &&StageFigures| one.stopped > STOPPED || Some(one.number) == verdict.stage;
            let pids: Vec<String> = figures.stages.iter().filter(is_stopped).map(|one| one.pid.to_string()).collect();
            let command = format!("kill -CONT {}", pids.join(" "));
            found.push(Remedy::new(
                "cont",
                "resume the stopped stages with SIGCONT, or with 'fg' in their shell",
                command,
            ));
        }
        Cause::Frozen => {
            let text = "resume the control group: docker unpause, systemctl thaw, or write 0 to its cgroup.freeze; SIGCONT has no effect";
            found.push(Remedy::new("thaw", text, ""));
        }
        Cause::Traced => {
            let tracer = stage.and_then(|stage| stage.tracer.as_deref()).unwrap_or_default();
            let text = if tracer == "strace" {
                "trace fewer calls (strace -f --seccomp-bpf -e trace=…), or run the stage without strace".to_owned()
            } else {
                format!("run the stage without {tracer}")
            };
            found.push(Remedy::new("tracer", text, ""));
        }
        Cause::RateLimit(_)
        | Cause::Declared(_)
        | Cause::Activity(_)
        | Cause::Work(_)
        | Cause::Calls(_)
        | Cause::Held(_)
        | Cause::Starts
        | Cause::Peer(_)
        | Cause::Outside(_) => {
            if let Some(stage) = stage {
                let kind = cause.kind();
                found.extend(remedies::of_stage(stage, cause, figures));
                if let Cause::Declared(facts) = cause {
                    found.extend((causes::declaration(facts).remedies)(figures, verdict));
                }
                found.extend(stage.peer.as_ref().filter(|_| kind == VerdictKind::Peer).map(remedy_beyond));
                if kind == VerdictKind::Stage {
                    found.extend(priority_remedy(stage, figures).or_else(|| remedy_of_any_stage(stage)));
                }
                if kind == VerdictKind::Stage && stage.busy < BUSY && limit_remedy.is_none() {
                    found.extend(remedy_beside(stage, figures));
                }
            }
        }
        Cause::Bursts => {
            if let Some(pipe) = pipe {
                found.push(burst_buffer_remedy(pipe, figures));
                found.extend(remedies_of_ends(pipe, cause, figures));
            }
        }
        Cause::TinyPipe | Cause::SmallPipe if limit_remedy.is_none() => {
            if let Some(pipe) = pipe.filter(|pipe| can_grow(pipe, figures)) {
                found.push(larger_pipe_remedy(pipe, figures, verdict.bound));
                found.extend(near_pipe_size(figures, pipe).map(|_| burst_buffer_remedy(pipe, figures)));
                found.extend(remedies_of_ends(pipe, cause, figures));
            }
        }
        Cause::Deadlock(kind) => found.push(deadlock_remedy(kind)),
        Cause::CpusTaken => {
            found.extend(figures.stages.iter().filter_map(|stage| priority_remedy(stage, figures)));
            let text = "other programs use the CPUs; find them with 'top', then stop them, lower their priority (renice, cpu.weight), or wait";
            found.push(Remedy::new("cpu-busy", text, ""));
        }
        Cause::CpusShared | Cause::CopiesUseCpus => {
            found.extend(remedies::of_less_work(figures));
            found.push(more_cpus_remedy(figures));
        }
        Cause::StopSignals => {
            let text = "raise the limit of the program that stops the stage (cpulimit -l), or run the stage without that program";
            found.push(Remedy::new("cpulimit", text, ""));
        }
        Cause::CpuQuota => {
            found.push(Remedy::new(
                "cpu-quota",
                "raise the CPU limit of the control group (cpu.max, or CPUQuota= in systemd)",
                "",
            ));
        }
        Cause::Balanced | Cause::StageOrPipe | Cause::FewSamples | Cause::BusyAlike => {
            found.extend(remedies::of_two(figures, [verdict.stage, verdict.next]));
            let pipe = pipe.filter(|pipe| limit_remedy.is_none() && can_grow(pipe, figures));
            found.extend(pipe.map(|pipe| larger_pipe_remedy(pipe, figures, None)));
        }
        Cause::TinyPipe
        | Cause::SmallPipe
        | Cause::Unsampled
        | Cause::UnseenInput
        | Cause::UnseenOutput
        | Cause::Idle
        | Cause::TooShort => {}
    }
    found.extend(limit_remedy);
    // Two stages that run the same program have the same remedies.
    let mut known = BTreeSet::new();
    found.retain(|remedy| known.insert(remedy.id.clone()));
    found
}

/// The remedies of the programs at the ends of a pipe.
fn remedies_of_ends(pipe: &PipeFigures, cause: Cause, figures: &PipelineFigures) -> Vec<Remedy> {
    let ends = [pipe.from, pipe.to].map(|number| &figures.stages[number - 1]);
    ends.into_iter().flat_map(|stage| remedies::of_stage(stage, cause, figures)).collect()
}

/// Points to the process at the other end of a socket or pipe.
fn remedy_beyond(peer: &PeerFigures) -> Remedy {
    match peer.pid {
        Some(pid) => Remedy::new("peer", format!("find out what limits {}", peer.name), format!("pipemark why {pid}")),
        None => Remedy::new("peer", format!("check the CPUs and disks of {}, and the network to it", peer.name), ""),
    }
}

/// A remedy for a stage that waits for a CPU and runs at a low priority.
fn priority_remedy(stage: &StageFigures, figures: &PipelineFigures) -> Option<Remedy> {
    let priority = stage.low_priority.as_ref().filter(|_| stage.waiting_for_cpu * stage.present > ALSO)?;
    let all = figures.stages.len() > 1 && figures.stages.iter().all(|one| one.low_priority == stage.low_priority);
    let (who, it) = match all {
        true => ("all stages run".to_owned(), "the pipeline"),
        false => (format!("{} runs", name(figures, stage.number)), "it"),
    };
    let text = format!(
        "{who} at {priority}, so other programs come first: start {it} without nice or chrt, or raise the priority (as root: renice, chrt --other)"
    );
    Some(Remedy::new("cpu-priority", text, ""))
}

fn remedy_of_any_stage(stage: &StageFigures) -> Option<Remedy> {
    let text = "this stage competes for its CPUs with other programs or stages; give those other CPUs (taskset), or a lower priority (renice)";
    // A stage with several threads needs more than one CPU.
    let alone = stage.threads <= 1 && stage.cpu.is_none_or(|cpu| cpu < BUSY);
    (alone && stage.waiting_for_cpu > ALSO).then(|| Remedy::new("cpu-affinity", text, ""))
}

/// Whether a larger capacity would help. A pipe that is already large gains nothing, and a socket pair has no capacity.
fn can_grow(pipe: &PipeFigures, figures: &PipelineFigures) -> bool {
    let largest = figures.limits.largest_pipe.min(1 << 20);
    !pipe.is_socket && pipe.capacity.is_none_or(|capacity| capacity < largest)
}

fn bound_text(bound: Option<f64>) -> String {
    bound.map(|bound| format!(" (at most {bound:.1} times as fast)")).unwrap_or_default()
}

/// The remedy of a larger pipe. How to try it depends on how long the pipeline runs.
fn larger_pipe_remedy(pipe: &PipeFigures, figures: &PipelineFigures, bound: Option<f64>) -> Remedy {
    let pipe_text = burst::size(pipe)
        .map(|size| format!("a pipe that holds bursts of about {}", mebibytes(size)))
        .unwrap_or_else(|| "a larger pipe".to_owned());
    let most = bound_text(bound);
    match &figures.typed {
        Some(_) if !figures.typed_elsewhere && figures.seconds < MIN_TUNE_SECONDS => {
            let text = format!(
                "{pipe_text} lets both stages work at the same time{most}; try larger pipes with 'pipemark tune', which runs the pipeline again"
            );
            Remedy::new("pipe-capacity", text, experiments(figures).unwrap_or_default())
        }
        _ => {
            let text = format!(
                "{pipe_text} lets both stages work at the same time{most}; try it with 'pipemark tune', which keeps it if it helps; for later runs, put 'pipemark relay --capacity 1m' between the two stages"
            );
            let pid = figures.stages[pipe.to - 1].pid;
            Remedy::new("pipe-capacity", text, format!("pipemark tune {pid}"))
        }
    }
}

/// Additional advice: a larger pipe next to the stage of a verdict.
fn remedy_beside(stage: &StageFigures, figures: &PipelineFigures) -> Option<Remedy> {
    let (pipe, _) = bursting(figures)?;
    if beyond_pipes(figures, pipe).is_some() || is_read_by_sort(figures, pipe) || !can_grow(pipe, figures) {
        return None;
    }
    let (from, to) = (name(figures, pipe.from), name(figures, pipe.to));
    let text = format!(
        "a larger pipe between {from} and {to} may also help{}: {from} waits for room {} of the time, {to} waits for data {}; try it with 'pipemark tune'",
        bound_text(bound(figures, pipe, stage)),
        percent(pipe.writer_waits),
        percent(pipe.reader_waits)
    );
    Some(Remedy::new("pipe-capacity-too", text, ""))
}

/// A buffer larger than a pipe, between the two stages. `pipemark relay --buffer` takes less time and CPU than mbuffer:
/// see bench/relay.py.
fn burst_buffer_remedy(pipe: &PipeFigures, figures: &PipelineFigures) -> Remedy {
    let size = buffer(burst::size(pipe).unwrap_or(0.0));
    let mebibytes = size.0 >> 20;
    let between = format!("between {} and {}", name(figures, pipe.from), name(figures, pipe.to));
    let text = format!("a {mebibytes} MiB buffer {between} absorbs bursts that are too large for a pipe");
    let relay = format!("pipemark relay --buffer {mebibytes}m");
    match with_stage_between(figures, pipe.from, pipe.to, &relay) {
        Some(command) if command.remark.is_empty() => Remedy::new("burst-relay-buffer", text, command.text),
        Some(command) => Remedy::new("burst-relay-buffer", format!("{text} {}", command.remark), command.text),
        None => Remedy::new("burst-relay-buffer", format!("{text}: put '{relay}' between the two stages"), ""),
    }
}

fn deadlock_remedy(kind: CycleKind) -> Remedy {
    match kind {
        CycleKind::StandardError => Remedy::new(
            "communicate",
            "read standard output and standard error concurrently (in Python: communicate(), or a thread for each), or redirect standard error (2>FILE, stderr=DEVNULL)",
            "",
        ),
        CycleKind::OwnWriteEnd | CycleKind::WriteEnd => Remedy::new(
            "close-write-end",
            "close the write end in each process that only reads (close() after fork, O_CLOEXEC, or 'exec N>&-' in a shell)",
            "",
        ),
        CycleKind::Answers => Remedy::new(
            "stdbuf-coprocess",
            "the child keeps its answer in its output buffer; run the child under stdbuf -oL, or with its option for line buffering",
            "",
        ),
        CycleKind::Fifos => Remedy::new(
            "fifo-order",
            "open the FIFOs in the same order in all processes, or open one of them for reading and writing (exec 3<>FIFO)",
            "",
        ),
        CycleKind::FileLock | CycleKind::Other => Remedy::new(
            "read-while-writing",
            "make one process read while it writes (with a thread or poll), or put a file between the processes; a pipe holds only 64 KiB",
            "",
        ),
    }
}

fn more_cpus_remedy(figures: &PipelineFigures) -> Remedy {
    let bound = figures.stages.iter().map(|stage| stage.cpus.len()).filter(|&count| count > 0).min().unwrap_or(0);
    let all = figures.limits.cpus;
    if bound < all {
        let text = format!("some stages are restricted to {bound} of {all} CPUs (taskset, cpuset); let them use all");
        Remedy::new("more-cpus", text, "")
    } else {
        Remedy::new("more-cpus", "add CPUs, or reduce the number of threads of some stages", "")
    }
}

/// A remedy for the per-user limit of pipes, if this limit keeps new pipes small and their size matters. At the limit,
/// no pipe can be enlarged.
fn pipe_limit_remedy(figures: &PipelineFigures) -> Option<Remedy> {
    // Over the limit a new pipe has two pages.
    let page = figures.limits.page;
    let small = |pipe: &&PipeFigures| {
        !pipe.is_socket
            && pipe.capacity.is_some_and(|capacity| capacity <= 2 * page)
            && (pipe.writer_waits.min(pipe.reader_waits) >= BOTH_WAIT || is_tiny(figures, pipe))
    };
    let pipe = figures.pipes.iter().find(small)?;
    let capacity = ByteSize(pipe.capacity.unwrap_or(0));
    let default = ByteSize(16 * page);
    let (from, to) = (name(figures, pipe.from), name(figures, pipe.to));
    let text = if figures.limits.pipes_exhausted {
        format!(
            "the pipe from {from} to {to} holds only {capacity} instead of {default}, because this user's pipes have reached the limit /proc/sys/fs/pipe-user-pages-soft; end programs that have many pipes open, or raise the limit as root"
        )
    } else {
        format!(
            "the pipe from {from} to {to} holds only {capacity} instead of {default}: a program set its capacity, or this user's pipes had reached the limit /proc/sys/fs/pipe-user-pages-soft when it was created"
        )
    };
    Some(Remedy::new("pipe-user-pages", text, "sudo sysctl fs.pipe-user-pages-soft=65536"))
}
