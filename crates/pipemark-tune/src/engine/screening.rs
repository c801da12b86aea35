//! Runs a variant once or twice, as long as the budget has room, to find out whether it is worth confirming.

use std::time::Duration;

use pipemark_model::digits;

use super::{BASELINE_EVERY, Experimenter, MIN_ROUNDS, PATIENCE, ScreenedVariant, median};
use crate::lab::{NoRun, RunOutput, Variant, counted_only, hashed};
use crate::result::{ExperimentKind, TuneExperiment};

impl Experimenter<'_, '_, '_> {
    /// What a run of the pipeline as it is takes from the budget, in seconds.
    pub(super) fn cost(&self) -> f64 {
        self.base_time() + self.lab.overhead_of_run()
    }

    /// The time of the pipeline as it is, by the last runs, because a busy machine becomes slower and faster.
    fn recent_time(&self) -> f64 {
        const RUNS: usize = 3;
        median(&self.base_times[self.base_times.len().saturating_sub(RUNS)..])
    }

    /// The time that the confirmation needs: of the best pipeline to paste in any case, and of the other candidates as far
    /// as a third of the budget allows. If nothing was found yet, and the rest of the budget is too short for a change and
    /// its confirmation, all of it is left for changes.
    pub(super) fn reserve(&self) -> f64 {
        // Rounds of the pipeline as it is and of a faster one.
        let least = MIN_ROUNDS as f64 * 1.6 * self.cost();
        let chosen = self.choose();
        let Some(first) = chosen.first() else { return if self.left() < least + self.cost() { 0.0 } else { least } };
        let all = MIN_ROUNDS as f64 * self.time_of_round(&chosen);
        let best = match self.trials[*first].experiment.command {
            Some(_) => MIN_ROUNDS as f64 * self.time_of_round(&chosen[..1]),
            None => least,
        };
        all.min(self.budget.as_secs_f64() / 3.0).max(best).min(self.budget.as_secs_f64() / 2.0)
    }

    /// Whether the budget has room for another screening run.
    pub(super) fn has_room(&self) -> bool {
        !self.interrupted && self.left() > self.reserve() + self.kept_back + self.cost()
    }

    /// Screens a variant with one run. Returns its gain.
    pub(super) fn screen(&mut self, experiment: TuneExperiment, variant: Variant, changes: Vec<String>) -> Option<f64> {
        // Gains are ratios to runs at about the same time; of a stage alone, no gain is shown.
        if experiment.kind != ExperimentKind::Alone {
            if self.since_baseline >= BASELINE_EVERY && self.has_room() {
                self.run_baseline();
            }
            self.since_baseline += 1;
        }
        if !self.has_room() {
            let seconds = self.cost();
            self.leave_untried(experiment.text, seconds);
            return None;
        }
        self.progress.show(&format!("{} runs, {:.0} s left: {}", self.lab.runs, self.left(), experiment.text));
        let compares = experiment.same_output.is_some();
        let mut trial = ScreenedVariant { experiment, variant, changes };
        let limit = Duration::from_secs_f64(self.base_time() * PATIENCE + 0.3);
        match self.lab.run(&trial.variant, limit, hashed(false)) {
            Ok(run) => {
                let same = self.is_expected(&trial.experiment, &run.output);
                if compares {
                    trial.experiment.same_output = Some(same);
                }
                if compares && !same {
                    trial.experiment.failed = Some("its output differs".to_owned());
                }
                trial.experiment.seconds = Some(run.elapsed.as_secs_f64());
                trial.experiment.runs = 1;
            }
            Err(error @ (NoRun::Interrupted | NoRun::OutOfTime)) => {
                self.interrupted |= error == NoRun::Interrupted;
                let seconds = self.cost();
                self.leave_untried(trial.experiment.text, seconds);
                return None;
            }
            Err(NoRun::TooSlow) => {
                let text = format!("slower: ended after {} times the pipeline's time", digits(PATIENCE));
                trial.experiment.failed = Some(text);
            }
            Err(NoRun::Failed(sentence)) => trial.experiment.failed = Some(sentence),
        }
        trial.experiment.gain = trial.experiment.seconds.map(|seconds| self.recent_time() / seconds);
        let gain = trial.experiment.gain.filter(|_| trial.experiment.failed.is_none());
        self.trials.push(trial);
        gain
    }

    /// Whether an experiment's output is that of the pipeline. Without a stage, the exit code may be another one.
    pub(super) fn is_expected(&self, experiment: &TuneExperiment, output: &RunOutput) -> bool {
        match experiment.kind {
            ExperimentKind::Without => output.has_same_content(&self.reference),
            _ => output.is_same(&self.reference),
        }
    }

    pub(super) fn run_baseline(&mut self) {
        self.since_baseline = 0;
        let limit = Duration::from_secs_f64(self.base_time() * 5.0 + 5.0);
        match self.lab.run(&self.baseline, limit, hashed(false)) {
            Ok(run) => {
                // The first run was watched, and may have read files that weren't cached.
                if self.base_times.len() == 1 && self.trials.is_empty() {
                    self.base_times.clear();
                }
                self.base_times.push(run.elapsed.as_secs_f64());
            }
            Err(NoRun::Interrupted) => self.interrupted = true,
            Err(_) => {}
        }
    }

    /// Runs a screened variant again. Returns the mean of its gains.
    pub(super) fn screen_again(&mut self, trial: usize) -> f64 {
        let before = self.trials[trial].experiment.gain.unwrap_or(0.0);
        if !self.has_room() {
            return before;
        }
        let variant = self.trials[trial].variant.clone();
        self.progress.show(&format!("again: {}", self.trials[trial].experiment.text));
        let limit = Duration::from_secs_f64(self.base_time() * PATIENCE + 0.3);
        let ran = self.lab.run(&variant, limit, counted_only());
        let recent = self.recent_time();
        let experiment = &mut self.trials[trial].experiment;
        match (ran, experiment.seconds) {
            (Ok(run), Some(seconds)) => {
                let again = run.elapsed.as_secs_f64();
                experiment.runs += 1;
                experiment.seconds = Some((seconds + again) / 2.0);
                experiment.gain = Some((before * recent / again).sqrt());
            }
            (Err(NoRun::Interrupted), _) => self.interrupted = true,
            _ => {}
        }
        self.trials[trial].experiment.gain.unwrap_or(before)
    }
}
