//! The memory-copy limit: one process repeatedly copies a block within its memory.

use std::hint::black_box;
use std::io;

use pipeio_harness::buffer::Buffer;
use pipemark_sys::usage::monotonic_ns;

use crate::link;
use crate::runner::end::meter::{Meter, is_over};
use crate::runner::end::{Done, TrialEnd};

pub(super) fn run(end: &TrialEnd) -> io::Result<Done> {
    let ends = &end.ends;
    let block = ends.block.as_usize();
    let buffer = || Buffer::new(block, ends.align as usize, link::pages(ends.pages));
    let (mut from, mut to) = (buffer()?, buffer()?);
    end.pattern(0).fill(0, from.bytes_mut());
    // The closure does nothing but copy, because copying a small block takes only 20 ns.
    let (from, to) = (from.bytes(), to.bytes_mut());
    let mut copy = || {
        to.copy_from_slice(black_box(from));
        black_box(&*to);
    };

    end.control.wait_at_barrier(1)?;
    (0..4).for_each(|_| copy());
    end.control.wait_at_barrier(2)?;
    end.control.report_flow(ends.pairs);

    let mut meter = Meter::new();
    let begun_ns = meter.begin();
    let mut bytes = 0u64;
    loop {
        // The clock is read after each 1 MiB or after each block, whichever is larger.
        for _ in 0..(1 << 20) / block.clamp(1, 1 << 20) {
            copy();
            bytes += block as u64;
        }
        end.progress(bytes);
        if is_over(ends.volume, bytes, begun_ns, monotonic_ns) {
            break;
        }
    }
    let mut stats = meter.stop(bytes, 0.0, end.stats(None));
    stats.bytes_in_all = bytes;
    let fault = (to != from).then(|| "the copy differs from its original".to_owned());
    Ok(Done { stats, fault, huge_bytes: end.huge_bytes(), ..Done::default() })
}
