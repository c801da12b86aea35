//! Signals as events: signals are blocked and read from a descriptor, so that no signal interrupts or ends the program.
//! Or they set a flag, and interrupt the call that the program waits in.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use libc::c_int;

use crate::result_of;

/// A signal that was sent to this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentSignal {
    /// The signal's number.
    pub number: i32,
    /// Whether a process sent the signal. Otherwise the kernel sent it, for example for Ctrl-C or a pipe without a
    /// reader.
    pub by_process: bool,
}

/// The signals that were sent to this process after it blocked them.
#[derive(Debug)]
pub struct SignalQueue {
    fd: OwnedFd,
    /// The signal mask before this queue blocked signals.
    before: libc::sigset_t,
}

impl SignalQueue {
    /// Blocks all signals except those in `kept`, for this thread and the threads that it starts from now on. Call this
    /// before other threads run. SIGKILL and SIGSTOP can't be blocked, and a fault of the program itself (SIGSEGV, for
    /// example) still ends it. Programs that this program starts inherit the blocked signals, unless their commands are
    /// passed to [`SignalQueue::restore_in`].
    ///
    /// # Errors
    /// If no descriptor is available.
    pub fn block(kept: &[i32]) -> io::Result<SignalQueue> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: the call initialises the whole set.
        unsafe { libc::sigfillset(set.as_mut_ptr()) };
        // SAFETY: the set has just been initialised.
        let mut set = unsafe { set.assume_init() };
        for &signal in kept {
            // SAFETY: the set is valid. A number that isn't a signal only leads to an error.
            unsafe { libc::sigdelset(&raw mut set, signal) };
        }
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: both sets live during the call.
        let failed = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, before.as_mut_ptr()) };
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
        // SAFETY: the set lives during the call.
        let fd = result_of(unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) })?;
        // SAFETY: the descriptor was just opened, and no other code owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: pthread_sigmask(3) succeeded, so it has initialised the set.
        Ok(SignalQueue { fd, before: unsafe { before.assume_init() } })
    }

    /// Makes `command` start with the signal mask that was set before [`SignalQueue::block`]. Without this,
    /// `std::process::Command` passes on this program's current mask.
    pub fn restore_in(&self, command: &mut Command) {
        let before = self.before;
        let restore = move || {
            // SAFETY: the set is valid, and the pointer for the previous one may be null.
            match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) } {
                0 => Ok(()),
                failed => Err(io::Error::from_raw_os_error(failed)),
            }
        };
        // SAFETY: pthread_sigmask(3) may be called between fork and exec (signal-safety(7)), and nothing is allocated.
        unsafe { command.pre_exec(restore) };
    }

    /// Returns the signals that arrived since the last call. A signal that was sent several times meanwhile may occur
    /// only once.
    pub fn take(&self) -> Vec<SentSignal> {
        const SIZE: usize = size_of::<libc::signalfd_siginfo>();
        let mut buffer = [0_u8; 16 * SIZE];
        let mut found = Vec::new();
        while let Ok(length @ SIZE..) = rustix::io::read(&self.fd, &mut buffer) {
            for one in buffer[..length].chunks_exact(SIZE) {
                // The fields ssi_signo and ssi_code of signalfd_siginfo (signalfd(2)).
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

/// Whether this process ignores a signal. It may have inherited that when it was started: nohup ignores SIGHUP, and a
/// shell ignores SIGINT for background jobs.
pub fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: the pointer for the new action may be null, and the pointer for the old action is writable. A number that
    // isn't a signal only leads to an error.
    let found = result_of(unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) });
    // SAFETY: sigaction(2) succeeded, so it has initialised the action.
    found.is_ok() && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

/// Sends a signal to a process.
///
/// # Errors
/// If there is no such process, if it belongs to another user, or if the number isn't a signal.
pub fn send(pid: u32, signal: i32) -> io::Result<()> {
    // 0 and negative numbers mean process groups.
    let pid = i32::try_from(pid)
        .ok()
        .filter(|pid| *pid > 0)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no process"))?;
    // SAFETY: the call takes two numbers and accesses no memory of ours.
    result_of(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// The flag that a signal sets.
static FLAG: OnceLock<&'static AtomicBool> = OnceLock::new();
/// The first signal that has set the flag; 0 if none has.
static INTERRUPTED_BY: AtomicI32 = AtomicI32::new(0);
/// How often the timer has interrupted this process.
static TICKS: AtomicU32 = AtomicU32::new(0);

/// The interval of the timer.
const TICK: libc::timeval = libc::timeval { tv_sec: 0, tv_usec: 10_000 };
/// The signal ends this process after this many ticks (2 s), if it hasn't ended itself.
const MAX_TICKS: u32 = 200;

/// Sets `flag` when one of the `signals` arrives, and interrupts the call in which the process waits. From then on, the
/// process must end itself, and has two seconds to do so. Signals that are ignored stay ignored. Only the first call has
/// an effect.
///
/// A timer repeats the interruption, because the signal may arrive just before the process starts to wait.
///
/// # Errors
/// If a number isn't a signal.
pub fn set_on_signal(signals: &[i32], flag: &'static AtomicBool) -> io::Result<()> {
    if FLAG.set(flag).is_ok() {
        for &signal in signals.iter().filter(|signal| !is_ignored(**signal)) {
            set_handler(signal, on_signal)?;
        }
    }
    Ok(())
}

/// The signal that has set the flag of [`set_on_signal`].
pub fn interrupted_by() -> Option<i32> {
    Some(INTERRUPTED_BY.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
}

/// Sets the handler of a signal, without SA_RESTART.
fn set_handler(signal: i32, handler: extern "C" fn(c_int)) -> io::Result<()> {
    // SAFETY: all fields of the struct may be zero: no flags, and no signals blocked.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    // SAFETY: the action is valid, and both handlers make only calls that signal-safety(7) allows.
    result_of(unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) }).map(drop)
}

extern "C" fn on_signal(signal: c_int) {
    if INTERRUPTED_BY.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst).is_err() {
        return;
    }
    if let Some(flag) = FLAG.get() {
        flag.store(true, Ordering::SeqCst);
    }
    let timer = libc::itimerval { it_interval: TICK, it_value: TICK };
    let _ = set_handler(libc::SIGALRM, on_tick);
    // SAFETY: the struct lives during the call, and the pointer for the previous value may be null.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, ptr::null_mut()) };
}

extern "C" fn on_tick(_: c_int) {
    if TICKS.fetch_add(1, Ordering::SeqCst) >= MAX_TICKS {
        let signal = INTERRUPTED_BY.load(Ordering::SeqCst);
        end_by(signal);
        // The default action doesn't end process 1.
        // SAFETY: the call ends the process, and may be made in a signal handler.
        unsafe { libc::_exit(128 + signal) };
    }
}

/// Ends this process by the default action of a signal. Returns if that action doesn't end the process.
pub fn end_by(signal: i32) {
    // SAFETY: SIG_DFL is a valid action. A number that isn't a signal only leads to an error.
    unsafe { libc::signal(signal as c_int, libc::SIG_DFL) };
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the call initialises the whole set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the set has just been initialised.
    let mut set = unsafe { set.assume_init() };
    // SAFETY: the set is valid. A number that isn't a signal only leads to an error.
    unsafe { libc::sigaddset(&raw mut set, signal) };
    // SAFETY: the call takes a number and accesses no memory of ours.
    unsafe { libc::raise(signal) };
    // SAFETY: the set lives during the call, and the pointer for the previous one may be null.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_signal_is_recognized() {
        // SAFETY: both are valid actions, and no other test depends on this signal.
        let set = |action| unsafe { libc::signal(libc::SIGURG, action) };
        set(libc::SIG_IGN);
        assert!(is_ignored(libc::SIGURG));
        set(libc::SIG_DFL);
        assert!(!is_ignored(libc::SIGURG) && !is_ignored(0) && !is_ignored(1000));
    }
}
