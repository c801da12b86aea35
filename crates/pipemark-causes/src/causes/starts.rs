//! Detects stages that spend their time starting processes. Pure: no clock and no I/O.

use crate::cause::Cause;
use crate::hypothesis::{Hypothesis, Scene};
use crate::report::{GainRange, Quality};
use crate::stage_figures::StageFigures;

/// From this number of starts per second, starting processes counts as the stage's work. With fewer starts, each
/// process also does something else.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MIN_STARTS: f64 = 20.0;
/// The maximum CPU time in seconds of a process that does little but start and exit. An interpreter takes 5 to 20 ms to
/// start.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MAX_CPU: f64 = 0.03;
/// The maximum CPU time in seconds per page fault of a process that does little but start. Starting causes page faults,
/// which take about 10 µs each. A process that also works takes more time per fault.
/// Multiplied by 1.25 it changes 1, by 2 it changes 1 of 118 recorded verdicts (bench/thresholds.py).
const MAX_CPU_PER_FAULT: f64 = 25e-6;
/// The minimum share of a stage's CPU time that the started processes use.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MIN_SHARE: f64 = 0.3;
/// The minimum share of its busy time for which such a stage works. A stage whose processes mostly sleep or wait works
/// less.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MIN_WORK: f64 = 0.4;

/// A process above [`MAX_CPU`] or [`MAX_CPU_PER_FAULT`] still counts as one that does little but start, if it reads and
/// writes at most this number of bytes. An interpreter reads 10 to 250 KiB at its start.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MAX_BYTES: f64 = 320.0 * 1024.0;
/// The maximum number of bytes per second of CPU time of such a process. A compressor with so little input moves more.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MAX_BYTES_PER_SECOND: f64 = 14e6;
/// The maximum CPU time in seconds of such a process. jq takes 20 ms to start, and Java 50 ms.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MAX_CPU_OF_FEW_BYTES: f64 = 0.1;

/// A stage that mostly starts processes.
pub struct Starts {
    pub per_second: f64,
    /// The number of CPUs that the started processes use.
    pub cpus: f64,
    /// The number of bytes that each process reads and writes. `None` if CPU time and page faults suffice to show that
    /// the processes do little but start.
    pub few_bytes: Option<f64>,
}

/// What a stage starts; `None` unless it mostly starts processes.
pub fn starts(stage: &StageFigures) -> Option<Starts> {
    let per_second = stage.starts_per_second.filter(|&rate| rate >= MIN_STARTS)?;
    let spent = stage.cpu_of_children.unwrap_or(0.0) + stage.kernel.unwrap_or(0.0) / 2.0;
    // The share is relative to the CPU time that the stage got, because other programs may have used the rest.
    let cpu = stage.cpu.filter(|&cpu| cpu > 0.0)?;
    let spent = spent.min(cpu);
    // `cpu_wait` lacks the waits of processes that have exited. If other programs use the CPUs, these waits show only
    // in the states.
    let runnable = stage.computing + stage.waiting_for_cpu;
    let works = runnable.max(cpu + stage.cpu_wait.unwrap_or(0.0)) >= MIN_WORK * stage.busy;
    let faults = stage.faults_per_second;
    let only_starts = faults <= 0.0 || stage.cpu_of_children.unwrap_or(0.0) <= MAX_CPU_PER_FAULT * faults;
    let each = cpu / per_second;
    let few_bytes = |bytes: f64| bytes <= MAX_BYTES && bytes <= MAX_BYTES_PER_SECOND * each;
    let few_bytes = stage.bytes_per_start.filter(|&bytes| few_bytes(bytes) && each <= MAX_CPU_OF_FEW_BYTES);
    let only_starts = only_starts && each <= MAX_CPU;
    let found = works && (only_starts || few_bytes.is_some()) && spent >= MIN_SHARE * cpu;
    found.then_some(Starts { per_second, cpus: spent, few_bytes: few_bytes.filter(|_| !only_starts) })
}

/// Whether process starts take so much of a stage's time that its busy share doesn't bound the gain.
pub fn matter(stage: &StageFigures) -> bool {
    stage.starts_per_second.is_some_and(|rate| rate >= MIN_STARTS / 4.0)
}

/// Starts, for each stage that mostly starts processes.
pub fn assess(scene: &Scene) -> Vec<Hypothesis> {
    let of_stage = |stage: &&StageFigures| {
        let found = starts(stage)?;
        // The processes' time is saved, and possibly all else that the stage does for each of them.
        let share = found.cpus / stage.cpu.unwrap_or(1.0).max(found.cpus);
        let least = share * (stage.computing + stage.waiting_for_cpu) * stage.present;
        let gain = scene.model.without(&[(stage.number, least, stage.busy * stage.present)]);
        let gain = Some(GainRange { high: None, ..gain });
        Some(Hypothesis { gain, ..Hypothesis::of_stage(Cause::Starts, stage.number, Quality::Measured) })
    };
    scene.model.order.iter().filter_map(of_stage).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::VerdictKind;
    use crate::verdict::tests::{line, stage};
    use crate::verdict::verdict;

    fn starter(per_second: f64, children: f64) -> StageFigures {
        StageFigures {
            starts_per_second: Some(per_second),
            cpu_of_children: Some(children),
            cpu: Some(0.9),
            kernel: Some(0.4),
            ..stage(2, 98, 2, 0)
        }
    }

    #[test]
    fn many_processes_that_do_little_are_the_cause() {
        let found = verdict(&line(vec![stage(1, 2, 0, 98), starter(600.0, 0.7), stage(3, 3, 97, 0)]));
        assert_eq!((found.kind, found.stage, found.bound), (VerdictKind::Starts, Some(2), None), "{}", found.text);
        assert!(found.text.starts_with("s2 starts 600 processes per second"), "{}", found.text);
        // Other programs take the CPUs.
        let third = StageFigures { cpu: Some(0.3), kernel: Some(0.1), ..starter(200.0, 0.29) };
        let found = verdict(&line(vec![stage(1, 2, 0, 98), third, stage(3, 3, 97, 0)]));
        assert_eq!(found.kind, VerdictKind::Starts, "{}", found.text);
        // Forty processes start per second, and sleep.
        let sleeps =
            StageFigures { cpu: Some(0.02), kernel: Some(0.01), computing: 0.02, sleep: 0.96, ..starter(40.0, 0.02) };
        let found = verdict(&line(vec![stage(1, 2, 0, 98), sleeps, stage(3, 3, 97, 0)]));
        assert_eq!(found.kind, VerdictKind::Stage, "{}", found.text);
        // Two hundred processes start per second, and each compresses a file.
        let compress = StageFigures { faults_per_second: 30_000.0, cpu: Some(1.6), ..starter(200.0, 1.5) };
        let found = verdict(&line(vec![stage(1, 2, 0, 98), compress, stage(3, 3, 97, 0)]));
        assert_eq!(found.kind, VerdictKind::Stage, "{}", found.text);
        // Forty-five processes start per second and take 20 ms each. They move 100 KiB each in the first case, and 1 MB
        // each in the second.
        let jq =
            |bytes| StageFigures { faults_per_second: 20_000.0, bytes_per_start: Some(bytes), ..starter(45.0, 0.7) };
        let found = |bytes| verdict(&line(vec![stage(1, 2, 0, 98), jq(bytes), stage(3, 3, 97, 0)]));
        assert_eq!((found(102_400.0).kind, found(1e6).kind), (VerdictKind::Starts, VerdictKind::Stage));
        // Twenty-one processes start per second and take 43 ms each, for 500 KB.
        let slower = StageFigures { starts_per_second: Some(21.0), ..jq(500e3) };
        let kind = verdict(&line(vec![stage(1, 2, 0, 98), slower, stage(3, 3, 97, 0)])).kind;
        assert_eq!(kind, VerdictKind::Stage);
        let text = found(102_400.0).text;
        assert!(text.ends_with("they use 90 % of one CPU, but move only 100 KiB each."), "{text}");
        // Ten processes start per second, and each computes for 90 ms.
        let found = verdict(&line(vec![stage(1, 2, 0, 98), starter(10.0, 0.9), stage(3, 3, 97, 0)]));
        assert_eq!((found.kind, found.stage), (VerdictKind::Stage, Some(2)));
    }
}
