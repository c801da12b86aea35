//! How the program was started, before Rust's own start changes it. Rust opens /dev/null in place of a closed standard
//! output, so that what is written to it is lost without an error, and ignores SIGPIPE.

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);
static SIGPIPE_IGNORED: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    // SAFETY: F_GETFD takes no third argument and changes nothing, whatever the descriptor is.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    CLOSED.store(flags == -1, Ordering::Relaxed);
    // SAFETY: all zeros are a valid value of it.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action the call only writes the old one to where the last argument leads.
    let failed = unsafe { libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut action) };
    let ignored = failed == 0 && action.sa_sigaction == libc::SIG_IGN;
    SIGPIPE_IGNORED.store(ignored, Ordering::Relaxed);
}

/// Called by the loader before Rust's own start.
// SAFETY: the section holds pointers to functions of this kind; this one needs nothing that Rust's start sets up.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = look;

/// Whether the program was started without standard output, as with `>&-`.
pub fn stdout_was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Whether the program was started with SIGPIPE ignored.
pub fn sigpipe_was_ignored() -> bool {
    SIGPIPE_IGNORED.load(Ordering::Relaxed)
}
