//! The user's own programs in a suite: in which experiments they have rows, and which rows these are.

use pipemark_entrants::AgainstProgram;
use pipemark_model::written::Refusal;
use pipemark_model::{Filter, Job, Key, Place, Program, Settings, Verify};

use crate::plan::Plan;
use crate::plan::suite::{Suite, VolumeScale, accepts_program};

impl Suite {
    /// Adds the user's own program to the suite's main experiments, or to all experiments if the suite has no main
    /// ones. The program is added only where a run moves a fixed number of bytes, or to line filters as one of them.
    ///
    /// # Errors
    /// If there is no such experiment, two programs have the same name, or the program's command or figure doesn't fit
    /// the experiment.
    pub fn add_against(&mut self, program: &AgainstProgram) -> Result<(), String> {
        let plan = self.expand(VolumeScale::ONE).map_err(|error| error.to_string())?;
        let headline: Vec<&str> = self.headline.iter().map(|(name, _)| name.as_str()).collect();
        let any = |name: &str, is: &dyn Fn(&Job) -> bool| {
            plan.trials.iter().any(|trial| trial.experiment == name && is(&trial.job))
        };
        let has_room = |name: &str| {
            (program.takes_length() || !plan.to_measure.iter().any(|own| own == name)) && any(name, &accepts_program)
        };
        let mut added = false;
        for design in &mut self.designs {
            if (headline.is_empty() || headline.contains(&design.name.as_str())) && has_room(&design.name) {
                let is_chain = design.axes.iter().any(|axis| axis.key == Key::Length);
                if is_chain && !program.takes_length() {
                    return Err(format!(
                        "the chains of '{}' have different lengths; put {{length}}, the number of processes, into the \
                         command of --against, and {{total}}, the number of bytes",
                        design.name
                    ));
                }
                if program.figure.is_some() && any(&design.name, &|job| job.lines().is_some()) {
                    return Err(format!(
                        "'{}' compares filters of lines, whose time pipemark takes; omit --figure",
                        design.name
                    ));
                }
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
                "--against needs {}; use block-size or languages, or a suite with totals",
                self.why_not_against(&plan)
            )),
        }
    }

    /// Why no experiment of the suite has a row for a program of the user.
    fn why_not_against(&self, plan: &Plan) -> String {
        let of = |is: fn(&Job) -> bool| {
            plan.trials.iter().filter(|trial| !trial.job.is_memory_copy()).all(|trial| is(&trial.job))
        };
        let name = &self.name;
        match () {
            () if of(|job| job.is_latency()) => {
                format!("a stream of bytes, but '{name}' measures latency")
            }
            () => format!(
                "an experiment that moves a fixed number of bytes from one process to another, but the main ones of '{name}' \
                 measure for a fixed time or choose the number of bytes by measuring"
            ),
        }
    }
}

/// The user's own programs, without duplicates.
pub(super) fn programs(suite: &Suite) -> Result<Vec<AgainstProgram>, Refusal> {
    let mut all: Vec<AgainstProgram> = Vec::new();
    for design in &suite.designs {
        for (nth, program) in design.against.iter().enumerate() {
            let alike = |other: &AgainstProgram| other.name == program.name;
            let differs = all.iter().any(|other| alike(other) && other != program);
            if differs || design.against[..nth].iter().any(alike) {
                let sentence = format!("two programs are called '{}'; rename one", program.name);
                return Err(Refusal::new(sentence, design.at.clone()));
            }
            if !all.iter().any(alike) {
                all.push(program.clone());
            }
        }
    }
    Ok(all)
}

/// Adds the trials of the user's own programs, each after the last trial with the same total and block, and the same
/// length of the chain if the program takes one. Among line filters, the program is a filter with the same feed.
pub(super) fn with_against(
    ordered: Vec<(Settings, Job, VolumeScale)>,
    programs: &[AgainstProgram],
) -> Result<Vec<(Settings, Job, VolumeScale)>, String> {
    let mut all = Vec::new();
    for (at, one) in ordered.iter().enumerate() {
        all.push(one.clone());
        for program in programs.iter().filter(|_| accepts_program(&one.1)) {
            let feed = |job: &Job| job.lines().map(|lines| (lines.feed, lines.rate));
            let place = |job: &Job| {
                let length = if program.takes_length() { length(job) } else { 0 };
                (job.block(), job.volume(), length, feed(job))
            };
            if ordered[at + 1..].iter().any(|(_, job, _)| accepts_program(job) && place(job) == place(&one.1)) {
                continue;
            }
            let settings = match one.1.lines() {
                Some(_) => {
                    let name: Filter = program.name.as_str().parse().map_err(|error| format!("{error}"))?;
                    Settings { filter: Some(name), ..one.0.clone() }
                }
                None => {
                    let length = Some(length(&one.1)).filter(|length| program.takes_length() && *length > 0);
                    let mut settings = Settings { language: Some(program.name.clone()), length, ..Settings::default() };
                    (settings.program, settings.verify) = (Some(Program::Idiomatic), Some(Verify::None));
                    settings.place = Some(Place::Free);
                    settings.block = one.1.block();
                    settings.set(one.1.volume().into());
                    settings
                }
            };
            let job = Job::try_from(settings.clone()).map_err(|error| format!("{}: {error}", program.name))?;
            let is_taken = |key: Key| {
                job.value(key).is_some() && ordered.iter().any(|(_, other, _)| other.value(key) == job.value(key))
            };
            if is_taken(Key::Language) || is_taken(Key::Filter) {
                let what = if job.lines().is_some() { "filter" } else { "language" };
                return Err(format!("'{}' is already a {what} of this experiment; rename the program", program.name));
            }
            all.push((settings, job, one.2));
        }
    }
    Ok(all)
}

/// The number of stages of a chain, 0 for other jobs.
fn length(job: &Job) -> u32 {
    match job {
        Job::Chain(chain) => chain.length,
        _ => 0,
    }
}
