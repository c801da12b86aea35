//! What two descriptors are, and the ways between them.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat, makedev};
use rustix::net::sockopt::{socket_domain, socket_type};
use rustix::net::{AddressFamily, SocketType};
use rustix::termios::isatty;

use super::Method;

/// What a descriptor is, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Pipe,
    /// A pipe whose writer asked for packets (O_DIRECT).
    PacketPipe,
    File,
    /// A socket that carries a stream.
    Stream,
    /// A Unix socket that carries datagrams. Nothing but an empty one ends them.
    Datagrams,
    /// A Unix socket that carries messages in a connection.
    Messages,
    /// A socket whose messages may get lost without a word.
    Lossy,
    Null,
    /// The side of a pseudo-terminal on which a person or program sits. Its end is EIO.
    TerminalMaster,
    /// A terminal or another device.
    Device,
}

impl Kind {
    pub(super) fn of(fd: BorrowedFd<'_>) -> io::Result<Kind> {
        let stat = fstat(fd)?;
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::Fifo if fcntl_getfl(fd)?.contains(OFlags::DIRECT) => Kind::PacketPipe,
            FileType::Fifo => Kind::Pipe,
            FileType::RegularFile | FileType::BlockDevice => Kind::File,
            FileType::Socket => match (socket_type(fd)?, socket_domain(fd)?) {
                (SocketType::STREAM, _) => Kind::Stream,
                (SocketType::DGRAM, AddressFamily::UNIX) => Kind::Datagrams,
                (SocketType::SEQPACKET, AddressFamily::UNIX) => Kind::Messages,
                _ => Kind::Lossy,
            },
            FileType::CharacterDevice if stat.st_rdev == makedev(1, 3) => Kind::Null,
            FileType::CharacterDevice if stat.st_rdev == makedev(5, 2) && isatty(fd) => Kind::TerminalMaster,
            _ => Kind::Device,
        })
    }

    pub(super) fn has_messages(self) -> bool {
        matches!(self, Kind::Datagrams | Kind::Messages)
    }
}

/// The ways to try between two descriptors, the fastest first. Read and write are the last resort and not listed: they hold
/// a lock only while they copy.
pub(super) fn ways(input: Kind, output: Kind) -> &'static [Method] {
    match (input, output) {
        // Between two pipes the kernel waits with neither of them locked, and /dev/null takes everything at once.
        (Kind::Pipe, Kind::Pipe | Kind::Null) => &[Method::Splice],
        // The lock is held while the other side is waited for: a peer for ever, a disk or the server behind a file system
        // for long. So it has to be the lock of a pipe that nobody else has.
        (Kind::Pipe, Kind::File | Kind::Stream)
        | (Kind::File | Kind::Stream, Kind::Pipe)
        | (Kind::Stream, Kind::File | Kind::Stream) => &[Method::SpliceThroughPipe],
        // No pipe takes part.
        (Kind::File, Kind::File) => &[Method::CopyFileRange, Method::Sendfile],
        // The pipe inside sendfile belongs to the calling thread.
        (Kind::File, Kind::Stream | Kind::Null) => &[Method::Sendfile],
        // What /dev/null takes is gone at once: reading a socket's bytes costs less than moving its pages. Messages and packets
        // would be joined. The end of a terminal's input is a read of nothing, after which it goes on:
        // it must be met exactly once. From other devices the kernel would copy into new pages: no gain over a buffer that
        // stays in cache.
        _ => &[],
    }
}
