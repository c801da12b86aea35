//! Self-verifying content: bytes that depend on their position in the stream, generated and compared at memory speed.
//!
//! Word `i` of a stream (8 bytes, little-endian) is `seed + i × STEP` for an odd `STEP`, so no two of the 2⁶⁴ positions
//! share a word. A receiver compares every byte with the byte expected at its position. So it detects any piece that
//! was lost, repeated, swapped, moved, truncated or changed, unless equal bytes replaced the piece. The rule can be
//! inverted, so wrong bytes also show where they belong.
//!
//! The bytes may be in memory that another process changes meanwhile. So they are accessed through pointers, and
//! nothing relies on reading the same value twice.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::{fmt, mem};

use crate::buffer::{Bytes, BytesMut};
#[cfg(target_arch = "x86_64")]
use crate::words::{Avx2, Avx512};
use crate::words::{STEP, Words};

/// Defines a function that runs `$body`, which is generic over [`Words`], with the widest vectors of this processor. The
/// first call chooses the vectors. The function's safety conditions are those of `$body`.
macro_rules! widest {
    (unsafe fn $wide:ident($($name:ident: $type:ty),*) -> $result:ty = $body:ident) => {
        #[inline]
        unsafe fn $wide($($name: $type),*) -> $result {
            type Body = unsafe fn($($type),*) -> $result;
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f")]
            unsafe fn avx512($($name: $type),*) -> $result {
                // SAFETY: the caller promises what the body requires, and the attribute the instructions.
                unsafe { $body::<Avx512>($($name),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            unsafe fn avx2($($name: $type),*) -> $result {
                // SAFETY: the caller promises what the body requires, and the attribute the instructions.
                unsafe { $body::<Avx2>($($name),*) }
            }
            unsafe fn choose($($name: $type),*) -> $result {
                #[cfg_attr(not(target_arch = "x86_64"), allow(unused_labels, reason = "only x86-64 has variants"))]
                let body: Body = 'body: {
                    #[cfg(target_arch = "x86_64")]
                    if is_x86_feature_detected!("avx512f") {
                        break 'body avx512;
                    } else if is_x86_feature_detected!("avx2") {
                        break 'body avx2;
                    }
                    $body::<u64>
                };
                CHOSEN.store(body as *mut (), Ordering::Relaxed);
                // SAFETY: the caller promises what the body requires, and the processor has the features that the body
                // was compiled for.
                unsafe { body($($name),*) }
            }
            static CHOSEN: AtomicPtr<()> = AtomicPtr::new(choose as *mut ());
            let chosen = CHOSEN.load(Ordering::Relaxed);
            // SAFETY: only functions of this type are stored in that place.
            let chosen = unsafe { mem::transmute::<*mut (), Body>(chosen) };
            // SAFETY: the caller promises what the body requires. The stored function is either `choose`, which runs on
            // any processor, or a function chosen for this processor.
            unsafe { chosen($($name),*) }
        }
    };
}

/// The inverse of [`STEP`] modulo 2⁶⁴.
const STEP_INVERSE: u64 = 0xf1de_83e1_9937_733d;

/// The number of wrong bytes that are kept, to compute the position where they belong.
const MAX_WRONG: usize = 24;

/// The rule for the bytes of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Each word depends on its position and the seed.
    Position {
        /// Distinguishes this stream from others.
        seed: u64,
    },
    /// The bytes 0, 1, … 255, repeated. The XOR of every whole period is 0, so [`xor`] doesn't detect a period that is
    /// lost or replaced by zeros.
    Counting,
}

/// The content of a stream: a rule, and the number of bytes after which it repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    rule: Rule,
    period: u64,
}

impl Pattern {
    /// A stream that never repeats.
    pub fn endless(rule: Rule) -> Pattern {
        Pattern { rule, period: u64::MAX }
    }

    /// A stream that repeats after `period` bytes.
    ///
    /// # Panics
    /// If `period` is 0.
    pub fn repeating(rule: Rule, period: u64) -> Pattern {
        assert_ne!(period, 0, "a period needs at least one byte");
        Pattern { rule, period }
    }

    /// Fills `bytes` with the content from `position` on.
    ///
    /// ```
    /// use pipeio_harness::pattern::{Pattern, Rule};
    /// let mut bytes = [0; 4];
    /// Pattern::repeating(Rule::Counting, 3).fill(1, &mut bytes);
    /// assert_eq!(bytes, [1, 2, 0, 1]);
    /// ```
    #[inline]
    pub fn fill<'a>(&self, position: u64, bytes: impl Into<BytesMut<'a>>) {
        let mut bytes = bytes.into();
        match self.first_word(position, bytes.len()) {
            // SAFETY: that many words are writable, because `bytes` is at least as long.
            Some(first) => unsafe { fill_wide(first, bytes.as_mut_ptr().cast(), bytes.len() / 8) },
            None => self.fill_pieces(position, bytes),
        }
    }

    #[inline(never)]
    fn fill_pieces(&self, position: u64, mut bytes: BytesMut<'_>) {
        self.pieces(position, bytes.len(), |start, range| {
            let mut piece = bytes.part(range);
            match self.rule {
                Rule::Position { seed } => fill_words(seed, start, piece),
                Rule::Counting => (0..piece.len()).for_each(|i| piece.set(i, start.wrapping_add(i as u64) as u8)),
            }
        });
    }

    /// The first word at `position`, if `len` bytes from `position` on are whole words within one period; otherwise
    /// `None`. Nearly all blocks take this fast path. Any further step in it would take as long as filling a small
    /// block.
    #[inline]
    fn first_word(&self, position: u64, len: usize) -> Option<u64> {
        match self.rule {
            Rule::Position { seed } if (position | len as u64).is_multiple_of(8) => {
                (position.saturating_add(len as u64) <= self.period).then(|| word(seed, position / 8))
            }
            _ => None,
        }
    }

    /// The number of bytes at the start of `bytes` that equal the content from `position` on.
    fn matching(&self, position: u64, bytes: Bytes<'_>) -> usize {
        let mut matched = 0;
        self.pieces(position, bytes.len(), |start, range| {
            if matched == range.start {
                let piece = bytes.part(range);
                let belongs = |&i: &usize| piece.get(i) == start.wrapping_add(i as u64) as u8;
                matched += match self.rule {
                    Rule::Position { seed } => matching_words(seed, start, piece),
                    Rule::Counting => (0..piece.len()).take_while(belongs).count(),
                };
            }
        });
        matched
    }

    /// Splits the `len` bytes that start at `position` wherever a period ends. Calls `piece` for each part, with its
    /// position in its period and its range in the `len` bytes.
    #[inline(always)]
    fn pieces(&self, position: u64, len: usize, mut piece: impl FnMut(u64, std::ops::Range<usize>)) {
        let mut done = 0;
        while done < len {
            // Divides only if necessary, because a division takes as long as filling a quarter of a page.
            let start = match position + done as u64 {
                start if start < self.period => start,
                start => start % self.period,
            };
            let room = usize::try_from(self.period - start).unwrap_or(usize::MAX);
            let end = len.min(done.saturating_add(room));
            piece(start, done..end);
            done = end;
        }
    }

    /// The XOR of the first `total` bytes of a counting stream; `None` for other rules.
    pub fn xor(&self, total: u64) -> Option<u8> {
        let start = |len: u64| (0..=255u8).take((len % 256) as usize).fold(0, |xor, byte| xor ^ byte);
        match self.rule {
            Rule::Counting if (total / self.period) % 2 == 1 => Some(start(self.period) ^ start(total % self.period)),
            Rule::Counting => Some(start(total % self.period)),
            Rule::Position { .. } => None,
        }
    }
}

/// The longest plausible stream, in bytes. A byte that would belong beyond this length is from another stream.
const MAX_STREAM: u64 = 1 << 50;

/// The first byte that doesn't belong at its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The byte's position in the stream.
    pub position: u64,
    /// The position where this byte and the bytes after it belong; `None` if they are not from this stream.
    pub origin: Option<u64>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { position, origin } = *self;
        match origin {
            Some(origin) if origin > position => {
                write!(
                    f,
                    "byte {position} is wrong: the {} bytes before byte {origin} are missing or came later",
                    origin - position
                )
            }
            Some(origin) => write!(f, "byte {position} is wrong: byte {origin} and those after it were repeated"),
            None => write!(f, "byte {position} is wrong: it was changed"),
        }
    }
}

/// Compares a stream with its pattern, piece by piece as it arrives.
#[derive(Debug, Clone)]
pub struct Checker {
    pattern: Pattern,
    position: u64,
    fault: Option<Fault>,
}

impl Checker {
    /// Creates a checker at the start of a stream.
    pub fn new(pattern: Pattern) -> Checker {
        Checker { pattern, position: 0, fault: None }
    }

    /// Compares the next bytes. Only the first fault is kept.
    #[inline]
    pub fn check<'a>(&mut self, bytes: impl Into<Bytes<'a>>) {
        let bytes = bytes.into();
        // SAFETY: that many words are readable, because `bytes` is at least as long.
        let equal = |first| unsafe { equal_wide(first, bytes.as_ptr().cast(), bytes.len() / 8) };
        if !self.pattern.first_word(self.position, bytes.len()).is_some_and(equal) {
            self.check_pieces(bytes);
        }
        self.position += bytes.len() as u64;
    }

    #[inline(never)]
    fn check_pieces(&mut self, bytes: Bytes<'_>) {
        if self.fault.is_none() {
            let matching = self.pattern.matching(self.position, bytes);
            if matching < bytes.len() {
                let position = self.position + matching as u64;
                let mut wrong = [0; MAX_WRONG];
                let rest = bytes.part(matching..bytes.len().min(matching + MAX_WRONG));
                rest.copy_to(&mut wrong);
                self.fault = Some(Fault { position, origin: self.origin(position, &wrong[..rest.len()]) });
            }
        }
    }

    /// Returns to the start of the stream.
    #[inline]
    pub fn restart(&mut self) {
        self.position = 0;
    }

    /// Counts bytes that arrived but were not checked.
    #[inline]
    pub fn skip(&mut self, bytes: usize) {
        self.position += bytes as u64;
    }

    /// The first fault, if there was one.
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// The position where wrong bytes belong; `None` if unknown. Two whole words must match: with one word, a changed
    /// byte could seem to come from far away.
    fn origin(&self, position: u64, bytes: &[u8]) -> Option<u64> {
        let Rule::Position { seed } = self.pattern.rule else { return None };
        (0..8.min(bytes.len())).find_map(|shift| {
            let word = u64::from_le_bytes(bytes[shift..].first_chunk().copied()?);
            let index = word.wrapping_sub(seed).wrapping_mul(STEP_INVERSE);
            let origin = index.checked_mul(8)?.checked_sub(shift as u64).filter(|&origin| origin < MAX_STREAM)?;
            let sample = &bytes[..bytes.len().min(shift + 16)];
            // After a single changed byte, the next bytes are at their own position again, so nothing has moved.
            (origin != position
                && sample.len() >= shift + 16
                && self.pattern.matching(origin, sample.into()) == sample.len())
            .then_some(origin)
        })
    }
}

#[inline(always)]
fn word(seed: u64, index: u64) -> u64 {
    seed.wrapping_add(index.wrapping_mul(STEP))
}

/// # Safety
/// `words` words from `start` on are writable, and the processor has the instructions of `W`.
#[inline(always)]
#[expect(clippy::multiple_unsafe_ops_per_block, reason = "one SAFETY comment covers a loop and the rest")]
unsafe fn fill_body<W: Words>(first: u64, start: *mut [u8; 8], words: usize) {
    let whole = words - words % W::COUNT;
    let mut at = 0;
    // SAFETY: the caller promises `words` words, of which these are some, and the instructions. The same holds below.
    unsafe {
        // The step is added repeatedly instead of multiplied, because a multiplication of vectors of words is slower.
        let mut value = W::from(first);
        while at < whole {
            value.store(start.wrapping_add(at));
            value = value.next();
            at += W::COUNT;
        }
        for at in whole..words {
            word(first, at as u64).store(start.wrapping_add(at));
        }
    }
}

/// # Safety
/// `words` words from `start` on are readable, and the processor has the instructions of `W`.
#[inline(always)]
#[expect(clippy::multiple_unsafe_ops_per_block, reason = "one SAFETY comment covers a loop and the rest")]
unsafe fn equal_body<W: Words>(first: u64, start: *const [u8; 8], words: usize) -> bool {
    let whole = words - words % W::COUNT;
    let mut at = 0;
    // SAFETY: the caller promises `words` words, of which these are some, and the instructions.
    unsafe {
        let (mut value, mut difference) = (W::from(first), W::zero());
        while at < whole {
            difference = difference.or(W::load(start.wrapping_add(at)).xor(value));
            value = value.next();
            at += W::COUNT;
        }
        let rest = |at: usize| u64::load(start.wrapping_add(at)) != word(first, at as u64);
        difference.lanes().iter().all(|&lane| lane == 0) && !(whole..words).any(rest)
    }
}

/// # Safety
/// `words` words from `start` on are readable, and the processor has the instructions of `W`.
#[inline(always)]
#[expect(clippy::multiple_unsafe_ops_per_block, reason = "one SAFETY comment covers a loop and the rest")]
unsafe fn xor_body<W: Words>(start: *const [u8; 8], words: usize) -> u64 {
    let whole = words - words % W::COUNT;
    let mut at = 0;
    // SAFETY: the caller promises `words` words, of which these are some, and the instructions.
    unsafe {
        let mut all = W::zero();
        while at < whole {
            all = all.xor(W::load(start.wrapping_add(at)));
            at += W::COUNT;
        }
        let rest = (whole..words).map(|at| u64::load(start.wrapping_add(at)));
        all.lanes().into_iter().chain(rest).fold(0, |xor, word| xor ^ word)
    }
}

/// The XOR of all bytes.
pub fn xor<'a>(bytes: impl Into<Bytes<'a>>) -> u8 {
    let bytes = bytes.into();
    let words = bytes.len() / 8;
    // SAFETY: that many words are readable, because `bytes` is at least as long.
    let folded = unsafe { xor_wide(bytes.as_ptr().cast(), words) };
    let rest = (8 * words..bytes.len()).map(|at| bytes.get(at));
    folded.to_le_bytes().into_iter().chain(rest).fold(0, |xor, byte| xor ^ byte)
}

widest!(unsafe fn xor_wide(start: *const [u8; 8], words: usize) -> u64 = xor_body);
widest!(unsafe fn fill_wide(first: u64, start: *mut [u8; 8], words: usize) -> () = fill_body);
widest!(unsafe fn equal_wide(first: u64, start: *const [u8; 8], words: usize) -> bool = equal_body);

/// The byte at a position of a stream of words.
fn byte_at(seed: u64, at: u64) -> u8 {
    word(seed, at / 8).to_le_bytes()[(at % 8) as usize]
}

/// The number of bytes before the next whole word of the stream, `len` at most.
fn head(position: u64, len: usize) -> usize {
    len.min((8 - position % 8) as usize % 8)
}

fn fill_words(seed: u64, position: u64, mut bytes: BytesMut<'_>) {
    let start = head(position, bytes.len());
    let end = bytes.len() - (bytes.len() - start) % 8;
    for i in (0..start).chain(end..bytes.len()) {
        bytes.set(i, byte_at(seed, position + i as u64));
    }
    let first = word(seed, (position + start as u64) / 8);
    let mut whole = bytes.part(start..end);
    // SAFETY: `whole.len() / 8` words are writable, because `whole` is exactly that long.
    unsafe { fill_wide(first, whole.as_mut_ptr().cast(), whole.len() / 8) };
}

fn matching_words(seed: u64, position: u64, bytes: Bytes<'_>) -> usize {
    /// The number of bytes compared before checking whether all of them were right. It is small enough to find the
    /// fault by comparing the bytes again, and large enough that the checks cost nothing.
    const STRIDE: usize = 4096;
    let one_by_one = |from: usize, to: usize| (from..to).find(|&i| bytes.get(i) != byte_at(seed, position + i as u64));
    let equal = |from: usize, to: usize| {
        let words = bytes.part(from..to);
        // SAFETY: `words.len() / 8` words are readable, because `words` is at least that long.
        unsafe { equal_wide(word(seed, (position + from as u64) / 8), words.as_ptr().cast(), words.len() / 8) }
    };
    let start = head(position, bytes.len());
    if let Some(wrong) = one_by_one(0, start) {
        return wrong;
    }
    let end = bytes.len() - (bytes.len() - start) % 8;
    let mut at = if equal(start, end) { end } else { start };
    while at < end && equal(at, end.min(at + STRIDE)) {
        at = end.min(at + STRIDE);
    }
    one_by_one(at, bytes.len()).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 0x0123_4567_89ab_cdef;

    fn stream(position: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        Pattern::endless(Rule::Position { seed: SEED }).fill(position, &mut bytes);
        bytes
    }

    fn fault_in(bytes: &[u8], piece: usize) -> Option<Fault> {
        let mut checker = Checker::new(Pattern::endless(Rule::Position { seed: SEED }));
        for piece in bytes.chunks(piece) {
            checker.check(piece);
        }
        checker.fault()
    }

    #[test]
    fn the_step_can_be_inverted() {
        assert_eq!(STEP.wrapping_mul(STEP_INVERSE), 1);
    }

    /// Fills, compares and folds with the words of `W`, and then one word at a time.
    ///
    /// # Safety
    /// The processor has the instructions of `W`.
    unsafe fn agrees<W: Words>() {
        for words in 0..40 {
            let (mut wide, mut single) = (vec![[0; 8]; words], vec![[0; 8]; words]);
            let at = |words: &mut Vec<[u8; 8]>| words.as_mut_ptr();
            // SAFETY: each vector has that many words, and the caller promises the instructions.
            unsafe { fill_body::<W>(SEED, at(&mut wide), words) };
            // SAFETY: as above; one word at a time needs no instructions.
            unsafe { fill_body::<u64>(SEED, at(&mut single), words) };
            assert_eq!(wide, single);
            // SAFETY: as above.
            assert!(unsafe { equal_body::<W>(SEED, wide.as_ptr(), words) });
            // SAFETY: as above.
            let folded = unsafe { xor_body::<W>(wide.as_ptr(), words) };
            assert_eq!(folded, single.iter().fold(0, |xor, &word| xor ^ u64::from_le_bytes(word)));
            for changed in 0..words {
                wide[changed][changed % 8] ^= 0x10;
                // SAFETY: as above.
                assert!(!unsafe { equal_body::<W>(SEED, wide.as_ptr(), words) }, "word {changed} of {words}");
                wide[changed][changed % 8] ^= 0x10;
            }
        }
    }

    #[test]
    fn all_instructions_agree() {
        // SAFETY: one word at a time needs no instructions.
        unsafe { agrees::<u64>() };
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has them.
            unsafe { agrees::<Avx2>() };
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has them.
            unsafe { agrees::<Avx512>() };
        }
    }

    #[test]
    fn pieces_of_any_length_form_the_same_stream() {
        let whole = stream(0, 10_000);
        for piece in [1, 3, 7, 8, 9, 64, 511, 4096, 9999] {
            let mut cut = Vec::new();
            while cut.len() < whole.len() {
                cut.extend(stream(cut.len() as u64, piece.min(whole.len() - cut.len())));
            }
            assert_eq!(cut, whole, "pieces of {piece}");
            assert_eq!(fault_in(&whole, piece), None, "pieces of {piece}");
        }
    }

    #[test]
    fn every_changed_bit_is_located() {
        let whole = stream(0, 6000);
        for position in (0..6000).step_by(37) {
            let mut changed = whole.clone();
            changed[position] ^= 1 << (position % 8);
            assert_eq!(fault_in(&changed, 700), Some(Fault { position: position as u64, origin: None }));
        }
    }

    #[test]
    fn a_lost_piece_is_reported_with_its_origin() {
        let mut bytes = stream(0, 20_000);
        bytes.drain(5000..9096);
        // Words that are a page apart have the same first byte, so the second byte is reported as the first wrong one.
        assert_eq!(fault_in(&bytes, 4096), Some(Fault { position: 5001, origin: Some(9097) }));
    }

    #[test]
    fn a_repeated_piece_is_reported_with_its_origin() {
        let mut bytes = stream(0, 8192);
        bytes.extend_from_within(4096..8192);
        let fault = fault_in(&bytes, 8192).unwrap();
        assert_eq!(fault, Fault { position: 8193, origin: Some(4097) });
        assert_eq!(fault.to_string(), "byte 8193 is wrong: byte 4097 and those after it were repeated");
    }

    #[test]
    fn a_whole_lost_period_of_the_counting_pattern_escapes_xor_but_not_position() {
        let counting = Pattern::endless(Rule::Counting);
        let mut bytes = vec![0; 65536];
        counting.fill(0, &mut bytes);
        assert_eq!(xor(&bytes), 0);
        assert_eq!(xor(&bytes[..65536 - 256]), 0, "a lost period cannot be seen");
        assert_eq!(counting.xor(65536), Some(0));
        let mut bytes = stream(0, 65536);
        bytes.drain(1024..1280);
        assert!(fault_in(&bytes, 65536).is_some());
    }

    #[test]
    fn the_xor_of_a_repeating_stream_is_computed_right() {
        for period in [1, 5, 64, 100, 256, 300] {
            let pattern = Pattern::repeating(Rule::Counting, period);
            for total in [0, 1, 63, 64, 100, 255, 256, 777, 5000] {
                let mut bytes = vec![0; total];
                pattern.fill(0, &mut bytes);
                assert_eq!(pattern.xor(total as u64), Some(xor(&bytes)), "period {period}, {total} bytes");
            }
        }
    }

    #[test]
    fn repeating_streams_are_checked_across_the_seam() {
        let pattern = Pattern::repeating(Rule::Position { seed: SEED }, 1000);
        let mut bytes = vec![0; 5000];
        pattern.fill(0, &mut bytes);
        assert_eq!(bytes[..1000], bytes[3000..4000]);
        let mut checker = Checker::new(pattern);
        bytes.chunks(333).for_each(|piece| checker.check(piece));
        assert_eq!(checker.fault(), None);
        bytes[4321] ^= 0x80;
        let mut checker = Checker::new(pattern);
        bytes.chunks(333).for_each(|piece| checker.check(piece));
        assert_eq!(checker.fault().unwrap().position, 4321);
    }

    /// An XOR of all bytes doesn't depend on their order, and an even number of flips of a bit cancels out.
    #[test]
    fn an_xor_misses_faults_that_a_check_by_position_finds() {
        let sound = stream(0, 64 << 10);
        let mut flipped = sound.clone();
        [1000, 40_000].iter().for_each(|at: &usize| flipped[*at] ^= 0x10);
        let mut exchanged = sound.clone();
        let (head, tail) = exchanged.split_at_mut(11 * 4096);
        head[2 * 4096..3 * 4096].swap_with_slice(&mut tail[..4096]);
        let xor = |bytes: &[u8]| bytes.iter().fold(0, |xor, byte| xor ^ byte);
        assert_eq!(fault_in(&sound, 4096), None);
        for wrong in [flipped, exchanged] {
            assert!(wrong != sound && xor(&wrong) == xor(&sound));
            assert!(fault_in(&wrong, 4096).is_some());
        }
    }
}
