//! One process of a run: started, listened to, ended and reaped, whatever happens.

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

/// How long a process may take to be gone that has closed its socket.
const ENDING: Duration = Duration::from_secs(10);

/// This program, started again with a socket to talk through as its standard input. Dropped, it is killed and reaped with
/// its group.
pub struct Peer {
    child: Child,
    socket: OwnedFd,
}

impl Peer {
    /// Starts it with a hidden verb, and tells it what to do.
    ///
    /// # Errors
    /// When there is no process, descriptor or memory to be had: a sentence.
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
        // The other side of the socket: the process's own is to be the last.
        drop(command);
        let mut peer = Peer { child, socket };
        match channel::send(&peer.socket, order, descriptors) {
            Ok(()) => Ok(peer),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(peer.how_it_ended()),
            Err(error) => Err(format!("the {name} did not accept its assignment: {}", explained(&error))),
        }
    }

    /// Readable when there is a message, or when the process is gone.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Waits for a message, and takes it with what is attached to it.
    ///
    /// # Errors
    /// When the process ended without one: a sentence that says how.
    pub fn receive<T: DeserializeOwned>(&mut self) -> Result<(T, Vec<OwnedFd>), String> {
        match channel::receive(&self.socket) {
            Ok(Some(message)) => Ok(message),
            Ok(None) => Err(self.how_it_ended()),
            Err(error) => Err(format!("the {}'s report is unreadable: {error}", self.child.name())),
        }
    }

    /// Tells the process, by ending the conversation, that it is no longer needed.
    pub fn hang_up(&self, side: Shutdown) {
        let _ = shutdown(&self.socket, side);
    }

    /// Lets the process go on, should one of its own have stopped it.
    pub fn resume(&self) {
        self.child.release();
    }

    fn how_it_ended(&mut self) -> String {
        let name = self.child.name().to_owned();
        // Its side of the socket is closed: it is about to end.
        let _ = self.child.wait(Instant::now() + ENDING, None);
        match self.child.end() {
            Some((status, _)) if status.signal().is_some() => format!("the {name} {}", child::how_ended(status)),
            Some((status, _)) => format!("the {name} ended without a reply ({status})"),
            None => format!("the {name} is gone"),
        }
    }
}

/// An end of a run, or the keeper of a link, as its parent sees it.
pub struct EndProcess {
    peer: Peer,
    /// What it does.
    pub role: EndRole,
    /// Its line of the shared page.
    pub line: usize,
    /// The file number of its link, to find it among whatever else it has open.
    link: Option<u64>,
    /// Its last word, once it has come.
    pub reply: Option<Reply>,
}

impl EndProcess {
    /// Starts an end with its job and the descriptors: the shared page and its side of the link, if it has one.
    ///
    /// # Errors
    /// When there is no process, descriptor or memory to be had: a sentence.
    pub fn start(assignment: &Assignment, descriptors: &[BorrowedFd<'_>]) -> Result<EndProcess, String> {
        let link = descriptors.get(1).and_then(|link| Some(rustix::fs::fstat(link).ok()?.st_ino));
        let tunables = assignment.job.ends().and_then(tunables);
        let environment = tunables.map(|tunables| (TUNABLES, tunables));
        let peer = Peer::start(assignment.role.name(), END_VERB, environment, assignment, descriptors)?;
        Ok(EndProcess { peer, role: assignment.role, line: assignment.line, link, reply: None })
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.peer.child.pid().as_raw_nonzero().get().cast_unsigned()
    }

    /// See [`Peer::socket`].
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.peer.socket()
    }

    /// Takes the reply that `socket` announced; returns what was attached to it.
    ///
    /// # Errors
    /// When the process ended without one: a sentence that says how.
    pub fn take_reply(&mut self) -> Result<Vec<OwnedFd>, String> {
        let (reply, descriptors) = self.peer.receive()?;
        self.reply = Some(reply);
        Ok(descriptors)
    }

    /// Waits for the reply, and takes it.
    ///
    /// # Errors
    /// As [`EndProcess::take_reply`], and when it takes longer than `patience`.
    pub fn wait_for_reply(&mut self, patience: Duration) -> Result<Vec<OwnedFd>, String> {
        match child::wait_readable(&[self.socket()], Instant::now() + patience, None) {
            Ok(Some(_)) => self.take_reply(),
            _ => Err(format!("the {} did not answer in time", self.role.name())),
        }
    }

    /// Tells the process that it is no longer needed, and waits for it to go, for `patience` at most; then it is killed.
    /// Whether it went by itself, and all was well.
    pub fn dismiss(&mut self, patience: Duration) -> bool {
        self.peer.hang_up(Shutdown::Both);
        let child = &mut self.peer.child;
        let in_time = child.wait(Instant::now() + patience, None) == Ok(true);
        let _ = child.end_now();
        in_time && child.end().is_some_and(|(status, _)| status.success())
    }

    /// What the process is doing right now, for the report of a hang.
    pub fn doing(&self) -> String {
        let proc =
            |file: &str| fs::read_to_string(format!("/proc/{}/{file}", self.peer.child.pid())).unwrap_or_default();
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
        let folder = fs::read_dir(format!("/proc/{}/fd", self.peer.child.pid())).ok()?;
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

/// Where the C library reads its settings.
const TUNABLES: &str = "GLIBC_TUNABLES";

/// The C library's settings for the ends, where they are not the system's: those of ours, and no restartable sequences. The
/// C library registers one for each thread, and the kernel then reads and writes that thread's memory whenever it comes
/// back from a switch of processes.
fn tunables(ends: &Ends) -> Option<String> {
    let ours = std::env::var(TUNABLES).map_or_else(|_| String::new(), |settings| format!("{settings}:"));
    (ends.rseq == Rseq::Off).then(|| format!("{ours}glibc.pthread.rseq=0"))
}
