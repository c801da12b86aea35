//! `pipemark ab`: times and compares commands. Turns the command line into a plan, runs the rounds, and writes the
//! results.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use clap::builder::PathBufValueParser;
use rustix::thread::CpuSet;

use pipemark_console::verdict::{FailOnCommand, fail_on_command, threshold};
use pipemark_console::{
    Destination, ExitError, ExportOptions, Format, JsonLines, Progress, Targets, VerbResult, catch_interrupts, count,
    destination, exit, github, say, say_error,
};
use pipemark_entrants::PrintedFigure;
use pipemark_model::{Capacity, Document, counted, neutral, parse_duration};
use pipemark_stats::catch::{CatchAnswer, CatchLimit};
use pipemark_stats::compare::MAX_RUNS;
use pipemark_stats::verdict::Verdict;

use crate::baseline::{Baseline, MIN_SESSIONS_TOGETHER, SavedMeasurements, saved_command};
use crate::catch::Catching;
use crate::commands::{CommandEntry, MAX_WITHOUT_YES, TypedCommands, entries, reference};
use crate::conditions::{RunConditions, cpu_list};
use crate::export::{HyperfineSchema, bencher_json, benchmark_json, hyperfine_json, run_line};
use crate::interleaving::{Callbacks, MIN_ROUNDS, RoundPlan, Rounds, run_rounds};
use crate::judge::{Judge, MIN_SESSIONS, allow_verdict};
use crate::placeholders::Parameter;
use crate::result::{AB_SCHEMA, AbResult, FigureInfo};
use crate::run_figures::{FigureKind, PIPELINE_MEMORY, TIME, kinds, place};
use crate::sheet::{commands_csv, commands_sheet};
use crate::shell::Shell;
use crate::thresholds::Thresholds;

/// Examples at the end of the long help.
pub const EXAMPLES: &str = include_str!("ab.txt").trim_ascii_end();

/// The options of `pipemark ab`.
#[derive(Debug, Clone, Args)]
pub struct AbOptions {
    /// Shell commands, each in quotes; several commands are compared with the first
    #[arg(value_name = "'A' -- 'B'", num_args = 1.., required = true)]
    commands: Vec<OsString>,
    #[command(flatten)]
    choice: ChoiceOptions,
    #[command(flatten)]
    around: AroundOptions,
    #[command(flatten)]
    rounds: RoundOptions,
    #[command(flatten)]
    judging: JudgingOptions,
    #[command(flatten)]
    saved: SavedOptions,
    #[command(flatten)]
    output: AbOutputOptions,
}

/// Options that choose the commands.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Which commands")]
struct ChoiceOptions {
    /// Compare values: replace {NAME} in commands, hooks and names: threads=1,2,4 or size=1..10:3
    ///
    /// A range includes both ends; the number after the colon is its step. With several parameters, every combination
    /// of their values is run. Other braces, such as awk '{print}' and ${NAME}, are left alone.
    #[arg(long, short = 'P', value_name = "NAME=VALUES")]
    parameter: Vec<Parameter>,
    /// Name a command; repeat for each command
    #[arg(long, short = 'n', value_name = "NAME")]
    name: Vec<String>,
    /// Compare with this command, by number or name [default: 1]
    #[arg(long, value_name = "N")]
    reference: Option<String>,
    /// Capacity of the pipes between stages: default, or a size; several values compare a single command at each
    /// capacity
    ///
    /// With several commands, give one value for all or one for each. The pipeline is split at each |, and each stage
    /// runs in a shell of its own.
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',')]
    capacity: Vec<Capacity>,
    /// Allow more than 256 commands
    #[arg(long)]
    yes: bool,
}

/// Options for what is done around the runs, and for the conditions of the runs.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Around the runs")]
struct AroundOptions {
    /// Run COMMAND once, before the first run; give one for all commands, or one for each
    #[arg(long, value_name = "COMMAND")]
    setup: Vec<OsString>,
    /// Run COMMAND before each run, untimed
    #[arg(long, value_name = "COMMAND")]
    prepare: Vec<OsString>,
    /// Run COMMAND after each run, even a failed one, untimed
    #[arg(long, value_name = "COMMAND")]
    conclude: Vec<OsString>,
    /// Run COMMAND once, at the end, even after a failure or Ctrl-C
    #[arg(long, value_name = "COMMAND")]
    cleanup: Vec<OsString>,
    /// Shell that runs commands and hooks
    #[arg(long, short = 'S', value_enum, default_value_t)]
    shell: Shell,
    /// Redirect FILE to the standard input of each command [default: /dev/null]
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new())]
    input: Option<PathBuf>,
    /// Set an environment variable; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// Run commands only on these CPUs, such as 0,2-3
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    cpus: Option<CpuSet>,
    /// Evict FILE from the page cache before each run, so that it is read from storage; may be repeated
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new())]
    cold: Vec<PathBuf>,
    /// Run N copies of each command at once; outputs are compared by length only
    #[arg(long, value_name = "N", value_parser = count::<usize>(1, 256), default_value_t = 1)]
    concurrent: usize,
    /// Ignore nonzero exit codes
    #[arg(long, short)]
    ignore_failure: bool,
    /// Compare commands even if their outputs differ
    #[arg(long)]
    ignore_output: bool,
    /// Abort a run that takes longer than TIME
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10min")]
    limit: Duration,
}

/// Options for the number of runs.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Runs and sessions")]
struct RoundOptions {
    /// Run each command N times in each session
    ///
    /// By default, a single session has at least 10 runs, and more until a change of --threshold (or 3 %) is detectable
    /// or --budget is spent. With several sessions, each has up to 10 runs, as --budget allows.
    #[arg(long, short, value_name = "N", value_parser = count::<u32>(1, MAX_RUNS as u64))]
    runs: Option<u32>,
    /// Measure in N sessions, each started afresh, and compare by session; verdicts then need at least five sessions
    #[arg(long, value_name = "N", value_parser = count::<u32>(1, 1000), default_value_t = 1)]
    sessions: u32,
    /// Stop adding rounds after TIME [default: 1min, 2min with several sessions, or 3min with --catch]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    budget: Option<Duration>,
    /// Warm up with N rounds in each session; with 0, outputs are compared by length only
    #[arg(long, short, value_name = "N", value_parser = count::<u32>(0, 1000), default_value_t = 1)]
    warmup: u32,
}

/// Options for figures and verdicts.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Figures and verdicts")]
struct JudgingOptions {
    /// Read a figure from the command's output: the number that REGEX matches, or that its group ( ) matches if it has
    /// one
    ///
    /// NAME,UNIT=REGEX adds a unit. NAME,UNIT,higher or NAME,UNIT,lower says which is better; the default is higher for
    /// units that end in /s, and lower for all others. A run fails if its output has no match.
    /// (?m) at the start of REGEX makes ^ and $ match at each line. The commands' outputs may differ.
    #[arg(long, value_name = "NAME=REGEX")]
    figure: Vec<PrintedFigure>,
    /// Sample the total memory of a command's processes every 5 ms, for the figure pipeline-memory
    #[arg(long)]
    pipeline_memory: bool,
    /// Rank and judge commands by this figure
    #[arg(long, value_name = "FIGURE", default_value = TIME)]
    by: String,
    /// Decide whether the second command is slower by PERCENT or more, within --budget
    ///
    /// Chooses threshold, sessions and runs. The exit code is 10 if it is slower (caught), 0 if not (passed), and 12 if
    /// it can't be decided within --budget. If time is too noisy, CPU time, instructions or page faults may show that
    /// the command is slower, but never that it isn't. Slowdowns between two thirds and five sixths of PERCENT
    /// may be caught or pass.
    #[arg(
        long,
        value_name = "PERCENT",
        value_parser = threshold,
        conflicts_with_all = ["threshold", "fail_on", "runs", "sessions"]
    )]
    catch: Option<f64>,
    /// Smallest change that counts, such as 5%
    ///
    /// A change is better or worse if its whole interval is beyond PERCENT, and same if its whole interval is within
    /// PERCENT. The default is 0.5 % for better and worse, and 3 % for same.
    #[arg(long, value_name = "PERCENT", value_parser = threshold)]
    threshold: Option<f64>,
    /// Read the smallest changes that count from FILE (TOML), by command and figure
    ///
    /// A line time = "5%" is for every command. A table [NAME] has the thresholds of the command that --name calls NAME.
    /// --fail-on then applies to these figures too.
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new(), conflicts_with = "catch")]
    thresholds: Option<PathBuf>,
    /// With --catch, exit as 'git bisect run' expects: 1 if caught, 0 if passed, 125 if undecided or a command fails
    #[arg(long, requires = "catch")]
    bisect: bool,
    /// Exit with the verdict's code if a command has this verdict; see 'pipemark help exit-codes'
    #[arg(long, value_name = "VERDICT,…", value_delimiter = ',', value_parser = fail_on_command)]
    fail_on: Vec<FailOnCommand>,
}

/// Options for measurements that the history keeps.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "History")]
struct SavedOptions {
    /// Save the figures of all runs in the history under NAME, as sessions to compare later measurements with
    #[arg(long, value_name = "NAME")]
    save: Option<String>,
    /// Compare each command with the sessions that --save NAME saved on this machine
    ///
    /// A command is found by its --name, or else by its text. A verdict needs six sessions, saved and new together, such
    /// as --sessions 5 for both.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["catch", "reference"])]
    baseline: Option<String>,
    /// History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new())]
    db: Option<PathBuf>,
}

/// Options for the destinations of results.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
struct AbOutputOptions {
    #[command(flatten)]
    export: ExportOptions,
    /// Write a line of JSON as each run ends
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    json_lines: Option<Destination>,
    /// Write JSON in the format of hyperfine's --export-json
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    hyperfine_json: Option<Destination>,
    /// Schema of --hyperfine-json: that of hyperfine 1 or 2
    #[arg(long, value_enum, value_name = "1|2", default_value_t, requires = "hyperfine_json")]
    hyperfine_schema: HyperfineSchema,
    /// Write JSON for github-action-benchmark (customSmallerIsBetter, or customBiggerIsBetter if the figure of --by is
    /// better when higher), one figure per command
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    benchmark_json: Option<Destination>,
    /// Write JSON for Bencher (Bencher Metric Format), all figures
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    bencher_json: Option<Destination>,
    /// Print every figure, even for more than two commands
    #[arg(long)]
    all: bool,
}

impl AbOutputOptions {
    fn targets(&self) -> Targets<'_> {
        let mut targets = self.export.targets();
        targets.add(&[
            (&self.hyperfine_json, Format::Hyperfine),
            (&self.benchmark_json, Format::Benchmark),
            (&self.bencher_json, Format::Bencher),
        ]);
        targets.with_lines(self.json_lines.as_ref())
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("'{}' is not a variable; use NAME=VALUE", neutral(text))),
    }
}

/// Runs and judges the commands, and writes the results.
pub fn run(options: &AbOptions, history: &dyn SavedMeasurements) -> VerbResult {
    let ended = run_and_judge(options, history);
    if options.judging.bisect { ended.map_err(|error| error.map_code(bisect_code)) } else { ended }
}

/// The exit code for `git bisect run`, which takes 125 for a revision that can't be tested, and ends with any code above
/// 127.
fn bisect_code(code: u8) -> u8 {
    match code {
        exit::WORSE => 1,
        exit::USAGE => 128,
        exit::INTERRUPTED => code,
        _ => 125,
    }
}

fn run_and_judge(options: &AbOptions, history: &dyn SavedMeasurements) -> VerbResult {
    let targets = options.output.targets();
    targets.check()?;
    let plan = AbPlan::of(options)?;
    targets.check_files()?;
    let lines = options.output.json_lines.as_ref().map(JsonLines::open).transpose()?;
    let baseline = plan.baseline(options, history)?;
    let (result, cleanup_failed) = plan.measure(options, baseline.as_ref(), lines)?;
    if let Some(name) = options.saved.save.as_ref().filter(|_| !result.interrupted) {
        let saved = history.save(options.saved.db.as_deref(), plan.document(name, &result));
        if let Some(run) = saved.filter(|_| !options.output.export.quiet) {
            say(format_args!("saved as run {run}: {}", neutral(name)));
        }
    }
    let sheet = commands_sheet(&result, &plan.kinds, options.output.all);
    let json = serde_json::to_string(&result)?;
    targets.write(|format| match format {
        Format::Hyperfine => Ok(hyperfine_json(&result, options.output.hyperfine_schema)?),
        Format::Benchmark => Ok(benchmark_json(&result)?),
        Format::Bencher => Ok(bencher_json(&result)?),
        Format::Csv => format.of_sheet(&commands_csv(&result, &plan.kinds), None),
        format => format.of_sheet(&sheet, Some(&json)),
    })?;
    let failed = |command: &crate::result::CommandResult| command.failed.is_some();
    for command in result.commands.iter().filter(|command| failed(command)) {
        say_error(format_args!("{}: {}", command.label, neutral(command.failed.as_deref().unwrap_or_default())));
    }
    let verdict = match &result.catch {
        Some(catch) => failing_answer(catch.answer),
        None => most_urgent_verdict(&result, &options.judging.fail_on),
    };
    let failure = cleanup_failed || result.commands.iter().any(failed);
    github::report("ab", &sheet, verdict.map(FailOnCommand::name).or(failure.then_some("failed")));
    match verdict {
        _ if result.interrupted => Err(ExitError::code(exit::INTERRUPTED)),
        _ if failure => Err(ExitError::code(exit::FAILED)),
        Some(verdict) => Err(ExitError::code(verdict.code())),
        None => Ok(()),
    }
}

/// The verdict whose exit code an answer of `--catch` has; `None` if the command passed.
fn failing_answer(answer: CatchAnswer) -> Option<FailOnCommand> {
    match answer {
        CatchAnswer::Passed => None,
        CatchAnswer::Caught => Some(FailOnCommand::Verdict(Verdict::Worse)),
        CatchAnswer::Undecided => Some(FailOnCommand::Verdict(Verdict::Inconclusive)),
    }
}

/// The most urgent verdict that `--fail-on` names and a command has; `None` if there is none.
fn most_urgent_verdict(result: &AbResult, fail_on: &[FailOnCommand]) -> Option<FailOnCommand> {
    let happened = |what: &FailOnCommand| match what {
        FailOnCommand::Verdict(verdict) => result.verdicts().any(|other| other == *verdict),
        FailOnCommand::NoVerdict => result.is_without_verdict(),
    };
    FailOnCommand::ALL.into_iter().find(|what| fail_on.contains(what) && happened(what))
}

/// Whether a choice of `--fail-on` can only fail if there is a verdict.
fn needs_verdict(what: &FailOnCommand) -> bool {
    match what {
        FailOnCommand::Verdict(verdict) => *verdict != Verdict::Inconclusive,
        FailOnCommand::NoVerdict => false,
    }
}

/// Refuses a `--fail-on` that can never fail, because there will be no verdict.
fn refuse_impossible_fail_on(
    fail_on: &[FailOnCommand],
    commands: usize,
    rounds: &RoundOptions,
) -> Result<(), ExitError> {
    if fail_on.is_empty() || !fail_on.iter().all(needs_verdict) || allow_verdict(commands, rounds.runs, rounds.sessions)
    {
        return Ok(());
    }
    let names: Vec<&str> = fail_on.iter().map(|what| what.name()).collect();
    let too_few = match (rounds.sessions, rounds.runs) {
        (1, Some(runs)) => format!("--runs {runs} is too few for a verdict; use --runs {MIN_ROUNDS} or more"),
        (sessions, _) => {
            format!("--sessions {sessions} is too few for a verdict; use --sessions {MIN_SESSIONS} or more")
        }
    };
    Err(ExitError::usage(format_args!(
        "{too_few}, or add no-verdict to --fail-on ({} alone could never fail)",
        names.join(",")
    )))
}

/// The plan of a run.
struct AbPlan {
    entries: Vec<CommandEntry>,
    kinds: Vec<FigureKind>,
    conditions: RunConditions,
    rounds: RoundPlan,
}

/// The error for two or more bare words without `--` between the commands, as in `ab sort file`: they may be commands,
/// or words of one command that isn't in quotes, and what they do as commands is something else.
fn bare_words(commands: &[OsString]) -> Option<String> {
    let is_bare = |word: &&OsString| {
        let mut bytes = word.as_bytes().iter();
        bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_-.,:=+@%".contains(byte))
    };
    let bare = commands.iter().filter(is_bare).count();
    // clap takes the first `--` away.
    if bare < 2 || std::env::args_os().any(|word| word == "--") {
        return None;
    }
    if bare < commands.len() {
        return Some("put each command in quotes: pipemark ab 'A', or -- 'A' -- 'B'".to_owned());
    }
    let words: Vec<_> = commands.iter().map(|word| word.to_string_lossy()).collect();
    Some(format!(
        "is this one command? Then write pipemark ab '{}'; if these are {} commands, pipemark ab -- {}",
        words.join(" "),
        words.len(),
        words.join(" -- ")
    ))
}

impl AbPlan {
    fn of(options: &AbOptions) -> Result<AbPlan, ExitError> {
        let AbOptions { commands, choice, around, rounds, judging, .. } = options;
        let typed = TypedCommands {
            shell: around.shell,
            commands: commands.iter().filter(|text| *text != "--").cloned().collect(),
            names: choice.name.clone(),
            parameters: choice.parameter.clone(),
            capacities: choice.capacity.clone(),
            setup: around.setup.clone(),
            prepare: around.prepare.clone(),
            conclude: around.conclude.clone(),
            cleanup: around.cleanup.clone(),
        };
        if typed.commands.is_empty() {
            return Err(ExitError::usage(
                "there is no command; write one in quotes: pipemark ab 'A', or -- 'A' -- 'B'",
            ));
        }
        if let Some(error) = bare_words(commands) {
            return Err(ExitError::usage(error));
        }
        let values = choice.parameter.iter().map(|parameter| parameter.values.len());
        // One command with several capacities counts as several.
        let commands = if let [_] = typed.commands[..] { typed.capacities.len().max(1) } else { typed.commands.len() };
        match values.fold(commands, usize::saturating_mul) {
            count if count > MAX_COMMANDS => {
                return Err(ExitError::usage(format_args!(
                    "{count} commands are too many; at most {MAX_COMMANDS} can be ranked"
                )));
            }
            count if count > MAX_WITHOUT_YES && !choice.yes => {
                return Err(ExitError::usage(format_args!(
                    "{count} commands are more than {MAX_WITHOUT_YES}; use --yes to measure all of them"
                )));
            }
            _ => {}
        }
        let entries = entries(&typed)?;
        let alone = entries.len() == 1 && options.saved.baseline.is_none();
        if alone && (!judging.fail_on.is_empty() || judging.threshold.is_some()) {
            return Err(ExitError::usage("--fail-on and --threshold need at least two commands: -- 'A' -- 'B'"));
        }
        if judging.catch.is_some() && entries.len() != 2 {
            return Err(ExitError::usage(format_args!(
                "--catch compares two commands, and there {} {}: -- 'BASE' -- 'NEW'",
                if entries.len() == 1 { "is" } else { "are" },
                entries.len()
            )));
        }
        if judging.catch == Some(0.0) {
            return Err(ExitError::usage("--catch 0% can't be decided; use --catch 1% or more"));
        }
        if options.saved.baseline.is_none() {
            refuse_impossible_fail_on(&judging.fail_on, entries.len(), rounds)?;
        }
        let kinds = kinds(&judging.figure);
        let by = place(&kinds, &judging.by)?;
        let budget = Duration::from_secs(match rounds.sessions {
            _ if judging.catch.is_some() => 180,
            1 => 60,
            _ => 120,
        });
        let scanned = !typed.parameters.is_empty() || entries.len() > 2;
        Ok(AbPlan {
            rounds: RoundPlan {
                rounds: rounds.runs,
                sessions: rounds.sessions,
                warmup: rounds.warmup,
                budget: rounds.budget.unwrap_or(budget),
                by,
                threshold: judging.threshold,
                thresholds: match &judging.thresholds {
                    Some(path) => {
                        let keys: Vec<&str> = kinds.iter().map(|kind| kind.key.as_str()).collect();
                        Thresholds::read(path, &keys).map_err(ExitError::usage)?
                    }
                    None => Thresholds::default(),
                },
                catch: judging.catch.map(|limit| CatchLimit { limit, better: kinds[by].better }),
                reference: choice.reference.as_deref().map_or(Ok(0), |wanted| reference(&entries, wanted))?,
                // The printed figures vary from run to run, and so do the outputs.
                ignore_output: around.ignore_output || !judging.figure.is_empty(),
                memory: judging.pipeline_memory || judging.by == PIPELINE_MEMORY,
                cold: around.cold.clone(),
                keep_going: scanned,
                announced: scanned && !options.output.export.quiet,
            },
            conditions: RunConditions {
                shell: around.shell,
                environment: around.env.clone(),
                cpus: around.cpus,
                input: around.input.clone(),
                ignore_failure: around.ignore_failure,
                limit: around.limit,
                copies: around.concurrent,
            },
            entries,
            kinds,
        })
    }

    /// The saved sessions of `--baseline`; `None` without it.
    fn baseline(&self, options: &AbOptions, history: &dyn SavedMeasurements) -> Result<Option<Baseline>, ExitError> {
        let Some(name) = &options.saved.baseline else { return Ok(None) };
        let saved = history.load(options.saved.db.as_deref(), name)?;
        let baseline = Baseline::of(name, saved, &pipemark_host::survey())?;
        let sessions = baseline.sessions(&self.entries);
        let enough = sessions + self.rounds.sessions as usize >= MIN_SESSIONS_TOGETHER;
        let fail_on = &options.judging.fail_on;
        if !fail_on.is_empty() && fail_on.iter().all(needs_verdict) && !enough {
            return Err(ExitError::usage(format_args!(
                "'{}' has {} of these commands, too few for a verdict with --sessions {}; use --sessions 5 for both, or \
                 add no-verdict to --fail-on",
                neutral(name),
                counted(sessions, "session"),
                self.rounds.sessions
            )));
        }
        Ok(Some(baseline))
    }

    /// The result as a document of the history.
    fn document(&self, name: &str, result: &AbResult) -> Document {
        let shell_start = result.shell_start.filter(|_| result.shell_start_taken_off).map(|start| start.median);
        let ran = self.entries.iter().zip(&result.commands).filter(|(_, command)| command.failed.is_none());
        Document {
            suite: "ab".to_owned(),
            title: result.commands.iter().map(|command| neutral(&command.command)).collect::<Vec<_>>().join("; "),
            label: Some(name.to_owned()),
            host: pipemark_host::survey(),
            commands: ran.map(|(entry, command)| saved_command(entry, command, shell_start)).collect(),
            ..Document::default()
        }
    }

    /// Measures, and returns the result and whether a `--cleanup` failed.
    fn measure(
        &self,
        options: &AbOptions,
        baseline: Option<&Baseline>,
        mut lines: Option<JsonLines>,
    ) -> Result<(AbResult, bool), ExitError> {
        let interrupt = catch_interrupts()?;
        if self.rounds.announced {
            let least = if self.rounds.rounds.is_some() { "" } else { "at least " };
            say(format_args!(
                "{}, each {least}{}",
                counted(self.entries.len(), "command"),
                counted(self.least_runs() as usize, "time")
            ));
        }
        let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let host = pipemark_host::survey();
        let before = pipemark_host::Reading::now();
        let mut progress = Progress::new(options.output.export.quiet);
        let mut on_run = |entry: &CommandEntry, run: &crate::interleaving::RunRecord| match &mut lines {
            Some(lines) => lines.line(&run_line(entry, &self.kinds, run)),
            None => Ok(()),
        };
        let mut catching = Catching::of(&self.entries, &self.kinds, &self.rounds, options.output.export.quiet);
        let mut on_session = |rounds: &Rounds, elapsed: Duration| {
            catching.as_mut().is_none_or(|catching| catching.session_ended(rounds, elapsed))
        };
        let rounds = run_rounds(
            &self.entries,
            &self.kinds,
            &self.conditions,
            &self.rounds,
            &interrupt,
            &mut progress,
            &mut Callbacks { run: &mut on_run, session: &mut on_session },
        )?;
        progress.finish();
        // Writing results to a FIFO or a terminal may block forever, so from now on an interrupt ends the program.
        if let Err(error) = interrupt.end_the_program_with(exit::INTERRUPTED) {
            say_error(format_args!("Ctrl-C has no effect from here on: {error}"));
        }
        let after = pipemark_host::Reading::now();
        let judge = Judge::of(&self.entries, &self.kinds, &self.rounds, &rounds);
        let mut commands = judge.commands();
        let mut warnings: Vec<String> =
            pipemark_host::warnings(&host, &before, &after).iter().map(ToString::to_string).collect();
        if let Some(baseline) = baseline {
            let start = judge.shell_start.subtracted().map(|[median, ..]| median);
            let criterion = |at: usize, kind: &FigureKind| judge.criterion(at, kind);
            warnings.extend(baseline.judge(&self.entries, &self.kinds, &mut commands, start, &criterion));
        }
        let info = |kind: &FigureKind| FigureInfo {
            key: kind.key.clone(),
            unit: kind.unit.name().to_owned(),
            better: kind.better,
        };
        let cleanup_failed = rounds.cleanup_failed;
        let sessions = match self.rounds.catch {
            Some(_) => {
                rounds.commands.iter().flat_map(|command| &command.runs).map(|run| run.session).max().unwrap_or(1)
            }
            None => self.rounds.sessions,
        };
        let result = AbResult {
            schema: AB_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started,
            sessions,
            shell: self.conditions.shell,
            shell_start: judge.shell_start.estimate(),
            shell_start_taken_off: judge.shell_start.subtracted().is_some(),
            concurrent: self.conditions.copies,
            cold: rounds.cold,
            by: options.judging.by.clone(),
            criterion: self.rounds.criterion(self.kinds[self.rounds.by].better),
            catch: catching.map(|catching| catching.result(&rounds, &judge, &commands)),
            baseline: options.saved.baseline.clone(),
            reference: self.entries[self.rounds.reference].label.clone(),
            figures: self.kinds.iter().map(info).collect(),
            commands,
            interrupted: rounds.interrupted,
            warnings,
        };
        Ok((result, cleanup_failed))
    }

    fn least_runs(&self) -> u32 {
        let own = self.rounds.rounds.unwrap_or(if self.rounds.sessions == 1 { MIN_ROUNDS } else { 1 });
        (own + self.rounds.warmup) * self.rounds.sessions
    }
}

/// The largest number of commands. It is limited because ranking compares each command with every other.
const MAX_COMMANDS: usize = 1024;
