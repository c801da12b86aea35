//! An allocator that prints a message and exits with code 1 when memory runs out, where std would abort.

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator. If memory runs out, ends the process with exit code 1. Use it as the global allocator:
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: pipemark_sys::allocator::ExitOnFailure = pipemark_sys::allocator::ExitOnFailure;
/// ```
#[derive(Debug)]
pub struct ExitOnFailure;

fn exit_if_null(start: *mut u8) -> *mut u8 {
    if start.is_null() {
        no_memory();
    }
    start
}

#[cold]
fn no_memory() -> ! {
    const MESSAGE: &[u8] = b"pipemark: out of memory; raise the limit (ulimit -v) or stop other programs\n";
    let _ = rustix::io::write(rustix::stdio::stderr(), MESSAGE);
    // SAFETY: the call takes a number, accesses no memory of ours, and does not return.
    unsafe { libc::_exit(1) }
}

// SAFETY: each call is passed to the system's allocator, and its result is returned.
unsafe impl GlobalAlloc for ExitOnFailure {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller promises a layout with a size above 0, as the system's allocator requires.
        exit_if_null(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller promises a layout with a size above 0, as the system's allocator requires.
        exit_if_null(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the memory is from this allocator, and so from the system's, with this
        // layout. The caller also promises that the new size is above 0 and valid for the layout's alignment.
        exit_if_null(unsafe { System.realloc(start, layout, size) })
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller promises that the memory is from this allocator, and so from the system's, with this
        // layout.
        unsafe { System.dealloc(start, layout) }
    }
}
