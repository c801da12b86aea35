//! Whether standard output was open when the program was started. Rust opens /dev/null in its place before `main`, so that
//! what is written to it is lost without an error.

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    // SAFETY: F_GETFD takes no third argument and changes nothing, whatever the descriptor is.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    CLOSED.store(flags == -1, Ordering::Relaxed);
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
