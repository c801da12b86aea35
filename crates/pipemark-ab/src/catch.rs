//! `--catch`: while the commands run, decides whether the second is slower than the reference by a limit or more, and
//! says early if the machine is too noisy to decide. Chooses how many sessions to run, and by which figure to decide.
//!
//! Time decides. If it is too noisy, another figure may show that the command is slower, but never that it isn't,
//! because no other figure includes waiting.

use std::time::Duration;

use pipemark_console::say;
use pipemark_model::signed_percent;
use pipemark_stats::catch::{CatchAnswer, CatchLimit, LOOKS, MIN_SESSIONS, looks, more_needed, smallest_limit};
use pipemark_stats::compare::Comparison;
use pipemark_stats::estimate::median;
use pipemark_stats::verdict::Verdict;

use crate::commands::CommandEntry;
use crate::conclusion::shown_interval;
use crate::interleaving::{MAX_SESSIONS, RoundPlan, Rounds};
use crate::judge::{JUDGEMENTS, Judge, OTHER_FIGURES};
use crate::result::{CatchResult, CommandResult};
use crate::run_figures::{CPU, FAULTS, FigureKind, TIME};

/// The number of sessions that show how much sessions vary.
const FIRST_SESSIONS: usize = 5;
/// By this time, the first sessions end, however few they are.
const FORECAST_BY: Duration = Duration::from_secs(18);
/// The time that a page fault takes at least, in nanoseconds. In a virtual machine (KVM, Xeon), a fault was measured to
/// take 1.3 µs if the page is in memory, and 2.1 µs if it has to be cleared.
const FAULT_NS: f64 = 100.0;
/// A figure that explains a smaller share of the time isn't named as one that may show that a command is slower.
const MIN_SHARE: f64 = 0.5;
/// A budget is advised only if it is at most this many times as long.
const MAX_LONGER: f64 = 20.0;

/// The decision, made while the commands run.
pub struct Catching<'a> {
    entries: &'a [CommandEntry],
    kinds: &'a [FigureKind],
    plan: &'a RoundPlan,
    limit: CatchLimit,
    quiet: bool,
    /// The numbers of sessions at which to judge, before the last; `None` before the first sessions have ended.
    looks: Option<Vec<usize>>,
    /// Whether the first sessions were so noisy that others probably won't decide.
    too_noisy: bool,
    decided: (CatchAnswer, Option<String>),
}

impl<'a> Catching<'a> {
    /// Prepares the decision about the limit of the plan; `None` without `--catch`.
    pub fn of(
        entries: &'a [CommandEntry],
        kinds: &'a [FigureKind],
        plan: &'a RoundPlan,
        quiet: bool,
    ) -> Option<Catching<'a>> {
        let limit = plan.catch?;
        let decided = (CatchAnswer::Undecided, None);
        Some(Catching { entries, kinds, plan, limit, quiet, looks: None, too_noisy: false, decided })
    }

    /// Whether the measurement may end after a session: the answer is known, or no other session fits in the budget.
    pub fn session_ended(&mut self, rounds: &Rounds, elapsed: Duration) -> bool {
        let made = sessions(rounds);
        let each = elapsed.as_secs_f64() / made.max(1) as f64;
        let budget = self.plan.budget.as_secs_f64();
        let fit = ((budget / each.max(1e-9)) as usize).clamp(made, MAX_SESSIONS as usize);
        let judge = Judge::of(self.entries, self.kinds, self.plan, rounds);
        let is_last = made + 1 > fit;
        let is_time = elapsed.as_secs_f64() + each > FORECAST_BY.as_secs_f64();
        if self.looks.is_none() && (made >= FIRST_SESSIONS || is_time || is_last) {
            self.look_ahead(&judge, rounds, [made, fit], each);
        }
        if !is_last && !self.looks.as_ref().is_some_and(|looks| looks.contains(&made)) {
            return false;
        }
        self.decided = self.decide(&judge, rounds, is_last || self.too_noisy);
        is_last || self.decided.0 != CatchAnswer::Undecided
    }

    /// Plans when to judge, and says if the sessions that fit in the budget probably won't decide.
    fn look_ahead(&mut self, judge: &Judge, rounds: &Rounds, [made, fit]: [usize; 2], each: f64) {
        let comparison = judge.comparison(self.other(), self.plan.by);
        let needed = comparison.map_or(fit, |comparison| self.limit.sessions_needed(&comparison, LOOKS, fit));
        let mut planned = looks(needed.min(fit / 3), fit);
        planned.pop();
        self.looks = Some(planned);
        let percent = percent(self.limit.limit);
        let budget = budget_text(self.plan.budget);
        if fit < MIN_SESSIONS {
            self.too_noisy = true;
            let longer = Duration::from_secs_f64((each * (MIN_SESSIONS * 3) as f64).ceil());
            self.say(format_args!(
                "too few runs to decide about {percent} %: {fit} of each command fit in --budget {budget}; use --budget {}",
                budget_text(longer)
            ));
            return;
        }
        let Some(comparison) = comparison.filter(|_| made > 1) else { return };
        let could = smallest_limit(&comparison, LOOKS, fit);
        if could.is_some_and(|could| could <= self.limit.limit) {
            return;
        }
        self.too_noisy = true;
        let could =
            could.map_or_else(|| "nor about 100 %".to_owned(), |could| format!("but about {} %", rounded_up(could)));
        let longer = self
            .longer_budget(&comparison, fit)
            .map_or_else(String::new, |longer| format!("; {percent} % needs about --budget {}", budget_text(longer)));
        self.say(format_args!(
            "probably too noisy here to decide about {percent} % within {budget}, {could}{longer}{}",
            self.hint(judge, rounds, fit)
        ));
    }

    /// Names the other figures that vary so little that they would show a change as large as the limit.
    fn hint(&self, judge: &Judge, rounds: &Rounds, fit: usize) -> String {
        let reference = &rounds.commands[self.plan.reference];
        let would_show = |at: &usize| {
            let limit = judge.comparison(self.other(), *at).and_then(|one| smallest_limit(&one, JUDGEMENTS[1], fit));
            let share = self.share_of_time(reference, *at).unwrap_or(0.0);
            self.may_use_others() && limit.is_some_and(|limit| limit * share <= self.limit.limit) && share >= MIN_SHARE
        };
        let headings = OTHER_FIGURES.iter().filter_map(|key| self.figure(key)).filter(would_show);
        let headings: Vec<&str> = headings.map(|at| self.kinds[at].heading.as_str()).collect();
        match headings.as_slice() {
            [] => String::new(),
            headings => format!("; {} may still show that it is slower", headings.join(" or ")),
        }
    }

    fn say(&self, text: std::fmt::Arguments<'_>) {
        if !self.quiet {
            say(text);
        }
    }

    /// The budget with which a change as large as the limit would probably be decided; `None` if it is much longer than
    /// this one, or if there may be no more sessions.
    fn longer_budget(&self, comparison: &Comparison, sessions: usize) -> Option<Duration> {
        let times = more_needed(comparison, LOOKS, sessions, self.limit)?;
        let useful = (1.0..=MAX_LONGER).contains(&times) && sessions < MAX_SESSIONS as usize;
        useful.then(|| Duration::from_secs_f64((self.plan.budget.as_secs_f64() * times * 1.1).ceil()))
    }

    /// The answer, and the key of the figure that gave it. If `others`, figures other than time may give it.
    fn decide(&self, judge: &Judge, rounds: &Rounds, others: bool) -> (CatchAnswer, Option<String>) {
        let by = self.plan.by;
        let answer = match judge.verdict(self.other(), by) {
            // A figure that never varies has no interval.
            (Some(Verdict::Same), None) => CatchAnswer::Passed,
            (_, comparison) => self.limit.answer(comparison.and_then(judged_by_session)),
        };
        let found_by = match answer {
            CatchAnswer::Undecided if others && self.may_use_others() => self.caught_by_others(judge, rounds),
            CatchAnswer::Undecided => None,
            CatchAnswer::Caught | CatchAnswer::Passed => return (answer, Some(self.kinds[by].key.clone())),
        };
        found_by.map_or((CatchAnswer::Undecided, None), |at| (CatchAnswer::Caught, Some(self.kinds[at].key.clone())))
    }

    fn may_use_others(&self) -> bool {
        self.kinds[self.plan.by].key == TIME
    }

    fn figure(&self, key: &str) -> Option<usize> {
        self.kinds.iter().position(|kind| kind.key == key)
    }

    fn other(&self) -> usize {
        1 - self.plan.reference
    }

    /// The figure other than time that shows that the command is slower: by the change in time that its own change
    /// implies. The measured time, as noisy as it is, must not contradict that.
    fn caught_by_others(&self, judge: &Judge, rounds: &Rounds) -> Option<usize> {
        let (_, most) = judged_by_session(judge.comparison(self.other(), self.plan.by)?)?;
        let caught = |at: &usize| {
            let Some(comparison) = judge.comparison(self.other(), *at) else { return false };
            let Some((low, high)) = judged_by_session(comparison) else { return false };
            let Some(share) = self.share_of_time(&rounds.commands[self.plan.reference], *at) else { return false };
            comparison.change * share <= most
                && self.limit.answer(Some((low * share, high * share))) == CatchAnswer::Caught
        };
        OTHER_FIGURES.iter().filter_map(|key| self.figure(key)).find(caught)
    }

    /// The share of the reference's time that a figure explains. Its fastest run has waited least for the CPUs.
    fn share_of_time(&self, reference: &crate::interleaving::CommandRuns, at: usize) -> Option<f64> {
        let all = |at: usize| Some(reference.by_session(at)?.concat());
        let fastest = all(0)?.into_iter().reduce(f64::min)?;
        let explained = match self.kinds[at].key.as_str() {
            FAULTS => median(&all(at)?)? * FAULT_NS,
            _ => median(&all(self.figure(CPU)?)?)?,
        };
        Some((explained / fastest).min(1.0))
    }

    /// The result of a measurement that has ended. `commands` are its judged commands.
    pub fn result(&self, rounds: &Rounds, judge: &Judge, commands: &[CommandResult]) -> CatchResult {
        let comparison = judge.comparison(self.other(), self.plan.by);
        let sessions = sessions(rounds);
        let (answer, by) = if rounds.interrupted { (CatchAnswer::Undecided, None) } else { self.decided.clone() };
        let kinds = [self.plan.by, by.as_deref().and_then(|by| self.figure(by)).unwrap_or(self.plan.by)];
        let mut result = CatchResult {
            limit: self.limit.limit,
            threshold: self.limit.criterion().threshold,
            answer,
            sentence: String::new(),
            by,
            smallest_limit: comparison.and_then(|comparison| smallest_limit(&comparison, LOOKS, sessions)),
            budget_needed_s: comparison
                .filter(|_| answer == CatchAnswer::Undecided)
                .and_then(|comparison| self.longer_budget(&comparison, sessions))
                .map(|longer| longer.as_secs()),
        };
        let reference = &self.entries[self.plan.reference].label;
        result.sentence = sentence(&result, commands, reference, kinds.map(|at| &self.kinds[at]));
        result
    }
}

/// The interval that decides, if sessions were compared and not the rounds of a single session.
fn judged_by_session(comparison: Comparison) -> Option<(f64, f64)> {
    comparison.judged().filter(|_| comparison.base_sessions > 1)
}

fn sessions(rounds: &Rounds) -> usize {
    rounds.commands.iter().filter_map(|command| command.runs.last()).map(|run| run.session as usize).max().unwrap_or(0)
}

/// A duration as the value of `--budget`.
fn budget_text(duration: Duration) -> String {
    match duration.as_secs_f64() {
        seconds if seconds < 1.0 => format!("{}ms", duration.as_millis()),
        seconds if seconds < 120.0 => format!("{}s", (seconds * 10.0).ceil() / 10.0),
        seconds => format!("{}min", (seconds / 60.0).ceil()),
    }
}

/// A fraction in per cent, rounded up to two digits.
fn rounded_up(fraction: f64) -> String {
    let step = 10f64.powf((fraction * 100.0).log10().floor() - 1.0);
    percent((fraction * 100.0 / step).ceil() * step / 100.0)
}

/// A fraction in per cent, as typed.
fn percent(fraction: f64) -> String {
    ((fraction * 1e8).round() / 1e6).to_string()
}

/// The answer as a sentence, from the comparisons that tables show. Empty without the other command.
fn sentence(catch: &CatchResult, commands: &[CommandResult], reference: &str, kinds: [&FigureKind; 2]) -> String {
    let Some(other) = commands.iter().find(|command| command.label != reference) else { return String::new() };
    let comparison = |kind: &FigureKind| other.figures.get(&kind.key).and_then(|figure| figure.comparison);
    let [by, decided] = kinds;
    let changed = |kind: &FigureKind| match comparison(kind) {
        Some(comparison) => format!(
            "{} {} %{}",
            kind.heading,
            signed_percent(comparison.change),
            shown_interval(&comparison).map_or_else(String::new, |interval| format!(" ({interval})"))
        ),
        None => format!("{} unchanged", kind.heading),
    };
    let limit = percent(catch.limit);
    let compared = format!("{} compared with {reference}", other.label);
    match catch.answer {
        CatchAnswer::Caught if decided.key == by.key => format!("Caught: {compared}: {}; limit {limit} %", changed(by)),
        CatchAnswer::Caught => format!(
            "Caught by {}: {compared}: {}; limit {limit} %; too noisy to decide by {}",
            decided.heading,
            changed(decided),
            changed(by)
        ),
        CatchAnswer::Passed => format!("Passed: {compared}: {}; limit {limit} %", changed(by)),
        CatchAnswer::Undecided => {
            let needed = catch.budget_needed_s.map(Duration::from_secs).map(budget_text);
            let needed = match (needed, catch.smallest_limit) {
                (Some(needed), _) => format!("; use about --budget {needed}"),
                (None, Some(could)) => format!("; use about --catch {}%", rounded_up(could)),
                (None, None) => String::new(),
            };
            format!("Undecided: {compared}: {}; limit {limit} %{needed}", changed(by))
        }
    }
}

#[cfg(test)]
mod tests {
    use pipemark_model::Better;

    use super::*;
    use crate::commands::{TypedCommands, entries};
    use crate::interleaving::{CommandRuns, RunRecord};
    use crate::run_figures::kinds;

    /// How the second command differs from the first: factors of its time and of its other figures, and the noise of
    /// the time.
    struct Case {
        time: f64,
        cpu: f64,
        faults: f64,
        noise: f64,
        /// The share of the first command's time in which it computes.
        computes: f64,
    }

    const EQUAL: Case = Case { time: 1.0, cpu: 1.0, faults: 1.0, noise: 0.001, computes: 0.95 };

    fn plan() -> RoundPlan {
        RoundPlan {
            rounds: None,
            sessions: 1,
            warmup: 1,
            budget: Duration::from_secs(40),
            by: 0,
            threshold: None,
            thresholds: Default::default(),
            catch: Some(CatchLimit { limit: 0.1, better: Better::Lower }),
            reference: 0,
            ignore_output: false,
            memory: false,
            cold: Vec::new(),
            keep_going: false,
            announced: false,
        }
    }

    /// Runs of 10 ms in sessions of five rounds and one second.
    fn decide(case: &Case) -> CatchResult {
        let typed = TypedCommands { commands: vec!["true".into(); 2], ..TypedCommands::default() };
        let (entries, kinds, plan) = (entries(&typed).unwrap(), kinds(&[]), plan());
        let at = |key: &str| kinds.iter().position(|kind| kind.key == key).unwrap();
        let mut catching = Catching::of(&entries, &kinds, &plan, true).unwrap();
        let mut rounds = Rounds { commands: vec![CommandRuns::default(); 2], ..Rounds::default() };
        let mut state = 7u64;
        let mut noise = |size: f64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            1.0 + size * (f64::from((state >> 33) as u32) / f64::from(1u32 << 30) - 1.0)
        };
        for session in 1..=MAX_SESSIONS {
            for round in 1..=5 {
                for (command, [time, cpu, faults]) in [[1.0; 3], [case.time, case.cpu, case.faults]].iter().enumerate()
                {
                    let mut figures = vec![None; kinds.len()];
                    figures[at(TIME)] = Some(1e7 * time * noise(case.noise).max(0.5) * noise(0.001));
                    figures[at(CPU)] = Some(1e7 * case.computes * cpu * noise(0.001));
                    figures[at(FAULTS)] = Some((1000.0 * faults).round());
                    let run = RunRecord { session, round, figures, exit_code: Some(0) };
                    rounds.commands[command].runs.push(run);
                }
            }
            if catching.session_ended(&rounds, Duration::from_secs(u64::from(session))) {
                break;
            }
        }
        let judge = Judge::of(&entries, &kinds, &plan, &rounds);
        catching.result(&rounds, &judge, &judge.commands())
    }

    fn answer(case: &Case) -> (CatchAnswer, Option<String>) {
        let result = decide(case);
        (result.answer, result.by)
    }

    #[test]
    fn quiet_time_decides() {
        let by_time = Some(TIME.to_owned());
        assert_eq!(answer(&EQUAL), (CatchAnswer::Passed, by_time.clone()));
        assert_eq!(answer(&Case { time: 1.05, ..EQUAL }), (CatchAnswer::Passed, by_time.clone()));
        assert_eq!(answer(&Case { time: 1.1, ..EQUAL }), (CatchAnswer::Caught, by_time.clone()));
        // Time includes everything, so other figures don't count.
        assert_eq!(answer(&Case { cpu: 1.5, faults: 3.0, ..EQUAL }), (CatchAnswer::Passed, by_time));
    }

    #[test]
    fn other_figures_may_catch_but_never_pass() {
        let noisy = Case { noise: 0.9, ..EQUAL };
        let result = decide(&noisy);
        assert_eq!((result.answer, result.by.as_deref()), (CatchAnswer::Undecided, None), "{}", result.sentence);
        let caught = decide(&Case { cpu: 1.1, time: 1.1, ..noisy });
        assert_eq!((caught.answer, caught.by.as_deref()), (CatchAnswer::Caught, Some(CPU)), "{}", caught.sentence);
        assert!(
            caught.sentence.starts_with("Caught by CPU time: B compared with A: CPU time +10"),
            "{}",
            caught.sentence
        );
        // A twentieth of the time is computed, so 10 % more of that is nothing.
        assert_eq!(answer(&Case { cpu: 1.1, computes: 0.05, ..noisy }).0, CatchAnswer::Undecided);
        // Faults cost time only if there are very many.
        assert_eq!(answer(&Case { faults: 2.0, ..noisy }).0, CatchAnswer::Undecided);
        assert_eq!(answer(&Case { faults: 8.0, time: 1.1, ..noisy }), (CatchAnswer::Caught, Some(FAULTS.to_owned())));
        // More CPU time in less time: the command uses more CPUs.
        assert_eq!(answer(&Case { cpu: 1.6, time: 0.6, ..noisy }).0, CatchAnswer::Passed);
    }

    #[test]
    fn advice_is_rounded_up_and_can_be_typed() {
        assert_eq!([0.101, 0.1234, 0.004_01].map(rounded_up), ["11", "13", "0.41"]);
        let texts = [0.5, 30.0, 200.0].map(|seconds| budget_text(Duration::from_secs_f64(seconds)));
        assert_eq!(texts, ["500ms", "30s", "4min"]);
    }
}
