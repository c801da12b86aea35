//! Confirms the best variants in interleaved rounds, and finds the fastest pipeline to paste.

use std::time::Duration;

use pipemark_model::total_order;
use pipemark_stats::compare::Comparison;
use pipemark_stats::sequential::{LOOKS, compare_at_look, is_decided};
use pipemark_stats::verdict::Verdict;

use super::guess_trials::GuessTrials;
use super::{CONFIRMED, Experimenter, MIN_GAIN, MIN_ROUNDS, median};
use crate::lab::{NoRun, RunOutput, counted_only};
use crate::result::{ExperimentKind, Fastest, TuneExperiment};

/// The most rounds: those of the last look.
pub(super) const MAX_ROUNDS: usize = LOOKS[LOOKS.len() - 1];

/// Rounds may take longer than expected by this factor, because others use the machine too.
const MARGIN: f64 = 1.3;

/// A variant in the confirmation.
struct ConfirmedVariant {
    /// Its place among the trials.
    trial: usize,
    /// The times of its rounds, which are the first ones of the confirmation.
    times: Vec<f64>,
    /// Whether it takes part in the next round.
    is_active: bool,
}

impl Experimenter<'_, '_, '_> {
    /// Measures the best variants and the pipeline as it is in interleaved rounds, until their verdicts are decided. Rounds
    /// after the first look leave the time that `guesses` need.
    pub(super) fn confirm(&mut self, guesses: Option<&GuessTrials>) {
        let mut chosen = self.choose();
        // Fewer rounds than those of the first look prove nothing.
        while chosen.len() > 1 && self.left() < MIN_ROUNDS as f64 * self.time_of_round(&chosen) * MARGIN {
            chosen.pop();
        }
        let for_guesses = guesses.map_or(0.0, |trials| trials.time_to_confirm(self.lab.overhead_of_run()));
        let candidate = |trial| ConfirmedVariant { trial, times: Vec::new(), is_active: true };
        let mut candidates: Vec<ConfirmedVariant> = chosen.into_iter().map(candidate).collect();
        let mut base = Vec::new();
        for round in 0..MAX_ROUNDS {
            let active: Vec<usize> = candidates.iter().filter(|one| one.is_active).map(|one| one.trial).collect();
            let reserved = if round < MIN_ROUNDS { 0.0 } else { for_guesses };
            if active.is_empty() || self.interrupted || self.left() < self.time_of_round(&active) + reserved {
                break;
            }
            match self.run_round(&active, round) {
                Ok(row) => {
                    base.push(row[0]);
                    let running = candidates.iter_mut().filter(|one| one.is_active);
                    running.zip(&row[1..]).for_each(|(one, time)| one.times.push(*time));
                }
                Err(NoRun::Interrupted) => self.interrupted = true,
                Err(NoRun::OutOfTime) => break,
                Err(NoRun::TooSlow | NoRun::Failed(_)) => {
                    self.notes
                        .push("a confirming run failed or had another output, so nothing is confirmed".to_owned());
                    return;
                }
            }
            if LOOKS.contains(&base.len()) {
                self.stop_decided(&mut candidates, &base);
            }
        }
        self.judge(&candidates, &base);
    }

    fn comparison(&self, candidate: &ConfirmedVariant, base: &[f64], all: usize) -> Option<Comparison> {
        compare_at_look(&base[..candidate.times.len()], &candidate.times, all, self.plan.threshold).ok()
    }

    /// Ends the rounds of candidates whose verdict is decided, and of pipelines to paste that aren't the best.
    fn stop_decided(&self, candidates: &mut [ConfirmedVariant], base: &[f64]) {
        let is_pasted = |candidate: &ConfirmedVariant| self.trials[candidate.trial].experiment.command.is_some();
        let pasted = candidates.iter().filter(|one| is_pasted(one));
        let best = pasted.map(|one| median(&one.times)).reduce(f64::min);
        let all = candidates.len();
        for candidate in candidates.iter_mut().filter(|one| one.is_active) {
            let comparison = self.comparison(candidate, base, all);
            let is_decided = comparison.is_some_and(|found| is_decided(&found, MIN_GAIN - 1.0));
            let is_beaten = is_pasted(candidate) && best.is_some_and(|best| median(&candidate.times) > best);
            candidate.is_active = !is_decided && !is_beaten;
        }
    }

    /// The time of a round of the chosen trials and the pipeline as it is, in seconds.
    pub(super) fn time_of_round(&self, chosen: &[usize]) -> f64 {
        let overhead = self.lab.overhead_of_run();
        let variants = chosen.iter().filter_map(|at| self.trials[*at].experiment.seconds);
        self.cost() + variants.map(|seconds| seconds + overhead).sum::<f64>()
    }

    /// Runs each chosen trial and the pipeline as it is once, in another order in each round. Returns their times, that
    /// of the pipeline first.
    fn run_round(&mut self, chosen: &[usize], round: usize) -> Result<Vec<f64>, NoRun> {
        let mut row = vec![0.0; chosen.len() + 1];
        for nth in 0..row.len() {
            let at = (nth + round) % row.len();
            let trial = at.checked_sub(1).map(|nth| &self.trials[chosen[nth]]);
            let variant = trial.map_or(&self.baseline, |trial| &trial.variant).clone();
            let limit = Duration::from_secs_f64(self.base_time() * 5.0 + 5.0);
            let label = trial.map_or("as it is", |trial| &trial.experiment.text);
            self.progress.show(&format!("round {} of the best: {label}", round + 1));
            let run = self.lab.run(&variant, limit, counted_only())?;
            if !self.is_confirmed(chosen, at, &run.output) {
                return Err(NoRun::Failed(String::new()));
            }
            row[at] = run.elapsed.as_secs_f64();
        }
        Ok(row)
    }

    /// Whether a confirming run wrote what was expected; 0 stands for the pipeline as it is.
    fn is_confirmed(&self, chosen: &[usize], at: usize, output: &RunOutput) -> bool {
        match at.checked_sub(1).map(|nth| &self.trials[chosen[nth]].experiment) {
            None => output.is_same(&self.reference),
            Some(experiment) if experiment.difference.is_some() => output.exit_code == self.reference.exit_code,
            Some(experiment) => experiment.same_output.is_none() || self.is_expected(experiment, output),
        }
    }

    /// The trials to confirm: the best pipeline to paste, the best of the others, and the second best pipeline to paste, or
    /// more of a kind if there are none of the other. If the budget has no room for all, the last ones are omitted.
    pub(super) fn choose(&self) -> Vec<usize> {
        let gain = |at: &usize| self.trials[*at].experiment.gain.unwrap_or(0.0);
        let is_useful = |at: &usize| {
            let experiment = &self.trials[*at].experiment;
            gain(at) > MIN_GAIN && experiment.failed.is_none() && experiment.kind != ExperimentKind::Alone
        };
        let mut useful: Vec<usize> = (0..self.trials.len()).filter(is_useful).collect();
        useful.sort_by_cached_key(|one| total_order(-gain(one)));
        let is_pasted = |at: &usize| self.trials[*at].experiment.command.is_some();
        let (pasted, others): (Vec<usize>, Vec<usize>) = useful.into_iter().partition(is_pasted);
        let mut chosen: Vec<usize> =
            [pasted.first(), others.first(), pasted.get(1)].into_iter().flatten().copied().collect();
        chosen.extend(pasted.iter().skip(2).chain(others.iter().skip(1)));
        chosen.truncate(CONFIRMED);
        chosen
    }

    fn judge(&mut self, candidates: &[ConfirmedVariant], base: &[f64]) {
        if base.is_empty() {
            return;
        }
        self.base_times = base.to_vec();
        for candidate in candidates {
            let Some(comparison) = self.comparison(candidate, base, candidates.len()) else { continue };
            let experiment = &mut self.trials[candidate.trial].experiment;
            let gain = |change: f64| 1.0 / (1.0 + change);
            experiment.seconds = Some(median(&candidate.times));
            experiment.gain = Some(gain(comparison.change));
            experiment.runs = u32::try_from(candidate.times.len()).unwrap_or(u32::MAX);
            let judged = comparison.judged().filter(|(low, _)| *low > -1.0);
            (experiment.low, experiment.high) = judged.map(|(low, high)| (gain(high), gain(low))).unzip();
            experiment.verdict = judged.map(|_| comparison.verdict);
        }
    }

    /// The fastest pipeline that is proved faster: of those with the same output or, if there is none, of those whose
    /// output differs in a known way.
    pub(super) fn fastest(&self) -> Option<Fastest> {
        let found = self.trials.iter().filter(|trial| trial.experiment.verdict == Some(Verdict::Better));
        let found = found.filter_map(|trial| {
            let TuneExperiment { command, gain, low, high, same_output, difference, .. } = &trial.experiment;
            Some(Fastest {
                command: command.clone()?,
                gain: (*gain)?,
                low: (*low)?,
                high: (*high)?,
                same_output: (*same_output)?,
                difference: difference.clone(),
                changes: trial.changes.clone(),
            })
        });
        found.max_by(|one, other| one.same_output.cmp(&other.same_output).then(one.gain.total_cmp(&other.gain)))
    }
}
