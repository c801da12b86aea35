//! MSG_ZEROCOPY: a TCP socket takes references to the pages of a block, as vmsplice does for a pipe. Later the socket
//! reports on its error queue that it no longer needs the pages.
//!
//! Memory of fresh blocks is written again only after that report. Prepared content never changes. If the bytes stay on
//! this machine or the device can't gather pages, the kernel copies the bytes anyway and reports that it did
//! ([`Sender::note`]). See msg_zerocopy.rst in the kernel's documentation.

use std::collections::VecDeque;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use crate::buffer::{Buffer, BytesMut, Region, check_block};
use crate::send::{BlockContent, Moved, SendOptions, Sender, only_fresh, only_prepared, prepared_already};
use crate::wait::Wait;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketType, sockopt};

use crate::{errno_of, result_of};

/// Bytes of memory that is used in turn for fresh blocks; at least two blocks. The size is below 8 MiB, the common
/// limit on an unprivileged user's locked memory, because pages in flight count as locked.
const RING_BYTES: usize = 4 << 20;

/// Once this many sends are in flight, completions are collected, so that the socket has room for more completions
/// (/proc/sys/net/core/optmem_max).
const COLLECT_AT: usize = 32;

/// The kernel's ENOTSUPP, which is not in errno(3): its error for sockets without SO_ZEROCOPY.
const ENOTSUPP: i32 = 524;

/// Creates a sender for the connected stream socket `fd`, usually TCP. Any receiver of a stream can be at its other
/// end. `align` applies only to prepared content. `calls` includes the calls that collect completions.
///
/// # Errors
/// `Unsupported` if this kernel has no MSG_ZEROCOPY for such a socket. Another error if the memory can't be allocated.
/// Sending fails with `OutOfMemory` for a block above the limit on locked memory (`ulimit -l`) or above the socket's
/// own limit.
pub fn sender(fd: OwnedFd, options: &SendOptions) -> io::Result<Box<dyn Sender + Send>> {
    check_block(options.block)?;
    if sockopt::socket_type(&fd)? != SocketType::STREAM {
        return Err(crate::invalid("zero-copy sends need a stream socket"));
    }
    enable(&fd)?;
    options.wait.configure(&fd)?;
    let memory = match options.content {
        BlockContent::Prepared => SendMemory::Prepared(options.buffer()?),
        BlockContent::Fresh => {
            let two = options.block.checked_mul(2).ok_or(io::ErrorKind::OutOfMemory)?;
            let mut region = Region::new(RING_BYTES.max(two), options.pages)?;
            // Touch all pages now, so that later use causes no page faults.
            region.bytes_mut().fill(0);
            SendMemory::Fresh(SendRing { region, head: 0, tail: 0 })
        }
    };
    let pending = PendingSends { first: 0, sends: VecDeque::new(), completed: 0, copied: 0 };
    Ok(Box::new(ZeroCopySender {
        fd,
        wait: options.wait,
        block: options.block,
        memory,
        prepared: false,
        pending,
        calls: 0,
    }))
}

fn enable(fd: &OwnedFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    let on = ptr::from_ref(&on).cast();
    // SAFETY: the pointer points to an int, and the length passed is that of an int.
    let result = result_of(unsafe { libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ZEROCOPY, on, size) });
    result.map(drop).map_err(|error| match error.raw_os_error() {
        Some(ENOTSUPP | libc::EOPNOTSUPP | libc::ENOPROTOOPT) => io::Error::new(
            io::ErrorKind::Unsupported,
            "this kernel has no MSG_ZEROCOPY for this kind of socket; use TCP on Linux 4.14 or later",
        ),
        _ => error,
    })
}

enum SendMemory {
    Prepared(Buffer),
    Fresh(SendRing),
}

/// The memory of fresh blocks. Positions count bytes since the start. A position modulo the region's length is an
/// offset in the region.
struct SendRing {
    region: Region,
    /// The position of the next block, unless the block would cross the end of the region.
    head: u64,
    /// The kernel no longer needs the bytes before this position.
    tail: u64,
}

impl SendRing {
    /// The position for a block of `len` bytes: the head or, if the region has fewer bytes left, the next start of the
    /// region.
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

/// Sends that the kernel has not completed. The kernel numbers sends from 0, and doesn't count calls that sent no
/// bytes.
struct PendingSends {
    /// The number of the first send in the queue.
    first: u32,
    /// For each send, the position at which it ends, and whether it is complete.
    sends: VecDeque<(u64, bool)>,
    completed: u64,
    /// The number of sends whose bytes the kernel copied.
    copied: u64,
}

impl PendingSends {
    /// Records that the sends `low` to `high` are complete. Returns the position before which the ring is now free;
    /// `None` if that position has not changed.
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
    memory: SendMemory,
    /// Whether prepared content was set or sent, and so must not change.
    prepared: bool,
    pending: PendingSends,
    /// System calls made while waiting for the memory of the next block.
    calls: u32,
}

impl ZeroCopySender {
    /// Collects the completions that have arrived. Returns whether there were any.
    fn collect(&mut self, calls: &mut u32) -> io::Result<bool> {
        let mut any = false;
        loop {
            *calls += 1;
            match completion(&self.fd) {
                Ok(Some(Completion { low, high, copied })) => {
                    any = true;
                    if let (Some(free), SendMemory::Fresh(ring)) =
                        (self.pending.complete(low, high, copied), &mut self.memory)
                    {
                        ring.tail = free;
                    }
                    if self.pending.sends.is_empty() {
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

    /// Waits for a completion or an error. If `room` is set, also waits for room to send.
    fn pause(&mut self, room: bool, calls: &mut u32) -> io::Result<()> {
        if self.collect(calls)? {
            return Ok(());
        }
        if self.wait == Wait::Spin {
            std::hint::spin_loop();
            return Ok(());
        }
        // poll(2) reports a message on the error queue as POLLERR, which need not be requested.
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

    /// Waits until no send in flight uses the memory for the next `len` bytes. Returns their position.
    fn place(&mut self, len: usize, calls: &mut u32) -> io::Result<u64> {
        loop {
            let SendMemory::Fresh(ring) = &mut self.memory else { return Ok(0) };
            let start = ring.place(len);
            if self.pending.sends.is_empty() {
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
            SendMemory::Prepared(_) if std::mem::replace(&mut self.prepared, true) => Err(prepared_already()),
            SendMemory::Prepared(buffer) => {
                fill(0, buffer.bytes_mut());
                Ok(())
            }
            SendMemory::Fresh(_) => Err(only_fresh()),
        }
    }

    fn fresh(&mut self, len: usize) -> io::Result<BytesMut<'_>> {
        assert!(len <= self.block, "a block of {len} bytes is larger than the sender's blocks of {}", self.block);
        let mut calls = 0;
        let start = self.place(len, &mut calls)?;
        self.calls += calls;
        match &mut self.memory {
            SendMemory::Fresh(ring) => Ok(ring.bytes(start, len).into()),
            SendMemory::Prepared(_) => Err(only_prepared()),
        }
    }

    fn send(&mut self, len: usize) -> io::Result<Moved> {
        assert!(len <= self.block, "a block of {len} bytes is larger than the sender's blocks of {}", self.block);
        self.prepared = true;
        let mut moved = Moved { bytes: 0, calls: std::mem::take(&mut self.calls) };
        let start = self.place(len, &mut moved.calls)?;
        let flags = SendFlags::NOSIGNAL | SendFlags::from_bits_retain(libc::MSG_ZEROCOPY.cast_unsigned());
        while moved.bytes < len {
            if self.pending.sends.len() >= COLLECT_AT {
                self.collect(&mut moved.calls)?;
            }
            let bytes = match &mut self.memory {
                SendMemory::Prepared(buffer) => &buffer.bytes()[moved.bytes..len],
                SendMemory::Fresh(ring) => &ring.bytes(start, len)[moved.bytes..],
            };
            moved.calls += 1;
            match rustix::net::send(&self.fd, bytes, flags) {
                Ok(sent) => {
                    moved.bytes += sent;
                    let end = start + moved.bytes as u64;
                    self.pending.sends.push_back((end, false));
                    if let SendMemory::Fresh(ring) = &mut self.memory {
                        ring.head = end;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.pause(true, &mut moved.calls)?,
                // Too many bytes are in flight for the socket, or for the limit on the user's locked memory.
                Err(Errno::NOBUFS) if !self.pending.sends.is_empty() => self.pause(false, &mut moved.calls)?,
                Err(Errno::NOBUFS) => {
                    let message = format!(
                        "a zero-copy send of {} bytes is above the limit on locked memory (ulimit -l) or the socket's own limit (/proc/sys/net/core/optmem_max); use smaller blocks or raise the limit",
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
        // Don't wait: the kernel keeps the pages as long as it needs them, even when our mapping is gone.
        self.collect(&mut 0)?;
        Ok(())
    }

    fn note(&self) -> Option<String> {
        let PendingSends { completed, copied, .. } = self.pending;
        // The note has no counts: counts differ from run to run, but the note is about all runs.
        let share = if copied == completed { "every zero-copy send" } else { "some of the zero-copy sends" };
        (copied > 0).then(|| format!("the kernel copied {share} nevertheless, as it does on loopback"))
    }
}

/// The kernel's report that the sends `low` to `high` are complete.
struct Completion {
    low: u32,
    high: u32,
    copied: bool,
}

/// The next message from the error queue; `None` if it is not about zero copy. Never waits: the error is `AGAIN` if the
/// queue is empty.
fn completion(fd: &OwnedFd) -> Result<Option<Completion>, Errno> {
    // The buffer has the alignment that control messages need, and room for more than the one or two that arrive.
    let mut control = [0u64; 32];
    // SAFETY: every field of a msghdr is an integer or a pointer, for which zero is valid.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the message has no buffer for bytes. It has a buffer for control messages, of the size that the message
    // states.
    errno_of(unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, libc::MSG_ERRQUEUE) })?;
    let wanted = size_of::<libc::sock_extended_err>();
    // SAFETY: recvmsg has filled in the message.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    while !header.is_null() {
        // SAFETY: the pointer is not null, so it points to a whole header within `control`, which is still alive.
        let libc::cmsghdr { cmsg_len, cmsg_level, cmsg_type, .. } = unsafe { header.read() };
        let about_errors = [(libc::SOL_IP, libc::IP_RECVERR), (libc::SOL_IPV6, libc::IPV6_RECVERR)];
        // SAFETY: the call only computes a length.
        let whole = cmsg_len >= unsafe { libc::CMSG_LEN(wanted as u32) } as usize;
        if about_errors.contains(&(cmsg_level, cmsg_type)) && whole {
            // SAFETY: the header is valid, and its data follows it.
            let data = unsafe { libc::CMSG_DATA(header) };
            // SAFETY: the data was checked to be long enough, and all its fields are integers.
            let error = unsafe { data.cast::<libc::sock_extended_err>().read_unaligned() };
            if error.ee_origin == SO_EE_ORIGIN_ZEROCOPY && error.ee_errno == 0 {
                let copied = error.ee_code & SO_EE_CODE_ZEROCOPY_COPIED != 0;
                return Ok(Some(Completion { low: error.ee_info, high: error.ee_data, copied }));
            }
        }
        // SAFETY: the header is from this message, which recvmsg has filled in.
        header = unsafe { libc::CMSG_NXTHDR(&raw const message, header) };
    }
    Ok(None)
}

/// The origin of reports on zero copy: linux/errqueue.h.
const SO_EE_ORIGIN_ZEROCOPY: u8 = 5;
/// The code in reports that the kernel copied: linux/errqueue.h.
const SO_EE_CODE_ZEROCOPY_COPIED: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(first: u32, ends: &[u64]) -> PendingSends {
        PendingSends { first, sends: ends.iter().map(|&end| (end, false)).collect(), completed: 0, copied: 0 }
    }

    #[test]
    fn memory_is_free_only_up_to_the_first_send_under_way() {
        let mut pending = pending(7, &[10, 20, 30, 40]);
        assert_eq!(pending.complete(8, 9, false), None);
        assert_eq!(pending.complete(7, 7, true), Some(30));
        assert_eq!((pending.first, pending.sends.len(), pending.completed, pending.copied), (10, 1, 3, 1));
        assert_eq!(pending.complete(7, 9, true), None, "completed twice");
        assert_eq!(pending.completed, 3);
    }

    #[test]
    fn numbers_of_sends_wrap_around() {
        let mut pending = pending(u32::MAX - 1, &[10, 20, 30, 40]);
        assert_eq!(pending.complete(u32::MAX - 1, 0, false), Some(30));
        assert_eq!(pending.first, 1);
        assert_eq!(pending.complete(1, 1, false), Some(40));
    }
}
