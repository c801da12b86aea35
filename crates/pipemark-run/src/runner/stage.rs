//! The stages of a chain. They are started between the links, supervised, and ended with the run. Errors name the
//! failed stage.

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use pipemark_sys::usage::Usage;
use rustix::process::Signal;

use pipemark_host::child::error::RunError;
use pipemark_host::child::interrupt::Interrupt;
use pipemark_host::child::{Begin, Child};
use pipemark_model::{Chain, StageStats};

use crate::link::{Handle, Handles};
use crate::runner::conditions::Conditions;

/// A stage that fails within this time after an end has failed counts as the cause.
const EXIT_TIMEOUT: Duration = Duration::from_millis(200);

/// The stages of a run, ordered from the source. Dropping them kills them.
#[derive(Default)]
pub struct RunningStages {
    stages: Vec<Child>,
    /// The exit code expected of each stage.
    exit: u8,
}

impl RunningStages {
    /// An empty list of stages. Each stage added later must exit with code `exit`.
    pub fn none(exit: u8) -> RunningStages {
        RunningStages { stages: Vec::new(), exit }
    }

    /// Starts a chain that reads from `first`. `link` creates the link behind each stage. Returns the stages and the
    /// last link's read end. Successive stages alternate between the CPUs, so that each link joins two CPUs.
    ///
    /// # Errors
    /// If no process, descriptor or memory is available, or the user interrupts. A missing command shows only in the
    /// stage's exit code.
    pub fn start(
        chain: &Chain,
        first: Handle,
        conditions: &Conditions<'_>,
        mut link: impl FnMut() -> Result<Handles, RunError>,
    ) -> Result<(RunningStages, Handle), RunError> {
        let mut running = RunningStages::none(chain.exit);
        let mut last = first;
        for position in 0..chain.length as usize {
            if conditions.interrupt.requested() {
                return Err(RunError::Interrupted);
            }
            let next = link()?;
            let Handle::Fd(output) = next.source else {
                return Err(RunError::Failed("a chain needs links that have file descriptors".to_owned()));
            };
            running.add(chain, position, last, output, conditions)?;
            last = next.sink;
        }
        Ok((running, last))
    }

    /// Starts the stage at `position`, which reads from `input`.
    ///
    /// # Errors
    /// The same as [`start`](Self::start).
    pub fn add(
        &mut self,
        chain: &Chain,
        position: usize,
        input: Handle,
        output: OwnedFd,
        conditions: &Conditions<'_>,
    ) -> Result<(), RunError> {
        let Handle::Fd(input) = input else {
            return Err(RunError::Failed("a chain needs links that have file descriptors".to_owned()));
        };
        let cpu = conditions.cpus.map(|(source, sink)| if position.is_multiple_of(2) { sink } else { source });
        let stage = chain.stage.at(position);
        let name = format!("stage {} of {} ({stage})", position + 1, chain.length);
        let child = Child::start_foreign(&*name, stage.words(), (input, output), cpu, Begin::AtOnce)
            .map_err(RunError::failed(format_args!("{name} could not be started")))?;
        self.stages.push(child);
        Ok(())
    }

    /// Waits until all stages have exited, which they do at the end of their input.
    ///
    /// # Errors
    /// The first stage that failed or timed out.
    pub fn finish(&mut self, deadline: Instant, interrupt: &Interrupt) -> Result<Vec<StageStats>, RunError> {
        for stage in &mut self.stages {
            if !stage.wait(deadline, Some(interrupt))? {
                return Err(RunError::Failed(format!(
                    "{} was still running at the limit of the run, although its input had ended; raise --limit if it needs longer",
                    stage.name()
                )));
            }
        }
        match self.failed_stage(|status| status.code() != Some(i32::from(self.exit))) {
            Some(sentence) => Err(RunError::Failed(sentence)),
            None => Ok(self.stages.iter().filter_map(Child::end).map(|(_, usage)| stage_stats(&usage)).collect()),
        }
    }

    /// Explains an end's failure, given as `reason`. If a stage failed and so broke the end's link, returns the stage's
    /// failure followed by `reason`. Otherwise returns `reason` alone.
    pub fn root_cause(&mut self, reason: String) -> String {
        let until = Instant::now() + EXIT_TIMEOUT;
        // Stages before the failed one get SIGPIPE, or continue if they don't write, so SIGPIPE is not a cause.
        let is_failure = |status: ExitStatus| status.signal() != Some(Signal::PIPE.as_raw());
        while !self.stages.is_empty() {
            self.reap_ended();
            if self.failed_stage(is_failure).is_some() {
                // An exiting process closes its pipes before it can be reaped. The next stage then ends too, and may be
                // reaped first.
                thread::sleep(Duration::from_millis(5));
                self.reap_ended();
                let sentence = self.failed_stage(is_failure).unwrap_or_default();
                return format!("{sentence}; {reason}");
            }
            if Instant::now() >= until {
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
        reason
    }

    /// Reaps the stages that have ended, from last to first, because a stage may exit due to the stage before it.
    fn reap_ended(&mut self) {
        for stage in self.stages.iter_mut().rev() {
            let _ = stage.wait(Instant::now(), None);
        }
    }

    /// The first stage whose exit status satisfies `is_failure`, described in a sentence; `None` if there is none.
    fn failed_stage(&self, is_failure: impl Fn(ExitStatus) -> bool) -> Option<String> {
        let stage = self.stages.iter().find(|stage| stage.end().is_some_and(|(status, _)| is_failure(status)))?;
        Some(format!("{} {}", stage.name(), stage.describe_end(self.exit)))
    }
}

/// Converts the resources that a process used to the model's type.
pub fn stage_stats(usage: &Usage) -> StageStats {
    StageStats {
        user_ns: usage.user_ns,
        sys_ns: usage.sys_ns,
        voluntary_switches: usage.voluntary_switches,
        involuntary_switches: usage.involuntary_switches,
    }
}

impl Drop for RunningStages {
    fn drop(&mut self) {
        // All stages are killed before any is waited for. Otherwise each death would wake the neighbouring stages.
        self.stages.iter().for_each(Child::kill);
    }
}
