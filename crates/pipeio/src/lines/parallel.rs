//! The run on several threads: turns to read, turns to write, and the transform between them.

use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::event::{EventfdFlags, eventfd};

use super::engine::{Ended, Engine, Report};
use super::error::Error;
use super::output::{Output, Store};
use super::reader::Reader;
use super::region::Region;
use super::transform::{Flow, Transform};
use super::writer::{Readers, Writer};

/// What the threads share.
struct Run<'e, 'fd> {
    engine: &'e Engine,
    input: Mutex<Input<'fd>>,
    output: Mutex<Turns<'fd>>,
    /// Signalled when the turn goes to the next batch, and at the end.
    turn: Condvar,
    /// Set at the end, with `cancel` readable, so that nobody reads on.
    over: AtomicBool,
    cancel: &'e OwnedFd,
}

struct Input<'fd> {
    reader: Reader<'fd>,
    batches: u64,
}

struct Turns<'fd> {
    writer: Writer<'fd>,
    /// The batch whose output is to be written next.
    batch: u64,
    /// How the run ended, once it has.
    ended: Option<Result<Ended, Error>>,
}

pub(super) fn run<T: Transform + Clone + Send>(
    engine: &Engine,
    input: BorrowedFd<'_>,
    output: BorrowedFd<'_>,
    mut transform: T,
    threads: NonZeroUsize,
) -> Result<Report, Error> {
    let cancel = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|e| Error::Read(e.into()))?;
    let reader = engine.reader(input, Some(cancel.as_fd()), transform.numbered())?;
    let writer = engine.writer(output)?;
    let memory = (0..threads.get()).map(|_| engine.memory()).collect::<Result<Vec<_>, _>>()?;
    let run = Run {
        engine,
        input: Mutex::new(Input { reader, batches: 0 }),
        output: Mutex::new(Turns { writer, batch: 0, ended: None }),
        turn: Condvar::new(),
        over: AtomicBool::new(false),
        cancel: &cancel,
    };
    thread::scope(|scope| {
        let mut memory = memory.into_iter();
        let own = memory.next();
        for (buffer, store) in memory {
            let (mut transform, run) = (transform.clone(), &run);
            scope.spawn(move || run.work(&mut transform, buffer, store));
        }
        if let Some((buffer, store)) = own {
            run.work(&mut transform, buffer, store);
        }
    });
    let input = run.input.into_inner().unwrap_or_else(PoisonError::into_inner);
    let turns = run.output.into_inner().unwrap_or_else(PoisonError::into_inner);
    let ended = turns.ended.unwrap_or(Ok(Ended::Input))?;
    Ok(Report::of(ended, &input.reader, &turns.writer))
}

impl<'fd> Run<'_, 'fd> {
    fn work<T: Transform>(&self, transform: &mut T, mut buffer: Region, mut store: Store) {
        let _unwinding = EndIfUnwinding(self);
        loop {
            let (batch, read) = {
                let mut input = lock(&self.input);
                if self.over.load(Ordering::Relaxed) {
                    return;
                }
                let batch = input.batches;
                input.batches += 1;
                (batch, input.reader.next(&mut buffer))
            };
            let extent = match read {
                Ok(Some(extent)) => extent,
                Ok(None) => return self.end(self.turn_of(batch), Ok(Ended::Input)),
                Err(error) => return self.end(self.turn_of(batch), Err(error)),
            };
            let mut output = Output::new(store);
            let flow = transform.batch(&self.engine.whole(&buffer, extent), &mut output);
            let Some(mut turns) = self.turn_of(batch) else { return };
            let written = turns.writer.write(&mut output);
            let ended = match (written, flow) {
                (Err(error), _) | (Ok(_), Err(error)) => Err(error),
                (Ok(Readers::Gone), Ok(_)) => Ok(Ended::ReadersGone),
                (Ok(Readers::Present), Ok(Flow::Stop)) => Ok(Ended::Stopped),
                (Ok(Readers::Present), Ok(Flow::Continue)) => {
                    turns.batch += 1;
                    drop(turns);
                    self.turn.notify_all();
                    store = output.into_store();
                    continue;
                }
            };
            return self.end(Some(turns), ended);
        }
    }

    /// Waits until all batches before this one are written. None if the run ended instead.
    fn turn_of(&self, batch: u64) -> Option<MutexGuard<'_, Turns<'fd>>> {
        let turns = self
            .turn
            .wait_while(lock(&self.output), |turns| turns.ended.is_none() && turns.batch != batch)
            .unwrap_or_else(PoisonError::into_inner);
        turns.ended.is_none().then_some(turns)
    }

    fn end(&self, turns: Option<MutexGuard<'_, Turns<'fd>>>, ended: Result<Ended, Error>) {
        let Some(mut turns) = turns else { return };
        turns.ended = Some(ended);
        drop(turns);
        self.stop();
    }

    fn stop(&self) {
        self.over.store(true, Ordering::Relaxed);
        // Nothing else is ever written to it, so there is room.
        let _ = rustix::io::write(self.cancel, &1u64.to_ne_bytes());
        self.turn.notify_all();
    }
}

/// Ends the run if a transform panics, so that the others don't wait for its batch. The scope then passes the panic on.
struct EndIfUnwinding<'r, 'e, 'fd>(&'r Run<'e, 'fd>);

impl Drop for EndIfUnwinding<'_, '_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            lock(&self.0.output).ended.get_or_insert(Ok(Ended::Stopped));
            self.0.stop();
        }
    }
}

/// A panicking transform holds no lock, and what a panicking engine held is only looked at to end the run.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
