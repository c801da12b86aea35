//! Counts the lines among the bytes that a relay writes, and how many of them are within the first bytes.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The distance between two marks in bytes.
const MARK_DISTANCE: u64 = 4096;

/// The maximum number of marks: enough for the largest pipe that an unprivileged process may have.
const MAX_MARKS: usize = 4096;

#[derive(Debug)]
pub(super) struct LineCounter {
    separator: u8,
    counts: Mutex<LineCounts>,
}

#[derive(Debug, Default)]
struct LineCounts {
    end: OutputPlace,
    /// Places before `end`, in order.
    marks: VecDeque<OutputPlace>,
}

/// A place in the output.
#[derive(Debug, Clone, Copy, Default)]
struct OutputPlace {
    /// Bytes before it.
    bytes: u64,
    /// Lines that end before it.
    lines: u64,
}

impl LineCounter {
    pub(super) fn new(separator: u8) -> LineCounter {
        LineCounter { separator, counts: Mutex::default() }
    }

    fn counts(&self) -> MutexGuard<'_, LineCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts bytes that were written.
    pub(super) fn count(&self, bytes: &[u8]) {
        let mut counts = self.counts();
        for piece in bytes.chunks(MARK_DISTANCE as usize) {
            let last = counts.marks.back().copied().unwrap_or_default();
            if counts.end.bytes >= last.bytes + MARK_DISTANCE {
                if counts.marks.len() == MAX_MARKS {
                    counts.marks.pop_front();
                }
                let end = counts.end;
                counts.marks.push_back(end);
            }
            counts.end.bytes += piece.len() as u64;
            counts.end.lines += piece.iter().filter(|&&byte| byte == self.separator).count() as u64;
        }
    }

    /// Lines within the first `bytes` bytes: exact if these are all bytes, otherwise at most the lines of two mark
    /// distances too few.
    pub(super) fn lines_within(&self, bytes: u64) -> u64 {
        let counts = self.counts();
        if bytes >= counts.end.bytes {
            return counts.end.lines;
        }
        let before = counts.marks.partition_point(|mark| mark.bytes <= bytes);
        before.checked_sub(1).map_or(0, |at| counts.marks[at].lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_up_to_any_byte() {
        let text: Vec<u8> = (0..40_000_u32).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        for piece in [1, 7, 4096, 100_000] {
            let counter = LineCounter::new(b'\n');
            text.chunks(piece).for_each(|piece| counter.count(piece));
            assert_eq!(counter.lines_within(text.len() as u64), 40_000, "{piece}");
            for bytes in (0..text.len()).step_by(997) {
                let count = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
                let (counted, exact) = (counter.lines_within(bytes as u64), count(&text[..bytes]));
                let least = count(&text[..bytes.saturating_sub(2 * MARK_DISTANCE as usize)]);
                assert!((least..=exact).contains(&counted), "{piece} {bytes}: {counted}, {least} to {exact}");
            }
        }
    }

    #[test]
    fn the_number_of_marks_is_bounded() {
        let counter = LineCounter::new(0);
        for _ in 0..3 * MAX_MARKS {
            counter.count(&[0; MARK_DISTANCE as usize]);
        }
        assert_eq!(counter.counts().marks.len(), MAX_MARKS);
        assert_eq!(counter.lines_within(u64::MAX), 3 * MAX_MARKS as u64 * MARK_DISTANCE);
    }
}
