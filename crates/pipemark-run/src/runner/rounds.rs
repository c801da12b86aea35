//! Runs trials interleaved, in rounds of shuffled order, until each trial is precise enough or the budget is spent.

use std::time::{Duration, Instant};

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use pipemark_entrants::Entrants;
use pipemark_host::child::error::RunError;
use pipemark_host::child::interrupt::Interrupt;
use pipemark_model::{
    Chain, Cpu, Estimate, Host, Job, Nanos, Outcome, RoundTrip, Sample, Status, Stopped, Trial, Verify, Volume,
    Warning, names,
};
use pipemark_stats::estimate;
use pipemark_stats::order::shuffle;

use crate::available;
use crate::plan::{Plan, Runs, Schedule};
use crate::runner::Observer;
use crate::runner::conditions::{Conditions, RunResult};
use crate::runner::pair;
use crate::runner::shortage::{self, Shortage};
use crate::runner::{entrant, filter, foreign_chain, outside};

/// The shortest default sampling interval.
const MIN_INTERVAL: Duration = Duration::from_millis(4);

/// The time that the first round may take even if the budget is shorter.
const MIN_FIRST_ROUND: Duration = Duration::from_secs(2);

/// The result of running a plan.
pub struct Measurement {
    /// The outcome of each trial, in the order of the plan.
    pub outcomes: Vec<Outcome>,
    /// Whether the user interrupted the measurement before all runs were done.
    pub partial: bool,
    /// The total duration.
    pub elapsed: Duration,
    /// Whether the budget was too short for the planned runs.
    pub shortage: Option<Warning>,
}

/// A trial in progress.
struct TrialInProgress<'a> {
    outcome: Outcome,
    conditions: Option<Conditions<'a>>,
    /// The time that the first run took, with its preparations.
    first_run: Duration,
}

impl TrialInProgress<'_> {
    /// Ends the trial without a figure.
    fn fail(&mut self, error: &RunError) {
        self.conditions = None;
        self.outcome.status = if matches!(error, RunError::NotHere(_)) { Status::Skipped } else { Status::Failed };
        self.outcome.reason = Some(error.to_string());
        if let RunError::Unverified(reason) = error {
            self.outcome.verified = Some(false);
            self.outcome.reason = Some(format!("the data did not verify: {reason}"));
        }
    }

    /// Ends the trial if its interval is narrow enough after the minimum number of runs, or if it has had the maximum
    /// number of runs.
    fn stop_if_enough_runs(&mut self, schedule: &Schedule) {
        let samples = &self.outcome.samples;
        let runs = samples.len();
        self.outcome.stopped = match schedule.runs {
            Runs::Adaptive { min, .. }
                if runs >= min as usize
                    && estimate(samples).is_some_and(|estimate| estimate::is_narrow(&estimate, schedule.precision)) =>
            {
                Some(Stopped::Narrow)
            }
            Runs::Fixed(most) | Runs::Adaptive { max: most, .. } if runs >= most as usize => Some(Stopped::Runs),
            _ => return,
        };
        self.conditions = None;
    }
}

/// The estimate of the headline figure from the runs so far; `None` before the first run.
fn estimate(samples: &[Sample]) -> Option<Estimate> {
    estimate::from_runs(&samples.iter().map(Sample::headline).collect::<Vec<_>>())
}

/// The estimate so far as text, which begins with `words`.
fn estimate_so_far(words: &str, job: &Job, samples: &[Sample]) -> Option<String> {
    let words = if job.settings().equals_except_volume(&Job::default().settings()) { "default pipe" } else { words };
    Some(format!("{words} ≈ {} so far", job.mode().figure().0.show(estimate(samples)?.median)))
}

/// Runs every trial that can run here, interleaved. `entrants` must be the plan's entrants, already prepared.
pub fn measure(
    plan: &Plan,
    machine: &Host,
    entrants: &Entrants,
    interrupt: &Interrupt,
    progress: &mut dyn Observer,
) -> Measurement {
    let begin = Instant::now();
    let schedule = &plan.schedule;
    // A trial that occurs in several experiments is measured once.
    let first = |trial: &Trial| plan.trials.iter().position(|other| trial.is_same_as(other));
    let once = plan.trials.iter().enumerate().filter(|(index, trial)| first(trial) == Some(*index));
    let mut trials: Vec<TrialInProgress> =
        once.map(|(_, trial)| prepare(trial, machine, entrants, schedule, interrupt)).collect();
    let (least, budget, is_limit) = match schedule.runs {
        Runs::Fixed(runs) => (runs, Duration::MAX, false),
        Runs::Adaptive { min, .. } => (min, schedule.budget, schedule.budget_is_limit),
    };
    let mut shortage: Option<Warning> = None;
    let mut random = SplitMix64::seed_from_u64(schedule.seed);
    let mut lines = filter::FilterState::default();
    let mut partial = false;
    let mut done = 0;
    let words = names(&trials.iter().map(|current| &current.outcome.trial.job).collect::<Vec<_>>(), &[]);
    // The latest figure as text, for progress messages.
    let mut latest: Option<String> = None;
    'rounds: for round in 0.. {
        let mut order: Vec<usize> = (0..trials.len()).filter(|&i| trials[i].conditions.is_some()).collect();
        if order.is_empty() {
            break;
        }
        shuffle(&mut order, &mut random);
        let seed = random.next_u64();
        if is_limit && round == 0 {
            order.sort_by_key(|&i| shortage::expected_cost(&trials[i].outcome.trial.job));
        }
        if is_limit && round == 1 {
            let first_runs: Vec<(usize, Duration)> = order.iter().map(|&i| (i, trials[i].first_run)).collect();
            if let Some(short) = Shortage::of(&first_runs, least.saturating_sub(1), begin.elapsed(), budget) {
                for &dropped in &short.dropped {
                    trials[dropped].conditions = None;
                    trials[dropped].outcome.stopped = Some(Stopped::Budget);
                    progress.ended(&trials[dropped].outcome);
                }
                order.retain(|i| !short.dropped.contains(i));
                shortage = Some(short.warning(budget, least));
                shortage.iter().for_each(|warning| progress.short_of_time(warning));
            }
        }
        for (place, &i) in order.iter().enumerate() {
            // Without a figure of each trial, nothing says how long the planned runs take.
            if is_limit && round == 0 && place > 0 && begin.elapsed() > budget.max(MIN_FIRST_ROUND) {
                let trials = (order.len() - place) as u32;
                let (budget_ns, min_runs) = (Nanos::from(budget).0, least);
                shortage = Some(Warning::BudgetTooShort { budget_ns, needed_ns: None, min_runs, trials });
                shortage.iter().for_each(|warning| progress.short_of_time(warning));
                break 'rounds;
            }
            // The budget may run out within a round, but not before the minimum number of rounds.
            if round >= least && begin.elapsed() >= budget {
                break 'rounds;
            }
            let current = &mut trials[i];
            let to_come = order.len() - place + order.len() * least.saturating_sub(round + 1) as usize;
            progress.update(done, done + to_come as u64, latest.as_ref().unwrap_or(&words[i]));
            let started_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let Some(conditions) = &mut current.conditions else { continue };
            conditions.seed = seed;
            let run_begin = Instant::now();
            let job = &current.outcome.trial.job;
            let run = match job {
                Job::Entrant(entrant) => entrant::run(entrant, conditions, entrants, &mut lines.proven),
                Job::Lines(pipeline) => filter::run(pipeline, conditions, entrants, &mut lines),
                Job::Chain(chain @ Chain { source: Some(source), .. }) => foreign_chain::run(chain, source, conditions),
                Job::Stream(ends) | Job::RoundTrip(RoundTrip { ends, .. }) | Job::Chain(Chain { ends, .. }) => {
                    match ends.link.outside() {
                        Some(link) => outside::run(link, job, ends, conditions, entrants),
                        None => pair::run(job, ends, conditions, &mut |passed| progress.passed(passed)),
                    }
                }
            };
            if round == 0 {
                current.first_run = run_begin.elapsed();
            }
            match run {
                Ok(RunResult { sample, notes }) => {
                    current.outcome.samples.push(Sample { round, started_ns, ..sample });
                    if let Some(sample) = current.outcome.samples.last() {
                        progress.sampled(&current.outcome.trial, sample);
                    }
                    latest = estimate_so_far(&words[i], job, &current.outcome.samples);
                    for note in notes {
                        if !current.outcome.notes.contains(&note) {
                            current.outcome.notes.push(note);
                        }
                    }
                    current.stop_if_enough_runs(schedule);
                }
                Err(RunError::Interrupted) => {
                    partial = true;
                    break 'rounds;
                }
                Err(error) => current.fail(&error),
            }
            if current.conditions.is_none() {
                progress.ended(&current.outcome);
            }
            done += 1;
        }
    }
    let stopped = if partial { Stopped::Interrupted } else { Stopped::Budget };
    let mut last = |current: TrialInProgress<'_>| {
        let open = current.conditions.is_some();
        let outcome = outcome_of(current, stopped);
        if open {
            progress.ended(&outcome);
        }
        outcome
    };
    let measured: Vec<Outcome> = trials.into_iter().map(&mut last).collect();
    let of_trial = |trial: &Trial| {
        let outcome = measured.iter().find(|outcome| trial.is_same_as(&outcome.trial)).cloned();
        Outcome { trial: trial.clone(), ..outcome.expect("every trial was measured") }
    };
    let outcomes = plan.trials.iter().map(of_trial).collect();
    Measurement { outcomes, partial, elapsed: begin.elapsed(), shortage }
}

fn prepare<'a>(
    trial: &Trial,
    machine: &Host,
    entrants: &Entrants,
    schedule: &Schedule,
    interrupt: &'a Interrupt,
) -> TrialInProgress<'a> {
    let mut current =
        TrialInProgress { outcome: Outcome::of(trial.clone()), conditions: None, first_run: Duration::ZERO };
    match available::check(&trial.job, machine, entrants) {
        Ok(cpus) => {
            let node = |cpu: Cpu| machine.topology.iter().find(|one| one.cpu == cpu)?.node;
            if let Some((Some(writer), Some(reader))) = cpus.map(|(writer, reader)| (node(writer), node(reader)))
                && writer != reader
            {
                current.outcome.notes.push(Warning::Nodes { writer, reader });
            }
            // Even a short window is sampled several times.
            let interval = match trial.job.volume() {
                Volume::Time(time) if !schedule.by_interval => {
                    schedule.interval.min((Duration::from(time) / 5).max(MIN_INTERVAL))
                }
                _ => schedule.interval,
            };
            current.conditions = Some(Conditions { cpus, seed: 0, limit: schedule.run_limit, interval, interrupt })
        }
        Err(error) => current.fail(&error),
    }
    current
}

fn outcome_of(current: TrialInProgress<'_>, stopped: Stopped) -> Outcome {
    let mut outcome = current.outcome;
    if current.conditions.is_some() {
        outcome = match outcome.samples.is_empty() {
            true => outcome.not_started(stopped),
            false => Outcome { stopped: Some(stopped), ..outcome },
        };
    }
    if outcome.verified.is_none() && !outcome.samples.is_empty() && outcome.trial.job.verify() != Verify::None {
        outcome.verified = Some(true);
    }
    outcome
}
