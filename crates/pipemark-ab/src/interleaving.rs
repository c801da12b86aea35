//! Rounds: each command once in each, in another order, until a change that counts would be seen or the time is up.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use pipemark_console::{Progress, Stop, exit};
use pipemark_host::child::{Interrupt, RunError};
use pipemark_stats::estimate;
use pipemark_stats::ranking::{BySession, is_resolved};
use pipemark_stats::verdict::Criterion;

use crate::cold::{ColdPages, drop_all};
use crate::commands::CommandEntry;
use crate::conditions::RunConditions;
use crate::hooks::run_hook;
use crate::pipeline::{PipelineRun, RunMode, TimedCommand};
use crate::run_figures::{FigureKind, of_run};
use crate::shell::Shell;

/// The fewest rounds of a session without `--runs`, and the most of a single session.
pub const LEAST_ROUNDS: u32 = 10;
/// See [`LEAST_ROUNDS`].
pub const MOST_ROUNDS: u32 = 500;
/// What takes longer has so little of the shell's start in it that it is not measured.
const LONG: Duration = Duration::from_millis(500);

/// Bytes by which each session's environment is larger than the one's before, up to a page: all places of a stack within
/// one are met, at steps that are no power of two.
const PADDING: usize = 272;
const MOST_PADDING: usize = 4096;

/// How the rounds are made.
#[derive(Debug, Clone)]
pub struct RoundPlan {
    /// Rounds of each session; without, see [`LEAST_ROUNDS`].
    pub rounds: Option<u32>,
    pub sessions: u32,
    /// Rounds before them that don't count, in each session.
    pub warmup: u32,
    /// No rounds are added after this time.
    pub budget: Duration,
    /// The place of the figure that is judged, and by what it is.
    pub by: usize,
    pub criterion: Criterion,
    /// The place of the command that the others are compared with.
    pub reference: usize,
    pub ignore_output: bool,
    /// Whether the memory of all processes together is sampled.
    pub memory: bool,
    /// Files whose pages are dropped before each run.
    pub cold: Vec<PathBuf>,
    /// Whether what fails is a row and the rest goes on.
    pub keep_going: bool,
    /// Whether the time expected is printed.
    pub announced: bool,
}

/// A run that counts, or one that warmed up (round 0).
#[derive(Debug, Clone)]
pub struct RunRecord {
    /// From 1.
    pub session: u32,
    pub round: u32,
    /// In the order of the kinds; the time with the shell's start in it.
    pub figures: Vec<Option<f64>>,
    /// Of the last stage; `None` where a signal ended it.
    pub exit_code: Option<i32>,
}

/// What became of a command.
#[derive(Debug, Clone, Default)]
pub struct CommandRuns {
    /// Those that count.
    pub runs: Vec<RunRecord>,
    /// What it wrote first, in bytes.
    pub output: u64,
    hash: Option<[u8; 32]>,
    /// Whether a run wrote something else than the first.
    pub unsteady: bool,
    /// The capacity of its pipes, as granted.
    pub capacity: Option<u64>,
    /// Why it has no figures.
    pub failed: Option<String>,
}

/// What all rounds gave.
#[derive(Debug, Default)]
pub struct Rounds {
    /// In the order of the commands.
    pub commands: Vec<CommandRuns>,
    /// What an empty command took in each round, in nanoseconds.
    pub empty: Vec<f64>,
    /// How far the files were cold.
    pub cold: Option<ColdPages>,
    /// How long a round took.
    pub round_time: Duration,
    /// Whether the person ended it: then these are the rounds that were complete.
    pub interrupted: bool,
}

impl CommandRuns {
    /// A figure of each run, by session; `None` where a run has none.
    pub fn by_session(&self, kind: usize) -> Option<BySession> {
        let mut sessions: BySession = Vec::new();
        let mut last = 0;
        for run in &self.runs {
            if run.session != last {
                sessions.push(Vec::new());
                last = run.session;
            }
            sessions.last_mut()?.push(run.figures[kind]?);
        }
        (!sessions.is_empty()).then_some(sessions)
    }
}

/// Receives each run as it ends: its command, the run, and whether it warmed up.
pub type OnRun<'a> = dyn FnMut(&CommandEntry, &RunRecord) -> Result<(), Stop> + 'a;

/// Runs all rounds.
///
/// # Errors
/// When a command fails and the rest is not to go on, outputs differ, a hook fails, or the person interrupts.
pub fn run_rounds(
    entries: &[CommandEntry],
    kinds: &[FigureKind],
    conditions: &RunConditions,
    plan: &RoundPlan,
    interrupt: &Interrupt,
    progress: &mut Progress,
    on_run: &mut OnRun<'_>,
) -> Result<Rounds, Stop> {
    let rounds = Rounds { commands: vec![CommandRuns::default(); entries.len()], ..Rounds::default() };
    let mut runner = Runner {
        entries,
        kinds,
        conditions,
        plan,
        interrupt,
        rounds,
        kept: kinds.iter().any(FigureKind::is_printed),
        complete: Vec::new(),
    };
    runner.hooks("--setup", |entry| entry.hooks.setup.as_ref())?;
    let mut done = runner.all(progress, on_run);
    if interrupt.requested() {
        interrupt.forget()?;
        if runner.keep_complete_rounds() {
            done = Ok(());
        }
    }
    // However it ended, what was set up is cleaned up.
    let cleaned = runner.hooks("--cleanup", |entry| entry.hooks.cleanup.as_ref());
    done.and(cleaned)?;
    Ok(runner.rounds)
}

struct Runner<'a> {
    entries: &'a [CommandEntry],
    kinds: &'a [FigureKind],
    conditions: &'a RunConditions,
    plan: &'a RoundPlan,
    interrupt: &'a Interrupt,
    rounds: Rounds,
    /// Whether what is printed is kept.
    kept: bool,
    /// Runs of each command in rounds that are over.
    complete: Vec<usize>,
}

impl Runner<'_> {
    /// One of the hooks that are done once, of each command; the same one only once.
    fn hooks(&mut self, flag: &str, hook: impl Fn(&CommandEntry) -> Option<&String>) -> Result<(), Stop> {
        let mut done: Vec<&String> = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            let Some(text) = hook(entry).filter(|text| !done.contains(text)) else { continue };
            done.push(text);
            if let Err(error) = run_hook(flag, Some(text), self.conditions, self.interrupt) {
                self.failed(at, error)?;
            }
        }
        Ok(())
    }

    /// What fails is a row, or the end.
    fn failed(&mut self, at: usize, error: RunError) -> Result<(), Stop> {
        match error {
            RunError::Interrupted => Err(Stop::with(exit::INTERRUPTED, "interrupted; no result")),
            error if self.plan.keep_going => {
                self.rounds.commands[at].failed.get_or_insert(error.to_string());
                Ok(())
            }
            error => Err(Stop::failed(format_args!("{}: {error}", self.entries[at].label))),
        }
    }

    /// When the person interrupts: what was measured in whole rounds stays. Whether there is any.
    fn keep_complete_rounds(&mut self) -> bool {
        for (command, complete) in self.rounds.commands.iter_mut().zip(&self.complete) {
            command.runs.truncate(*complete);
        }
        self.rounds.interrupted = !self.complete.is_empty();
        self.rounds.interrupted
    }

    fn all(&mut self, progress: &mut Progress, on_run: &mut OnRun<'_>) -> Result<(), Stop> {
        let plan = self.plan;
        let begun = Instant::now();
        let mut random = SplitMix64::seed_from_u64(1);
        let mut per_session = plan.rounds;
        let mut done: u64 = 0;
        for session in 1..=plan.sessions {
            let warm = Instant::now();
            let mut timed = Instant::now();
            let mut made = 0;
            for round in 0.. {
                if session == 1 && round == plan.warmup.max(1) {
                    let once = warm.elapsed() / round;
                    per_session = per_session.or_else(|| self.affordable(once));
                    if per_session.is_none_or(|rounds| made < rounds) {
                        self.announce(once, per_session);
                    }
                }
                if round == plan.warmup {
                    timed = Instant::now();
                }
                let counted = round >= plan.warmup;
                let enough = match per_session {
                    Some(rounds) => made == rounds,
                    None => made >= LEAST_ROUNDS && self.is_enough(made, begun.elapsed()),
                };
                if counted && enough {
                    break;
                }
                let rounds = per_session.unwrap_or(LEAST_ROUNDS.max(made + 1));
                let total = u64::from(rounds + plan.warmup) * u64::from(plan.sessions) * self.entries.len() as u64;
                // The first round of all has the order of the commands: the first one's output is what the others are held against.
                let order = match (session, round) {
                    (1, 0) => (0..self.entries.len()).collect(),
                    _ => self.order(session - 1 + round, &mut random),
                };
                for at in order {
                    if self.rounds.commands[at].failed.is_some() {
                        continue;
                    }
                    progress.update(done, total, &self.so_far(at));
                    done += 1;
                    self.one(at, session, if counted { made + 1 } else { 0 }, round == 0 && !counted, on_run)?;
                }
                if self.rounds.commands.iter().all(|command| command.failed.is_some()) {
                    return Ok(());
                }
                if counted {
                    made += 1;
                    self.complete = self.rounds.commands.iter().map(|command| command.runs.len()).collect();
                    self.measure_shell(session)?;
                    self.rounds.round_time = timed.elapsed() / made;
                }
            }
        }
        Ok(())
    }

    /// One run, with what is done before and after it.
    fn one(&mut self, at: usize, session: u32, round: u32, hashed: bool, on_run: &mut OnRun<'_>) -> Result<(), Stop> {
        let entry = &self.entries[at];
        match self.try_one(entry, session, hashed) {
            Ok((ran, figures)) => {
                self.check_output(at, &ran)?;
                let record = RunRecord { session, round, figures, exit_code: ran.exit_code };
                on_run(entry, &record)?;
                let command = &mut self.rounds.commands[at];
                command.capacity = ran.capacity;
                if round > 0 {
                    command.runs.push(record);
                }
                Ok(())
            }
            Err(error) => self.failed(at, error),
        }
    }

    fn try_one(
        &mut self,
        entry: &CommandEntry,
        session: u32,
        hashed: bool,
    ) -> Result<(PipelineRun, Vec<Option<f64>>), RunError> {
        run_hook("--prepare", entry.hooks.prepare.as_ref(), self.conditions, self.interrupt)?;
        if !self.plan.cold.is_empty() {
            self.rounds.cold = Some(drop_all(&self.plan.cold, self.rounds.cold.unwrap_or_default())?);
        }
        let ran = entry.command.run(self.conditions, self.mode(session, hashed), self.interrupt)?;
        run_hook("--conclude", entry.hooks.conclude.as_ref(), self.conditions, self.interrupt)?;
        let figures = of_run(self.kinds, &ran)?;
        Ok((ran, figures))
    }

    fn mode(&self, session: u32, hashed: bool) -> RunMode {
        // A stack that begins elsewhere is as good as another layout of memory: all commands get the same.
        RunMode {
            hashed,
            kept: self.kept,
            memory: self.plan.memory,
            padding: (session - 1) as usize * PADDING % MOST_PADDING,
        }
    }

    /// The shell alone, where it is a part of short commands that is worth knowing.
    fn measure_shell(&mut self, session: u32) -> Result<(), Stop> {
        let shortest = |command: &CommandRuns| command.runs.iter().filter_map(|run| run.figures[0]).reduce(f64::min);
        let short = self.rounds.commands.iter().filter_map(shortest).any(|time| time < LONG.as_nanos() as f64);
        let one_shell = self.entries.iter().all(|entry| entry.command.stages.len() == 1) && self.conditions.copies == 1;
        if self.conditions.shell == Shell::None || !short || !one_shell {
            return Ok(());
        }
        let nothing = TimedCommand { stages: vec![String::new()], capacity: None };
        let mode = RunMode { hashed: false, memory: false, ..self.mode(session, false) };
        match nothing.run(self.conditions, mode, self.interrupt) {
            Ok(ran) => self.rounds.empty.push(ran.nanoseconds()),
            Err(RunError::Interrupted) => return self.failed(0, RunError::Interrupted),
            // The commands say what is wrong with the shell.
            Err(_) => {}
        }
        Ok(())
    }

    /// Of two, whoever is first in a round is second in the next: what one leaves behind for the other hits both alike. More are
    /// shuffled.
    fn order(&self, turn: u32, random: &mut SplitMix64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        if order.len() <= 2 {
            order.rotate_left(turn as usize % self.entries.len());
            return order;
        }
        for last in (1..order.len()).rev() {
            // The bias of the remainder is below 2⁻⁵⁰ for any number of commands.
            order.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
        }
        order
    }

    /// Commands that don't do the same work are not compared; those of other parameters may well do other work.
    fn check_output(&mut self, at: usize, ran: &PipelineRun) -> Result<(), Stop> {
        let first = ran.hash.is_some() || self.rounds.commands[at].runs.is_empty();
        if first && self.rounds.commands[at].hash.is_none() {
            (self.rounds.commands[at].output, self.rounds.commands[at].hash) = (ran.output, ran.hash);
        }
        let entries = self.entries;
        let alike = |other: &usize| entries[*other].parameters == entries[at].parameters;
        let model = (0..at).filter(alike).find(|&other| self.rounds.commands[other].failed.is_none()).unwrap_or(at);
        let expected = &self.rounds.commands[model];
        // One that has not run yet says nothing.
        if expected.hash.is_none() && expected.runs.is_empty() && model != at {
            return Ok(());
        }
        let (name, other, output) = (&entries[at].label, &entries[model].label, ran.output);
        let not_compared = "outputs differ; not comparing (--ignore-output compares times anyway)";
        let sentence = if output != expected.output {
            format!("{name} wrote {output} bytes and the first run of {other} {}: {not_compared}", expected.output)
        } else if ran.hash.is_some() && expected.hash.is_some() && ran.hash != expected.hash {
            format!("{other} and {name} each wrote {output} bytes, and not the same ones: {not_compared}")
        } else {
            return Ok(());
        };
        self.rounds.commands[at].unsteady = true;
        if self.plan.ignore_output { Ok(()) } else { Err(Stop::with(exit::NOT_VERIFIED, sentence)) }
    }

    /// Of several sessions, as many rounds in each as the budget has room for; a single one goes by what it sees.
    fn affordable(&self, round: Duration) -> Option<u32> {
        let sessions = self.plan.sessions;
        let fit = self.plan.budget.as_secs_f64() / f64::from(sessions) / round.as_secs_f64().max(1e-6);
        (sessions > 1).then(|| ((fit as u32).saturating_sub(self.plan.warmup)).clamp(1, LEAST_ROUNDS))
    }

    fn is_enough(&self, made: u32, elapsed: Duration) -> bool {
        // To look costs time that grows with the square of the rounds.
        let looks = made.is_multiple_of((made / 16).max(1));
        made >= MOST_ROUNDS || elapsed >= self.plan.budget || looks && self.is_known()
    }

    /// Whether these runs are enough: of several, see [`is_resolved`]; of one, its figure within 3 %.
    fn is_known(&self) -> bool {
        let (by, criterion) = (self.plan.by, self.plan.criterion);
        let command = &self.rounds.commands[self.plan.reference];
        let Some(reference) = command.by_session(by).filter(|_| command.failed.is_none()) else { return false };
        let others = self.rounds.commands.iter().enumerate().filter(|(at, _)| *at != self.plan.reference);
        let others: Option<Vec<BySession>> =
            others.filter(|(_, command)| command.failed.is_none()).map(|(_, command)| command.by_session(by)).collect();
        match others {
            None => false,
            Some(others) if others.is_empty() => estimate::from_runs(&reference.concat())
                .is_some_and(|figure| estimate::is_narrow(&figure, criterion.same_within)),
            Some(others) => is_resolved(&[vec![reference], others].concat(), 0, criterion),
        }
    }

    /// Says how long it will take, where that may be long.
    fn announce(&self, round: Duration, rounds: Option<u32>) {
        if !self.plan.announced {
            return;
        }
        let seconds = |rounds: u32| (round * rounds * self.plan.sessions).as_secs_f64().ceil();
        let least = seconds(rounds.unwrap_or(LEAST_ROUNDS));
        let most = self.plan.budget.as_secs_f64().max(least);
        pipemark_console::say(match rounds {
            Some(_) => format!("expected time: about {least} s"),
            None => format!("expected time: {least} to {most} s"),
        });
    }

    /// The latest figure, for whoever waits.
    fn so_far(&self, at: usize) -> String {
        let CommandEntry { label, text, .. } = &self.entries[at];
        let by = &self.kinds[self.plan.by];
        let figures: Option<Vec<f64>> =
            self.rounds.commands[at].runs.iter().map(|run| run.figures[self.plan.by]).collect();
        match figures.and_then(|figures| estimate::from_runs(&figures)) {
            Some(figure) => format!("{label} ≈ {} so far", by.unit.show(figure.median)),
            None => text.clone(),
        }
    }
}
