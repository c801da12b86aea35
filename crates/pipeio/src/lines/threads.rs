//! Starts threads, or fewer if the system can't start all.
//!
//! std's threads are not used, because they abort the process if memory for std's own data about a thread is lacking.

use std::any::Any;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

use super::fault;

/// The default stack size of std's threads, in bytes.
const STACK: usize = 2 << 20;

struct Task<F> {
    work: Option<F>,
    panic: Option<Box<dyn Any + Send>>,
}

impl<F: FnOnce()> Task<F> {
    fn run(&mut self) {
        if let Some(work) = self.work.take() {
            // The panic continues in the caller of `run`, which decides what to do with unfinished work.
            self.panic = catch_unwind(AssertUnwindSafe(work)).err();
        }
    }
}

/// Runs `own` on this thread and each of `others` on its own thread, and returns when all are done. If a thread can't
/// be started, its task is dropped and no more are started. Returns the number of tasks that ran.
///
/// # Panics
/// If one of the tasks panics.
pub(super) fn run<F: FnOnce() + Send>(own: F, others: impl ExactSizeIterator<Item = Option<F>>) -> usize {
    let mut own = Task { work: Some(own), panic: None };
    let (mut tasks, mut threads) = (Vec::new(), JoinOnDrop(Vec::new()));
    let room = tasks.try_reserve_exact(others.len()).and_then(|()| threads.0.try_reserve_exact(others.len()));
    let most = room.map_or(0, |()| others.len());
    for work in others.take(most).map_while(|work| work) {
        tasks.push(Task { work: Some(work), panic: None });
        let task = tasks.as_mut_ptr().wrapping_add(tasks.len() - 1);
        // SAFETY: the task stays in place, because the vector has room for all tasks and never moves them. Nobody else
        // accesses it until its thread has been joined.
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

/// Threads that are joined on drop, and therefore on every path, including a panic.
struct JoinOnDrop(Vec<libc::pthread_t>);

impl Drop for JoinOnDrop {
    fn drop(&mut self) {
        for &thread in &self.0 {
            // SAFETY: the thread was started joinable, and is joined once.
            unsafe { libc::pthread_join(thread, ptr::null_mut()) };
        }
    }
}

/// # Safety
/// `task` stays valid, and nobody else accesses it, until the thread has been joined.
unsafe fn start<F: FnOnce() + Send>(task: *mut Task<F>) -> Option<libc::pthread_t> {
    extern "C" fn enter<F: FnOnce()>(task: *mut c_void) -> *mut c_void {
        // SAFETY: the pointer is to the task that `start` received. The task is valid until this thread is joined, and
        // only this thread uses it.
        unsafe { &mut *task.cast::<Task<F>>() }.run();
        ptr::null_mut()
    }
    fault::point().ok()?;
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the pointer points to memory for attributes, which the call initialises.
    if unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let mut thread = MaybeUninit::uninit();
    // SAFETY: the attributes were initialised. If the size is refused, the default remains.
    unsafe { libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK) };
    // SAFETY: the attributes were initialised, and the caller keeps the task for `enter` until the thread is joined.
    let refused = unsafe { libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), enter::<F>, task.cast()) };
    // SAFETY: the attributes were initialised, and the thread that was started with them doesn't refer to them.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    // SAFETY: without an error, pthread_create has stored the thread.
    (refused == 0).then(|| unsafe { thread.assume_init() })
}
