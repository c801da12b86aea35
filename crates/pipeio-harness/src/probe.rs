//! Finds out by trying which of the kernel's ways to move bytes may be used here.
//!
//! A version number says little: a syscall filter refuses with EPERM or pretends ENOSYS, a sysctl switches off, a limit
//! starves. Each probe makes the real call on something tiny, takes microseconds and leaves nothing behind. It cannot
//! survive a filter that kills instead of refusing.
//!
//! All probes fail with the error of the call that was refused.

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

/// What the probes send; any text would do.
const MESSAGE: [u8; 8] = *b"pipemark";

/// A page of its own that begins with `bytes`. Dropping it unmaps it and never reuses it: if it is still in flight in a
/// pipe it is kept alive by the kernel, and nobody can write to it any more.
fn page(bytes: [u8; MESSAGE.len()]) -> io::Result<Buffer> {
    let mut page = Buffer::new(MESSAGE.len(), 0, Pages::Base)?;
    page.bytes_mut().copy_from_slice(&bytes);
    Ok(page)
}

/// The part of a page that holds the message.
fn iovec(page: &mut Buffer) -> libc::iovec {
    libc::iovec { iov_base: page.bytes_mut().as_mut_ptr().cast(), iov_len: MESSAGE.len() }
}

/// A pipe that never blocks: a call that only seems to work then ends in EAGAIN and not in a hang.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?)
}

/// That a call moved the whole message.
fn whole(moved: usize) -> io::Result<()> {
    if moved == MESSAGE.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

fn take_from(reader: &OwnedFd) -> io::Result<[u8; MESSAGE.len()]> {
    let mut bytes = [0; MESSAGE.len()];
    whole(rustix::io::read(reader, &mut bytes)?)?;
    Ok(bytes)
}

fn expect_message(bytes: &[u8]) -> io::Result<()> {
    if bytes == MESSAGE { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// vmsplice(2) of the page's message into a pipe, or out of one into the page: the pipe's end decides.
fn vmsplice_page(end: &OwnedFd, page: &mut Buffer) -> io::Result<()> {
    let part = iovec(page);
    // SAFETY: the iovec describes memory inside of a mapping that outlives the call. Into a pipe the kernel reads it,
    // out of a pipe it writes to it through a mapping that nothing else refers to.
    let moved = unsafe { libc::vmsplice(end.as_raw_fd(), &raw const part, 1, libc::SPLICE_F_NONBLOCK) };
    whole(result_of(moved)?.unsigned_abs())
}

/// Whether vmsplice(2) works, from memory to a pipe and from a pipe to memory.
pub fn vmsplice() -> io::Result<()> {
    let (reader, writer) = pipe()?;
    vmsplice_page(&writer, &mut page(MESSAGE)?)?;
    let mut sink = page([0; _])?;
    vmsplice_page(&reader, &mut sink)?;
    expect_message(sink.bytes())
}

/// Whether a page given to a pipe by vmsplice(2) is shared with the pipe (`true`: a later change of the page shows at
/// the reader) or copied (`false`: the call costs what write costs).
///
/// The page is given away, changed while it is in the pipe, and then read from the pipe.
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

/// A memfd that holds the message and stands at its start.
fn filled_memfd() -> io::Result<OwnedFd> {
    let file = memfd()?;
    whole(rustix::io::pwrite(&file, &MESSAGE, 0)?)?;
    Ok(file)
}

/// Whether splice(2) works, from a memfd to a pipe and from a pipe to /dev/null.
pub fn splice() -> io::Result<()> {
    let (reader, writer) = pipe()?;
    let file = filled_memfd()?;
    whole(rustix::pipe::splice(&file, None, &writer, None, MESSAGE.len(), SpliceFlags::NONBLOCK)?)?;
    let null = OpenOptions::new().write(true).open("/dev/null")?;
    whole(rustix::pipe::splice(&reader, None, &null, None, MESSAGE.len(), SpliceFlags::NONBLOCK)?)
}

/// Whether tee(2) works.
pub fn tee() -> io::Result<()> {
    let (from, filler) = pipe()?;
    let (reader, writer) = pipe()?;
    whole(rustix::io::write(&filler, &MESSAGE)?)?;
    whole(rustix::pipe::tee(&from, &writer, MESSAGE.len(), SpliceFlags::NONBLOCK)?)?;
    expect_message(&take_from(&reader)?)
}

/// Whether sendfile(2) works from a memfd to a pipe.
pub fn sendfile() -> io::Result<()> {
    let (reader, writer) = pipe()?;
    let file = filled_memfd()?;
    whole(rustix::fs::sendfile(&writer, &file, None, MESSAGE.len())?)?;
    expect_message(&take_from(&reader)?)
}

/// Whether memfd_create(2) works.
pub fn memfd_create() -> io::Result<()> {
    memfd().map(drop)
}

/// Whether an io_uring can be set up, take a registered buffer and write it to a pipe.
pub fn io_uring() -> io::Result<()> {
    let (reader, writer) = pipe()?;
    let mut page = page(MESSAGE)?;
    // After the page, so that it is dropped first: the kernel lets go of the buffer before it is unmapped.
    let mut ring = IoUring::new(2)?;
    let part = iovec(&mut page);
    // SAFETY: the buffer is inside of a mapping that outlives the ring.
    unsafe { ring.submitter().register_buffers(&[part]) }?;
    let len = u32::try_from(MESSAGE.len()).expect("a few bytes");
    let write = opcode::WriteFixed::new(types::Fd(writer.as_raw_fd()), part.iov_base.cast(), len, 0).build();
    // SAFETY: pipe and buffer outlive the ring, and with it the request.
    unsafe { ring.submission().push(&write) }.map_err(|_| io::ErrorKind::OutOfMemory)?;
    // A signal may end the wait, not the request.
    while let Err(error) = ring.submit_and_wait(1) {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let result = ring.completion().next().ok_or(io::ErrorKind::UnexpectedEof)?.result();
    whole(usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result))?)?;
    expect_message(&take_from(&reader)?)
}

/// Whether a new pipe can be given a capacity of `bytes`; gives the capacity that was granted.
pub fn pipe_capacity(bytes: usize) -> io::Result<usize> {
    let (_reader, writer) = pipe()?;
    Ok(rustix::pipe::fcntl_setpipe_size(&writer, bytes)?)
}

/// Whether sched_setaffinity(2) works: sets the calling thread's mask to what it already is.
pub fn affinity() -> io::Result<()> {
    let mask = rustix::thread::sched_getaffinity(None)?;
    Ok(rustix::thread::sched_setaffinity(None, &mask)?)
}

/// Whether pidfd_open(2) works.
pub fn pidfd_open() -> io::Result<()> {
    rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
    Ok(())
}

/// Whether futex(2) works: wakes nobody.
pub fn futex() -> io::Result<()> {
    futex::wake(&AtomicU32::new(0), futex::Flags::empty(), 1)?;
    Ok(())
}

/// Whether the kernel takes the advice MADV_HUGEPAGE; whether it follows it is a matter of policy and free memory.
pub fn huge_page_advice() -> io::Result<()> {
    let mut page = page(MESSAGE)?;
    let start = page.bytes_mut().as_mut_ptr().cast();
    // SAFETY: the range is a page of a mapping of ours, and this advice does not change its content.
    Ok(unsafe { rustix::mm::madvise(start, page_size(), Advice::LinuxHugepage) }?)
}

/// Whether process_vm_readv(2) works, on this very process. Reading another process takes more: see ptrace(2).
pub fn process_vm_readv() -> io::Result<()> {
    let (mut source, mut sink) = (page(MESSAGE)?, page([0; _])?);
    let (local, remote) = (iovec(&mut sink), iovec(&mut source));
    let own = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: both iovecs describe memory inside of mappings that outlive the call; the local one is only ours to see.
    let moved = unsafe { libc::process_vm_readv(own, &raw const local, 1, &raw const remote, 1, 0) };
    whole(result_of(moved)?.unsigned_abs())?;
    expect_message(sink.bytes())
}

/// Whether POSIX message queues are there: asks for one that does not exist, and creates none.
pub fn posix_queues() -> io::Result<()> {
    // SAFETY: the name is a C string, and without O_CREAT there are no further arguments.
    let queue = unsafe { libc::mq_open(c"/pipeio-probe-none".as_ptr(), libc::O_RDONLY) };
    if queue >= 0 {
        // SAFETY: it was opened just now and nobody else knows it.
        unsafe { libc::mq_close(queue) };
        return Ok(());
    }
    absent_is_fine(io::Error::last_os_error())
}

/// Whether System V message queues are there: asks for one that does not exist, and creates none.
pub fn sysv_queues() -> io::Result<()> {
    // SAFETY: takes two numbers and touches no memory.
    let queue = unsafe { libc::msgget(i32::from_be_bytes(*b"pio?"), 0) };
    if queue >= 0 { Ok(()) } else { absent_is_fine(io::Error::last_os_error()) }
}

/// Whether UNIX stream sockets are there.
pub fn unix_sockets() -> io::Result<()> {
    rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    Ok(())
}

/// Whether TCP is there and the loopback device is up: takes a port of it for a moment, and nobody can connect.
pub fn tcp_sockets() -> io::Result<()> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    Ok(rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?)
}

/// ENOENT from a call that looked for something by name: the call works.
fn absent_is_fine(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Whether perf_event_open(2) can count this event for the calling thread, in the kernel too: moving bytes through a pipe
/// is the kernel's work.
///
/// Hardware that has no such counter (most virtual machines) is ENOENT or EOPNOTSUPP, a refusal EACCES or EPERM.
fn counter(event: impl Event) -> io::Result<()> {
    perf_event::Builder::new(event).exclude_kernel(false).exclude_hv(true).build().map(drop)
}

/// Whether the processor's cycles can be counted.
pub fn hardware_counter() -> io::Result<()> {
    counter(Hardware::CPU_CYCLES)
}

/// Whether the kernel counts moves to another CPU.
pub fn software_counter() -> io::Result<()> {
    counter(Software::CPU_MIGRATIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing on any Linux forbids these, so a probe that fails here is a probe that is wrong.
    #[test]
    fn what_every_linux_has_is_found() {
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

    /// Which answer is right depends on the kernel, but there is one, and it does not change.
    #[test]
    fn the_aliasing_test_has_an_answer_where_vmsplice_works() {
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
            let _ = (hardware_counter(), software_counter());
        };
        // A hundred rounds, since other tests open and close a few meanwhile.
        let before = open();
        (0..100).for_each(|_| all());
        assert!(open() < before + 50, "{before} descriptors before, {} after", open());
    }
}
