//! Judges whether small reads and writes limit a pipeline, and which stage causes them. Pure: no clock and no I/O.

use crate::cause::{CallKind, Cause};
use crate::figures::PipelineFigures;
use crate::hypothesis::{Hypothesis, Scene};
use crate::pipe_figures::PipeFigures;
use crate::report::{GainRange, Quality};
use crate::stage_figures::StageFigures;

/// A call that moves at most this many bytes costs about as much as moving the bytes. Buffered programs write 4096
/// bytes or more.
/// Multiplied by 0.5 it changes 1, by 2 it changes 8 of 118 recorded verdicts (bench/thresholds.py).
const SMALL_CALL: f64 = 2048.0;
/// Calls limit a stage that spends at least this share of its CPU time in the kernel, if it computes little per call.
/// Multiplied by 1.25 it changes 1, by 2 it changes 5 of 118 recorded verdicts (bench/thresholds.py).
const LIMITING_SHARE: f64 = 0.25;
/// Calls limit a stage that spends at least this share of its CPU time in the kernel, however long it computes per call.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MOST: f64 = 0.5;
/// A stage computes little per call if it takes less CPU time than this in user mode, in seconds. Formatting a line in
/// an interpreter takes about 1 µs.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const LITTLE_SECONDS: f64 = 2.5e-6;
/// The same limit if the other end of the stage's pipe spends `LIMITING_SHARE` on small calls too: larger calls then save
/// time at both ends.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const LITTLE_SECONDS_OF_TWO: f64 = 5e-6;
/// A thread makes most of a stage's calls if it spends at least this share of the stage's kernel time.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MOST_CALLS: f64 = 0.6;
/// If a stage spends at least this share of its CPU time on small calls, its busy share doesn't bound the gain.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const NOTABLE_SHARE: f64 = 0.10;
/// The maximum kernel time per call, in seconds. If the mean is longer, the kernel time is spent on something other
/// than calls. On a virtual machine, a call that woke a process on another CPU took up to 12 µs.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MAX_CALL_SECONDS: f64 = 25e-6;
/// The sizes per call of two stages are considered equal within this factor. A message that is written by one call may
/// be read by two calls, the first of which reads the length.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const SAME_SIZE: f64 = 2.5;

/// The small calls of a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SmallCalls {
    /// Mean bytes per call.
    pub bytes: f64,
    /// Calls per second.
    pub per_second: f64,
}

fn small_calls(bytes: Option<f64>, per_second: Option<f64>) -> Option<SmallCalls> {
    let calls = SmallCalls { bytes: bytes?, per_second: per_second? };
    (calls.bytes <= SMALL_CALL && calls.per_second > 0.0).then_some(calls)
}

fn small_writes(stage: &StageFigures) -> Option<SmallCalls> {
    small_calls(stage.bytes_per_write, stage.writes_per_second)
}

fn small_reads(stage: &StageFigures) -> Option<SmallCalls> {
    small_calls(stage.bytes_per_read, stage.reads_per_second)
}

fn small_calls_per_second(stage: &StageFigures) -> f64 {
    [small_writes(stage), small_reads(stage)].into_iter().flatten().map(|calls| calls.per_second).sum()
}

/// The CPU time in the kernel and in all, in CPUs, of the thread that makes most of the stage's calls, or of all threads
/// if none does. Other threads, such as those of Java's compiler, compute at the same time.
fn cpu_of_caller(stage: &StageFigures) -> Option<(f64, f64)> {
    let all = (stage.kernel?, stage.cpu?);
    Some(caller(stage).map_or(all, |[user, kernel]| (kernel, user + kernel)))
}

/// The CPU time in user mode and in the kernel of one of several threads that makes most of the stage's calls.
fn caller(stage: &StageFigures) -> Option<[f64; 2]> {
    stage.caller.filter(|[_, kernel]| *kernel >= MOST_CALLS * stage.kernel.unwrap_or(0.0))
}

/// The share of its CPU time that a stage, or the thread that makes its calls, spends on small calls; 0 if it spends its
/// kernel time elsewhere.
pub fn share(stage: &StageFigures) -> f64 {
    let calls = small_calls_per_second(stage);
    let Some((kernel, cpu)) = cpu_of_caller(stage) else { return 0.0 };
    if calls <= 0.0 || cpu <= 0.0 || kernel / calls > MAX_CALL_SECONDS { 0.0 } else { (kernel / cpu).min(1.0) }
}

/// Whether small calls limit a stage: they take at least [`MOST`] of its CPU time, or at least [`LIMITING_SHARE`] if
/// the stage computes little per call. Of calls that read one byte each, [`NOTABLE_SHARE`] is enough, because what the
/// stage computes between two of them is done for one byte too.
fn limit(figures: &PipelineFigures, stage: &StageFigures) -> bool {
    let other_end = |pipe: &PipeFigures| match stage.number {
        number if number == pipe.from => Some(pipe.to),
        number if number == pipe.to => Some(pipe.from),
        _ => None,
    };
    let mut others = figures.pipes.iter().filter_map(other_end).map(|number| &figures.stages[number - 1]);
    let little =
        if others.any(|other| share(other) >= LIMITING_SHARE) { LITTLE_SECONDS_OF_TWO } else { LITTLE_SECONDS };
    let share = share(stage);
    let user = cpu_of_caller(stage).map_or(0.0, |(_, cpu)| cpu) * (1.0 - share);
    let is_by_bytes = small_reads(stage).is_some_and(|reads| reads.bytes.round() <= 1.0);
    let least = if is_by_bytes { NOTABLE_SHARE } else { LIMITING_SHARE };
    share >= MOST || share >= least && user <= little * small_calls_per_second(stage)
}

/// Whether a stage, while busy, mostly computes or waits for a CPU. Small calls don't limit a stage that mostly waits
/// for something else, such as a client that waits for its server.
fn computes_or_waits_for_cpu(stage: &StageFigures) -> bool {
    stage.computing + stage.waiting_for_cpu >= 0.6 * stage.busy
}

/// Whether small calls take so much of a stage's time that its busy share doesn't bound the gain.
pub fn matter(stage: &StageFigures) -> bool {
    share(stage) >= NOTABLE_SHARE
}

/// Which calls of a stage are small and most, and whether they are writes; `None` if they don't matter.
pub fn mentioned(stage: &StageFigures) -> Option<(bool, SmallCalls)> {
    let found = match (small_writes(stage), small_reads(stage)) {
        (Some(writes), Some(reads)) if reads.per_second > writes.per_second => (false, reads),
        (Some(writes), _) => (true, writes),
        (None, reads) => (false, reads?),
    };
    matter(stage).then_some(found)
}

/// Whether one of a stage's threads makes most of its calls.
pub fn has_caller(stage: &StageFigures) -> bool {
    caller(stage).is_some()
}

/// Whether a stage makes several times as many small reads as small writes, as a shell that reads byte by byte and
/// writes lines.
fn reads_more_often(stage: &StageFigures) -> bool {
    let per_second = |calls: Option<SmallCalls>| calls.map_or(0.0, |calls| calls.per_second);
    per_second(small_reads(stage)) > SAME_SIZE * per_second(small_writes(stage))
}

/// The small calls of a stage that causes them.
pub fn calls_of(stage: &StageFigures, kind: CallKind) -> Option<SmallCalls> {
    match kind {
        CallKind::Writes => small_writes(stage),
        CallKind::Reads | CallKind::OneByteReads => small_reads(stage),
        CallKind::ReadsAndWrites if reads_more_often(stage) => small_reads(stage),
        CallKind::ReadsAndWrites => small_writes(stage).or(small_reads(stage)),
    }
}

/// Whether the calls of a stage that causes them are writes.
pub fn is_by_writes(stage: &StageFigures, kind: CallKind) -> bool {
    match kind {
        CallKind::Writes => true,
        CallKind::Reads | CallKind::OneByteReads => false,
        CallKind::ReadsAndWrites => small_writes(stage).is_some() && !reads_more_often(stage),
    }
}

/// Small calls, for each stage that pays for them.
pub fn assess(scene: &Scene) -> Vec<Hypothesis> {
    let of_payer = |payer: &&StageFigures| {
        let (culprit, by_writes) = origin(scene.figures, payer)?;
        let (own_reads, own_writes) = (small_reads(culprit), small_writes(culprit));
        let calls = if by_writes { own_writes? } else { own_reads? };
        let both = own_reads.is_some() && own_writes.is_some();
        let kind = match (by_writes, both) {
            (_, true) => CallKind::ReadsAndWrites,
            (true, _) => CallKind::Writes,
            (false, _) if calls.bytes.round() <= 1.0 => CallKind::OneByteReads,
            (false, _) => CallKind::Reads,
        };
        // Larger pieces save the calls at both ends, and an unknown part of what else is done for each call.
        let saved = |stage: &StageFigures| {
            (stage.number, share(stage) * stage.computing * stage.present, stage.computing * stage.present)
        };
        let mut stages = vec![saved(payer)];
        stages.extend((culprit.number != payer.number).then(|| saved(culprit)));
        let gain = GainRange { high: None, ..scene.model.without(&stages) };
        Some(Hypothesis {
            payer: Some(payer.number),
            explains: if limit(scene.figures, payer) { 1.0 } else { share(payer) },
            gain: Some(gain),
            ..Hypothesis::of_stage(Cause::Calls(kind), culprit.number, Quality::Measured)
        })
    };
    scene
        .model
        .order
        .iter()
        .filter(|stage| matter(stage) && computes_or_waits_for_cpu(stage))
        .filter_map(of_payer)
        .collect()
}

/// The stage that causes the small pieces that `payer` reads or writes. The flag is `true` if its writes cause them,
/// and `false` if its reads do.
fn origin<'f>(figures: &'f PipelineFigures, payer: &'f StageFigures) -> Option<(&'f StageFigures, bool)> {
    let writer_of = |stage: &StageFigures| {
        let pipe = figures.pipes.iter().find(|pipe| pipe.to == stage.number)?;
        figures.stages.get(pipe.from - 1)
    };
    let mut stage = payer;
    // A stage that writes more small pieces than it reads causes them by its writes.
    let mut by_writes = match (small_writes(stage), small_reads(stage)) {
        (Some(_), None) => return Some((stage, true)),
        (Some(own), Some(input)) if own.bytes * SAME_SIZE < input.bytes => return Some((stage, true)),
        (None, None) => return None,
        (Some(_), Some(_)) => true,
        (None, Some(_)) => false,
    };
    // A stage that passes small pieces on got them from the previous stage.
    for _ in 0..figures.stages.len() {
        let Some(input) = small_reads(stage) else { return Some((stage, true)) };
        let Some(before) = writer_of(stage) else { break };
        match small_writes(before) {
            Some(output) if output.bytes <= input.bytes * SAME_SIZE => {
                (stage, by_writes) = (before, true);
                if small_reads(stage).is_none_or(|input| output.bytes * SAME_SIZE < input.bytes) {
                    return Some((stage, true));
                }
            }
            // The stage's input comes in large pieces, but the stage reads small ones.
            _ => return Some((stage, false)),
        }
    }
    Some((stage, by_writes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::VerdictKind;
    use crate::verdict::tests::{line, stage};
    use crate::verdict::verdict;

    /// A busy stage with the given bytes per read and per write, 100,000 of each per second, and the given kernel time.
    fn calling(number: usize, busy: u32, read: Option<f64>, write: Option<f64>, kernel: f64) -> StageFigures {
        StageFigures {
            bytes_per_read: read,
            bytes_per_write: write,
            reads_per_second: read.map(|_| 1e5),
            writes_per_second: write.map(|_| 1e5),
            kernel: Some(kernel),
            ..stage(number, busy, 100 - busy, 0)
        }
    }

    #[test]
    fn the_writer_of_small_pieces_is_named_whichever_end_is_busier() {
        for (writer, reader) in [(99, 80), (80, 99), (97, 96)] {
            let found = verdict(&line(vec![
                calling(1, writer, None, Some(33.0), 0.6),
                calling(2, reader, Some(35.0), None, 0.7),
            ]));
            assert_eq!((found.kind, found.stage, found.bound), (VerdictKind::Calls, Some(1), None), "{}", found.text);
            assert_eq!(found.cause, "small writes");
            assert!(found.text.starts_with("s1 writes 33 bytes per call (100 k calls/s)"), "{}", found.text);
        }
    }

    #[test]
    fn a_stage_that_passes_small_pieces_on_is_not_the_cause() {
        let found = verdict(&line(vec![
            calling(1, 40, Some(512.0), Some(512.0), 0.3),
            calling(2, 98, Some(512.0), Some(512.0), 0.9),
            calling(3, 50, Some(1024.0), None, 0.3),
        ]));
        assert_eq!((found.kind, found.stage), (VerdictKind::Calls, Some(1)), "{}", found.text);
        assert_eq!(found.cause, "small reads and writes");
    }

    #[test]
    fn a_stage_that_reads_single_bytes_is_named() {
        let found = |read, kernel, calls| {
            let reader = StageFigures { reads_per_second: Some(calls), ..calling(2, 99, Some(read), None, kernel) };
            verdict(&line(vec![calling(1, 5, None, Some(4096.0), 0.01), reader]))
        };
        let by_bytes = found(1.0, 0.5, 1e5);
        assert_eq!((by_bytes.kind, by_bytes.stage), (VerdictKind::Calls, Some(2)));
        assert_eq!(by_bytes.cause, "reads of one byte");
        assert!(by_bytes.text.contains("reads 1 byte per call"), "{}", by_bytes.text);
        // A fifth of its time is enough, unless the stage computes for long between the calls or reads more.
        // A shell that also writes each line.
        let echo = StageFigures { reads_per_second: Some(7e5), ..calling(2, 99, Some(1.0), Some(69.0), 0.5) };
        let lines =
            verdict(&line(vec![calling(1, 5, None, Some(4096.0), 0.01), echo, calling(3, 9, Some(69.0), None, 0.0)]));
        assert!(lines.text.starts_with("s2 reads 1 byte per call (800 k calls/s in all)"), "{}", lines.text);
        let kinds = [found(1.0, 0.2, 7e5), found(1.0, 0.2, 2e5), found(8.0, 0.2, 7e5)].map(|verdict| verdict.kind);
        assert_eq!(kinds, [VerdictKind::Calls, VerdictKind::Stage, VerdictKind::Stage]);
    }

    #[test]
    fn computing_between_small_calls_is_computing() {
        // The stage spends nine tenths of its time in user mode.
        let own = StageFigures { kernel: Some(0.08), ..calling(1, 99, None, Some(33.0), 0.08) };
        let found = verdict(&line(vec![own, calling(2, 20, Some(33.0), None, 0.1)]));
        assert_eq!((found.kind, found.stage), (VerdictKind::Stage, Some(1)));
        // A few small writes do not explain the kernel time.
        let few = StageFigures { writes_per_second: Some(20.0), ..calling(1, 99, None, Some(33.0), 0.8) };
        let found = verdict(&line(vec![few, stage(2, 20, 80, 0)]));
        assert_eq!(found.kind, VerdictKind::Stage);
    }

    #[test]
    fn a_client_that_waits_for_its_server_is_not_slow_by_its_calls() {
        let client = calling(2, 99, Some(60.0), Some(60.0), 0.1);
        let client = StageFigures { computing: 0.15, network: 0.84, cpu: Some(0.15), ..client };
        let found = verdict(&line(vec![stage(1, 1, 0, 99), client]));
        assert_eq!((found.kind, found.stage), (VerdictKind::Stage, Some(2)), "{}", found.text);
    }

    #[test]
    fn a_stage_that_computes_for_long_between_calls_is_not_slow_by_its_calls() {
        let at = |calls: f64| {
            let stage = StageFigures { writes_per_second: Some(calls), ..calling(1, 99, None, Some(31.0), 0.34) };
            verdict(&line(vec![stage, calling(2, 20, Some(4096.0), None, 0.1)])).kind
        };
        assert_eq!((at(1.4e5), at(4e5)), (VerdictKind::Stage, VerdictKind::Calls));
        // The reader also spends much of its CPU time on calls.
        let both = |calls: f64| {
            let stage = StageFigures { writes_per_second: Some(calls), ..calling(1, 99, None, Some(31.0), 0.34) };
            verdict(&line(vec![stage, calling(2, 50, Some(33.0), None, 0.2)])).kind
        };
        assert_eq!((both(1.0e5), both(1.4e5)), (VerdictKind::Stage, VerdictKind::Calls));
    }

    #[test]
    fn what_other_threads_compute_does_not_count() {
        // A thread of Java writes lines, while others compile.
        let java =
            |caller| StageFigures { cpu: Some(1.5), threads: 20, caller, ..calling(1, 99, None, Some(20.0), 0.35) };
        let found = |caller| verdict(&line(vec![java(caller), stage(2, 20, 80, 0)]));
        let of_one = found(Some([0.2, 0.33]));
        assert_eq!((of_one.kind, of_one.stage), (VerdictKind::Calls, Some(1)), "{}", of_one.text);
        assert_eq!(found(None).kind, VerdictKind::Stage);
        assert_eq!(found(Some([0.05, 0.1])).kind, VerdictKind::Stage, "all threads make calls");
        assert_eq!(found(Some([0.9, 0.23])).kind, VerdictKind::Stage, "the thread computes");
    }

    #[test]
    fn no_bound_follows_where_calls_take_part_of_the_time() {
        let part = calling(1, 99, None, Some(33.0), 0.2);
        let found = verdict(&line(vec![part, stage(2, 60, 40, 0)]));
        assert_eq!((found.kind, found.bound), (VerdictKind::Stage, None), "{}", found.text);
        assert!(!found.text.contains("at most"), "{}", found.text);
        assert!(
            found.text.contains("It writes 33 bytes per call: system calls take 20 % of its CPU"),
            "{}",
            found.text
        );
        let balanced = verdict(&line(vec![calling(1, 99, None, Some(33.0), 0.2), stage(2, 95, 5, 0)]));
        assert_ne!(balanced.kind, VerdictKind::Balanced);
    }
}
