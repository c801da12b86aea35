//! Several writers of records on one pipe. The reader counts the records split by other writers' bytes.

use std::io;
use std::os::fd::OwnedFd;

use pipemark_sys::usage::monotonic_ns;

use crate::runner::end::meter::{Meter, is_over};
use crate::runner::end::{Done, TrialEnd, early_end_error};

/// The number of low bits in each byte that identify the writer. They limit the number of writers. The other bits hold
/// the number of the record.
const WRITER_BITS: u32 = pipemark_model::MAX_WRITERS.ilog2();

fn mark(writer: usize, number: u64) -> u8 {
    ((number << WRITER_BITS) | writer as u64) as u8
}

/// Runs a writer, which writes records of one block each, with one call per record, until the reader's window is over.
pub(super) fn write(end: &TrialEnd, pipe: OwnedFd) -> io::Result<Done> {
    let mut record = vec![0; end.ends.block.as_usize()];
    let stats = end.stats(None);
    end.control.wait_at_barrier(1)?;
    let mut meter = Meter::new();
    end.control.wait_at_barrier(2)?;
    meter.begin();
    let mut sent = 0;
    for number in 0.. {
        if end.control.stopped() {
            break;
        }
        record.fill(mark(end.assignment.line, number));
        let mut done = 0;
        while done < record.len() {
            done += rustix::io::retry_on_intr(|| rustix::io::write(&pipe, &record[done..]))?;
            meter.count(1);
        }
        sent += done as u64;
        end.progress(sent);
    }
    let mut stats = meter.stop(sent, 0.0, stats);
    stats.bytes_in_all = sent;
    Ok(Done { stats, written: sent, ..Done::default() })
}

/// Runs the reader, which reads the records of all writers until the end of the stream.
pub(super) fn read(end: &TrialEnd, pipe: OwnedFd) -> io::Result<Done> {
    let mut buffer = vec![0; end.ends.read_block().as_usize().max(64 << 10)];
    let capacity = || pipeio::pipe::capacity(&pipe).ok().map(|bytes| bytes as u64);
    let before = capacity();
    let stats = end.stats(None);
    end.control.wait_at_barrier(1)?;
    let mut meter = Meter::new();
    end.control.wait_at_barrier(2)?;
    end.control.report_flow(1);
    let begun_ns = meter.begin();
    let mut tally = Tally::new(end.ends.writers, end.ends.block.0);
    let mut take = || {
        let bytes = rustix::io::retry_on_intr(|| rustix::io::read(&pipe, &mut buffer))?;
        tally.record(&buffer[..bytes]);
        end.progress(tally.received);
        Ok::<_, io::Error>((bytes, tally.received))
    };
    let in_window = loop {
        let (bytes, received) = take()?;
        if bytes == 0 {
            return Err(early_end_error());
        }
        meter.count(1);
        if is_over(end.ends.volume, received, begun_ns, monotonic_ns) {
            break received;
        }
    };
    let mut stats = meter.stop(in_window, 0.0, stats);
    end.control.sink_done(1);
    while take()?.0 > 0 {}
    stats.bytes_in_all = tally.received;
    let interleaved_percent = Some(100.0 * tally.cut as f64 / tally.records.max(1) as f64);
    let read = tally.received;
    let capacity = before.zip(capacity());
    Ok(Done { stats, capacity, fault: tally.fault, read, interleaved_percent, ..Done::default() })
}

/// Counts of the bytes that have arrived.
struct Tally {
    block: u64,
    /// For each writer, the number of bytes, and whether its current record was already split.
    writers: Vec<(u64, bool)>,
    /// The index of the writer of the last bytes.
    last: usize,
    received: u64,
    records: u64,
    cut: u64,
    fault: Option<String>,
}

impl Tally {
    fn new(writers: u32, block: u64) -> Tally {
        let writers = vec![(0, false); writers as usize];
        Tally { block, writers, last: 0, received: 0, records: 0, cut: 0, fault: None }
    }

    fn record(&mut self, mut bytes: &[u8]) {
        self.received += bytes.len() as u64;
        while let Some(&first) = bytes.first() {
            let writer = usize::from(first) & ((1 << WRITER_BITS) - 1);
            let Some(&(had, _)) = self.writers.get(writer) else {
                self.fault
                    .get_or_insert_with(|| format!("a byte of writer {writer} arrived, but there is no such writer"));
                return;
            };
            let number = had / self.block;
            if first != mark(writer, number) {
                let fault = || format!("bytes of another record arrived in record {number} of writer {writer}");
                self.fault.get_or_insert_with(fault);
                return;
            }
            // Another writer's bytes within a record split the record. Each record counts once.
            let (other, cut) = &mut self.writers[self.last];
            if writer != self.last && *other % self.block > 0 && !*cut {
                *cut = true;
                self.cut += 1;
            }
            self.last = writer;
            let rest = (self.block - had % self.block).min(bytes.len() as u64) as usize;
            let run = bytes[..rest].iter().position(|byte| *byte != first).unwrap_or(rest);
            let (had, cut) = &mut self.writers[writer];
            *had += run as u64;
            if *had % self.block == 0 {
                *cut = false;
                self.records += 1;
            }
            bytes = &bytes[run..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_split_by_other_writers_are_counted_once() {
        let [a0, a1, b0, b1] = [mark(0, 0), mark(0, 1), mark(1, 0), mark(1, 1)];
        let mut tally = Tally::new(2, 4);
        // Record a0 is split twice, by b0 and b1, but counts once. The pieces begin at arbitrary bytes.
        for piece in [&[a0, b0, b0][..], &[b0, b0, a0], &[b1, b1, b1, b1, a0, a0, a1], &[a1, a1, a1]] {
            tally.record(piece);
        }
        assert_eq!((tally.fault, tally.received, tally.records, tally.cut), (None, 16, 4, 1));
    }

    #[test]
    fn a_lost_byte_is_found() {
        let mut tally = Tally::new(2, 2);
        tally.record(&[mark(0, 0), mark(0, 1)]);
        assert!(tally.fault.unwrap().contains("record 0 of writer 0"));
        let mut tally = Tally::new(2, 2);
        tally.record(&[mark(3, 0)]);
        assert!(tally.fault.unwrap().contains("writer 3"));
    }
}
