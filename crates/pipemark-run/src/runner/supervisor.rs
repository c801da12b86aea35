//! The process between pipemark and a foreign program. It starts the program, captures a limited part of the output,
//! reaps all descendants, counts the resources that each used, and leaves no process behind.
//!
//! The supervisor is a separate process so that all its children belong to one run. It accepts one assignment, replies
//! once, and kills all children when the parent closes the socket.

use std::fmt::Display;
use std::fs;
use std::io::{self, PipeWriter, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pipemark_sys::reap::Reap;
use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};
use serde::{Deserialize, Serialize};

use pipemark_host::child::{self, Child, ProcessGroup, wait_readable};
use pipemark_model::{Cpu, StageStats};
use pipemark_proc::process;

use crate::runner::channel;
use crate::runner::stage::stage_stats;

/// The hidden verb that starts a supervisor.
pub const SUPERVISOR_VERB: &str = "__supervise";

/// The number of bytes captured of each output. A byte may need six bytes in JSON, and the reply must fit into one
/// message.
pub const MAX_CAPTURED: usize = 4000;

/// The time for which descendants may outlive the main process. Afterwards they are killed, and the run has failed.
const GRACE: Duration = Duration::from_secs(2);

/// The time limit for killed processes to exit. The kernel has to free their memory.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// The shortest and the longest sampling interval of memory use. The interval is short at first, because a run may be
/// short, and becomes longer.
const SAMPLING_INTERVALS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(250));

/// The program to run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProgramSpec {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// The working directory.
    pub directory: PathBuf,
    /// The directory for the program's temporary files.
    pub scratch: PathBuf,
    /// The only CPU for all processes of the program; `None` allows all.
    pub pin: Option<Cpu>,
}

/// The result of a program.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ProgramResult {
    /// Why the program could not be started; `None` if it was started.
    pub unstarted: Option<String>,
    /// The exit code; `None` if the program was killed by a signal or not started.
    pub code: Option<i32>,
    /// The signal that killed the program; `None` if it exited by itself or wasn't started.
    pub signal: Option<i32>,
    /// Number of processes that had to be killed after the main process had exited.
    pub left_behind: u32,
    /// The time from before the program was started until the last process was reaped, in nanoseconds.
    pub wall_ns: u64,
    /// The resources used by all processes of the program.
    pub used: StageStats,
    /// The peak resident memory of the largest process in bytes; `None` if unknown.
    pub max_rss: Option<u64>,
    /// The beginning of standard output.
    pub stdout: CapturedOutput,
    /// The beginning of standard error.
    pub stderr: CapturedOutput,
}

/// The beginning of an output, and its length.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CapturedOutput {
    /// At most [`MAX_CAPTURED`] bytes; invalid UTF-8 is replaced.
    pub text: String,
    /// The total number of bytes that the program wrote.
    pub bytes: u64,
}

impl CapturedOutput {
    /// Whether the whole output was captured.
    pub fn is_complete(&self) -> bool {
        self.bytes <= MAX_CAPTURED as u64
    }
}

/// The main function of a supervisor. Standard input is the socket to the parent.
pub fn main() -> u8 {
    let socket = rustix::stdio::stdin();
    let Ok(Some((spec, _))) = channel::receive::<ProgramSpec>(socket) else {
        eprintln!("pipemark: '{SUPERVISOR_VERB}' is an internal verb; see 'pipemark --help'");
        return 2;
    };
    let completion = supervise(&spec)
        .unwrap_or_else(|error| ProgramResult { unstarted: Some(error.to_string()), ..ProgramResult::default() });
    match channel::send(socket, &completion, &[]) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

fn supervise(spec: &ProgramSpec) -> io::Result<ProgramResult> {
    // This process becomes the parent of orphaned descendants, so they are counted and can't escape.
    set_child_subreaper(Some(getpid()))?;
    if let Some(cpu) = spec.pin {
        child::pin(cpu)?;
    }
    let [program, arguments @ ..] = spec.words.as_slice() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let ((stdout, their_stdout), (stderr, their_stderr)) = (capture_output()?, capture_output()?);
    let begin = Instant::now();
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&spec.directory).env("TMPDIR", &spec.scratch);
    command.stdin(Stdio::null()).stdout(their_stdout).stderr(their_stderr);
    // The program runs in this process's group, which the parent kills if this process is killed.
    let main = Child::start(program, &mut command, ProcessGroup::Inherited)
        .map_err(|error| io::Error::new(error.kind(), format!("'{program}' could not be started: {error}")))?;
    drop(command);
    let mut tree = ProcessTree {
        pidfd: main.pidfd()?,
        main,
        completion: ProgramResult::default(),
        seen_rss: None,
        // rusage reports at least this process's own peak for each child, so lower peaks are found only by sampling.
        own_rss: peak_rss("self").unwrap_or(0),
    };
    tree.wait_for_all()?;
    let mut completion = tree.completion;
    completion.wall_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    completion.max_rss = completion.max_rss.max(tree.seen_rss);
    [completion.stdout, completion.stderr] = [stdout, stderr].map(|thread| thread.join().unwrap_or_default());
    Ok(completion)
}

/// The processes of a run in progress.
struct ProcessTree {
    main: Child,
    /// Becomes readable once `main` has exited.
    pidfd: OwnedFd,
    completion: ProgramResult,
    seen_rss: Option<u64>,
    own_rss: u64,
}

impl ProcessTree {
    fn wait_for_all(&mut self) -> io::Result<()> {
        // The times at which survivors of the main process are killed, and at which waiting for killed processes ends.
        let (mut linger_until, mut kill_until) = (None, None);
        let mut pause = SAMPLING_INTERVALS.0;
        loop {
            self.reap_all()?;
            let Some(children) = self.living_children()? else { return Ok(()) };
            let now = Instant::now();
            if self.main.end().is_some() {
                linger_until.get_or_insert(now + GRACE);
            }
            match (linger_until, kill_until) {
                (_, Some(until)) if now > until => {
                    return Err(io::Error::other("its processes were killed but have not exited"));
                }
                // When a process is killed, its children become children of this process, so the next iteration finds
                // them.
                (_, Some(_)) => {
                    children.into_iter().filter_map(|pid| Pid::from_raw(pid.cast_signed())).for_each(|pid| {
                        let _ = kill_process(pid, Signal::KILL);
                    })
                }
                (Some(until), None) if now > until => {
                    self.completion.left_behind = u32::try_from(children.len()).unwrap_or(u32::MAX);
                    kill_until = Some(now + KILL_TIMEOUT);
                }
                (Some(_), None) => {}
                (None, None) => self.sample_memory(&children),
            }
            let runs = linger_until.is_none() && kill_until.is_none();
            if self.wait(if runs { pause } else { Duration::from_millis(1) })? {
                kill_until.get_or_insert(Instant::now() + KILL_TIMEOUT);
            }
            pause = (pause * 2).min(SAMPLING_INTERVALS.1);
        }
    }

    fn reap_all(&mut self) -> io::Result<()> {
        while let Reap::Ended(reaped) = self.main.reap_this_or_any()? {
            let completion = &mut self.completion;
            completion.used.add(&stage_stats(&reaped.usage));
            completion.max_rss = completion.max_rss.max(Some(reaped.max_rss).filter(|&peak| peak > self.own_rss));
        }
        if let Some((status, _)) = self.main.end() {
            (self.completion.code, self.completion.signal) = (status.code(), status.signal());
        }
        Ok(())
    }

    /// The pids of the living children of this process; `None` if there are none.
    fn living_children(&mut self) -> io::Result<Option<Vec<u32>>> {
        let children = children("self");
        // Without CONFIG_PROC_CHILDREN, only the pid of the main process is known.
        match self.main.end() {
            _ if !children.is_empty() => Ok(Some(children)),
            None => Ok(Some(vec![self.main.pid().as_raw_nonzero().get().cast_unsigned()])),
            Some(_) => match self.main.reap_this_or_any()? {
                Reap::NoChildren => Ok(None),
                _ => Ok(Some(Vec::new())),
            },
        }
    }

    /// Samples the peak memory of each descendant.
    fn sample_memory(&mut self, children: &[u32]) {
        let mut below = children.to_vec();
        // Stops when 64 processes are still to be sampled, far more than two ends and the processes of a runtime or
        // shell.
        while let Some(pid) = below.pop().filter(|_| below.len() < 64) {
            self.seen_rss = self.seen_rss.max(peak_rss(pid));
            below.extend(self::children(pid));
        }
    }

    /// Waits at most `time` for the main process to exit. Returns whether the parent has closed the socket.
    fn wait(&self, time: Duration) -> io::Result<bool> {
        let main = self.main.end().is_none().then(|| self.pidfd.as_fd());
        let fds: Vec<_> = std::iter::once(rustix::stdio::stdin()).chain(main).collect();
        Ok(wait_readable(&fds, Instant::now() + time, None).map_err(io::Error::other)? == Some(0))
    }
}

/// Reads an output as it arrives until all writers have closed it, so that no writer blocks. Returns the thread and the
/// write end.
fn capture_output() -> io::Result<(JoinHandle<CapturedOutput>, PipeWriter)> {
    let (mut reader, writer) = io::pipe()?;
    let kept = move || {
        let mut kept = Vec::new();
        let _ = reader.by_ref().take(MAX_CAPTURED as u64).read_to_end(&mut kept);
        let rest = io::copy(&mut reader, &mut io::sink()).unwrap_or(0);
        CapturedOutput { text: String::from_utf8_lossy(&kept).into_owned(), bytes: kept.len() as u64 + rest }
    };
    Ok((thread::Builder::new().spawn(kept)?, writer))
}

/// The pids of the children of all threads of a process; empty if the kernel doesn't list them.
fn children(pid: impl Display + Copy) -> Vec<u32> {
    process::children(pid, &process::threads(pid)).unwrap_or_default()
}

/// The peak resident memory of a process since its exec, in bytes; `None` if unknown.
fn peak_rss(pid: impl Display) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kib: u64 = pipemark_host::field(&status, "VmHWM")?.strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}
