//! A suite before expansion to trials: predefined experiments, from a file or from flags.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use pipemark_claims::design::ClaimDesign;
use pipemark_model::written::DesignSetting;
use pipemark_model::{BadValue, Job, Nanos, Volume};

use crate::plan::design::Design;
use crate::plan::schedule::ScheduleChoices;

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
    pub file: Arc<str>,
    pub text: Arc<str>,
}

impl Suite {
    /// A suite of one experiment, made from flags.
    pub fn of_flags(verb: &str, schedule: ScheduleChoices, design: Design) -> Suite {
        let (name, title) = (verb.to_owned(), design.title.clone());
        Suite { name, title, schedule, designs: vec![design], ..Suite::default() }
    }

    /// Renames the suite's own programs whose names equal one of these languages.
    pub fn rename_clashing_programs(&mut self, languages: &[String]) {
        for program in self.designs.iter_mut().flat_map(|design| &mut design.against) {
            *program = program.clone().with_unique_name(languages);
        }
    }
}

/// Whether a run streams a fixed number of bytes from one process to another, or along a chain. The user's own programs
/// can run only such jobs.
fn streams_total(job: &Job) -> bool {
    let streams = matches!(job, Job::Stream(_) | Job::Entrant(_) | Job::Chain(_));
    streams && job.link().transfers() && matches!(job.volume(), Volume::Total(_))
}

/// Whether the user's own program can have a row beside the job: as source and sink, or as a filter of lines.
pub(super) fn accepts_program(job: &Job) -> bool {
    streams_total(job) || job.lines().is_some()
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
