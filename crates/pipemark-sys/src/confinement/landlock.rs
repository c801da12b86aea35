//! Landlock: the calling thread, and what it starts, lose rights to the file system, to TCP, and to processes outside.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::ptr::null;

use rustix::fs::{Mode, OFlags, open};

use crate::result_of;

/// The first version that keeps signals and connections to abstract Unix sockets inside: Linux 6.12.
const MIN_VERSION: libc::c_long = 6;

// From linux/landlock.h.
const CREATE_RULESET_VERSION: u32 = 1;
const RULE_PATH_BENEATH: u32 = 1;
const WRITE_FILE: u64 = 1 << 1;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_REGULAR: u64 = 1 << 8;
const TRUNCATE: u64 = 1 << 14;
/// All rights of version 6 but those to execute (bit 0), read files (bit 2) and list directories (bit 3).
const CHANGES: u64 = ((1 << 16) - 1) & !(1 | 1 << 2 | 1 << 3);
/// To bind and to connect TCP sockets.
const TCP: u64 = 0b11;
/// Abstract Unix sockets and signals.
const SCOPES: u64 = 0b11;

/// `struct landlock_ruleset_attr`.
#[repr(C)]
struct Ruleset {
    handled_files: u64,
    handled_net: u64,
    scoped: u64,
}

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct PathRule {
    allowed: u64,
    parent: libc::c_int,
}

/// Why Landlock can't be used, as a clause.
pub(super) fn obstacle() -> Option<&'static str> {
    let no_attributes = null::<Ruleset>();
    // SAFETY: with this flag, the call reads no memory and creates nothing.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, no_attributes, 0usize, CREATE_RULESET_VERSION) };
    match version {
        MIN_VERSION.. => None,
        1.. => Some("the kernel's Landlock can't keep signals inside; Linux 6.12 can"),
        _ => Some("the kernel has no Landlock, or it is off"),
    }
}

/// Refuses all changes of files but those to files in `directory` and to /dev/null, and signals, TCP and tracing.
pub(super) fn restrict(directory: &Path) -> io::Result<()> {
    let attributes = Ruleset { handled_files: CHANGES, handled_net: TCP, scoped: SCOPES };
    let size = size_of::<Ruleset>();
    // SAFETY: the kernel reads `size` bytes of `attributes`, which lives during the call.
    let created =
        result_of(unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &raw const attributes, size, 0u32) })?;
    let number = libc::c_int::try_from(created).map_err(io::Error::other)?;
    // SAFETY: the kernel has just opened this descriptor, with FD_CLOEXEC, and nothing else knows it.
    let ruleset = unsafe { OwnedFd::from_raw_fd(number) };
    let open = |path: &Path| open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    allow(&ruleset, &open(directory)?, WRITE_FILE | TRUNCATE | MAKE_REGULAR | REMOVE_FILE)?;
    allow(&ruleset, &open(Path::new("/dev/null"))?, WRITE_FILE | TRUNCATE)?;
    // SAFETY: the call passes no memory.
    result_of(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0u32) }).map(drop)
}

fn allow(ruleset: &OwnedFd, parent: &OwnedFd, allowed: u64) -> io::Result<()> {
    let rule = PathRule { allowed, parent: parent.as_raw_fd() };
    let (ruleset, kind) = (ruleset.as_raw_fd(), RULE_PATH_BENEATH);
    // SAFETY: the kernel reads a rule of this kind from `rule`, which lives during the call.
    result_of(unsafe { libc::syscall(libc::SYS_landlock_add_rule, ruleset, kind, &raw const rule, 0u32) }).map(drop)
}
