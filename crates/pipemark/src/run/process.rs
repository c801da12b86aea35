//! One process of a run: started, listened to, ended and reaped, whatever happens.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;
use rustix::net::{Shutdown, shutdown};

use super::job::{self, Job, Report, Role};

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
    /// When there is no process, descriptor or memory to be had.
    pub fn start(job: &Job, descriptors: &[BorrowedFd<'_>]) -> io::Result<Process> {
        let (socket, theirs) = job::channel()?;
        let child = Command::new("/proc/self/exe")
            .arg0("pipemark")
            .arg(job::END_VERB)
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            // A group of its own: Ctrl-C is for the parent, which keeps what was measured and then ends its children.
            .process_group(0)
            .spawn()
            .map_err(|error| {
                io::Error::new(error.kind(), format!("the {} could not be started: {error}", job.role.name()))
            })?;
        let mut process = Process { child, socket, role: job.role, line: job.line, link: None, report: None };
        process.link = descriptors.get(1).map(rustix::fs::fstat).transpose()?.map(|stat| stat.st_ino);
        job::send(&process.socket, job, descriptors).map_err(|error| {
            io::Error::new(error.kind(), format!("the {} did not take its job: {error}", job.role.name()))
        })?;
        Ok(process)
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

    /// Waits at most so long for the process to end by itself; `None` if it did not.
    pub fn wait_at_most(&mut self, patience: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_micros(200)),
                _ => return None,
            }
        }
    }

    /// Reaps the process after its report. It has nothing left to do, so it is not waited for any longer than the kernel
    /// needs: someone may have stopped it.
    ///
    /// # Errors
    /// When it could not be waited for.
    pub fn reap(&mut self) -> io::Result<ExitStatus> {
        self.child.kill()?;
        self.child.wait()
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
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
