//! The stages of a chain: started between the links, watched, ended with the run, each named should it fail.

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use pipeio_harness::usage::Usage;
use rustix::process::Signal;

use pipemark_host::child::error::RunError;
use pipemark_host::child::interrupt::Interrupt;
use pipemark_host::child::{Begin, Child};
use pipemark_model::{Chain, StageStats};

use crate::link::{Handle, Handles};
use crate::runner::pair::Conditions;

/// How long after the failure of an end the stage behind it may take to be gone.
const MOMENT: Duration = Duration::from_millis(200);

/// The stages of a run, from the source on. Dropping them ends them.
#[derive(Default)]
pub struct RunningStages {
    stages: Vec<Child>,
    /// The code that each has to end with.
    exit: u8,
}

impl RunningStages {
    /// None yet; each will have to end with this code.
    pub fn none(exit: u8) -> RunningStages {
        RunningStages { stages: Vec::new(), exit }
    }

    /// Starts a chain that reads from `first`; `link` makes each of the links behind a stage. Returns the stages and the
    /// last link's end. The CPUs alternate, so that each link joins two of them.
    ///
    /// # Errors
    /// When there is no process, descriptor or memory to be had, or the person asks to stop meanwhile. That a command does
    /// not exist shows in its end.
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
                return Err(RunError::Failed("a chain needs links with descriptors".to_owned()));
            };
            running.add(chain, position, last, output, conditions)?;
            last = next.sink;
        }
        Ok((running, last))
    }

    /// Starts the stage at a position, which reads from `input`.
    ///
    /// # Errors
    /// As those of [`start`](Self::start).
    pub fn add(
        &mut self,
        chain: &Chain,
        position: usize,
        input: Handle,
        output: OwnedFd,
        conditions: &Conditions<'_>,
    ) -> Result<(), RunError> {
        let Handle::Fd(input) = input else {
            return Err(RunError::Failed("a chain needs links with descriptors".to_owned()));
        };
        let cpu = conditions.cpus.map(|(source, sink)| if position.is_multiple_of(2) { sink } else { source });
        let stage = chain.stage.at(position);
        let name = format!("stage {} of {} ({stage})", position + 1, chain.length);
        let child = Child::start_foreign(&*name, stage.words(), (input, output), cpu, Begin::AtOnce)
            .map_err(RunError::failed(format_args!("{name} could not be started")))?;
        self.stages.push(child);
        Ok(())
    }

    /// Waits until all have ended, as they do when their input has.
    ///
    /// # Errors
    /// The first stage that did not end well, or did not end in time.
    pub fn finish(&mut self, deadline: Instant, interrupt: &Interrupt) -> Result<Vec<StageStats>, RunError> {
        for stage in &mut self.stages {
            if !stage.wait(deadline, Some(interrupt))? {
                return Err(RunError::Failed(format!(
                    "{} had not ended when the run reached its limit, though its input had; raise --limit if it only needs longer",
                    stage.name()
                )));
            }
        }
        match self.culprit(|status| status.code() != Some(i32::from(self.exit))) {
            Some(sentence) => Err(RunError::Failed(sentence)),
            None => Ok(self.stages.iter().filter_map(Child::end).map(|(_, usage)| used(&usage)).collect()),
        }
    }

    /// An end that fails, because its link broke, may have a stage behind it that did so first: then that is the reason.
    pub fn reason_behind(&mut self, reason: String) -> String {
        let until = Instant::now() + MOMENT;
        while !self.stages.is_empty() {
            // From the last to the first: a stage may have ended because the one before it did.
            for stage in self.stages.iter_mut().rev() {
                let _ = stage.wait(Instant::now(), None);
            }
            // Those before it die of the pipe that it broke, or go on if they do not write.
            if let Some(sentence) = self.culprit(|status| status.signal() != Some(Signal::PIPE.as_raw())) {
                return format!("{sentence}; {reason}");
            }
            if Instant::now() >= until {
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
        reason
    }

    /// The first stage that ended in such a way, in a sentence.
    fn culprit(&self, guilty: impl Fn(ExitStatus) -> bool) -> Option<String> {
        let stage = self.stages.iter().find(|stage| stage.end().is_some_and(|(status, _)| guilty(status)))?;
        Some(format!("{} {}", stage.name(), stage.how_it_ended(self.exit)))
    }
}

/// What a process used, in the words of the model.
pub fn used(usage: &Usage) -> StageStats {
    StageStats {
        user_ns: usage.user_ns,
        sys_ns: usage.sys_ns,
        voluntary_switches: usage.voluntary_switches,
        involuntary_switches: usage.involuntary_switches,
    }
}

impl Drop for RunningStages {
    fn drop(&mut self) {
        // All at once, and only then wait: each that dies would make its neighbours work once more.
        self.stages.iter().for_each(Child::kill);
    }
}
