//! One process of a run: started, listened to, ended and reaped, whatever happens.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::net::{Shutdown, shutdown};

use super::channel::{self, Assignment, END_VERB, Reply, Role};
use super::child::{self, Child, Group};
use super::error::explained;

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

/// How long a process may take to be gone that has closed its socket.
const ENDING: Duration = Duration::from_secs(10);

/// An end of a run, as its parent sees it. Dropped, it is killed and reaped.
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
    pub reply: Option<Reply>,
}

impl Process {
    /// Starts this program again as an end and hands it its job with the descriptors: the shared page and its side of the link,
    /// if it has one.
    ///
    /// # Errors
    /// When there is no process, descriptor or memory to be had: a sentence.
    pub fn start(assignment: &Assignment, descriptors: &[BorrowedFd<'_>]) -> Result<Process, String> {
        let name = assignment.role.name();
        let not_started = |error: io::Error| format!("the {name} could not be started: {}", explained(&error));
        let inode = descriptors.get(1).map(rustix::fs::fstat).transpose().map_err(|error| not_started(error.into()))?;
        let (socket, theirs) = channel::pair().map_err(not_started)?;
        let mut command = child::ourselves(END_VERB);
        command.env("GLIBC_TUNABLES", without_rseq(std::env::var_os("GLIBC_TUNABLES")));
        command.stdin(theirs).stdout(Stdio::null());
        let child = Child::start(name, &mut command, Group::Own).map_err(not_started)?;
        // The other side of the socket: the end's own is to be the last.
        drop(command);
        let link = inode.map(|stat| stat.st_ino);
        let mut process = Process { child, socket, role: assignment.role, line: assignment.line, link, reply: None };
        match channel::send(&process.socket, assignment, descriptors) {
            Ok(()) => Ok(process),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(process.how_it_ended()),
            Err(error) => Err(format!("the {name} did not take what it is to do: {}", explained(&error))),
        }
    }

    /// Readable when there is a reply, or when the process is gone without one.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Takes the reply that `socket` announced; returns what was attached to it.
    ///
    /// # Errors
    /// When the process ended without one: a sentence that says how.
    pub fn take_reply(&mut self) -> Result<Vec<OwnedFd>, String> {
        match channel::receive(&self.socket) {
            Ok(Some((reply, descriptors))) => {
                self.reply = Some(reply);
                Ok(descriptors)
            }
            Ok(None) => Err(self.how_it_ended()),
            Err(error) => Err(format!("the {}'s reply is unreadable: {error}", self.role.name())),
        }
    }

    /// Waits for the reply, and takes it.
    ///
    /// # Errors
    /// As [`Process::take_reply`], and when it takes longer than `patience`.
    pub fn wait_for_reply(&mut self, patience: Duration) -> Result<Vec<OwnedFd>, String> {
        match child::wait_readable(&[self.socket.as_fd()], Instant::now() + patience, None) {
            Ok(Some(_)) => self.take_reply(),
            _ => Err(format!("the {} did not answer in time", self.role.name())),
        }
    }

    /// Tells the process, by ending the conversation, that it is no longer needed, and waits for it to go, for `patience`
    /// at most; then it is killed. Whether it went by itself, and all was well.
    pub fn dismiss(&mut self, patience: Duration) -> bool {
        let _ = shutdown(&self.socket, Shutdown::Both);
        let in_time = self.child.wait(Instant::now() + patience, None) == Ok(true);
        let _ = self.child.end_now();
        in_time && self.child.end().is_some_and(|(status, _)| status.success())
    }

    fn how_it_ended(&mut self) -> String {
        let name = self.role.name();
        // Its side of the socket is closed: it is about to end.
        let _ = self.child.wait(Instant::now() + ENDING, None);
        match self.child.end() {
            Some((status, _)) if status.signal().is_some() => format!("the {name} {}", child::how_ended(status)),
            Some((status, _)) => format!("the {name} ended without a reply ({status})"),
            None => format!("the {name} is gone"),
        }
    }

    /// What the process is doing right now, for the report of a hang.
    pub fn doing(&self) -> String {
        let proc = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", self.child.pid())).unwrap_or_default();
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
        let folder = fs::read_dir(format!("/proc/{}/fd", self.child.pid())).ok()?;
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
