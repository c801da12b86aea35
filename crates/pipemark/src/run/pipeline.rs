//! A person's pipeline, run once: its stages started, joined by pipes of a capacity that was asked for, its output
//! counted and dropped, all of its processes ended and reaped.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use pipeio::pipe::{self, Pipe};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{SpliceFlags, splice};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::interrupt::Interrupt;
use super::stage;
use crate::model::{Capacity, NamedCapacity};

/// Bytes taken from the output at once.
const TAKEN: usize = 1 << 20;
/// What a shell says of a command that SIGPIPE ended: it died because nobody reads it, as `yes | head` does.
const ENDED_BY_SIGPIPE: i32 = 128 + 13;

/// What is run.
#[derive(Debug, Clone)]
pub struct Pipeline {
    /// Commands for `sh -c`, at least one.
    pub stages: Vec<String>,
    /// The capacity of the pipes between them; `None` leaves it to the kernel.
    pub capacity: Option<Capacity>,
    /// Whether a stage may end with a code other than 0.
    pub failure: Failure,
}

/// What a stage that ends with a code other than 0 means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The run went wrong.
    Counts,
    /// Nothing.
    Ignored,
}

/// One run.
#[derive(Debug, Clone, Copy)]
pub struct Ran {
    /// From before the first stage was started until the last has ended.
    pub elapsed: Duration,
    /// What the last stage wrote, in bytes.
    pub output: u64,
    /// The capacity of the pipes between the stages, as the kernel granted it.
    pub capacity: Option<u64>,
}

/// Why there is no figure.
#[derive(Debug)]
pub enum PipelineError {
    /// It went wrong; a sentence.
    Failed(String),
    /// The person asked to stop.
    Interrupted,
}

impl From<io::Error> for PipelineError {
    fn from(error: io::Error) -> Self {
        PipelineError::Failed(format!("the pipeline could not be run: {error}"))
    }
}

/// The processes of a run, all in one group. Dropping it ends the group and reaps them.
struct Stages(Vec<Child>);

impl Stages {
    /// The group is that of the first stage, which is not reaped before it is no longer needed: nobody else has its id.
    fn group(&self) -> Option<Pid> {
        self.0.first().map(Pid::from_child)
    }

    /// Ends what is left, what stages put into the background included, and reaps all.
    fn end(mut self) -> io::Result<Vec<ExitStatus>> {
        self.kill();
        std::mem::take(&mut self.0).iter_mut().map(Child::wait).collect()
    }

    fn kill(&self) {
        if let Some(group) = self.group() {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Stages {
    fn drop(&mut self) {
        self.kill();
        for child in &mut self.0 {
            let _ = child.wait();
        }
    }
}

impl Pipeline {
    /// Runs it to its end.
    ///
    /// # Errors
    /// When it cannot be started, a stage fails, it takes longer than `limit`, or the person interrupts. No process of
    /// it is left then, nor otherwise.
    pub fn run(&self, limit: Duration, interrupt: &Interrupt) -> Result<Ran, PipelineError> {
        let nowhere = File::options().write(true).open("/dev/null")?;
        let output = Pipe::new()?;
        // Whatever the capacity between the stages, the way out is to be no obstacle.
        let _ = pipe::set_capacity(&output.writer, TAKEN);
        let begin = Instant::now();
        let (stages, capacity) = self.start(output.writer)?;
        let bytes = drain(&output.reader, &nowhere, begin + limit, interrupt)?;
        for child in &stages.0 {
            let exited = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).map_err(io::Error::from)?;
            wait(&exited, begin + limit, interrupt)?;
        }
        let elapsed = begin.elapsed();
        self.judge(&stages.end()?)?;
        Ok(Ran { elapsed, output: bytes, capacity })
    }

    fn start(&self, output: OwnedFd) -> Result<(Stages, Option<u64>), PipelineError> {
        let mut stages = Stages(Vec::with_capacity(self.stages.len()));
        let mut input = Stdio::null();
        let mut granted = None;
        let mut output = Some(output);
        for (index, text) in self.stages.iter().enumerate() {
            let (writer, reader) = if index + 1 == self.stages.len() {
                (output.take().expect("there is one last stage"), Stdio::null())
            } else {
                let pipe = Pipe::new()?;
                granted = Some(self.resized(&pipe)?);
                (pipe.writer, Stdio::from(pipe.reader))
            };
            let group = stages.group().map_or(0, |group| group.as_raw_nonzero().get());
            let child = stage::command(None, stage::Begin::AtOnce)
                .args(["/bin/sh", "-c", text])
                .stdin(input)
                .stdout(writer)
                .process_group(group)
                .spawn();
            stages
                .0
                .push(child.map_err(|error| PipelineError::Failed(format!("'{text}' could not be started: {error}")))?);
            input = reader;
        }
        Ok((stages, granted))
    }

    fn resized(&self, pipe: &Pipe) -> Result<u64, PipelineError> {
        let bytes = match self.capacity {
            Some(Capacity::Bytes(size)) => size,
            None | Some(Capacity::Named(NamedCapacity::Default | NamedCapacity::Quota)) => {
                return Ok(pipe::capacity(&pipe.writer)? as u64);
            }
        };
        let granted = pipe::set_capacity(&pipe.writer, bytes.as_usize()).map_err(|error| {
            PipelineError::Failed(format!(
                "a pipe capacity of {bytes} was refused: {error}; lower --capacity, or see /proc/sys/fs/pipe-max-size \
                 and pipe-user-pages-soft"
            ))
        })?;
        Ok(granted as u64)
    }

    /// Whether all stages ended as they should.
    fn judge(&self, statuses: &[ExitStatus]) -> Result<(), PipelineError> {
        for (text, status) in self.stages.iter().zip(statuses) {
            let text = text.trim();
            let by_sigpipe = status.signal() == Some(Signal::PIPE.as_raw()) || status.code() == Some(ENDED_BY_SIGPIPE);
            let how = match (status.code(), status.signal()) {
                _ if status.success() || by_sigpipe => continue,
                (Some(127), _) => format!("'{text}' ended with code 127: the command was not found"),
                (Some(code), _) if self.failure == Failure::Counts => {
                    format!("'{text}' ended with code {code}; use --ignore-failure if that is meant")
                }
                (Some(_), _) => continue,
                (None, signal) => format!("'{text}' was ended by signal {}", signal.unwrap_or_default()),
            };
            return Err(PipelineError::Failed(how));
        }
        Ok(())
    }
}

/// Takes everything that comes and drops it, as references to pages.
fn drain(output: &OwnedFd, nowhere: &File, until: Instant, interrupt: &Interrupt) -> Result<u64, PipelineError> {
    let mut bytes = 0;
    loop {
        wait(output, until, interrupt)?;
        match splice(output, None, nowhere, None, TAKEN, SpliceFlags::MOVE | SpliceFlags::NONBLOCK) {
            Ok(0) => return Ok(bytes),
            Ok(count) => bytes += count as u64,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
    }
}

/// Waits until `fd` has something to say.
fn wait(fd: &impl AsFd, until: Instant, interrupt: &Interrupt) -> Result<(), PipelineError> {
    let mut watched = [PollFd::new(fd, PollFlags::IN), PollFd::new(interrupt, PollFlags::IN)];
    let ready = retry_on_intr(|| {
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
        poll(&mut watched, left.as_ref())
    });
    if ready.map_err(io::Error::from)? == 0 {
        return Err(PipelineError::Failed("it took longer than --limit and was ended".to_owned()));
    }
    match watched[1].revents().is_empty() {
        true => Ok(()),
        false => Err(PipelineError::Interrupted),
    }
}
