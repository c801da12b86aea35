//! Chooses the volume of a trial, which is the number of bytes to move, by measuring. For chains of several lengths, it
//! is the smallest with which starting the processes takes at most 5 % of a run. For other trials, it is the given
//! total, or more if a run would take less than a few milliseconds, which answers no claim.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pipemark_entrants::Entrants;
use pipemark_host::child::interrupt::Interrupt;
use pipemark_model::{ByteSize, Chain, Host, Job, Key, MAX_START, Nanos, Sample, Trial, Value};

use crate::available;
use crate::plan::{Plan, Runs};
use crate::runner::Observer;
use crate::runner::conditions::{Conditions, RunResult};
use crate::runner::foreign_chain;
use crate::runner::pair;

/// The intended share of a run that starting the processes takes, 0 to 1. It is below the limit, because runs differ.
const TARGET_START_SHARE: f64 = 0.9 * MAX_START;
/// The duration of a run, in nanoseconds, below which a trial with a given total moves more than this total. It is above
/// the duration that claims need (10 ms), because runs differ.
const MIN_RUN: f64 = 30e6;
/// The largest number of runs to find the volume of one chain.
const MAX_RUNS: usize = 4;
/// The largest factor by which the volume grows from one run to the next. The rate at a small volume predicts little
/// about a large one.
const MAX_GROWTH: f64 = 32.0;
/// The time limit for one round of all chains whose volume is chosen here, if the number of runs is fixed. Otherwise
/// the budget is the limit.
const ROUND_LIMIT: Duration = Duration::from_secs(60);
/// The largest volume, in bytes.
const MAX_VOLUME: f64 = 1e12;

/// The timing of one trial.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ChainTiming {
    bytes: f64,
    start_ns: f64,
    transfer_ns: f64,
}

impl ChainTiming {
    fn of(sample: &Sample) -> ChainTiming {
        let start_ns = sample.real().saturating_sub(sample.ns) as f64;
        ChainTiming { bytes: sample.bytes as f64, start_ns, transfer_ns: sample.ns.max(1) as f64 }
    }

    /// The number of bytes for a run that lasts `ns` nanoseconds from the first start to the last exit.
    fn bytes_of(self, ns: f64) -> f64 {
        self.bytes * (ns - self.start_ns).max(0.0) / self.transfer_ns
    }

    /// The intended duration of a run, in nanoseconds. With `least`, the transfer takes [`MIN_RUN`], or as long as for
    /// the given total. Otherwise, the start takes the share [`TARGET_START_SHARE`].
    fn wanted_run_ns(self, least: bool) -> f64 {
        match least {
            true => self.start_ns + self.transfer_ns.max(MIN_RUN),
            false => self.start_ns / TARGET_START_SHARE,
        }
    }
}

/// The plan with the volume that each trial needs, multiplied by the plan's scale. A trial that can't run keeps its
/// volume, and reports the reason.
pub fn with_volumes(
    plan: &Plan,
    machine: &Host,
    entrants: &Entrants,
    interrupt: &Interrupt,
    progress: &mut dyn Observer,
) -> Plan {
    let mut plan = plan.clone();
    let wanted = std::mem::take(&mut plan.to_measure);
    let has_least = |plan: &Plan, at: usize| plan.with_least.contains(&plan.trials[at].experiment);
    let asked: Vec<usize> = (0..plan.trials.len()).filter(|at| wanted.contains(&plan.trials[*at].experiment)).collect();
    let mut found: BTreeMap<usize, ChainTiming> = BTreeMap::new();
    let begin = Instant::now();
    for (nth, at) in asked.iter().enumerate() {
        // At least half of the budget remains for measuring.
        let left = match plan.schedule.runs {
            Runs::Adaptive { .. } if plan.schedule.budget_is_limit => plan.schedule.budget / 4,
            Runs::Adaptive { .. } => plan.schedule.budget / 2,
            Runs::Fixed(_) => Duration::MAX,
        }
        .saturating_sub(begin.elapsed());
        if left.is_zero() {
            break;
        }
        let trial = &plan.trials[*at];
        progress.update(nth as u64, asked.len() as u64, &format!("choosing the number of bytes for {}", trial.id));
        let limit = plan.schedule.run_limit.min(left);
        let least = has_least(&plan, *at);
        found.extend(find_volume(trial, least, machine, entrants, interrupt, limit).map(|one| (*at, one)));
    }
    for at in asked.iter().filter(|at| !has_least(&plan, **at)) {
        if let (false, Some(timing)) = (found.contains_key(at), predicted(&plan.trials, &found, *at)) {
            found.insert(*at, timing);
        }
    }
    let round = match plan.schedule.runs {
        Runs::Adaptive { min, .. } => plan.schedule.budget / min.max(1),
        Runs::Fixed(_) => ROUND_LIMIT,
    };
    let wanted_run_ns = |at: usize, one: &ChainTiming| one.wanted_run_ns(has_least(&plan, at));
    let durations: Vec<f64> = found.iter().map(|(at, one)| wanted_run_ns(*at, one)).collect();
    let limit = run_limit(&durations, Nanos::from(round).0 as f64);
    // Chains that are compared with each other must move the same volume.
    let group = |trial: &Trial| (trial.experiment.clone(), trial.baseline.clone().unwrap_or_else(|| trial.id.clone()));
    let mut totals: BTreeMap<_, u64> = BTreeMap::new();
    for (at, one) in &found {
        let total = totals.entry(group(&plan.trials[*at])).or_default();
        let bytes = match has_least(&plan, *at) {
            // The given total is kept as it is.
            true if one.transfer_ns >= MIN_RUN => one.bytes as u64,
            true => round_number(one.bytes_of(wanted_run_ns(*at, one))),
            false => round_number(one.bytes_of(wanted_run_ns(*at, one).min(limit))),
        };
        *total = (*total).max(bytes);
    }
    let scale = plan.scale;
    let of_trial = |trial: &Trial| {
        // A program that runs a chain itself moves what the chain of its length moves.
        let is_twin = |other: &&Trial| {
            let of = |trial: &Trial| trial.job.value(Key::Length);
            other.experiment == trial.experiment && other.job.ends().is_some() && of(other) == of(trial)
        };
        let twin = || plan.trials.iter().find(is_twin).filter(|_| trial.job.entrant().is_some());
        let total = totals.get(&group(trial)).or_else(|| totals.get(&group(twin()?)))?;
        let block = trial.job.block().map_or(1, |block| block.0).max(1);
        let total = scale.apply(total.div_ceil(block) * block, block);
        let mut settings = trial.job.settings();
        settings.set(Value::Total(ByteSize(total)));
        Job::try_from(settings).ok()
    };
    let jobs: Vec<Option<Job>> = plan.trials.iter().map(of_trial).collect();
    let ids: BTreeMap<(String, String), String> = plan
        .trials
        .iter()
        .zip(&jobs)
        .filter_map(|(trial, job)| Some(((trial.experiment.clone(), trial.id.clone()), job.as_ref()?.id())))
        .collect();
    for experiment in &mut plan.experiments {
        let columns =
            experiment.gains.iter_mut().flat_map(|gains| &mut gains.blocks).flat_map(|block| &mut block.columns);
        for cell in columns.flat_map(|column| &mut column.cells).flatten() {
            if let Some(id) = ids.get(&(experiment.name.clone(), cell.trial.clone())) {
                cell.trial.clone_from(id);
            }
        }
    }
    for (trial, job) in plan.trials.iter_mut().zip(jobs) {
        if let Some(job) = job {
            (trial.id, trial.job) = (job.id(), job);
        }
        let renamed =
            |id: &String| ids.get(&(trial.experiment.clone(), id.clone())).cloned().unwrap_or_else(|| id.clone());
        trial.baseline = trial.baseline.as_ref().map(renamed);
    }
    plan
}

/// The timing of a chain that wasn't run, from the longest measured chain of its experiment: both the start and the
/// transfer take a time in proportion to the number of stages. `None` if no other chain was measured.
fn predicted(trials: &[Trial], measured: &BTreeMap<usize, ChainTiming>, at: usize) -> Option<ChainTiming> {
    let length = |trial: &Trial| trial.job.chain().map(|chain| f64::from(chain.length)).filter(|length| *length > 0.0);
    let alike = measured.iter().filter(|(other, _)| trials[**other].experiment == trials[at].experiment);
    let known = alike.filter_map(|(other, timing)| Some((length(&trials[*other])?, *timing)));
    let (of_known, timing) = known.max_by(|one, other| one.0.total_cmp(&other.0))?;
    let times = length(&trials[at])? / of_known;
    Some(ChainTiming { start_ns: timing.start_ns * times, transfer_ns: timing.transfer_ns * times, ..timing })
}

/// Runs a trial with increasing volumes until the start takes a small enough share of the time or, with `least`, until
/// the run is long enough.
fn find_volume(
    trial: &Trial,
    least: bool,
    machine: &Host,
    entrants: &Entrants,
    interrupt: &Interrupt,
    limit: Duration,
) -> Option<ChainTiming> {
    let cpus = available::check(&trial.job, machine, entrants).ok()?;
    let conditions = Conditions { cpus, seed: 1, limit, interval: Duration::from_millis(100), interrupt };
    let mut job = trial.job.clone();
    let mut last = None;
    let begin = Instant::now();
    for _ in 0..MAX_RUNS {
        let run = match &job {
            Job::Chain(chain @ Chain { source: Some(source), .. }) => foreign_chain::run(chain, source, &conditions),
            Job::Stream(ends) | Job::Chain(Chain { ends, .. }) => pair::run(&job, ends, &conditions, &mut |_| {}),
            _ => return None,
        };
        // A failure occurs again when the trial is measured, and is then reported.
        let Ok(RunResult { sample, .. }) = run else { return last };
        let timing = ChainTiming::of(&sample);
        last = Some(timing);
        let is_enough = match least {
            true => timing.transfer_ns >= MIN_RUN,
            false => timing.start_ns <= MAX_START * (timing.start_ns + timing.transfer_ns),
        };
        if is_enough || begin.elapsed() > ROUND_LIMIT {
            break;
        }
        let bytes = timing
            .bytes_of(timing.wanted_run_ns(least))
            .clamp(timing.bytes, (timing.bytes * MAX_GROWTH).min(MAX_VOLUME));
        let mut settings = job.settings();
        settings.set(Value::Total(ByteSize(bytes as u64)));
        job = Job::try_from(settings).ok()?;
    }
    last
}

/// The time limit for one run, in the unit of `each`, with which all runs together take at most `round`. `each` has the
/// durations of the runs without a limit. Infinite if no limit is needed.
fn run_limit(each: &[f64], round: f64) -> f64 {
    let mut each = each.to_vec();
    each.sort_unstable_by(f64::total_cmp);
    let mut left = round;
    for (nth, run_ns) in each.iter().enumerate() {
        let share = left / (each.len() - nth) as f64;
        if *run_ns > share {
            return share;
        }
        left -= run_ns;
    }
    f64::INFINITY
}

/// Rounds up to 1 or 1.5 times a power of two, so that two measurements on one machine mostly choose the same volume.
fn round_number(bytes: f64) -> u64 {
    let bytes = bytes.clamp(1.0, MAX_VOLUME).ceil() as u64;
    let power = bytes.next_power_of_two();
    let between = power / 4 * 3;
    if bytes <= between { between } else { power }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_longest_runs_are_limited() {
        assert_eq!(run_limit(&[1.0, 2.0, 3.0], 6.0), f64::INFINITY);
        assert_eq!(run_limit(&[1.0, 20.0, 3.0], 10.0), 6.0);
        assert_eq!(run_limit(&[20.0, 20.0], 10.0), 5.0);
        assert_eq!(run_limit(&[], 10.0), f64::INFINITY);
    }

    #[test]
    fn the_timing_of_a_longer_chain_is_predicted() {
        let trial = |experiment: &str, length: &str| {
            let settings = [("stage", "cat"), ("length", length), ("total", "1m"), ("place", "free")]
                .map(|(key, text)| Value::parse(Key::named(key).unwrap(), text).unwrap());
            let job = Job::try_from(pipemark_model::Settings::of(settings)).unwrap();
            Trial { id: job.id(), experiment: experiment.to_owned(), job, baseline: None, published: None }
        };
        let trials = [trial("e", "16"), trial("e", "32"), trial("e", "64"), trial("f", "64")];
        let timing = |times: f64| ChainTiming { bytes: 1e6, start_ns: 1e6 * times, transfer_ns: 3e6 * times };
        let measured = BTreeMap::from([(0, timing(1.0)), (1, timing(3.0))]);
        assert_eq!(predicted(&trials, &measured, 2), Some(timing(6.0)), "from the longest measured chain");
        assert_eq!(predicted(&trials, &measured, 3), None, "another experiment may have another stage");
    }

    #[test]
    fn the_start_takes_the_intended_share_of_a_run() {
        let found = ChainTiming { bytes: 1e6, start_ns: 1e6, transfer_ns: 2e6 };
        let bytes = found.bytes_of(found.wanted_run_ns(false));
        let transfer = found.transfer_ns * bytes / found.bytes;
        let least = found.bytes_of(found.wanted_run_ns(true));
        assert!((least / 1e6 - MIN_RUN / 2e6).abs() < 1e-6, "the transfer takes long enough");
        assert!((found.start_ns / (found.start_ns + transfer) - TARGET_START_SHARE).abs() < 1e-9);
        assert_eq!(found.bytes_of(0.5e6), 0.0, "there is no time to transfer anything");
    }

    #[test]
    fn a_volume_is_rounded_up_by_half_at_most() {
        for bytes in [1.0, 5.0, 1000.0, 3e6, 4_194_304.0, 4_194_305.0, 7.7e9] {
            let rounded = round_number(bytes) as f64;
            assert!(rounded >= bytes && rounded <= 1.5 * bytes + 1.0, "{bytes}: {rounded}");
        }
    }
}
