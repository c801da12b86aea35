//! One process of a run: started, listened to, ended and reaped, whatever happens.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;
use rustix::net::{Shutdown, shutdown};

use super::job::{self, Job, Report, Role};
use super::refusal::explained;

/// The C library's settings for an end: those of ours, and no restartable sequences. glibc registers one for each thread,
/// and the kernel then reads and writes that thread's memory whenever it comes back from a switch of processes: 4 % of a
/// round trip on one CPU here, which is the instrument's and not the link's. No end uses them.
fn without_rseq(ours: Option<OsString>) -> OsString {
    let mut settings = ours.unwrap_or_default();
    if !settings.is_empty() {
        settings.push(":");
    }
    settings.push("glibc.pthread.rseq=0");
    settings
}

/// An end of a run, as its parent sees it. Dropping it kills and reaps it.
pub struct Process {
    child: Child,
    socket: OwnedFd,
    /// What it does.
    pub role: Role,
    /// Its line of the shared page.
    pub line: usize,
    /// The file number of its link, to find it among whatever else it has open.
    link: Option<u64>,
    /// Its last word, once it has come.
    pub report: Option<Report>,
}

impl Process {
    /// Starts this program again as an end and hands it its job with the descriptors: the shared page and its side of the link,
    /// if it has one.
    ///
    /// # Errors
    /// When there is no process, descriptor or memory to be had: a sentence.
    pub fn start(job: &Job, descriptors: &[BorrowedFd<'_>]) -> Result<Process, String> {
        let name = job.role.name();
        let not_started = |error: io::Error| format!("the {name} could not be started: {}", explained(&error));
        let inode = descriptors.get(1).map(rustix::fs::fstat).transpose().map_err(|error| not_started(error.into()))?;
        let (socket, theirs) = job::channel().map_err(not_started)?;
        let child = Command::new("/proc/self/exe")
            .arg0("pipemark")
            .arg(job::END_VERB)
            .env("GLIBC_TUNABLES", without_rseq(std::env::var_os("GLIBC_TUNABLES")))
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            // A group of its own: Ctrl-C is for the parent, which keeps what was measured and then ends its children.
            .process_group(0)
            .spawn()
            .map_err(not_started)?;
        let link = inode.map(|stat| stat.st_ino);
        let mut process = Process { child, socket, role: job.role, line: job.line, link, report: None };
        match job::send(&process.socket, job, descriptors) {
            Ok(()) => Ok(process),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(process.how_it_ended()),
            Err(error) => Err(format!("the {name} did not take its job: {}", explained(&error))),
        }
    }

    /// Readable when there is a report, or when the process is gone without one.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Takes the report that `socket` announced; returns what was attached to it.
    ///
    /// # Errors
    /// When the process ended without one: a sentence that says how.
    pub fn take_report(&mut self) -> Result<Vec<OwnedFd>, String> {
        match job::receive(&self.socket) {
            Ok(Some((report, descriptors))) => {
                self.report = Some(report);
                Ok(descriptors)
            }
            Ok(None) => Err(self.how_it_ended()),
            Err(error) => Err(format!("the {}'s report is unreadable: {error}", self.role.name())),
        }
    }

    /// Waits for the report, and takes it.
    ///
    /// # Errors
    /// As [`Process::take_report`], and when it takes longer than `patience`.
    pub fn wait_for_report(&mut self, patience: Duration) -> Result<Vec<OwnedFd>, String> {
        let patience = Timespec::try_from(patience).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
        match retry_on_intr(|| poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&patience))) {
            Ok(1..) => self.take_report(),
            _ => Err(format!("the {} did not answer in time", self.role.name())),
        }
    }

    /// Tells the process, by ending the conversation, that it is no longer needed.
    pub fn hang_up(&self) {
        let _ = shutdown(&self.socket, Shutdown::Both);
    }

    /// Waits for the process to go by itself, for `patience` at most; returns whether it did, and all was well.
    pub fn went_well_within(&mut self, patience: Duration) -> bool {
        let begin = Instant::now();
        let mut pause = Duration::from_micros(50);
        loop {
            match self.child.try_wait() {
                Ok(None) if begin.elapsed() < patience => thread::sleep(pause),
                Ok(status) => return status.is_some_and(|status| status.success()),
                Err(_) => return false,
            }
            pause = (2 * pause).min(Duration::from_millis(10));
        }
    }

    /// Ends the process and reaps it, unless that was done already.
    pub fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn how_it_ended(&mut self) -> String {
        let name = self.role.name();
        match self.child.wait() {
            Ok(status) => match status.signal() {
                Some(9) => format!("the {name} was killed (SIGKILL): by someone, or by the system for want of memory"),
                Some(31) => format!("the {name} was killed by a system-call filter (SIGSYS)"),
                Some(signal) => format!("the {name} was ended by signal {signal}"),
                None => format!("the {name} ended without a report ({status})"),
            },
            Err(error) => format!("the {name} is gone: {error}"),
        }
    }

    /// What the process is doing right now, for the report of a hang.
    pub fn doing(&self) -> String {
        let proc = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap_or_default();
        let waits_in = proc("wchan");
        // The state follows the name in parentheses, which may itself hold anything.
        let stat = proc("stat");
        let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest.get(..1).unwrap_or_default());
        match (state, waits_in.trim()) {
            ("R", _) => "was running".to_owned(),
            ("T" | "t", _) => "was stopped".to_owned(),
            (_, "" | "0") => "was waiting".to_owned(),
            (_, place) => format!("was waiting in {place}"),
        }
    }

    /// How full the pipe to this process is, and its capacity; `None` if that cannot be seen.
    pub fn pipe_fill(&self) -> Option<(u64, u64)> {
        let link = format!("pipe:[{}]", self.link?);
        let folder = fs::read_dir(format!("/proc/{}/fd", self.child.id())).ok()?;
        folder.flatten().map(|entry| entry.path()).find_map(|path| {
            if fs::read_link(&path).ok()?.to_str()? != link {
                return None;
            }
            let pipe =
                rustix::fs::open(&path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok()?;
            Some((pipeio::pipe::fill(&pipe).ok()?, pipeio::pipe::capacity(&pipe).ok()? as u64))
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An already reaped process is left alone: Child knows.
        self.end();
    }
}
