//! `pipemark run`: suites, measured one after the other.

use std::collections::HashSet;

use clap::Args;

use pipemark_console::{ExitError, VerbResult, catch_interrupts};
use pipemark_entrants::{AgainstProgram, FILTERS};
use pipemark_model::counted;
use pipemark_run::plan::{EMBEDDED, Plan, Suite, VolumeScale};

use crate::cli::entrants::{self, EntrantOptions};
use crate::cli::links::{LinkOptions, prepare_links};
use crate::cli::output::OutputOptions;
use crate::cli::schedule_flags::ScheduleOptions;
use crate::cli::{measure, rehearsal, suite_file};

/// The options of `run`.
#[derive(Debug, Clone, Args)]
pub struct RunOptions {
    /// Suites by name, or suite files
    #[arg(value_name = "SUITE|FILE", default_value = "quick")]
    suites: Vec<String>,
    /// Multiply the suites' bytes and times per run by F
    ///
    /// Bytes are rounded to whole blocks.
    #[arg(long, value_name = "F", allow_hyphen_values = true)]
    scale: Option<VolumeScale>,
    /// Measure your own program too, as a row of the suite's main table; may be repeated
    ///
    /// In COMMAND, {blocks} is replaced by the number of blocks, {block} by the block size in bytes, {total} by the total
    /// in bytes, and {length} by the number of processes of a chain. In 'lines', COMMAND is a filter that makes '[spaces:
    /// 1]a b' of 'a b'. No shell is used.
    #[arg(long, value_name = "COMMAND", help_heading = "Programs of your own")]
    against: Vec<String>,
    /// Read the result from the output of --against: rate,MiB/s=REGEX or time,s=REGEX
    ///
    /// REGEX may have one group ( ), which matches the number; without a group, all of REGEX matches it. Give one
    /// FIGURE for all programs, or one for each --against, in the same order. The default is the time from the
    /// program's start to its end; the row then says so.
    #[arg(long, value_name = "FIGURE", requires = "against", help_heading = "Programs of your own")]
    figure: Vec<String>,
    /// List the trials and estimate the time; measure nothing
    #[arg(long, conflicts_with_all = ["json", "csv", "markdown"])]
    dry_run: bool,
    #[command(flatten)]
    schedule: ScheduleOptions,
    #[command(flatten)]
    entrants: EntrantOptions,
    #[command(flatten)]
    links: LinkOptions,
    /// How programs in other languages check the bytes: full (a checksum that detects lost and moved blocks) or xor (as
    /// in the published benchmark) [default: the suite's]
    #[arg(long, value_name = "LEVEL", value_parser = ["full", "xor"], help_heading = "Programs in other languages")]
    verify: Option<String>,
    /// Rebuild the programs in other languages; measure nothing
    #[arg(long, help_heading = "Programs in other languages")]
    build: bool,
    #[command(flatten)]
    output: OutputOptions,
}

/// Runs the suites.
pub fn run(options: &RunOptions) -> VerbResult {
    if options.build {
        return entrants::build(&options.entrants);
    }
    if options.dry_run {
        let sheet = rehearsal::sheet(&plans(options)?, options.schedule.sessions.unwrap_or(1));
        return Ok(options.output.export.print(&sheet)?);
    }
    // Interrupts are caught before suites are read and programs built, so that Ctrl-C ends these steps as it ends a
    // measurement.
    let interrupt = catch_interrupts()?;
    options.output.targets().check()?;
    let plans = plans(options)?;
    let quiet = options.output.export.quiet;
    let mut entrants = entrants::prepare_entrants(&plans, &options.entrants, quiet)?;
    entrants.links = prepare_links(&plans, &options.links, quiet).map_err(ExitError::usage)?;
    measure::measure(&plans, &entrants, &options.output, options.schedule.sessions, interrupt)
}

/// The programs of --against, each with its figure.
fn against(options: &RunOptions) -> Result<Vec<AgainstProgram>, ExitError> {
    let (programs, figures) = (&options.against, &options.figure);
    if figures.len() > 1 && figures.len() != programs.len() {
        let sentence = format!(
            "--figure is given {} times for {}; give one for all, or one for each",
            figures.len(),
            counted(programs.len(), "program")
        );
        return Err(ExitError::usage(sentence));
    }
    let figure = |nth: usize| figures.get(nth).or(figures.first()).map(String::as_str);
    let read = |(nth, command): (usize, &String)| AgainstProgram::parse(command, figure(nth));
    programs.iter().enumerate().map(read).collect::<Result<_, _>>().map_err(ExitError::usage)
}

/// One plan for each suite, in the order of the command line. The first plan begins with the memory-copy limit.
fn plans(options: &RunOptions) -> Result<Vec<Plan>, ExitError> {
    let mut plans = Vec::new();
    let mut suites: Vec<Suite> = options.suites.iter().map(|word| suite_file::find(word)).collect::<Result<_, _>>()?;
    for (suite, word) in suites.iter_mut().zip(&options.suites) {
        entrants::choose(suite, word, &options.entrants, options.verify.as_deref())?;
    }
    // Programs are identified by name, so a name must differ from those of all programs in these suites. It must also
    // differ from those in the embedded suites, whose results are in the history.
    let embedded = EMBEDDED.iter().filter_map(|(name, text)| Suite::parse(name, text).ok());
    let languages = embedded.chain(suites.iter().cloned()).flat_map(|suite| suite.languages());
    let languages: Vec<String> = languages.chain(FILTERS.iter().map(|(filter, _)| filter.to_string())).collect();
    let against: Vec<AgainstProgram> =
        against(options)?.into_iter().map(|program| program.with_unique_name(&languages)).collect();
    for mut suite in suites {
        suite.rename_clashing_programs(&languages);
        against.iter().try_for_each(|program| suite.add_against(program)).map_err(ExitError::usage)?;
        suite.schedule = options.schedule.choices().or(suite.schedule);
        plans.push(suite.expand(options.scale.unwrap_or(VolumeScale::ONE)).map_err(ExitError::usage)?);
    }
    // Records and baselines are found by the experiment's name, so names must be unique.
    let mut names = HashSet::new();
    for (plan, word) in plans.iter().zip(&options.suites) {
        if let Some(twice) = plan.experiments.iter().find(|experiment| !names.insert(&experiment.name)) {
            return Err(ExitError::usage(format_args!(
                "'{word}' and a suite before it both have an experiment called '{}'; run them one at a time",
                twice.name
            )));
        }
    }
    if let Some(first) = plans.first_mut() {
        first.prepend_memory_copy();
    }
    Ok(plans)
}
