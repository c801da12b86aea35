//! Tests which of the system calls that move bytes work here.
//!
//! The kernel's version number isn't enough: a system-call filter may return EPERM or ENOSYS, a sysctl may disable a
//! call, and a limit may leave no resources. Each probe makes the real call on a few bytes, takes microseconds and
//! leaves nothing behind. A system-call filter that kills instead of returning an error also kills the process that
//! makes the probe.
//!
//! Each probe returns the error of the call that was refused.

use std::fs::OpenOptions;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::AtomicU32;

use crate::buffer::{Buffer, Pages, page_size};
use io_uring::{IoUring, opcode, types};
use perf_event::events::{Event, Hardware, Software};
use rustix::fs::MemfdFlags;
use rustix::mm::Advice;
use rustix::net::{AddressFamily, SocketType};
use rustix::pipe::{PipeFlags, SpliceFlags};
use rustix::process::PidfdFlags;
use rustix::thread::futex;

use crate::result_of;

/// The bytes that the probes send.
const MESSAGE: [u8; 8] = *b"pipemark";

/// Returns a separate page that begins with `bytes`. When the buffer is dropped, the page is unmapped and never reused.
/// The kernel keeps the page as long as it is in a pipe, and no process can write to it any more.
fn page(bytes: [u8; MESSAGE.len()]) -> io::Result<Buffer> {
    let mut page = Buffer::new(MESSAGE.len(), 0, Pages::Base)?;
    page.bytes_mut().copy_from_slice(&bytes);
    Ok(page)
}

/// The part of a page that holds the message.
fn iovec(page: &mut Buffer) -> libc::iovec {
    libc::iovec { iov_base: page.bytes_mut().as_mut_ptr().cast(), iov_len: MESSAGE.len() }
}

/// A non-blocking pipe. A call that only seems to work then leads to EAGAIN, not to a hang.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?)
}

/// Returns an error unless a call moved the whole message.
fn check_whole(moved: usize) -> io::Result<()> {
    if moved == MESSAGE.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

fn take_from(reader: &OwnedFd) -> io::Result<[u8; MESSAGE.len()]> {
    let mut bytes = [0; MESSAGE.len()];
    check_whole(rustix::io::read(reader, &mut bytes)?)?;
    Ok(bytes)
}

fn expect_message(bytes: &[u8]) -> io::Result<()> {
    if bytes == MESSAGE { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// Calls vmsplice(2): moves the page's message into a pipe or, if `end` is a read end, from the pipe into the page.
fn vmsplice_page(end: &OwnedFd, page: &mut Buffer) -> io::Result<()> {
    let part = iovec(page);
    // SAFETY: the iovec describes memory in a mapping that outlives the call. At a write end the kernel only reads that
    // memory. At a read end the kernel writes to it, and nothing else refers to it.
    let moved = unsafe { libc::vmsplice(end.as_raw_fd(), &raw const part, 1, libc::SPLICE_F_NONBLOCK) };
    check_whole(result_of(moved)?.unsigned_abs())
}

/// Whether vmsplice(2) works, from memory to a pipe and from a pipe to memory.
pub fn vmsplice() -> io::Result<()> {
    let (reader, writer) = pipe()?;
    vmsplice_page(&writer, &mut page(MESSAGE)?)?;
    let mut sink = page([0; _])?;
    vmsplice_page(&reader, &mut sink)?;
    expect_message(sink.bytes())
}

/// Whether vmsplice(2) shares a page with the pipe. If `true`, the reader sees later changes of the page. If `false`,
/// the kernel copies the page, and the call costs as much as write(2).
///
/// Gives a page away, changes it while it is in the pipe, and then reads from the pipe.
pub fn vmsplice_shares_pages() -> io::Result<bool> {
    let (reader, writer) = pipe()?;
    let mut page = page(MESSAGE)?;
    vmsplice_page(&writer, &mut page)?;
    page.bytes_mut().make_ascii_uppercase();
    match take_from(&reader)? {
        MESSAGE => Ok(false),
        bytes if bytes == page.bytes() => Ok(true),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn memfd() -> io::Result<OwnedFd> {
    Ok(rustix::fs::memfd_create("pipeio-probe", MemfdFlags::CLOEXEC)?)
}

/// Creates a memfd that holds the message, positioned at its start.
fn filled_memfd() -> io::Result<OwnedFd> {
    let file = memfd()?;
    check_whole(rustix::io::pwrite(&file, &MESSAGE, 0)?)?;
    Ok(file)
}

/// Whether splice(2) works, from a memfd to a pipe and from a pipe to /dev/null.
pub fn splice() -> io::Result<()> {
    let (reader, writer) = pipe()?;
    let file = filled_memfd()?;
    check_whole(rustix::pipe::splice(&file, None, &writer, None, MESSAGE.len(), SpliceFlags::NONBLOCK)?)?;
    let null = OpenOptions::new().write(true).open("/dev/null")?;
    check_whole(rustix::pipe::splice(&reader, None, &null, None, MESSAGE.len(), SpliceFlags::NONBLOCK)?)
}

/// Whether tee(2) works.
pub fn tee() -> io::Result<()> {
    let (from, filler) = pipe()?;
    let (reader, writer) = pipe()?;
    check_whole(rustix::io::write(&filler, &MESSAGE)?)?;
    check_whole(rustix::pipe::tee(&from, &writer, MESSAGE.len(), SpliceFlags::NONBLOCK)?)?;
    expect_message(&take_from(&reader)?)
}

/// Whether sendfile(2) works from a memfd to a pipe.
pub fn sendfile() -> io::Result<()> {
    let (reader, writer) = pipe()?;
    let file = filled_memfd()?;
    check_whole(rustix::fs::sendfile(&writer, &file, None, MESSAGE.len())?)?;
    expect_message(&take_from(&reader)?)
}

/// Whether memfd_create(2) works.
pub fn memfd_create() -> io::Result<()> {
    memfd().map(drop)
}

/// Whether an io_uring can be set up, accepts a registered buffer and writes it to a pipe.
pub fn io_uring() -> io::Result<()> {
    let (reader, writer) = pipe()?;
    let mut page = page(MESSAGE)?;
    // Declared after the page and so dropped before it: the kernel releases the page before it is unmapped.
    let mut ring = IoUring::new(2)?;
    let part = iovec(&mut page);
    // SAFETY: the buffer is in a mapping that outlives the ring.
    unsafe { ring.submitter().register_buffers(&[part]) }?;
    let len = u32::try_from(MESSAGE.len()).expect("a few bytes");
    let write = opcode::WriteFixed::new(types::Fd(writer.as_raw_fd()), part.iov_base.cast(), len, 0).build();
    // SAFETY: the pipe and the buffer outlive the ring, and so the request.
    unsafe { ring.submission().push(&write) }.map_err(|_| io::ErrorKind::OutOfMemory)?;
    // A signal may interrupt the wait, but not the request.
    while let Err(error) = ring.submit_and_wait(1) {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let result = ring.completion().next().ok_or(io::ErrorKind::UnexpectedEof)?.result();
    check_whole(usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result))?)?;
    expect_message(&take_from(&reader)?)
}

/// Whether a new pipe can have a capacity of `bytes`; returns the capacity that was granted.
pub fn pipe_capacity(bytes: usize) -> io::Result<usize> {
    let (_reader, writer) = pipe()?;
    Ok(rustix::pipe::fcntl_setpipe_size(&writer, bytes)?)
}

/// Whether sched_setaffinity(2) works: sets the calling thread's mask to its current value.
pub fn affinity() -> io::Result<()> {
    let mask = rustix::thread::sched_getaffinity(None)?;
    Ok(rustix::thread::sched_setaffinity(None, &mask)?)
}

/// Whether pidfd_open(2) works.
pub fn pidfd_open() -> io::Result<()> {
    rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
    Ok(())
}

/// Whether futex(2) works: makes a wake-up call that wakes no thread.
pub fn futex() -> io::Result<()> {
    futex::wake(&AtomicU32::new(0), futex::Flags::empty(), 1)?;
    Ok(())
}

/// Whether the kernel accepts the advice MADV_HUGEPAGE. Policy and free memory decide whether it then uses huge pages.
pub fn huge_page_advice() -> io::Result<()> {
    let mut page = page(MESSAGE)?;
    let start = page.bytes_mut().as_mut_ptr().cast();
    // SAFETY: the range is a page of a mapping of ours, and this advice does not change its content.
    Ok(unsafe { rustix::mm::madvise(start, page_size(), Advice::LinuxHugepage) }?)
}

/// Whether process_vm_readv(2) works on this process itself. Reading another process needs more permissions: see
/// ptrace(2).
pub fn process_vm_readv() -> io::Result<()> {
    let (mut source, mut sink) = (page(MESSAGE)?, page([0; _])?);
    let (local, remote) = (iovec(&mut sink), iovec(&mut source));
    let own = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: both iovecs describe memory in mappings that outlive the call, and nothing else refers to the local one.
    let moved = unsafe { libc::process_vm_readv(own, &raw const local, 1, &raw const remote, 1, 0) };
    check_whole(result_of(moved)?.unsigned_abs())?;
    expect_message(sink.bytes())
}

/// Whether the kernel has POSIX message queues: tries to open a queue that doesn't exist, and creates none.
pub fn posix_queues() -> io::Result<()> {
    // SAFETY: the name is a C string, and without O_CREAT there are no further arguments.
    let queue = unsafe { libc::mq_open(c"/pipeio-probe-none".as_ptr(), libc::O_RDONLY) };
    if queue >= 0 {
        // SAFETY: the queue was just opened, and no other code knows its descriptor.
        unsafe { libc::mq_close(queue) };
        return Ok(());
    }
    allow_missing(io::Error::last_os_error())
}

/// Whether the kernel has System V message queues: looks up a queue that doesn't exist, and creates none.
pub fn sysv_queues() -> io::Result<()> {
    // SAFETY: the call takes two numbers and accesses no memory of ours.
    let queue = unsafe { libc::msgget(i32::from_be_bytes(*b"pio?"), 0) };
    if queue >= 0 { Ok(()) } else { allow_missing(io::Error::last_os_error()) }
}

/// Whether the kernel has UNIX stream sockets.
pub fn unix_sockets() -> io::Result<()> {
    rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    Ok(())
}

/// Whether the kernel has TCP and the loopback device is up: briefly binds a port, to which nothing can connect.
pub fn tcp_sockets() -> io::Result<()> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    Ok(rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?)
}

/// Turns ENOENT into success. The error came from looking up a name, so the call itself works.
fn allow_missing(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Whether perf_event_open(2) can count this event for the calling thread, including the thread's time in the kernel,
/// where most of a pipe's work is done.
///
/// If the hardware has no such counter (as on most virtual machines), the error is ENOENT or EOPNOTSUPP. If the kernel
/// refuses, the error is EACCES or EPERM.
fn counter(event: impl Event) -> io::Result<()> {
    perf_event::Builder::new(event).exclude_kernel(false).exclude_hv(true).build().map(drop)
}

/// Whether the processor's cycles can be counted.
pub fn hardware_counter() -> io::Result<()> {
    counter(Hardware::CPU_CYCLES)
}

/// Whether the kernel can count migrations to another CPU.
pub fn software_counter() -> io::Result<()> {
    counter(Software::CPU_MIGRATIONS)
}

/// Whether the kernel can sample which functions a thread executes, outside of the kernel.
pub fn function_sampling() -> io::Result<()> {
    let mut builder = perf_event::Builder::new(Software::CPU_CLOCK);
    builder.exclude_kernel(true).exclude_hv(true).sample_frequency(99).build().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every Linux kernel permits these calls, so if a probe fails here, the probe is wrong.
    #[test]
    fn features_of_every_kernel_are_detected() {
        for (name, result) in
            [("memfd_create", memfd_create()), ("futex", futex()), ("affinity", affinity()), ("tee", tee())]
        {
            result.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }

    #[test]
    fn capacity_is_granted_in_powers_of_two_pages() {
        let page = rustix::param::page_size();
        assert_eq!(pipe_capacity(2 * page).unwrap(), 2 * page);
        assert_eq!(pipe_capacity(2 * page + 1).unwrap(), 4 * page);
        assert!(pipe_capacity(usize::MAX).is_err());
    }

    /// The right answer depends on the kernel, but it must be the same each time.
    #[test]
    fn page_sharing_is_detected_consistently() {
        if vmsplice().is_ok() {
            let first = vmsplice_shares_pages().unwrap();
            assert!((0..100).all(|_| vmsplice_shares_pages().unwrap() == first));
        }
    }

    #[test]
    fn probes_leave_no_descriptor_behind() {
        let open = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        let all = || {
            let _ = (vmsplice(), splice(), tee(), sendfile(), memfd_create(), io_uring(), pidfd_open());
            let _ = (posix_queues(), sysv_queues(), process_vm_readv(), huge_page_advice());
            let _ = (unix_sockets(), tcp_sockets());
            let _ = (hardware_counter(), software_counter(), function_sampling());
        };
        // A hundred rounds reveal a leak, although other tests open and close a few descriptors meanwhile.
        let before = open();
        (0..100).for_each(|_| all());
        assert!(open() < before + 50, "{before} descriptors before, {} after", open());
    }
}
