//! The source: writes blocks into the link until the load is over.

use std::io;

use pipeio::send::{Content, Moved, Sender};
use pipeio_harness::pattern::Pattern;
use pipeio_harness::usage::monotonic_ns;

use super::meter::{Busy, Meter, ceiling};
use super::{Done, End, text};
use crate::link::{self, Handle, Link};
use crate::model::{self, EndStats, Volume};

/// The warm-up: long enough for the memory that is given away to have been round once, and for the scheduler to have
/// settled; short against any window.
const WARM_UP_NS: u64 = 5_000_000;
const WARM_UP_BLOCKS: u64 = 4;
const WARM_UP_BYTES: u64 = 64 << 20;

struct Source<'a> {
    end: &'a End,
    sender: Box<dyn Sender + Send>,
    pattern: Pattern,
    content: Content,
    block: usize,
    busy: Busy,
    position: u64,
}

pub(super) fn run(end: &End, link: &dyn Link, handle: Handle) -> io::Result<Done> {
    let ends = end.ends();
    let block = ends.block.as_usize();
    let content = link::content(ends);
    let mut sender = link.sender(handle, ends)?;
    let pattern = end.pattern(0);
    if content == Content::Prepared {
        sender.prepare(&mut |position, bytes| {
            pattern.fill(position, bytes);
            if ends.content == model::Content::Text {
                text::of(bytes);
            }
        })?;
    }
    let busy = Busy::new(ends.write_delay, end.assignment.seed ^ end.assignment.line as u64);
    let mut source = Source { end, sender, pattern, content, block, busy, position: 0 };
    let stats = EndStats { pinned: end.pinned.clone(), ceiling: source.alone()?, ..EndStats::default() };

    end.control.meet(1)?;
    if !end.chained() {
        source.warm_up()?;
    }
    // Asked before the sender, and its memory, is gone, and outside the window.
    let huge_bytes = super::huge_bytes(ends);
    let released_ns = end.control.meet(2)?;

    let mut meter = Meter::start(released_ns);
    let before = source.position;
    // Through a chain the whole stream is measured, to its end: stages may hold bytes back, or change their number.
    let over = |position: u64| match ends.volume {
        _ if !end.chained() => end.control.stopped(),
        Volume::Total(total) => position >= total.0,
        Volume::Time(time) => monotonic_ns() - released_ns >= time.0,
    };
    while !over(source.position) {
        source.busy.work();
        let moved = source.block()?;
        meter.count(moved.calls);
        end.control.progress(end.assignment.line, source.position);
    }
    let mut stats = meter.stop(source.position - before, stats);
    stats.bytes_in_all = source.position;
    stats.xor = pattern.xor(source.position);
    // Most links end when they are closed, some need a mark.
    source.sender.finish()?;
    let note = source.sender.note();
    drop(source);
    Ok(Done { stats, note, huge_bytes, ..Done::default() })
}

impl Source<'_> {
    /// What the source could do if the transfer cost nothing; `None` if it makes no content and does no work.
    fn alone(&mut self) -> io::Result<Option<f64>> {
        if self.content == Content::Prepared && self.busy.seconds() == 0.0 {
            return Ok(None);
        }
        ceiling(self.busy.seconds(), || {
            if self.content == Content::Fresh {
                self.pattern.fill(0, self.sender.fresh(self.block)?);
            }
            Ok(self.block)
        })
        .map(Some)
    }

    #[inline]
    fn block(&mut self) -> io::Result<Moved> {
        if self.content == Content::Fresh {
            self.pattern.fill(self.position, self.sender.fresh(self.block)?);
        }
        let moved = self.sender.send(self.block)?;
        self.position += moved.bytes as u64;
        Ok(moved)
    }

    /// Sends until the time is over, and announces the length before the last block, so that the sink cannot miss it.
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
