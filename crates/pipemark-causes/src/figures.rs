//! Turns the counts of samples and counters into shares and rates.

use std::collections::{HashMap, HashSet};

use pipemark_proc::state::ThreadState;
use pipemark_proc::topology::upstream_first;

use crate::evidence::{MachineLimits, PipeEvidence, PipelineEvidence, WaitCycle};
use crate::exact_text::ExactText;
use crate::interval::{EndWaits, Interval, PipeCounts};
use crate::pipe_figures::PipeFigures;
use crate::seen_stage::SeenStage;
use crate::stage_figures::StageFigures;

/// Formats a share in whole per cent.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// The figures of a pipeline in an interval, from which a verdict is found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PipelineFigures {
    /// Start of the interval, in seconds since sampling began.
    pub begin: f64,
    /// The time in seconds for which any process of the pipeline existed.
    pub seconds: f64,
    /// The number of samples in that time.
    pub samples: u32,
    pub stages: Vec<StageFigures>,
    pub pipes: Vec<PipeFigures>,
    /// The index of each stage among all stages of the evidence.
    pub places: Vec<usize>,
    /// Processes that have waited for each other for a second; `None` if there are none.
    pub cycle: Option<WaitCycle>,
    /// This machine's limits, on which advice depends.
    pub limits: MachineLimits,
    /// Whether the pipeline was sampled from its start, and these are its figures since then.
    pub from_start: bool,
    /// The pipeline as typed; `None` if unknown.
    pub typed: Option<ExactText>,
    /// Whether the text is that of a process which this call didn't start. Its user could be anybody, so it isn't
    /// printed as a command.
    pub typed_elsewhere: bool,
    /// The shell that runs the pipeline or, if nobody typed it here, the user's shell; empty if unknown.
    pub shell: String,
    /// Names of functions in the environment, which a shell runs instead of programs, and of programs such as busybox.
    pub functions: Vec<String>,
}

/// An interval that begins at most this many seconds after sampling began counts as the first.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const FIRST_INTERVAL: f64 = 0.1;

impl PipelineFigures {
    /// Figures of an interval. Stages that existed only briefly, such as a shell that was about to exec another
    /// program, are skipped.
    pub fn of(evidence: &PipelineEvidence, interval: &Interval) -> PipelineFigures {
        PipelineFigures::of_places(evidence, interval, indices_of_kept(evidence, interval))
    }

    /// Figures of a part of the time that `whole` covers. Stages and pipes keep the numbers that they have in `whole`.
    /// Stages that didn't exist in this part have no shares.
    pub fn of_part(evidence: &PipelineEvidence, interval: &Interval, whole: &PipelineFigures) -> PipelineFigures {
        let mut figures = PipelineFigures::of_places(evidence, interval, whole.places.clone());
        let missing = |pipe: &PipeFigures| PipeFigures {
            writer_waits: 0.0,
            reader_waits: 0.0,
            bytes_per_second: None,
            stretch: None,
            reader_stretch: None,
            turns: Some(0),
            ..pipe.clone()
        };
        let same = |one: &PipeFigures, other: &PipeFigures| (one.from, one.to) == (other.from, other.to);
        let mut found = std::mem::take(&mut figures.pipes);
        figures.pipes = whole
            .pipes
            .iter()
            .map(|pipe| match found.iter().position(|other| same(pipe, other)) {
                Some(at) => PipeFigures { number: pipe.number, ..found.remove(at) },
                None => missing(pipe),
            })
            .collect();
        figures
    }

    /// The name of a stage, followed by its number if other stages have the same name.
    pub fn name_of(&self, number: usize) -> String {
        let StageFigures { name, label, .. } = &self.stages[number - 1];
        if !label.is_empty() {
            return label.clone();
        }
        let same = self.stages.iter().filter(|stage| stage.name == *name).count();
        if same > 1 { format!("{name} (stage {number})") } else { name.clone() }
    }

    /// The figures of some stages, as if there were no others. They are numbered anew, and keep their labels. The time
    /// is that in which the longest of them existed.
    pub fn subset(&self, numbers: &[usize]) -> PipelineFigures {
        let stages = || numbers.iter().filter_map(|number| self.stages.get(number - 1));
        let life = stages().map(|stage| stage.present).fold(0.0, f64::max);
        let life = if life > 0.0 { life } else { 1.0 };
        let renumbered = |number: usize| numbers.iter().position(|&one| one == number).map(|at| at + 1);
        let stage = |(&old, number): (&usize, usize)| {
            let stage = self.stages.get(old - 1)?;
            let present = stage.present / life;
            Some(StageFigures { number, label: self.name_of(old), present, ..stage.clone() })
        };
        let ends = |pipe: &PipeFigures| Some((renumbered(pipe.from)?, renumbered(pipe.to)?));
        let kept = self.pipes.iter().filter_map(|pipe| Some((pipe, ends(pipe)?))).zip(1..);
        PipelineFigures {
            stages: numbers.iter().zip(1..).filter_map(stage).collect(),
            pipes: kept.map(|((pipe, (from, to)), number)| PipeFigures { number, from, to, ..pipe.clone() }).collect(),
            places: numbers.iter().filter_map(|number| self.places.get(number - 1).copied()).collect(),
            typed: self.typed.clone(),
            shell: self.shell.clone(),
            functions: self.functions.clone(),
            seconds: self.seconds * life,
            samples: (f64::from(self.samples) * life).round() as u32,
            cycle: None,
            ..*self
        }
    }

    /// Figures of the stages with these indices, in this order.
    fn of_places(evidence: &PipelineEvidence, interval: &Interval, kept: Vec<usize>) -> PipelineFigures {
        let number: HashMap<usize, usize> = kept.iter().zip(1..).map(|(&place, number)| (place, number)).collect();
        let number = |place: usize| number.get(&place).copied();
        let mut by_id: HashMap<(u64, u64), Vec<&PipeEvidence>> = HashMap::new();
        evidence.pipes.iter().for_each(|pipe| by_id.entry(pipe.id).or_default().push(pipe));
        let between: HashSet<(usize, usize)> = evidence.pipes.iter().map(|pipe| (pipe.from, pipe.to)).collect();
        let mut stages: Vec<StageFigures> =
            kept.iter().zip(1..).map(|(&place, number)| stage(evidence, interval, place, number)).collect();
        let mut pipes = Vec::new();
        for (pipe, counts) in evidence.pipes.iter().zip(&interval.pipes) {
            if let (Some(from), Some(to)) = (number(pipe.from), number(pipe.to))
                && counts.samples > 0
            {
                let share = |count: u32| f64::from(count) / f64::from(counts.samples);
                let step = interval.seconds / f64::from(interval.samples.max(1));
                // If two stages have the same output pipe and one of them writes to the other, the first one only
                // passed its output pipe on, as tar does to gzip.
                let passed_on = |one: &&PipeEvidence| one.from != pipe.from && between.contains(&(pipe.from, one.from));
                if counts.writer.samples == 0 && by_id[&pipe.id].iter().any(passed_on) {
                    continue;
                }
                // Waits that a buffer could not save, such as a long one at the end, are not part of a burst.
                let length = |waits: &EndWaits, end: usize| {
                    let mean = waits.seconds(counts.samples, step)?;
                    let saved = counts.lengths[end] as f64 / f64::from(counts.absorbable) * step;
                    (counts.absorbable > 0).then(|| mean.min(saved))
                };
                pipes.push(PipeFigures {
                    number: 0,
                    from,
                    to,
                    capacity: pipe.capacity,
                    writer_waits: share(counts.writer.samples),
                    reader_waits: share(counts.reader.samples),
                    bytes_per_second: None,
                    stretch: length(&counts.writer, 0),
                    reader_stretch: length(&counts.reader, 1),
                    is_socket: pipe.is_socket,
                    turns: Some(counts.turns),
                    absorbable: Some(absorbable(counts)),
                });
            }
        }
        count_polling_as_waiting(&mut stages, &pipes);
        // If a stage's waits were corrected, the waits at its pipes are corrected in proportion.
        for pipe in &mut pipes {
            let seen = |number: usize, state: ThreadState| {
                let Some(counts) = interval.stages.get(kept[number - 1]) else { return 0.0 };
                f64::from(counts.states[state as usize]) / f64::from(counts.states.iter().sum::<u32>().max(1))
            };
            let grow =
                |share: f64, before: f64, now: f64| if before > 0.0 { (share * now / before).min(1.0) } else { now };
            let (writer, reader) = (&stages[pipe.from - 1], &stages[pipe.to - 1]);
            pipe.writer_waits = grow(pipe.writer_waits, seen(pipe.from, ThreadState::Blocked), writer.blocked);
            pipe.reader_waits = grow(pipe.reader_waits, seen(pipe.to, ThreadState::Starved), reader.starved);
        }
        // A parent and its child may be joined by pipes that carry no data, such as one that only shows that the other
        // process has exited.
        let waited = |pipe: &PipeFigures| pipe.writer_waits + pipe.reader_waits > 0.0;
        let used: Vec<[usize; 2]> = pipes
            .iter()
            .filter(|pipe| waited(pipe))
            .map(|pipe| [pipe.from.min(pipe.to), pipe.from.max(pipe.to)])
            .collect();
        pipes.retain(|pipe| waited(pipe) || !used.contains(&[pipe.from.min(pipe.to), pipe.from.max(pipe.to)]));
        pipes.sort_by_cached_key(|pipe| (pipe.from, pipe.to));
        pipes.iter_mut().zip(1..).for_each(|(pipe, number)| pipe.number = number);
        let from_start = evidence.started && interval.begin < FIRST_INTERVAL;
        let seconds = interval.seconds * f64::from(interval.alive) / f64::from(interval.samples.max(1));
        if from_start {
            let uncounted: Vec<bool> = kept.iter().map(|&place| evidence.stages[place].uncounted).collect();
            let silent = sources_that_wrote_only_messages(&stages, &pipes, &uncounted);
            for at in silent {
                let (stage, arrived) = (&mut stages[at], evidence.stages[kept[at]].arrived_ever);
                (stage.bytes_out_per_second, stage.wrote_before, stage.seconds_silent) = (None, None, Some(seconds));
                stage.held_bytes = stage.held_bytes.map(|bytes| bytes.max(arrived.bytes));
                stage.arrivals = arrived.increases;
            }
        }
        set_rates(&mut stages, &mut pipes);
        set_labels(&mut stages);
        PipelineFigures {
            begin: interval.begin,
            seconds,
            samples: interval.alive,
            stages,
            pipes,
            places: kept,
            cycle: evidence.cycle.clone(),
            limits: evidence.limits,
            from_start,
            typed: evidence.typed.clone(),
            typed_elsewhere: evidence.typed_elsewhere,
            shell: evidence.shell.clone(),
            functions: evidence.functions.clone(),
        }
    }
}

/// The indices of the stages that the figures include, upstream first.
fn indices_of_kept(evidence: &PipelineEvidence, interval: &Interval) -> Vec<usize> {
    let seen = |place: usize| interval.stages.get(place).map_or(0, |counts| counts.states.iter().sum::<u32>());
    let longest = (0..evidence.stages.len()).map(seen).max().unwrap_or(0);
    let joined: HashSet<usize> = evidence.pipes.iter().flat_map(|pipe| [pipe.from, pipe.to]).collect();
    let counts = |place: usize| {
        // A stage that no pipe joins to others may be a shell that starts the pipeline. It counts only if it existed
        // for at least half as long as the stage that existed longest.
        let apart = !joined.contains(&place);
        seen(place) > 0 && seen(place) * if apart && !evidence.pipes.is_empty() { 2 } else { 50 } >= longest
    };
    let mut waits: HashMap<(usize, usize), u32> = HashMap::new();
    for (at, pipe) in evidence.pipes.iter().enumerate() {
        let counts = interval.pipes.get(at).map_or(0, |counts| counts.writer.samples + counts.reader.samples);
        *waits.entry((pipe.from, pipe.to)).or_default() += counts;
    }
    let kept: Vec<usize> = (0..evidence.stages.len()).filter(|&place| counts(place)).collect();
    let number: HashMap<usize, usize> = kept.iter().enumerate().map(|(at, &place)| (place, at)).collect();
    // A pair of sockets joins two stages both ways, but may be used only one way.
    let feeds =
        waits.iter().filter(|&(&(from, to), &count)| count > 0 || waits.get(&(to, from)).is_none_or(|&n| n == 0));
    let feeds = feeds.filter_map(|((from, to), _)| Some((*number.get(from)?, *number.get(to)?)));
    let feeds: Vec<(usize, usize)> = feeds.collect();
    upstream_first(kept.len(), &feeds).into_iter().map(|at| kept[at]).collect()
}

/// The part of the waits of both ends that a buffer between them would save, from 0 to 1. It is 0 if the reader waits
/// first and the writer afterwards, as with a reader that takes everything and then computes.
fn absorbable(counts: &PipeCounts) -> f64 {
    let both = counts.writer.samples.min(counts.reader.samples);
    if both == 0 { 1.0 } else { f64::from(counts.absorbable.min(both)) / f64::from(both) }
}

/// Whether a stage reads in a loop and mostly gets no data, instead of waiting for input from `writers`.
fn polls(stage: &StageFigures, writers: &[&StageFigures]) -> bool {
    /// The minimum number of reads per second.
    /// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
    const MIN_READS: f64 = 1000.0;
    /// The minimum number of reads per write.
    /// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
    const MIN_READS_PER_WRITE: f64 = 4.0;
    /// The maximum share of time for which the stage waits for input, or for which its writers wait for room.
    /// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
    const MAX_WAITS: f64 = 0.02;
    /// The minimum share of time for which the stage runs.
    /// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
    const MIN_RUNS: f64 = 0.9;
    let Some(bytes) = stage.bytes_per_read.filter(|_| stage.reads_per_second.is_some_and(|reads| reads >= MIN_READS))
    else {
        return false;
    };
    // If a stage really takes its input in small pieces, its input pipe is full, or the stage sometimes waits.
    let runs = stage.computing + stage.waiting_for_cpu >= MIN_RUNS && stage.starved <= MAX_WAITS;
    let in_vain = |writer: &&StageFigures| {
        let pieces = writer.bytes_per_write.is_some_and(|written| bytes * MIN_READS_PER_WRITE < written);
        pieces && writer.blocked <= MAX_WAITS
    };
    !writers.is_empty() && (bytes < 1.0 || runs && writers.iter().all(in_vain))
}

/// Counts the time that stages spend polling for input as waiting for input.
fn count_polling_as_waiting(stages: &mut [StageFigures], pipes: &[PipeFigures]) {
    for at in 0..stages.len() {
        let writers =
            pipes.iter().filter(|pipe| pipe.to == at + 1).map(|pipe| &stages[pipe.from - 1]).collect::<Vec<_>>();
        if polls(&stages[at], &writers) {
            let stage = &mut stages[at];
            let polling = stage.computing + stage.waiting_for_cpu;
            (stage.polls, stage.computing, stage.waiting_for_cpu) = (true, 0.0, 0.0);
            stage.starved += polling;
            stage.busy -= polling;
        }
    }
}

/// The figures of a stage in an interval. If it didn't exist then, there are no shares, but a name.
fn stage(evidence: &PipelineEvidence, interval: &Interval, place: usize, number: usize) -> StageFigures {
    if let Some(seen) = SeenStage::of(evidence, interval, place, number) {
        return StageFigures::of(&seen);
    }
    let stage = &evidence.stages[place];
    StageFigures {
        number,
        name: stage.name.clone(),
        command: stage.command.clone(),
        pid: stage.pids.first().copied().unwrap_or(0),
        words: stage.words.clone(),
        arguments: stage.arguments.clone(),
        cpus: stage.cpus.clone(),
        ..StageFigures::default()
    }
}

/// Names the stages: stages with the same name get their number.
fn set_labels(stages: &mut [StageFigures]) {
    for at in 0..stages.len() {
        let same = |other: &&StageFigures| other.name == stages[at].name;
        let (all, before) = (stages.iter().filter(same).count(), stages[..at].iter().filter(same).count());
        let stage = &mut stages[at];
        stage.same_before = before;
        stage.label = if all > 1 { format!("{} (stage {})", stage.name, stage.number) } else { stage.name.clone() };
    }
}

/// The indices of the sources none of whose readers has read anything since the start, although they wait for it. What
/// such a source has written are messages on standard error, such as curl's progress. `uncounted` tells for each stage
/// whether it makes calls that the kernel doesn't count.
fn sources_that_wrote_only_messages(stages: &[StageFigures], pipes: &[PipeFigures], uncounted: &[bool]) -> Vec<usize> {
    /// The minimum share of time for which the readers wait.
    /// Multiplied by 2 it changes 1 of 118 recorded verdicts (bench/thresholds.py).
    const MIN_WAITS: f64 = 0.8;
    let waits = |pipe: &PipeFigures| {
        let reader = &stages[pipe.to - 1];
        !uncounted[pipe.to - 1] && reader.starved >= MIN_WAITS && reader.reads_per_second == Some(0.0)
    };
    let is_silent = |number: usize| {
        let mut readers = pipes.iter().filter(|pipe| pipe.from == number).peekable();
        readers.peek().is_some() && readers.all(waits) && !pipes.iter().any(|pipe| pipe.to == number)
    };
    (0..stages.len()).filter(|at| is_silent(at + 1)).collect()
}

/// Sets the rate of each pipe to the rate of the end whose count covers exactly the pipe's bytes. The count of an end
/// that also uses other files is too high. Then sets the stages' input and output rates to the rates of their pipes.
fn set_rates(stages: &mut [StageFigures], pipes: &mut [PipeFigures]) {
    /// The rates of the two ends of a pipe are considered equal within this factor.
    /// Multiplied by 1.25 it changes 1, by 2 it changes 1 of 118 recorded verdicts (bench/thresholds.py).
    const SAME_RATE: f64 = 1.1;
    // Whether the pipe is the only one that its writer writes to, and the only one that its reader reads from.
    let alone = |pipe: &PipeFigures| {
        let only = |end: fn(&PipeFigures) -> usize| pipes.iter().filter(|other| end(other) == end(pipe)).count() == 1;
        (only(|pipe| pipe.from), only(|pipe| pipe.to))
    };
    let alone: Vec<(bool, bool)> = pipes.iter().map(alone).collect();
    for (pipe, &(writes, reads)) in pipes.iter_mut().zip(&alone) {
        let out = stages[pipe.from - 1].bytes_out_per_second.filter(|_| writes);
        let input = stages[pipe.to - 1].bytes_in_per_second.filter(|_| reads);
        pipe.bytes_per_second = match (out, input) {
            // If one end counts fewer bytes, some of its calls are not counted. If it counts more, the additional bytes
            // belong to other files.
            (Some(out), Some(input)) if out > input * SAME_RATE && !stages[pipe.from - 1].writes_others => Some(out),
            (Some(out), Some(input)) if input > out * SAME_RATE && !stages[pipe.to - 1].reads_others => Some(input),
            (Some(out), Some(input)) if out < input / 50.0 => Some(input),
            (Some(out), Some(input)) if input < out / 50.0 => Some(out),
            (Some(out), Some(input)) => Some(out.min(input)),
            // The reader's count may include other files.
            (None, Some(_)) if pipe.is_socket && stages[pipe.to - 1].reads_others => None,
            (out, input) => out.or(input),
        };
    }
    set_rates_of_copies(stages, pipes);
    for (pipe, &(writes, reads)) in pipes.iter().zip(&alone) {
        if writes {
            stages[pipe.from - 1].bytes_out_per_second = pipe.bytes_per_second;
        }
        if reads {
            stages[pipe.to - 1].bytes_in_per_second = pipe.bytes_per_second;
        }
    }
}

/// Sets the rates of the pipes of each stage that writes to several pipes. If the stage writes a multiple of its input,
/// as tee does, each pipe gets all of the input. Otherwise the readers' counts are right only if they add up to the
/// stage's output.
fn set_rates_of_copies(stages: &[StageFigures], pipes: &mut [PipeFigures]) {
    /// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
    const SAME: f64 = 0.1;
    let alike = |a: f64, b: f64| (a / b - 1.0).abs() <= SAME;
    for stage in stages {
        let count = pipes.iter().filter(|pipe| pipe.from == stage.number).count();
        let (Some(out), Some(input)) = (stage.bytes_out_per_second, stage.bytes_in_per_second) else { continue };
        if count < 2 {
            continue;
        }
        let read: f64 =
            pipes.iter().filter(|pipe| pipe.from == stage.number).filter_map(|pipe| pipe.bytes_per_second).sum();
        let copied =
            alike(out, input * count as f64) || (stage.writes_others && alike(out, input * (count as f64 + 1.0)));
        for pipe in pipes.iter_mut().filter(|pipe| pipe.from == stage.number) {
            if copied {
                pipe.bytes_per_second = Some(input);
            } else if !stage.writes_others && !alike(read, out) {
                pipe.bytes_per_second = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::StageEvidence;
    use crate::interval::StageCounts;
    use crate::seen_stage::tests::counts;

    #[test]
    fn samples_after_the_end_do_not_count() {
        let counts = counts(10, 0, 10);
        let one = Interval { seconds: 2.0, samples: 80, alive: 20, stages: vec![counts], ..Interval::default() };
        let evidence = PipelineEvidence { stages: vec![StageEvidence::default()], ..PipelineEvidence::default() };
        let figures = PipelineFigures::of(&evidence, &one);
        assert_eq!((figures.samples, figures.seconds, figures.stages[0].present), (20, 0.5, 1.0));
    }

    #[test]
    fn a_stage_that_reads_in_vain_waits_for_input() {
        let writer = |blocked: f64| StageFigures { blocked, bytes_per_write: Some(1024.0), ..StageFigures::default() };
        let reader = |bytes: f64| StageFigures {
            computing: 0.99,
            busy: 1.0,
            bytes_per_read: Some(bytes),
            reads_per_second: Some(1e6),
            ..StageFigures::default()
        };
        assert!(polls(&reader(0.5), &[&writer(0.0)]));
        assert!(polls(&reader(1.3), &[&writer(0.0)]));
        assert!(!polls(&reader(1.0), &[&writer(0.6)]), "it takes its input byte by byte");
        assert!(!polls(&StageFigures { starved: 0.1, ..reader(1.0) }, &[&writer(0.0)]), "it waits at times");
        assert!(!polls(&reader(1024.0), &[&writer(0.0)]));
        assert!(!polls(&StageFigures { reads_per_second: Some(1.0), ..reader(0.0) }, &[&writer(0.0)]), "at the end");
        assert!(!polls(&reader(0.5), &[]), "a file");
        let mut stages = [writer(0.0), reader(1.3)];
        let pipe = PipeFigures { from: 1, to: 2, ..PipeFigures::default() };
        count_polling_as_waiting(&mut stages, &[pipe]);
        assert!(stages[1].polls && stages[1].starved == 0.99 && stages[1].busy < 0.02 && stages[1].computing == 0.0);
    }

    #[test]
    fn what_a_source_writes_while_its_reader_reads_nothing_are_messages() {
        let curl = StageFigures { number: 1, bytes_out_per_second: Some(80.0), ..StageFigures::default() };
        let grep = |starved: f64, reads: f64| StageFigures {
            number: 2,
            starved,
            reads_per_second: Some(reads),
            ..StageFigures::default()
        };
        let pipe = PipeFigures { from: 1, to: 2, ..PipeFigures::default() };
        let found = |reader: StageFigures, splices: bool| {
            sources_that_wrote_only_messages(&[curl.clone(), reader], std::slice::from_ref(&pipe), &[false, splices])
        };
        assert_eq!(found(grep(1.0, 0.0), false), [0]);
        assert!(found(grep(1.0, 0.3), false).is_empty() && found(grep(0.1, 0.0), false).is_empty());
        assert!(found(grep(1.0, 0.0), true).is_empty(), "the reader's calls aren't counted");
    }

    #[test]
    fn no_rate_comes_from_a_stage_that_also_splices() {
        let counts = StageCounts { read: Some(1), wrote: Some(1), counted_bytes: 10, ..counts(10, 0, 0) };
        let one = Interval { seconds: 1.0, samples: 10, alive: 10, stages: vec![counts], ..Interval::default() };
        let mut evidence = PipelineEvidence::default();
        for uncounted in [false, true] {
            evidence.stages = vec![StageEvidence { uncounted, ..StageEvidence::default() }];
            let figures = &PipelineFigures::of(&evidence, &one).stages[0];
            let known = [figures.bytes_in_per_second, figures.bytes_out_per_second].map(|rate| rate.is_some());
            assert_eq!(known, [!uncounted; 2]);
        }
    }

    #[test]
    fn stages_are_in_the_order_of_the_pipes_that_are_used() {
        let mut evidence =
            PipelineEvidence { stages: vec![StageEvidence::default(); 2], ..PipelineEvidence::default() };
        evidence.pipes = [(0, 1), (1, 0)]
            .map(|(from, to)| PipeEvidence { from, to, id: (0, 1), ..PipeEvidence::default() })
            .to_vec();
        let waits =
            |count| PipeCounts { writer: EndWaits { samples: count, ..EndWaits::default() }, ..PipeCounts::default() };
        let order = |pipes: &[u32]| {
            let pipes = pipes.iter().map(|&count| waits(count)).collect();
            let one = Interval { stages: vec![counts(10, 0, 0); 2], pipes, ..Interval::default() };
            indices_of_kept(&evidence, &one)
        };
        assert_eq!(order(&[0, 9]), [1, 0]);
        assert_eq!(order(&[9, 0]), [0, 1]);
        assert_eq!(order(&[9, 9]), [0, 1], "a cycle");
        // Pipes that the last scan found have no counts yet.
        assert_eq!(order(&[]), [0, 1]);
    }

    #[test]
    fn the_rate_of_a_pipe_is_that_of_the_end_that_counts_more() {
        let stage = |number, bytes_in_per_second, bytes_out_per_second| StageFigures {
            number,
            bytes_in_per_second,
            bytes_out_per_second,
            ..StageFigures::default()
        };
        let rate = |writes_others: bool, out: f64, input: f64| {
            let writer = StageFigures { writes_others, ..stage(1, None, Some(out)) };
            let mut stages = [writer, stage(2, Some(input), None)];
            let (number, from, to) = (1, 1, 2);
            let mut pipes = [PipeFigures { number, from, to, ..PipeFigures::default() }];
            set_rates(&mut stages, &mut pipes);
            assert_eq!(stages[0].bytes_out_per_second, pipes[0].bytes_per_second);
            pipes[0].bytes_per_second.unwrap()
        };
        // One end splices part of its bytes.
        assert_eq!((rate(false, 1.2, 20.0), rate(false, 20.0, 1.2)), (20.0, 20.0));
        // The writer also writes a file, like tee.
        assert_eq!(rate(true, 20.0, 10.0), 10.0);
        assert_eq!(rate(false, 10.0, 10.5), 10.0);
    }

    #[test]
    fn a_stage_that_copies_its_input_gives_all_of_it_to_each_reader() {
        let rates = |out: f64, read: [f64; 2]| {
            let stage = |number, bytes_in_per_second, bytes_out_per_second| StageFigures {
                number,
                bytes_in_per_second,
                bytes_out_per_second,
                ..StageFigures::default()
            };
            let mut stages =
                [stage(1, Some(15.0), Some(out)), stage(2, Some(read[0]), None), stage(3, Some(read[1]), None)];
            let mut pipes = [2, 3].map(|to| PipeFigures { number: to - 1, from: 1, to, ..PipeFigures::default() });
            super::set_rates(&mut stages, &mut pipes);
            pipes.map(|pipe| pipe.bytes_per_second)
        };
        // The second reader splices.
        assert_eq!(rates(30.0, [15.0, 1.2]), [Some(15.0); 2]);
        // The writer distributes its output among its readers.
        assert_eq!(rates(15.0, [10.0, 5.0]), [Some(10.0), Some(5.0)]);
        assert_eq!(rates(15.0, [10.0, 0.2]), [None, None]);
    }
}
