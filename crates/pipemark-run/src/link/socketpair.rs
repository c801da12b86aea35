//! A UNIX stream socket pair. Also sets the buffer sizes of all sockets.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};

use pipemark_model::Ends;

use crate::link::{Handles, Link};

pub struct Socketpair;

impl Link for Socketpair {
    fn is_plain(&self) -> bool {
        true
    }

    fn connect(&self, params: &Ends, _: &Path) -> io::Result<Handles> {
        with_buffers(pair(SocketType::STREAM)?, params)
    }
}

/// A connected, unnamed pair of UNIX sockets.
pub fn pair(kind: SocketType) -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?)
}

/// Requests buffer sizes of connected sockets, and returns the granted sizes.
///
/// The kernel limits the request (net.core.wmem_max, rmem_max) and doubles it for its own bookkeeping.
pub fn with_buffers((source, sink): (OwnedFd, OwnedFd), params: &Ends) -> io::Result<Handles> {
    if let Some(size) = params.buffer {
        sockopt::set_socket_send_buffer_size(&source, size.as_usize())?;
        sockopt::set_socket_recv_buffer_size(&sink, size.as_usize())?;
    }
    let buffers = (sockopt::socket_send_buffer_size(&source)?, sockopt::socket_recv_buffer_size(&sink)?);
    Ok(Handles { buffers: Some((buffers.0 as u64, buffers.1 as u64)), ..Handles::new(source, sink) })
}
