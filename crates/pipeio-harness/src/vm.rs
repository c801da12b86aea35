//! A ring in the sender's private memory. The receiver reads it with process_vm_readv(2): the kernel makes one copy,
//! directly from one process to the other. Only positions are in shared memory.
//!
//! Both processes exchange their process ids through a small memfd without a name, so they must be in the same PID
//! namespace. The kernel lets the receiver read if it may trace the sender (ptrace(2)): as the same user, or with
//! CAP_SYS_PTRACE. If Yama restricts tracing to a process's descendants, the sender permits this receiver, and no other
//! process, to trace it as long as it lives. The receiver reads from addresses that the sender states, so use this link
//! only between processes that trust each other.

use std::io;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::time::{Duration, Instant};

use crate::buffer::{BytesMut, Region, check_block};
use crate::recv::{self, Receiver};
use crate::send::{self, Moved, Sender};
use rustix::process::{PTracer, Pid, getpid, set_ptracer};
use rustix::thread::futex;

use crate::handover::{LINES, Sink, Source};
use crate::result_of;
use crate::ring::{InPlaceSender, Memory, fits};
use crate::shared::{CacheLine, Shared, refused};

/// Size in bytes of the sender's ring. It is rounded up to whole blocks, at least two.
pub const RING_BYTES: usize = 1 << 20;

/// How long a sender waits for its receiver before the first block.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The line in which both ends identify themselves. The receiver opens this line's gate after it has stored its process
/// id.
const IDENTITY_LINE: usize = LINES;
/// The word of the line `IDENTITY_LINE` with the receiver's process id.
const RECEIVER: usize = 0;
/// The word with the sender's process id.
const SENDER: usize = 1;
/// The word with the address of the sender's memory.
const ADDRESS: usize = 2;
/// The word with the length of the sender's memory, in bytes.
const CAPACITY: usize = 3;
/// The word that is set to a value other than 0 if the sender's memory may be unmapped before all of it was read.
const TORN: usize = 4;

/// Creates the shared lines of one link.
///
/// # Errors
/// If there is no memory or no descriptor for the lines.
pub fn create() -> io::Result<OwnedFd> {
    Ok(Shared::create(IDENTITY_LINE + 1)?.0)
}

fn open(fd: &OwnedFd, block: usize) -> io::Result<Shared> {
    check_block(block)?;
    let lines = Shared::open(fd)?;
    if lines.len() == IDENTITY_LINE + 1 {
        Ok(lines)
    } else {
        Err(refused("a link for process_vm_readv", "it has another number of lines"))
    }
}

/// Creates the sender of the link `fd`. A link can have only one sender during its lifetime. Blocks are created in the
/// memory that the receiver reads, so `align` doesn't apply.
///
/// The first send waits for the receiver, at most ten seconds. [`Sender::finish`] waits until the receiver has read
/// everything or is gone, because the memory disappears with the sender. If the sender is dropped before that,
/// receiving fails. The sender waits and counts calls like [`ring::sender`](crate::ring::sender).
///
/// # Errors
/// If `fd` isn't such a link, if the link already has or had a sender, or if the memory can't be allocated. The first
/// send fails with `TimedOut` if no receiver has appeared.
pub fn sender(fd: OwnedFd, options: &send::SendOptions) -> io::Result<Box<dyn Sender + Send>> {
    let lines = open(&fd, options.block)?;
    let too_large = || io::Error::new(io::ErrorKind::OutOfMemory, "the block is too large");
    let two = options.block.checked_mul(2).ok_or_else(too_large)?;
    let capacity = RING_BYTES.max(two).checked_next_multiple_of(options.block).ok_or_else(too_large)?;
    fits(capacity, options)?;
    let mut region = Region::new(capacity, options.pages)?;
    // Touch all pages now, so that later use causes no page faults.
    region.bytes_mut().fill(0);
    let start = NonNull::new(region.bytes_mut().as_mut_ptr()).ok_or(io::ErrorKind::OutOfMemory)?;
    let source = Source::new(Private { lines, start, _region: region }, capacity, options.wait)?;
    Ok(Box::new(VmSender { inner: InPlaceSender::new(source, options), connected: false, finished: false }))
}

/// Creates the receiver of the link `fd`. A link can have only one receiver during its lifetime. It waits like
/// [`ring::receiver`](crate::ring::receiver). `calls` counts process_vm_readv(2) and futex(2).
///
/// # Errors
/// If `fd` isn't such a link, if the link already has or had a receiver, or if the memory can't be allocated. Receiving
/// fails with `PermissionDenied` if the kernel doesn't let this process read the sender's memory, and with
/// `UnexpectedEof` if the sender is gone before everything was read.
pub fn receiver(fd: OwnedFd, options: &recv::RecvOptions) -> io::Result<Box<dyn Receiver + Send>> {
    let lines = open(&fd, options.block)?;
    let buffer = options.buffer()?;
    // The ring's capacity is known only with the first block.
    let sink = Sink::new(lines, isize::MAX as usize, options.wait)?;
    let about = &sink.lines[IDENTITY_LINE];
    about.words[RECEIVER].store(number(getpid()), Relaxed);
    about.gate.store(1, Release);
    futex::wake(&about.gate, futex::Flags::empty(), 1)?;
    let mut reader = VmReader { sink, peer: None };
    Ok(recv::buffered(buffer, move |buffer, calls| reader.take(buffer, calls)))
}

fn number(pid: Pid) -> u64 {
    u64::from(pid.as_raw_nonzero().get().unsigned_abs())
}

/// Private memory, and the shared lines that describe it.
struct Private {
    lines: Shared,
    start: NonNull<u8>,
    _region: Region,
}

// SAFETY: the memory has one owner, and isn't tied to the thread that created it.
unsafe impl Send for Private {}

impl Deref for Private {
    type Target = [CacheLine];

    fn deref(&self) -> &[CacheLine] {
        &self.lines
    }
}

// SAFETY: `start` is the start of the region. The region is as long as the handover's capacity, lives as long as
// `self`, doesn't move when `self` is moved, and isn't accessed in any other way.
unsafe impl Memory for Private {
    fn start(&self) -> NonNull<u8> {
        self.start
    }
}

struct VmSender {
    inner: InPlaceSender<Private>,
    connected: bool,
    finished: bool,
}

impl VmSender {
    /// Waits for the receiver, permits it to read, and publishes where the memory is.
    fn connect(&mut self) -> io::Result<()> {
        let source = self.inner.source();
        let (capacity, start) = (source.capacity(), source.lines.start);
        let about = &source.lines[IDENTITY_LINE];
        let begin = Instant::now();
        while about.gate.load(Acquire) == 0 {
            let Some(left) = CONNECT_TIMEOUT.checked_sub(begin.elapsed()) else {
                let message = format!("no receiver connected within {} s", CONNECT_TIMEOUT.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            };
            let left = futex::Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            match futex::wait(&about.gate, futex::Flags::empty(), 0, Some(&left)) {
                Ok(()) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR | rustix::io::Errno::TIMEDOUT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(receiver) = i32::try_from(about.words[RECEIVER].load(Relaxed)).ok().and_then(Pid::from_raw) {
            // Fails on systems without Yama, which need no permission. If permission was needed and refused, the
            // receiver reports an error.
            let _ = set_ptracer(PTracer::ProcessID(receiver));
        }
        about.words[SENDER].store(number(getpid()), Relaxed);
        about.words[ADDRESS].store(start.as_ptr() as u64, Relaxed);
        // The receiver sees the capacity together with the first position that is published.
        about.words[CAPACITY].store(capacity as u64, Relaxed);
        self.connected = true;
        Ok(())
    }
}

impl Sender for VmSender {
    fn prepare(&mut self, fill: &mut dyn FnMut(u64, &mut [u8])) -> io::Result<()> {
        self.inner.prepare(fill)
    }

    fn fresh(&mut self, len: usize) -> io::Result<BytesMut<'_>> {
        self.inner.fresh(len)
    }

    fn send(&mut self, len: usize) -> io::Result<Moved> {
        if !self.connected {
            self.connect()?;
        }
        self.inner.send(len)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.inner.finish()?;
        let source = self.inner.source();
        let all = source.capacity();
        match source.room(all, &mut 0) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
            // Everything was read, or the receiver is gone.
            _ => self.finished = true,
        }
        Ok(())
    }
}

impl Drop for VmSender {
    fn drop(&mut self) {
        if !self.finished {
            // Set before the memory is unmapped, because its addresses may then be reused for other data.
            self.inner.source().lines[IDENTITY_LINE].words[TORN].store(1, SeqCst);
        }
        if self.connected {
            let _ = set_ptracer(PTracer::None);
        }
    }
}

/// Where a receiver reads: a process and an address in it.
#[derive(Clone, Copy)]
struct VmPeer {
    process: i32,
    address: usize,
}

struct VmReader {
    sink: Sink<Shared>,
    peer: Option<VmPeer>,
}

impl VmReader {
    /// Reads the sender's process id, address and capacity, which the sender stored before the first block.
    fn connect(&mut self) -> io::Result<VmPeer> {
        let word = |word: usize| self.sink.lines[IDENTITY_LINE].words[word].load(Relaxed);
        let (process, address, capacity) = (word(SENDER), word(ADDRESS), word(CAPACITY));
        let ((Ok(process @ 1..), Ok(address)), Ok(capacity)) =
            ((i32::try_from(process), usize::try_from(address)), usize::try_from(capacity))
        else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the sender has not stated its memory address"));
        };
        self.sink.set_capacity(capacity)?;
        address.checked_add(capacity).ok_or(io::ErrorKind::InvalidData)?;
        Ok(*self.peer.insert(VmPeer { process, address }))
    }

    fn take(&mut self, buffer: &mut [u8], calls: &mut u32) -> io::Result<usize> {
        let filled = self.sink.filled(calls)?;
        if filled == 0 {
            return Ok(0);
        }
        let peer = self.peer.map_or_else(|| self.connect(), Ok)?;
        let (offset, capacity) = (self.sink.offset(), self.sink.capacity());
        let len = filled.min(buffer.len());
        *calls += 1;
        let read = read(peer, offset, capacity, &mut buffer[..len]);
        // The memory may have been unmapped during the read.
        if self.sink.lines[IDENTITY_LINE].words[TORN].load(SeqCst) != 0 {
            return Err(sender_gone());
        }
        let bytes = read?;
        self.sink.release(bytes, calls);
        Ok(bytes)
    }
}

/// Reads the ring from `offset` on, and continues at the ring's start.
fn read(peer: VmPeer, offset: usize, capacity: usize, buffer: &mut [u8]) -> io::Result<usize> {
    let head = buffer.len().min(capacity - offset);
    let remote = [(offset, head), (0, buffer.len() - head)]
        .map(|(offset, len)| libc::iovec { iov_base: (peer.address + offset) as *mut _, iov_len: len });
    let pieces = if buffer.len() > head { 2 } else { 1 };
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: the local vector describes a slice that is borrowed exclusively. The remote vectors are only numbers in
    // this process. The counts passed are the lengths of the vectors.
    let read = unsafe { libc::process_vm_readv(peer.process, &raw const local, 1, remote.as_ptr(), pieces, 0) };
    result_of(read).map(isize::unsigned_abs).map_err(|error| {
        let what = format!("cannot read the memory of process {}", peer.process);
        match error.raw_os_error() {
            Some(libc::EPERM) => {
                let why = "reading it needs permission to trace the process: run both as one user, and see \
                           /proc/sys/kernel/yama/ptrace_scope";
                io::Error::new(io::ErrorKind::PermissionDenied, format!("{what}: {why}"))
            }
            Some(libc::ESRCH) => sender_gone(),
            _ => io::Error::new(error.kind(), format!("{what}: {error}")),
        }
    })
}

fn sender_gone() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the sender is gone, and the unread bytes are lost")
}
