//! The system calls of `pipemark` that need unsafe code and move no bytes: how the program starts ([`mod@start`],
//! [`allocator`]), [`signals`], the resources that processes used ([`usage`]), children ([`reap`]), threads with their own
//! descriptors ([`own_descriptors`]), programs that start with little memory ([`launch`]), the cached pages of files
//! ([`file_cache`]), locks by which processes agree ([`byte_locks`]), and the [`confinement`] of programs that must change
//! nothing. Linux only.
//!
//! The crate depends on no other crate of pipemark, so each of them may use it.
//!
//! **No API promise:** this crate is published only because `pipemark` depends on it, and may change in any release.
//!
//! # Safety
//!
//! All functions but [`start::run`] are safe. They pass the kernel only memory that lives during the call, and the kernel
//! keeps no reference to it. [`launch`] executes programs in a copy of this process in which nothing of this process runs.
//! [`start::run`] trusts the system's description of the command line; the macro [`start!`]
//! calls it once, before there are other threads.

pub mod allocator;
pub mod byte_locks;
pub mod confinement;
pub mod file_cache;
pub mod launch;
pub mod own_descriptors;
pub mod reap;
pub mod signals;
pub mod start;
pub mod usage;

use std::io;

/// Converts the return value of a C function: a negative value becomes the error in errno.
fn result_of<T: PartialOrd + Default>(returned: T) -> io::Result<T> {
    if returned < T::default() { Err(io::Error::last_os_error()) } else { Ok(returned) }
}
