//! Threads, or fewer where the system has no more.
//!
//! Not those of std: it ends the process when there is no memory for what it keeps about a thread.

use std::any::Any;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

use super::fault;

/// What a thread of std has if nobody asks for more.
const STACK: usize = 2 << 20;

struct Task<F> {
    work: Option<F>,
    panic: Option<Box<dyn Any + Send>>,
}

impl<F: FnOnce()> Task<F> {
    fn run(&mut self) {
        if let Some(work) = self.work.take() {
            // Whatever a panic leaves half done is the caller's to look after: it goes on there.
            self.panic = catch_unwind(AssertUnwindSafe(work)).err();
        }
    }
}

/// Does `own` on this thread and each of `others` on one of its own, and returns when all are done. Where no thread can be
/// started for one it is dropped, and no more are asked for. Returns how many were done.
///
/// # Panics
/// If one of them does.
pub(super) fn run<F: FnOnce() + Send>(own: F, others: impl ExactSizeIterator<Item = Option<F>>) -> usize {
    let mut own = Task { work: Some(own), panic: None };
    let (mut tasks, mut threads) = (Vec::new(), Joined(Vec::new()));
    let room = tasks.try_reserve_exact(others.len()).and_then(|()| threads.0.try_reserve_exact(others.len()));
    let most = room.map_or(0, |()| others.len());
    for work in others.take(most).map_while(|work| work) {
        tasks.push(Task { work: Some(work), panic: None });
        let task = tasks.as_mut_ptr().wrapping_add(tasks.len() - 1);
        // SAFETY: the task stays where it is, for there is room for all of them, and nobody else reads it until its
        // thread has been joined.
        match unsafe { start(task) } {
            Some(thread) => threads.0.push(thread),
            None => break,
        }
    }
    let done = threads.0.len() + 1;
    own.run();
    drop(threads);
    if let Some(panic) = own.panic.or_else(|| tasks.into_iter().find_map(|task| task.panic)) {
        resume_unwind(panic);
    }
    done
}

/// Threads that are waited for whatever happens.
struct Joined(Vec<libc::pthread_t>);

impl Drop for Joined {
    fn drop(&mut self) {
        for &thread in &self.0 {
            // SAFETY: the thread was started joinable, and is joined once.
            unsafe { libc::pthread_join(thread, ptr::null_mut()) };
        }
    }
}

/// # Safety
/// `task` must stay valid, touched by nobody, until the thread has been joined.
unsafe fn start<F: FnOnce() + Send>(task: *mut Task<F>) -> Option<libc::pthread_t> {
    extern "C" fn enter<F: FnOnce()>(task: *mut c_void) -> *mut c_void {
        // SAFETY: it is the task that `start` was given, and only this thread's.
        unsafe { &mut *task.cast::<Task<F>>() }.run();
        ptr::null_mut()
    }
    fault::point().ok()?;
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: it is to be filled in.
    if unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let mut thread = MaybeUninit::uninit();
    // SAFETY: they were filled in. A size that is refused leaves the default.
    unsafe { libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK) };
    // SAFETY: `enter` gets the task, which the caller keeps for it; the attributes were filled in.
    let refused = unsafe { libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), enter::<F>, task.cast()) };
    // SAFETY: they were filled in, and the thread has its own by now.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    // SAFETY: filled in when there was no error.
    (refused == 0).then(|| unsafe { thread.assume_init() })
}
