//! The source: writes blocks to the link until the windows of all sinks are over.

use std::io;

use pipeio_harness::pattern::Pattern;
use pipeio_harness::send::{BlockContent, Moved, Sender};
use pipemark_sys::usage::{monotonic_ns, thread_cpu_ns};

use crate::link::{self, Handle, Link};
use crate::runner::end::meter::{
    BLOCKS_PER_ROUND, BYTES_PER_ROUND, Meter, SimulatedWork, ceiling, is_over, loop_overhead_ns,
};
use crate::runner::end::{Done, TrialEnd, lines_source};

/// The duration of the warm-up in nanoseconds. The source sends at least [`WARM_UP_BLOCKS`] blocks. After these it ends
/// the warm-up early if it has sent [`WARM_UP_BYTES`].
const WARM_UP_NS: u64 = 2_000_000;
const WARM_UP_BLOCKS: u64 = 4;
const WARM_UP_BYTES: u64 = 64 << 20;

struct SourceEnd<'a> {
    end: &'a TrialEnd,
    sender: Box<dyn Sender + Send>,
    pattern: Pattern,
    content: BlockContent,
    block: usize,
    busy: SimulatedWork,
    position: u64,
    /// Number of bytes newly written.
    written: u64,
}

pub(super) fn run(end: &TrialEnd, link: &dyn Link, handle: Handle) -> io::Result<Done> {
    let ends = &end.ends;
    let content = link::content(ends);
    let mut sender = link.sender(handle, ends)?;
    let pattern = end.pattern(0);
    if content == BlockContent::Prepared {
        sender.prepare(&mut |position, bytes| {
            pattern.fill(position, &mut *bytes);
            if ends.content == pipemark_model::Content::Text {
                lines_source::of(bytes);
            }
        })?;
    }
    let (block, busy) = (ends.block.as_usize(), end.busy(ends.write_delay));
    let mut source = SourceEnd { end, sender, pattern, content, block, busy, position: 0, written: 0 };
    let stats = end.stats(source.speed_without_transfer()?);
    source.written = 0;

    end.control.wait_at_barrier(1)?;
    let chained = end.chained();
    if !chained {
        source.warm_up()?;
    }
    // The count is read outside the window, and before the sender frees its memory.
    let huge_bytes = end.huge_bytes();
    let mut meter = Meter::new();
    let own_ns = source.loop_overhead_ns();
    let released_ns = end.control.wait_at_barrier(2)?;

    // Keeps bytes flowing until the sink's clock starts.
    while !chained && ends.link.transfers() && !end.control.begun() {
        source.worked_block()?;
        end.progress(source.position);
    }
    if chained {
        meter.begin_at(released_ns);
    } else {
        meter.begin();
    }
    let before = source.position;
    let over = |position: u64| match chained {
        true => is_over(ends.volume, position, released_ns, monotonic_ns),
        false => end.control.stopped(),
    };
    let blocks = source.blocks_per_round(chained);
    while !over(source.position) {
        let moved = if blocks == 1 { source.worked_block()? } else { source.blocks(blocks)? };
        meter.count(moved.calls);
        end.progress(source.position);
    }
    let mut stats = meter.stop(source.position - before, own_ns, stats);
    stats.bytes_in_all = source.position;
    stats.xor = pattern.xor(source.position);
    let written = source.written;
    // The speed is measured before and after the window, and the higher value is used, because either measurement may
    // be disturbed. The window of a chain isn't over here, so a chain's source isn't measured again.
    if let (false, Some(ceiling)) = (chained, stats.ceiling) {
        stats.ceiling = source.speed_without_transfer()?.map(|after| after.max(ceiling));
    }
    // Most links end the stream when closed. Some need an end marker.
    source.sender.finish()?;
    let note = source.sender.note();
    drop(source);
    Ok(Done { stats, note, huge_bytes, written, ..Done::default() })
}

impl SourceEnd<'_> {
    /// The speed of the source without the transfer, in bytes per second; `None` if the source generates no content and
    /// does no work.
    fn speed_without_transfer(&mut self) -> io::Result<Option<f64>> {
        if self.content == BlockContent::Prepared && self.busy.seconds() == 0.0 {
            return Ok(None);
        }
        ceiling(thread_cpu_ns, self.busy.seconds(), || self.make(0).map(|()| self.block)).map(Some)
    }

    /// Generates the block at `position`, if each block is to be newly written.
    #[inline]
    fn make(&mut self, position: u64) -> io::Result<()> {
        if self.content == BlockContent::Fresh {
            self.pattern.fill(position, self.sender.fresh(self.block)?);
            self.written += self.block as u64;
        }
        Ok(())
    }

    /// Overhead of the loop per round, in nanoseconds, without generating and sending bytes.
    fn loop_overhead_ns(&self) -> f64 {
        let mut meter = Meter::new();
        loop_overhead_ns(|| {
            std::hint::black_box(self.end.control.stopped());
            meter.count(1);
            self.end.progress(self.position);
        })
    }

    /// The number of blocks that are sent between two checks whether the window is over. Several, if nothing else is
    /// done between these blocks.
    fn blocks_per_round(&self, chained: bool) -> u32 {
        let alone = self.content == BlockContent::Prepared && self.busy.seconds() == 0.0 && !chained;
        if alone { BLOCKS_PER_ROUND.min((BYTES_PER_ROUND / self.block) as u32).max(1) } else { 1 }
    }

    fn blocks(&mut self, blocks: u32) -> io::Result<Moved> {
        let moved = self.sender.send_blocks(self.block, blocks)?;
        self.position += moved.bytes as u64;
        Ok(moved)
    }

    fn worked_block(&mut self) -> io::Result<Moved> {
        self.busy.work();
        self.block()
    }

    #[inline]
    fn block(&mut self) -> io::Result<Moved> {
        self.make(self.position)?;
        let moved = self.sender.send(self.block)?;
        self.position += moved.bytes as u64;
        Ok(moved)
    }

    /// Sends blocks until the warm-up time is over. Before it sends the last block, publishes the length of the warm-up
    /// in bytes, so that the sink can't miss the end of the warm-up.
    fn warm_up(&mut self) -> io::Result<()> {
        let begin = monotonic_ns();
        let mut blocks = 1;
        while blocks < WARM_UP_BLOCKS || (monotonic_ns() - begin < WARM_UP_NS && self.position < WARM_UP_BYTES) {
            self.block()?;
            blocks += 1;
        }
        self.end.control.announce_warm_up(self.end.assignment.line, self.position + self.block as u64);
        self.block()?;
        Ok(())
    }
}
