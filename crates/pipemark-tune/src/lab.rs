//! Runs variants of a pipeline, and checks that their outputs are the same.

use std::time::{Duration, Instant};

use rustix::thread::CpuSet;

use pipemark_ab::conditions::RunConditions;
use pipemark_ab::hooks::run_hook;
use pipemark_ab::pipeline::{RunMode, TimedCommand};
use pipemark_host::child::{Interrupt, RunError};
use pipemark_model::{Capacity, neutral};

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
    Failed(String),
}

/// The conditions that all variants share.
pub struct Lab<'a> {
    pub conditions: RunConditions,
    pub interrupt: &'a Interrupt,
    /// Runs before each run.
    pub prepare: Option<String>,
    /// The number of runs so far.
    pub runs: u32,
}

impl Lab<'_> {
    /// Runs a variant once.
    ///
    /// # Errors
    /// If it fails, takes too long, or the user interrupts.
    pub fn run(&mut self, variant: &Variant, limit: Duration, mode: RunMode) -> Result<VariantRun, NoRun> {
        let interrupted = |error: RunError| match error {
            RunError::Interrupted => NoRun::Interrupted,
            error => NoRun::Failed(error.to_string()),
        };
        run_hook("--prepare", self.prepare.as_ref(), &self.conditions, self.interrupt).map_err(interrupted)?;
        let mut conditions = RunConditions { limit, ..self.conditions.clone() };
        conditions.cpus = variant.cpus.or(conditions.cpus);
        let command = TimedCommand { stages: variant.stages.clone(), capacity: variant.capacity };
        let mut printed = Default::default();
        self.runs += 1;
        let begun = Instant::now();
        match command.run(&conditions, mode, self.interrupt, &mut printed) {
            Ok(ran) => {
                let [kept, errors] = printed;
                let output = RunOutput { bytes: ran.output, hash: ran.hash, exit_code: ran.exit_code };
                Ok(VariantRun { elapsed: ran.elapsed, output, kept, errors })
            }
            Err(RunError::Interrupted) => Err(NoRun::Interrupted),
            Err(_) if begun.elapsed() >= limit => Err(NoRun::TooSlow),
            Err(error) => Err(NoRun::Failed(error.to_string())),
        }
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
