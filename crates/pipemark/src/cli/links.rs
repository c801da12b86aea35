//! Links by outside programs: finds and builds those that plans need.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use pipemark_console::{ExitError, VerbResult};
use pipemark_entrants::{LinkFile, Links, Project, Rebuild, contract};
use pipemark_model::OutsideLink;
use pipemark_run::plan::Plan;

use crate::cli::choices::ListedChoice;
use crate::cli::entrants::build_progress;

/// The directory of the links.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Links by other programs")]
pub struct LinkOptions {
    /// Directory with links by other programs [default: ./links]
    #[arg(long, value_name = "DIR")]
    pub links: Option<PathBuf>,
}

/// Writes the reference code for links by other programs to `directory`.
///
/// # Errors
/// If it can't be written.
pub fn write_contract(directory: &Path) -> VerbResult {
    let failed = |error| ExitError::failed(format!("{} can't be written: {error}", directory.display()));
    contract::write(directory).map_err(failed)?;
    contract::FILES.iter().try_for_each(|(name, _)| writeln!(io::stdout(), "{}", directory.join(name).display()))?;
    Ok(())
}

/// The links of the directory, for `pipemark list links`. Runs their tools, for the versions, only if the user names the
/// directory: the one in the working directory may be anybody's.
///
/// # Errors
/// If the directory can't be used, or a description is wrong.
pub fn listed(options: &LinkOptions) -> Result<Vec<ListedChoice>, String> {
    let links = Links::find(options.links.as_deref())?;
    let choice = |(name, file, project): (&str, &LinkFile, &Project)| ListedChoice {
        name: name.to_owned(),
        about: file.about.clone(),
        missing: if options.links.is_some() { project.detect() } else { project.locate() }.err(),
    };
    Ok(links.iter().map(choice).collect())
}

/// The suite of which each link that isn't here is skipped.
const SUITE: &str = "ipc-libraries";

/// The outside links that the plans need, built if they are stale; none if the plans need none.
///
/// # Errors
/// If there is no such link, or it has no such option.
pub fn prepare_links(plans: &[Plan], options: &LinkOptions, quiet: bool) -> Result<Links, String> {
    let jobs = plans.iter().flat_map(|plan| &plan.trials).map(|trial| &trial.job);
    let wanted: BTreeSet<OutsideLink> = jobs.filter_map(|job| job.link().outside()).collect();
    if wanted.is_empty() {
        return match options.links {
            Some(_) => Err("--links is for links by other programs, and none is measured; omit it".to_owned()),
            None => Ok(Links::default()),
        };
    }
    let mut links = Links::find(options.links.as_deref())?;
    let strict = plans.iter().filter(|plan| plan.suite != SUITE).flat_map(|plan| &plan.trials);
    links.check(&strict.filter_map(|trial| trial.job.link().outside()).collect::<BTreeSet<OutsideLink>>())?;
    let mut show_step = build_progress(quiet, wanted.len());
    links.prepare(&wanted, Rebuild::IfStale, |step| show_step(&step));
    Ok(links)
}
