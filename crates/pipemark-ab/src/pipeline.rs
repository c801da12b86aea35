//! Runs a command once. Starts its stages, joined by pipes of the requested capacity, reads its output, ends and reaps
//! all of its processes, and adds up the resources that they used.

use std::ffi::OsString;
use std::io::PipeWriter;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::{Duration, Instant};

use pipeio::pipe::{self, Pipe};
use pipemark_shell::shown_command;
use pipemark_sys::launch::COPY_READS_AND_WRITES;
use pipemark_sys::usage::Usage;
use rustix::process::{Pid, Signal};
use sha2::Digest;

use pipemark_host::child::{
    Child, Interrupt, PreparedChild, ProcessGroup, RunError, describe_status, kill_with_descendants,
};
use pipemark_host::field;
use pipemark_model::{Capacity, Nanos, neutral};

use crate::conditions::{RunConditions, StageStart, not_run};
use crate::counted_events::HardwareCounters;
use crate::drain::{OutputStream, READ_BYTES, drain};
use crate::pipeline_memory::MemorySampler;
use crate::shell::Shell;

/// A shell's exit code for a command killed by SIGPIPE because its reader has exited, as in `yes | head`.
const ENDED_BY_SIGPIPE: i32 = 128 + 13;

/// A command to time.
#[derive(Debug, Clone)]
pub struct TimedCommand {
    /// Commands for the shell, at least one.
    pub stages: Vec<OsString>,
    /// The capacity of the pipes between the stages; `None` leaves it to the kernel.
    pub capacity: Option<Capacity>,
}

/// Options of one run.
#[derive(Debug, Clone, Copy)]
pub struct RunMode {
    /// Whether the output is read and hashed, which takes time.
    pub hashed: bool,
    /// Whether standard output and standard error are kept, to read figures from them.
    pub kept: bool,
    /// Whether the memory of all processes together is sampled.
    pub memory: bool,
    /// Bytes by which to enlarge the environment, which shifts the start of stacks.
    pub padding: usize,
}

/// The result of one run.
#[derive(Debug, Clone)]
pub struct PipelineRun {
    /// The time from before the first stage starts until the last stage has exited.
    pub elapsed: Duration,
    /// Bytes written by the last stage, summed over copies.
    pub output: u64,
    /// SHA-256 of the output; `None` if not requested.
    pub hash: Option<[u8; 32]>,
    /// The capacity of the pipes between the stages in bytes, as the kernel granted it; `None` if none was requested.
    pub capacity: Option<u64>,
    /// Resources used by all processes. The peak memory is that of the largest process.
    pub usage: Usage,
    /// Whether the peak memory contains none of pipemark's own.
    pub has_own_peak: bool,
    /// Peak memory of all processes together, in bytes; `None` if not sampled.
    pub pipeline_memory: Option<u64>,
    /// The exit code of the last stage; `None` if a signal killed it.
    pub exit_code: Option<i32>,
    /// Bytes read and written by system calls; `None` where the kernel doesn't report it.
    pub bytes: Option<(u64, u64)>,
    /// Instructions, cycles and cache misses; `None` for an event that can't be counted here.
    pub counters: [Option<f64>; 3],
}

impl PipelineRun {
    /// The elapsed time in nanoseconds.
    pub fn nanoseconds(&self) -> f64 {
        Nanos::from(self.elapsed).0 as f64
    }
}

impl TimedCommand {
    /// Runs the command to its end. `printed` receives the command's standard output, if kept, and its standard error,
    /// even if the run failed.
    ///
    /// # Errors
    /// When the command cannot be started, a stage fails, the time limit is exceeded, or the user interrupts. In any
    /// case no process of the command remains.
    pub fn run(
        &self,
        conditions: &RunConditions,
        mode: RunMode,
        interrupt: &Interrupt,
        printed: &mut [Vec<u8>; 2],
    ) -> Result<PipelineRun, RunError> {
        self.run_and_observe(conditions, mode, interrupt, printed, |_| ())
    }

    /// Like [`TimedCommand::run`], but calls `observe` with the process of the first stage when all stages have started.
    ///
    /// # Errors
    /// Those of [`TimedCommand::run`].
    pub fn run_and_observe(
        &self,
        conditions: &RunConditions,
        mode: RunMode,
        interrupt: &Interrupt,
        printed: &mut [Vec<u8>; 2],
        observe: impl FnOnce(Pid),
    ) -> Result<PipelineRun, RunError> {
        let [output, errors] = [Pipe::new().map_err(not_run)?, Pipe::new().map_err(not_run)?];
        // The output pipe is large, so that it limits no command, whatever the capacity between the stages.
        let _ = pipe::set_capacity(&output.writer, READ_BYTES);
        let mut streams = [
            OutputStream::output(output.reader, mode.hashed && conditions.copies == 1, mode.kept),
            OutputStream::errors(errors.reader, mode.kept),
        ];
        let writers = vec![output.writer, errors.writer];
        let ran = self.run_into(&mut streams, writers, conditions, mode, interrupt, observe);
        *printed = streams.each_mut().map(OutputStream::printed);
        let (ran, stages) = ran?;
        stages.iter().try_for_each(|stage| check_end(stage, conditions, &printed[1]))?;
        Ok(ran)
    }

    /// Runs the command to its end, and returns the result and the reaped stages.
    fn run_into(
        &self,
        streams: &mut [OutputStream; 2],
        writers: Vec<PipeWriter>,
        conditions: &RunConditions,
        mode: RunMode,
        interrupt: &Interrupt,
        observe: impl FnOnce(Pid),
    ) -> Result<(PipelineRun, Vec<Child>), RunError> {
        let counters = HardwareCounters::new();
        let mut begin = Instant::now();
        let deadline = begin + conditions.limit;
        let mut stages = Vec::with_capacity(self.stages.len() * conditions.copies);
        let (mut capacity, mut has_own_peak, mut before) = (None, true, Usage::default());
        for _ in 0..conditions.copies {
            let used;
            (capacity, used) = self.start(conditions, mode, &writers, &mut stages, &mut begin)?;
            has_own_peak &= used.is_some();
            before = sum(before, used.unwrap_or_default());
        }
        observe(stages[0].pid());
        let pids = || stages.iter().map(Child::pid).collect();
        let sampler = mode.memory.then(|| MemorySampler::start(pids())).transpose().map_err(not_run)?;
        // `timeout` and others put their program into a process group of its own, which outlives that of the stages.
        drain(streams, writers, &stages, deadline, interrupt).inspect_err(|_| kill_with_descendants(&stages))?;
        let elapsed = begin.elapsed();
        let pipeline_memory = sampler.and_then(MemorySampler::peak);
        let bytes =
            stages.iter().map(bytes_moved).try_fold((0, 0), |sum, (read, wrote)| Some((sum.0 + read?, sum.1 + wrote?)));
        // The first stage leads the process group: background processes of stages are killed before any stage is
        // reaped.
        stages.iter_mut().try_for_each(Child::end_now).map_err(not_run)?;
        let counters = counters.read();
        let ran = PipelineRun {
            elapsed,
            output: streams[0].bytes,
            hash: streams[0].hash.take().map(|hash| hash.finalize().into()),
            capacity,
            usage: without(
                stages.iter().filter_map(Child::end).map(|(_, usage)| usage).fold(Usage::default(), sum),
                before,
            ),
            has_own_peak,
            pipeline_memory,
            exit_code: stages.last().and_then(Child::end).and_then(|(status, _)| status.code()),
            bytes: bytes.map(|(read, wrote)| match has_own_peak {
                true => {
                    let count = stages.len() as u64;
                    let (own_reads, own_writes) = COPY_READS_AND_WRITES;
                    (read.saturating_sub(count * own_reads), wrote.saturating_sub(count * own_writes))
                }
                false => (read, wrote),
            }),
            counters,
        };
        Ok((ran, stages))
    }

    /// Starts all stages. Returns the capacity granted to the pipes between them and, if the stages have none of
    /// pipemark's memory, what their processes had used before they executed their programs. Sets `begin` to the time
    /// just before the first stage starts.
    fn start(
        &self,
        conditions: &RunConditions,
        mode: RunMode,
        writers: &[PipeWriter],
        started: &mut Vec<Child>,
        begin: &mut Instant,
    ) -> Result<(Option<u64>, Option<Usage>), RunError> {
        let mut input = Some(conditions.standard_input()?);
        let mut granted = None;
        let mut stages = Vec::with_capacity(self.stages.len());
        for (index, text) in self.stages.iter().enumerate() {
            let read = input.take().expect("each stage but the last makes the next one's input");
            let output = if index + 1 == self.stages.len() {
                writers[0].try_clone().map_err(not_run)?.into()
            } else {
                let pipe = Pipe::new().map_err(not_run)?;
                granted = Some(self.resize(&pipe)?);
                input = Some(pipe.reader.into());
                pipe.writer.into()
            };
            let mut command: Command = conditions.command(text)?;
            if mode.padding > 0 {
                command.env("PIPEMARK_PADDING", "x".repeat(mode.padding));
            }
            let name = shown_command(text.as_bytes().trim_ascii()).into_owned();
            let streams = [read, output, writers[1].try_clone().map_err(not_run)?.into()];
            stages.push(StageStart { name, command, streams });
        }
        let before = started.len();
        if let Some(prepared) = conditions.prepare(&mut stages, started) {
            if started.is_empty() {
                *begin = Instant::now();
            }
            let used = prepared.iter().map(PreparedChild::used).fold(Usage::default(), sum);
            let released: Result<Vec<Child>, _> = prepared.into_iter().map(PreparedChild::release).collect();
            if let Ok(released) = released {
                started.extend(released);
                return Ok((granted, Some(used)));
            }
        }
        debug_assert_eq!(started.len(), before, "stages that can't be released have ended");
        for StageStart { name, mut command, streams: [input, output, errors] } in stages {
            command.stdin(input).stdout(output).stderr(errors);
            let group = started.first().map_or(ProcessGroup::Own, ProcessGroup::Of);
            if started.is_empty() {
                *begin = Instant::now();
            }
            started.push(conditions.start(&name, &mut command, group)?);
        }
        Ok((granted, None))
    }

    /// Sets the requested capacity of a pipe, and returns the granted capacity.
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
}

/// Adds two usages. The peak memory is the larger of the two.
fn sum(one: Usage, other: Usage) -> Usage {
    Usage {
        user_ns: one.user_ns + other.user_ns,
        sys_ns: one.sys_ns + other.sys_ns,
        voluntary_switches: one.voluntary_switches + other.voluntary_switches,
        involuntary_switches: one.involuntary_switches + other.involuntary_switches,
        minor_faults: one.minor_faults + other.minor_faults,
        major_faults: one.major_faults + other.major_faults,
        peak_bytes: one.peak_bytes.max(other.peak_bytes),
    }
}

/// A usage without what was used before the commands were executed. The kernel knows the sum of CPU times exactly, and
/// divides it by samples, so both parts shrink alike.
fn without(usage: Usage, before: Usage) -> Usage {
    let all = usage.user_ns + usage.sys_ns;
    let own = all.saturating_sub(before.user_ns + before.sys_ns) as f64 / all.max(1) as f64;
    Usage {
        user_ns: (usage.user_ns as f64 * own).round() as u64,
        sys_ns: (usage.sys_ns as f64 * own).round() as u64,
        voluntary_switches: usage.voluntary_switches.saturating_sub(before.voluntary_switches),
        minor_faults: usage.minor_faults.saturating_sub(before.minor_faults),
        ..usage
    }
}

/// Bytes read and written by system calls of a child that has exited but was not reaped, and of the children it reaped:
/// proc(5), `io`. `None` where the kernel doesn't report them.
fn bytes_moved(child: &Child) -> (Option<u64>, Option<u64>) {
    let text = std::fs::read_to_string(format!("/proc/{}/io", child.pid())).unwrap_or_default();
    let bytes = |key: &str| field(&text, key)?.parse().ok();
    (bytes("rchar"), bytes("wchar"))
}

/// Checks that a stage ended with an accepted exit status.
fn check_end(stage: &Child, conditions: &RunConditions, printed: &[u8]) -> Result<(), RunError> {
    let Some((status, _)) = stage.end() else { return Ok(()) };
    let by_sigpipe = status.signal() == Some(Signal::PIPE.as_raw()) || status.code() == Some(ENDED_BY_SIGPIPE);
    let advice = match status.code() {
        _ if status.success() || by_sigpipe => return Ok(()),
        // The shell has usually printed the reason, which is quoted below.
        Some(127) if conditions.shell != Shell::None && printed.is_empty() => ": the command was not found",
        Some(127) if conditions.shell != Shell::None => "",
        Some(_) if conditions.ignore_failure => return Ok(()),
        Some(_) => "; use --ignore-failure to accept that",
        None => "",
    };
    let output = String::from_utf8_lossy(printed);
    let output = output.lines().last().map_or_else(String::new, |line| format!(" ({})", neutral(line)));
    Err(RunError::Failed(format!("'{}' {}{output}{advice}", neutral(stage.name()), describe_status(status))))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use pipemark_host::child::Interrupt;

    use super::*;

    /// Whether a process with this argument runs.
    fn runs(argument: &str) -> bool {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let mut lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        lines.any(|line| line.split(|&byte| byte == 0).any(|word| word == argument.as_bytes()))
    }

    #[test]
    fn nothing_outlives_a_run_at_its_limit() {
        // `timeout` puts the program into a process group of its own.
        let length = format!("61.{}", std::process::id());
        let command = TimedCommand {
            stages: vec!["echo x".into(), format!("timeout 70 sleep {length}; :").into()],
            capacity: None,
        };
        let conditions = RunConditions {
            shell: Shell::Sh,
            environment: Vec::new(),
            cpus: None,
            input: None,
            ignore_failure: true,
            limit: Duration::from_secs(600),
            copies: 1,
        };
        let mode = RunMode { hashed: false, kept: false, memory: false, padding: 0 };
        let interrupt = Interrupt::catch().unwrap();
        // The limit is reached once the program runs, however busy the machine is.
        for limit in [100, 1000, 10_000].map(Duration::from_millis) {
            let conditions = RunConditions { limit, ..conditions.clone() };
            let (mut printed, begun) = (Default::default(), Instant::now());
            let has_started = std::thread::scope(|scope| {
                let seen = scope.spawn(|| {
                    while begun.elapsed() < limit {
                        if runs(&length) {
                            return true;
                        }
                        std::thread::sleep(Duration::from_millis(5));
                    }
                    false
                });
                assert!(command.run(&conditions, mode, &interrupt, &mut printed).is_err());
                seen.join().unwrap()
            });
            if has_started {
                // A killed process may take a moment to vanish.
                while runs(&length) {
                    assert!(begun.elapsed() < Duration::from_secs(40), "it outlives the run");
                    std::thread::sleep(Duration::from_millis(10));
                }
                return;
            }
        }
        panic!("the program has not started");
    }
}
