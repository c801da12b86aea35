//! A run on several threads. One thread at a time reads, one at a time writes, and all transform concurrently.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{hint, thread};

use rustix::event::{EventfdFlags, eventfd};

use super::chunks::Chunks;
use super::engine::{Engine, refuse_same_file, through_cache};
use super::error::Error;
use super::fate::Flow;
use super::fault;
use super::output::{Output, Store};
use super::reader::{Next, Reader, WhenIdle};
use super::region::Region;
use super::report::{Ended, LinesReport};
use super::threads;
use super::transform::Transform;
use super::writer::{Readers, Writer};

/// How long a waiting thread stays awake before it sleeps. Reading a batch takes about 20 µs. So does transforming it,
/// and so does waking a thread on a virtual machine. With this wait, two threads were 1.5 times as fast as without it.
const SPIN_TIME: Duration = Duration::from_micros(50);

/// What the threads share.
struct Run<'e, 'fd> {
    engine: &'e Engine,
    input: Mutex<OrderedInput<'fd>>,
    /// The chunks of a file that all threads read concurrently. If set, the threads take their batches from here, not
    /// from `input`.
    chunks: Option<Chunks<'fd>>,
    output: Mutex<OrderedOutput<'fd>>,
    /// The batch to write next. Changed only with `output` locked.
    next: AtomicU64,
    /// Signalled when `next` changes, and at the end.
    turn: Condvar,
    /// Set at the end of the run, so that no thread reads further. `cancel` becomes readable at the same time.
    over: AtomicBool,
    cancel: &'e OwnedFd,
    /// How long a thread waits for its turn before it sleeps.
    spin_time: Duration,
}

struct OrderedInput<'fd> {
    reader: Reader<'fd>,
    batches: u64,
}

struct OrderedOutput<'fd> {
    writer: Writer<'fd>,
    /// How the run ended; `None` until then.
    ended: Option<Result<Ended, Error>>,
}

impl Engine {
    /// Transforms all lines of `input` to `output` on up to `threads` threads, including the calling thread. Each
    /// thread has a clone of `transform`, and processes its batches in the order of the input.
    ///
    /// Each thread reads its own chunks of a regular file with pread(2), unless the transform is
    /// [numbered](Transform::numbered). Any other input is read by one thread at a time. One thread at a time writes,
    /// and all threads transform concurrently. There are no queues: a thread that waits for its turn to write doesn't
    /// read, so a slow reader of the output slows the whole run.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run). The output written before an error is the same as that of a run on one thread.
    ///
    /// # Panics
    ///
    /// If the transform panics.
    pub fn run_parallel<T>(
        &self,
        input: impl AsFd,
        output: impl AsFd,
        mut transform: T,
        threads: NonZeroUsize,
    ) -> Result<LinesReport, Error>
    where
        T: Transform + Clone + Send,
    {
        if threads.get() == 1 {
            return self.run(input, output, &mut transform);
        }
        let output = output.as_fd();
        through_cache(input.as_fd(), |input| {
            let span = self.span(input)?;
            refuse_same_file(input, output)?;
            run(self, input, output, transform, threads, span)
        })
    }
}

fn run<T: Transform + Clone + Send>(
    engine: &Engine,
    input: BorrowedFd<'_>,
    output: BorrowedFd<'_>,
    mut transform: T,
    threads: NonZeroUsize,
    span: Range<u64>,
) -> Result<LinesReport, Error> {
    let cancel = fault::point().and_then(|()| eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK));
    let cancel = cancel.map_err(|errno| Error::Read(errno.into()))?;
    let reader = engine.reader(input, Some(cancel.as_fd()), transform.numbered(), span)?;
    let writer = engine.writer(output)?;
    // The process at a pipe's other end may take long, and may need this CPU. If input and output are files, a thread
    // waits only for another thread's turn, which ends sooner than a sleeping thread wakes up.
    let spin_time = if reader.never_waits() && writer.never_waits() { SPIN_TIME } else { Duration::ZERO };
    let plan = reader.plan();
    let chunks = Chunks::of(input, plan);
    let run = Run {
        engine,
        chunks,
        input: Mutex::new(OrderedInput { reader, batches: 0 }),
        output: Mutex::new(OrderedOutput { writer, ended: None }),
        next: AtomicU64::new(0),
        turn: Condvar::new(),
        over: AtomicBool::new(false),
        cancel: &cancel,
        spin_time,
    };
    let work = |(buffer, store)| {
        let (mut transform, run) = (transform.clone(), &run);
        move || run.work(&mut transform, buffer, store)
    };
    // Starts only as many threads as there is memory for.
    let others = (1..threads.get()).map(|_| plan.memory().ok().map(work));
    let threads = threads::run(work(plan.memory()?), others);
    let OrderedInput { mut reader, .. } = run.input.into_inner().unwrap_or_else(PoisonError::into_inner);
    let OrderedOutput { mut writer, ended } = run.output.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut ended = ended.unwrap_or(Ok(Ended::Input))?;
    if let Some(chunks) = run.chunks {
        let (bytes, reads) = chunks.leave_position()?;
        reader.continue_after(bytes, reads);
        if ended == Ended::Input {
            // Processes the input that is left: a last line without a terminator, a line that is too long, or bytes
            // that were appended to the file meanwhile.
            ended = engine.drain(&mut reader, &mut writer, &mut transform)?;
        }
    }
    Ok(LinesReport::of(ended, threads, &reader, &writer))
}

impl<'fd> Run<'_, 'fd> {
    fn work<T: Transform>(&self, transform: &mut T, mut buffer: Region, mut store: Store) {
        let _unwinding = EndIfUnwinding(self);
        loop {
            let (batch, read) = match &self.chunks {
                Some(chunks) => chunks.take(&mut buffer),
                None => {
                    let mut input =
                        spin_for(self.spin_time, || self.input.try_lock().ok()).unwrap_or_else(|| lock(&self.input));
                    if self.over.load(Ordering::Relaxed) {
                        return;
                    }
                    let batch = input.batches;
                    input.batches += 1;
                    (batch, input.reader.next(&mut buffer, WhenIdle::Wait))
                }
            };
            let extent = match read {
                Ok(Next::Batch(extent)) => extent,
                Ok(Next::End | Next::Idle) => return self.end(self.wait_for_turn(batch), Ok(Ended::Input)),
                Err(error) => return self.end(self.wait_for_turn(batch), Err(error)),
            };
            let mut output = Output::new(store);
            // No line begins in this chunk.
            let flow = match extent.len {
                0 => Ok(Flow::Continue),
                _ => transform.batch(&self.engine.batch_at(&buffer, extent), &mut output),
            };
            let flow = output.check_memory(flow);
            let Some(mut ordered) = self.wait_for_turn(batch) else { return };
            if self.chunks.as_ref().is_some_and(|chunks| chunks.is_behind(batch)) {
                return self.end(Some(ordered), Ok(Ended::Input));
            }
            let written = ordered.writer.write(&mut output);
            let ended = match (written, flow) {
                (Err(error), _) | (Ok(_), Err(error)) => Err(error),
                (Ok(Readers::Gone), Ok(_)) => Ok(Ended::ReadersGone),
                (Ok(Readers::Present), Ok(Flow::Stop)) => Ok(Ended::Stopped),
                (Ok(Readers::Present), Ok(Flow::Continue)) => {
                    self.next.store(batch + 1, Ordering::Relaxed);
                    drop(ordered);
                    self.turn.notify_all();
                    store = output.into_store();
                    continue;
                }
            };
            return self.end(Some(ordered), ended);
        }
    }

    /// Waits until all earlier batches are written. Returns `None` if the run ended first.
    fn wait_for_turn(&self, batch: u64) -> Option<MutexGuard<'_, OrderedOutput<'fd>>> {
        let is_next = || self.next.load(Ordering::Relaxed) == batch;
        spin_for(self.spin_time, || is_next().then_some(()));
        let ordered = self
            .turn
            .wait_while(lock(&self.output), |ordered| ordered.ended.is_none() && !is_next())
            .unwrap_or_else(PoisonError::into_inner);
        ordered.ended.is_none().then_some(ordered)
    }

    fn end(&self, ordered: Option<MutexGuard<'_, OrderedOutput<'fd>>>, ended: Result<Ended, Error>) {
        let Some(mut ordered) = ordered else { return };
        ordered.ended = Some(ended);
        drop(ordered);
        self.stop();
    }

    fn stop(&self) {
        self.over.store(true, Ordering::Relaxed);
        // The write adds 1 to the counter of an eventfd. Nothing else increases the counter, so the write doesn't wait.
        let _ = rustix::io::write(self.cancel, &1u64.to_ne_bytes());
        self.turn.notify_all();
    }
}

/// Ends the run if a transform panics, so that no thread waits for that transform's batch. `threads::run` then resumes
/// the panic.
struct EndIfUnwinding<'r, 'e, 'fd>(&'r Run<'e, 'fd>);

impl Drop for EndIfUnwinding<'_, '_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            lock(&self.0.output).ended.get_or_insert(Ok(Ended::Stopped));
            self.0.stop();
        }
    }
}

/// Locks a mutex and ignores poisoning. A panicking transform holds no lock, and the state of a panicking engine is
/// read only to end the run.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Repeats `ask` until it returns an answer or `spin_time` is over.
fn spin_for<T>(spin_time: Duration, ask: impl Fn() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        let answer = ask();
        if answer.is_some() || spin_time.is_zero() || start.elapsed() >= spin_time {
            return answer;
        }
        for _ in 0..64 {
            hint::spin_loop();
        }
    }
}
