//! Replaces the start-up code of Rust's standard library. That code polls the standard descriptors, and a pipe that was
//! polled once wakes its reader at every later write (`poll_usage` in fs/pipe.c). On one CPU, this made writes of 8 KiB
//! to `relay` take 4 % longer.
//!
//! Like Rust's, this code opens /dev/null in place of closed standard descriptors and ignores SIGPIPE. It also records
//! whether standard output was closed and whether SIGPIPE was ignored. There are three differences: reading a closed
//! standard input fails, the message of a stack overflow doesn't name the thread, and the message of a panic doesn't
//! name the main thread.

use std::ffi::{CStr, OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::panic::{self, UnwindSafe};
use std::process;
use std::sync::OnceLock;

use libc::{c_char, c_int};

static STARTED: OnceLock<Started> = OnceLock::new();

struct Started {
    words: Vec<OsString>,
    stdout_was_closed: bool,
    sigpipe_was_ignored: bool,
}

/// Makes `$main` the program's main function. `$main` returns the exit code. Use the macro once, in a program with
/// `#![no_main]`.
#[macro_export]
macro_rules! start {
    ($main:path) => {
        // SAFETY: with `#![no_main]` Rust defines no function of this name.
        #[unsafe(no_mangle)]
        extern "C" fn main(argc: ::core::ffi::c_int, argv: *const *const ::core::ffi::c_char) -> ::core::ffi::c_int {
            // SAFETY: the system passes `argc` C strings, which live as long as the process.
            unsafe { $crate::start::run(argc, argv, $main) }
        }
    };
}

/// Runs `main` and ends the process with the code that `main` returns. After a panic, if panics unwind, the code is
/// 101.
///
/// # Safety
///
/// `argv` has `argc` pointers to C strings, which live as long as the process.
#[doc(hidden)]
pub unsafe fn run(argc: c_int, argv: *const *const c_char, main: impl FnOnce() -> u8 + UnwindSafe) -> c_int {
    let words = (0..usize::try_from(argc).unwrap_or(0)).map(|at| {
        // SAFETY: `at` is below `argc`, and the caller promises that `argv` has `argc` pointers. So the address is
        // within `argv`.
        let place = unsafe { argv.add(at) };
        // SAFETY: the caller promises that the pointers in `argv` can be read.
        let word = unsafe { *place };
        // SAFETY: the caller promises that each pointer points to a C string.
        let word = unsafe { CStr::from_ptr(word) };
        OsStr::from_bytes(word.to_bytes()).to_owned()
    });
    let words = words.collect();
    let [_, stdout_was_closed, _] = [0, 1, 2].map(open_if_closed);
    // SAFETY: SIG_IGN is a valid action.
    let before = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let _ = STARTED.set(Started { words, stdout_was_closed, sigpipe_was_ignored: before == libc::SIG_IGN });
    // `exit` also flushes standard output.
    process::exit(panic::catch_unwind(main).map_or(101, c_int::from))
}

/// Opens /dev/null if `fd` is closed, so that no other file gets that number. Returns whether `fd` was closed.
fn open_if_closed(fd: c_int) -> bool {
    // SAFETY: F_GETFD takes no third argument and changes nothing, whatever `fd` is.
    let failed = unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1;
    let closed = failed && io::Error::last_os_error().raw_os_error() == Some(libc::EBADF);
    if closed {
        // A missing standard input must not look like an empty one, so reading it fails.
        let access = if fd == libc::STDIN_FILENO { libc::O_WRONLY } else { libc::O_RDWR };
        // SAFETY: the name is a C string.
        let opened = unsafe { libc::open(c"/dev/null".as_ptr(), access) };
        // open(2) uses the lowest free number, and all lower numbers are taken. If this failed without ending the
        // program, the next file to be opened would become a standard descriptor.
        if opened != fd {
            let error = io::Error::last_os_error();
            let _ = writeln!(
                io::stderr(),
                "pipemark: /dev/null can't be opened in place of a closed standard descriptor: {error}"
            );
            process::exit(1);
        }
    }
    closed
}

/// The words of the command line. Empty in a program that was not started by `start!`.
pub fn words() -> &'static [OsString] {
    STARTED.get().map_or(&[], |started| &started.words)
}

/// Whether the program was started without standard output, as with `>&-`.
pub fn stdout_was_closed() -> bool {
    STARTED.get().is_some_and(|started| started.stdout_was_closed)
}

/// Whether the program was started with SIGPIPE ignored.
pub fn sigpipe_was_ignored() -> bool {
    STARTED.get().is_some_and(|started| started.sigpipe_was_ignored)
}
