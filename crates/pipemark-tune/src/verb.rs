//! `pipemark tune`: the command line. A pipeline as text is run in variants; with PIDs, names or `--live`, the pipes of
//! a running pipeline are enlarged ([`pipemark_watch::verbs::tune`]).

use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, stdin};
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::process;
use std::time::{Duration, Instant};

use clap::Args;

use pipemark_ab::conditions::RunConditions;
use pipemark_ab::shell::Shell;
use pipemark_console::verdict::{FailOnCommand, fail_on_command, threshold};
use pipemark_console::{
    Destination, ExitError, Format, FormatOption, Progress, VerbResult, catch_interrupts, destination, exit, say,
    say_error,
};
use pipemark_host::child::Interrupt;
use pipemark_model::{ByteSize, digits, parse_duration};
use pipemark_shell::Dialect;
use pipemark_watch::verbs::{sampling, tune as live};

use crate::engine::{self, NoResult, PipelineSource, TunePlan, criterion};
use crate::lab::{Lab, Variant, counted_only};
use crate::parts::PipePart;
use crate::purity::{concern, shortened};
use crate::recording::{Recording, default_limit};
use crate::result::{ExperimentResult, SCHEMA};
use crate::rewrites::{Locale, RewriteSetting};
use crate::sheet::sheet;
use crate::typed::TypedPipeline;

/// Examples at the end of the long help.
pub const EXAMPLES: &str = include_str!("tune.txt").trim_ascii_end();

/// The options of `pipemark tune`.
#[derive(Debug, Clone, Args)]
pub struct TuneOptions {
    #[command(flatten)]
    live: live::LiveTuneOptions,
    #[command(flatten)]
    experiments: ExperimentOptions,
}

/// The options for a pipeline that is run in variants.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Experiments")]
struct ExperimentOptions {
    /// End after TIME [default: 1min, or 30 times the pipeline's time if that is longer, at most 10min]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    budget: Option<Duration>,
    /// Keep at most SIZE of recorded data in memory [default: 256m, or a tenth of the memory]
    #[arg(long, value_name = "SIZE")]
    sample: Option<ByteSize>,
    /// Run COMMAND before each run, to undo what a run changes
    #[arg(long, value_name = "COMMAND")]
    prepare: Option<OsString>,
    /// Leave out the last stage
    #[arg(long)]
    without_last: bool,
    /// Run the pipeline repeatedly, whatever it changes
    #[arg(long)]
    yes: bool,
    /// Run a source such as curl in each run, instead of replaying its recorded output
    #[arg(long)]
    rerun_source: bool,
    /// Start the pipeline once, and only try larger pipes
    #[arg(long = "live")]
    is_live: bool,
    /// Shell that runs the pipeline [default: bash if it is your shell, otherwise sh]
    #[arg(long, short = 'S', value_enum)]
    shell: Option<Shell>,
    /// Smallest change that counts, such as 5%
    #[arg(long, value_name = "PERCENT", value_parser = threshold)]
    threshold: Option<f64>,
    /// Exit with the verdict's code if the fastest pipeline has this verdict; see 'pipemark help exit-codes'
    #[arg(long, value_name = "VERDICT,…", value_delimiter = ',', value_parser = fail_on_command)]
    fail_on: Vec<FailOnCommand>,
    /// Write the result as Markdown
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    markdown: Option<Destination>,
    #[command(flatten)]
    format: FormatOption,
}

/// Stores the experiments in the history.
pub type KeepExperiments<'a> = &'a dyn Fn(&ExperimentResult);

/// Runs the verb.
pub fn run(options: &TuneOptions, keep: sampling::Keep<'_>, keep_experiments: KeepExperiments<'_>) -> VerbResult {
    match typed(options) {
        Some(text) => experiment(options, &text?, keep_experiments),
        None => live::run(&options.live, keep),
    }
}

/// The pipeline to run in variants; `None` if a running pipeline, or one that runs once, is meant.
fn typed(options: &TuneOptions) -> Option<Result<String, ExitError>> {
    if options.experiments.is_live {
        return None;
    }
    let text = options.live.watched.typed_pipeline()?;
    Some(text.into_string().map_err(|text| {
        let shown = OsStr::to_string_lossy(&text).into_owned();
        ExitError::usage(format_args!("'{}' isn't text in UTF-8", pipemark_model::neutral(&shown)))
    }))
}

fn experiment(options: &TuneOptions, text: &str, keep: KeepExperiments<'_>) -> VerbResult {
    let own = &options.experiments;
    let json = options.live.watched.json.as_ref();
    for (destination, name) in [(json, "JSON"), (own.markdown.as_ref(), "Markdown")] {
        if let Some(destination) = destination {
            destination.check(name)?;
        }
    }
    let shell = own.shell.unwrap_or_else(own_shell);
    let dialect = match shell {
        Shell::Bash => Dialect::Bash,
        Shell::Sh => Dialect::Posix,
        Shell::None => return Err(ExitError::usage("tune needs a shell: --shell sh or bash")),
    };
    let mut pipeline = TypedPipeline::parse(text, dialect)?;
    if own.without_last {
        if pipeline.stages.len() < 2 {
            return Err(ExitError::usage("--without-last needs a pipeline of at least two stages"));
        }
        pipeline.stages.pop();
    }
    let is_recorded = !own.rerun_source && pipeline.stages.len() > 1 && concern(&pipeline.stages[0]).is_some();
    refuse(&pipeline, is_recorded, own)?;
    announce(own.budget);
    let interrupt = catch_interrupts()?;
    let mut progress = Progress::new(false);
    let conditions = RunConditions {
        shell,
        environment: Vec::new(),
        cpus: None,
        input: standard_input(&pipeline)?,
        ignore_failure: true,
        limit: Duration::from_secs(600),
        copies: 1,
    };
    let begun = Instant::now();
    let mut lab = Lab {
        conditions,
        interrupt: &interrupt,
        prepare: own.prepare.clone(),
        deadline: None,
        runs: 0,
        overhead: Duration::ZERO,
    };
    let program = format!("/proc/{}/exe", process::id());
    let sample = own.sample.map_or_else(default_limit, |size| size.0);
    let recorded = if is_recorded {
        let budget = own.budget.unwrap_or(Duration::from_secs(60));
        Some(record_source(&pipeline, &program, sample, budget / 3, &mut lab, &mut progress)?)
    } else {
        None
    };
    let used = recorded.as_ref().map_or(0, |recorded| recorded.data.length());
    let source =
        recorded.as_ref().map_or(PipelineSource::Typed, |recorded| PipelineSource::Recorded(recorded.command.clone()));
    let plan = TunePlan {
        pipeline,
        source,
        program,
        setting: RewriteSetting {
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            memory_limited: pipemark_host::memory_is_limited(),
            environment: pipemark_causes::environment::own(),
            locale: Locale::of(["LC_ALL", "LC_COLLATE", "LC_CTYPE", "LANG"].map(|name| std::env::var(name).ok())),
            is_installed: &is_installed,
            awk_is_gawk: is_gawk(),
        },
        budget: own.budget,
        sample: sample.saturating_sub(used),
        threshold: criterion(own.threshold),
    };
    let measured = engine::run(&plan, begun, &mut lab, &mut progress);
    progress.finish();
    let mut measured = measured.map_err(|stop| match stop {
        NoResult::Interrupted => ExitError::with(exit::INTERRUPTED, "interrupted; no result"),
        NoResult::Failed(sentence) => ExitError::failed(sentence),
        NoResult::Unsteady(difference) => ExitError::with(
            exit::NOT_VERIFIED,
            format_args!(
                "the pipeline's output differs from run to run, so no change of it can be checked: {difference}"
            ),
        ),
    })?;
    end_on_interrupt(interrupt);
    let other_shell = own.shell.is_none().then(|| shell_note(&std::env::var("SHELL").unwrap_or_default())).flatten();
    if let Some(note) = other_shell {
        measured.fastest.iter_mut().for_each(|fastest| fastest.command.clear());
        measured.notes.push(note);
    }
    if let Some(recorded) = &recorded {
        measured.notes.splice(0..0, recorded.notes.iter().cloned());
    }
    let result = ExperimentResult {
        schema: SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pipeline: plan.pipeline.text(),
        seconds: measured.seconds,
        budget: measured.budget.as_secs_f64(),
        runs: measured.runs,
        interrupted: measured.interrupted,
        time: measured.time,
        prediction: measured.prediction,
        output: measured.output,
        stages: measured.stages,
        experiments: measured.experiments,
        fastest: measured.fastest,
        guesses: measured.guesses,
        notes: measured.notes,
        untried: measured.untried,
        sufficient_budget: measured.sufficient_budget,
    };
    let written = write(options, &result);
    if options.live.watched.record {
        keep(&result);
    }
    written
}

/// Says what will happen before the first run.
fn announce(budget: Option<Duration>) {
    let limit = match budget {
        Some(budget) => format!("for at most {} s (--budget)", digits(budget.as_secs_f64())),
        None => "for up to a minute, or 30 times its own time if that is longer (--budget)".to_owned(),
    };
    say(format_args!("tune: runs the pipeline many times, {limit}; first once, to measure its time"));
}

/// Writes the results, and chooses the exit code.
fn write(options: &TuneOptions, result: &ExperimentResult) -> VerbResult {
    let own = &options.experiments;
    let sheet = sheet(result);
    let text = serde_json::to_string(result)?;
    let json = options.live.watched.json.as_ref();
    for (destination, format) in [(json, Format::Json), (own.markdown.as_ref(), Format::Markdown)] {
        if let Some(destination) = destination {
            destination.write(format.name(), format.of_sheet(&sheet, Some(&text)))?;
        }
    }
    let taken = [json, own.markdown.as_ref()].contains(&Some(&Destination::Stdout));
    if !taken {
        own.format.print(&sheet, Some(&text))?;
    }
    let verdict = result.verdict().map_or(FailOnCommand::NoVerdict, FailOnCommand::Verdict);
    match own.fail_on.contains(&verdict) {
        _ if result.interrupted => Err(ExitError::code(exit::INTERRUPTED)),
        true => Err(ExitError::code(verdict.code())),
        false => Ok(()),
    }
}

/// From now on, an interrupt ends the program, because writing results may block forever.
fn end_on_interrupt(interrupt: Interrupt) {
    if let Err(error) = interrupt.end_the_program_with(exit::INTERRUPTED) {
        say_error(format_args!("Ctrl-C has no effect from here on: {error}"));
    }
}

/// Refuses a pipeline that can't or shouldn't run again.
fn refuse(pipeline: &TypedPipeline, is_recorded: bool, options: &ExperimentOptions) -> Result<(), ExitError> {
    if pipeline.stages[0].text.trim().is_empty() {
        return Err(ExitError::usage(
            "the pipeline is empty; 'pipemark tune' without arguments lists running pipelines",
        ));
    }
    if stdin().is_terminal() && reads_standard_input(pipeline) {
        let name = &pipeline.names()[0];
        return Err(ExitError::usage(format_args!(
            "{name} waits for the terminal, so the pipeline can't run again; give {name} a file"
        )));
    }
    if options.yes || options.prepare.is_some() {
        return Ok(());
    }
    let skipped = usize::from(is_recorded);
    let concerns: Vec<String> = pipeline
        .stages
        .iter()
        .enumerate()
        .skip(skipped)
        .filter_map(|(at, stage)| Some(format!("  {} {}: {}", at + 1, shortened(&stage.text), concern(stage)?)))
        .collect();
    if concerns.is_empty() {
        return Ok(());
    }
    let last = concern(&pipeline.stages[pipeline.stages.len() - 1]).is_some()
        && concerns.len() == 1
        && pipeline.stages.len() > 1;
    let leave_out = if last { ", --without-last to leave it out" } else { "" };
    Err(ExitError::usage(format_args!(
        "tune runs a pipeline many times, and each run of this one may change something:\n{}\n\
         use --yes if that does no harm, --prepare COMMAND to undo it before each run{leave_out}, or --live to run it once",
        concerns.join("\n")
    )))
}

/// The file on standard input, if the pipeline reads it; `None` if it doesn't.
fn standard_input(pipeline: &TypedPipeline) -> Result<Option<PathBuf>, ExitError> {
    let path = PathBuf::from(format!("/proc/{}/fd/0", process::id()));
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(Some(path)),
        Ok(metadata) if metadata.file_type().is_fifo() && reads_standard_input(pipeline) => {
            let name = &pipeline.names()[0];
            Err(ExitError::usage(format_args!(
                "{name} reads standard input, a pipe that can be read only once; save its bytes to a file"
            )))
        }
        _ => Ok(None),
    }
}

/// Whether the first stage surely reads standard input.
fn reads_standard_input(pipeline: &TypedPipeline) -> bool {
    const READERS: [&str; 12] =
        ["cat", "sort", "uniq", "wc", "tr", "head", "tail", "cut", "tac", "rev", "nl", "md5sum"];
    let Some(command) = &pipeline.stages[0].command else { return false };
    let options = command.arguments().iter().all(|word| word.value.starts_with('-') && word.value != "-");
    let name = command.program();
    READERS.contains(&name)
        && command.redirections.iter().all(|one| one.descriptor != 0)
        && (options || name == "tr" || command.arguments().is_empty())
}

/// A source that ran once.
struct RecordedSource {
    data: Recording,
    /// Kept open, because the replay reads it.
    _times: Recording,
    /// The command that replays it.
    command: String,
    notes: Vec<String>,
}

/// Runs the source once, and records what it writes and when.
fn record_source(
    pipeline: &TypedPipeline,
    program: &str,
    limit: u64,
    time: Duration,
    lab: &mut Lab<'_>,
    progress: &mut Progress,
) -> Result<RecordedSource, ExitError> {
    let name = &pipeline.names()[0];
    say(format_args!(
        "tune: {name} runs once, and its output is recorded and replayed with its pauses (--rerun-source runs it each time)"
    ));
    progress.show(&format!("{name} is recorded"));
    let failed = |error: std::io::Error| ExitError::failed(format_args!("nothing can be recorded: {error}"));
    let [data, times] =
        [Recording::new("pipemark-source").map_err(failed)?, Recording::new("pipemark-times").map_err(failed)?];
    let [path, times_path] = [data.path(), times.path()];
    let tap = PipePart::Tap { data: &path, limit, times: Some((&times_path, time)) }.command(program);
    let stages = vec![pipeline.stages[0].text.clone(), tap];
    let prepare = lab.prepare.take();
    let begun = Instant::now();
    // A source that goes on is ended.
    let patience = time + Duration::from_millis(200);
    let ran = lab.run(&Variant { stages, ..Variant::default() }, patience, counted_only());
    lab.prepare = prepare;
    progress.clear();
    let length = data.length();
    match ran {
        Err(crate::lab::NoRun::Interrupted) => {
            return Err(ExitError::with(exit::INTERRUPTED, "interrupted; no result"));
        }
        Err(crate::lab::NoRun::Failed(sentence)) => return Err(ExitError::failed(sentence)),
        _ if length == 0 => {
            return Err(ExitError::failed(format_args!("{name} wrote nothing, so there is nothing to tune")));
        }
        _ => {}
    }
    let mut notes = vec![format!(
        "{name} ran once: {} were recorded and replayed with its pauses; the CPU time of {name} is not part of any run",
        ByteSize(length)
    )];
    if length >= limit {
        notes.push(format!("only the first {} of {name} were used (--sample)", ByteSize(length)));
    } else if begun.elapsed() >= time {
        notes.push(format!("only the first {:.0} s of {name} were used (--budget)", time.as_secs_f64()));
    }
    let command = PipePart::Replay { data: &path, times: Some(&times_path) }.command(program);
    Ok(RecordedSource { data, _times: times, command, notes })
}

/// bash if it is the user's shell, otherwise sh.
fn own_shell() -> Shell {
    let shell = std::env::var("SHELL").unwrap_or_default();
    if crate::typed::base(&shell) == "bash" { Shell::Bash } else { Shell::Sh }
}

/// What a user whose `$SHELL` reads commands in another way than sh should know.
fn shell_note(shell: &str) -> Option<String> {
    let name = crate::typed::base(shell);
    let is_like_sh = name.is_empty() || Dialect::of_shell(name).is_ok();
    (!is_like_sh).then(|| {
        let name = pipemark_model::neutral(name);
        format!(
            "sh ran the pipeline, and {name} may read its commands in another way, so none is printed (--shell sh prints it)"
        )
    })
}

/// Whether a program is in a directory of PATH.
fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Whether awk is GNU awk.
fn is_gawk() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|directory| directory.join("awk")).find(|path| path.is_file());
    let real = found.and_then(|path| path.canonicalize().ok());
    real.and_then(|path| Some(path.file_name()?.to_string_lossy().starts_with("gawk"))).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_of_other_shells_are_told_why_no_command_is_printed() {
        assert!(["", "/bin/sh", "/usr/bin/bash", "dash"].iter().all(|shell| shell_note(shell).is_none()));
        for shell in ["/usr/bin/zsh", "fish", "/bin/ksh"] {
            let note = shell_note(shell).unwrap();
            assert!(note.contains("--shell sh") && note.contains(crate::typed::base(shell)), "{note}");
        }
    }
}
