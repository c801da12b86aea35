//! The process between pipemark and a foreign program: starts it, keeps what it prints within bounds, collects every
//! process that comes of it with what each had used, and leaves none of them behind.
//!
//! It is a process of its own because all children of such a process belong to one run. It takes one order, answers
//! once, and kills all when the parent stops listening.

use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ChildStderr, ChildStdout, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use pipeio_harness::reap::{Reap, Reaped, reap};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, set_child_subreaper};
use serde::{Deserialize, Serialize};

use super::{end, job};
use crate::model::Cpu;

/// The word that makes this program a supervisor.
pub const SUPERVISOR_VERB: &str = "__supervise";

/// As much of each output as is kept. Written as JSON a byte may take six, and the answer has to fit a message.
const KEPT: usize = 4000;

/// How long processes may outlive the one that was started, before they are killed and it has failed.
const GRACE: Duration = Duration::from_secs(2);

/// How long killed processes may take to end: the kernel has to free their memory.
const DEATH: Duration = Duration::from_secs(10);

/// How often memory is looked at: soon at first, since a run may be short, and seldom later.
const LOOKS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(250));

/// What to run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// The command.
    pub words: Vec<String>,
    /// Where.
    pub folder: PathBuf,
    /// The one CPU for all of its processes, or all that are allowed.
    pub pin: Option<Cpu>,
}

/// What came of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Why it could not be started.
    pub unstarted: Option<String>,
    /// The exit code, if it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Processes that had to be killed after it had ended.
    pub left_behind: u32,
    /// From before its start until its last process was reaped.
    pub wall_ns: u64,
    /// CPU time of all its processes in user mode.
    pub user_ns: u64,
    /// CPU time of all its processes in the kernel.
    pub sys_ns: u64,
    /// Times one of its processes gave its CPU up.
    pub voluntary_switches: u64,
    /// Times one of its processes had its CPU taken away.
    pub involuntary_switches: u64,
    /// The most memory that its largest process had resident, in bytes; `None` where that isn't known.
    pub max_rss: Option<u64>,
    /// What it printed.
    pub stdout: Kept,
    /// What it complained about.
    pub stderr: Kept,
}

/// The beginning of an output.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Kept {
    /// At most [`KEPT`] bytes, what is not UTF-8 replaced.
    pub text: String,
    /// How many bytes there were in all.
    pub bytes: u64,
}

impl Kept {
    /// Whether all of it was kept.
    pub fn whole(&self) -> bool {
        self.bytes <= KEPT as u64
    }
}

/// Runs as a supervisor: the socket to the parent is standard input.
pub fn main() -> ExitCode {
    let socket = rustix::stdio::stdin();
    let Ok(Some((order, _))) = job::receive::<Order>(socket) else {
        eprintln!("pipemark: '{SUPERVISOR_VERB}' is for pipemark itself; try pipemark --help");
        return ExitCode::from(2);
    };
    let outcome =
        supervise(&order).unwrap_or_else(|error| Outcome { unstarted: Some(error.to_string()), ..Outcome::default() });
    match job::send(socket, &outcome, &[]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn supervise(order: &Order) -> io::Result<Outcome> {
    // Whoever loses its parent below becomes our child, so that it is counted and cannot get away.
    set_child_subreaper(Some(getpid()))?;
    if let Some(cpu) = order.pin {
        end::pin(cpu)?;
    }
    let folder = tempfile::Builder::new().prefix("pipemark-").tempdir()?;
    let [program, arguments @ ..] = order.words.as_slice() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let begin = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(&order.folder)
        .env("TMPDIR", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("'{program}' could not be started: {error}")))?;
    let mut watch = Watch {
        main: child.id(),
        pidfd: Some(pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?),
        stdout: Tap::new(child.stdout.take())?,
        stderr: Tap::new(child.stderr.take())?,
        outcome: Outcome::default(),
        seen_rss: None,
        // A child's peak is never below what we had when it was started: there, only looking tells.
        own_rss: peak_rss("self").unwrap_or(0),
    };
    watch.until_all_have_ended()?;
    watch.stdout.drain();
    watch.stderr.drain();
    let mut outcome = watch.outcome;
    outcome.wall_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    outcome.max_rss = outcome.max_rss.max(watch.seen_rss);
    (outcome.stdout, outcome.stderr) = (watch.stdout.kept(), watch.stderr.kept());
    Ok(outcome)
}

/// The processes of a run while they run.
struct Watch {
    main: u32,
    /// Readable when the process that was started has ended; `None` once that is known.
    pidfd: Option<OwnedFd>,
    stdout: Tap<ChildStdout>,
    stderr: Tap<ChildStderr>,
    outcome: Outcome,
    seen_rss: Option<u64>,
    own_rss: u64,
}

/// What to do with processes that are still there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The one that was started runs.
    Run,
    /// It has ended; the others may until then.
    Linger(Instant),
    /// They are to end, and have been killed; given up on at that time.
    Kill(Instant),
}

impl Watch {
    fn until_all_have_ended(&mut self) -> io::Result<()> {
        let mut mode = Mode::Run;
        let mut pause = LOOKS.0;
        loop {
            self.reap_all(&mut mode)?;
            let Some(children) = self.still_there()? else { return Ok(()) };
            match mode {
                Mode::Run => self.look(&children),
                Mode::Linger(until) if Instant::now() > until => {
                    self.outcome.left_behind = u32::try_from(children.len()).unwrap_or(u32::MAX);
                    mode = Mode::Kill(Instant::now() + DEATH);
                }
                Mode::Kill(until) if Instant::now() > until => {
                    return Err(io::Error::other("its processes do not end though they were killed"));
                }
                Mode::Linger(_) | Mode::Kill(_) => {}
            }
            if matches!(mode, Mode::Kill(_)) {
                // Killing a process makes its children ours: the next turn finds those.
                for child in children.into_iter().filter_map(|child| Pid::from_raw(child.cast_signed())) {
                    let _ = kill_process(child, Signal::KILL);
                }
            }
            let wait = if mode == Mode::Run { pause } else { Duration::from_millis(1) };
            pause = (pause * 2).min(LOOKS.1);
            if self.wait(wait)? && !matches!(mode, Mode::Kill(_)) {
                mode = Mode::Kill(Instant::now() + DEATH);
            }
        }
    }

    fn reap_all(&mut self, mode: &mut Mode) -> io::Result<()> {
        while let Reap::Ended(reaped) = reap()? {
            self.add(&reaped);
            if reaped.pid == self.main {
                (self.outcome.code, self.outcome.signal) = (reaped.status.code(), reaped.status.signal());
                self.pidfd = None;
                if *mode == Mode::Run {
                    *mode = Mode::Linger(Instant::now() + GRACE);
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, reaped: &Reaped) {
        let outcome = &mut self.outcome;
        outcome.user_ns += reaped.user_ns;
        outcome.sys_ns += reaped.sys_ns;
        outcome.voluntary_switches += reaped.voluntary_switches;
        outcome.involuntary_switches += reaped.involuntary_switches;
        outcome.max_rss = outcome.max_rss.max(Some(reaped.max_rss).filter(|&peak| peak > self.own_rss));
    }

    /// Our children, or `None` if there are none.
    fn still_there(&self) -> io::Result<Option<Vec<u32>>> {
        let children = children("self");
        // Without CONFIG_PROC_CHILDREN only the one that was started is known by its number.
        match (children.is_empty(), self.pidfd.is_some()) {
            (false, _) => Ok(Some(children)),
            (true, true) => Ok(Some(vec![self.main])),
            (true, false) => match reap()? {
                Reap::NoChildren => Ok(None),
                _ => Ok(Some(Vec::new())),
            },
        }
    }

    /// Notes the peak of each process below us.
    fn look(&mut self, children: &[u32]) {
        let mut below = children.to_vec();
        // As many as there are at most: two ends, and what a runtime or a shell puts between.
        while let Some(pid) = below.pop().filter(|_| below.len() < 64) {
            let pid = pid.to_string();
            self.seen_rss = self.seen_rss.max(peak_rss(&pid));
            below.extend(self::children(&pid));
        }
    }

    /// Waits for output, an end or the time; returns whether the parent has stopped listening.
    fn wait(&mut self, time: Duration) -> io::Result<bool> {
        let time = Timespec::try_from(time).map_err(io::Error::other)?;
        let socket = rustix::stdio::stdin();
        let stopped = {
            let taps = [self.stdout.0.as_ref().map(AsFd::as_fd), self.stderr.0.as_ref().map(AsFd::as_fd)];
            let others = taps.into_iter().chain([self.pidfd.as_ref().map(AsFd::as_fd)]).flatten();
            let mut fds: Vec<PollFd> =
                [socket].into_iter().chain(others).map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
            match poll(&mut fds, Some(&time)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            !fds[0].revents().is_empty()
        };
        self.stdout.drain();
        self.stderr.drain();
        Ok(stopped)
    }
}

/// An output that is read as it comes, so that nobody waits for us, and kept within bounds. `None` once it has ended.
struct Tap<T>(Option<T>, Vec<u8>, u64);

impl<T: Read + AsFd> Tap<T> {
    fn new(output: Option<T>) -> io::Result<Tap<T>> {
        if let Some(output) = &output {
            fcntl_setfl(output, fcntl_getfl(output)? | OFlags::NONBLOCK)?;
        }
        Ok(Tap(output, Vec::new(), 0))
    }

    /// Takes what is there, but not for ever: what prints faster than this reads would keep us from all else.
    fn drain(&mut self) {
        let mut buffer = [0; 16 << 10];
        for _ in 0..64 {
            let Some(output) = &mut self.0 else { return };
            match output.read(&mut buffer) {
                Ok(0) => self.0 = None,
                Ok(count) => {
                    self.2 += count as u64;
                    let room = KEPT.saturating_sub(self.1.len()).min(count);
                    self.1.extend_from_slice(&buffer[..room]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.0 = None,
            }
        }
    }

    fn kept(&self) -> Kept {
        Kept { text: String::from_utf8_lossy(&self.1).into_owned(), bytes: self.2 }
    }
}

/// The children of all threads of a process; none where the kernel does not tell.
fn children(pid: &str) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

/// The most memory a process had resident since it began its program, in bytes.
fn peak_rss(pid: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kib: u64 =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}
