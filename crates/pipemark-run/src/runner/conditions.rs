//! What a run of any kind is given in addition to its job, and what it returns.

use std::time::Duration;

use pipemark_host::child::interrupt::Interrupt;
use pipemark_model::{Cpu, Sample, Warning};

/// The conditions of a run, in addition to its job.
pub struct Conditions<'a> {
    /// The CPUs of source and sink; `None` leaves the choice to the scheduler.
    pub cpus: Option<(Cpu, Cpu)>,
    /// The seed for the content and the delays.
    pub seed: u64,
    /// The time limit of the run.
    pub limit: Duration,
    /// The time between two samples of the run.
    pub interval: Duration,
    /// The user's interrupt, which ends the run.
    pub interrupt: &'a Interrupt,
}

/// The result of one run.
pub struct RunResult {
    /// The measurements. The caller sets `round` and `started_ns`.
    pub sample: Sample,
    /// Warnings about deviations from the request.
    pub notes: Vec<Warning>,
}
