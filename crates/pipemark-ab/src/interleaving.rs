//! Rounds: each contains every command once, in varying order. Rounds are added until a relevant change is detectable
//! or the budget is spent.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng;

use pipemark_console::verdict::criterion;
use pipemark_console::{ExitError, Progress, exit, say_error};
use pipemark_host::child::{Interrupt, RunError};
use pipemark_model::{Better, neutral};
use pipemark_shell::shown_command;
use pipemark_stats::catch::CatchLimit;
use pipemark_stats::estimate;
use pipemark_stats::order::shuffle;
use pipemark_stats::ranking::{BySession, is_resolved};
use pipemark_stats::verdict::Criterion;

use crate::cold::{ColdPages, drop_all};
use crate::commands::CommandEntry;
use crate::conditions::{RunConditions, not_run};
use crate::hooks::run_hook;
use crate::own_memory::OwnMemory;
use crate::pipeline::{PipelineRun, RunMode, TimedCommand};
use crate::run_figures::{FigureKind, of_run};
use crate::standard_error::Messages;
use crate::thresholds::Thresholds;

/// The minimum number of rounds of a session without `--runs`.
pub const MIN_ROUNDS: u32 = 10;
/// The maximum number of rounds of a single session without `--runs`.
pub const MAX_ROUNDS: u32 = 500;
/// The longest command for which the shell's start is measured. In longer commands, the start is too small a part of
/// the time to matter.
const MAX_TIME_WITH_SHELL_START: Duration = Duration::from_millis(500);

/// The largest number of sessions with `--catch`.
pub const MAX_SESSIONS: u32 = 250;
/// With `--catch`, the number of rounds of a session is chosen so that about this many sessions fit in the budget.
const SESSIONS_IN_BUDGET: f64 = 100.0;
/// The largest number of rounds of a session with `--catch`.
const MAX_ROUNDS_OF_SESSION: u32 = 20;

/// The number of bytes by which the environment grows from one session to the next. It isn't a power of two, so that
/// stack positions cover the whole page.
const PADDING: usize = 272;
/// The padding of a session is taken modulo this number of bytes, a page.
const MAX_PADDING: usize = 4096;

/// The plan of the rounds.
#[derive(Debug, Clone)]
pub struct RoundPlan {
    /// The number of rounds of each session. `None` leaves the number to the budget and the precision.
    pub rounds: Option<u32>,
    pub sessions: u32,
    /// Warm-up rounds of each session, which don't count.
    pub warmup: u32,
    /// No rounds are added after this time since the start.
    pub budget: Duration,
    /// The index of the figure that is judged.
    pub by: usize,
    /// The smallest change that counts, as a fraction; `None` for the default.
    pub threshold: Option<f64>,
    /// Thresholds of single commands and figures.
    pub thresholds: Thresholds,
    /// The limit of `--catch`. The number of sessions and of their rounds then follows from the budget, and only the
    /// first session has a warm-up.
    pub catch: Option<CatchLimit>,
    /// The index of the command that the others are compared with.
    pub reference: usize,
    pub ignore_output: bool,
    /// Whether the memory of all processes together is sampled.
    pub memory: bool,
    /// Files whose pages are dropped before each run.
    pub cold: Vec<PathBuf>,
    /// Whether to list a failed command in the table, and continue with the other commands.
    pub keep_going: bool,
    /// Whether to print the expected time.
    pub announced: bool,
}

impl RoundPlan {
    /// The criterion for a figure of which higher or lower is better.
    pub fn criterion(&self, better: Better) -> Criterion {
        match self.catch {
            Some(limit) => CatchLimit { better, ..limit }.criterion(),
            None => criterion(self.threshold, better),
        }
    }

    /// The strictest criterion for a figure of all commands.
    pub fn strictest_criterion(&self, kind: &FigureKind) -> Criterion {
        match self.thresholds.smallest(&kind.key) {
            Some(threshold) => criterion(Some(threshold), kind.better),
            None => self.criterion(kind.better),
        }
    }
}

/// A run of a command; round 0 is warm-up.
#[derive(Debug, Clone)]
pub struct RunRecord {
    /// The session of the run, counted from 1.
    pub session: u32,
    pub round: u32,
    /// The figures in the order of the kinds; `None` for a figure that the run doesn't have. The time includes the
    /// shell's start.
    pub figures: Vec<Option<f64>>,
    /// The exit code of the last stage; `None` if a signal killed it.
    pub exit_code: Option<i32>,
}

/// The runs of a command.
#[derive(Debug, Clone, Default)]
pub struct CommandRuns {
    /// The runs, without warm-up.
    pub runs: Vec<RunRecord>,
    /// The size of the first run's output, in bytes.
    pub output: u64,
    hash: Option<[u8; 32]>,
    /// Whether a run's output differed from that of the first run.
    pub unsteady: bool,
    /// The capacity of the command's pipes in bytes, as granted; `None` if none was requested.
    pub capacity: Option<u64>,
    /// Why the command has no figures; `None` if it didn't fail.
    pub failed: Option<String>,
}

/// The result of all rounds.
#[derive(Debug, Default)]
pub struct Rounds {
    /// The runs of each command, in the order of the commands.
    pub commands: Vec<CommandRuns>,
    /// The time that the shell added to a command in each round, in nanoseconds.
    pub shell_starts: Vec<f64>,
    /// Pages of the files of `--cold` that stayed in memory; `None` without `--cold`.
    pub cold: Option<ColdPages>,
    /// The duration of a round.
    pub round_time: Duration,
    /// The most memory of pipemark, in bytes, that the kernel may have counted in the peak of a command.
    pub own_memory: u64,
    /// Whether the user interrupted the measurement. Only complete rounds are then kept.
    pub interrupted: bool,
    /// Whether a `--cleanup` failed. The error has been printed.
    pub cleanup_failed: bool,
}

impl CommandRuns {
    /// Whether the output of a warm-up run was hashed.
    pub fn is_hashed(&self) -> bool {
        self.hash.is_some()
    }

    /// One figure of all runs, by session; `None` if a run doesn't have this figure.
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

/// The number of rounds of a session with `--catch`, of which each takes `round`.
fn rounds_of_session(budget: Duration, round: Duration) -> u32 {
    let fit = budget.as_secs_f64() / SESSIONS_IN_BUDGET / round.as_secs_f64().max(1e-6);
    (fit as u32).clamp(1, MAX_ROUNDS_OF_SESSION)
}

/// Called with the command and the run when a run has ended.
pub type OnRun<'a> = dyn FnMut(&CommandEntry, &RunRecord) -> Result<(), ExitError> + 'a;

/// Called when a session of `--catch` has ended, with the time since the start. Returns whether it was the last one.
pub type OnSession<'a> = dyn FnMut(&Rounds, Duration) -> bool + 'a;

/// Functions that are called during the measurement.
pub struct Callbacks<'a> {
    pub run: &'a mut OnRun<'a>,
    pub session: &'a mut OnSession<'a>,
}

/// Runs all rounds.
///
/// # Errors
/// When a command or hook fails, outputs differ, or the user interrupts.
pub fn run_rounds(
    entries: &[CommandEntry],
    kinds: &[FigureKind],
    conditions: &RunConditions,
    plan: &RoundPlan,
    interrupt: &Interrupt,
    progress: &mut Progress,
    callbacks: &mut Callbacks<'_>,
) -> Result<Rounds, ExitError> {
    let rounds = Rounds { commands: vec![CommandRuns::default(); entries.len()], ..Rounds::default() };
    let mut runner = Runner {
        entries,
        kinds,
        conditions,
        plan,
        interrupt,
        rounds,
        kept: kinds.iter().any(FigureKind::is_printed),
        messages: Messages::new(entries.len()),
        own_memory: OwnMemory::new(),
        complete: Vec::new(),
        set_up: 0,
        interrupted: false,
    };
    let mut done = runner.run_setups().and_then(|()| runner.run_all(progress, callbacks));
    if interrupt.requested() || runner.interrupted {
        interrupt.forget()?;
        if runner.keep_complete_rounds() {
            done = Ok(());
        }
    }
    // Clean up however the rounds ended.
    progress.clear();
    runner.run_cleanups();
    runner.messages.finish(entries, conditions.shell);
    done?;
    Ok(runner.rounds)
}

struct Runner<'a> {
    entries: &'a [CommandEntry],
    kinds: &'a [FigureKind],
    conditions: &'a RunConditions,
    plan: &'a RoundPlan,
    interrupt: &'a Interrupt,
    rounds: Rounds,
    /// Whether the commands' output is kept, to read figures from it.
    kept: bool,
    messages: Messages,
    own_memory: OwnMemory,
    /// For each command, the number of its runs in complete rounds.
    complete: Vec<usize>,
    /// The number of commands whose setup was started. The others are not cleaned up.
    set_up: usize,
    /// Whether the user interrupted a run, and the interrupt was then cleared so that `--conclude` could run.
    interrupted: bool,
}

impl Runner<'_> {
    /// Runs the setup of each command; identical setups run once.
    fn run_setups(&mut self) -> Result<(), ExitError> {
        let mut done: Vec<&OsString> = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            self.set_up = at + 1;
            let Some(text) = entry.hooks.setup.as_ref().filter(|text| !done.contains(text)) else { continue };
            done.push(text);
            if let Err(error) = run_hook("--setup", Some(text), self.conditions, self.interrupt) {
                self.handle_failure(at, error)?;
            }
        }
        Ok(())
    }

    /// Runs the cleanup of each command; identical cleanups run once. A failure is printed, and does not affect the
    /// results.
    fn run_cleanups(&mut self) {
        let mut done: Vec<&OsString> = Vec::new();
        for entry in &self.entries[..self.set_up] {
            let Some(text) = entry.hooks.cleanup.as_ref().filter(|text| !done.contains(text)) else { continue };
            done.push(text);
            match run_hook("--cleanup", Some(text), self.conditions, self.interrupt) {
                Ok(()) => {}
                Err(RunError::Interrupted) => {
                    say_error(format_args!(
                        "{}: --cleanup '{}' was interrupted",
                        entry.label,
                        neutral(&shown_command(text.as_bytes()))
                    ));
                    self.rounds.interrupted = true;
                    return;
                }
                Err(error) => {
                    say_error(format_args!("{}: {error}", entry.label));
                    self.rounds.cleanup_failed = true;
                }
            }
        }
    }

    /// Handles a failure: records it for the table, or ends the measurement.
    fn handle_failure(&mut self, at: usize, error: RunError) -> Result<(), ExitError> {
        match error {
            RunError::Interrupted => Err(ExitError::with(exit::INTERRUPTED, "interrupted; no result")),
            error if self.plan.keep_going => {
                self.rounds.commands[at].failed.get_or_insert(error.to_string());
                Ok(())
            }
            error => Err(ExitError::failed(format_args!("{}: {error}", self.entries[at].label))),
        }
    }

    /// After an interrupt, drops the runs of the incomplete round. Returns whether there is a complete round.
    fn keep_complete_rounds(&mut self) -> bool {
        for (command, complete) in self.rounds.commands.iter_mut().zip(&self.complete) {
            command.runs.truncate(*complete);
        }
        self.rounds.interrupted = !self.complete.is_empty();
        self.rounds.interrupted
    }

    fn run_all(&mut self, progress: &mut Progress, callbacks: &mut Callbacks<'_>) -> Result<(), ExitError> {
        let plan = self.plan;
        let begun = Instant::now();
        let mut random = SplitMix64::seed_from_u64(1);
        let mut per_session = plan.rounds;
        let mut done: u64 = 0;
        let sessions = if plan.catch.is_some() { MAX_SESSIONS } else { plan.sessions };
        for session in 1..=sessions {
            let warmup = if plan.catch.is_some() && session > 1 { 0 } else { plan.warmup };
            let warm = Instant::now();
            let mut timed = Instant::now();
            let mut made = 0;
            for round in 0.. {
                if session == 1 && round == plan.warmup.max(1) && plan.catch.is_none() {
                    let once = warm.elapsed() / round;
                    per_session = per_session.or_else(|| self.rounds_in_budget(once));
                    if per_session.is_none_or(|rounds| made < rounds) {
                        self.announce(once, per_session);
                    }
                }
                if round == warmup {
                    timed = Instant::now();
                }
                let counted = round >= warmup;
                let enough = match per_session {
                    Some(rounds) => made == rounds,
                    None if plan.catch.is_some() => false,
                    None => made >= MIN_ROUNDS && self.is_enough(made, begun.elapsed()),
                };
                if counted && enough {
                    break;
                }
                let total = self.total_runs(per_session.unwrap_or(MIN_ROUNDS.max(made + 1)), begun.elapsed());
                // The first round has the order of the commands, because the first command's output is the expected
                // one.
                let order = match (session, round) {
                    (1, 0) => (0..self.entries.len()).collect(),
                    _ => self.order(session - 1 + round, &mut random),
                };
                for at in order {
                    if self.rounds.commands[at].failed.is_some() {
                        continue;
                    }
                    // Computing an estimate takes time quadratic in the number of runs, and leaves cold caches for the
                    // next run.
                    if progress.is_shown() {
                        progress.update(done, total, &self.latest_figure(at));
                    }
                    done += 1;
                    let hashed = round == 0 && !counted;
                    self.run_command(at, session, if counted { made + 1 } else { 0 }, hashed, progress, callbacks)?;
                }
                if self.rounds.commands.iter().all(|command| command.failed.is_some()) {
                    return Ok(());
                }
                if counted {
                    made += 1;
                    self.complete = self.rounds.commands.iter().map(|command| command.runs.len()).collect();
                    self.measure_shell(session, &mut random)?;
                    self.rounds.round_time = timed.elapsed() / made;
                    if plan.catch.is_some() && per_session.is_none() {
                        per_session = Some(rounds_of_session(plan.budget, self.rounds.round_time));
                    }
                }
            }
            if plan.catch.is_some() && (callbacks.session)(&self.rounds, begun.elapsed()) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The number of runs to expect, for progress messages.
    fn total_runs(&self, rounds: u32, elapsed: Duration) -> u64 {
        let plan = self.plan;
        let commands = self.entries.len() as u64;
        if plan.catch.is_none() {
            return u64::from(rounds + plan.warmup) * u64::from(plan.sessions) * commands;
        }
        let done = self.rounds.commands.iter().map(|command| command.runs.len()).sum::<usize>() as f64;
        let share = elapsed.as_secs_f64() / plan.budget.as_secs_f64();
        (done / share.max(1e-6)).max(done + 1.0) as u64
    }

    /// Runs a command once, with its hooks.
    fn run_command(
        &mut self,
        at: usize,
        session: u32,
        round: u32,
        hashed: bool,
        progress: &mut Progress,
        callbacks: &mut Callbacks<'_>,
    ) -> Result<(), ExitError> {
        let entry = &self.entries[at];
        match self.try_run_command(at, session, hashed, progress) {
            Ok((ran, figures)) => {
                self.check_output(at, &ran)?;
                let record = RunRecord { session, round, figures, exit_code: ran.exit_code };
                (callbacks.run)(entry, &record)?;
                let command = &mut self.rounds.commands[at];
                command.capacity = ran.capacity;
                if round > 0 {
                    command.runs.push(record);
                }
                Ok(())
            }
            Err(error) => self.handle_failure(at, error),
        }
    }

    fn try_run_command(
        &mut self,
        at: usize,
        session: u32,
        hashed: bool,
        progress: &mut Progress,
    ) -> Result<(PipelineRun, Vec<Option<f64>>), RunError> {
        let entry = &self.entries[at];
        run_hook("--prepare", entry.hooks.prepare.as_ref(), self.conditions, self.interrupt)?;
        if !self.plan.cold.is_empty() {
            self.rounds.cold = Some(drop_all(&self.plan.cold, self.rounds.cold.unwrap_or_default())?);
        }
        let mut printed = Default::default();
        let present = self.own_memory.reset_peak();
        let ran = entry.command.run(self.conditions, self.mode(session, hashed), self.interrupt, &mut printed);
        let counted = ran.as_ref().map_or(0, |ran| self.own_memory.counted_in(ran, present));
        self.rounds.own_memory = self.rounds.own_memory.max(counted);
        // A standard error that figures are read from is shown only if the run failed.
        if !self.kept || ran.is_err() {
            self.messages.add(at, &printed[1], progress);
        }
        if matches!(ran, Err(RunError::Interrupted)) && entry.hooks.conclude.is_some() {
            self.interrupted = true;
            self.interrupt.forget().map_err(not_run)?;
        }
        let concluded = run_hook("--conclude", entry.hooks.conclude.as_ref(), self.conditions, self.interrupt);
        let ran = ran?;
        concluded?;
        let figures = of_run(self.kinds, &ran, &printed)?;
        if figures[self.plan.by].is_none() {
            return Err(RunError::Failed(format!(
                "the figure {} is not available here; use another --by",
                self.kinds[self.plan.by].key
            )));
        }
        Ok((ran, figures))
    }

    fn mode(&self, session: u32, hashed: bool) -> RunMode {
        // Each session shifts the stack by a different distance, which is the same for all commands, to sample
        // different memory layouts.
        RunMode {
            hashed,
            kept: self.kept,
            memory: self.plan.memory,
            padding: (session - 1) as usize * PADDING % MAX_PADDING,
        }
    }

    /// Measures the shell's start: the extra time that a command takes if a shell starts it. Does nothing unless a
    /// command is short enough for that to matter. The command measured is the shell itself, because it is certainly
    /// installed.
    ///
    /// The time of an empty shell command would be too long. It includes the creation and the exit of a process,
    /// whereas a shell replaces itself by its last command.
    fn measure_shell(&mut self, session: u32, random: &mut SplitMix64) -> Result<(), ExitError> {
        let shortest = |command: &CommandRuns| command.runs.iter().filter_map(|run| run.figures[0]).reduce(f64::min);
        let short = self
            .rounds
            .commands
            .iter()
            .filter_map(shortest)
            .any(|time| time < MAX_TIME_WITH_SHELL_START.as_nanos() as f64);
        let one_shell = self.entries.iter().all(|entry| entry.command.stages.len() == 1) && self.conditions.copies == 1;
        let Some(in_shell) = self.conditions.shell.empty_command().filter(|_| short && one_shell) else {
            return Ok(());
        };
        let commands = [OsString::new(), in_shell];
        let mode = RunMode { hashed: false, memory: false, ..self.mode(session, false) };
        let mut times = [0.0; 2];
        let mut order = [0, 1];
        shuffle(&mut order, random);
        for at in order {
            let command = TimedCommand { stages: vec![commands[at].clone()], capacity: None };
            match command.run(self.conditions, mode, self.interrupt, &mut Default::default()) {
                Ok(ran) => times[at] = ran.nanoseconds(),
                Err(RunError::Interrupted) => return self.handle_failure(0, RunError::Interrupted),
                // If the shell is broken, the commands' errors show it.
                Err(_) => return Ok(()),
            }
        }
        self.rounds.shell_starts.push(times[1] - times[0]);
        Ok(())
    }

    /// Two commands swap places from round to round, so that an effect of one command on the next affects both equally.
    /// Three or more commands are shuffled.
    fn order(&self, turn: u32, random: &mut SplitMix64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        if order.len() <= 2 {
            order.rotate_left(turn as usize % self.entries.len());
            return order;
        }
        shuffle(&mut order, random);
        order
    }

    /// Checks that outputs are equal, so that only commands that do the same work are compared. Commands with different
    /// parameters may have different outputs.
    fn check_output(&mut self, at: usize, ran: &PipelineRun) -> Result<(), ExitError> {
        let first = ran.hash.is_some() || self.rounds.commands[at].runs.is_empty();
        if first && self.rounds.commands[at].hash.is_none() {
            (self.rounds.commands[at].output, self.rounds.commands[at].hash) = (ran.output, ran.hash);
        }
        let entries = self.entries;
        let alike = |other: &usize| entries[*other].parameters == entries[at].parameters;
        let model = (0..at).filter(alike).find(|&other| self.rounds.commands[other].failed.is_none()).unwrap_or(at);
        let expected = &self.rounds.commands[model];
        // A command that has not run yet has no output to compare.
        if expected.hash.is_none() && expected.runs.is_empty() && model != at {
            return Ok(());
        }
        let (name, other, output) = (&entries[at].label, &entries[model].label, ran.output);
        let not_compared = "outputs differ; not comparing (--ignore-output compares anyway)";
        let sentence = if output != expected.output {
            format!("{name} wrote {output} bytes and the first run of {other} {}: {not_compared}", expected.output)
        } else if ran.hash.is_some() && expected.hash.is_some() && ran.hash != expected.hash {
            format!("{other} and {name} each wrote {output} bytes, with different content: {not_compared}")
        } else {
            return Ok(());
        };
        self.rounds.commands[at].unsteady = true;
        if self.plan.ignore_output { Ok(()) } else { Err(ExitError::with(exit::NOT_VERIFIED, sentence)) }
    }

    /// The number of rounds per session for which the budget has room. `None` for a single session, which stops when
    /// its precision is sufficient.
    fn rounds_in_budget(&self, round: Duration) -> Option<u32> {
        let sessions = self.plan.sessions;
        let fit = self.plan.budget.as_secs_f64() / f64::from(sessions) / round.as_secs_f64().max(1e-6);
        (sessions > 1).then(|| ((fit as u32).saturating_sub(self.plan.warmup)).clamp(1, MIN_ROUNDS))
    }

    fn is_enough(&self, made: u32, elapsed: Duration) -> bool {
        // The check takes time quadratic in the number of rounds.
        let is_due = made.is_multiple_of((made / 16).max(1));
        made >= MAX_ROUNDS || elapsed >= self.plan.budget || is_due && self.is_precise()
    }

    /// Whether the runs are precise enough. For several commands, see [`is_resolved`]. The figure of a single command
    /// must be known within 3 %.
    fn is_precise(&self) -> bool {
        let by = self.plan.by;
        let criterion = self.plan.strictest_criterion(&self.kinds[by]);
        let command = &self.rounds.commands[self.plan.reference];
        let is_narrow = |values: &BySession| {
            estimate::from_runs(&values.concat())
                .is_some_and(|figure| estimate::is_narrow(&figure, criterion.same_within))
        };
        let reference = command.by_session(by).filter(|_| command.failed.is_none());
        let others = self.rounds.commands.iter().enumerate().filter(|(at, _)| *at != self.plan.reference);
        let others: Option<Vec<BySession>> =
            others.filter(|(_, command)| command.failed.is_none()).map(|(_, command)| command.by_session(by)).collect();
        match (reference, others) {
            (_, None) => false,
            // If the reference failed, nothing is compared.
            (None, Some(others)) => others.iter().all(is_narrow),
            (Some(reference), Some(others)) if others.is_empty() => is_narrow(&reference),
            (Some(reference), Some(others)) => is_resolved(&[vec![reference], others].concat(), 0, criterion),
        }
    }

    /// Prints the expected duration if the measurement may take long.
    fn announce(&self, round: Duration, rounds: Option<u32>) {
        if !self.plan.announced {
            return;
        }
        let seconds = |rounds: u32| (round * rounds * self.plan.sessions).as_secs_f64().ceil();
        let least = seconds(rounds.unwrap_or(MIN_ROUNDS));
        let most = self.plan.budget.as_secs_f64().max(least);
        pipemark_console::say(match rounds {
            None if most > least => format!("expected time: {least} to {most} s"),
            None if seconds(MIN_ROUNDS) > self.plan.budget.as_secs_f64() => {
                format!("expected time: about {least} s, more than --budget, for {MIN_ROUNDS} runs of each command")
            }
            _ => format!("expected time: about {least} s"),
        });
    }

    /// The latest figure, for progress messages.
    fn latest_figure(&self, at: usize) -> String {
        let CommandEntry { label, text, .. } = &self.entries[at];
        let by = &self.kinds[self.plan.by];
        let figures: Option<Vec<f64>> =
            self.rounds.commands[at].runs.iter().map(|run| run.figures[self.plan.by]).collect();
        match figures.and_then(|figures| estimate::from_runs(&figures)) {
            Some(figure) => format!("{label} ≈ {} so far", by.unit.show(figure.median)),
            None => shown_command(text.as_bytes()).into_owned(),
        }
    }
}
