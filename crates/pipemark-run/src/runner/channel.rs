//! Messages between the parent and the processes of a run, called ends, and the socket that carries the messages.
//!
//! An end executes this program again, with the socket as its standard input. The first message is the end's
//! assignment, with the required descriptors attached. The last message is the end's reply. The end inherits no other
//! descriptor, so no descriptor leaks from one run to the next.

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

/// The largest message in bytes. A reply for 1,024 CPUs is far smaller, and the kernel's default socket buffer is far
/// larger.
const MESSAGE: usize = 64 << 10;

/// The largest number of descriptors attached to a message.
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
    /// Creates a link that has a name, and later removes the link.
    Keeper,
}

impl EndRole {
    /// The role's name in messages to the user.
    pub fn name(self) -> &'static str {
        match self {
            EndRole::Source => "source",
            EndRole::Sink => "sink",
            EndRole::Copy => "copying process",
            EndRole::Keeper => "keeper of the link",
        }
    }
}

/// The assignment of an end. The attached descriptors are the shared page, then the handles of the links.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Assignment {
    /// The end's role.
    pub role: EndRole,
    /// The pid of the process that waits for the reply. The end dies with that process.
    pub parent: u32,
    /// The job to measure.
    pub job: Job,
    /// The index of the end's pair, from 0.
    pub pair: u32,
    /// The index of the end's line in the shared page.
    pub line: usize,
    /// The only CPU to run on; `None` allows all.
    pub pin: Option<Cpu>,
    /// The seed for the content and the delays.
    pub seed: u64,
    /// The end's handle of the link. For round trips, the end's handle of the return link follows.
    pub handles: Vec<Wire>,
    /// The directory that a keeper creates; `None` if it needs none.
    pub directory: Option<PathBuf>,
}

/// The limits that the kernel granted to a link.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Granted {
    /// The largest message in bytes; `None` if messages aren't limited.
    pub message_limit: Option<u64>,
    /// Sizes of a socket's send and receive buffer in bytes; `None` for other links.
    pub buffers: Option<(u64, u64)>,
}

/// A link's handle within a message. The handle's descriptor, if any, is attached to the message. Descriptors have the
/// same order as handles.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// The next attached descriptor.
    Fd,
    /// The identifier of a System V queue.
    Queue(i32),
    /// No handle.
    Nothing,
}

impl Wire {
    /// Converts a handle to its form in a message.
    pub fn of(handle: &Handle) -> Wire {
        match handle {
            Handle::Fd(_) => Wire::Fd,
            Handle::Queue(id) => Wire::Queue(*id),
            Handle::Nothing => Wire::Nothing,
        }
    }

    /// Converts back to a handle. [`Wire::Fd`] takes the next attached descriptor.
    ///
    /// # Errors
    /// If no descriptor is left.
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
    /// The job isn't possible on this machine. The text is the reason, as a sentence.
    NotHere(String),
    /// The end failed. The text is the reason, as a sentence.
    Failed(String),
}

impl Reply {
    /// Converts an error to a reply. The sentence of a failure begins with `who`.
    pub fn of(error: &io::Error, who: &str) -> Reply {
        if link::not_here(error) {
            Reply::NotHere(error.to_string())
        } else {
            Reply::Failed(format!("{who}{}", explained(error)))
        }
    }
}

/// The measurements of an end.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Done {
    /// The end's statistics.
    pub stats: EndStats,
    /// Capacity of the link in bytes, before and after the run; `None` if the link has no capacity.
    pub capacity: Option<(u64, u64)>,
    /// A description of the first wrong byte; `None` if all bytes were right.
    pub fault: Option<String>,
    /// Number of bytes newly written, including warm-up.
    pub written: u64,
    /// Number of bytes read by the CPU, including warm-up.
    pub read: u64,
    /// For a sink with several writers, the percentage of records split by other writers' bytes; otherwise `None`.
    pub interleaved_percent: Option<f64>,
    /// The round trips; `None` except for a source in latency mode.
    pub latency: Option<Latency>,
    /// How the sender sent its bytes, as a note; `None` if it sent them as requested.
    pub note: Option<String>,
    /// The memory of this process on huge pages, in bytes; `None` if huge pages weren't requested.
    pub huge_bytes: Option<u64>,
}

/// The descriptor of a handle, to attach to a message; `None` if the handle has none.
pub fn descriptor(handle: &Handle) -> Option<BorrowedFd<'_>> {
    if let Handle::Fd(fd) = handle { Some(fd.as_fd()) } else { None }
}

/// A connected pair of sockets that preserve message boundaries.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends a message with descriptors attached.
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

/// Receives a message with the attached descriptors; `None` if the other side has closed the socket.
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
            directory: None,
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
