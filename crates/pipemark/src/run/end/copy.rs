//! The memory-copy limit: one process copies block to block, as a pipe has to at least once.

use std::io;

use pipeio::memory::Buffer;
use pipeio_harness::usage::monotonic_ns;

use super::meter::Meter;
use super::{Done, End};
use crate::link;
use crate::model::{EndStats, Volume};

pub(super) fn run(end: &End) -> io::Result<Done> {
    let ends = end.ends();
    let block = ends.block.as_usize();
    let pages = link::pages(ends.pages);
    let mut from = Buffer::new(block, ends.align as usize, pages)?;
    let mut to = Buffer::new(block, ends.align as usize, pages)?;
    end.pattern(0).fill(0, from.bytes_mut());
    let stats = EndStats { pinned: end.pinned.clone(), ..EndStats::default() };
    let mut copy = || {
        to.bytes_mut().copy_from_slice(std::hint::black_box(from.bytes()));
        std::hint::black_box(to.bytes());
    };

    end.control.meet(1)?;
    (0..4).for_each(|_| copy());
    let released_ns = end.control.meet(2)?;

    let meter = Meter::start(released_ns);
    let mut bytes = 0u64;
    loop {
        // The clock is read once per 64 KiB or block, whichever is more.
        for _ in 0..(64 << 10) / block.clamp(1, 64 << 10) {
            copy();
            bytes += block as u64;
        }
        let over = match ends.volume {
            Volume::Total(goal) => bytes >= goal.0,
            Volume::Time(time) => monotonic_ns() - released_ns >= time.0,
        };
        if over {
            break;
        }
    }
    let mut stats = meter.stop(bytes, stats);
    stats.bytes_in_all = bytes;
    let fault = (to.bytes() != from.bytes()).then(|| "the copy differs from its original".to_owned());
    Ok(Done { stats, fault, huge_bytes: super::huge_bytes(ends), ..Done::default() })
}
