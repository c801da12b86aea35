//! The transform of document 003: `hello world` becomes `[spaces: 1]hello world`.
#![expect(clippy::multiple_unsafe_ops_per_block, reason = "a load, a store and their addresses share one argument")]

#[cfg(target_arch = "x86_64")]
use crate::lines::simd::{Avx2, Avx512};
use crate::lines::simd::{Lanes, Portable, Simd, WORD};
use crate::lines::{Batch, Error, Failure, Fate, Flow, Output, Transform};

/// Each line after a header with its number of spaces, `[spaces: >6]` if they are more than six.
///
/// A batch is gone through once, 64 bytes at a time: one comparison finds the ends of lines, another the spaces, and
/// what is left for each line is to count bits, to store a header and to copy.
#[derive(Debug, Clone, Copy)]
pub struct Spaces {
    simd: Simd,
}

impl Spaces {
    /// With the widest instructions this processor has.
    pub fn new() -> Self {
        Self { simd: Simd::best() }
    }

    /// With no wider instructions than these: to see what they bring.
    pub fn with(simd: Simd) -> Self {
        Self { simd: Simd::available().find(|&level| level == simd).unwrap_or_else(Simd::best) }
    }
}

impl Default for Spaces {
    fn default() -> Self {
        Self::new()
    }
}

impl Transform for Spaces {
    fn line<'b>(&mut self, line: &'b [u8], output: &mut Output<'b>) -> Result<Fate, Failure> {
        let header = Header::of(memchr::memchr_iter(b' ', line).take(7).count() as u64);
        output.extend(&header.bytes[..header.len]);
        output.lend(line);
        Ok(Fate::Keep)
    }

    fn batch<'b>(&mut self, batch: &Batch<'b>, output: &mut Output<'b>) -> Result<Flow, Error> {
        // SAFETY: `simd` is one this processor has.
        unsafe {
            match self.simd {
                Simd::Portable => run::<Portable>(batch, output),
                #[cfg(target_arch = "x86_64")]
                Simd::Avx2 => run_avx2(batch, output),
                #[cfg(target_arch = "x86_64")]
                Simd::Avx512 => run_avx512(batch, output),
            }
        }
        Ok(Flow::Continue)
    }
}

/// A header, padded so that it can be stored with one instruction.
#[derive(Clone, Copy)]
struct Header {
    bytes: [u8; HEADER],
    len: usize,
}

/// Bytes a header is padded to.
const HEADER: usize = 16;

impl Header {
    #[inline(always)]
    fn of(spaces: u64) -> Self {
        const MANY: usize = 7;
        static HEADERS: [[u8; HEADER]; MANY + 1] = [
            *b"[spaces: 0]     ",
            *b"[spaces: 1]     ",
            *b"[spaces: 2]     ",
            *b"[spaces: 3]     ",
            *b"[spaces: 4]     ",
            *b"[spaces: 5]     ",
            *b"[spaces: 6]     ",
            *b"[spaces: >6]    ",
        ];
        let index = spaces.min(MANY as u64) as usize;
        Self { bytes: HEADERS[index], len: 11 + usize::from(index == MANY) }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn run_avx2<'b>(batch: &Batch<'b>, output: &mut Output<'b>) {
    // SAFETY: this function has the instructions.
    unsafe { run::<Avx2>(batch, output) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2,lzcnt,popcnt")]
fn run_avx512<'b>(batch: &Batch<'b>, output: &mut Output<'b>) {
    // SAFETY: this function has the instructions.
    unsafe { run::<Avx512>(batch, output) }
}

/// # Safety
///
/// The processor has `L`'s instructions.
#[inline(always)]
unsafe fn run<'b, L: Lanes>(batch: &Batch<'b>, output: &mut Output<'b>) {
    let bytes = batch.bytes();
    let mut writer = Appender::<L>::new(bytes, output);
    let mut line = 0;
    let mut spaces = 0;
    let mut at = 0;
    while at < bytes.len() {
        let mut padded = [0; WORD];
        let left = bytes.len() - at;
        let (word, valid) = if left >= WORD {
            (bytes[at..].as_ptr(), u64::MAX)
        } else {
            padded[..left].copy_from_slice(&bytes[at..]);
            (padded.as_ptr(), (1 << left) - 1)
        };
        // SAFETY: 64 bytes are there, in the batch or in the padded rest of it.
        let [mut ends, mut blanks] = unsafe { L::equal(word, [batch.terminator(), b' ']) };
        ends &= valid;
        blanks &= valid & !ends;
        while ends != 0 {
            // All bits up to the lowest end: those of this line.
            let this = ends ^ (ends - 1);
            spaces += u64::from((blanks & this).count_ones());
            let next = at + ends.trailing_zeros() as usize + 1;
            writer.append(line, next, spaces);
            blanks &= !this;
            ends &= ends - 1;
            line = next;
            spaces = 0;
        }
        spaces += u64::from(blanks.count_ones());
        at += WORD;
    }
    if line < bytes.len() {
        writer.append(line, bytes.len(), spaces);
    }
    writer.finish();
}

/// Appends lines to an output with stores that write more than the line and are overwritten by the next.
struct Appender<'a, 'b, L> {
    bytes: &'b [u8],
    output: &'a mut Output<'b>,
    /// Room in the output which isn't part of it yet, and how much of it is filled.
    room: *mut u8,
    len: usize,
    filled: usize,
    lanes: std::marker::PhantomData<L>,
}

impl<'a, 'b, L: Lanes> Appender<'a, 'b, L> {
    /// Lines this long are handed to the output to decide whether to copy them.
    const LONG: usize = 16 << 10;

    #[inline(always)]
    fn new(bytes: &'b [u8], output: &'a mut Output<'b>) -> Self {
        let room = output.spare(bytes.len() + bytes.len() / 16 + HEADER + WORD);
        let (room, len) = (room.as_mut_ptr(), room.len());
        Self { bytes, output, room, len, filled: 0, lanes: std::marker::PhantomData }
    }

    #[inline(always)]
    fn append(&mut self, from: usize, to: usize, spaces: u64) {
        let header = Header::of(spaces);
        let line = &self.bytes[from..to];
        if self.len - self.filled < HEADER + line.len() + WORD || line.len() >= Self::LONG {
            self.append_slowly(&header, line);
            return;
        }
        // SAFETY: there is room for the padded header.
        let start = unsafe {
            let start = self.room.add(self.filled);
            start.cast::<[u8; HEADER]>().write(header.bytes);
            start.add(header.len)
        };
        if line.len() <= HEADER && self.bytes.len() - from >= HEADER {
            // SAFETY: 16 bytes of the batch are left, and there is room for as many.
            unsafe { start.cast::<[u8; HEADER]>().write(line.as_ptr().cast::<[u8; HEADER]>().read()) };
        } else if self.bytes.len() - from >= line.len() + WORD {
            let mut copied = 0;
            while copied < line.len() {
                // SAFETY: the batch has 64 bytes after this line, the output has room for as many, and they are
                // different memory: the output is borrowed mutably.
                unsafe { L::copy(line.as_ptr().add(copied), start.add(copied)) };
                copied += WORD;
            }
        } else {
            // SAFETY: the line is in the batch, there is room for it, and they are different memory.
            unsafe { std::ptr::copy_nonoverlapping(line.as_ptr(), start, line.len()) };
        }
        self.filled += header.len + line.len();
    }

    /// For a line which has no room yet, or is so long that it may better be lent.
    #[cold]
    #[inline(never)]
    fn append_slowly(&mut self, header: &Header, line: &'b [u8]) {
        self.output.advance(self.filled);
        self.output.extend(&header.bytes[..header.len]);
        self.output.lend(line);
        // At least twice what is left to do at this rate would be a guess; a doubling region makes any guess cheap.
        let room = self.output.spare(HEADER + 2 * WORD);
        (self.room, self.len, self.filled) = (room.as_mut_ptr(), room.len(), 0);
    }

    #[inline(always)]
    fn finish(self) {
        self.output.advance(self.filled);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lines::output::Store;

    fn spaces(simd: Simd, bytes: &[u8], terminator: u8) -> Vec<u8> {
        let mut output = Output::new(Store::new(1).unwrap());
        Spaces::with(simd).batch(&Batch::new(bytes, terminator), &mut output).unwrap();
        output.pieces().iter().flat_map(|piece| piece.iter().copied()).collect()
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

    proptest! {
        #[test]
        fn every_level_agrees_with_the_reference(
            bytes in prop_oneof![prop::collection::vec(byte(), 0..400), prop::collection::vec(long_byte(), 0..3000)],
            terminator in prop_oneof![8 => Just(b'\n'), 1 => Just(b'\0'), 1 => Just(b' ')],
        ) {
            let expected = reference(&bytes, terminator);
            for simd in Simd::available() {
                prop_assert_eq!(&spaces(simd, &bytes, terminator), &expected, "{:?}", simd);
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
        ];
        for input in inputs {
            for simd in Simd::available() {
                assert!(spaces(simd, &input, b'\n') == reference(&input, b'\n'), "{simd:?}, {} bytes", input.len());
            }
        }
    }
}
