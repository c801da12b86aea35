//! A relay with memory between its two sides: one thread reads into the memory, the calling thread writes from it.
//!
//! The memory is divided into blocks. The block that was emptied last is filled next, because it is still in the cache.
//! All blocks with bytes except the last are full, whatever the size of the reads. The bytes of the last block can be
//! written while more are read after them, so no byte waits until its block is full.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::mm::MapFlags;
use rustix::param::page_size;

use super::flow::{BatchPolicy, IdleTuner};
use super::handle::{RelayHandle, unread};
use super::limits::BUFFER;
use super::methods::Kind;
use super::run::{End, RelayRun, longest_write, output_without_waiting};
use crate::memory::{Mapping, Pages, Region};

/// The minimum number of blocks, unless blocks would then be smaller than a page. A block is at most as large as one
/// read.
const MIN_BLOCKS: usize = 8;

/// While the buffer is below its [start level](MemoryBuffer::start_at), writing starts anyway if no input has arrived
/// for this time.
const MAX_INPUT_PAUSE: Duration = Duration::from_secs(1);

/// How long an empty buffer keeps its memory.
const IDLE: Duration = Duration::from_millis(100);

/// Blocks that were free for at least this time are released once the buffer is empty.
const UNUSED: Duration = Duration::from_secs(1);

/// The maximum number of blocks that are released while the buffer is locked.
const BLOCKS_TO_RELEASE: usize = 64;

/// How long the buffer stays unlocked before more blocks are released, so that the reading thread can continue.
const RELEASE_PAUSE: Duration = Duration::from_micros(50);

/// Memory between the two sides of a relay, and the fill levels at which writing and reading resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryBuffer {
    bytes: usize,
    start_at: u8,
    stop_at: u8,
}

impl MemoryBuffer {
    /// Creates a buffer of at least `bytes` bytes. The size is at least two pages, rounded up to whole blocks of up to
    /// 256 KiB. Bytes are written as soon as they arrive, and read as soon as there is room.
    pub fn new(bytes: usize) -> MemoryBuffer {
        MemoryBuffer { bytes, start_at: 0, stop_at: 100 }
    }

    /// Delays writing until the buffer is filled to this percentage (at most 100), at the start and each time the
    /// buffer was empty. Like `mbuffer -P`. Writing also starts when the input has ended, or when no input has arrived
    /// for one to two seconds.
    pub fn start_at(mut self, percent: u8) -> MemoryBuffer {
        self.start_at = percent.min(100);
        self
    }

    /// After the buffer was full, resumes reading once its fill level is at most this percentage, like `mbuffer -p`.
    pub fn stop_at(mut self, percent: u8) -> MemoryBuffer {
        self.stop_at = percent.min(100);
        self
    }

    /// The size of the buffer in bytes, rounded as [`new`](Self::new) describes.
    pub fn size(self) -> usize {
        let (block, count) = self.blocks();
        block.saturating_mul(count)
    }

    /// The size of a block in bytes, and the number of blocks.
    fn blocks(self) -> (usize, usize) {
        let bytes = self.bytes.max(page_size() * 2);
        let block = (bytes / MIN_BLOCKS).clamp(page_size(), BUFFER).next_multiple_of(page_size());
        (block, bytes.div_ceil(block))
    }
}

/// The buffer, shared by the thread that fills it and the one that empties it.
struct SharedBuffer {
    memory: Mapping,
    block: usize,
    /// Fill levels in bytes: first the level at which writing starts, then the level at which reading resumes after the
    /// buffer was full.
    marks: [u64; 2],
    state: Mutex<BufferState>,
    /// Signalled when there are bytes to write.
    filled: Condvar,
    /// Signalled when there is room.
    emptied: Condvar,
    handle: RelayHandle,
}

struct BufferState {
    /// Blocks with bytes, the oldest first. All but the last are full.
    queue: VecDeque<usize>,
    /// Blocks without bytes. The last block in the list is used next.
    free: Vec<usize>,
    /// Whether each block has memory.
    touched: Vec<bool>,
    /// The number of free blocks that have memory.
    touched_free: usize,
    /// Bytes read into the last block of the queue.
    filled: usize,
    /// Bytes written from the first block of the queue.
    taken: usize,
    /// Bytes in the buffer.
    bytes: u64,
    /// All bytes read so far.
    read: u64,
    /// How the input ended; `None` until it has ended.
    ended: Option<io::Result<()>>,
    /// Whether the writing thread has stopped.
    abandoned: bool,
    /// Whether the buffer was full and its fill level hasn't yet fallen to the mark.
    full: bool,
    writing: bool,
    /// Whether the writing thread sleeps.
    writer_waits: bool,
    /// Whether the reading thread sleeps.
    reader_waits: bool,
    /// The smallest number of free blocks after the time `since`. This many blocks at the start of `free` haven't been
    /// needed since then.
    least_free: usize,
    since: Instant,
}

impl SharedBuffer {
    fn new(buffer: MemoryBuffer, handle: RelayHandle) -> io::Result<SharedBuffer> {
        let (block, blocks) = buffer.blocks();
        let len = blocks.checked_mul(block).ok_or(io::ErrorKind::OutOfMemory)?;
        check_available(len as u64)?;
        let memory = Mapping::of(len, MapFlags::empty())?;
        memory.prefer_huge_pages(false);
        let mark = |percent: u8| (len as u128 * u128::from(percent) / 100) as u64;
        // The block being written can't be refilled. So the buffer counts as 100 % full when no block is free (see
        // `room`).
        let marks = [mark(buffer.start_at), mark(buffer.stop_at)];
        let state = BufferState {
            queue: VecDeque::with_capacity(blocks),
            free: (0..blocks).rev().collect(),
            touched: vec![false; blocks],
            touched_free: 0,
            filled: 0,
            taken: 0,
            bytes: 0,
            read: 0,
            ended: None,
            abandoned: false,
            full: false,
            writing: marks[0] == 0,
            writer_waits: false,
            reader_waits: false,
            least_free: blocks,
            since: Instant::now(),
        };
        let (filled, emptied) = (Condvar::new(), Condvar::new());
        Ok(SharedBuffer { memory, block, marks, state: Mutex::new(state), filled, emptied, handle })
    }

    fn state(&self) -> MutexGuard<'_, BufferState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for free memory to read into. Returns `None` once the writing thread has stopped. For the reading thread
    /// only, one call at a time.
    #[expect(clippy::mut_from_ref, reason = "nobody else uses this memory until `add`")]
    fn room(&self) -> Option<&mut [u8]> {
        let mut state = self.state();
        loop {
            if state.abandoned {
                return None;
            }
            if state.bytes == 0 && !state.queue.is_empty() {
                // All bytes of this block were written: fill it from its start again.
                (state.filled, state.taken) = (0, 0);
            }
            let last = state.queue.back().copied().filter(|_| state.filled < self.block);
            if let Some(last) = last {
                let (start, len) = (self.memory.at(last * self.block + state.filled), self.block - state.filled);
                // SAFETY: the block is within the mapping, which lives as long as `self`. The writing thread uses only
                // the block's bytes below `filled`. Only the calling thread changes `filled`: in `add`, when it no
                // longer uses this slice.
                return Some(unsafe { std::slice::from_raw_parts_mut(start, len) });
            }
            if !state.full || state.bytes <= self.marks[1] {
                if let Some(block) = state.free.pop() {
                    state.full = false;
                    let touched = std::mem::replace(&mut state.touched[block], true);
                    state.touched_free -= usize::from(touched);
                    state.least_free = state.least_free.min(state.free.len());
                    state.queue.push_back(block);
                    state.filled = 0;
                    continue;
                }
                state.full = true;
            }
            // No block is free, which counts as 100 % full.
            state.writing = true;
            state.reader_waits = true;
            if state.writer_waits {
                self.filled.notify_one();
            }
            state = self.emptied.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.reader_waits = false;
        }
    }

    /// Adds `bytes` bytes, which are at the start of the slice that `room` returned, and counts `read` bytes as read
    /// from the input.
    fn add(&self, bytes: usize, read: usize) {
        let mut state = self.state();
        // The first bytes wake a writing thread that waits for the start level. From then on the thread waits no longer
        // than `MAX_INPUT_PAUSE`.
        let was_empty = state.bytes == 0;
        state.filled += bytes;
        state.bytes += bytes as u64;
        state.read += read as u64;
        self.handle.set_read(state.read);
        if state.writer_waits && (was_empty || state.writing || state.bytes >= self.marks[0]) {
            self.filled.notify_one();
        }
    }

    /// Copies `bytes` into `room`, and the rest into more room. Returns false if the writing thread has stopped.
    fn add_copy<'a>(&'a self, mut room: &'a mut [u8], bytes: &[u8]) -> bool {
        let (mut rest, mut read) = (bytes, bytes.len());
        loop {
            let (piece, after) = rest.split_at(rest.len().min(room.len()));
            room[..piece.len()].copy_from_slice(piece);
            self.add(piece.len(), std::mem::take(&mut read));
            if after.is_empty() {
                return true;
            }
            rest = after;
            match self.room() {
                Some(more) => room = more,
                None => return false,
            }
        }
    }

    /// Records the end of the input.
    fn end(&self, ended: io::Result<()>) {
        self.state().ended = Some(ended);
        self.filled.notify_one();
    }

    /// Waits for bytes to write. Returns `None` at the end of the input. For the writing thread only, one call at a
    /// time.
    fn bytes(&self) -> io::Result<Option<&[u8]>> {
        let mut state = self.state();
        let mut read = state.read;
        loop {
            if state.bytes > 0 && (state.writing || state.ended.is_some() || state.bytes >= self.marks[0]) {
                state.writing = true;
                let end = if state.queue.len() == 1 { state.filled } else { self.block };
                let (start, len) = (self.memory.at(state.queue[0] * self.block + state.taken), end - state.taken);
                // SAFETY: the block is within the mapping, which lives as long as `self`. The reading thread writes
                // only above `filled`. It gets these bytes again only after the calling thread has called `remove`,
                // when that thread no longer uses this slice.
                return Ok(Some(unsafe { std::slice::from_raw_parts(start, len) }));
            }
            let mut wait = Duration::MAX;
            if state.bytes == 0 {
                if let Some(ended) = state.ended.take() {
                    state.ended = Some(Ok(()));
                    return ended.map(|()| None);
                }
                state.writing = self.marks[0] == 0;
                state = self.release_unused(state, UNUSED);
                if state.bytes > 0 || state.ended.is_some() {
                    // They arrived while memory was released, when the reading thread had no waiting thread to notify.
                    continue;
                }
                if state.touched_free > 0 {
                    wait = IDLE;
                }
            } else {
                wait = MAX_INPUT_PAUSE;
            }
            state.writer_waits = true;
            let timed_out;
            (state, timed_out) = if wait == Duration::MAX {
                (self.filled.wait(state).unwrap_or_else(PoisonError::into_inner), false)
            } else {
                let (state, timeout) = self.filled.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner);
                (state, timeout.timed_out())
            };
            state.writer_waits = false;
            if timed_out && state.bytes == 0 {
                state.least_free = state.free.len();
                state = self.release_unused(state, Duration::ZERO);
            } else if timed_out && read == state.read {
                state.writing = true;
            }
            read = state.read;
        }
    }

    /// Removes the oldest `bytes` bytes from the buffer: they were written.
    fn remove(&self, bytes: usize) {
        let mut state = self.state();
        state.taken += bytes;
        state.bytes -= bytes as u64;
        if state.taken == self.block {
            state.taken = 0;
            let emptied = state.queue.pop_front();
            state.free.extend(emptied);
            state.touched_free += usize::from(emptied.is_some());
            if state.reader_waits && (!state.full || state.bytes <= self.marks[1]) {
                self.emptied.notify_one();
            }
        }
    }

    /// Releases the memory of blocks that have been free for at least `unused`. Stops when bytes arrive or the input
    /// ends; the next call then continues.
    fn release_unused<'a>(
        &'a self,
        mut state: MutexGuard<'a, BufferState>,
        unused: Duration,
    ) -> MutexGuard<'a, BufferState> {
        let now = Instant::now();
        if now - state.since < unused {
            return state;
        }
        let (mut at, mut released) = (0, 0_usize);
        // While other threads have the lock, the blocks below `least_free` stay where they are.
        while at < state.least_free {
            let block = state.free[at];
            at += 1;
            if !std::mem::take(&mut state.touched[block]) {
                continue;
            }
            state.touched_free -= 1;
            // SAFETY: `room` and `bytes` return only parts of blocks in the queue. This block is free, and stays free
            // while the state is locked.
            unsafe { self.memory.drop_part(block * self.block, self.block) };
            released += 1;
            if released.is_multiple_of(BLOCKS_TO_RELEASE) {
                drop(state);
                thread::sleep(RELEASE_PAUSE);
                state = self.state();
                if state.bytes > 0 || state.ended.is_some() {
                    return state;
                }
            }
        }
        (state.least_free, state.since) = (state.free.len(), now);
        state
    }

    fn has_bytes(&self) -> bool {
        self.state().bytes > 0
    }

    /// Records that the writing thread has stopped.
    fn abandon(&self) {
        self.state().abandoned = true;
        self.emptied.notify_one();
    }
}

impl RelayRun<'_> {
    /// Copies everything through memory. If the output fails, the reading thread still runs until its current read
    /// returns.
    pub(super) fn run_buffered(&mut self, buffer: MemoryBuffer) -> io::Result<End> {
        let handle = self.handle.cloned().unwrap_or_default();
        let shared = Arc::new(SharedBuffer::new(buffer, handle)?);
        let input = self.input.try_clone_to_owned()?;
        let (kinds, capacities, one_cpu, filler) = (self.kinds, self.capacities, self.one_cpu, shared.clone());
        let filler = thread::Builder::new().name("relay input".to_owned()).spawn(move || {
            // This thread may still wait for input after the relay has ended. So it has no descriptor of the output,
            // whose reader would otherwise get no end of file.
            let (input, handle) = (input.as_fd(), Some(&filler.handle));
            let stopped = handle.map(RelayHandle::stop_flag);
            fill(RelayRun { handle, stopped, ..RelayRun::new([input, input], kinds, capacities, one_cpu) }, &filler)
        });
        let filler =
            filler.map_err(|error| io::Error::new(error.kind(), format!("a thread could not be started: {error}")))?;
        let own = output_without_waiting(self.output, kinds[1]);
        let output = own.as_ref().map_or(self.output, |own| own.as_fd());
        let mut side = RelayRun {
            handle: self.handle,
            stopped: self.stopped,
            naps: self.naps.take(),
            throttle: self.throttle.take(),
            longest_write: longest_write(self.output, kinds[1], own.is_some()),
            ..RelayRun::new([self.input, output], kinds, capacities, one_cpu)
        };
        let outcome = side.empty(&shared);
        (self.bytes, self.calls) = (side.bytes, side.calls);
        shared.abandon();
        if outcome.is_err() {
            // The reading thread may have read bytes that it hasn't counted yet.
            shared.handle.wait_for_moves();
        }
        self.undelivered = shared.handle.read() - self.bytes;
        match outcome {
            Ok(()) => {
                self.calls += filler.join().unwrap_or(0);
                Ok(End::Input)
            }
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.undelivered += unread(output).unwrap_or(0);
                Ok(End::Output)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes the buffer's bytes until the input ends.
    fn empty(&mut self, shared: &SharedBuffer) -> io::Result<()> {
        while let Some(bytes) = shared.bytes()? {
            let bytes = &bytes[..bytes.len().min(self.wait_for_limit())];
            let len = bytes.len();
            let moving = shared.handle.begin_move()?;
            self.write_all(bytes)?;
            shared.remove(len);
            drop(moving);
            self.count_against_limit(len);
            if self.throttle.is_none() && shared.has_bytes() {
                self.nap_before_more(len);
            }
        }
        Ok(())
    }
}

/// Reads until the input ends, or the relay or the writing thread has stopped. Returns the number of calls made.
fn fill(mut side: RelayRun<'_>, shared: &SharedBuffer) -> u64 {
    let input: BorrowedFd<'_> = side.input;
    let is_pipe = side.kinds[0] == Kind::Pipe;
    let mut tuner = is_pipe.then(|| IdleTuner::new(side.one_cpu, side.capacities[0]));
    let mut batch_policy = (is_pipe && side.one_cpu).then(BatchPolicy::new);
    // Where there is less room than the smallest read, bytes are read into this memory first.
    let least = side.smallest_read();
    let mut aside = match Region::new(least, Pages::Base) {
        Ok(aside) => aside,
        Err(error) => {
            shared.end(Err(error));
            return side.calls;
        }
    };
    while let Some(room) = shared.room() {
        let moving = match shared.handle.begin_move() {
            Ok(moving) => moving,
            Err(stopped) => {
                shared.end(Err(stopped));
                break;
            }
        };
        // Checked only now: `abandon` is followed by a wait for the moves that have begun.
        if shared.state().abandoned {
            break;
        }
        let most = room.len().min(BUFFER);
        let fits = most >= least;
        let got = if fits { side.read(input, &mut room[..most]) } else { side.read(input, aside.bytes_mut()) };
        match got {
            Ok(bytes @ 1..) => {
                if fits {
                    shared.add(bytes, bytes);
                } else if !shared.add_copy(room, &aside.bytes()[..bytes]) {
                    break;
                }
                drop(moving);
                match &mut tuner {
                    Some(tuner) => tuner.wait(input, bytes, batch_policy.as_mut()),
                    None => side.wait_for_more(),
                }
            }
            ended => {
                shared.end(ended.map(|_| ()));
                break;
            }
        }
    }
    side.calls
}

/// Refuses a buffer larger than the memory available to the machine or the control group. The kernel allocates memory
/// only when it is first used. If memory ran out then, the kernel would kill the whole process.
fn check_available(bytes: u64) -> io::Result<()> {
    match available() {
        Some(available) if bytes > available => Err(io::Error::new(
            io::ErrorKind::OutOfMemory,
            format!("a buffer of {} is larger than the available memory of {}", in_units(bytes), in_units(available)),
        )),
        _ => Ok(()),
    }
}

fn in_units(bytes: u64) -> String {
    let units = [(1_u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB")];
    let (unit, name) = units.into_iter().find(|(unit, _)| bytes >= *unit).unwrap_or((1 << 10, "KiB"));
    format!("{:.1} {name}", bytes as f64 / unit as f64)
}

/// The number after `name` at the start of a line of `text`.
fn number_after(name: &str, text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
}

/// The bytes of the page cache that the kernel can reclaim, from a control group's memory.stat. The kernel also counts
/// shared memory as page cache, but can only swap it out.
fn reclaimable(stat: &str) -> u64 {
    let cache = number_after("file ", stat).or_else(|| number_after("cache ", stat)).unwrap_or(0);
    cache.saturating_sub(number_after("shmem ", stat).unwrap_or(0))
}

/// Available memory in bytes, according to /proc/meminfo and the control groups; `None` if neither is readable.
fn available() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| {
        Some((number_after("MemAvailable:", &text)? + number_after("SwapFree:", &text).unwrap_or(0)) << 10)
    });
    let mut least = machine;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    for group in groups.lines() {
        let mut parts = group.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, limit, usage) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max", "memory.current"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes")
            }
            _ => continue,
        };
        for directory in Path::new(path.trim_start_matches('/')).ancestors() {
            let directory = Path::new(root).join(directory);
            let number = |name: &str| fs::read_to_string(directory.join(name)).ok()?.trim().parse::<u64>().ok();
            let (Some(limit), Some(usage)) = (number(limit), number(usage)) else { continue };
            let reclaimable = fs::read_to_string(directory.join("memory.stat")).map_or(0, |stat| reclaimable(&stat));
            let left = limit.saturating_sub(usage.saturating_sub(reclaimable));
            least = Some(least.map_or(left, |least| least.min(left)));
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_blocks() {
        assert_eq!(MemoryBuffer::new(1).size(), 2 * page_size());
        assert_eq!(MemoryBuffer::new((16 << 20) + 1).size(), (16 << 20) + BUFFER);
    }

    #[test]
    fn shared_memory_is_not_reclaimable() {
        assert_eq!(reclaimable("anon 7\nfile 5000\nshmem 1000\nshmem_thp 3\n"), 4000);
        assert_eq!(reclaimable("cache 5000\nrss 1\nshmem 1000\n"), 4000);
        assert_eq!(reclaimable(""), 0);
    }

    #[test]
    fn sizes_in_errors_have_units() {
        assert_eq!([60 << 40, 3 << 29, 5 << 19, 1000].map(in_units), ["60.0 TiB", "1.5 GiB", "2.5 MiB", "1.0 KiB"]);
    }

    #[test]
    fn free_blocks_with_memory_are_counted_and_released() {
        const BLOCKS: usize = 3 * BLOCKS_TO_RELEASE;
        let shared = SharedBuffer::new(MemoryBuffer::new(BLOCKS * BUFFER), RelayHandle::new()).unwrap();
        for _ in 0..BLOCKS {
            shared.add(shared.room().unwrap().len(), BUFFER);
        }
        assert_eq!(shared.state().touched_free, 0);
        while shared.has_bytes() {
            let bytes = shared.bytes().unwrap().unwrap().len();
            shared.remove(bytes);
        }
        let mut state = shared.state();
        assert_eq!(state.touched_free, BLOCKS);
        state.least_free = BLOCKS;
        let state = shared.release_unused(state, Duration::ZERO);
        assert!(state.touched_free == 0 && !state.touched.contains(&true));
    }
}
