//! Programs in other languages: lists them, builds them, and chooses which of them a suite measures.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;

use pipemark_console::{ExitError, FormatOption, Progress, VerbResult, exit};
use pipemark_entrants::{Entrants, Rebuild, Step};
use pipemark_host::child::RunError;
use pipemark_model::{Filter, Key, Language, Program, Value, neutral};
use pipemark_run::plan::{Plan, Suite};

use crate::cli::choices::{self, LanguageChoice};

/// The suite that includes every language with a directory.
const SUITE: &str = "languages";

/// The directory of the entrants, and the languages to measure.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Programs in other languages")]
pub struct EntrantOptions {
    /// Directory with the programs [default: ./entrants]
    #[arg(long, value_name = "DIR")]
    entrants: Option<PathBuf>,
    /// Use only these languages, by directory name; 'run' also measures the baseline of the ratios
    #[arg(long, value_name = "LANGUAGE,…", value_delimiter = ',')]
    only: Vec<Language>,
}

/// The entrants in the directory, and the languages chosen from them.
fn find_entrants(options: &EntrantOptions) -> Result<(Entrants, Vec<Language>), String> {
    let entrants = Entrants::find(options.entrants.as_deref())?;
    // A third-party benchmark isn't a language, and is measured only if a suite names it.
    let languages =
        entrants.languages()?.iter().filter(|(_, project)| project.programs.values().all(|one| one.prints.is_none()));
    let all: Vec<Language> = languages.map(|(name, _)| name.clone()).collect();
    entrants.check(&options.only, [])?;
    let wanted =
        all.into_iter().filter(|language| options.only.is_empty() || options.only.contains(language)).collect();
    Ok((entrants, wanted))
}

/// Lists the languages, their tools, and the missing tools. Runs the tools, for their versions, only if the user names
/// the directory: the one in the working directory may be anybody's.
pub fn list(options: &EntrantOptions, format: &FormatOption) -> VerbResult {
    let (entrants, languages) = find_entrants(options)?;
    let listed = |language: &Language| {
        let entrant = entrants.languages().ok()?.get(language)?;
        let detected = if options.entrants.is_some() { entrant.detect() } else { entrant.locate() };
        let tools = detected.iter().flatten().map(|tool| {
            let call = tool.words.join(" ");
            if tool.version.is_empty() { call } else { format!("{call} {}", tool.version) }
        });
        let about = |program: Program| entrant.programs[program.name()].about.clone();
        Some(LanguageChoice {
            language: language.to_string(),
            name: entrant.name.clone(),
            tools: tools.collect::<Vec<_>>().join(", "),
            programs: detected.map(|_| [Program::Idiomatic, Program::Tuned].map(about)),
        })
    };
    let listed: Vec<LanguageChoice> = languages.iter().filter_map(listed).collect();
    Ok(format.print(&choices::languages(&listed, options.entrants.is_some()), None)?)
}

/// Rebuilds the languages' programs.
pub fn build(options: &EntrantOptions) -> VerbResult {
    let (mut entrants, languages) = find_entrants(options)?;
    let mut failed = false;
    let mut begun = Instant::now();
    let mut written = Ok(());
    let mut show_step = build_progress(false, languages.len());
    entrants.prepare(&languages.iter().collect(), &BTreeSet::<&Filter>::new(), Rebuild::Always, |step| {
        show_step(&step);
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
                // A language that the user names must be available.
                failed |= !options.only.is_empty();
                format!("{name}: skipped: {}", neutral(&reason))
            }
            Step::Absent(name, error) => {
                failed = true;
                format!("{name}: failed: {error}")
            }
        };
        if written.is_ok() {
            written = writeln!(io::stdout(), "{line}");
        }
    });
    if failed { Err(ExitError::code(exit::FAILED)) } else { Ok(written?) }
}

/// Restricts a suite to the chosen languages. If the user chose none, the suite `languages` measures all languages that
/// have a directory.
///
/// # Errors
/// If there is no such language, or the suite has no languages.
pub fn choose(suite: &mut Suite, word: &str, options: &EntrantOptions, verify: Option<&str>) -> Result<(), String> {
    let named = suite.languages();
    if named.is_empty() {
        return match (options.only.is_empty(), verify) {
            (true, None) => Ok(()),
            _ => Err(format!(
                "--only and --verify are for suites that run programs in other languages, and '{word}' runs none; omit them"
            )),
        };
    }
    if word == SUITE || !options.only.is_empty() {
        let (_, mut languages) = find_entrants(options)?;
        // Languages that the suite names but that have no directory are shown as skipped, unless the user chose
        // languages.
        if options.only.is_empty() {
            let named = named.into_iter().filter_map(|name| name.parse().ok());
            languages.extend(BTreeSet::from_iter(named.filter(|language| !languages.contains(language))));
        }
        suite.restrict_languages(&languages);
    }
    if let Some(level) = verify {
        suite.set_verify(Value::parse(Key::Verify, level).map_err(|error| error.to_string())?);
    }
    Ok(())
}

/// The entrants that the plans need, built if they are stale; none if the plans need none.
///
/// # Errors
/// If entrants are needed but there are none.
pub fn prepare_entrants(plans: &[Plan], options: &EntrantOptions, quiet: bool) -> Result<Entrants, String> {
    let trials = || plans.iter().flat_map(|plan| &plan.trials);
    let wanted = BTreeSet::from_iter(trials().filter_map(|trial| trial.job.entrant().map(|entrant| &entrant.language)));
    let filters = BTreeSet::from_iter(trials().filter_map(|trial| Some(&trial.job.lines()?.filter)));
    if wanted.is_empty() && filters.is_empty() {
        return match options.entrants {
            Some(_) => {
                Err("--entrants is for suites that run programs in other languages, and this suite runs none; omit it"
                    .to_owned())
            }
            None => Ok(Entrants::default()),
        };
    }
    let mut entrants = Entrants::find(options.entrants.as_deref())?;
    plans.iter().flat_map(|plan| &plan.against).for_each(|program| entrants.add_against(program.clone()));
    if !wanted.is_empty() && trials().any(|trial| trial.job.entrant().is_some_and(|entrant| entrant.verify.reads())) {
        entrants.languages()?;
    }
    entrants.check(&[], filters.iter().copied())?;
    let mut show_step = build_progress(quiet, wanted.len() + filters.len());
    entrants.prepare(&wanted, &filters, Rebuild::IfStale, |step| show_step(&step));
    Ok(entrants)
}

/// Returns a function that shows what is being built.
pub fn build_progress(quiet: bool, all: usize) -> impl FnMut(&Step<'_>) {
    let (mut progress, mut done) = (Progress::new(quiet), 0);
    move |step| match step {
        Step::Begun(name) => progress.show(&format!("{done} of {all} built · {name}")),
        Step::Ready { .. } | Step::Absent(..) => {
            done += 1;
            progress.clear();
        }
    }
}
