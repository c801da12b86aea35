//! The programs of a link, and the pipes to them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use pipemark_host::child::{self, Begin, Child, RunError};
use pipemark_model::{BrokerStats, Cpu};

use crate::assignment::EndName;
use crate::report::ReportLines;
use crate::run_directory::RunDirectory;

/// How long a broker may take until it is ready.
const BROKER_LIMIT: Duration = Duration::from_secs(20);

/// A program of a link. Dropping it kills it and its process group.
pub(crate) struct LinkProcess {
    /// The program's role for messages.
    name: String,
    /// The end that the program is; `None` for a broker, and for a program of both ends.
    pub role: Option<EndName>,
    child: Child,
    pidfd: OwnedFd,
}

impl LinkProcess {
    /// Starts `words` in `directory`, for the run in `run`. `role` is the end that the program is.
    pub(crate) fn start(
        name: &str,
        words: &[String],
        directory: &Path,
        run: &RunDirectory,
        role: Option<EndName>,
        cpu: Option<Cpu>,
    ) -> Result<LinkProcess, RunError> {
        let failed = |error: io::Error| RunError::Failed(format!("the {name} could not be started: {error}"));
        let mut command = child::foreign(cpu, Begin::AtOnce);
        command.args(words.iter().map(|word| run.fill_in(word)));
        command.current_dir(directory).env("PIPEMARK_LINK", &run.0).env("TMPDIR", &run.0);
        if let Some(role) = role {
            command.env("PIPEMARK_ROLE", role.to_string());
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = Child::start_keeping_stderr(name, &mut command).map_err(failed)?;
        let pidfd = child.pidfd().map_err(failed)?;
        Ok(LinkProcess { name: name.to_owned(), role, child, pidfd })
    }

    /// Becomes readable when the program ends.
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Whether the program is known to have ended.
    pub(crate) fn is_reaped(&self) -> bool {
        self.child.end().is_some()
    }

    /// Whether a signal ended the program.
    pub(crate) fn was_killed(&self) -> bool {
        self.child.end().is_some_and(|(status, _)| status.signal().is_some())
    }

    /// Whether the program has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.wait(Instant::now(), None) == Ok(true)
    }

    /// Waits for the program to end by itself, and kills it if it doesn't.
    ///
    /// # Errors
    /// How it failed.
    pub(crate) fn finish(&mut self, deadline: Instant) -> Result<(), RunError> {
        if self.child.wait(deadline, None)? {
            self.child.succeeded()?;
        }
        Ok(())
    }

    /// How the program ended, as a sentence.
    pub(crate) fn describe_end(&self) -> String {
        match self.child.end() {
            Some((status, _)) if status.success() => format!("the {} ended without a report", self.name),
            _ => format!("the {} {}", self.name, self.child.describe_end(0)),
        }
    }

    /// The CPU time of all its threads so far in nanoseconds; 0 if unknown.
    pub(crate) fn cpu_ns(&self) -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.pid())).into_iter().flatten().flatten();
        let of_task = |task: fs::DirEntry| {
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        };
        tasks.filter_map(of_task).sum()
    }

    /// Its peak resident memory so far in bytes; `None` if unknown.
    fn peak_memory(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.pid())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
    }
}

/// A broker, and its CPU time when the window began.
pub(crate) struct RunningBroker {
    pub program: LinkProcess,
    begun_ns: Option<u64>,
    used: BrokerStats,
}

impl RunningBroker {
    /// Waits until the file or socket `ready` is there.
    pub(crate) fn start(mut program: LinkProcess, ready: &str, run: &RunDirectory) -> Result<RunningBroker, RunError> {
        let file = run.fill_in(ready);
        let deadline = Instant::now() + BROKER_LIMIT;
        while !Path::new(&file).exists() {
            if program.has_ended() {
                return Err(RunError::Failed(program.describe_end()));
            }
            if Instant::now() > deadline {
                return Err(RunError::Failed(format!("the broker made no {file} within {BROKER_LIMIT:?}")));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(RunningBroker { program, begun_ns: None, used: BrokerStats::default() })
    }

    /// Notes the CPU time at the beginning of the window, then at its end.
    pub(crate) fn note(&mut self) {
        let now = self.program.cpu_ns();
        match self.begun_ns {
            None => self.begun_ns = Some(now),
            Some(begun) => self.used.cpu_ns = now.saturating_sub(begun),
        }
    }

    /// The CPU time used in the window, and the peak memory so far.
    pub(crate) fn used(&self) -> BrokerStats {
        BrokerStats { max_rss: self.program.peak_memory(), ..self.used }
    }
}

/// The pipes between pipemark and an end.
pub(crate) struct EndChannel {
    pub end: EndName,
    pub lines: ReportLines,
    to: File,
    from: File,
    closed: bool,
}

impl EndChannel {
    /// Makes the pipes of `end` in the run's directory.
    pub(crate) fn create(end: EndName, run: &RunDirectory) -> io::Result<EndChannel> {
        let (to, from) = (run.pipe(&format!("{end}.in"))?, run.pipe(&format!("{end}.out"))?);
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).expect("an open flag fits an int");
        // Opened for both, the pipe can be written to before the end has opened it.
        let to = OpenOptions::new().read(true).write(true).custom_flags(flags).open(to)?;
        let from = OpenOptions::new().read(true).custom_flags(flags).open(from)?;
        Ok(EndChannel { end, lines: ReportLines::default(), to, from, closed: false })
    }

    /// Sends text. It is far smaller than a pipe.
    pub(crate) fn send(&mut self, text: &str) -> io::Result<()> {
        self.to.write_all(text.as_bytes())
    }

    /// The descriptor to wait for; `None` once the end has nothing more to say.
    pub(crate) fn readable(&self) -> Option<BorrowedFd<'_>> {
        (!self.closed && !self.lines.ended).then(|| self.from.as_fd())
    }

    /// Reads what the end has written.
    ///
    /// # Errors
    /// If it is not of the contract.
    pub(crate) fn read(&mut self) -> Result<(), RunError> {
        let mut bytes = [0; 16 << 10];
        loop {
            match self.from.read(&mut bytes) {
                Ok(0) => {
                    self.closed = true;
                    return Ok(());
                }
                Ok(count) => self.lines.take(&bytes[..count]).map_err(|why| self.failed(&why))?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(self.failed(&error.to_string())),
            }
        }
    }

    pub(crate) fn failed(&self, why: &str) -> RunError {
        RunError::Failed(format!("the {} failed: {why}", self.end))
    }
}
