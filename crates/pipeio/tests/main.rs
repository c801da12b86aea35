//! Tests of the library on real descriptors, in one program.

mod api;
mod buffered;
mod events;
mod gift;
#[cfg(feature = "lines")]
mod lines;
mod relay;

/// The result of `run` on a thread that may run on one CPU only.
fn on_one_cpu<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    std::thread::scope(|scope| {
        let bound = scope.spawn(|| {
            let mut one = sched_getaffinity(None).unwrap();
            let first = (0..CpuSet::MAX_CPU).find(|&cpu| one.is_set(cpu)).unwrap();
            one.clear();
            one.set(first);
            sched_setaffinity(None, &one).unwrap();
            run()
        });
        bound.join().unwrap()
    })
}
