//! A person's pipeline, run once: its stages started, joined by pipes of a capacity that was asked for, its output
//! counted and dropped, all of its processes ended and reaped.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use pipeio::pipe::{self, Pipe};
use pipeio_harness::usage::Usage;
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};
use rustix::process::Signal;
use sha2::{Digest, Sha256};

use pipemark_host::child::error::RunError;
use pipemark_host::child::interrupt::Interrupt;
use pipemark_host::child::{Begin, Child, ProcessGroup, foreign, how_ended, wait_for_first, wait_readable};
use pipemark_model::{Capacity, Nanos};

/// Bytes taken from the output at once.
const TAKEN: usize = 1 << 20;
/// What a shell says of a command that SIGPIPE ended: it died because nobody reads it, as `yes | head` does.
const ENDED_BY_SIGPIPE: i32 = 128 + 13;

/// What is run.
#[derive(Debug, Clone)]
pub struct TimedCommand {
    /// Commands for `sh -c`, at least one.
    pub stages: Vec<String>,
    /// The capacity of the pipes between them; `None` leaves it to the kernel.
    pub capacity: Option<Capacity>,
    /// Whether a stage may end with a code other than 0.
    pub ignore_failure: bool,
    /// By so many bytes the environment is larger, which shifts where stacks begin.
    pub padding: usize,
}

/// One run.
#[derive(Debug, Clone, Copy)]
pub struct PipelineRun {
    /// From before the first stage was started until the last has ended.
    pub elapsed: Duration,
    /// What the last stage wrote, in bytes.
    pub output: u64,
    /// SHA-256 of it, where that was asked for.
    pub hash: Option<[u8; 32]>,
    /// The capacity of the pipes between the stages, as the kernel granted it.
    pub capacity: Option<u64>,
    /// CPU time of all its processes, in user mode.
    pub user: Nanos,
    /// The same, in the kernel.
    pub system: Nanos,
}

impl TimedCommand {
    /// Runs it to its end. To be `hashed` its output is read, which costs time.
    ///
    /// # Errors
    /// When it cannot be started, a stage fails, it takes longer than `limit`, or the person interrupts. No process of
    /// it is left then, nor otherwise.
    pub fn run(&self, limit: Duration, hashed: bool, interrupt: &Interrupt) -> Result<PipelineRun, RunError> {
        let nowhere = File::options().write(true).open("/dev/null").map_err(not_run)?;
        let output = Pipe::new().map_err(not_run)?;
        // Whatever the capacity between the stages, the way out is to be no obstacle.
        let _ = pipe::set_capacity(&output.writer, TAKEN);
        let begin = Instant::now();
        let deadline = begin + limit;
        let (mut stages, capacity) = self.start(output.writer)?;
        let mut hash = hashed.then(Sha256::new);
        let bytes = drain(&output.reader, &nowhere, hash.as_mut(), deadline, interrupt)?;
        for stage in &stages {
            wait_for_first([stage], deadline, Some(interrupt))?.ok_or_else(too_long)?;
        }
        let elapsed = begin.elapsed();
        // The first is the leader of their group: what stages put into the background is killed before any is reaped.
        stages.iter_mut().try_for_each(Child::end_now).map_err(not_run)?;
        stages.iter().try_for_each(|stage| self.check_end(stage))?;
        let usage = |figure: fn(&Usage) -> u64| {
            Nanos(stages.iter().filter_map(Child::end).map(|(_, usage)| figure(&usage)).sum())
        };
        Ok(PipelineRun {
            elapsed,
            output: bytes,
            hash: hash.map(|hash| hash.finalize().into()),
            capacity,
            user: usage(|usage| usage.user_ns),
            system: usage(|usage| usage.sys_ns),
        })
    }

    fn start(&self, output: PipeWriter) -> Result<(Vec<Child>, Option<u64>), RunError> {
        let mut stages: Vec<Child> = Vec::with_capacity(self.stages.len());
        let mut input = Stdio::null();
        let mut granted = None;
        let mut output = Some(output);
        for (index, text) in self.stages.iter().enumerate() {
            let (writer, reader) = if index + 1 == self.stages.len() {
                (output.take().expect("there is one last stage"), Stdio::null())
            } else {
                let pipe = Pipe::new().map_err(not_run)?;
                granted = Some(self.resize(&pipe)?);
                (pipe.writer, Stdio::from(pipe.reader))
            };
            let mut command = foreign(None, Begin::AtOnce);
            command.args(["/bin/sh", "-c", text]).stdin(input).stdout(writer);
            if self.padding > 0 {
                command.env("PIPEMARK_PADDING", "x".repeat(self.padding));
            }
            let child =
                Child::start(text.trim(), &mut command, stages.first().map_or(ProcessGroup::Own, ProcessGroup::Of))
                    .map_err(RunError::failed(format_args!("'{text}' could not be started")))?;
            stages.push(child);
            input = reader;
        }
        Ok((stages, granted))
    }

    /// Gives a pipe the capacity that was asked for; returns what was granted.
    fn resize(&self, pipe: &Pipe) -> Result<u64, RunError> {
        let Some(Capacity::Bytes(bytes)) = self.capacity else {
            return pipe::capacity(&pipe.writer).map(|bytes| bytes as u64).map_err(not_run);
        };
        pipe::set_capacity(&pipe.writer, bytes.as_usize()).map(|bytes| bytes as u64).map_err(|error| {
            RunError::Failed(format!(
                "a pipe capacity of {bytes} was refused: {error}; lower --capacity, or see /proc/sys/fs/pipe-max-size \
                 and pipe-user-pages-soft"
            ))
        })
    }

    /// Whether a stage ended as it should.
    fn check_end(&self, stage: &Child) -> Result<(), RunError> {
        let Some((status, _)) = stage.end() else { return Ok(()) };
        let by_sigpipe = status.signal() == Some(Signal::PIPE.as_raw()) || status.code() == Some(ENDED_BY_SIGPIPE);
        let advice = match status.code() {
            _ if status.success() || by_sigpipe => return Ok(()),
            Some(127) => ": the command was not found",
            Some(_) if self.ignore_failure => return Ok(()),
            Some(_) => "; use --ignore-failure if that is meant",
            None => "",
        };
        Err(RunError::Failed(format!("'{}' {}{advice}", stage.name(), how_ended(status))))
    }
}

fn not_run(error: io::Error) -> RunError {
    RunError::failed("the pipeline could not be run")(error)
}

fn too_long() -> RunError {
    RunError::Failed("it took longer than --limit and was ended".to_owned())
}

/// Takes everything that comes and drops it, as references to pages, or hashes it.
fn drain(
    output: &PipeReader,
    nowhere: &File,
    mut hash: Option<&mut Sha256>,
    deadline: Instant,
    interrupt: &Interrupt,
) -> Result<u64, RunError> {
    let mut bytes = 0;
    let mut block = vec![0; if hash.is_some() { TAKEN } else { 0 }];
    loop {
        wait_readable(&[output.as_fd()], deadline, Some(interrupt))?.ok_or_else(too_long)?;
        let taken = match &mut hash {
            // There is something, so this does not wait.
            Some(hash) => rustix::io::read(output, &mut block).inspect(|&count| hash.update(&block[..count])),
            None => splice(output, None, nowhere, None, TAKEN, SpliceFlags::MOVE | SpliceFlags::NONBLOCK),
        };
        match taken {
            Ok(0) => return Ok(bytes),
            Ok(count) => bytes += count as u64,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(not_run(error.into())),
        }
    }
}
