//! The types of descriptors, and the methods between any two.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat, makedev};
use rustix::net::sockopt::{socket_domain, socket_type};
use rustix::net::{AddressFamily, SocketType};
use rustix::termios::isatty;

/// A way to move bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// splice(2): page references move from one pipe to the other.
    Splice,
    /// splice(2) into a private pipe and out again: while the relay waits for one side, it holds no lock that other
    /// processes need.
    SpliceThroughPipe,
    /// copy_file_range(2): the file system copies extents, or shares them.
    CopyFileRange,
    /// sendfile(2): a file's pages move.
    Sendfile,
    /// read(2) and write(2): every byte is copied twice. Works everywhere.
    ReadWrite,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Method::Splice => "splice",
            Method::SpliceThroughPipe => "splice through a pipe",
            Method::CopyFileRange => "copy_file_range",
            Method::Sendfile => "sendfile",
            Method::ReadWrite => "read and write",
        })
    }
}

/// A descriptor's type, as far as it matters for copying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Pipe,
    /// A pipe in packet mode (O_DIRECT).
    PacketPipe,
    File,
    /// A socket that carries a stream of bytes.
    Stream,
    /// A Unix socket that carries datagrams. Only an empty datagram ends its input.
    Datagrams,
    /// A Unix socket that carries messages over a connection (SOCK_SEQPACKET).
    Messages,
    /// A socket that may lose messages silently.
    Lossy,
    Null,
    /// The master side of a pseudo-terminal, which reports the end of its input as EIO.
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

/// The methods to try between two descriptors, the fastest first. Read and write are not listed: they are always tried
/// last, and hold a pipe's lock only while they copy.
pub(super) fn methods(input: Kind, output: Kind) -> &'static [Method] {
    match (input, output) {
        // Between two pipes the kernel waits without holding either pipe's lock. For /dev/null it never waits.
        (Kind::Pipe, Kind::Pipe | Kind::Null) => &[Method::Splice],
        // The kernel holds the pipe's lock while it waits for the other side. Waiting for a socket's peer may take
        // forever, and waiting for a disk or a file server may take long. So bytes pass through a private pipe, which
        // no other process uses.
        (Kind::Pipe, Kind::File | Kind::Stream)
        | (Kind::File | Kind::Stream, Kind::Pipe)
        | (Kind::Stream, Kind::File | Kind::Stream) => &[Method::SpliceThroughPipe],
        // No pipe is involved.
        (Kind::File, Kind::File) => &[Method::CopyFileRange, Method::Sendfile],
        // The pipe inside sendfile belongs to the calling thread.
        (Kind::File, Kind::Stream | Kind::Null) => &[Method::Sendfile],
        // /dev/null discards bytes at once, so reading a socket costs less than moving its pages. Splice would join
        // messages and packets. A terminal's end of input is an empty read after which more may follow, so it must be
        // read exactly once. From other devices the kernel would copy the bytes into new pages, which is no faster than
        // a buffer that stays in the cache.
        _ => &[],
    }
}
