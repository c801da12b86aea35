//! Counts the spaces of each line: `hello world` becomes `[spaces: 1]hello world`.
#![expect(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one SAFETY comment covers a load, a store and their addresses"
)]

use std::{io, ptr};

use crate::lines::simd::{Lanes, Simd, WORD, with_lanes};
use crate::lines::{Batch, Error, Failure, Fate, Flow, Output, Transform};

/// Prefixes each line with its number of spaces: `[spaces: 2]`, or `[spaces: >6]` if there are more than six.
///
/// Each batch is processed in one pass, 64 bytes at a time. One comparison finds the ends of lines, another finds the
/// spaces. Each line then takes a bit count, a store of the header and a copy of the line.
#[derive(Debug, Clone, Copy)]
pub struct Spaces {
    simd: Simd,
    shapes: Shapes,
}

impl Spaces {
    /// Uses the widest instructions of this processor.
    pub fn new() -> Self {
        Self::with(Simd::best())
    }

    /// Uses the instructions of `simd`. If the processor lacks them, uses the widest that it has. Call this to measure
    /// the gain from wider instructions.
    pub fn with(simd: Simd) -> Self {
        let simd = Simd::available().find(|&level| level == simd).unwrap_or_else(Simd::best);
        Self { simd, shapes: Shapes::new() }
    }
}

impl Default for Spaces {
    fn default() -> Self {
        Self::new()
    }
}

impl Transform for Spaces {
    fn line<'b>(&mut self, line: &'b [u8], output: &mut Output<'b>) -> Result<Fate, Failure> {
        let spaces = memchr::memchr_iter(b' ', line).take(MANY as usize).count() as u64;
        output.extend(&header(spaces)[..header_len(spaces >= MANY)]);
        output.lend(line);
        Ok(Fate::Keep)
    }

    fn batch<'b>(&mut self, batch: &Batch<'b>, output: &mut Output<'b>) -> Result<Flow, Error> {
        let shapes = &mut self.shapes;
        with_lanes!(
            self.simd,
            run<'b>(batch: &Batch<'b>, shapes: &mut Shapes, output: &mut Output<'b>) -> io::Result<()>
        )
        .map_err(Error::Memory)?;
        Ok(Flow::Continue)
    }
}

/// `[spaces: N]`, padded so that one instruction stores it.
type Header = [u8; 16];

/// From this number of spaces on, the header is `[spaces: >6]`.
const MANY: u64 = 7;

/// The offset of the digit in a header.
const DIGIT: usize = 9;

static HEADERS: [Header; MANY as usize + 1] = [
    *b"[spaces: 0]     ",
    *b"[spaces: 1]     ",
    *b"[spaces: 2]     ",
    *b"[spaces: 3]     ",
    *b"[spaces: 4]     ",
    *b"[spaces: 5]     ",
    *b"[spaces: 6]     ",
    *b"[spaces: >6]    ",
];

#[inline(always)]
fn header(spaces: u64) -> &'static Header {
    &HEADERS[spaces.min(MANY) as usize]
}

/// The header stored before the spaces are counted.
#[inline(always)]
fn guess(many: bool) -> &'static Header {
    header(if many { MANY } else { 0 })
}

/// Bytes of a header that aren't padding.
#[inline(always)]
const fn header_len(many: bool) -> usize {
    11 + many as usize
}

/// A line up to this length is copied with one small store. Storing a whole word would cross a cache line each time.
const SHORT: usize = 16;

/// The number of words processed before the room left in the output and the line's length are checked again.
const WORDS_PER_CHECK: usize = 64;

/// A line of at least this length is passed to the output, which decides whether to copy or to lend it.
const LONG: usize = 16 << 10;

/// The maximum number of bytes stored for `words` words. The output of the words is longest if all their bytes are
/// terminators. The last store may write some bytes beyond that output.
const fn room_for(words: usize) -> usize {
    words * WORD * (1 + header_len(true)) + 2 * WORD
}

/// # Safety
///
/// The processor has `L`'s instructions.
#[inline(always)]
unsafe fn run<'b, L: Lanes>(batch: &Batch<'b>, shapes: &mut Shapes, output: &mut Output<'b>) -> io::Result<()> {
    let (bytes, terminator) = (batch.bytes(), batch.terminator());
    let mut line = SpacesLine::begin(false, output)?;
    let mut at = 0;
    // A word is processed only if another word follows, because copying a line that begins in a word may read into the
    // next word.
    while bytes.len() - at >= 2 * WORD {
        if line.content() >= LONG {
            let from = at - line.content();
            at = from + line.finish_long(&bytes[from..], terminator, output)?;
            continue;
        }
        let words = WORDS_PER_CHECK.min((bytes.len() - at) / WORD - 1);
        let room = output.spare(line.filled + room_for(words))?;
        // SAFETY: from `at` on, `bytes` has at least `words` words and one more, as computed above. `room` has space
        // for them after the line in progress, and is the output's own memory. The caller guarantees that the CPU
        // supports the instructions.
        let done = unsafe { line.copy_words::<L>(bytes[at..].as_ptr(), words, terminator, shapes, room.as_mut_ptr()) };
        output.advance(done);
        at += words * WORD;
    }
    // The rest is padded with bytes that are neither spaces nor terminators.
    let rest = &bytes[at..];
    let mut padded = [u8::from(terminator == 0); 3 * WORD];
    padded[..rest.len()].copy_from_slice(rest);
    let words = rest.len().div_ceil(WORD);
    let room = output.spare(line.filled + room_for(words))?;
    // SAFETY: `rest` is shorter than two words, so the three words of `padded` are `words` and at least one more.
    // `room` has space for them after the line in progress, and is the output's own memory. The caller guarantees that
    // the CPU supports the instructions.
    let done = unsafe { line.copy_words::<L>(padded.as_ptr(), words, terminator, shapes, room.as_mut_ptr()) };
    output.advance(done);
    line.filled -= words * WORD - rest.len();
    if line.content() > 0 {
        line.finish(output)?;
    }
    Ok(())
}

/// A line that is being copied. Its length and its number of spaces aren't known yet.
///
/// Its header is stored first, with a placeholder for the digit and with the length of the previous line's header. If
/// that length turns out to be wrong, the line is moved by a byte.
struct SpacesLine {
    many: bool,
    spaces: u64,
    /// The number of bytes stored for the line so far, including its header. They are stored after the output's end.
    filled: usize,
}

impl SpacesLine {
    fn begin(many: bool, output: &mut Output<'_>) -> io::Result<Self> {
        let header = guess(many);
        output.spare(header.len())?[..header.len()].copy_from_slice(header);
        Ok(Self { many, spaces: 0, filled: header_len(many) })
    }

    /// Bytes copied from the batch.
    fn content(&self) -> usize {
        self.filled - header_len(self.many)
    }

    /// Continues the line with the `words` words at `from`, and copies the lines that begin in these words. Returns the
    /// number of bytes at `room` that are whole lines. The line in progress lies at `room` before the call, and after
    /// the whole lines when the call returns.
    ///
    /// # Safety
    ///
    /// `words` words and one more are readable at `from`. After the line in progress, [`room_for`] that many words is
    /// writable at `room`. The two don't overlap, and the processor has `L`'s instructions.
    #[inline(always)]
    unsafe fn copy_words<L: Lanes>(
        &mut self,
        from: *const u8,
        words: usize,
        terminator: u8,
        shapes: &mut Shapes,
        room: *mut u8,
    ) -> usize {
        let Self { mut many, mut spaces, filled } = *self;
        let mut start = room;
        // SAFETY: the line in progress lies at `room` and has `filled` bytes. The pointers below stay in the room too:
        // each word advances `to` by a word, and by a header for each line that ends in the word.
        let mut to = unsafe { room.add(filled) };
        for word in 0..words {
            // SAFETY: this is one of the words at `from`.
            let word = unsafe { from.add(word * WORD) };
            // SAFETY: a word is readable there, and the caller guarantees that the CPU supports the instructions.
            let [mut ends] = unsafe { L::equal(word, [terminator]) };
            if ends == 0 {
                // SAFETY: a word is readable there, `to` has room for one, and the caller guarantees that the CPU
                // supports the instructions.
                unsafe { L::copy(word, to) };
                if spaces < MANY {
                    // SAFETY: `word` is one of those at `from`, and the caller guarantees that the CPU supports the
                    // instructions.
                    let [blanks] = unsafe { L::equal(word, [b' ']) };
                    spaces += u64::from(blanks.count_ones());
                }
                // SAFETY: there was room for the word that was just stored.
                to = unsafe { to.add(WORD) };
                continue;
            }
            // SAFETY: `word` is one of those at `from`, and the caller guarantees that the CPU supports the
            // instructions.
            let [mut blanks] = unsafe { L::equal(word, [b' ']) };
            blanks &= !ends;
            if L::PERMUTES
                && blanks == 0
                && spaces == 0
                && !many
                && let Some(shape) = shapes.find(ends)
            {
                // SAFETY: a word is readable there, `to` has room for its output and a word more, and the caller
                // guarantees that the CPU supports the instructions.
                (start, to) = unsafe { shape.store::<L>(word, to) };
                continue;
            }
            if blanks == 0 && all_short(ends) {
                if L::PERMUTES {
                    shapes.learn(ends);
                }
                // SAFETY: a word is readable there and one more after it, and the line in progress lies from `start` to
                // `to`. There is room for the word, for a header at each line's end in it, and for a word after these.
                // The caller guarantees that the CPU supports the instructions.
                (start, to) = unsafe { copy_plain_word::<L>(word, ends, start, to, many, spaces) };
                (many, spaces) = (false, 0);
                continue;
            }
            // SAFETY: a word is readable there, `to` has room for one, and the caller guarantees that the CPU supports
            // the instructions.
            unsafe { L::copy(word, to) };
            // The bits up to the lowest end are those of the line that ends there.
            let this = ends ^ (ends - 1);
            let mut last = ends.trailing_zeros() as usize;
            spaces += u64::from((blanks & this).count_ones());
            // SAFETY: the line lies from `start` to its end, which has been copied, and there is room for a byte after
            // it.
            (to, many) = unsafe { finish(start, to.add(last + 1), many, spaces) };
            blanks &= !this;
            ends &= ends - 1;
            // The next lines begin and end in this word. If all of them together have few spaces, none of them has
            // many. The place of a line then depends only on where it ends and on how many lines precede it, not on the
            // counts of spaces.
            let few = u64::from(blanks.count_ones()) < MANY;
            many &= !few || ends == 0;
            let mut shifted = to.wrapping_sub(last);
            while few && ends != 0 {
                let this = ends ^ (ends - 1);
                let end = ends.trailing_zeros() as usize;
                let header = &HEADERS[((blanks & this).count_ones() & 7) as usize];
                // SAFETY: `to` is where the previous line ended. That is within the room, which has space for the
                // word's bytes, for a header at each end in the word, and for one more word. A short line is copied as
                // `SHORT` bytes, any other line as a word. Both copies begin in this word and end in the next one at
                // the latest, which is readable. The caller guarantees that the CPU supports the instructions.
                unsafe {
                    let to = shifted.wrapping_add(last);
                    to.cast::<Header>().write(*header);
                    let to = to.add(header_len(false));
                    if end - last <= SHORT {
                        ptr::copy_nonoverlapping(word.add(last + 1), to, SHORT);
                    } else {
                        L::copy(word.add(last + 1), to);
                    }
                }
                shifted = shifted.wrapping_add(header_len(false));
                last = end;
                blanks &= !this;
                ends &= ends - 1;
            }
            to = shifted.wrapping_add(last);
            let mut next = last + 1;
            while ends != 0 {
                let this = ends ^ (ends - 1);
                let end = ends.trailing_zeros() as usize + 1;
                spaces = u64::from((blanks & this).count_ones());
                many = spaces >= MANY;
                // SAFETY: there is room for the header and a word. The copy begins at `next`, in this word, and ends in
                // the next word, which is readable. The caller guarantees that the CPU supports the instructions.
                unsafe {
                    to.cast::<Header>().write(*header(spaces));
                    to = to.add(header_len(many));
                    L::copy(word.add(next), to);
                    to = to.add(end - next);
                }
                next = end;
                blanks &= !this;
                ends &= ends - 1;
            }
            start = to;
            spaces = u64::from(blanks.count_ones());
            // SAFETY: the room has space for a header at each end, and so for the header of the line after that end,
            // and for one more word. The copy begins in this word and ends in the next word, which is readable. The
            // caller guarantees that the CPU supports the instructions.
            unsafe {
                to.cast::<Header>().write(*guess(many));
                to = to.add(header_len(many));
                L::copy(word.add(next), to);
                to = to.add(WORD - next);
            }
        }
        // SAFETY: both pointers are in the room, in this order.
        let (done, filled) = unsafe { (start.offset_from_unsigned(room), to.offset_from_unsigned(start)) };
        *self = Self { many, spaces, filled };
        done
    }

    /// Appends the line in progress to the output. All of its bytes must have been copied.
    fn finish(self, output: &mut Output<'_>) -> io::Result<()> {
        let start = output.spare(self.filled + 1)?.as_mut_ptr();
        // SAFETY: the line lies at the end of the output, with room for a byte after it.
        let len =
            unsafe { finish(start, start.add(self.filled), self.many, self.spaces).0.offset_from_unsigned(start) };
        output.advance(len);
        Ok(())
    }

    /// Passes a line that has become long to the output, and begins the next line. `bytes` starts at the start of the
    /// line and includes the bytes after it. Returns the line's length with its terminator.
    #[cold]
    #[inline(never)]
    fn finish_long<'b>(&mut self, bytes: &'b [u8], terminator: u8, output: &mut Output<'b>) -> io::Result<usize> {
        let mut len = self.content();
        // Search in pieces, so that each piece is still in the caches for the second search.
        for piece in bytes[len..].chunks(LONG) {
            let end = memchr::memchr(terminator, piece);
            let piece = &piece[..end.unwrap_or(piece.len())];
            self.spaces += memchr::memchr_iter(b' ', piece).take(MANY as usize).count() as u64;
            len += piece.len() + usize::from(end.is_some());
            if end.is_some() {
                break;
            }
        }
        let many = self.spaces >= MANY;
        output.extend(&header(self.spaces)[..header_len(many)]);
        output.lend(&bytes[..len]);
        *self = Self::begin(many, output)?;
        Ok(len)
    }
}

/// Whether all lines of a word are short: whether each has at most [`SHORT`] bytes in the word. Lines end at the bits
/// `ends`.
#[inline(always)]
fn all_short(ends: u64) -> bool {
    // Marks each bit whose distance from the start of its line, or of the word, is below 16.
    let mut near = ends << 1 | 1;
    for bits in [1, 2, 4, 8] {
        near |= near << bits;
    }
    near == u64::MAX
}

/// Cached layouts of the output for words without spaces whose lines are all [short](all_short), as in a column of
/// numbers. The outputs of words whose lines end at the same bits have the same layout.
#[derive(Debug, Clone, Copy)]
struct Shapes([Shape; SHAPES]);

/// The number of cached layouts. Lines of equal length need at most this many.
const SHAPES: usize = 1 << SHAPES_BITS;
const SHAPES_BITS: u32 = 5;

#[derive(Debug, Clone, Copy)]
struct Shape {
    /// Bits at which lines end.
    ends: u64,
    /// Bytes to store; 0 until a word of this shape has occurred twice.
    stored: usize,
    /// How many of the `stored` bytes belong to the line that continues in the next word.
    unfinished: usize,
    /// The number of words of other shapes that mapped to this slot since this shape was stored.
    missed: u8,
    /// The bytes to store, as indices: below 64 in the word, from 64 on in the header.
    indices: [[u8; WORD]; MAX_STORES],
}

const MAX_STORES: usize = 4;

/// A shape is replaced after this many words of other shapes that map to its slot. If every such word replaced the
/// shape, two shapes with the same slot would evict each other before they are used.
const MAX_MISSED: u8 = 32;

/// The header of a line without spaces.
static HEADER_WORD: [u8; WORD] = {
    let mut word = [0; WORD];
    word.split_at_mut(HEADERS[0].len()).0.copy_from_slice(&HEADERS[0]);
    word
};

impl Shapes {
    fn new() -> Self {
        Self([Shape { ends: 0, stored: 0, unfinished: 0, missed: 0, indices: [[0; WORD]; MAX_STORES] }; SHAPES])
    }

    #[inline(always)]
    fn slot(&mut self, ends: u64) -> &mut Shape {
        // Fibonacci hashing.
        &mut self.0[(ends.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SHAPES_BITS)) as usize]
    }

    #[inline(always)]
    fn find(&mut self, ends: u64) -> Option<&Shape> {
        let slot = self.slot(ends);
        (slot.ends == ends && slot.stored > 0).then_some(slot)
    }

    /// Records a word in which lines end at the bits `ends`.
    #[inline(always)]
    fn learn(&mut self, ends: u64) {
        if ends.count_ones() as usize * header_len(false) > (MAX_STORES - 1) * WORD {
            return;
        }
        let slot = self.slot(ends);
        if slot.ends != ends {
            slot.missed += 1;
            if slot.stored == 0 || slot.missed >= MAX_MISSED {
                (slot.ends, slot.stored, slot.missed) = (ends, 0, 0);
            }
        } else if slot.stored == 0 {
            slot.fill();
        }
    }
}

impl Shape {
    #[cold]
    #[inline(never)]
    fn fill(&mut self) {
        let mut stored = self.indices.as_flattened_mut().iter_mut();
        for at in 0..WORD {
            let header = if self.ends >> at & 1 == 1 { WORD..WORD + header_len(false) } else { 0..0 };
            for (index, place) in [at].into_iter().chain(header).zip(&mut stored) {
                *place = index as u8;
            }
        }
        self.stored = WORD + self.ends.count_ones() as usize * header_len(false);
        self.unfinished = header_len(false) + self.ends.leading_zeros() as usize;
    }

    /// Stores the output for `word`. Returns where the line that is then in progress begins (at its header), and where
    /// it continues.
    ///
    /// # Safety
    ///
    /// 64 bytes at `word` are readable, and `stored` + 64 bytes at `to` are writable. The two don't overlap, and the
    /// processor has `L`'s instructions.
    #[inline(always)]
    unsafe fn store<L: Lanes>(&self, word: *const u8, to: *mut u8) -> (*mut u8, *mut u8) {
        // SAFETY: the caller promises the bytes at `word` and the instructions. Each store of 64 bytes begins before
        // `stored`, so it ends within the promised room. `stored` is more than 64, and `unfinished` is at most
        // `stored`.
        unsafe {
            L::permute(word, &HEADER_WORD, &self.indices[0], to);
            L::permute(word, &HEADER_WORD, &self.indices[1], to.add(WORD));
            if self.stored > 2 * WORD {
                L::permute(word, &HEADER_WORD, &self.indices[2], to.add(2 * WORD));
                if self.stored > 3 * WORD {
                    L::permute(word, &HEADER_WORD, &self.indices[3], to.add(3 * WORD));
                }
            }
            let to = to.add(self.stored);
            (to.sub(self.unfinished), to)
        }
    }
}

/// Copies a word without spaces whose lines end at the bits `ends` and are [all short](all_short). Nothing is counted
/// or chosen, and no line depends on the previous line. Returns where the line that is then in progress begins (at its
/// header), and where it continues.
///
/// # Safety
///
/// Two words at `word` are readable. The line in progress lies from `start` to `to`, and has a header for many spaces
/// if `many`. At `to`, a word, a header for each end and another word are writable. The two don't overlap, and the
/// processor has `L`'s instructions.
#[inline(always)]
unsafe fn copy_plain_word<L: Lanes>(
    word: *const u8,
    mut ends: u64,
    start: *mut u8,
    to: *mut u8,
    many: bool,
    spaces: u64,
) -> (*mut u8, *mut u8) {
    let first = ends.trailing_zeros() as usize + 1;
    // SAFETY: the caller promises room for the word, for a header at each end, and for the bytes that the last store
    // writes beyond these. The bytes after the last end are followed by another readable word.
    unsafe {
        ptr::copy_nonoverlapping(word, to, SHORT);
        let (mut line, _) = finish(start, to.add(first), many, spaces);
        // Where the word's first byte would lie if the whole word belonged to the line.
        let mut shifted = line.wrapping_sub(first);
        while ends != 0 {
            let next = ends.trailing_zeros() as usize + 1;
            ends &= ends - 1;
            line = shifted.wrapping_add(next);
            L::join::<{ header_len(false) }>(&HEADERS[0], word.add(next), line);
            shifted = shifted.wrapping_add(header_len(false));
        }
        (line, shifted.wrapping_add(WORD))
    }
}

/// Completes the line from `start` to `end`: stores the header for `spaces` spaces. `many` tells whether the current
/// header is the one for many spaces. Returns the line's end, and whether the line has many spaces.
///
/// # Safety
///
/// The line lies from `start` to `end`, with a header for many spaces if `many`, and with room for a byte after `end`.
#[inline(always)]
unsafe fn finish(start: *mut u8, end: *mut u8, many: bool, spaces: u64) -> (*mut u8, bool) {
    // SAFETY: the digit is within the header at `start`. The caller promises what `move_by_one` requires.
    unsafe {
        if many == (spaces >= MANY) {
            *start.add(DIGIT) = header(spaces)[DIGIT];
            (end, many)
        } else {
            (move_by_one(start, end, many, spaces), !many)
        }
    }
}

/// Replaces the header of the line from `start` to `end` with the header for `spaces` spaces, which has a different
/// length. `many` tells whether the current header is the one for many spaces. Returns the line's new end.
///
/// # Safety
///
/// The line lies from `start` to `end`, with a header for many spaces if `many`, and with room for a byte after `end`.
#[cold]
#[inline(never)]
unsafe fn move_by_one(start: *mut u8, end: *mut u8, many: bool, spaces: u64) -> *mut u8 {
    let header = &header(spaces)[..header_len(!many)];
    // SAFETY: the line's content lies between its header and `end`, and there is room to move it by a byte. The new
    // header fits in front of it.
    unsafe {
        let content = start.add(header_len(many));
        let len = end.offset_from_unsigned(content);
        std::ptr::copy(content, start.add(header.len()), len);
        std::ptr::copy_nonoverlapping(header.as_ptr(), start, header.len());
        start.add(header.len() + len)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lines::output::Store;
    use crate::lines::simd::Portable;

    /// Instructions for tests: the code path of the widest level, implemented with portable code.
    struct Permuting;

    impl Lanes for Permuting {
        const PERMUTES: bool = true;

        unsafe fn equal<const N: usize>(from: *const u8, bytes: [u8; N]) -> [u64; N] {
            // SAFETY: the caller promises 64 readable bytes, and any processor supports the instructions.
            unsafe { Portable::equal(from, bytes) }
        }

        unsafe fn copy(from: *const u8, to: *mut u8) {
            // SAFETY: the caller promises 64 readable bytes at `from` and 64 writable ones at `to` that don't overlap.
            unsafe { Portable::copy(from, to) };
        }

        unsafe fn upper(from: *const u8, to: *mut u8) {
            // SAFETY: as for `copy`.
            unsafe { Portable::upper(from, to) };
        }
    }

    fn permuted(bytes: &[u8], terminator: u8) -> Vec<u8> {
        let mut output = Output::new(Store::new(1).unwrap());
        // SAFETY: any processor supports the instructions.
        unsafe { run::<Permuting>(&Batch::new(bytes, terminator), &mut Shapes::new(), &mut output) }.unwrap();
        output.pieces().unwrap().iter().flat_map(|piece| piece.iter().copied()).collect()
    }

    fn spaces(simd: Simd, bytes: &[u8], terminator: u8) -> Vec<u8> {
        let mut output = Output::new(Store::new(1).unwrap());
        Spaces::with(simd).batch(&Batch::new(bytes, terminator), &mut output).unwrap();
        output.pieces().unwrap().iter().flat_map(|piece| piece.iter().copied()).collect()
    }

    fn reference(bytes: &[u8], terminator: u8) -> Vec<u8> {
        let mut output = Vec::new();
        for line in bytes.split_inclusive(|&byte| byte == terminator) {
            let content = line.strip_suffix(&[terminator]).unwrap_or(line);
            match content.iter().filter(|&&byte| byte == b' ').count() {
                count @ 0..=6 => output.extend(format!("[spaces: {count}]").bytes()),
                _ => output.extend(b"[spaces: >6]"),
            }
            output.extend(line);
        }
        output
    }

    fn byte() -> impl Strategy<Value = u8> {
        prop_oneof![2 => Just(b'\n'), 4 => Just(b' '), 8 => Just(b'x'), 1 => any::<u8>()]
    }

    fn long_byte() -> impl Strategy<Value = u8> {
        prop_oneof![1 => Just(b'\n'), 10 => Just(b' '), 200 => any::<u8>()]
    }

    /// Words of short lines without spaces, between lines with some spaces.
    fn plain_lines() -> impl Strategy<Value = Vec<u8>> {
        let plain =
            (0_usize..17, 4_usize..30).prop_map(|(len, lines)| [vec![b'x'; len], vec![b'\n']].concat().repeat(lines));
        let spaced = "[x ]{0,20}\n?".prop_map(String::into_bytes);
        prop::collection::vec((spaced, plain), 1..8)
            .prop_map(|pairs| pairs.into_iter().flat_map(|(spaced, plain)| [spaced, plain].concat()).collect())
    }

    proptest! {
        #[test]
        fn every_level_agrees_with_the_reference(
            bytes in prop_oneof![
                prop::collection::vec(byte(), 0..400),
                prop::collection::vec(long_byte(), 0..3000),
                plain_lines(),
            ],
            terminator in prop_oneof![8 => Just(b'\n'), 1 => Just(b'\0'), 1 => Just(b' ')],
        ) {
            let expected = reference(&bytes, terminator);
            prop_assert_eq!(&permuted(&bytes, terminator), &expected);
            for simd in Simd::available() {
                prop_assert_eq!(&spaces(simd, &bytes, terminator), &expected, "{:?}", simd);
            }
        }
    }

    /// A million short texts, which is also fast enough for an emulated processor.
    #[test]
    #[ignore = "long"]
    fn long_a_million_random_texts_agree_at_every_level() {
        // xorshift64, from a fixed seed.
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let levels: Vec<Simd> = Simd::available().collect();
        let mut bytes = Vec::new();
        for case in 0..1_000_000 {
            let (length, letters) = (random() % 128, random() % 24);
            bytes.clear();
            bytes.extend((0..length).map(|_| match random() % (2 + letters) {
                0 => b'\n',
                1 => b' ',
                2 => random() as u8,
                _ => b'x',
            }));
            let expected = reference(&bytes, b'\n');
            for &simd in &levels {
                assert!(spaces(simd, &bytes, b'\n') == expected, "case {case}, {simd:?}: {bytes:?}");
            }
        }
    }

    #[test]
    fn extremes_agree_with_the_reference() {
        let inputs = [
            vec![b'\n'; 100_000],
            vec![b' '; 100_000],
            [vec![b' '; 70_000], vec![b'\n'], vec![b'y'; 40_000], b"\nshort\n".to_vec()].concat(),
            b"abcdefg\n".repeat(10_000),
            // Lines of 13 bytes lead to 13 shapes, some of which may have the same slot.
            b"abcdefghijkl\n".repeat(10_000),
            [&b"abcdefghij\n".repeat(100)[..], b"a b\n", &b"abcdefghij\n".repeat(100), b"1 2 3 4 5 6 7 8\n"]
                .concat()
                .repeat(9),
            // Lines of up to 22 bytes without spaces; up to 16 are short.
            (0..5000).flat_map(|number| [vec![b'x'; number * 7 % 23], vec![b'\n']].concat()).collect(),
        ];
        for input in inputs {
            assert!(permuted(&input, b'\n') == reference(&input, b'\n'), "{} bytes", input.len());
            for simd in Simd::available() {
                assert!(spaces(simd, &input, b'\n') == reference(&input, b'\n'), "{simd:?}, {} bytes", input.len());
            }
        }
    }
}
