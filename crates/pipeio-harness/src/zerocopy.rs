//! MSG_ZEROCOPY: a TCP socket takes references to the pages of a block, as vmsplice does for a pipe, and says afterwards,
//! on the socket's error queue, when it is done with them.
//!
//! Fresh blocks cycle through memory that is not written to again before the kernel has said so. Prepared content is never
//! changed. Where the bytes stay on this machine, or the device cannot gather them, the kernel copies nevertheless and
//! admits it: [`Sender::note`] tells. See msg_zerocopy.rst in the kernel's documentation.

use std::collections::VecDeque;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use crate::buffer::{Buffer, BytesMut, Region, check_block};
use crate::send::{Content, Moved, SendOptions, Sender, only_fresh, only_prepared, prepared_already};
use crate::wait::Wait;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketType, sockopt};

use crate::{errno_of, result_of};

/// How much memory fresh blocks cycle through, rounded up to whole blocks, at least two. Below the 8 MiB of locked memory
/// that an unprivileged user commonly has, to which pages in flight are charged.
const RING_BYTES: usize = 4 << 20;

/// Sends under way after which completions are collected, lest the socket run out of room for them
/// (/proc/sys/net/core/optmem_max).
const COLLECT_AT: usize = 32;

/// The kernel's ENOTSUPP, which is not in errno(3): what it says for sockets that have no SO_ZEROCOPY.
const ENOTSUPP: i32 = 524;

/// A sender for the connected stream socket `fd`, usually TCP; what receives is any receiver of a stream. `align` applies
/// to prepared content only. `calls` counts what collects completions too.
///
/// # Errors
/// `Unsupported` when this kernel has no MSG_ZEROCOPY for such a socket; when the memory cannot be had. Sending fails with
/// `OutOfMemory` for a block that the limits on locked memory (`ulimit -l`) or on the socket's own never let through.
pub fn sender(fd: OwnedFd, options: &SendOptions) -> io::Result<Box<dyn Sender + Send>> {
    check_block(options.block)?;
    if sockopt::socket_type(&fd)? != SocketType::STREAM {
        return Err(crate::invalid("zero-copy sends need a stream socket"));
    }
    enable(&fd)?;
    options.wait.configure(&fd)?;
    let memory = match options.content {
        Content::Prepared => ProbedMemory::Prepared(options.buffer()?),
        Content::Fresh => {
            let two = options.block.checked_mul(2).ok_or(io::ErrorKind::OutOfMemory)?;
            let mut region = Region::new(RING_BYTES.max(two), options.pages)?;
            // Touched now, so that no fault is left for later.
            region.bytes_mut().fill(0);
            ProbedMemory::Fresh(ProbeRing { region, head: 0, tail: 0 })
        }
    };
    let flight = Flight { first: 0, sends: VecDeque::new(), completed: 0, copied: 0 };
    Ok(Box::new(ZeroCopySender {
        fd,
        wait: options.wait,
        block: options.block,
        memory,
        prepared: false,
        flight,
        calls: 0,
    }))
}

fn enable(fd: &OwnedFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    let on = ptr::from_ref(&on).cast();
    // SAFETY: the pointer is to an int of the size that is told.
    let result = result_of(unsafe { libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ZEROCOPY, on, size) });
    result.map(drop).map_err(|error| match error.raw_os_error() {
        Some(ENOTSUPP | libc::EOPNOTSUPP | libc::ENOPROTOOPT) => io::Error::new(
            io::ErrorKind::Unsupported,
            "this kernel has no MSG_ZEROCOPY for this kind of socket; use TCP on Linux 4.14 or later",
        ),
        _ => error,
    })
}

enum ProbedMemory {
    Prepared(Buffer),
    Fresh(ProbeRing),
}

/// Positions count bytes since the start; their place is their remainder by the region's length.
struct ProbeRing {
    region: Region,
    /// Where the next block begins, if it fits before the end of the region.
    head: u64,
    /// All before it is done with.
    tail: u64,
}

impl ProbeRing {
    /// Where a block of `len` bytes goes next, in one piece.
    fn place(&self, len: usize) -> u64 {
        let capacity = self.region.len() as u64;
        let before_end = capacity - self.head % capacity;
        if len as u64 > before_end { self.head + before_end } else { self.head }
    }

    fn bytes(&mut self, position: u64, len: usize) -> &mut [u8] {
        let start = (position % self.region.len() as u64) as usize;
        &mut self.region.bytes_mut()[start..start + len]
    }
}

/// Sends that the kernel has not said to be done with. It numbers them from 0, one for each call that sent anything.
struct Flight {
    /// The number of the first in the queue.
    first: u32,
    /// Where in the ring each ends, and whether it is done.
    sends: VecDeque<(u64, bool)>,
    completed: u64,
    copied: u64,
}

impl Flight {
    /// Takes note that the sends `low` to `high` are done; returns up to where the ring is free now.
    fn complete(&mut self, low: u32, high: u32, copied: bool) -> Option<u64> {
        let from = low.wrapping_sub(self.first) as usize;
        let count = high.wrapping_sub(low) as usize + 1;
        for (_, done) in self.sends.iter_mut().skip(from).take(count) {
            if !std::mem::replace(done, true) {
                self.completed += 1;
                self.copied += u64::from(copied);
            }
        }
        let mut free = None;
        while let Some(&(end, true)) = self.sends.front() {
            self.sends.pop_front();
            self.first = self.first.wrapping_add(1);
            free = Some(end);
        }
        free
    }
}

struct ZeroCopySender {
    fd: OwnedFd,
    wait: Wait,
    block: usize,
    memory: ProbedMemory,
    /// Prepared content is set, or in flight as it was.
    prepared: bool,
    flight: Flight,
    /// Calls that waiting for the memory of the next block took.
    calls: u32,
}

impl ZeroCopySender {
    /// Collects the completions that are there; returns whether there were any.
    fn collect(&mut self, calls: &mut u32) -> io::Result<bool> {
        let mut any = false;
        loop {
            *calls += 1;
            match completion(&self.fd) {
                Ok(Some(Completion { low, high, copied })) => {
                    any = true;
                    if let (Some(free), ProbedMemory::Fresh(ring)) =
                        (self.flight.complete(low, high, copied), &mut self.memory)
                    {
                        ring.tail = free;
                    }
                    if self.flight.sends.is_empty() {
                        return Ok(any);
                    }
                }
                Ok(None) => any = true,
                Err(Errno::AGAIN) => return Ok(any),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits for something to happen: a completion, an error, or, if `room`, for room to send.
    fn pause(&mut self, room: bool, calls: &mut u32) -> io::Result<()> {
        if self.collect(calls)? {
            return Ok(());
        }
        if self.wait == Wait::Spin {
            std::hint::spin_loop();
            return Ok(());
        }
        // What is on the error queue is an error to poll(2), which it tells unasked.
        let events = if room { PollFlags::OUT } else { PollFlags::empty() };
        *calls += 1;
        let mut polled = [PollFd::new(&self.fd, events)];
        match poll(&mut polled, None) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let happened = polled[0].revents();
        if happened.intersects(PollFlags::ERR | PollFlags::HUP) && !self.collect(calls)? {
            *calls += 1;
            sockopt::socket_error(&self.fd)??;
            if happened.contains(PollFlags::HUP) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
        }
        Ok(())
    }

    /// Waits until no send under way needs the place of the next `len` bytes; returns the place.
    fn place(&mut self, len: usize, calls: &mut u32) -> io::Result<u64> {
        loop {
            let ProbedMemory::Fresh(ring) = &mut self.memory else { return Ok(0) };
            let start = ring.place(len);
            if self.flight.sends.is_empty() {
                ring.tail = start;
            }
            if start + len as u64 - ring.tail <= ring.region.len() as u64 {
                return Ok(start);
            }
            self.pause(false, calls)?;
        }
    }
}

impl Sender for ZeroCopySender {
    fn prepare(&mut self, fill: &mut dyn FnMut(u64, &mut [u8])) -> io::Result<()> {
        match &mut self.memory {
            ProbedMemory::Prepared(_) if std::mem::replace(&mut self.prepared, true) => Err(prepared_already()),
            ProbedMemory::Prepared(buffer) => {
                fill(0, buffer.bytes_mut());
                Ok(())
            }
            ProbedMemory::Fresh(_) => Err(only_fresh()),
        }
    }

    fn fresh(&mut self, len: usize) -> io::Result<BytesMut<'_>> {
        assert!(len <= self.block, "a block of {len} bytes from a sender of blocks of {}", self.block);
        let mut calls = 0;
        let start = self.place(len, &mut calls)?;
        self.calls += calls;
        match &mut self.memory {
            ProbedMemory::Fresh(ring) => Ok(ring.bytes(start, len).into()),
            ProbedMemory::Prepared(_) => Err(only_prepared()),
        }
    }

    fn send(&mut self, len: usize) -> io::Result<Moved> {
        assert!(len <= self.block, "a block of {len} bytes from a sender of blocks of {}", self.block);
        self.prepared = true;
        let mut moved = Moved { bytes: 0, calls: std::mem::take(&mut self.calls) };
        let start = self.place(len, &mut moved.calls)?;
        let flags = SendFlags::NOSIGNAL | SendFlags::from_bits_retain(libc::MSG_ZEROCOPY.cast_unsigned());
        while moved.bytes < len {
            if self.flight.sends.len() >= COLLECT_AT {
                self.collect(&mut moved.calls)?;
            }
            let bytes = match &mut self.memory {
                ProbedMemory::Prepared(buffer) => &buffer.bytes()[moved.bytes..len],
                ProbedMemory::Fresh(ring) => &ring.bytes(start, len)[moved.bytes..],
            };
            moved.calls += 1;
            match rustix::net::send(&self.fd, bytes, flags) {
                Ok(sent) => {
                    moved.bytes += sent;
                    let end = start + moved.bytes as u64;
                    self.flight.sends.push_back((end, false));
                    if let ProbedMemory::Fresh(ring) = &mut self.memory {
                        ring.head = end;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.pause(true, &mut moved.calls)?,
                // Too much is under way, for the socket or for the user's locked memory.
                Err(Errno::NOBUFS) if !self.flight.sends.is_empty() => self.pause(false, &mut moved.calls)?,
                Err(Errno::NOBUFS) => {
                    let message = format!(
                        "a zero-copy send of {} bytes is above the limit on locked memory (ulimit -l) or on the socket's \
                         own (/proc/sys/net/core/optmem_max); use smaller blocks or raise it",
                        bytes.len()
                    );
                    return Err(io::Error::new(io::ErrorKind::OutOfMemory, message));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(moved)
    }

    fn finish(&mut self) -> io::Result<()> {
        // The pages stay with the kernel as long as it needs them, whatever becomes of our mapping: nothing to wait for.
        self.collect(&mut 0)?;
        Ok(())
    }

    fn note(&self) -> Option<String> {
        let Flight { completed, copied, .. } = self.flight;
        // No counts: they would differ from run to run, and the note is one about all of them.
        let share = if copied == completed { "every zero-copy send" } else { "some of the zero-copy sends" };
        (copied > 0).then(|| format!("the kernel copied {share} nevertheless, as it does on loopback"))
    }
}

/// That the sends of these numbers are done.
struct Completion {
    low: u32,
    high: u32,
    copied: bool,
}

/// The next message from the error queue; `None` for one that is not about zero copy. Never waits: `AGAIN` when the queue
/// is empty.
fn completion(fd: &OwnedFd) -> Result<Option<Completion>, Errno> {
    // Aligned as a control message has to be, and larger than the one or two that come.
    let mut control = [0u64; 32];
    // SAFETY: every field of a msghdr is an integer or a pointer, for which zero is valid.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the message has no bytes to be received, and room for control messages of the size that it says.
    errno_of(unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, libc::MSG_ERRQUEUE) })?;
    let wanted = size_of::<libc::sock_extended_err>();
    // SAFETY: the message is one that recvmsg filled in.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    while !header.is_null() {
        // SAFETY: it is not null, so it points to a whole header within the control messages, which live on.
        let libc::cmsghdr { cmsg_len, cmsg_level, cmsg_type, .. } = unsafe { header.read() };
        let about_errors = [(libc::SOL_IP, libc::IP_RECVERR), (libc::SOL_IPV6, libc::IPV6_RECVERR)];
        // SAFETY: only a length is computed.
        let whole = cmsg_len >= unsafe { libc::CMSG_LEN(wanted as u32) } as usize;
        if about_errors.contains(&(cmsg_level, cmsg_type)) && whole {
            // SAFETY: the header is valid, and what it heads is behind it.
            let data = unsafe { libc::CMSG_DATA(header) };
            // SAFETY: it was found to be long enough, and all its fields are integers.
            let error = unsafe { data.cast::<libc::sock_extended_err>().read_unaligned() };
            if error.ee_origin == SO_EE_ORIGIN_ZEROCOPY && error.ee_errno == 0 {
                let copied = error.ee_code & SO_EE_CODE_ZEROCOPY_COPIED != 0;
                return Ok(Some(Completion { low: error.ee_info, high: error.ee_data, copied }));
            }
        }
        // SAFETY: both are of the message that recvmsg filled in.
        header = unsafe { libc::CMSG_NXTHDR(&raw const message, header) };
    }
    Ok(None)
}

/// From linux/errqueue.h: what a message is about, and that the kernel had to copy.
const SO_EE_ORIGIN_ZEROCOPY: u8 = 5;
const SO_EE_CODE_ZEROCOPY_COPIED: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn flight(first: u32, ends: &[u64]) -> Flight {
        Flight { first, sends: ends.iter().map(|&end| (end, false)).collect(), completed: 0, copied: 0 }
    }

    #[test]
    fn memory_is_free_only_up_to_the_first_send_under_way() {
        let mut flight = flight(7, &[10, 20, 30, 40]);
        assert_eq!(flight.complete(8, 9, false), None);
        assert_eq!(flight.complete(7, 7, true), Some(30));
        assert_eq!((flight.first, flight.sends.len(), flight.completed, flight.copied), (10, 1, 3, 1));
        assert_eq!(flight.complete(7, 9, true), None, "told twice");
        assert_eq!(flight.completed, 3);
    }

    #[test]
    fn numbers_of_sends_wrap_around() {
        let mut flight = flight(u32::MAX - 1, &[10, 20, 30, 40]);
        assert_eq!(flight.complete(u32::MAX - 1, 0, false), Some(30));
        assert_eq!(flight.first, 1);
        assert_eq!(flight.complete(1, 1, false), Some(40));
    }
}
