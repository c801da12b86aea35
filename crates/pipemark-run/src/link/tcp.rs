//! TCP over the loopback device. Any process on the machine can connect to the port while it is open. So a connection
//! is accepted only if its peer address is the address of our own socket.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use pipemark_model::{Ends, SendMethod, counted};

use crate::link::{BoxSender, Handle, Handles, Link, options, socketpair, stream};

pub struct Tcp;

/// How long other processes may prevent our connection before the port counts as flooded.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

impl Link for Tcp {
    fn is_plain(&self) -> bool {
        true
    }

    fn connect(&self, params: &Ends, _: &Path) -> io::Result<Handles> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let (source, sink) = connect_to_self(&listener)?;
        // Sends a block when it is complete, even if earlier blocks are not yet acknowledged.
        source.set_nodelay(true)?;
        sink.set_nodelay(true)?;
        socketpair::with_buffers((source.into(), sink.into()), params)
    }

    fn sender(&self, end: Handle, params: &Ends) -> io::Result<BoxSender> {
        match params.send {
            SendMethod::Zerocopy => pipeio_harness::zerocopy::sender(end.fd()?, &options::send(params)),
            _ => stream::sender(end, params),
        }
    }
}

/// Connects to our own listener, and accepts connections until ours arrives. Other processes may have filled the
/// listener's queue, and we can't connect until their connections are accepted and dropped. So neither step may wait
/// for the other.
fn connect_to_self(listener: &TcpListener) -> io::Result<(TcpStream, TcpStream)> {
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let source =
        socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    match rustix::net::connect(&source, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let source = TcpStream::from(source);
    // The address is set as soon as connecting begins. No other socket has this address in the meantime.
    let ours = source.local_addr()?;
    let begin = Instant::now();
    let (mut strangers, mut sink) = (0usize, None);
    while let Some(left) = CONNECT_TIMEOUT.checked_sub(begin.elapsed()) {
        // A connection of another process is refused by dropping it.
        match listener.accept() {
            Ok((accepted, peer)) if peer == ours => {
                sink = Some(accepted);
                break;
            }
            Ok(_) => strangers += 1,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let left = Timespec::try_from(left).map_err(io::Error::other)?;
                retry_on_intr(|| poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&left)))?;
            }
            // The other process is already gone, or a signal arrived.
            Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    let Some(sink) = sink else {
        let flood = format!(
            "{} of other programs arrived at the port within {CONNECT_TIMEOUT:?}, but none of pipemark's own; try again",
            counted(strangers, "connection")
        );
        return Err(io::Error::other(flood));
    };
    source.set_nonblocking(false)?;
    Ok((source, sink))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_connection_from_another_process_is_rejected() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let mut strangers: Vec<TcpStream> = (0..5).map(|_| TcpStream::connect(address).unwrap()).collect();
        strangers[0].write_all(b"injected").unwrap();
        let (mut source, mut sink) = connect_to_self(&listener).unwrap();
        source.write_all(b"ours").unwrap();
        drop(source);
        let mut arrived = Vec::new();
        sink.read_to_end(&mut arrived).unwrap();
        assert_eq!(arrived, b"ours");
        // The other process's connection was reset or closed, and no byte was sent.
        assert!(matches!(strangers[0].read(&mut [0; 8]), Ok(0) | Err(_)));
    }
    #[test]
    fn a_full_queue_does_not_prevent_the_connection() {
        // If the queue is full, the kernel doesn't answer new connections.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let address = listener.local_addr().unwrap();
        let stranger = TcpStream::connect(address).unwrap();
        let (mut source, mut sink) = connect_to_self(&listener).unwrap();
        source.write_all(b"ours").unwrap();
        drop((source, stranger));
        let mut arrived = Vec::new();
        sink.read_to_end(&mut arrived).unwrap();
        assert_eq!(arrived, b"ours");
    }
}
