//! What the parent tells an end, what the end answers, and the socket both travel on.
//!
//! An end is this program started again with one socket as its standard input. The first message is its assignment, with
//! the descriptors it needs attached; the last is the end's reply. Nothing is inherited, so nothing can leak between runs.

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

/// The word that makes this program an end of a run.
pub const END_VERB: &str = "__end";

/// The largest message: a reply with 1,024 CPUs fits many times over, and so does the kernel's default socket buffer.
const MESSAGE: usize = 64 << 10;

/// The most descriptors attached to a message.
const DESCRIPTORS: usize = 4;

/// What an end does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndRole {
    /// Writes into the link.
    Source,
    /// Reads from the link.
    Sink,
    /// Copies within itself: the memory-copy limit.
    Copy,
    /// Makes a link that has a name, and removes it.
    Keeper,
}

impl EndRole {
    /// The word for people.
    pub fn name(self) -> &'static str {
        match self {
            EndRole::Source => "source",
            EndRole::Sink => "sink",
            EndRole::Copy => "copying process",
            EndRole::Keeper => "keeper of the link",
        }
    }
}

/// Everything an end has to know. The shared page and the links' descriptors come attached, in this order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Assignment {
    /// What to do.
    pub role: EndRole,
    /// The process that waits for the reply.
    pub parent: u32,
    /// What is measured.
    pub job: Job,
    /// Which pair it belongs to, from 0.
    pub pair: u32,
    /// Which line of the shared page is its own.
    pub line: usize,
    /// The one CPU to run on, or all that are allowed.
    pub pin: Option<Cpu>,
    /// Content and delays are drawn from this.
    pub seed: u64,
    /// The link's end, and for round trips that of the link back.
    pub handles: Vec<Wire>,
    /// Where a keeper may make a folder.
    pub folder: Option<PathBuf>,
}

/// What the kernel granted to a link.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Granted {
    /// The most bytes of one message, where there is a limit.
    pub message_limit: Option<u64>,
    /// Send and receive buffer in bytes, of sockets.
    pub buffers: Option<(u64, u64)>,
}

/// A link's handle in a message; descriptors travel attached, in the same order.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// The next descriptor.
    Fd,
    /// A System V queue.
    Queue(i32),
    /// No handle.
    Nothing,
}

impl Wire {
    /// What stands for `handle` in a message.
    pub fn of(handle: &Handle) -> Wire {
        match handle {
            Handle::Fd(_) => Wire::Fd,
            Handle::Queue(id) => Wire::Queue(*id),
            Handle::Nothing => Wire::Nothing,
        }
    }

    /// The handle, with the next of the descriptors that came along.
    ///
    /// # Errors
    /// When there are too few.
    pub fn handle(self, descriptors: &mut impl Iterator<Item = OwnedFd>) -> io::Result<Handle> {
        Ok(match self {
            Wire::Fd => Handle::Fd(descriptors.next().ok_or(io::ErrorKind::InvalidData)?),
            Wire::Queue(id) => Handle::Queue(id),
            Wire::Nothing => Handle::Nothing,
        })
    }
}

/// An end's last word.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// It did its part.
    Done(Box<Done>),
    /// A keeper has made its link: what goes into it, what comes out, and what the kernel granted.
    Made(Wire, Wire, Granted),
    /// It cannot be done on this machine: the reason, as a sentence.
    NotHere(String),
    /// It could not: the reason, as a sentence.
    Failed(String),
}

impl Reply {
    /// What is to be said of an error: `who` and a space, or nothing, goes in front of a failure.
    pub fn of(error: &io::Error, who: &str) -> Reply {
        if link::not_here(error) {
            Reply::NotHere(error.to_string())
        } else {
            Reply::Failed(format!("{who}{}", explained(error)))
        }
    }
}

/// What an end measured.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Done {
    /// The figures.
    pub stats: EndStats,
    /// Capacity of the link before the run and after it, where it has one.
    pub capacity: Option<(u64, u64)>,
    /// The first byte that was not what it should have been.
    pub fault: Option<String>,
    /// Bytes newly written, warm-up included.
    pub made: u64,
    /// Bytes read, likewise.
    pub looked: u64,
    /// Of a sink with several writers, how many of their records others cut, in per cent.
    pub interleaved_percent: Option<f64>,
    /// Round trips, of a source in latency mode.
    pub latency: Option<Latency>,
    /// What the sender has to say about how its bytes went.
    pub note: Option<String>,
    /// Bytes of this process on huge pages, if they were asked for.
    pub huge_bytes: Option<u64>,
}

/// The descriptor of a handle, to be attached to a message.
pub fn descriptor(handle: &Handle) -> Option<BorrowedFd<'_>> {
    if let Handle::Fd(fd) = handle { Some(fd.as_fd()) } else { None }
}

/// A connected pair of sockets that keep messages apart.
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

/// Receives one message and what is attached to it; `None` if the other side is gone.
pub fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut text = vec![0; MESSAGE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(&socket, &mut [IoSliceMut::new(&mut text)], &mut control, RecvFlags::CMSG_CLOEXEC)
    });
    let received = match received {
        Ok(received) => received,
        // An end that was killed before it read its assignment.
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
