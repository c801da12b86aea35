//! Signals as events: they are blocked and read from a descriptor, so that none interrupts or ends the program.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use libc::c_int;

use crate::result_of;

/// A signal that was sent to this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentSignal {
    /// Its number.
    pub number: i32,
    /// By a process; otherwise by the kernel, such as for Ctrl-C or a pipe without a reader.
    pub by_process: bool,
}

/// The signals that were sent to this process since it blocked them.
#[derive(Debug)]
pub struct SignalQueue {
    fd: OwnedFd,
    /// What was blocked before.
    before: libc::sigset_t,
}

impl SignalQueue {
    /// Blocks all signals but those of `kept`, for this thread and those that it starts from now on. To be called before others
    /// run. SIGKILL and SIGSTOP can't be blocked; a fault of the program itself ends it as before. Programs that
    /// this one starts have them blocked too, but for those given to [`SignalQueue::restore_in`].
    ///
    /// # Errors
    /// When there is no descriptor to be had.
    pub fn block(kept: &[i32]) -> io::Result<SignalQueue> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: it fills the whole set.
        unsafe { libc::sigfillset(set.as_mut_ptr()) };
        // SAFETY: it has just been filled.
        let mut set = unsafe { set.assume_init() };
        for &signal in kept {
            // SAFETY: the set is one, and a number that is none is an error only.
            unsafe { libc::sigdelset(&raw mut set, signal) };
        }
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: both sets live until it returns.
        let failed = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, before.as_mut_ptr()) };
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
        // SAFETY: the set lives until it returns.
        let fd = result_of(unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) })?;
        // SAFETY: it was opened just now, and nobody else has it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: pthread_sigmask(3) succeeded, so it has filled the set.
        Ok(SignalQueue { fd, before: unsafe { before.assume_init() } })
    }

    /// Has a program start with the signals blocked that were blocked before: `std::process::Command` passes on this
    /// program's own mask.
    pub fn restore_in(&self, command: &mut Command) {
        let before = self.before;
        let restore = move || {
            // SAFETY: the set is one, and where the old one would go may be null.
            match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) } {
                0 => Ok(()),
                failed => Err(io::Error::from_raw_os_error(failed)),
            }
        };
        // SAFETY: pthread_sigmask(3) may be called between fork and exec (signal-safety(7)), and nothing is allocated.
        unsafe { command.pre_exec(restore) };
    }

    /// Those that have come since the last call. Of one that was sent several times meanwhile there may be one only.
    pub fn take(&self) -> Vec<SentSignal> {
        const SIZE: usize = size_of::<libc::signalfd_siginfo>();
        let mut buffer = [0_u8; 16 * SIZE];
        let mut found = Vec::new();
        while let Ok(length @ SIZE..) = rustix::io::read(&self.fd, &mut buffer) {
            for one in buffer[..length].chunks_exact(SIZE) {
                // ssi_signo and ssi_code, signalfd(2).
                let word = |at: usize| i32::from_ne_bytes([one[at], one[at + 1], one[at + 2], one[at + 3]]);
                found.push(SentSignal { number: word(0), by_process: word(8) <= 0 });
            }
        }
        found
    }
}

impl AsFd for SignalQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Sends a signal to a process.
///
/// # Errors
/// When there is no such process, it is another user's, or the number is no signal.
pub fn send(pid: u32, signal: i32) -> io::Result<()> {
    // 0 and negative numbers are groups.
    let pid = i32::try_from(pid).ok().filter(|pid| *pid > 0).ok_or_else(|| crate::invalid("no process"))?;
    // SAFETY: it takes two numbers and touches no memory.
    result_of(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Ends this process by a signal, as it does where nothing is done about the signal. Returns where that doesn't end it.
pub fn end_by(signal: i32) {
    // SAFETY: SIG_DFL is a valid action; a number that is no signal is an error only.
    unsafe { libc::signal(signal as c_int, libc::SIG_DFL) };
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: it empties the whole set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: it has just been emptied.
    let mut set = unsafe { set.assume_init() };
    // SAFETY: the set is one.
    unsafe { libc::sigaddset(&raw mut set, signal) };
    // SAFETY: a signal to this process, which is what it is for.
    unsafe { libc::raise(signal) };
    // SAFETY: the set lives until it returns; where the old one would go may be null.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()) };
}
