//! Finds a pipeline's bottleneck from its figures. Pure: no clock and no I/O.

use pipemark_model::counted;

use crate::advice::with_remedies;
use crate::figures::PipelineFigures;
use crate::report::{Certainty, PipeFigures, PipelineVerdict, StageFigures, VerdictKind};
use crate::small_pipe::MOSTLY_BUSY;
use crate::{calls, cpu_shortage, held, outside, peer, programs, small_pipe, starts, stopped};

/// The minimum number of samples for a verdict.
const MIN_SAMPLES: u32 = 20;
/// A CPU limit, a tracer or repeated stop signals limit a stage only if they stop it for at least this share of the
/// time.
pub(crate) const THROTTLED: f64 = 0.10;
/// A stage that is busy for more than this share of the time is not held back by bursts.
pub(crate) const BUSY: f64 = 0.85;
/// A stage with more context switches per second than this spends part of its time on these switches.
pub(crate) const OFTEN_SWITCHED: f64 = 1000.0;
/// Two stages are balanced if their busy shares differ by less than this.
pub(crate) const BALANCED: f64 = 0.10;
/// The minimum number of samples that distinguish stages that are nearly equally busy.
const FEW_SAMPLES: u32 = 60;
/// Besides the longest state, a verdict names a state whose share of the time exceeds this.
pub(crate) const ALSO: f64 = 0.2;
/// A stage with at most this busy share waits nearly all the time.
const MOSTLY_WAITING: f64 = 0.1;
/// No data moves if the busy shares of all stages add up to less than this.
const IDLE: f64 = 0.1;
/// A stage that waits for a CPU for more than this share of the time gets faster when other stages use less CPU time.
const CPU_SHORT: f64 = 0.1;
/// The share of its time that a program may lose while another program computes on the same core. A virtual machine
/// doesn't show which CPUs share a core. On a development machine, two gzip processes lost 0.05.
const CORE_SHARED: f64 = 0.3;
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
    let StageFigures { name, label, .. } = &figures.stages[number - 1];
    if !label.is_empty() {
        return label.clone();
    }
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
pub(crate) const MAX_BOUND: f64 = 10.0;

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
pub fn too_short(samples: u32) -> PipelineVerdict {
    let samples = counted(samples as usize, "sample");
    let text = format!("Too short for a verdict: {samples}; at least {MIN_SAMPLES} (0.2 s) are needed.");
    PipelineVerdict::unknown("short", text)
}

/// The verdict on a command that ended with this code. If a shell could not run the command, the verdict says so
/// instead of reporting too few samples.
pub fn of_failed(verdict: PipelineVerdict, code: i32) -> PipelineVerdict {
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
        .or_else(|| stopped::frozen(figures))
        .or_else(|| stopped::traced(figures))
        .or_else(|| stopped::stopped_repeatedly(figures))
        .or_else(|| stopped::stopped(figures))
        .or_else(|| cpu_shortage::throttled(figures));
    if let Some(verdict) = shared.or_else(|| cpu_shortage::cpus_taken(figures)) {
        return with_remedies(verdict, figures);
    }
    let order = busiest_first(figures);
    // Small pieces and process starts keep all stages busy with overhead.
    let waste = || calls::calls_verdict(figures, &order).or_else(|| starts::starts_verdict(figures, &order));
    let shared = cpu_shortage::too_few_cpus(figures).or_else(|| cpu_shortage::copies_use_all_cpus(figures));
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
        let subset = figures.subset(part);
        let verdict = verdict_on_pipeline(&subset);
        // Back to the numbers of the whole.
        let stage = |number: Option<usize>| number.map(|number| part[number - 1]);
        let pipe = |number: usize| {
            let PipeFigures { from, to, .. } = subset.pipes[number - 1];
            let is_same = |pipe: &&PipeFigures| (pipe.from, pipe.to) == (part[from - 1], part[to - 1]);
            figures.pipes.iter().find(is_same).map(|pipe| pipe.number)
        };
        let verdict = PipelineVerdict {
            stage: stage(verdict.stage),
            next: stage(verdict.next),
            pipe: verdict.pipe.and_then(pipe),
            ..verdict
        };
        (present(part), verdict)
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
    for stage in &figures.stages {
        parts.push(vec![stage.number]);
    }
    for pipe in &figures.pipes {
        let (joined, apart): (Vec<_>, Vec<_>) =
            parts.into_iter().partition(|part| part.contains(&pipe.from) || part.contains(&pipe.to));
        parts = apart;
        parts.push(joined.concat());
    }
    // A stage without a pipe isn't a pipeline.
    parts.retain(|part| part.len() > 1);
    parts.iter_mut().for_each(|part| part.sort_unstable());
    parts.sort_by_key(|part| part.iter().min().copied());
    parts
}

/// The verdict on one pipeline, ignoring stages of others.
fn verdict_on_pipeline(figures: &PipelineFigures) -> PipelineVerdict {
    let order = busiest_first(figures);
    let busiest = order[0];
    let verdict = hidden_stage(figures, busiest)
        .or_else(|| outside::outside_limit(figures, busiest))
        .or_else(|| held::held_verdict(figures))
        .or_else(|| all_idle(figures))
        .or_else(|| deliberate_limit(figures, busiest))
        .or_else(|| lock_queue(figures, busiest))
        .or_else(|| locked_out(figures, busiest))
        .or_else(|| calls::calls_verdict(figures, &order))
        .or_else(|| starts::starts_verdict(figures, &order))
        .or_else(|| small_pipe::tiny_pipe(figures))
        .or_else(|| small_pipe::small_pipe(figures, &order))
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

pub(crate) fn busiest_first(figures: &PipelineFigures) -> Vec<&StageFigures> {
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
    let text = || format!("The bottleneck may be {}, which can't be sampled here.", unsampled.join(" or "));
    (!unsampled.is_empty()).then(|| PipelineVerdict::unknown("hidden", text()))
}

/// The verdict that all stages wait for each other. While data moves, at least one stage is busy at any moment.
fn all_idle(figures: &PipelineFigures) -> Option<PipelineVerdict> {
    let busy: f64 = figures.stages.iter().map(|stage| stage.busy * stage.present).sum();
    let text = "No data moves: the stages wait for each other, or for a pipe whose other end is open but not in use.";
    (busy < IDLE).then(|| PipelineVerdict::unknown("idle", text))
}

/// The verdict that the busiest stage limits its rate on purpose. Such a stage may wait in any system call.
fn deliberate_limit(figures: &PipelineFigures, busiest: &StageFigures) -> Option<PipelineVerdict> {
    let waits = busiest.sleep + busiest.network + busiest.other + busiest.lock;
    let option = programs::rate_limit(&busiest.words)?;
    let mostly_waits = waits >= 0.5 && waits >= 2.0 * (busiest.computing + busiest.waiting_for_cpu);
    // While a program such as parallel waits for its limit, it may start another one again and again to check it.
    let checks = waits >= 0.3 && busiest.seconds_silent.is_some_and(|seconds| seconds >= 1.0);
    if !mostly_waits && !checks {
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
        "{} holds the pipeline back: for {} of the time, more of its processes are waiting for a file lock than are running.",
        name(figures, busiest.number),
        percent(busiest.queued)
    );
    let verdict = PipelineVerdict::new(VerdictKind::Stage, "waiting for a lock", text);
    Some(PipelineVerdict { stage: Some(busiest.number), cause: "waiting for a file lock".to_owned(), ..verdict })
}

/// The verdict that the busiest stage waits for a lock on a file that another program holds.
fn locked_out(figures: &PipelineFigures, busiest: &StageFigures) -> Option<PipelineVerdict> {
    const MIN_SHARE: f64 = 0.5;
    let (path, pid, holder) = busiest.locked_by.as_ref()?;
    let share = busiest.lock + busiest.sleep;
    if share < MIN_SHARE || share < 2.0 * (busiest.computing + busiest.waiting_for_cpu) {
        return None;
    }
    let text = format!(
        "{} waits {} of the time for a lock on {path}, which {holder} (PID {pid}) holds.",
        name(figures, busiest.number),
        percent(share)
    );
    let verdict = PipelineVerdict::new(VerdictKind::Stage, "waiting for a lock", text);
    Some(PipelineVerdict { stage: Some(busiest.number), cause: "waiting for a file lock".to_owned(), ..verdict })
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
    // If stages work in turn, making only one of them faster does help.
    let alternate = small_pipe::bursting(figures).is_some();
    if !(busy_alike || work_alike) || alternate || calls::matter(first) || calls::matter(second) {
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
    let what = |reason: &str| match (reason, busiest.waits_for.as_deref()) {
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
    // Stages that work in turn don't hide each other's time.
    let alternate =
        small_pipe::bursting(figures).is_some_and(|(pipe, _)| pipe.to == busiest.number || pipe.from == busiest.number);
    let is_hidden = alternate || hides(busiest) || next.is_some_and(|next| hides(next) || unclear(next) || alike(next));
    // A stage that is busy isn't waiting for the busiest stage. So `busy` counts here, with the time that the busiest
    // stage causes, which `needs` leaves out.
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
