//! Runs variants of a pipeline, and checks that their outputs are the same.

use std::ffi::OsString;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::thread::CpuSet;

use pipemark_ab::conditions::RunConditions;
use pipemark_ab::hooks::run_hook;
use pipemark_ab::pipeline::{RunMode, TimedCommand};
use pipemark_causes::PipelineEvidence;
use pipemark_host::child::{Interrupt, RunError};
use pipemark_model::{Capacity, neutral};
use pipemark_watch::observation::observe;

/// What to run.
#[derive(Debug, Clone, Default)]
pub struct Variant {
    /// The commands for the shell: the whole pipeline, or its stages.
    pub stages: Vec<String>,
    /// The capacity of the pipes between the stages.
    pub capacity: Option<Capacity>,
    /// The CPUs to run on; `None` for those of the pipeline.
    pub cpus: Option<CpuSet>,
}

impl Variant {
    /// A whole pipeline, run by one shell.
    pub fn whole(text: String) -> Variant {
        Variant { stages: vec![text], ..Variant::default() }
    }
}

/// The output of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOutput {
    pub bytes: u64,
    /// `None` if the output wasn't hashed.
    pub hash: Option<[u8; 32]>,
    pub exit_code: Option<i32>,
}

impl RunOutput {
    /// Whether two outputs are the same, as far as both are known.
    pub fn is_same(&self, other: &RunOutput) -> bool {
        self.exit_code == other.exit_code && self.has_same_content(other)
    }

    /// The same, whatever the exit codes.
    pub fn has_same_content(&self, other: &RunOutput) -> bool {
        let differs = self.hash.zip(other.hash).is_some_and(|(one, other)| one != other);
        self.bytes == other.bytes && !differs
    }
}

/// A run that ended.
#[derive(Debug, Clone)]
pub struct VariantRun {
    pub elapsed: Duration,
    pub output: RunOutput,
    /// The output, if it was kept; the middle of a long one is missing.
    pub kept: Vec<u8>,
    /// What the run wrote to standard error.
    pub errors: Vec<u8>,
}

/// How a run ended without a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoRun {
    Interrupted,
    /// It took longer than the limit.
    TooSlow,
    /// The time of all runs is over.
    OutOfTime,
    Failed(String),
}

/// The conditions that all variants share.
pub struct Lab<'a> {
    pub conditions: RunConditions,
    pub interrupt: &'a Interrupt,
    /// Runs before each run.
    pub prepare: Option<OsString>,
    /// When the last run must have ended.
    pub deadline: Option<Instant>,
    /// The number of runs so far.
    pub runs: u32,
    /// The time around the measured parts of all runs: commands before runs, and ending processes.
    pub overhead: Duration,
}

impl Lab<'_> {
    /// Runs a variant once.
    ///
    /// # Errors
    /// If it fails, takes longer than `limit`, isn't done at the deadline, or the user interrupts.
    pub fn run(&mut self, variant: &Variant, limit: Duration, mode: RunMode) -> Result<VariantRun, NoRun> {
        self.run_and_observe(variant, limit, mode, |_| ())
    }

    /// Like [`Lab::run`], but also samples what the processes do.
    ///
    /// # Errors
    /// Those of [`Lab::run`].
    pub fn watch(
        &mut self,
        variant: &Variant,
        limit: Duration,
        mode: RunMode,
    ) -> Result<(VariantRun, Option<PipelineEvidence>), NoRun> {
        let (start, started) = channel::<u32>();
        let (end, ended) = channel::<()>();
        let wait = move |until: Instant| {
            let left = until.saturating_duration_since(Instant::now());
            ended.recv_timeout(left) != Err(RecvTimeoutError::Timeout)
        };
        thread::scope(|scope| {
            let watching = thread::Builder::new()
                .spawn_scoped(scope, move || Some(observe(started.recv().ok()?, wait)))
                .map_err(|error| NoRun::Failed(error.to_string()))?;
            let ran = self.run_and_observe(variant, limit, mode, move |pid| {
                _ = start.send(pid.as_raw_nonzero().get().cast_unsigned());
            });
            drop(end);
            let evidence = watching.join().ok().flatten();
            Ok((ran?, evidence))
        })
    }

    fn run_and_observe(
        &mut self,
        variant: &Variant,
        limit: Duration,
        mode: RunMode,
        observe: impl FnOnce(Pid),
    ) -> Result<VariantRun, NoRun> {
        let begun = Instant::now();
        let left = self.deadline.map_or(limit, |deadline| deadline.saturating_duration_since(begun));
        if left.is_zero() {
            return Err(NoRun::OutOfTime);
        }
        let mut conditions = RunConditions { limit: limit.min(left), ..self.conditions.clone() };
        conditions.cpus = variant.cpus.or(conditions.cpus);
        let ended = |error: RunError| match error {
            RunError::Interrupted => NoRun::Interrupted,
            _ if begun.elapsed() >= left => NoRun::OutOfTime,
            _ if begun.elapsed() >= limit => NoRun::TooSlow,
            error => NoRun::Failed(error.to_string()),
        };
        run_hook("--prepare", self.prepare.as_ref(), &conditions, self.interrupt).map_err(ended)?;
        conditions.limit = conditions.limit.saturating_sub(begun.elapsed());
        let command =
            TimedCommand { stages: variant.stages.iter().map(OsString::from).collect(), capacity: variant.capacity };
        let mut printed = Default::default();
        self.runs += 1;
        let ran = command.run_and_observe(&conditions, mode, self.interrupt, &mut printed, observe).map_err(ended)?;
        self.overhead += begun.elapsed().saturating_sub(ran.elapsed);
        let [kept, errors] = printed;
        let output = RunOutput { bytes: ran.output, hash: ran.hash, exit_code: ran.exit_code };
        Ok(VariantRun { elapsed: ran.elapsed, output, kept, errors })
    }

    /// The time around the measured part of a run, in seconds.
    pub fn overhead_of_run(&self) -> f64 {
        self.overhead.as_secs_f64() / f64::from(self.runs.max(1))
    }
}

/// A mode in which the output is hashed, and kept if `kept`.
pub fn hashed(kept: bool) -> RunMode {
    RunMode { hashed: true, kept, memory: false, padding: 0 }
}

/// A mode in which the output is only counted.
pub fn counted_only() -> RunMode {
    RunMode { hashed: false, kept: false, memory: false, padding: 0 }
}

/// Where two outputs of the same command differ, as a clause.
pub fn difference(one: &VariantRun, other: &VariantRun) -> String {
    if one.output.exit_code != other.output.exit_code {
        let code = |code: Option<i32>| code.map_or_else(|| "a signal".to_owned(), |code| code.to_string());
        return format!("exit codes {} and {}", code(one.output.exit_code), code(other.output.exit_code));
    }
    let at = one.kept.iter().zip(&other.kept).position(|(one, other)| one != other);
    let at = at.or_else(|| (one.kept.len() != other.kept.len()).then(|| one.kept.len().min(other.kept.len())));
    let sizes = if one.output.bytes == other.output.bytes {
        String::new()
    } else {
        format!("{} and {} bytes", one.output.bytes, other.output.bytes)
    };
    let Some(at) = at else { return sizes };
    let line = |bytes: &[u8]| {
        let begin =
            bytes[..at.min(bytes.len())].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let text = String::from_utf8_lossy(&bytes[begin..bytes.len().min(begin + 40)]).into_owned();
        neutral(text.lines().next().unwrap_or_default())
    };
    let number = one.kept[..at.min(one.kept.len())].iter().filter(|byte| **byte == b'\n').count() + 1;
    let first = format!(
        "first difference at byte {}, in line {number}: '{}' and '{}'",
        at + 1,
        line(&one.kept),
        line(&other.kept)
    );
    [sizes, first].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}
