//! Messages between the parent and an end, and the socket that carries them.
//!
//! An end is this program started again with one socket as its standard input. The first message is its assignment,
//! with the descriptors it needs attached; the last is the end's reply. No other descriptor is inherited, so nothing
//! leaks between runs.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use pipemark_host::child::error::explained;
use pipemark_model::{Cpu, EndStats, Job, Latency};

use crate::link::{self, Handle};

/// The hidden verb that starts an end of a run.
pub const END_VERB: &str = "__end";

/// The largest message, in bytes. A reply for 1,024 CPUs is far smaller, the kernel's default
/// socket buffer far larger.
const MESSAGE: usize = 64 << 10;

/// The most descriptors attached to a message.
const DESCRIPTORS: usize = 4;

/// The role of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndRole {
    /// Writes into the link.
    Source,
    /// Reads from the link.
    Sink,
    /// Copies memory to memory within one process: the memory-copy limit.
    Copy,
    /// Creates a link that has a name, and removes it.
    Keeper,
}

impl EndRole {
    /// The name shown to users.
    pub fn name(self) -> &'static str {
        match self {
            EndRole::Source => "source",
            EndRole::Sink => "sink",
            EndRole::Copy => "copying process",
            EndRole::Keeper => "keeper of the link",
        }
    }
}

/// The assignment of an end. The shared page, then the links' descriptors, are attached to the message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Assignment {
    /// The role.
    pub role: EndRole,
    /// The process that waits for the reply. This process dies with it.
    pub parent: u32,
    /// The job to measure.
    pub job: Job,
    /// The number of its pair, from 0.
    pub pair: u32,
    /// The number of its line in the shared page.
    pub line: usize,
    /// The one CPU to run on; `None` allows all.
    pub pin: Option<Cpu>,
    /// The seed of content and delays.
    pub seed: u64,
    /// The end's handle of the link, then that of the return link for round trips.
    pub handles: Vec<Wire>,
    /// The folder that a keeper creates, if it needs one.
    pub folder: Option<PathBuf>,
}

/// What the kernel granted to a link.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Granted {
    /// The largest message in bytes, if limited.
    pub message_limit: Option<u64>,
    /// Send and receive buffer of a socket, in bytes.
    pub buffers: Option<(u64, u64)>,
}

/// A link's handle in a message; the descriptors are attached, in the same order.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// The next attached descriptor.
    Fd,
    /// A System V queue.
    Queue(i32),
    /// No handle.
    Nothing,
}

impl Wire {
    /// The message form of `handle`.
    pub fn of(handle: &Handle) -> Wire {
        match handle {
            Handle::Fd(_) => Wire::Fd,
            Handle::Queue(id) => Wire::Queue(*id),
            Handle::Nothing => Wire::Nothing,
        }
    }

    /// The handle. [`Wire::Fd`] uses the next attached descriptor.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn handle(self, descriptors: &mut impl Iterator<Item = OwnedFd>) -> io::Result<Handle> {
        Ok(match self {
            Wire::Fd => Handle::Fd(descriptors.next().ok_or(io::ErrorKind::InvalidData)?),
            Wire::Queue(id) => Handle::Queue(id),
            Wire::Nothing => Handle::Nothing,
        })
    }
}

/// The final reply of an end.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// The end has finished.
    Done(Box<Done>),
    /// A keeper has created its link: the write handle, the read handle, and what the kernel granted.
    Made(Wire, Wire, Granted),
    /// Not possible on this machine: the reason, as a sentence.
    NotHere(String),
    /// It failed: the reason, as a sentence.
    Failed(String),
}

impl Reply {
    /// The reply to an error. The sentence of a failure begins with `who`.
    pub fn of(error: &io::Error, who: &str) -> Reply {
        if link::not_here(error) {
            Reply::NotHere(error.to_string())
        } else {
            Reply::Failed(format!("{who}{}", explained(error)))
        }
    }
}

/// Measurements of an end.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Done {
    /// The end's statistics.
    pub stats: EndStats,
    /// Capacity of the link before and after the run, if it has one.
    pub capacity: Option<(u64, u64)>,
    /// The first wrong byte, described.
    pub fault: Option<String>,
    /// Bytes newly written, warm-up included.
    pub made: u64,
    /// Bytes read by the CPU, warm-up included.
    pub read: u64,
    /// For a sink with several writers: percentage of records cut by other writers' bytes.
    pub interleaved_percent: Option<f64>,
    /// Round trips, for a source in latency mode.
    pub latency: Option<Latency>,
    /// The sender's note on how its bytes were sent.
    pub note: Option<String>,
    /// Bytes of this process on huge pages, if requested.
    pub huge_bytes: Option<u64>,
}

/// The descriptor of a handle, for attaching to a message.
pub fn descriptor(handle: &Handle) -> Option<BorrowedFd<'_>> {
    if let Handle::Fd(fd) = handle { Some(fd.as_fd()) } else { None }
}

/// A connected pair of sockets that preserve message boundaries.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends one message with descriptors attached.
pub fn send(socket: impl AsFd, message: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors for one message"));
    }
    sendmsg(socket, &[IoSlice::new(&text)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives one message with its attached descriptors; `None` if the other side is gone.
pub fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut text = vec![0; MESSAGE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(&socket, &mut [IoSliceMut::new(&mut text)], &mut control, RecvFlags::CMSG_CLOEXEC)
    });
    let received = match received {
        Ok(received) => received,
        // The end was killed before it read its assignment.
        Err(rustix::io::Errno::CONNRESET) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message between the processes was cut short"));
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    let descriptors = control
        .drain()
        .filter_map(|message| if let RecvAncillaryMessage::ScmRights(fds) = message { Some(fds) } else { None })
        .flatten()
        .collect();
    Ok(Some((serde_json::from_str(str::from_utf8(&text[..received.bytes]).map_err(io::Error::other)?)?, descriptors)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_arrives_with_its_descriptors() {
        let (ours, theirs) = pair().unwrap();
        let pipe = pipeio::pipe::Pipe::new().unwrap();
        let assignment = Assignment {
            role: EndRole::Sink,
            parent: 1,
            pair: 3,
            line: 7,
            pin: Some(Cpu(1)),
            job: Job::default(),
            seed: 9,
            handles: vec![Wire::Queue(3)],
            folder: None,
        };
        send(&ours, &assignment, &[pipe.reader.as_fd(), pipe.writer.as_fd()]).unwrap();
        let (received, descriptors) = receive::<Assignment>(&theirs).unwrap().unwrap();
        assert_eq!((received.role, received.job), (EndRole::Sink, Job::default()));
        assert_eq!(descriptors.len(), 2);
        rustix::io::write(&descriptors[1], b"x").unwrap();
        assert_eq!(pipeio::pipe::fill(&pipe.reader).unwrap(), 1);
    }

    #[test]
    fn a_lost_peer_is_no_message() {
        let (ours, theirs) = pair().unwrap();
        drop(ours);
        assert!(receive::<Assignment>(&theirs).unwrap().is_none());
    }
}
