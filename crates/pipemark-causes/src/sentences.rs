//! The sentence for each cause.

use pipemark_model::{ByteSize, counted};
use pipemark_proc::process::Direction;

use crate::cause::{Activity, Cause, HeldKind, PeerRole};
use crate::causes::calls::{SmallCalls, calls_of, has_caller, mentioned};
use crate::causes::rate_limit::limit_waits;
use crate::causes::stopped::STOPPED;
use crate::causes::work::{ALSO, activities};
use crate::causes::{self, burst, calls, cpu_shortage, idle, peer, starts, work};
use crate::evidence::{FileLock, PeerFigures, WaitCycle, WaitStep};
use crate::figures::PipelineFigures;
pub use crate::figures::percent;
use crate::hypothesis::{Hypothesis, Scene};
use crate::judge;
use crate::model::{is_work_of_children, working_share};
use crate::pipe_figures::PipeFigures;
use crate::programs;
use crate::report::Quality;
use crate::stage_figures::StageFigures;

/// The name of a stage, followed by its number if other stages have the same name.
pub fn name(figures: &PipelineFigures, number: usize) -> String {
    figures.name_of(number)
}

/// Formats calls per second, abbreviated, with the digits of the table of stages.
pub fn rate(per_second: f64) -> String {
    match per_second {
        many if many >= 999_500.0 => format!("{:.1} M calls/s", many / 1e6),
        many if many >= 9_999.5 => format!("{:.0} k calls/s", many / 1e3),
        few => format!("{few:.0} calls/s"),
    }
}

/// How long a stage is busy, as the table of stages shows it: `busy 82 %`, `busy 60 %, waits 22 %`.
fn occupied(stage: &StageFigures) -> String {
    let (busy, waits) = (percent(stage.works()), percent(stage.waits()));
    let waits = if stage.waits() >= 0.005 { format!(", waits {waits}") } else { String::new() };
    // The shares are of the time in which the stage existed.
    let life = match stage.present {
        short if short < 0.9 => format!(" of the {} of the time for which it existed", percent(short)),
        _ => String::new(),
    };
    format!("busy {busy}{waits}{life}")
}

fn describe_peer(peer: &PeerFigures) -> String {
    match peer.pid {
        Some(pid) => format!("{} (PID {pid})", peer.name),
        None => peer.name.clone(),
    }
}

/// The cause in JSON, with the names of other programs and hosts.
pub fn cause_words(figures: &PipelineFigures, found: &Hypothesis) -> String {
    let stage = found.stage.map(|number| &figures.stages[number - 1]);
    let peer = stage.and_then(|stage| stage.peer.as_ref()).map(|peer| peer.name.as_str()).unwrap_or_default();
    match found.cause {
        Cause::Traced => {
            format!("traced by {}", stage.and_then(|stage| stage.tracer.as_deref()).unwrap_or_default())
        }
        Cause::Peer(PeerRole::NameServer) => format!("peer: {peer}"),
        Cause::Outside(_) | Cause::Peer(_) => format!("{} ({peer})", found.cause.words()),
        cause => cause.words().to_owned(),
    }
}

/// The sentence that says what limits the pipeline.
pub fn text(scene: &Scene, found: &Hypothesis) -> String {
    let figures = scene.figures;
    let nameless = StageFigures::default();
    let stage = found.stage.map_or(&nameless, |number| &figures.stages[number - 1]);
    let next = found.next.map_or(&nameless, |number| &figures.stages[number - 1]);
    let own = found.stage.map(|number| name(figures, number)).unwrap_or_default();
    let other = found.next.map(|number| name(figures, number)).unwrap_or_default();
    let nothing = PipeFigures::default();
    let pipe = found.pipe.map_or(&nothing, |number| &figures.pipes[number - 1]);
    let (from, to) = match found.pipe {
        Some(_) => (name(figures, pipe.from), name(figures, pipe.to)),
        None => (String::new(), String::new()),
    };
    let names = |is: &dyn Fn(&StageFigures) -> bool| {
        let all = figures.stages.iter().filter(|stage| is(stage)).map(|stage| name(figures, stage.number));
        all.collect::<Vec<String>>()
    };
    match found.cause {
        Cause::Deadlock(_) => figures.cycle.as_ref().map(cycle_text).unwrap_or_default(),
        Cause::Frozen => match &names(&|stage| stage.frozen)[..] {
            [one] => format!("{one} is frozen: its control group is paused, and no data moves through it."),
            more => format!("These stages are frozen, because their control group is paused: {}.", more.join(", ")),
        },
        Cause::Traced => format!(
            "{} traces {own}, which is stopped for {} of the time.",
            stage.tracer.as_deref().unwrap_or_default(),
            percent(stage.stopped)
        ),
        Cause::StopSignals => format!(
            "{own} is stopped {} of the time: another program, such as cpulimit, stops and resumes it repeatedly.",
            percent(stage.stopped)
        ),
        Cause::Stopped => format!(
            "These stages are stopped (Ctrl-Z or SIGSTOP): {}. No data moves through them.",
            names(&|stage| stage.stopped > STOPPED).join(", ")
        ),
        Cause::CpuQuota => format!(
            "A CPU limit slows the pipeline: the control group of {own} was throttled {} of the time.",
            percent(stage.throttled.unwrap_or(0.0))
        ),
        Cause::CpusTaken => cpu_shortage::others_cpus(figures).map(|found| {
            format!(
                "Other programs use {:.1} of {}: the stages use {:.1} and wait for {:.1} more.",
                found.by_others,
                counted(found.all, "CPU"),
                found.used,
                found.waited
            )
        }).unwrap_or_default(),
        Cause::CpusShared => cpu_shortage::cpus_wanted(figures).map(|(cpus, sum)| {
            format!(
                "The stages compete for CPUs: together they need {sum:.1} CPUs, but may use only {cpus}. Making any stage faster helps all of them."
            )
        }).unwrap_or_default(),
        Cause::CopiesUseCpus => cpu_shortage::copies(figures).map(|(count, name, cpus)| {
            format!("{count} stages that run {name} use all {cpus} CPUs, so more threads or processes gain nothing.")
        }).unwrap_or_default(),
        Cause::Unsampled => {
            let hidden: Vec<String> = idle::unsampled(scene).map(|stage| name(figures, stage.number)).collect();
            format!("The bottleneck may be {}, which can't be sampled here.", hidden.join(" or "))
        }
        Cause::Outside(_) => outside(figures, stage, found.explains),
        Cause::UnseenInput => format!(
            "The input may hold the pipeline back: {own} waits {} of the time for data from a pipe whose writer is not visible.",
            percent(found.explains)
        ),
        Cause::UnseenOutput => format!(
            "The reader of the output may hold the pipeline back: {own} waits {} of the time for room in a pipe whose reader is not visible.",
            percent(found.explains)
        ),
        Cause::Held(kind) => held(figures, stage, kind),
        Cause::Idle => {
            "No data moves: the stages wait for each other, or for a pipe whose other end is open but not in use.".to_owned()
        }
        Cause::RateLimit(_) => format!(
            "{own} limits its own rate ({}): it waits {} of the time.",
            programs::rate_limit(&stage.words).unwrap_or_default(),
            percent(limit_waits(stage))
        ),
        Cause::Declared(facts) => (causes::declaration(facts).sentence)(scene, found),
        Cause::Calls(kind) => {
            let calls = calls_of(stage, kind).unwrap_or(SmallCalls { bytes: 0.0, per_second: 0.0 });
            // The rate in the table is that of all calls.
            let per_second = stage.calls_per_second().unwrap_or(calls.per_second);
            let both = stage.reads_per_second.zip(stage.writes_per_second);
            let in_all = if both.is_some_and(|(reads, writes)| reads.min(writes) >= 1.0) { " in all" } else { "" };
            let writes = calls::is_by_writes(stage, kind);
            let mut text = format!(
                "{own} {} {} per call ({}{in_all}): the calls cost more than the bytes.",
                if writes { "writes" } else { "reads" },
                bytes(calls.bytes),
                rate(per_second)
            );
            if let Some(payer) = found.payer.filter(|&payer| Some(payer) != found.stage) {
                text.push_str(&format!(" {} must make just as many calls.", name(figures, payer)));
            }
            text
        }
        Cause::Starts => starts::starts(stage).map(|found| {
            let cpus = percent(found.cpus);
            let uses = match found.few_bytes {
                Some(bytes) => format!("they use {cpus} of one CPU, but move only {} each", ByteSize(bytes as u64)),
                None => format!("starting them uses {cpus} of one CPU"),
            };
            format!("{own} starts {:.0} processes per second; {uses}.", found.per_second)
        }).unwrap_or_default(),
        Cause::TinyPipe => {
            let switches = |number: usize| figures.stages[number - 1].switches_per_second.unwrap_or(0.0);
            format!(
                "The pipe from {from} to {to} holds only {}: its writer and reader wake each other {:.0} times per second.",
                ByteSize(pipe.capacity.unwrap_or(0)),
                switches(pipe.from).min(switches(pipe.to))
            )
        }
        Cause::Bursts => format!(
            "{from} sends bursts of about {} to {to}, more than a pipe can hold: {from} waits for room {} of the time, {to} waits for data {}.",
            burst::mebibytes(burst::size(pipe).unwrap_or(0.0)),
            percent(pipe.writer_waits),
            percent(pipe.reader_waits)
        ),
        Cause::SmallPipe => {
            let mut text = format!("The pipe from {from} to {to} is too small to absorb bursts: {}.", waits(pipe));
            if let Some(size) = burst::near_pipe_size(figures, pipe) {
                text.push_str(&format!(
                    " The bursts are about {}; even the largest pipe may not hold them.",
                    burst::mebibytes(size)
                ));
            }
            text
        }
        Cause::StageOrPipe => format!(
            "Inconclusive: either {own} ({}) or the pipe from {from} to {to} ({}) holds the pipeline back.",
            occupied(stage),
            waits(pipe)
        ),
        Cause::TooShort => {
            let (both, least) = judge::samples_of_bursts(figures);
            format!(
                "Too short for a verdict: the ends of the pipe from {from} to {to} each waited in {both} samples; at least {least} are needed."
            )
        }
        Cause::FewSamples | Cause::BusyAlike => format!(
            "Inconclusive after {} samples: either {own} ({}) or {other} ({}) holds the pipeline back.",
            figures.samples,
            occupied(stage),
            occupied(next)
        ),
        Cause::Balanced => {
            let busy_alike = judge::alike(figures, stage, next).unwrap_or(true);
            match busy_alike {
                true => format!(
                    "The pipeline is balanced: {own} ({}) and {other} ({}) are busy alike. Making only one of them faster gains little.",
                    occupied(stage),
                    occupied(next)
                ),
                false => format!(
                    "The pipeline is balanced: {own} works for {} of the time and {other} {}. Making only one of them faster gains little.",
                    percent(working_share(stage)),
                    percent(working_share(next))
                ),
            }
        }
        Cause::Peer(role) => socket(figures, stage, role, found.quality),
        Cause::Activity(_) => slow_stage(scene, stage, found),
        Cause::Work(kind) => {
            let kinds = stage.profile.iter().flat_map(|profile| &profile.kinds);
            let share = kinds.filter(|one| one.kind == kind).map(|one| one.share).sum();
            format!("{own}: {} of its CPU time is {}.", percent(share), kind.phrase())
        }
    }
}

/// A mean number of bytes, with the digits of the table of stages.
fn bytes(count: f64) -> String {
    let text = match count.max(1.0) {
        few if few < 9.95 => format!("{few:.1}"),
        some if some < 1023.5 => format!("{some:.0}"),
        many => return format!("{:.1} KiB", many / 1024.0),
    };
    match text.strip_suffix(".0").unwrap_or(&text) {
        "1" => "1 byte".to_owned(),
        count => format!("{count} bytes"),
    }
}

fn waits(pipe: &PipeFigures) -> String {
    format!(
        "its writer waits for room {} of the time, its reader waits for data {}",
        percent(pipe.writer_waits),
        percent(pipe.reader_waits)
    )
}

fn outside(figures: &PipelineFigures, stage: &StageFigures, share: f64) -> String {
    let peer = stage.peer.clone().unwrap_or_default();
    let what = if peer.sends { "for room in a pipe to" } else { "for data from" };
    format!(
        "{} waits {} of the time {what} {}, a process outside this pipeline.",
        name(figures, stage.number),
        percent(share),
        describe_peer(&peer)
    )
}

fn held(figures: &PipelineFigures, stage: &StageFigures, kind: HeldKind) -> String {
    let name_of = |number: usize| name(figures, number);
    let (name, seconds) = (name_of(stage.number), stage.seconds_silent.unwrap_or(0.0));
    let read = format!("has read {} and written nothing for {seconds:.1} s", causes::held_bytes(figures, stage));
    match kind {
        HeldKind::Storing => format!(
            "{name} stores all of its input before it writes: it {read}. The stages after {name} can't work at the same time as those before it."
        ),
        HeldKind::WaitingForEnd | HeldKind::Compressing => {
            let until = if kind == HeldKind::Compressing {
                "a block is full or its input ends"
            } else {
                "the end of its input"
            };
            let source =
                causes::source_without_end(figures, stage).map(|source| name_of(source.number)).unwrap_or_default();
            format!("{name} writes nothing before {until}, and {source} never ends: {name} {read}.")
        }
        HeldKind::Probing => format!(
            "{name} reads up to 5 s or 5 MB of its input before it writes, to find out what it contains: it {read}."
        ),
        HeldKind::Filling => {
            let option = causes::filling_option(figures, stage).unwrap_or_default();
            format!("{name} fills its buffer before it writes ({option}): it {read}.")
        }
        HeldKind::Buffering if causes::holds(figures, stage) => {
            let unless = if programs::selects(&stage.words) { " (or nothing matched)" } else { "" };
            format!(
                "{name} buffers its output{unless}: it {read}. It writes to a pipe or a file only when its buffer is full."
            )
        }
        HeldKind::Buffering => format!(
            "{name} runs from time to time, but has written nothing for {seconds:.1} s: it may have had nothing to write, or it buffers its output and writes to a pipe only when the buffer is full."
        ),
    }
}

fn socket(figures: &PipelineFigures, stage: &StageFigures, role: PeerRole, quality: Quality) -> String {
    let peer = stage.peer.clone().unwrap_or_default();
    let (name, share, who) = (name(figures, stage.number), percent(stage.network + stage.other), describe_peer(&peer));
    let likely = if quality == Quality::Proved { "" } else { ", probably" };
    if role == PeerRole::NameServer {
        return format!("{name} waits {share} of the time{likely} for answers from {who}.");
    }
    let by = match (peer.tcp, peer.udp) {
        (true, _) => "TCP",
        (_, true) => "UDP",
        _ => "a Unix socket",
    };
    let what = if peer::sends(figures, stage, &peer) { "accept its data" } else { "send data" };
    let mut text = format!("{name} waits {share} of the time{likely} for {who} to {what} over {by}.");
    match (peer::limited(peer.window_limited), peer::limited(peer.buffer_limited)) {
        (Some(share), _) => text.push_str(&format!(
            " For {} of that time, the receiver's window limited TCP: the receiver is slow.",
            percent(share)
        )),
        (None, Some(share)) => {
            text.push_str(&format!(" For {} of that time, the send buffer limited TCP.", percent(share)));
        }
        (None, None) => {}
    }
    text
}

fn slow_stage(scene: &Scene, stage: &StageFigures, found: &Hypothesis) -> String {
    let figures = scene.figures;
    let activities = activities(stage);
    let (work, share) = activities[0];
    let what = |work: Activity| match (work, stage.waits_for.as_deref()) {
        (Activity::Other, Some(what)) | (Activity::Network, Some(what @ "clients to connect")) => {
            format!("waiting for {what}")
        }
        // A futex wait looks the same for a lock, a timer and another thread.
        (Activity::Lock, _) => "waiting for a lock, a timer or another thread".to_owned(),
        _ => work.words().to_owned(),
    };
    let mut why = match (work, stage.cpu) {
        (Activity::Computing, Some(cpu)) => {
            let whose = if is_work_of_children(stage) {
                let children = stage.cpu_of_children.unwrap_or(0.0) / cpu;
                format!(", {} of it in child processes", percent(children.min(1.0)))
            } else {
                String::new()
            };
            format!("computing ({} of one CPU{whose})", percent(cpu))
        }
        _ => format!("{} ({} of the time)", what(work), percent(share)),
    };
    if let Some((second, share)) = activities.get(1)
        && *share > ALSO
    {
        why.push_str(&format!(", and {} ({})", what(*second), percent(*share)));
    }
    let own = name(figures, stage.number);
    let mut text = format!("{own} holds the pipeline back: {why}.");
    let computes = |&(work, share): &(Activity, f64)| work == Activity::Computing && share > ALSO;
    if activities.iter().take(2).any(computes) && !is_work_of_children(stage) {
        text.push_str(&kinds_of_work(stage));
    }
    if let Some((writes, calls)) = mentioned(stage).filter(|_| work == Activity::Computing) {
        let whose = if has_caller(stage) { "the calling thread's" } else { "its" };
        text.push_str(&format!(
            " It {} {} per call: system calls take {} of {whose} CPU time.",
            if writes { "writes" } else { "reads" },
            bytes(calls.bytes),
            percent(calls::share(stage))
        ));
    }
    if stage.present < 0.9 {
        text.push_str(&format!(" That stage existed for only {} of the time.", percent(stage.present)));
    }
    let (bound, next, idle) = work::bound(figures, &scene.model, stage);
    // Of a stage that mostly waits, or that is faster than the next one, a bound says nothing.
    let is_slow = |bound: &f64| *bound >= 1.0 && stage.busy * stage.present > work::MOSTLY_WAITING;
    match (bound.or(found.bound).filter(is_slow), next) {
        (Some(bound), Some(next)) => text.push_str(&format!(
            " A faster {own} makes the pipeline at most {bound:.1} times as fast; then {} is the bottleneck.",
            name(figures, next)
        )),
        (None, Some(_)) if idle => text.push_str(" All other stages wait for it nearly all the time."),
        _ => {}
    }
    text
}

/// What a stage's CPU time is spent on, as a sentence; empty if that isn't known.
fn kinds_of_work(stage: &StageFigures) -> String {
    /// Kinds of work with a smaller share aren't named.
    const MIN_SHARE: f64 = 0.2;
    const MAX_KINDS: usize = 2;
    let kinds = stage.profile.iter().flat_map(|profile| &profile.kinds).filter(|kind| kind.share >= MIN_SHARE);
    let shown = kinds.take(MAX_KINDS).map(|kind| {
        let function = kind.function.as_ref().map(|function| format!(" ({function})")).unwrap_or_default();
        format!("{} {}{function}", percent(kind.share), kind.kind.phrase())
    });
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() { String::new() } else { format!(" Of its CPU time: {}.", shown.join(", ")) }
}

/// Sentences about stages that aren't the bottleneck.
pub fn asides(figures: &PipelineFigures, chosen: Option<usize>) -> String {
    let mut text = String::new();
    for stage in figures.stages.iter().filter(|stage| stage.polls && Some(stage.number) != chosen) {
        text.push_str(&format!(
            " {} reads in a loop instead of waiting for input, so its {} of a CPU are mostly wasted.",
            name(figures, stage.number),
            percent(stage.cpu.unwrap_or(0.0))
        ));
    }
    text
}

/// Describes a descriptor.
fn descriptor(fd: u32) -> String {
    match fd {
        0 => "standard input".to_owned(),
        1 => "standard output".to_owned(),
        2 => "standard error".to_owned(),
        fd => format!("descriptor {fd}"),
    }
}

/// Describes a cycle: which process waits for which, at which descriptor.
pub(crate) fn cycle_text(cycle: &WaitCycle) -> String {
    let step = |step: &WaitStep| {
        let who = format!("{} (PID {})", step.name, step.pid);
        let holder = if step.holder == step.pid {
            String::new()
        } else {
            format!(" {} (PID {})", step.holder_name, step.holder)
        };
        if let Some((path, direction)) = &step.opens {
            let (does, lacks) =
                if *direction == Direction::In { ("reading", "writing") } else { ("writing", "reading") };
            return format!("{who} waits to open the FIFO {path} for {does}, but no process opens it for {lacks}");
        }
        if let Some(FileLock { path, .. }) = &step.lock {
            return format!("{who} waits for the lock on {path}, and{holder} holds it");
        }
        match step.on {
            None => format!("{who} waits for{holder} to exit"),
            Some(end) if end.direction == Direction::In => format!(
                "{who} waits for data on its {}, and{holder} holds the write end open as its {}",
                descriptor(end.fd),
                descriptor(step.holder_fd)
            ),
            Some(end) => format!(
                "{who} waits for room in the pipe on its {}, and{holder} has the read end as its {} but does not read",
                descriptor(end.fd),
                descriptor(step.holder_fd)
            ),
        }
    };
    let end = if cycle.may_have_alarm {
        " An alarm of one of these processes may end it; /proc doesn't show alarms."
    } else {
        ""
    };
    format!("Deadlock: {}.{end}", cycle.steps.iter().map(step).collect::<Vec<_>>().join("; "))
}
