//! Screens guesses in a sandbox, and confirms the best ones in interleaved rounds. They are compared with the pipeline as
//! it is in the same sandbox.

use std::time::Duration;

use pipemark_model::{digits, total_order};
use pipemark_stats::sequential::{LOOKS, compare_at_look, is_decided};
use pipemark_stats::verdict::Verdict;

use super::confirmation::MAX_ROUNDS;
use super::guess_trials::{GuessTrials, KeptGuess};
use super::{BASELINE_EVERY, Experimenter, MIN_ROUNDS, PipelineSource, TunePlan, median};
use crate::guesses::{Guess, guesses, may_be_unset, unset};
use crate::lab::{NoRun, Variant, VariantRun, hashed};
use crate::purity::concern;
use crate::result::{ExperimentKind, GuessResult};
use crate::sandbox::Sandbox;
use crate::typed::TypedStage;

/// A guess is kept from this gain on.
const MIN_GAIN: f64 = 1.1;
/// The number of guesses that are confirmed.
const CONFIRMED: usize = 3;
/// The number of guesses that are tried, besides those about variables of the environment.
const MOST: usize = 16;

/// A guess in the confirmation.
struct ConfirmedGuess {
    kept: KeptGuess,
    times: Vec<f64>,
    is_decided: bool,
}

/// The stages that run outside of the sandbox: a recorded source.
fn stages_outside(plan: &TunePlan<'_>) -> usize {
    usize::from(matches!(plan.source, PipelineSource::Recorded(_)))
}

/// The number of guesses about a pipeline that are tried at most; 0 if a stage may change something.
pub fn number_of_guesses(plan: &TunePlan<'_>) -> usize {
    let first = stages_outside(plan);
    if plan.pipeline.stages[first..].iter().any(|stage| concern(stage).is_some()) {
        return 0;
    }
    // And one that unsets variables.
    guesses(&plan.pipeline, first, plan.setting.cpus).len().min(MOST) + 1
}

impl Experimenter<'_, '_, '_> {
    /// Tries all guesses once or twice, as far as the budget has room. `None` if there are no guesses.
    pub(super) fn screen_guesses(&mut self) -> Option<GuessTrials> {
        let first = stages_outside(self.plan);
        if self.interrupted || self.plan.pipeline.stages.len() <= first {
            return None;
        }
        if let Some(concern) = self.plan.pipeline.stages[first..].iter().find_map(concern) {
            self.notes.push(format!("no guesses, because a stage may change something: {concern}"));
            return None;
        }
        if self.left() < self.reserve() + 2.0 * self.cost() {
            let runs = (number_of_guesses(self.plan) + 2 * MIN_ROUNDS) as f64;
            self.leave_untried("guesses".to_owned(), runs * self.cost());
            return None;
        }
        match self.start_guesses() {
            Ok(mut trials) => {
                self.screen_guesses_of_stages(&mut trials, first);
                self.screen_variables(&mut trials);
                if trials.untried > 0 {
                    let plural = if trials.untried == 1 { "" } else { "es" };
                    let seconds = trials.untried as f64 * self.cost();
                    self.leave_untried(format!("{} guess{plural}", trials.untried), seconds);
                }
                trials.kept.sort_by_cached_key(|kept| total_order(-kept.gain));
                trials.kept.truncate(CONFIRMED);
                Some(trials)
            }
            Err(reason) => {
                self.notes.push(format!("no guesses: {reason}"));
                None
            }
        }
    }

    /// Makes the sandbox, and checks that the pipeline does the same in it.
    fn start_guesses(&mut self) -> Result<GuessTrials, String> {
        let sandbox = Sandbox::new()?;
        let program = std::env::current_exe().map_err(|error| error.to_string())?.to_string_lossy().into_owned();
        let as_typed = Guess { before: String::new(), ..unset(&self.plan.pipeline, &[]) };
        let mut trials = GuessTrials {
            sandbox,
            program,
            baseline: Variant::default(),
            base_times: Vec::new(),
            tried: 0,
            untried: 0,
            kept: Vec::new(),
        };
        trials.baseline = self.confined(&trials, &as_typed).ok_or("the pipeline can't be passed to a sandbox")?;
        self.progress.show("the pipeline in a sandbox");
        match self.lab.run(&trials.baseline, self.limit_of_guess(f64::INFINITY), hashed(false)) {
            Ok(run) if self.is_same(&run) => trials.base_times.push(run.elapsed.as_secs_f64()),
            Ok(run) => {
                let error = String::from_utf8_lossy(&run.errors).lines().next().map(pipemark_model::neutral);
                let error = error.map_or_else(String::new, |error| format!(" ({error})"));
                return Err(format!("the pipeline doesn't do the same in a sandbox{error}"));
            }
            Err(NoRun::Interrupted) => self.interrupted = true,
            Err(_) => return Err("the pipeline fails in a sandbox".to_owned()),
        }
        Ok(trials)
    }

    /// How a guess runs: a recorded source as always, and all other stages in the sandbox.
    fn confined(&self, trials: &GuessTrials, guess: &Guess) -> Option<Variant> {
        let outside = stages_outside(self.plan);
        let runnable = self.plan.runnable_by(&guess.pipeline, &trials.program);
        let text = |stages: &[TypedStage]| {
            stages.iter().map(|stage| stage.text.as_str()).collect::<Vec<_>>().join("|").trim().to_owned()
        };
        let (source, rest) = runnable.stages.split_at_checked(outside)?;
        let rest = format!("{}{}", guess.before, text(rest));
        let confined = trials.sandbox.command(&self.plan.program, self.lab.conditions.shell, &rest)?;
        let source = Some(text(source)).filter(|_| outside > 0);
        Some(Variant { stages: source.into_iter().chain([confined]).collect(), ..Variant::default() })
    }

    /// A run that takes so long can't be a gain. `base` is the pipeline's time in seconds.
    fn limit_of_guess(&self, base: f64) -> Duration {
        let longest = self.base_time() * 5.0 + 5.0;
        Duration::from_secs_f64((base / MIN_GAIN + 0.1).min(longest))
    }

    /// Whether a run did what the pipeline does: the same output, exit code and messages. A stage that was refused
    /// something usually differs in one of them.
    fn is_same(&self, run: &VariantRun) -> bool {
        run.output.is_same(&self.reference) && run.errors == self.errors
    }

    /// Whether the budget has room for another guess.
    fn has_room_for_guess(&self) -> bool {
        !self.interrupted && self.left() > self.reserve() + self.cost()
    }

    /// Tries the guesses about stages, those with the largest possible gain first.
    fn screen_guesses_of_stages(&mut self, trials: &mut GuessTrials, first: usize) {
        let was_tried: Vec<String> = self.trials.iter().filter_map(|trial| trial.experiment.command.clone()).collect();
        let mut found = guesses(&self.plan.pipeline, first, self.plan.setting.cpus);
        found.retain(|guess| {
            let is_remedy =
                guess.before.is_empty() && guess.pipeline.to_paste().is_some_and(|text| was_tried.contains(&text));
            !is_remedy && self.largest_gain(guess) >= MIN_GAIN
        });
        found.sort_by_cached_key(|guess| total_order(-self.largest_gain(guess)));
        found.truncate(MOST);
        for guess in found {
            if let Some(kept) = self.screen_guess(trials, guess) {
                trials.kept.push(kept);
            }
        }
    }

    /// The gain without the work of all stages that a guess changes, which is more than it can gain.
    fn largest_gain(&self, guess: &Guess) -> f64 {
        let without =
            |at: usize| self.of_stage(ExperimentKind::Without, at).and_then(|one| one.gain).or(self.bounds[at]);
        let gains: Option<Vec<f64>> = guess.changed.clone().map(without).collect();
        gains.map_or(f64::INFINITY, |gains| gains.iter().product())
    }

    /// Unsets all variables that aren't needed. If that helps, looks for the one that decides, by halves.
    fn screen_variables(&mut self, trials: &mut GuessTrials) {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        let mut names: Vec<String> = names.filter(|name| may_be_unset(name)).collect();
        names.sort();
        if names.is_empty() {
            return;
        }
        let mut best = self.screen_guess(trials, unset(&self.plan.pipeline, &names));
        while let Some(kept) = best.take() {
            let (one, other) = names.split_at(names.len() / 2);
            let halves = [one.to_vec(), other.to_vec()].into_iter().filter(|_| names.len() > 1);
            let half = halves.into_iter().find_map(|half| {
                let kept = self.screen_guess(trials, unset(&self.plan.pipeline, &half))?;
                Some((half, kept))
            });
            match half {
                Some((half, kept)) => (names, best) = (half, Some(kept)),
                None => return trials.kept.push(kept),
            }
        }
    }

    /// Runs a guess once and, if it helps, again. Returns it if it does the same and helps in both runs.
    fn screen_guess(&mut self, trials: &mut GuessTrials, guess: Guess) -> Option<KeptGuess> {
        let variant = self.confined(trials, &guess)?;
        let mut gains = Vec::new();
        let mut times = Vec::new();
        for _ in 0..2 {
            if !self.has_room_for_guess() {
                trials.untried += 1;
                return None;
            }
            if trials.tried.is_multiple_of(BASELINE_EVERY) {
                self.run_confined_baseline(trials);
            }
            trials.tried += 1;
            self.progress.show(&format!("{} runs, {:.0} s left: {}", self.lab.runs, self.left(), guess.text));
            let recent = median(&trials.base_times[trials.base_times.len().saturating_sub(3)..]);
            let seconds = match self.lab.run(&variant, self.limit_of_guess(recent), hashed(false)) {
                Ok(run) if self.is_same(&run) => run.elapsed.as_secs_f64(),
                Ok(_) => return None,
                Err(error) => {
                    self.interrupted |= error == NoRun::Interrupted;
                    trials.sandbox.clear();
                    return None;
                }
            };
            times.push(seconds);
            gains.push(recent / seconds);
            if gains[gains.len() - 1] < MIN_GAIN {
                return None;
            }
        }
        let mean = (gains[0] * gains[1]).sqrt();
        Some(KeptGuess { guess, variant, gain: mean, seconds: median(&times) })
    }

    fn run_confined_baseline(&mut self, trials: &mut GuessTrials) {
        match self.lab.run(&trials.baseline, self.limit_of_guess(f64::INFINITY), hashed(false)) {
            Ok(run) => trials.base_times.push(run.elapsed.as_secs_f64()),
            Err(error) => self.interrupted |= error == NoRun::Interrupted,
        }
    }

    /// Measures the kept guesses and the pipeline as it is, in the sandbox, in interleaved rounds.
    pub(super) fn confirm_guesses(&mut self, mut trials: GuessTrials) {
        let overhead = self.lab.overhead_of_run();
        while !trials.kept.is_empty() && self.left() < trials.time_of_round(&trials.kept, overhead) * MIN_ROUNDS as f64
        {
            let seconds = MIN_ROUNDS as f64 * trials.time_of_round(&[], overhead) * 2.0;
            let Some(dropped) = trials.kept.pop() else { break };
            let gain = digits(dropped.gain);
            self.leave_untried(format!("confirming a guess: {} ({gain}× in 2 runs)", dropped.guess.text), seconds);
        }
        let time_of_round = trials.time_of_round(&trials.kept, overhead);
        let confirmed = |kept| ConfirmedGuess { kept, times: Vec::new(), is_decided: false };
        let mut candidates: Vec<ConfirmedGuess> = trials.kept.drain(..).map(confirmed).collect();
        let all = candidates.len();
        let mut base: Vec<f64> = Vec::new();
        while base.len() < MAX_ROUNDS && candidates.iter().any(|one| !one.is_decided) {
            if self.interrupted || self.left() < time_of_round {
                break;
            }
            let Some(times) = self.run_round_of_guesses(&trials.baseline, &mut candidates, base.len()) else { break };
            base.push(times[0]);
            candidates.iter_mut().zip(&times[1..]).for_each(|(one, time)| one.times.push(*time));
            if LOOKS.contains(&base.len()) {
                for one in &mut candidates {
                    let found = compare_at_look(&base, &one.times, all, self.plan.threshold);
                    one.is_decided = found.is_ok_and(|found| is_decided(&found, MIN_GAIN - 1.0));
                }
            }
        }
        self.guesses = candidates.iter().filter_map(|one| self.judge_guess(one, &base, all)).collect();
    }

    /// Runs all once, in another order in each round. Returns their times, that of the pipeline as it is first. A guess
    /// whose run isn't as expected is dropped, and the others' times are returned.
    fn run_round_of_guesses(
        &mut self,
        baseline: &Variant,
        candidates: &mut Vec<ConfirmedGuess>,
        round: usize,
    ) -> Option<Vec<f64>> {
        let all = candidates.len() + 1;
        let mut times = vec![None; all];
        for nth in 0..all {
            let at = (nth + round) % all;
            let guess = at.checked_sub(1).map(|at| &candidates[at].kept);
            let label = guess.map_or("as it is", |kept| &kept.guess.text);
            self.progress.show(&format!("round {} of guesses: {label}", round + 1));
            let variant = guess.map_or(baseline, |kept| &kept.variant).clone();
            match self.lab.run(&variant, self.limit_of_guess(f64::INFINITY), hashed(false)) {
                Ok(run) if self.is_same(&run) => times[at] = Some(run.elapsed.as_secs_f64()),
                Err(NoRun::Interrupted) => {
                    self.interrupted = true;
                    return None;
                }
                Err(NoRun::OutOfTime) => return None,
                _ => {}
            }
        }
        times[0]?;
        let mut kept = times[1..].iter().map(Option::is_some);
        candidates.retain(|_| kept.next().unwrap_or(false));
        Some(times.into_iter().flatten().collect())
    }

    /// A guess as a result, if it is proved faster.
    fn judge_guess(&self, one: &ConfirmedGuess, base: &[f64], all: usize) -> Option<GuessResult> {
        let comparison = compare_at_look(base.get(..one.times.len())?, &one.times, all, self.plan.threshold).ok()?;
        let (low, high) = comparison.judged().filter(|(low, _)| *low > -1.0)?;
        let gain = |change: f64| 1.0 / (1.0 + change);
        let guess = &one.kept.guess;
        (comparison.verdict == Verdict::Better).then(|| GuessResult {
            id: guess.id.clone(),
            stage: (guess.changed.len() == 1).then_some(guess.changed.start + 1),
            text: guess.text.clone(),
            gain: gain(comparison.change),
            low: gain(high),
            high: gain(low),
            rounds: u32::try_from(one.times.len()).unwrap_or(u32::MAX),
        })
    }
}
