//! What happens when there is no memory: a sentence and exit code 1, where std would abort.

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator for a program, which it ends when there is no more memory. As a global allocator:
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: pipeio_harness::allocator::OrExit = pipeio_harness::allocator::OrExit;
/// ```
#[derive(Debug)]
pub struct OrExit;

fn or_exit(start: *mut u8) -> *mut u8 {
    if start.is_null() {
        no_memory();
    }
    start
}

#[cold]
fn no_memory() -> ! {
    const MESSAGE: &[u8] = b"pipemark: there is no memory; raise the limit (ulimit -v) or end other programs\n";
    let _ = rustix::io::write(rustix::stdio::stderr(), MESSAGE);
    // SAFETY: ends the process at once, whatever its threads hold.
    unsafe { libc::_exit(1) }
}

// SAFETY: all is done by the system's allocator, and what it returns is passed on.
unsafe impl GlobalAlloc for OrExit {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller promises a layout that has a size, which is what is asked for.
        or_exit(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller promises a layout that has a size, which is what is asked for.
        or_exit(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that it came from this allocator, which is the system's, with this layout, and that the
        // new size is one.
        or_exit(unsafe { System.realloc(start, layout, size) })
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller promises that it came from this allocator, which is the system's, with this layout.
        unsafe { System.dealloc(start, layout) }
    }
}
