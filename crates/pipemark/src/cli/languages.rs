//! `pipemark languages`: which entrants there are, building them, and running them against each other.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, Subcommand};

use pipemark_console::{Ending, FormatOption, Progress, Stop, exit};
use pipemark_entrants::{Entrants, Rebuild, Step};
use pipemark_host::child::RunError;
use pipemark_model::{Filter, Key, Language, Program, Value, neutral};
use pipemark_run::plan::{Plan, VolumeScale};

use crate::cli::choices::{self, LanguageChoice};
use crate::cli::output::OutputOptions;
use crate::cli::schedule::ScheduleOptions;
use crate::cli::{measure, suite_file};

/// The name of the suite that `languages run` runs.
const SUITE: &str = "languages";

/// Where entrants are.
#[derive(Debug, Clone, Default, Args)]
pub struct EntrantOptions {
    /// The folder of the languages' programs [default: entrants, in the working directory]
    #[arg(long, value_name = "DIR")]
    entrants: Option<PathBuf>,
}

/// What `languages` takes.
#[derive(Debug, Clone, Args)]
pub struct LanguagesOptions {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Show the languages, their tools' versions, and what is missing
    List(LanguagesListOptions),
    /// Build their programs
    Build(Chosen),
    /// Measure them: the suite 'languages'
    #[command(after_long_help = examples!("languages"))]
    Run(Box<LanguagesRunOptions>),
}

/// Which languages.
#[derive(Debug, Clone, Args)]
struct Chosen {
    /// Only these languages, by their folders' names; 'run' adds the one that ratios are taken to
    #[arg(long, value_name = "LANGUAGE,…", value_delimiter = ',')]
    only: Vec<Language>,
    #[command(flatten)]
    entrants: EntrantOptions,
}

#[derive(Debug, Clone, Args)]
struct LanguagesListOptions {
    #[command(flatten)]
    chosen: Chosen,
    #[command(flatten)]
    format: FormatOption,
}

#[derive(Debug, Clone, Args)]
struct LanguagesRunOptions {
    #[command(flatten)]
    chosen: Chosen,
    /// Multiply the totals by F: 0.1 streams 1 GiB instead of 10
    #[arg(long, value_name = "F")]
    scale: Option<VolumeScale>,
    /// What is checked: full is a checksum that sees lost and moved blocks, xor the document's XOR over 0 to 255
    #[arg(long, value_name = "LEVEL", value_parser = ["full", "xor"], default_value = "full")]
    verify: String,
    #[command(flatten)]
    schedule: ScheduleOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// Does what was asked for.
pub fn run(options: &LanguagesOptions) -> Ending {
    match &options.action {
        Action::List(options) => list(options),
        Action::Build(options) => build(options),
        Action::Run(options) => measured(options),
    }
}

/// The entrants, and those of them that were chosen.
fn found(chosen: &Chosen) -> Result<(Entrants, Vec<Language>), String> {
    let entrants = Entrants::find(chosen.entrants.entrants.as_deref())?;
    // A benchmark of others is no language, and takes part where a suite names it.
    let languages =
        entrants.languages()?.iter().filter(|(_, own)| own.programs.values().all(|one| one.prints.is_none()));
    let all: Vec<Language> = languages.map(|(name, _)| name.clone()).collect();
    entrants.check(&chosen.only, [])?;
    let wanted = all.into_iter().filter(|language| chosen.only.is_empty() || chosen.only.contains(language)).collect();
    Ok((entrants, wanted))
}

fn list(options: &LanguagesListOptions) -> Ending {
    let (entrants, languages) = found(&options.chosen)?;
    let listed = |language: &Language| {
        let entrant = entrants.languages().ok()?.get(language)?;
        let detected = entrant.detect();
        let tools = detected.iter().flatten().map(|tool| format!("{} {}", tool.words.join(" "), tool.version));
        let about = |program: Program| entrant.programs[program.name()].about.clone();
        Some(LanguageChoice {
            language: language.to_string(),
            name: entrant.name.clone(),
            tools: tools.collect::<Vec<_>>().join(", "),
            programs: detected.map(|_| [Program::Idiomatic, Program::Tuned].map(about)),
        })
    };
    let listed: Vec<LanguageChoice> = languages.iter().filter_map(listed).collect();
    Ok(options.format.print(&choices::languages(&listed), None)?)
}

fn build(chosen: &Chosen) -> Ending {
    let (mut entrants, languages) = found(chosen)?;
    let mut failed = false;
    let mut begun = Instant::now();
    let mut told = Ok(());
    let mut waiting = waiting(false, languages.len());
    entrants.prepare(&languages.iter().collect(), &BTreeSet::<&Filter>::new(), Rebuild::Always, |step| {
        waiting(&step);
        let line = match step {
            Step::Begun(_) => {
                begun = Instant::now();
                return;
            }
            Step::Ready { name, built: false } => format!("{name}: nothing to build"),
            Step::Ready { name, built: true } => {
                format!("{name}: built in {:.1} s", begun.elapsed().as_secs_f64())
            }
            Step::Absent(name, RunError::NotHere(reason)) => {
                // Who names a language wants it.
                failed |= !chosen.only.is_empty();
                format!("{name}: skipped: {}", neutral(&reason))
            }
            Step::Absent(name, error) => {
                failed = true;
                format!("{name}: failed: {error}")
            }
        };
        if told.is_ok() {
            told = writeln!(io::stdout(), "{line}");
        }
    });
    if failed { Err(Stop::code(exit::FAILED)) } else { Ok(told?) }
}

fn measured(options: &LanguagesRunOptions) -> Ending {
    options.output.targets().check()?;
    let (_, mut languages) = found(&options.chosen)?;
    let mut suite = suite_file::find(SUITE)?;
    // Those that the suite names and that have no folder are shown as skipped, unless others were asked for.
    if options.chosen.only.is_empty() {
        let named = suite.languages().into_iter().filter_map(|name| name.parse().ok());
        languages.extend(BTreeSet::from_iter(named.filter(|language| !languages.contains(language))));
    }
    suite.of_languages(&languages);
    suite.verify(Value::parse(Key::Verify, &options.verify).map_err(|error| error.to_string())?);
    suite.schedule = options.schedule.choices().or(suite.schedule);
    let mut plan = suite.expand(options.scale.unwrap_or(VolumeScale::ONE)).map_err(Stop::usage)?;
    plan.precede_with_memory_copy();
    let plans = [plan];
    let entrants = prepared(&plans, &options.chosen.entrants, options.output.export.quiet)?;
    measure::measure(&plans, &entrants, &options.output, options.schedule.sessions)
}

/// The entrants that the plans want, built where that is due; none where they want none.
///
/// # Errors
/// When there are no entrants though some are wanted.
pub fn prepared(plans: &[Plan], options: &EntrantOptions, quiet: bool) -> Result<Entrants, String> {
    let trials = || plans.iter().flat_map(|plan| &plan.trials);
    let wanted = BTreeSet::from_iter(trials().filter_map(|trial| trial.job.entrant().map(|entrant| &entrant.language)));
    let filters = BTreeSet::from_iter(trials().filter_map(|trial| Some(&trial.job.lines()?.filter)));
    if wanted.is_empty() && filters.is_empty() {
        return match options.entrants {
            Some(_) => Err("--entrants has no place here: no trial of this suite is of an entrant".to_owned()),
            None => Ok(Entrants::default()),
        };
    }
    let mut entrants = Entrants::find(options.entrants.as_deref())?;
    if !wanted.is_empty() && trials().any(|trial| trial.job.entrant().is_some_and(|own| own.verify.looks())) {
        entrants.languages()?;
    }
    entrants.check(&[], filters.iter().copied())?;
    let mut waiting = waiting(quiet, wanted.len() + filters.len());
    entrants.prepare(&wanted, &filters, Rebuild::IfStale, |step| waiting(&step));
    Ok(entrants)
}

/// Tells whoever waits what is being built.
fn waiting(quiet: bool, all: usize) -> impl FnMut(&Step<'_>) {
    let (mut progress, mut done) = (Progress::new(quiet), 0);
    move |step| match step {
        Step::Begun(name) => progress.show(&format!("{done} of {all} built · {name}")),
        Step::Ready { .. } | Step::Absent(..) => {
            done += 1;
            progress.clear();
        }
    }
}
