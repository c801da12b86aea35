//! Turns rounds into results: estimates, comparisons with the reference, ranks, and advice for inconclusive
//! comparisons.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use pipemark_console::verdict::criterion;
use pipemark_model::Better;
use pipemark_model::digits;
use pipemark_shell::shown_command;
use pipemark_stats::catch::LOOKS;
use pipemark_stats::compare::{Comparison, MAX_FACTOR_TO_DECIDE, MAX_RUNS};
use pipemark_stats::estimate;
use pipemark_stats::ranking::{BySession, Ranking, against, against_of_several, is_constant, ranks_of};
use pipemark_stats::sessions::MIN_DEGREES_OF_FREEDOM;
use pipemark_stats::verdict::{Criterion, Verdict};

use crate::commands::CommandEntry;
use crate::interleaving::{MIN_ROUNDS, RoundPlan, Rounds};
use crate::result::{CommandResult, FigureResult, TimedRun};
use crate::run_figures::{CPU, FAULTS, FigureKind, INSTRUCTIONS, TIME};
use crate::shell_start::ShellStart;

/// The minimum number of sessions for which there is a verdict.
pub const MIN_SESSIONS: u32 = MIN_DEGREES_OF_FREEDOM as u32 + 1;

/// Figures other than time that may show that a command is slower, for `--catch`.
pub const OTHER_FIGURES: [&str; 3] = [CPU, INSTRUCTIONS, FAULTS];

/// For `--catch`, the number of judgements that share the error rate of a verdict: those by the figure of `--by`, and
/// those by each other figure.
pub const JUDGEMENTS: [usize; 2] = [LOOKS, LOOKS * OTHER_FIGURES.len()];

/// What the judgement is based on.
pub struct Judge<'a> {
    pub entries: &'a [CommandEntry],
    pub kinds: &'a [FigureKind],
    pub plan: &'a RoundPlan,
    pub rounds: &'a Rounds,
    pub shell_start: ShellStart,
    /// The peak memory of pipemark itself, in bytes. The kernel includes it in a child's peak.
    pub own_memory: f64,
}

/// The verdict on a figure, with its evidence.
#[derive(Debug, Clone, Default)]
struct FigureVerdict {
    comparison: Option<Comparison>,
    verdict: Option<Verdict>,
    why: Option<String>,
    rank: Option<usize>,
}

/// Whether there are enough rounds and sessions for a verdict on figures that vary.
pub fn allow_verdict(commands: usize, rounds: Option<u32>, sessions: u32) -> bool {
    if sessions > 1 {
        return sessions >= MIN_SESSIONS;
    }
    let Some(rounds) = rounds.filter(|rounds| *rounds < MIN_ROUNDS) else { return true };
    // The values have no noise: if any figures get a verdict, these do.
    let of = |at: usize| vec![(0..rounds).map(|round| (at + 1) as f64 + f64::from(round) * 1e-6).collect()];
    let compared = against(&(0..commands).map(of).collect::<Vec<_>>(), 0, criterion(None, Better::Lower));
    compared.is_ok_and(|all| all.iter().flatten().all(|comparison| comparison.judged().is_some()))
}

impl<'a> Judge<'a> {
    /// Judges these rounds.
    pub fn of(
        entries: &'a [CommandEntry],
        kinds: &'a [FigureKind],
        plan: &'a RoundPlan,
        rounds: &'a Rounds,
    ) -> Judge<'a> {
        let times: Vec<Vec<f64>> =
            rounds.commands.iter().filter_map(|command| Some(command.by_session(0)?.concat())).collect();
        let shell_start = ShellStart::of(&rounds.shell_starts, &times);
        let own_memory = rounds.own_memory as f64;
        Judge { entries, kinds, plan, rounds, shell_start, own_memory }
    }

    /// The verdict on the command `at` by the figure `nth`, and its comparison with the reference. There is no
    /// comparison if there is no ratio, or if the figure never varies.
    pub fn verdict(&self, at: usize, nth: usize) -> (Option<Verdict>, Option<Comparison>) {
        let judged = &self.judge(&self.kinds[nth], &self.values(nth), nth == self.plan.by)[at];
        (judged.verdict, judged.comparison)
    }

    /// The comparison of [`Judge::verdict`].
    pub fn comparison(&self, at: usize, nth: usize) -> Option<Comparison> {
        self.verdict(at, nth).1
    }

    /// The commands with all their figures.
    pub fn commands(&self) -> Vec<CommandResult> {
        let mut commands: Vec<CommandResult> =
            self.entries.iter().enumerate().map(|(at, _)| self.without_comparison(at)).collect();
        for (nth, kind) in self.kinds.iter().enumerate() {
            let values = self.values(nth);
            let judged = self.judge(kind, &values, nth == self.plan.by);
            for (at, ((command, values), judged)) in commands.iter_mut().zip(&values).zip(judged).enumerate() {
                let Some(estimate) = values.as_ref().and_then(|values| estimate::from_runs(&values.concat())) else {
                    continue;
                };
                if nth == self.plan.by {
                    command.rank = judged.rank;
                }
                let estimate = if kind.key == TIME { self.shell_start.widened(estimate) } else { estimate };
                let at_most = self.is_own_memory(kind, estimate.median);
                let FigureVerdict { comparison, verdict, why, .. } = judged;
                let threshold = self.threshold(at, kind);
                let result = FigureResult { estimate, at_most, comparison, verdict, why, saved: None, threshold };
                command.figures.insert(kind.key.clone(), result);
            }
        }
        commands
    }

    fn without_comparison(&self, at: usize) -> CommandResult {
        let (entry, runs) = (&self.entries[at], &self.rounds.commands[at]);
        let figures = |figures: &[Option<f64>]| -> BTreeMap<String, f64> {
            self.kinds.iter().zip(figures).filter_map(|(kind, figure)| Some((kind.key.clone(), (*figure)?))).collect()
        };
        let run = |run: &crate::interleaving::RunRecord| TimedRun {
            session: run.session,
            round: run.round,
            exit_code: run.exit_code,
            figures: figures(&run.figures),
        };
        CommandResult {
            label: entry.label.clone(),
            named: entry.named,
            command: shown_command(entry.text.as_bytes()).into_owned(),
            command_hex: entry.hex(),
            parameters: entry.parameters.iter().cloned().collect(),
            failed: runs.failed.clone(),
            rank: None,
            capacity: entry.command.capacity,
            capacity_granted: runs.capacity,
            output: runs.output,
            hashed: runs.is_hashed(),
            same_output: !runs.unsteady,
            runs: runs.runs.iter().map(run).collect(),
            figures: BTreeMap::new(),
        }
    }

    /// The values of one figure for each command, without the shell's start; `None` for a command that lacks the figure
    /// in a run.
    fn values(&self, nth: usize) -> Vec<Option<BySession>> {
        let off = match self.shell_start.subtracted() {
            Some([median, ..]) if self.kinds[nth].key == TIME => median,
            _ => 0.0,
        };
        let of = |command: &crate::interleaving::CommandRuns| {
            let values = command.by_session(nth).filter(|_| command.failed.is_none())?;
            Some(subtract(&values, off))
        };
        self.rounds.commands.iter().map(of).collect()
    }

    /// The criterion for a command's figure.
    pub fn criterion(&self, at: usize, kind: &FigureKind) -> Criterion {
        let own = self.threshold(at, kind).map(|own| Criterion::with_threshold(kind.better, own));
        own.unwrap_or_else(|| self.plan.criterion(kind.better))
    }

    /// The threshold of `--thresholds` for a command's figure.
    fn threshold(&self, at: usize, kind: &FigureKind) -> Option<f64> {
        self.plan.thresholds.of(&self.entries[at].label, &kind.key)
    }

    fn is_own_memory(&self, kind: &FigureKind, median: f64) -> bool {
        kind.key == "memory" && median <= self.own_memory * 1.02
    }

    /// Compares each command with the reference.
    fn judge(&self, kind: &FigureKind, values: &[Option<BySession>], by: bool) -> Vec<FigureVerdict> {
        let reference = self.plan.reference;
        let criterion = self.plan.criterion(kind.better);
        let mut judged = vec![FigureVerdict::default(); values.len()];
        if values.len() == 1 {
            judged[0].rank = Some(1);
            return judged;
        }
        let Some(base) = &values[reference] else { return judged };
        let rounds = |values: &BySession| values.iter().map(Vec::len).collect::<Vec<_>>();
        let positive = |values: &BySession| values.iter().flatten().all(|value| *value > 0.0);
        let bounded = |values: &BySession| {
            estimate::from_runs(&values.concat()).is_some_and(|estimate| self.is_own_memory(kind, estimate.median))
        };
        // The indices of the reference and of the commands that have a ratio to it.
        let mut among: Vec<usize> = Vec::new();
        for (at, values) in values.iter().enumerate() {
            let Some(values) = values else { continue };
            if at != reference && bounded(base) && bounded(values) {
                let own = digits(self.own_memory / f64::from(1 << 20));
                judged[at].why = Some(format!(
                    "neither command used more memory than what the kernel counts before it starts ({own} MiB)"
                ));
            } else if at != reference && is_constant([base, values]) {
                judged[at].verdict = Some(Verdict::Same);
            } else if rounds(values) != rounds(base) {
                judged[at].why = Some("the figure is missing in some rounds".to_owned());
            } else if !positive(values) || !positive(base) {
                judged[at].why =
                    (at != reference).then(|| "the figure is zero in some runs, so there is no ratio".to_owned());
            } else {
                among.push(at);
            }
        }
        // Commands that can't be compared must not get the verdict `same`.
        for judged in judged.iter_mut().filter(|judged| judged.why.is_some()) {
            judged.verdict = Some(Verdict::Inconclusive);
        }
        let Some(base) = among.iter().position(|at| *at == reference) else { return judged };
        let of = |off: f64| -> Vec<BySession> {
            among.iter().filter_map(|at| Some(subtract(values[*at].as_ref()?, off))).collect()
        };
        let times = self.plan.catch.map_or(1, |_| JUDGEMENTS[usize::from(!by)]);
        let compared = |off: f64| against_of_several(&of(off), base, criterion, times).ok();
        let Some(comparisons) = compared(0.0) else { return judged };
        // The error of the shell's measured start widens the interval.
        let offs = match self.shell_start.subtracted() {
            Some([median, low, high]) if kind.key == TIME => vec![low - median, high - median],
            _ => Vec::new(),
        };
        let ends: Vec<Vec<Option<Comparison>>> = offs.iter().filter_map(|off| compared(*off)).collect();
        // With thresholds of their own, commands are compared with the reference only.
        if by && self.plan.thresholds.smallest(&kind.key).is_none() {
            let all = offs.iter().chain([&0.0]).map(|off| Ranking::of_several(&of(*off), base, criterion, times).ok());
            if let Some(ranks) = all.collect::<Option<Vec<Ranking>>>().map(ranks_in_all) {
                among.iter().zip(&ranks).for_each(|(at, rank)| judged[*at].rank = Some(*rank));
                // Commands whose figures all equal those of the reference are tied with it.
                judged
                    .iter_mut()
                    .filter(|judged| judged.verdict == Some(Verdict::Same))
                    .for_each(|judged| judged.rank = Some(ranks[base]));
            }
            if judged.iter().filter(|judged| judged.rank.is_some()).count() == 1 {
                // The reference was compared with no command.
                judged[reference].rank = None;
            }
        }
        for (nth, at) in among.iter().enumerate() {
            let Some(comparison) = comparisons[nth] else { continue };
            let all = || ends.iter().filter_map(|other| other[nth]?.judged()).chain(comparison.judged());
            let interval = all().reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
            let criterion = self.criterion(*at, kind);
            let comparison = match comparison.judged() {
                Some(_) => comparison.with_judged_interval(interval, criterion),
                _ => comparison,
            };
            judged[*at].verdict = Some(comparison.verdict);
            judged[*at].comparison = Some(comparison);
            if comparison.verdict == Verdict::Inconclusive {
                judged[*at].why = self.why(&comparison, criterion);
            }
        }
        judged
    }

    /// Why the comparison is inconclusive, and what would make it conclusive.
    fn why(&self, comparison: &Comparison, criterion: Criterion) -> Option<String> {
        // The answer says it.
        if self.plan.catch.is_some() {
            return None;
        }
        Some(self.advice(comparison, criterion))
    }

    fn advice(&self, comparison: &Comparison, criterion: Criterion) -> String {
        let rounds = self.rounds.commands.iter().map(|command| command.runs.len()).max().unwrap_or(0);
        let sessions = self.plan.sessions;
        if comparison.judged().is_none() {
            return match sessions {
                1 => format!("too few rounds ({rounds}); use --runs 10"),
                _ => format!("too few sessions ({sessions}); use --sessions {MIN_SESSIONS} or more"),
            };
        }
        if let Some(few) = comparison.too_few_runs(rounds).filter(|_| sessions == 1) {
            return few;
        }
        let smallest = comparison.smallest_change_text().map_or_else(String::new, |text| text + "; ");
        let Some(times) = comparison.factor_to_decide(criterion) else {
            return format!("{smallest}the change is too close to the threshold; use another --threshold");
        };
        if times > MAX_FACTOR_TO_DECIDE {
            return format!("{smallest}too noisy for a verdict here");
        }
        let had = if sessions == 1 { rounds as f64 } else { f64::from(sessions) };
        let more = (had * times).ceil().max(had + 1.0);
        if more > MAX_RUNS as f64 {
            return format!("{smallest}too noisy for a verdict here");
        }
        let flag = if sessions == 1 { "--runs" } else { "--sessions" };
        let per_session = if sessions == 1 { 1.0 } else { (rounds as f64 / had).max(1.0) };
        let seconds = self.rounds.round_time.max(Duration::from_millis(1)).as_secs_f64() * per_session * (more - had);
        format!("{smallest}needs about {} s more of measuring ({flag} {more})", seconds.ceil())
    }
}

/// The ranks from the pairs that are significant in all rankings.
fn ranks_in_all(rankings: Vec<Ranking>) -> Vec<usize> {
    let count = rankings.first().map_or(0, |ranking| ranking.better.len());
    let better = |one: usize, other: usize| rankings.iter().all(|ranking| ranking.better[one][other]);
    ranks_of(&(0..count).map(|one| (0..count).map(|other| better(one, other)).collect()).collect::<Vec<_>>())
}

fn subtract(values: &BySession, off: f64) -> BySession {
    values.iter().map(|session| session.iter().map(|value| value - off).collect()).collect()
}
