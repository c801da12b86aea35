//! Confirms the best variants in interleaved rounds, and finds the fastest pipeline to paste.

use std::time::Duration;

use pipemark_stats::ranking::{BySession, against, is_resolved};
use pipemark_stats::verdict::Verdict;

use super::{Experimenter, MIN_GAIN, MIN_ROUNDS, median};
use crate::lab::{NoRun, RunOutput, counted_only};
use crate::result::{ExperimentKind, Fastest, TuneExperiment};

/// The number of variants that are confirmed.
const CONFIRMED: usize = 3;
const MAX_ROUNDS: usize = 15;

impl Experimenter<'_, '_, '_> {
    /// Measures the best variants and the pipeline as it is in interleaved rounds.
    pub(super) fn confirm(&mut self) {
        let chosen = self.choose();
        if chosen.is_empty() || self.interrupted {
            return;
        }
        let criterion = self.plan.threshold;
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); chosen.len() + 1];
        for round in 0..MAX_ROUNDS {
            let spent: f64 = times.iter().filter_map(|times| times.last()).sum();
            let enough = round >= MIN_ROUNDS && {
                let all = by_round(&times);
                is_resolved(&all, 0, criterion)
            };
            // The minimum is kept even if the budget is spent, unless it would take a quarter longer.
            let late =
                self.left() < spent && (round >= MIN_ROUNDS || self.left() + self.budget.as_secs_f64() / 4.0 < spent);
            if enough || late {
                break;
            }
            let mut row = vec![0.0; times.len()];
            for nth in 0..times.len() {
                let at = (nth + round) % times.len();
                let variant = if at == 0 { self.baseline.clone() } else { self.trials[chosen[at - 1]].variant.clone() };
                let limit = Duration::from_secs_f64(self.base_time() * 5.0 + 5.0);
                let label = if at == 0 { "as it is" } else { &self.trials[chosen[at - 1]].experiment.text };
                self.progress.show(&format!("round {} of the best: {label}", round + 1));
                match self.lab.run(&variant, limit, counted_only()) {
                    Ok(run) if self.is_confirmed(&chosen, at, &run.output) => row[at] = run.elapsed.as_secs_f64(),
                    Ok(_) => {
                        self.notes.push("a confirming run had another output, so nothing is confirmed".to_owned());
                        return;
                    }
                    Err(NoRun::Interrupted) => {
                        self.interrupted = true;
                        break;
                    }
                    Err(NoRun::TooSlow | NoRun::Failed(_)) => {
                        self.notes.push("a confirming run failed, so nothing is confirmed".to_owned());
                        return;
                    }
                }
            }
            if self.interrupted {
                break;
            }
            times.iter_mut().zip(row).for_each(|(times, time)| times.push(time));
        }
        self.judge(&chosen, &times);
    }

    /// Whether a confirming run wrote what was expected; 0 stands for the pipeline as it is.
    fn is_confirmed(&self, chosen: &[usize], at: usize, output: &RunOutput) -> bool {
        match at.checked_sub(1).map(|nth| &self.trials[chosen[nth]].experiment) {
            None => output.is_same(&self.reference),
            Some(experiment) => experiment.same_output.is_none() || self.is_expected(experiment, output),
        }
    }

    /// The trials to confirm: the best two pipelines to paste, then the best of the others.
    fn choose(&self) -> Vec<usize> {
        let gain = |at: &usize| self.trials[*at].experiment.gain.unwrap_or(0.0);
        let mut useful: Vec<usize> = (0..self.trials.len())
            .filter(|at| gain(at) > MIN_GAIN && self.trials[*at].experiment.kind != ExperimentKind::Alone)
            .collect();
        useful.sort_by(|one, other| gain(other).total_cmp(&gain(one)));
        let is_pasted = |at: &&usize| self.trials[**at].experiment.command.is_some();
        let mut chosen: Vec<usize> = useful.iter().filter(is_pasted).take(2).copied().collect();
        let others = useful.iter().filter(|at| !is_pasted(at));
        chosen.extend(others.take(CONFIRMED - chosen.len()).copied());
        chosen
    }

    fn judge(&mut self, chosen: &[usize], times: &[Vec<f64>]) {
        let all = by_round(times);
        if times[0].is_empty() {
            return;
        }
        self.base_times.clone_from(&times[0]);
        let Ok(comparisons) = against(&all, 0, self.plan.threshold) else { return };
        for (nth, at) in chosen.iter().enumerate() {
            let Some(comparison) = comparisons[nth + 1] else { continue };
            let experiment = &mut self.trials[*at].experiment;
            let gain = |change: f64| 1.0 / (1.0 + change);
            experiment.seconds = Some(median(&times[nth + 1]));
            experiment.gain = Some(gain(comparison.change));
            experiment.runs = u32::try_from(times[nth + 1].len()).unwrap_or(u32::MAX);
            let judged = comparison.judged().filter(|(low, _)| *low > -1.0);
            (experiment.low, experiment.high) = judged.map(|(low, high)| (gain(high), gain(low))).unzip();
            experiment.verdict = judged.map(|_| comparison.verdict);
        }
        // The gains of all experiments refer to the same time.
        let base = self.base_time();
        for trial in &mut self.trials {
            if trial.experiment.verdict.is_none() {
                trial.experiment.gain = trial.experiment.seconds.map(|seconds| base / seconds);
            }
        }
    }

    pub(super) fn fastest(&self) -> Option<Fastest> {
        let proved = self.trials.iter().filter(|trial| {
            trial.experiment.verdict == Some(Verdict::Better) && trial.experiment.same_output == Some(true)
        });
        let found = proved.filter_map(|trial| {
            let TuneExperiment { command, gain, low, high, .. } = &trial.experiment;
            Some(Fastest {
                command: command.clone()?,
                gain: (*gain)?,
                low: (*low)?,
                high: (*high)?,
                same_output: true,
                changes: trial.changes.clone(),
            })
        });
        found.max_by(|one, other| one.gain.total_cmp(&other.gain))
    }
}

/// The times by round. Each round gives one ratio, as a session of `ab` does, because what disturbs a round disturbs all
/// its runs.
fn by_round(times: &[Vec<f64>]) -> Vec<BySession> {
    times.iter().map(|times| times.iter().map(|time| vec![*time]).collect()).collect()
}
