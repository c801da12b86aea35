//! A suite before expansion to trials: predefined experiments, from a file or from flags.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use pipemark_claims::design::ClaimDesign;
use pipemark_entrants::AgainstProgram;
use pipemark_model::written::{DesignSetting, Refusal};
use pipemark_model::{BadValue, Job, Nanos, Volume};

use crate::plan::design::Design;
use crate::plan::refusal::PlanError;
use crate::plan::schedule::ScheduleChoices;
use crate::plan::{Plan, expand, toml_form};

/// The largest size of a suite file in bytes, more than forty times the size of the largest embedded suite.
pub const MAX_SUITE_BYTES: usize = 1 << 20;
/// The largest number of trials in a plan. At five runs of a tenth of a second per trial, they take more than an hour.
pub const MAX_TRIALS: usize = 10_000;

/// A suite as written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Suite {
    /// The name on the command line.
    pub name: String,
    /// The title, in one line.
    pub title: String,
    /// A longer description; empty for none.
    pub about: String,
    /// The schedule choices of the suite.
    pub schedule: ScheduleChoices,
    /// Settings of all experiments that don't set their own.
    pub defaults: Vec<DesignSetting>,
    /// The experiments, in order.
    pub designs: Vec<Design>,
    /// The experiments that are the suite's main result, each with the position of its name in the suite's text.
    pub(super) headline: Vec<(String, Range<usize>)>,
    /// The claims of the document that the suite reproduces.
    pub claims: Vec<ClaimDesign>,
    pub(super) source: Option<SuiteSource>,
}

/// The suite's file name and text, so that later errors can quote it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SuiteSource {
    file: Arc<str>,
    text: Arc<str>,
}

impl Suite {
    /// A suite of one experiment, made from flags.
    pub fn of_flags(verb: &str, schedule: ScheduleChoices, design: Design) -> Suite {
        let (name, title) = (verb.to_owned(), design.title.clone());
        Suite { name, title, schedule, designs: vec![design], ..Suite::default() }
    }

    /// Parses a suite. `file` is the file's name in errors.
    ///
    /// # Errors
    /// A message with file, line and column, if the text isn't a suite or a value isn't valid for its parameter.
    pub fn parse(file: &str, text: &str) -> Result<Suite, PlanError> {
        let located = |refusal| PlanError::of_suite(refusal, file, text);
        if text.len() > MAX_SUITE_BYTES {
            return Err(located(Refusal::new(
                format!("the file is larger than {} MiB, the limit for a suite", MAX_SUITE_BYTES >> 20),
                None,
            )));
        }
        let mut suite = toml_form::read(text).map_err(located)?;
        suite.source = Some(SuiteSource { file: file.into(), text: text.into() });
        Ok(suite)
    }

    /// Adds the user's own program to the suite's main experiments, or to all experiments if the suite has no main
    /// ones. The program is added only where a run moves a fixed number of bytes.
    ///
    /// # Errors
    /// If no experiment moves a fixed number of bytes, or two programs have the same name.
    pub fn add_against(&mut self, program: &AgainstProgram) -> Result<(), String> {
        let plan = self.expand(VolumeScale::ONE).map_err(|error| error.to_string())?;
        let headline: Vec<&str> = self.headline.iter().map(|(name, _)| name.as_str()).collect();
        let of_totals =
            |name: &str| plan.trials.iter().any(|trial| trial.experiment == name && streams_total(&trial.job));
        let mut added = false;
        for design in &mut self.designs {
            if (headline.is_empty() || headline.contains(&design.name.as_str())) && of_totals(&design.name) {
                if design.against.iter().any(|other| other.name == program.name) {
                    return Err(format!("two programs are called '{}'; rename one", program.name));
                }
                design.against.push(program.clone());
                added = true;
            }
        }
        match added {
            true => Ok(()),
            false => Err(format!(
                "--against needs an experiment that moves a fixed number of bytes, but '{}' measures for a fixed time; \
                 use block-size or languages, or a suite with totals",
                self.name
            )),
        }
    }

    /// Renames the suite's own programs whose names equal one of these languages.
    pub fn rename_clashing_programs(&mut self, languages: &[String]) {
        for program in self.designs.iter_mut().flat_map(|design| &mut design.against) {
            *program = program.clone().with_unique_name(languages);
        }
    }

    /// All trials, with their totals and times multiplied by `scale`.
    ///
    /// # Errors
    /// If there would be more than `MAX_TRIALS` trials, two trials of an experiment would be equal, parameters
    /// contradict each other, or a published figure belongs to no trial.
    pub fn expand(&self, scale: VolumeScale) -> Result<Plan, PlanError> {
        expand::expand(self, scale).map_err(|refusal| match &self.source {
            Some(source) => PlanError::of_suite(refusal, &source.file, &source.text),
            None => PlanError::of_flags(refusal),
        })
    }
}

/// Whether a run streams a fixed number of bytes from one process to another. The user's own programs can run only such
/// jobs.
pub(super) fn streams_total(job: &Job) -> bool {
    let streams = matches!(job, Job::Stream(_) | Job::Entrant(_));
    streams && job.link().transfers() && matches!(job.volume(), Volume::Total(_))
}

/// The factor for totals and times, from 0.000001 to 1000.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VolumeScale(f64);

impl VolumeScale {
    /// The factor 1.
    pub const ONE: VolumeScale = VolumeScale(1.0);

    /// `time` multiplied by the factor, limited to the valid range of a run's time: a millisecond to an hour.
    pub(super) fn apply_to_time(self, time: Nanos) -> Nanos {
        if self == VolumeScale::ONE {
            return time;
        }
        Nanos((time.0 as f64 * self.0).clamp(1e6, 3.6e12).round() as u64)
    }

    /// `total` bytes multiplied by the factor, in whole blocks and at least one block.
    pub(crate) fn apply(self, total: u64, block: u64) -> u64 {
        if self == VolumeScale::ONE {
            return total;
        }
        let blocks = (total as f64 * self.0 / block as f64).round();
        // The number of blocks and the product are below 2^64, because a total is at most 1 PiB and the factor is at
        // most 1000.
        (blocks.max(1.0) as u64).saturating_mul(block)
    }
}

impl FromStr for VolumeScale {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(factor) if (1e-6..=1e3).contains(&factor) => Ok(VolumeScale(factor)),
            _ => {
                Err(BadValue::new(format!("'{text}' is not a scale; use a number from 0.000001 to 1000, such as 0.1")))
            }
        }
    }
}

impl fmt::Display for VolumeScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
