//! Finds a pipeline's bottleneck from its figures. Pure: no clock and no I/O.

use pipemark_model::ByteSize;

use crate::advice::with_remedies;
use crate::figures::PipelineFigures;
use crate::report::{Certainty, PipeFigures, PipelineVerdict, StageFigures, VerdictKind};
use crate::{burst, calls, held, peer, programs, starts};

/// The minimum number of samples for a verdict.
const MIN_SAMPLES: u32 = 20;
/// A CPU limit, a tracer or repeated stop signals limit a stage only if they stop it for at least this share of the
/// time.
const THROTTLED: f64 = 0.10;
/// Stages are short of CPUs if they need more than this multiple of the CPUs that they may use.
const CPUS_WANTED: f64 = 1.25;
/// A stage competes for CPUs if it runs or waits for a CPU for at least this share of the time.
const RUNS: f64 = 0.15;
/// A stage that is busy for more than this share of the time is not held back by bursts.
pub(crate) const BUSY: f64 = 0.85;
/// The busy share above which a faster stage may gain more than a larger pipe.
const MOSTLY_BUSY: f64 = 0.70;
/// Both a faster stage and a larger pipe are named if their gains differ by less than this.
const EITHER: f64 = 0.05;
/// A pipe is too small only if each of its two ends waits for at least this share of the time.
pub(super) const BOTH_WAIT: f64 = 0.12;
/// The minimum number of samples in which each end of a pipe waits, for a verdict on the pipe. `BOTH_WAIT` of
/// `MIN_SAMPLES` would be only two.
const MIN_WAITS: f64 = 10.0;
/// A pipe has bursts if the waits of its two ends alternate at least this many times.
const MIN_TURNS: u32 = 3;
/// A stage with more context switches per second than this spends part of its time on these switches.
const OFTEN_SWITCHED: f64 = 1000.0;
/// Two stages are balanced if their busy shares differ by less than this.
pub(crate) const BALANCED: f64 = 0.10;
/// The minimum number of samples that distinguish stages that are nearly equally busy.
const FEW_SAMPLES: u32 = 60;
/// Besides the longest state, a verdict names a state whose share of the time exceeds this.
pub(super) const ALSO: f64 = 0.2;
/// A stage with at most this busy share waits nearly all the time.
const MOSTLY_WAITING: f64 = 0.1;
/// No data moves if the busy shares of all stages add up to less than this.
const IDLE: f64 = 0.1;
/// A stage that waits for a CPU for more than this share of the time gets faster when other stages use less CPU time.
const CPU_SHORT: f64 = 0.1;
/// The share of its time that a program may lose while another program computes on the same core. A virtual machine
/// doesn't show which CPUs share a core. On a development machine, two gzip processes lost 0.05.
const CORE_SHARED: f64 = 0.3;
/// A stage counts as stopped if it is stopped for more than this share of the time.
pub(super) const STOPPED: f64 = 0.5;
/// A stage can't be judged if its state is unknown for more than this share of the time.
const UNKNOWN: f64 = 0.5;

impl PipelineVerdict {
    pub(crate) fn new(kind: VerdictKind, reason: &str, text: String) -> PipelineVerdict {
        let cause = reason.to_owned();
        PipelineVerdict { kind, reason: reason.to_owned(), cause, text, ..PipelineVerdict::default() }
    }

    /// A report that there is no verdict, with the reason.
    pub fn unknown(reason: &str, text: impl Into<String>) -> PipelineVerdict {
        PipelineVerdict::new(VerdictKind::Unknown, reason, text.into())
    }
}

/// If a stage waits for the disk for at least this share of the time, its kernel time counts as work for the disk.
const DISK_MATTERS: f64 = 0.3;

/// What a stage is busy with, and the share of time of each, largest first.
pub fn reasons(stage: &StageFigures) -> Vec<(&'static str, f64)> {
    let mut all = vec![
        ("computing", stage.computing),
        ("waiting for a CPU", stage.waiting_for_cpu),
        ("waiting for the disk", stage.disk),
        ("waiting for the network", stage.network),
        ("waiting for the terminal", stage.terminal),
        ("sleeping", stage.sleep),
        ("waiting for its children", stage.children),
        ("waiting for a lock", stage.lock),
        ("stopped", stage.stopped),
        ("waiting for something else", stage.other),
        ("hidden", stage.unknown),
    ];
    all.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    // If computing and waiting for a CPU together outweigh every other reason, the larger of the two comes first.
    let wants = stage.computing + stage.waiting_for_cpu;
    let on_cpu = |reason: &str| ["computing", "waiting for a CPU"].contains(&reason);
    let longest = all.iter().position(|(reason, _)| on_cpu(reason));
    // A stage that submits disk requests spends much of its CPU time in the kernel. Fewer requests would save that
    // time.
    let kernel = stage.kernel.unwrap_or(0.0).min(stage.computing);
    let submits = stage.disk >= DISK_MATTERS
        && stage.disk + kernel > 2.0 * (stage.computing - kernel)
        && all.iter().all(|&(reason, share)| on_cpu(reason) || share <= stage.disk + kernel);
    if submits && let Some(at) = all.iter().position(|&(reason, _)| reason == "waiting for the disk") {
        all[..=at].rotate_right(1);
        return all;
    }
    if let Some(at) = longest.filter(|_| all.iter().all(|&(reason, share)| on_cpu(reason) || share < wants)) {
        all[..=at].rotate_right(1);
    }
    all
}

/// The name of a stage, followed by its number if other stages have the same name.
pub fn name(figures: &PipelineFigures, number: usize) -> String {
    let name = &figures.stages[number - 1].name;
    let same = figures.stages.iter().filter(|stage| stage.name == *name).count();
    if same > 1 { format!("{name} (stage {number})") } else { name.clone() }
}

/// The share of the whole time for which a stage is busy, from 0 to 1. Samples in which one of its threads waits for
/// input while others work don't count as busy, because the stage could take more input.
pub(crate) fn busy(stage: &StageFigures) -> f64 {
    if is_unsampled(stage) { 0.0 } else { (stage.busy - stage.hungry).max(0.0) * stage.present }
}

/// The busy share minus the time in which the stage waits for a CPU or for something unknown. The unknown thing may be
/// another stage.
fn working_share(stage: &StageFigures) -> f64 {
    (busy(stage) - (stage.waiting_for_cpu + stage.other) * stage.present).max(0.0)
}

/// Whether part of a stage's busy time is overhead of system calls, context switches or process starts. Faster
/// neighbours, larger pieces or larger pipes reduce this overhead, so the busy share doesn't bound the gain.
fn has_hidden_cost(stage: &StageFigures) -> bool {
    let switched = stage.switches_per_second.is_some_and(|switches| switches > OFTEN_SWITCHED);
    switched || calls::matter(stage) || starts::matter(stage)
}

/// The largest bound on the gain that is reported. A larger bound would mean that the other stages are hardly busy.
/// Wake-ups then take most of their time, and become fewer when more data arrives at once.
const MAX_BOUND: f64 = 10.0;

/// The kind's name in JSON.
pub(crate) fn kind_name(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Stage => "stage",
        VerdictKind::Pipe => "pipe",
        VerdictKind::Cpu => "cpu",
        VerdictKind::Throttled => "throttled",
        VerdictKind::Balanced => "balanced",
        VerdictKind::Calls => "calls",
        VerdictKind::Held => "held",
        VerdictKind::Burst => "burst",
        VerdictKind::Deadlock => "deadlock",
        VerdictKind::Peer => "peer",
        VerdictKind::Starts => "starts",
        VerdictKind::Inconclusive => "inconclusive",
        VerdictKind::Unknown => "unknown",
    }
}

/// Formats a share in whole per cent.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// The verdict that there were too few samples.
pub(super) fn too_short(samples: u32) -> PipelineVerdict {
    let text = format!("Too short for a verdict: {samples} samples; at least {MIN_SAMPLES} (0.2 s) are needed.");
    PipelineVerdict::unknown("short", text)
}

/// The verdict on a command that ended with this code. If a shell could not run the command, the verdict says so
/// instead of reporting too few samples.
pub(super) fn of_failed(verdict: PipelineVerdict, code: i32) -> PipelineVerdict {
    let why = match code {
        2 => "a syntax error, if the shell reported one",
        126 => "not executable",
        127 => "command not found",
        _ => return verdict,
    };
    if !["short", "ended"].contains(&verdict.reason.as_str()) {
        return verdict;
    }
    let text = format!("The command failed with exit code {code} ({why}) before it could be sampled.");
    PipelineVerdict::unknown("failed", text)
}

/// The verdict on the figures of a period.
pub fn verdict(figures: &PipelineFigures) -> PipelineVerdict {
    if figures.stages.is_empty() {
        return PipelineVerdict::unknown("ended", "Nothing to sample: the pipeline had already ended.");
    }
    if figures.samples < MIN_SAMPLES {
        return too_short(figures.samples);
    }
    // Causes that affect all stages come first.
    let shared = deadlock(figures)
        .or_else(|| frozen(figures))
        .or_else(|| traced(figures))
        .or_else(|| stopped_repeatedly(figures))
        .or_else(|| stopped(figures))
        .or_else(|| throttled(figures));
    if let Some(verdict) = shared.or_else(|| cpus_taken(figures)) {
        return with_remedies(verdict, figures);
    }
    let order = busiest_first(figures);
    // Small pieces and process starts keep all stages busy with overhead.
    let waste = || calls::calls_verdict(figures, &order).or_else(|| starts::starts_verdict(figures, &order));
    let shared = too_few_cpus(figures).or_else(|| copies_use_all_cpus(figures));
    if let Some(verdict) = shared.map(|verdict| waste().unwrap_or(verdict)) {
        return with_remedies(verdict, figures);
    }
    let parts = separate_pipelines(figures);
    if parts.len() < 2 {
        return verdict_on_pipeline(figures);
    }
    // Of several pipelines in a script, the one that existed longest determines the verdict.
    let present = |part: &[usize]| part.iter().map(|&number| figures.stages[number - 1].present).fold(0.0, f64::max);
    let only = |part: &[usize]| {
        let mut figures = figures.clone();
        figures.stages.iter_mut().filter(|stage| !part.contains(&stage.number)).for_each(|stage| stage.present = 0.0);
        (present(part), verdict_on_pipeline(&figures))
    };
    let each: Vec<(f64, PipelineVerdict)> = parts.iter().map(|part| only(part)).collect();
    let texts: Vec<&str> = each.iter().map(|(_, verdict)| verdict.text.as_str()).collect();
    let text = format!("{} separate pipelines. {}", parts.len(), texts.join(" "));
    let longest = each.iter().rev().max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, verdict)| verdict.clone());
    longest.map_or_else(|| verdict_on_pipeline(figures), |verdict| PipelineVerdict { text, ..verdict })
}

/// The numbers of the stages of each pipeline. There is one pipeline, unless several were requested or a script runs
/// several.
fn separate_pipelines(figures: &PipelineFigures) -> Vec<Vec<usize>> {
    // What seem to be separate pipelines may be joined by a hidden process.
    if figures.stages.iter().any(|stage| stage.hidden) {
        return Vec::new();
    }
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for pipe in &figures.pipes {
        let (mut joined, apart): (Vec<_>, Vec<_>) =
            parts.into_iter().partition(|part| part.contains(&pipe.from) || part.contains(&pipe.to));
        joined.push(vec![pipe.from, pipe.to]);
        parts = apart;
        parts.push(joined.concat());
    }
    parts.sort_by_key(|part| part.iter().min().copied());
    parts
}

/// The verdict on one pipeline, ignoring stages of others.
fn verdict_on_pipeline(figures: &PipelineFigures) -> PipelineVerdict {
    let order = busiest_first(figures);
    let busiest = order[0];
    let verdict = hidden_stage(figures, busiest)
        .or_else(|| outside_limit(figures, busiest))
        .or_else(|| held::held_verdict(figures))
        .or_else(|| all_idle(figures))
        .or_else(|| deliberate_limit(figures, busiest))
        .or_else(|| lock_queue(figures, busiest))
        .or_else(|| calls::calls_verdict(figures, &order))
        .or_else(|| starts::starts_verdict(figures, &order))
        .or_else(|| tiny_pipe(figures))
        .or_else(|| small_pipe(figures, &order))
        .or_else(|| inconclusive(figures, &order))
        .or_else(|| balanced(figures, &order))
        .or_else(|| peer::peer_verdict(figures, busiest))
        .unwrap_or_else(|| slow_stage(figures, &order));
    with_remedies(with_polling(verdict, figures), figures)
}

/// Adds a sentence about a stage that polls its input.
fn with_polling(mut verdict: PipelineVerdict, figures: &PipelineFigures) -> PipelineVerdict {
    for stage in figures.stages.iter().filter(|stage| stage.polls && Some(stage.number) != verdict.stage) {
        verdict.text.push_str(&format!(
            " {} reads in a loop instead of waiting for input, so its {} of a CPU are mostly wasted.",
            name(figures, stage.number),
            percent(stage.cpu.unwrap_or(0.0))
        ));
    }
    verdict
}

fn busiest_first(figures: &PipelineFigures) -> Vec<&StageFigures> {
    let mut order: Vec<&StageFigures> = figures.stages.iter().collect();
    order.sort_by(|a, b| busy(b).total_cmp(&busy(a)));
    // If two stages are about equally busy, the one that works longer uses the CPU that the other one waits for.
    if let [first, second, ..] = order[..]
        && busy(first) - busy(second) <= 2.0 * BALANCED
        && working_share(second) - working_share(first) > 2.0 * BALANCED
    {
        order.swap(0, 1);
    }
    order
}

/// The verdict that processes wait for each other in a cycle; `None` if they don't.
fn deadlock(figures: &PipelineFigures) -> Option<PipelineVerdict> {
    let cycle = figures.cycle.as_ref()?;
    let with = |pid: u32| figures.stages.iter().find(|stage| stage.pids.contains(&pid)).map(|stage| stage.number);
    let verdict = PipelineVerdict::new(VerdictKind::Deadlock, "deadlock", cycle.text());
    let stage = cycle.steps.iter().find_map(|step| with(step.pid));
    Some(PipelineVerdict { stage, cause: cycle.cause().to_owned(), ..verdict })
}

/// The verdict `Inconclusive`, if too few samples or too much overhead make it impossible to distinguish the two
/// busiest stages.
fn inconclusive(figures: &PipelineFigures, order: &[&StageFigures]) -> Option<PipelineVerdict> {
    let [first, second, ..] = order else { return None };
    let gap = busy(first) - busy(second);
    let few = figures.samples < FEW_SAMPLES && gap > BALANCED && gap <= 2.5 * BALANCED && busy(first) < BUSY;
    // Part of their time may be overhead that one stage causes in the other.
    let costly = has_hidden_cost(first) || has_hidden_cost(second);
    let apart = working_share(first) - working_share(second) > 2.0 * BALANCED;
    let close = costly && gap > BALANCED && gap <= 2.0 * BALANCED && busy(second) >= MOSTLY_BUSY && !apart;
    if !few && !close {
        return None;
    }
    let (one, other) = (name(figures, first.number), name(figures, second.number));
    let text = format!(
        "Inconclusive after {} samples: either {one} (busy {}) or {other} (busy {}) holds the pipeline back.",
        figures.samples,
        percent(busy(first)),
        percent(busy(second))
    );
    let verdict =
        PipelineVerdict::new(VerdictKind::Inconclusive, if few { "too few samples" } else { "busy alike" }, text);
    let (stage, next) = (Some(first.number), Some(second.number));
    Some(PipelineVerdict { stage, next, sure: Certainty::Unsure, ..verdict })
}

/// The verdict that stages are frozen because their control group is paused, for example by `docker pause`.
fn frozen(figures: &PipelineFigures) -> Option<PipelineVerdict> {
    let all: Vec<&StageFigures> = figures.stages.iter().filter(|stage| stage.frozen).collect();
    let names: Vec<String> = all.iter().map(|stage| name(figures, stage.number)).collect();
    let text = match &names[..] {
        [] => return None,
        [one] => format!("{one} is frozen: its control group is paused, and no data moves through it."),
        more => format!("These stages are frozen, because their control group is paused: {}.", more.join(", ")),
    };
    let verdict = PipelineVerdict::new(VerdictKind::Stage, "frozen", text);
    Some(PipelineVerdict { stage: Some(all[0].number), cause: "frozen control group".to_owned(), ..verdict })
}

/// The verdict that a tracer, such as strace, slows the busiest stage by stopping it.
fn traced(figures: &PipelineFigures) -> Option<PipelineVerdict> {
    let order = busiest_first(figures);
    let is_slowed = |stage: &&&StageFigures| stage.stopped >= THROTTLED && busy(stage) >= busy(order[0]) - BALANCED;
    let stage = order.iter().find(is_slowed)?;
    let tracer = stage.tracer.as_ref()?;
    let text = format!(
        "{tracer} traces {}, and stops it {} of the time.",
        name(figures, stage.number),
        percent(stage.stopped)
    );
    let verdict = PipelineVerdict::new(VerdictKind::Stage, "traced", text);
    Some(PipelineVerdict { stage: Some(stage.number), cause: format!("traced by {tracer}"), ..verdict })
}

/// The verdict that another program limits the busiest stage by stopping it repeatedly, as cpulimit does.
fn stopped_repeatedly(figures: &PipelineFigures) -> Option<PipelineVerdict> {
    /// Nobody presses Ctrl-Z and types `fg` that often.
    const MIN_STOPS: u32 = 4;
    const MIN_STOPS_PER_SECOND: f64 = 1.0;
    let order = busiest_first(figures);
    let is_limited = |stage: &&&StageFigures| {
        stage.stopped >= THROTTLED
            && stage.stops >= MIN_STOPS
            && stage.stops_per_second >= MIN_STOPS_PER_SECOND
            && stage.cpu.is_none_or(|cpu| cpu > 0.0)
            && busy(stage) >= busy(order[0]) - BALANCED
    };
    let stage = order.iter().find(is_limited)?;
    let text = format!(
        "{} is stopped {} of the time: another program, such as cpulimit, stops and resumes it repeatedly.",
        name(figures, stage.number),
        percent(stage.stopped)
    );
    let verdict = PipelineVerdict::new(VerdictKind::Throttled, "stopped repeatedly", text);
    Some(PipelineVerdict { stage: Some(stage.number), cause: "CPU limit by stop signals".to_owned(), ..verdict })
}

/// The verdict that several stages are stopped. Ctrl-Z stops all of them.
fn stopped(figures: &PipelineFigures) -> Option<PipelineVerdict> {
    let all: Vec<&StageFigures> = figures.stages.iter().filter(|stage| stage.stopped > STOPPED).collect();
    let [first, _, ..] = all[..] else { return None };
    let names: Vec<String> = all.iter().map(|stage| name(figures, stage.number)).collect();
    let text =
        format!("These stages are stopped (Ctrl-Z or SIGSTOP): {}. No data moves through them.", names.join(", "));
    let verdict = PipelineVerdict::new(VerdictKind::Stage, "stopped", text);
    Some(PipelineVerdict { stage: Some(first.number), ..verdict })
}

fn throttled(figures: &PipelineFigures) -> Option<PipelineVerdict> {
    let share = |stage: &StageFigures| stage.throttled.unwrap_or(0.0);
    let most = figures.stages.iter().max_by(|a, b| share(a).total_cmp(&share(b)))?;
    if share(most) < THROTTLED {
        return None;
    }
    let text = format!(
        "A CPU limit slows the pipeline: the control group of {} was throttled {} of the time.",
        name(figures, most.number),
        percent(share(most))
    );
    let verdict = PipelineVerdict::new(VerdictKind::Throttled, "CPU limit", text);
    Some(PipelineVerdict { stage: Some(most.number), cause: "CPU limit of a cgroup".to_owned(), ..verdict })
}

/// The verdict that other programs use the CPUs, if the stages mostly wait for one.
fn cpus_taken(figures: &PipelineFigures) -> Option<PipelineVerdict> {
    /// The minimum number of CPUs that the stages wait for.
    const WAITED: f64 = 0.5;
    /// The minimum ratio of the CPUs that the stages wait for to the CPUs that they use.
    const MORE: f64 = 2.0;
    /// The minimum share of all CPUs that other programs use.
    const OTHERS: f64 = 0.5;
    let sum = |of: fn(&StageFigures) -> Option<f64>| {
        figures.stages.iter().filter_map(|stage| Some(of(stage)? * stage.present)).sum::<f64>()
    };
    let (used, waited) = (sum(|stage| stage.cpu), sum(|stage| stage.cpu_wait));
    let all = figures.stages.iter().map(|stage| stage.cpus.len()).max().filter(|&count| count > 0)? as f64;
    let others = all - figures.limits.idle_cpus? - used;
    if waited < WAITED || waited < MORE * used || others < OTHERS * all {
        return None;
    }
    let text = format!(
        "Other programs use {others:.1} of {all:.0} CPUs: the stages use {used:.1} and wait for {waited:.1} more."
    );
    Some(PipelineVerdict::new(VerdictKind::Cpu, "CPUs are taken by other programs", text))
}

/// The verdict that the stages together need more CPUs than they may use.
fn too_few_cpus(figures: &PipelineFigures) -> Option<PipelineVerdict> {
    let running = |stage: &StageFigures| stage.computing + stage.waiting_for_cpu;
    let wanted = |stage: &StageFigures| match (stage.cpu, stage.cpu_wait) {
        (Some(run), Some(wait)) => (run + wait) * stage.present,
        _ => running(stage) * stage.present,
    };
    let short = figures.stages.iter().filter(|stage| !stage.cpus.is_empty()).find_map(|stage| {
        let within =
            |other: &&StageFigures| !other.cpus.is_empty() && other.cpus.iter().all(|cpu| stage.cpus.contains(cpu));
        let rivals: Vec<&StageFigures> = figures.stages.iter().filter(within).collect();
        let sum: f64 = rivals.iter().map(|stage| wanted(stage)).sum();
        let several = rivals.iter().filter(|stage| running(stage) * stage.present >= RUNS).count() > 1;
        let several = several && more_cpus_gain_most(&rivals, stage.cpus.len() as f64);
        (several && sum > CPUS_WANTED * stage.cpus.len() as f64).then_some((stage.cpus.len(), sum))
    });
    let (cpus, sum) = short?;
    let text = format!(
        "The stages compete for CPUs: together they need {sum:.1} CPUs, but may use only {cpus}. Making any stage faster helps all of them."
    );
    Some(PipelineVerdict::new(VerdictKind::Cpu, "CPUs are shared", text))
}

/// The verdict that several stages run the same program side by side, and that they use all CPUs.
fn copies_use_all_cpus(figures: &PipelineFigures) -> Option<PipelineVerdict> {
    /// The minimum number of CPUs that a copy uses.
    const MIN_CPUS: f64 = 0.5;
    /// The minimum share of all CPUs that the copies use.
    const MIN_SHARE: f64 = 0.75;
    /// The minimum share of all CPUs that all stages use or wait for.
    const MIN_WANTED: f64 = 0.95;
    let wanted = |stage: &StageFigures| stage.cpu_wait.unwrap_or(0.0) * stage.present;
    let used = |stage: &StageFigures| stage.cpu.unwrap_or(stage.computing) * stage.present;
    let most = figures.stages.iter().max_by(|a, b| used(a).total_cmp(&used(b)))?;
    let program = Some(programs::program(&most.words)).filter(|program| !program.is_empty())?;
    let is_copy = |stage: &&StageFigures| programs::program(&stage.words) == program && used(stage) >= MIN_CPUS;
    let copies: Vec<&StageFigures> = figures.stages.iter().filter(is_copy).collect();
    let cpus = most.cpus.len();
    let full = |sum: f64, share: f64| sum >= share * cpus as f64;
    let all_used = full(copies.iter().map(|stage| used(stage)).sum(), MIN_SHARE)
        && full(figures.stages.iter().map(|stage| used(stage) + wanted(stage)).sum(), MIN_WANTED);
    let in_series = copies.iter().any(|one| copies.iter().any(|other| feeds(figures, one.number, other.number)));
    if cpus < 2 || copies.len() < 2 || !all_used || in_series {
        return None;
    }
    let (count, name) = (copies.len(), &most.name);
    let text =
        format!("{count} stages that run {name} use all {cpus} CPUs, so more threads or processes gain nothing.");
    Some(PipelineVerdict::new(VerdictKind::Cpu, "CPUs are shared", text))
}

/// Whether the output of one stage reaches another stage, directly or through other stages.
fn feeds(figures: &PipelineFigures, from: usize, to: usize) -> bool {
    let mut reached = vec![from];
    let mut at = 0;
    while let Some(&number) = reached.get(at) {
        let next = figures.pipes.iter().filter(|pipe| pipe.from == number).map(|pipe| pipe.to);
        let new: Vec<usize> = next.filter(|next| !reached.contains(next)).collect();
        reached.extend(new);
        at += 1;
    }
    reached[1..].contains(&to)
}

/// Whether stages that share CPUs gain more if each has a CPU of its own than if one of them needs half the CPU time.
fn more_cpus_gain_most(stages: &[&StageFigures], cpus: f64) -> bool {
    /// The minimum ratio of the gain from more CPUs to the gain from a faster stage.
    const CLEARLY: f64 = 1.15;
    let used = |stage: &StageFigures| stage.cpu.unwrap_or(stage.computing) * stage.present;
    // The share of time for which a stage would be busy if each of its threads had a CPU.
    let needs = |stage: &StageFigures| {
        let alone = (stage.busy - stage.waiting_for_cpu) * stage.present;
        if stage.threads > 1 { alone.min(used(stage) / cpus.min(stage.threads as f64)) } else { alone }
    };
    let all: f64 = stages.iter().map(|stage| used(stage)).sum();
    let longest = |factor: &dyn Fn(usize) -> f64| {
        let needed = stages.iter().enumerate().map(|(at, stage)| needs(stage) * factor(at));
        needed.fold(0.0, f64::max)
    };
    let with_more = longest(&|_| 1.0);
    let faster = |at: usize| {
        let halved = longest(&|other| if other == at { 0.5 } else { 1.0 });
        halved.max((all - used(stages[at]) / 2.0) / cpus)
    };
    let with_faster = (0..stages.len()).map(faster).fold(f64::INFINITY, f64::min);
    with_more * CLEARLY < with_faster
}

/// The share of time in which a stage's activity is unknown. For a hidden stage, this includes `other`: waits that its
/// neighbours' states don't explain.
fn unknown_share(stage: &StageFigures) -> f64 {
    stage.unknown + if stage.hidden { stage.other } else { 0.0 }
}

/// Whether a stage can't be sampled. Such a stage has no shares, so it can't be shown to be the bottleneck.
pub fn is_unsampled(stage: &StageFigures) -> bool {
    unknown_share(stage) > UNKNOWN
}

fn hidden_stage(figures: &PipelineFigures, busiest: &StageFigures) -> Option<PipelineVerdict> {
    let longer = |stage: &&StageFigures| is_unsampled(stage) && unknown_share(stage) * stage.present > busy(busiest);
    let unsampled: Vec<String> =
        figures.stages.iter().filter(longer).map(|stage| name(figures, stage.number)).collect();
    let text = || format!("The bottleneck may be {}, which can't be sampled here.", unsampled.join(", "));
    (!unsampled.is_empty()).then(|| PipelineVerdict::unknown("hidden", text()))
}

/// The verdict that all stages wait for each other. While data moves, at least one stage is busy at any moment.
fn all_idle(figures: &PipelineFigures) -> Option<PipelineVerdict> {
    let busy: f64 = figures.stages.iter().map(|stage| stage.busy * stage.present).sum();
    let text = "No data moves: the stages wait for each other, or for a pipe that no process uses.";
    (busy < IDLE).then(|| PipelineVerdict::unknown("idle", text))
}

/// The verdict that a process outside the pipeline is the bottleneck: a first stage waits for input, or a last stage
/// waits for room in its output pipe. `None` if there is no such wait.
fn outside_limit(figures: &PipelineFigures, busiest: &StageFigures) -> Option<PipelineVerdict> {
    let fed = |stage: &&StageFigures| figures.pipes.iter().any(|pipe| pipe.to == stage.number);
    let read = |stage: &&StageFigures| figures.pipes.iter().any(|pipe| pipe.from == stage.number);
    let most = |share: fn(&StageFigures) -> f64, ends: Vec<&StageFigures>| {
        ends.into_iter().map(|stage| (share(stage) * stage.present, stage.number)).max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let input = most(|stage| stage.starved, figures.stages.iter().filter(|stage| !fed(stage)).collect());
    let output = most(|stage| stage.blocked, figures.stages.iter().filter(|stage| !read(stage)).collect());
    let longer = |(share, _): &(f64, usize)| *share > busiest.busy * busiest.present + BALANCED;
    let beyond = |(share, number): (f64, usize), what: &str| {
        let found = figures.stages[number - 1].peer.as_ref().filter(|peer| peer.pipe)?;
        let (waits, who) = (percent(share), peer::describe_peer(found));
        let text = format!(
            "{} waits {waits} of the time {what} {who}, a process outside this pipeline.",
            name(figures, number)
        );
        let verdict = PipelineVerdict::new(VerdictKind::Peer, "waiting for the other end of a pipe", text);
        let role = if found.sends { "receiver" } else { "sender" };
        Some(PipelineVerdict { stage: Some(number), cause: format!("peer: {role} ({})", found.name), ..verdict })
    };
    if let Some(verdict) = input.filter(longer).and_then(|input| beyond(input, "for data from")) {
        return Some(verdict);
    }
    // A stage in the middle may wait for a pipe that isn't part of the pipeline, such as a FIFO.
    let waited = |number: usize, end: fn(&PipeFigures) -> usize, share: fn(&PipeFigures) -> f64| {
        figures.pipes.iter().filter(|pipe| end(pipe) == number).map(share).fold(0.0, f64::max)
    };
    let elsewhere = |stage: &StageFigures| {
        let for_room = stage.blocked - waited(stage.number, |pipe| pipe.from, |pipe| pipe.writer_waits);
        let for_data = stage.starved - waited(stage.number, |pipe| pipe.to, |pipe| pipe.reader_waits);
        let sends = stage.peer.as_ref().is_some_and(|peer| peer.sends);
        (if sends { for_room } else { for_data } * stage.present, stage.number)
    };
    let inside = figures.stages.iter().filter(|stage| fed(stage) && read(stage)).map(elsewhere);
    let inside = inside.max_by(|a, b| a.0.total_cmp(&b.0)).filter(longer).filter(|(share, _)| *share >= 0.5);
    let sends = |number: usize| figures.stages[number - 1].peer.as_ref().is_some_and(|peer| peer.sends);
    let what = |number| if sends(number) { "for room in a pipe to" } else { "for data from" };
    if let Some(verdict) = inside.and_then(|(share, number)| beyond((share, number), what(number))) {
        return Some(verdict);
    }
    if let Some((share, number)) = input.filter(longer) {
        let text = format!(
            "The input holds the pipeline back: {} waits {} of the time for data from a pipe whose writer is not visible.",
            name(figures, number),
            percent(share)
        );
        return Some(PipelineVerdict { stage: Some(number), ..PipelineVerdict::unknown("input", text) });
    }
    let (share, number) = output.filter(longer)?;
    if let Some(verdict) = beyond((share, number), "for room in a pipe to") {
        return Some(verdict);
    }
    let text = format!(
        "The reader of the output holds the pipeline back: {} waits {} of the time for room in a pipe whose reader is not visible.",
        name(figures, number),
        percent(share)
    );
    Some(PipelineVerdict { stage: Some(number), ..PipelineVerdict::unknown("output", text) })
}

/// The verdict that the busiest stage limits its rate on purpose. Such a stage may wait in any system call.
fn deliberate_limit(figures: &PipelineFigures, busiest: &StageFigures) -> Option<PipelineVerdict> {
    let waits = busiest.sleep + busiest.network + busiest.other + busiest.lock;
    let option = programs::rate_limit(&busiest.words)?;
    if waits < 0.5 || waits < 2.0 * (busiest.computing + busiest.waiting_for_cpu) {
        return None;
    }
    let text = format!(
        "{} limits its own rate ({option}): it waits {} of the time.",
        name(figures, busiest.number),
        percent(waits)
    );
    let verdict = PipelineVerdict::new(VerdictKind::Stage, reasons(busiest)[0].0, text);
    Some(PipelineVerdict { stage: Some(busiest.number), cause: "rate limit on purpose".to_owned(), ..verdict })
}

/// The verdict that the processes of the busiest stage wait for each other's file lock.
fn lock_queue(figures: &PipelineFigures, busiest: &StageFigures) -> Option<PipelineVerdict> {
    const MIN_SHARE: f64 = 0.4;
    if busiest.queued < MIN_SHARE {
        return None;
    }
    let text = format!(
        "{} holds the pipeline back: for {} of the time, more of its processes wait for a file lock than run.",
        name(figures, busiest.number),
        percent(busiest.queued)
    );
    let verdict = PipelineVerdict::new(VerdictKind::Stage, "waiting for a lock", text);
    Some(PipelineVerdict { stage: Some(busiest.number), cause: "waiting for a file lock".to_owned(), ..verdict })
}

/// Whether a pipe is so small that its ends spend their time waking each other. Samples show that time as work.
pub(super) fn is_tiny(figures: &PipelineFigures, pipe: &PipeFigures) -> bool {
    /// The capacity in bytes of a new pipe if its user is over the limit for pipes: two pages.
    const TINY: u64 = 8192;
    /// The minimum time of a context switch in seconds.
    const SWITCH: f64 = 5e-6;
    /// The share of a CPU above which context switches matter.
    const MATTERS: f64 = 0.1;
    let switches = |number: usize| figures.stages[number - 1].switches_per_second.unwrap_or(0.0);
    let tiny = !pipe.is_socket && pipe.capacity.is_some_and(|capacity| capacity <= TINY);
    tiny && (switches(pipe.from) + switches(pipe.to)) * SWITCH >= MATTERS
}

fn tiny_pipe(figures: &PipelineFigures) -> Option<PipelineVerdict> {
    let waits = |pipe: &&PipeFigures| pipe.writer_waits + pipe.reader_waits;
    let tiny = figures.pipes.iter().filter(|pipe| is_tiny(figures, pipe));
    let pipe = tiny.max_by(|a, b| waits(a).total_cmp(&waits(b)))?;
    let switches = |number: usize| figures.stages[number - 1].switches_per_second.unwrap_or(0.0);
    let text = format!(
        "The pipe from {} to {} holds only {}: its writer and reader wake each other {:.0} times per second.",
        name(figures, pipe.from),
        name(figures, pipe.to),
        ByteSize(pipe.capacity.unwrap_or(0)),
        switches(pipe.from).min(switches(pipe.to))
    );
    let verdict = PipelineVerdict::new(VerdictKind::Pipe, "small pipe", text);
    Some(PipelineVerdict { pipe: Some(pipe.number), cause: "pipe too small: two pages".to_owned(), ..verdict })
}

fn small_pipe(figures: &PipelineFigures, order: &[&StageFigures]) -> Option<PipelineVerdict> {
    let busy = |nth: usize| order.get(nth).map_or(0.0, |stage| stage.busy * stage.present);
    let busiest = order[0];
    // The gain from a larger pipe is at most the inverse of the busiest stage's busy share. The gain from a faster
    // stage is at most its busy share divided by the next stage's.
    let stage_gains = (busy(0) - MOSTLY_BUSY).min(busy(0) * busy(0) - busy(1));
    if busy(0) >= BUSY {
        return None;
    }
    let (worst, both) = bursting(figures)?;
    // With bursts larger than any pipe, no two stages work at the same time. So the bursts are reported even if a
    // faster stage gains more.
    let size = burst::beyond_pipes(figures, worst);
    if stage_gains > EITHER && size.is_none() {
        return None;
    }
    let (from, to) = (name(figures, worst.from), name(figures, worst.to));
    let seen = (both * f64::from(figures.samples)).round();
    if seen < MIN_WAITS {
        let text = format!(
            "Too short for a verdict: the ends of the pipe from {from} to {to} each waited in {seen} samples; at least {MIN_WAITS} are needed."
        );
        return Some(PipelineVerdict::unknown("short", text));
    }
    if let Some(size) = size {
        let text = format!(
            "{from} sends bursts of about {} to {to}, more than a pipe can hold: {from} waits for room {} of the time, {to} waits for data {}.",
            burst::mebibytes(size),
            percent(worst.writer_waits),
            percent(worst.reader_waits)
        );
        let verdict = PipelineVerdict::new(VerdictKind::Burst, "bursts", text);
        let (pipe, stage) = (Some(worst.number), Some(worst.to));
        return Some(PipelineVerdict { pipe, stage, cause: "bursts larger than a pipe".to_owned(), ..verdict });
    }
    let waits = format!(
        "its writer waits for room {} of the time, its reader waits for data {}",
        percent(worst.writer_waits),
        percent(worst.reader_waits)
    );
    let pipe = Some(worst.number);
    if stage_gains > -EITHER {
        let text = format!(
            "Inconclusive: either {} (busy {}) or the pipe from {from} to {to} ({waits}) holds the pipeline back.",
            name(figures, busiest.number),
            percent(busy(0))
        );
        let verdict = PipelineVerdict::new(VerdictKind::Inconclusive, "stage or pipe", text);
        return Some(PipelineVerdict { stage: Some(busiest.number), pipe, sure: Certainty::Unsure, ..verdict });
    }
    let mut text = format!("The pipe from {from} to {to} is too small to absorb bursts: {waits}.");
    let unclear = burst::near_pipe_size(figures, worst);
    if let Some(size) = unclear {
        text.push_str(&format!(
            " The bursts are about {}; even the largest pipe may not hold them.",
            burst::mebibytes(size)
        ));
    }
    let sure = if unclear.is_some() { Certainty::Unsure } else { Certainty::Sure };
    let verdict = PipelineVerdict::new(VerdictKind::Pipe, "bursts", text);
    let bound = gain(figures, worst, busiest);
    let cause = "pipe too small for bursts".to_owned();
    Some(PipelineVerdict { pipe, bound, next: Some(busiest.number), cause, sure, ..verdict })
}

/// The pipe whose two ends both wait longest, with the smaller of the two ends' shares; `None` if that share is too
/// small to matter.
pub(super) fn bursting(figures: &PipelineFigures) -> Option<(&PipeFigures, f64)> {
    // As with stages, the shares of a pipe that existed only briefly count for less.
    let present = |pipe: &PipeFigures| figures.stages[pipe.from - 1].present.max(figures.stages[pipe.to - 1].present);
    let absorbable = |pipe: &PipeFigures| pipe.absorbable.unwrap_or(1.0);
    let both = |pipe: &PipeFigures| pipe.writer_waits.min(pipe.reader_waits) * absorbable(pipe) * present(pipe);
    // If one end waits first and the other one afterwards, these are phases, not bursts.
    let alternates = |pipe: &&PipeFigures| pipe.turns.is_none_or(|turns| turns >= MIN_TURNS);
    let worst = figures.pipes.iter().filter(alternates).max_by(|a, b| both(a).total_cmp(&both(b)))?;
    Some((worst, both(worst))).filter(|(_, both)| *both >= BOTH_WAIT)
}

/// The largest speed-up that a larger pipe can give: the inverse of the busiest stage's busy share. `None` if the
/// stages at the pipe's ends have many context switches, because a larger pipe also saves some of these.
pub(super) fn gain(figures: &PipelineFigures, pipe: &PipeFigures, busiest: &StageFigures) -> Option<f64> {
    let switches = |number: usize| figures.stages[number - 1].switches_per_second.unwrap_or(0.0);
    let often = switches(pipe.from).max(switches(pipe.to)) > OFTEN_SWITCHED;
    Some(1.0 / busiest.busy.max(0.05)).filter(|&bound| bound < MAX_BOUND && !often)
}

fn balanced(figures: &PipelineFigures, order: &[&StageFigures]) -> Option<PipelineVerdict> {
    /// Stages that work for less than this share of the time are not compared by their work.
    const MIN_WORK: f64 = 0.25;
    let [first, second, ..] = order else { return None };
    let apart = working_share(first) - working_share(second) > 2.0 * BALANCED;
    let busy_alike = !apart && busy(first) - busy(second) <= BALANCED;
    // If other programs use the CPUs, how long a stage waits for a CPU says nothing about its own work.
    let work_alike = first.waiting_for_cpu > ALSO
        && (working_share(first) - working_share(second)).abs() <= BALANCED / 2.0
        && working_share(second) >= MIN_WORK;
    if !(busy_alike || work_alike) || calls::matter(first) || calls::matter(second) {
        return None;
    }
    let (what, share): (_, fn(&StageFigures) -> f64) =
        if busy_alike { ("is busy", |stage| stage.busy * stage.present) } else { ("works for", working_share) };
    let text = format!(
        "The pipeline is balanced: {} {what} {} of the time and {} {}. Making only one of them faster gains little.",
        name(figures, first.number),
        percent(share(first)),
        name(figures, second.number),
        percent(share(second))
    );
    let verdict = PipelineVerdict::new(VerdictKind::Balanced, "balanced", text);
    Some(PipelineVerdict { stage: Some(first.number), next: Some(second.number), ..verdict })
}

fn slow_stage(figures: &PipelineFigures, order: &[&StageFigures]) -> PipelineVerdict {
    let busiest = order[0];
    let reasons = reasons(busiest);
    let (reason, share) = reasons[0];
    let what = |reason: &str| match (reason, busiest.waits_for) {
        ("waiting for something else", Some(what)) => format!("waiting for {what}"),
        // A futex wait looks the same for a lock, a timer and another thread.
        ("waiting for a lock", _) => "waiting for a lock, a timer or another thread".to_owned(),
        _ => reason.to_owned(),
    };
    let mut why = match (reason, busiest.cpu) {
        ("computing", Some(cpu)) => {
            let children = busiest.cpu_of_children.unwrap_or(0.0) / cpu;
            let whose = if children > 0.5 {
                format!(", {} of it in child processes", percent(children.min(1.0)))
            } else {
                String::new()
            };
            format!("computing ({} of one CPU{whose})", percent(cpu))
        }
        _ => format!("{} ({} of the time)", what(reason), percent(share)),
    };
    if let Some((second, share)) = reasons.get(1)
        && *share > ALSO
    {
        why.push_str(&format!(", and {} ({})", what(second), percent(*share)));
    }
    let mut text = format!("{} holds the pipeline back: {why}.", name(figures, busiest.number));
    if let Some(calls) = calls::mention(busiest).filter(|_| reason == "computing") {
        text.push_str(&format!(" {calls}"));
    }
    if busiest.present < 0.9 {
        text.push_str(&format!(" That stage existed for only {} of the time.", percent(busiest.present)));
    }
    let next = order.iter().skip(1).find(|next| next.present > 0.0);
    // The next stage may wait for a CPU only because the busiest stage uses it. The next stage's kernel time, such as
    // that for waking others and copying small pieces, shrinks when the busiest stage gets faster.
    let kernel = |next: &StageFigures| next.kernel.unwrap_or(0.0).min(next.computing);
    let alone = |next: &StageFigures| next.busy - next.waiting_for_cpu - kernel(next);
    // A stage with several threads may run on several CPUs at once.
    let spread = |next: &StageFigures| next.cpu.unwrap_or(next.computing) / next.threads.max(1) as f64;
    // Two programs that compute at the same time share caches, and often a core.
    let shared = |needs: f64, next: &StageFigures| CORE_SHARED * needs.min(next.computing) * busiest.computing;
    let needs = |next: &StageFigures| {
        let needs = if next.threads > 1 { alone(next).min(spread(next)) } else { alone(next) };
        (needs - shared(needs, next)) * next.present
    };
    let bound = next.map(|next| busy(busiest) / needs(next).max(1e-9)).filter(|&bound| bound < MAX_BOUND);
    // A stage that waits for a CPU gets more CPU time when another stage uses less.
    let short = |stage: &StageFigures| stage.waiting_for_cpu > CPU_SHORT;
    let hides = |stage: &StageFigures| has_hidden_cost(stage) || short(stage);
    // The next stage's unknown waits may be for the busiest stage.
    let unclear = |next: &StageFigures| next.other > ALSO;
    // Two stages that run the same program could become one, or exchange a cheaper format. Both would then be faster.
    let alike = |next: &StageFigures| {
        !next.words.is_empty() && programs::program(&next.words) == programs::program(&busiest.words)
    };
    let is_hidden = hides(busiest) || next.is_some_and(|next| hides(next) || unclear(next) || alike(next));
    // A busy stage doesn't wait for the busiest stage, even if it is busy only because of that stage.
    let all_wait = order.iter().skip(1).all(|other| busy(other) <= MOSTLY_WAITING);
    let idle = all_wait && next.is_none_or(|next| needs(next) < busy(busiest) / MAX_BOUND);
    let bound = bound.filter(|_| !is_hidden);
    match (bound, next) {
        (Some(bound), Some(next)) => {
            let (own, next) = (name(figures, busiest.number), name(figures, next.number));
            text.push_str(&format!(
                " A faster {own} makes the pipeline at most {bound:.1} times as fast; then {next} is the bottleneck."
            ));
        }
        (None, Some(_)) if idle => text.push_str(" All other stages wait for it nearly all the time."),
        _ => {}
    }
    let verdict = PipelineVerdict::new(VerdictKind::Stage, reason, text);
    PipelineVerdict { stage: Some(busiest.number), bound, next: next.map(|next| next.number), ..verdict }
}

#[cfg(test)]
pub(crate) mod tests;
