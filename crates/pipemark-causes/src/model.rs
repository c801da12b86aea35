//! A model of a pipeline's speed: for which share of the time each stage is needed, and what the pipes and the CPUs couple.
//! A cause is taken out, and the model says how much faster the pipeline would be. The time now is 1.
//!
//! Each need has two ends. At the most, a stage needs all of the time for which it is busy. At the least, it doesn't need
//! the time in which it waits for a CPU or for something unknown, its kernel time (which shrinks with larger pieces), and
//! what it loses to a program that computes beside it.

use pipemark_model::total_order;

use crate::figures::PipelineFigures;
use crate::report::GainRange;
use crate::stage_figures::StageFigures;

/// Two stages are alike if their shares differ by less than this. Two samplings of a pipeline differ by less.
/// Multiplied by 0.5 it changes 2, by 0.8 it changes 2 of 118 recorded verdicts (bench/thresholds.py).
pub const BALANCED: f64 = 0.10;
/// The share of its time that a program may lose while another program computes on the same core. A virtual machine
/// doesn't show which CPUs share a core. On a development machine, two gzip processes lost 0.05.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const CORE_SHARED: f64 = 0.3;
/// The largest gain that is promised. A larger one would mean that the other stages are hardly busy. Wake-ups then take
/// most of their time, and become fewer when more data arrives at once.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
pub const MAX_BOUND: f64 = 10.0;
/// A stage with more context switches per second than this spends part of its time on these switches.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
pub const OFTEN_SWITCHED: f64 = 1000.0;

/// The share of the whole time for which a stage is busy, from 0 to 1. Samples in which one of its threads waits for
/// input while others work don't count as busy, because the stage could take more input.
pub fn busy(stage: &StageFigures) -> f64 {
    if stage.is_unsampled() { 0.0 } else { (stage.busy - stage.hungry).max(0.0) * stage.present }
}

/// The busy share minus the time in which the stage waits for a CPU or for something unknown. The unknown thing may be
/// another stage.
pub fn working_share(stage: &StageFigures) -> f64 {
    (busy(stage) - (stage.waiting_for_cpu + stage.other) * stage.present).max(0.0)
}

/// Whether most of a stage's CPU time is that of processes that it started, and that have ended.
pub fn is_work_of_children(stage: &StageFigures) -> bool {
    stage.cpu_of_children.unwrap_or(0.0) > 0.5 * stage.cpu.unwrap_or(0.0)
}

/// The least that a stage needs if `without` takes no time.
pub fn least_need(stage: &StageFigures, without: &StageFigures) -> f64 {
    // The stage may wait for a CPU only because the other one uses it. Its kernel time, such as that for waking others
    // and copying small pieces, shrinks when the other one gets faster.
    let kernel = stage.kernel.unwrap_or(0.0).min(stage.computing);
    let alone = stage.busy - stage.waiting_for_cpu - kernel;
    // A stage with several threads may run on several CPUs at once.
    let spread = stage.cpu.unwrap_or(stage.computing) / stage.threads.max(1) as f64;
    let needs = if stage.threads > 1 { alone.min(spread) } else { alone };
    // Two programs that compute at the same time share caches, and often a core.
    (needs - CORE_SHARED * needs.min(stage.computing) * without.computing) * stage.present
}

/// The model of a pipeline.
pub struct Model<'f> {
    figures: &'f PipelineFigures,
    /// The stages, the one whose removal gains most first.
    pub order: Vec<&'f StageFigures>,
}

impl<'f> Model<'f> {
    pub fn of(figures: &'f PipelineFigures) -> Model<'f> {
        let mut order: Vec<&StageFigures> = figures.stages.iter().collect();
        order.sort_by_cached_key(|stage| total_order(-busy(stage)));
        // If two stages are about equally busy, the one that works longer uses the CPU that the other one waits for.
        if let [first, second, ..] = order[..]
            && busy(first) - busy(second) <= 2.0 * BALANCED
            && working_share(second) - working_share(first) > 2.0 * BALANCED
        {
            order.swap(0, 1);
        }
        Model { figures, order }
    }

    /// The largest busy share.
    pub fn top(&self) -> f64 {
        self.order.first().map_or(0.0, |stage| busy(stage))
    }

    /// Whether a stage is among those whose removal may gain most: within `margin` of the busiest.
    pub fn is_near_top(&self, stage: &StageFigures, margin: f64) -> bool {
        busy(stage) >= self.top() - margin
    }

    /// The time in which no stage works, which no faster stage saves.
    fn slack(&self) -> f64 {
        (1.0 - self.figures.stages.iter().map(busy).fold(0.0, f64::max)).max(0.0)
    }

    fn gain(low: f64, high: Option<f64>) -> GainRange {
        let low = low.clamp(1.0, MAX_BOUND);
        GainRange { low, high: high.filter(|&high| high < MAX_BOUND).map(|high| high.max(low)) }
    }

    /// The gain if these stages needed less: the share of the whole time that is saved at each, at least and at most.
    pub fn without(&self, saved: &[(usize, f64, f64)]) -> GainRange {
        let of = |stage: &StageFigures, most: bool| {
            let all = saved.iter().filter(|(number, ..)| *number == stage.number);
            all.map(|&(_, least, all)| if most { all } else { least }).sum::<f64>()
        };
        let stages = || self.figures.stages.iter().filter(|stage| !stage.is_unsampled());
        let removed = stages().find(|stage| saved.iter().any(|(number, ..)| *number == stage.number));
        let none = StageFigures::default();
        let removed = removed.unwrap_or(&none);
        let longest = stages().map(|stage| (busy(stage) - of(stage, false)).max(0.0)).fold(0.0, f64::max);
        let shortest = stages().map(|stage| match of(stage, true) {
            saved if saved > 0.0 => (busy(stage) - saved).max(0.0),
            _ => least_need(stage, removed).min(busy(stage)),
        });
        let shortest = shortest.fold(0.0, f64::max);
        // While a stage alone works, no other stage's work is hidden behind it.
        let alone = match saved {
            [(number, least, _)] => {
                let stage = &self.figures.stages[number - 1];
                let part = if busy(stage) > 0.0 { (least / busy(stage)).min(1.0) } else { 0.0 };
                stage.alone.unwrap_or(0.0) * part
            }
            _ => 0.0,
        };
        let time = (longest + self.slack()).min(1.0 - alone).clamp(0.01, 1.0);
        Model::gain(1.0 / time, Some(1.0 / shortest.max(1e-9)))
    }

    /// The gain if a stage cost nothing.
    pub fn without_stage(&self, stage: &StageFigures) -> GainRange {
        self.without(&[(stage.number, busy(stage), busy(stage))])
    }

    /// The gain if a stage didn't do this for `share` of the time for which it exists.
    pub fn without_share(&self, stage: &StageFigures, share: f64) -> GainRange {
        let saved = (share * stage.present).min(busy(stage));
        self.without(&[(stage.number, saved, saved)])
    }

    /// The gain if a pipe absorbed the bursts for which both its ends wait for `both` of the time.
    pub fn with_buffer(&self, both: f64) -> GainRange {
        let busiest = self.figures.stages.iter().map(busy).fold(0.0, f64::max);
        Model::gain((1.0 / (1.0 - both / 2.0).max(0.01)).min(1.0 / busiest.max(0.01)), Some(1.0 / busiest.max(0.01)))
    }

    /// The gain if no stage waited for a CPU.
    pub fn with_more_cpus(&self) -> GainRange {
        let stages = || self.figures.stages.iter().filter(|stage| !stage.is_unsampled());
        let without = |stage: &StageFigures| (busy(stage) - stage.waiting_for_cpu * stage.present).max(0.0);
        let longest = stages().map(without).fold(0.0, f64::max) + self.slack();
        let threads = |stage: &StageFigures| {
            let used = stage.cpu.unwrap_or(stage.computing) * stage.present;
            without(stage).min(used / stage.threads.max(1) as f64)
        };
        let shortest = stages().map(threads).fold(0.0, f64::max);
        Model::gain(1.0 / longest.max(0.01), Some(1.0 / shortest.max(1e-9)))
    }

    /// The gain if no stage waited for something outside the pipeline, as one does for this share of the time.
    pub fn without_wait(&self, share: f64) -> GainRange {
        let busiest = self.figures.stages.iter().map(busy).fold(0.0, f64::max);
        let time = (1.0 - share).max(busiest).clamp(0.01, 1.0);
        Model::gain(1.0 + (1.0 / time - 1.0) / 2.0, Some(1.0 / busiest.max(1e-9)))
    }

    /// The gain if the whole pipeline were not stopped for this share of the time.
    pub fn without_stop(&self, share: f64) -> GainRange {
        let high = 1.0 / (1.0 - share).max(0.01);
        Model::gain(1.0 + (high - 1.0) / 2.0, Some(high))
    }
}
