//! Finds out by trying which of the kernel's ways to move bytes may be used here.
//!
//! A version number says little: a syscall filter refuses with EPERM or pretends ENOSYS, a sysctl switches off, a limit
//! starves. Each probe makes the real call on something tiny, takes microseconds and leaves nothing behind. It cannot
//! survive a filter that kills instead of refusing.
//!
//! All probes fail with the error of the call that was refused.

use std::fs::OpenOptions;
use std::io;
use std::mem;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

use io_uring::{IoUring, opcode, types};
use rustix::fs::MemfdFlags;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use rustix::net::{AddressFamily, SocketType};
use rustix::pipe::{PipeFlags, SpliceFlags};
use rustix::process::PidfdFlags;
use rustix::thread::futex;

/// What the probes send; any text would do.
const MESSAGE: [u8; 8] = *b"pipemark";

/// Private anonymous pages. Dropping them unmaps them and never reuses them: a page still in flight in a pipe is kept
/// alive by the kernel, and nobody can write to it any more.
struct Pages {
    start: NonNull<u8>,
    len: usize,
}

impl Pages {
    fn new(len: usize) -> io::Result<Pages> {
        // SAFETY: with a null hint and without MAP_FIXED the kernel picks addresses that nobody uses.
        let start = unsafe {
            rustix::mm::mmap_anonymous(ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Pages { start, len })
    }

    fn one() -> io::Result<Pages> {
        Pages::new(rustix::param::page_size())
    }

    fn put(&mut self, bytes: [u8; MESSAGE.len()]) {
        assert!(self.len >= MESSAGE.len());
        // SAFETY: the mapping is writable, ours alone and, as asserted, long enough; a byte array needs no alignment.
        // Volatile, because the reader of a pipe may see this write.
        unsafe { self.start.as_ptr().cast::<[u8; MESSAGE.len()]>().write_volatile(bytes) }
    }

    fn take(&self) -> [u8; MESSAGE.len()] {
        assert!(self.len >= MESSAGE.len());
        // SAFETY: the mapping is readable and, as asserted, long enough; a byte array needs no alignment and has no
        // invalid values. Volatile, because the kernel may have written.
        unsafe { self.start.as_ptr().cast::<[u8; MESSAGE.len()]>().read_volatile() }
    }

    /// The part that holds the message.
    fn iovec(&self) -> libc::iovec {
        libc::iovec { iov_base: self.start.as_ptr().cast(), iov_len: MESSAGE.len() }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: this is a whole mapping of ours and no reference into it was ever made. The call cannot fail then.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
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

fn expect_message(bytes: [u8; MESSAGE.len()]) -> io::Result<()> {
    if bytes == MESSAGE { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// vmsplice(2) of the pages' message into a pipe, or out of one into the pages: the pipe's end decides.
fn vmsplice_pages(end: &OwnedFd, pages: &Pages) -> io::Result<()> {
    let part = pages.iovec();
    // SAFETY: the iovec describes memory inside of a mapping that outlives the call. Into a pipe the kernel reads it,
    // out of a pipe it writes to it through a mapping that nothing else refers to.
    let moved = unsafe { libc::vmsplice(end.as_raw_fd(), &raw const part, 1, libc::SPLICE_F_NONBLOCK) };
    whole(usize::try_from(moved).map_err(|_| io::Error::last_os_error())?)
}

/// Whether vmsplice(2) works, from memory to a pipe and from a pipe to memory.
pub fn vmsplice() -> io::Result<()> {
    let (reader, writer) = pipe()?;
    let mut source = Pages::one()?;
    source.put(MESSAGE);
    vmsplice_pages(&writer, &source)?;
    let sink = Pages::one()?;
    vmsplice_pages(&reader, &sink)?;
    expect_message(sink.take())
}

/// Whether a page given to a pipe by vmsplice(2) is shared with the pipe (`true`: a later change of the page shows at
/// the reader) or copied (`false`: the call costs what write costs).
///
/// The page is given away, changed while it is in the pipe, and then read from the pipe.
pub fn vmsplice_shares_pages() -> io::Result<bool> {
    let (reader, writer) = pipe()?;
    let mut page = Pages::one()?;
    page.put(MESSAGE);
    vmsplice_pages(&writer, &page)?;
    let changed = MESSAGE.map(|byte| byte.to_ascii_uppercase());
    page.put(changed);
    match take_from(&reader)? {
        MESSAGE => Ok(false),
        bytes if bytes == changed => Ok(true),
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
    expect_message(take_from(&reader)?)
}

/// Whether sendfile(2) works from a memfd to a pipe.
pub fn sendfile() -> io::Result<()> {
    let (reader, writer) = pipe()?;
    let file = filled_memfd()?;
    whole(rustix::fs::sendfile(&writer, &file, None, MESSAGE.len())?)?;
    expect_message(take_from(&reader)?)
}

/// Whether memfd_create(2) works.
pub fn memfd_create() -> io::Result<()> {
    memfd().map(drop)
}

/// Whether an io_uring can be set up, take a registered buffer and write it to a pipe.
pub fn io_uring() -> io::Result<()> {
    let (reader, writer) = pipe()?;
    let mut page = Pages::one()?;
    page.put(MESSAGE);
    // After the page, so that it is dropped first: the kernel lets go of the buffer before it is unmapped.
    let mut ring = IoUring::new(2)?;
    let part = page.iovec();
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
    expect_message(take_from(&reader)?)
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
    let pages = Pages::one()?;
    // SAFETY: the range is a mapping of ours, and this advice does not change its content.
    Ok(unsafe { rustix::mm::madvise(pages.start.as_ptr().cast(), pages.len, Advice::LinuxHugepage) }?)
}

/// Whether process_vm_readv(2) works, on this very process. Reading another process takes more: see ptrace(2).
pub fn process_vm_readv() -> io::Result<()> {
    let mut source = Pages::one()?;
    source.put(MESSAGE);
    let sink = Pages::one()?;
    let (local, remote) = (sink.iovec(), source.iovec());
    let own = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: both iovecs describe memory inside of mappings that outlive the call; the local one is only ours to see.
    let moved = unsafe { libc::process_vm_readv(own, &raw const local, 1, &raw const remote, 1, 0) };
    whole(usize::try_from(moved).map_err(|_| io::Error::last_os_error())?)?;
    expect_message(sink.take())
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

/// An event of perf_event_open(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterEvent {
    /// PERF_COUNT_HW_CPU_CYCLES.
    Cycles,
    /// PERF_COUNT_SW_CPU_MIGRATIONS.
    Migrations,
}

/// The parts of the event that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterScope {
    /// User and kernel: moving bytes through a pipe is the kernel's work.
    All,
    /// User only. Migrations happen in the kernel, so none are ever counted this way.
    User,
}

/// `struct perf_event_attr` as of PERF_ATTR_SIZE_VER0, which every kernel takes.
#[repr(C)]
#[derive(Default)]
struct PerfEventAttr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
}

/// Whether perf_event_open(2) can count this event for the calling thread.
///
/// Hardware that has no such counter (most virtual machines) is ENOENT or EOPNOTSUPP, a refusal EACCES or EPERM.
pub fn counter(event: CounterEvent, scope: CounterScope) -> io::Result<()> {
    // Values of <linux/perf_event.h>; libc has none of them.
    const TYPE_HARDWARE: u32 = 0;
    const TYPE_SOFTWARE: u32 = 1;
    const COUNT_HW_CPU_CYCLES: u64 = 0;
    const COUNT_SW_CPU_MIGRATIONS: u64 = 4;
    const DISABLED: u64 = 1 << 0;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HV: u64 = 1 << 6;
    const FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;

    let (kind, config) = match event {
        CounterEvent::Cycles => (TYPE_HARDWARE, COUNT_HW_CPU_CYCLES),
        CounterEvent::Migrations => (TYPE_SOFTWARE, COUNT_SW_CPU_MIGRATIONS),
    };
    let scope_flags = match scope {
        CounterScope::All => 0,
        CounterScope::User => EXCLUDE_KERNEL,
    };
    let attr = PerfEventAttr {
        kind,
        config,
        size: u32::try_from(mem::size_of::<PerfEventAttr>()).expect("64 bytes"),
        flags: DISABLED | EXCLUDE_HV | scope_flags,
        ..PerfEventAttr::default()
    };
    // SAFETY: attr is a perf_event_attr of the size it states and outlives the call; pid 0 and cpu -1 are this thread
    // on any CPU, group -1 is none.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attr, 0, -1, -1, FLAG_FD_CLOEXEC) };
    let Ok(fd @ 0..) = i32::try_from(fd) else { return Err(io::Error::last_os_error()) };
    // SAFETY: the kernel handed us this descriptor just now and nobody else has it.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(())
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
            let _ = counter(CounterEvent::Cycles, CounterScope::User);
            let _ = counter(CounterEvent::Migrations, CounterScope::All);
        };
        // A hundred rounds, since other tests open and close a few meanwhile.
        let before = open();
        (0..100).for_each(|_| all());
        assert!(open() < before + 50, "{before} descriptors before, {} after", open());
    }
}
