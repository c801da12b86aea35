//! A suite: predefined experiments, in a file or as flags, before they are expanded to trials.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use pipemark_entrants::AgainstProgram;
use pipemark_model::{BadValue, Job, Nanos, Volume};

use crate::plan::claims::ClaimDesign;
use crate::plan::design::{Design, Setting};
use crate::plan::refusal::{PlanError, Refusal};
use crate::plan::schedule::ScheduleChoices;
use crate::plan::{Plan, expand, toml_form};

/// The largest suite file, in bytes: more than forty times the largest embedded one.
pub const MAX_SUITE_BYTES: usize = 1 << 20;
/// The largest number of trials in a plan: at five runs of a tenth of a second they take more than an hour.
pub const MAX_TRIALS: usize = 10_000;

/// A suite as written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Suite {
    /// Its name on the command line.
    pub name: String,
    /// The title, in one line.
    pub title: String,
    /// A longer description; may be empty.
    pub about: String,
    /// Its choices for the schedule.
    pub schedule: ScheduleChoices,
    /// Settings of all experiments that don't set their own.
    pub defaults: Vec<Setting>,
    /// The experiments, in order.
    pub designs: Vec<Design>,
    /// The experiments that are the suite's main result, and the place of each name.
    pub(super) headline: Vec<(String, Range<usize>)>,
    /// The claims of the document that the suite repeats.
    pub claims: Vec<ClaimDesign>,
    pub(super) source: Option<SuiteSource>,
}

/// The file and its text, so that later errors can point into it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SuiteSource {
    file: Arc<str>,
    text: Arc<str>,
}

impl Suite {
    /// A suite of one experiment, made of flags.
    pub fn of_flags(verb: &str, schedule: ScheduleChoices, design: Design) -> Suite {
        let (name, title) = (verb.to_owned(), design.title.clone());
        Suite { name, title, schedule, designs: vec![design], ..Suite::default() }
    }

    /// Reads a suite. `file` is its name in errors.
    ///
    /// # Errors
    /// With file, line and column, when the text isn't a suite or a value isn't valid for its parameter.
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

    /// Adds the user's own program to the suite's main experiments, or to all if it names none,
    /// where they stream a number of bytes.
    ///
    /// # Errors
    /// When no experiment streams a number of bytes, or two programs have the same name.
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
                "--against needs an experiment with a number of bytes, and '{}' measures for a time; use block-size or \
                 languages, or a suite with totals",
                self.name
            )),
        }
    }

    /// Renames its own programs that are named like one of these languages.
    pub fn name_programs_apart(&mut self, languages: &[String]) {
        for program in self.designs.iter_mut().flat_map(|design| &mut design.against) {
            *program = program.clone().named_apart(languages);
        }
    }

    /// All trials, with their totals and times multiplied by `scale`.
    ///
    /// # Errors
    /// When there would be more than `MAX_TRIALS`, two trials of an experiment would be the same, parameters contradict
    /// each other or a published figure belongs to no trial.
    pub fn expand(&self, scale: VolumeScale) -> Result<Plan, PlanError> {
        expand::expand(self, scale).map_err(|refusal| match &self.source {
            Some(source) => PlanError::of_suite(refusal, &source.file, &source.text),
            None => PlanError::of_flags(refusal),
        })
    }
}

/// Whether a run moves a number of bytes from one process to another, as the user's own program can do too.
pub(super) fn streams_total(job: &Job) -> bool {
    let streams = matches!(job, Job::Stream(_) | Job::Entrant(_));
    streams && job.link().transfers() && matches!(job.volume(), Volume::Total(_))
}

/// Factor for totals and times: from a millionth to a thousand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VolumeScale(f64);

impl VolumeScale {
    /// Totals and times as written.
    pub const ONE: VolumeScale = VolumeScale(1.0);

    /// `time` scaled, from a millisecond to an hour, the range of a run's time.
    pub(super) fn apply_to_time(self, time: Nanos) -> Nanos {
        if self == VolumeScale::ONE {
            return time;
        }
        Nanos((time.0 as f64 * self.0).clamp(1e6, 3.6e12).round() as u64)
    }

    /// `total` scaled, in whole blocks and at least one.
    pub(crate) fn apply(self, total: u64, block: u64) -> u64 {
        if self == VolumeScale::ONE {
            return total;
        }
        let blocks = (total as f64 * self.0 / block as f64).round();
        // Both are far below 2^64: a total is at most 1 PiB.
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
