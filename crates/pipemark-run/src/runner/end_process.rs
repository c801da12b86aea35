//! One process of a run. Starts it, receives its messages, and always ends and reaps it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::fs::{Mode, OFlags};
use rustix::net::{Shutdown, shutdown};
use serde::Serialize;
use serde::de::DeserializeOwned;

use pipemark_host::child::error::explained;
use pipemark_host::child::{self, Child, ProcessGroup};
use pipemark_model::{Ends, Rseq};

use crate::runner::channel::{self, Assignment, END_VERB, EndRole, Reply};

/// The time limit for a process to exit after it has closed its socket.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// A process that executes this program again, with a socket as its standard input. Dropping the value kills the
/// process and its group, and reaps the process.
pub struct Peer {
    child: Child,
    socket: OwnedFd,
}

impl Peer {
    /// Starts this program with a hidden verb, and sends an assignment to the new process.
    ///
    /// # Errors
    /// A message, if no process, descriptor or memory is available.
    pub fn start(
        name: &str,
        verb: &str,
        environment: Option<(&str, String)>,
        order: &impl Serialize,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Peer, String> {
        let not_started = |error: io::Error| format!("the {name} could not be started: {}", explained(&error));
        let (socket, theirs) = channel::pair().map_err(not_started)?;
        let mut command = child::ourselves(verb);
        command.envs(environment).stdin(theirs).stdout(Stdio::null());
        let child = Child::start(name, &mut command, ProcessGroup::Own).map_err(not_started)?;
        // This closes our copy of the child's socket, so that only the child has one.
        drop(command);
        let mut peer = Peer { child, socket };
        match channel::send(&peer.socket, order, descriptors) {
            Ok(()) => Ok(peer),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(peer.wait_for_exit_reason()),
            Err(error) => Err(format!("the {name} did not accept its assignment: {}", explained(&error))),
        }
    }

    /// The socket to the process. It becomes readable when a message arrives or the process exits.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Waits for a message, and returns it with the attached descriptors.
    ///
    /// # Errors
    /// A description of how the process ended, if it sent nothing.
    pub fn receive<T: DeserializeOwned>(&mut self) -> Result<(T, Vec<OwnedFd>), String> {
        match channel::receive(&self.socket) {
            Ok(Some(message)) => Ok(message),
            Ok(None) => Err(self.wait_for_exit_reason()),
            Err(error) => Err(format!("the {}'s report is unreadable: {error}", self.child.name())),
        }
    }

    /// Shuts down a side of the socket, which tells the process to exit.
    pub fn hang_up(&self, side: Shutdown) {
        let _ = shutdown(&self.socket, side);
    }

    /// Resumes the process if it was stopped.
    pub fn resume(&self) {
        self.child.release();
    }

    fn wait_for_exit_reason(&mut self) -> String {
        let name = self.child.name().to_owned();
        // The process has closed its side of the socket, so it is about to exit.
        let _ = self.child.wait(Instant::now() + EXIT_TIMEOUT, None);
        match self.child.end() {
            Some((status, _)) if status.signal().is_some() => format!("the {name} {}", child::describe_status(status)),
            Some((status, _)) => format!("the {name} ended without a reply ({status})"),
            None => format!("the {name} is gone"),
        }
    }
}

/// The process of an end or of a link's keeper, as seen by the parent.
pub struct EndProcess {
    peer: Peer,
    /// The role of the process.
    pub role: EndRole,
    /// The index of the cache line that the process uses in the shared page.
    pub line: usize,
    /// The inode of the process's link, by which the link is found among the open files; `None` if unknown.
    link: Option<u64>,
    /// The reply of the process; `None` until it has been received.
    pub reply: Option<Reply>,
}

impl EndProcess {
    /// Starts an end. `descriptors` has the shared page and, if the end has a link, the link's handles.
    ///
    /// # Errors
    /// A message, if no process, descriptor or memory is available.
    pub fn start(assignment: &Assignment, descriptors: &[BorrowedFd<'_>]) -> Result<EndProcess, String> {
        let link = descriptors.get(1).and_then(|link| Some(rustix::fs::fstat(link).ok()?.st_ino));
        let tunables = assignment.job.ends().and_then(tunables);
        let environment = tunables.map(|tunables| (TUNABLES, tunables));
        let peer = Peer::start(assignment.role.name(), END_VERB, environment, assignment, descriptors)?;
        Ok(EndProcess { peer, role: assignment.role, line: assignment.line, link, reply: None })
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.peer.child.pid().as_raw_nonzero().get().cast_unsigned()
    }

    /// The socket to the process, see [`Peer::socket`].
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.peer.socket()
    }

    /// Receives the reply. Blocks until `socket` is readable. Returns the attached descriptors.
    ///
    /// # Errors
    /// A description of how the process ended, if it sent no reply.
    pub fn take_reply(&mut self) -> Result<Vec<OwnedFd>, String> {
        let (reply, descriptors) = self.peer.receive()?;
        self.reply = Some(reply);
        Ok(descriptors)
    }

    /// Waits for the reply and receives it. Returns the attached descriptors.
    ///
    /// # Errors
    /// As [`EndProcess::take_reply`], or if `timeout` expires.
    pub fn wait_for_reply(&mut self, timeout: Duration) -> Result<Vec<OwnedFd>, String> {
        match child::wait_readable(&[self.socket()], Instant::now() + timeout, None) {
            Ok(Some(_)) => self.take_reply(),
            _ => Err(format!("the {} did not answer in time", self.role.name())),
        }
    }

    /// Tells the process to exit, waits for at most `timeout`, then kills it. Returns whether the process exited
    /// successfully without being killed.
    pub fn shut_down(&mut self, timeout: Duration) -> bool {
        self.peer.hang_up(Shutdown::Both);
        let child = &mut self.peer.child;
        let in_time = child.wait(Instant::now() + timeout, None) == Ok(true);
        let _ = child.end_now();
        in_time && child.end().is_some_and(|(status, _)| status.success())
    }

    /// What the process is doing now, as text for the report of a hang.
    pub fn activity(&self) -> String {
        let proc =
            |file: &str| fs::read_to_string(format!("/proc/{}/{file}", self.peer.child.pid())).unwrap_or_default();
        let waits_in = proc("wchan");
        // The state is the field after the name, which is in parentheses and may contain any character.
        let stat = proc("stat");
        let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest.get(..1).unwrap_or_default());
        match (state, waits_in.trim()) {
            ("R", _) => "was running".to_owned(),
            ("T" | "t", _) => "was stopped".to_owned(),
            (_, "" | "0") => "was waiting".to_owned(),
            (_, place) => format!("was waiting in {place}"),
        }
    }

    /// Fill level and capacity in bytes of the pipe to this process; `None` if they cannot be read.
    pub fn pipe_fill(&self) -> Option<(u64, u64)> {
        let link = format!("pipe:[{}]", self.link?);
        let directory = fs::read_dir(format!("/proc/{}/fd", self.peer.child.pid())).ok()?;
        directory.flatten().map(|entry| entry.path()).find_map(|path| {
            if fs::read_link(&path).ok()?.to_str()? != link {
                return None;
            }
            let pipe =
                rustix::fs::open(&path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok()?;
            Some((pipeio::pipe::fill(&pipe).ok()?, pipeio::pipe::capacity(&pipe).ok()? as u64))
        })
    }
}

/// The environment variable that holds glibc's tunables.
const TUNABLES: &str = "GLIBC_TUNABLES";

/// The inherited glibc tunables, changed to disable restartable sequences; `None` to leave the sequences enabled. While
/// they are enabled, the kernel accesses memory of the thread at every context switch.
fn tunables(ends: &Ends) -> Option<String> {
    let ours = std::env::var(TUNABLES).map_or_else(|_| String::new(), |settings| format!("{settings}:"));
    (ends.rseq == Rseq::Off).then(|| format!("{ours}glibc.pthread.rseq=0"))
}
