//! Ready-made transforms.
//!
//! They are in the library, not in the program `pipemark`, for two reasons: [`Spaces`] uses the engine's internal
//! vector code, and users of the library get the transforms that the program offers.

mod spaces;

use std::io;
use std::num::NonZeroUsize;

use super::simd::{Simd, copy_upper};
use super::transform::line_by_line;
use super::{Batch, Error, Failure, Fate, Flow, Output, Transform};
pub use spaces::Spaces;

/// Appends `number` in decimal. Formatting the number with `fmt` would take longer than the rest of the line's
/// processing.
#[inline]
fn append_decimal(output: &mut Output<'_>, mut number: u64) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    output.extend(&digits[first..]);
}

/// Passes each line on unchanged, to measure the engine's own cost. A batch of 32 KiB or more is written from the
/// memory into which it was read, without a copy.
#[derive(Debug, Clone, Copy, Default)]
pub struct Identity;

impl Transform for Identity {
    fn line<'b>(&mut self, line: &'b [u8], output: &mut Output<'b>) -> Result<Fate, Failure> {
        output.lend(line);
        Ok(Fate::Keep)
    }

    fn batch<'b>(&mut self, batch: &Batch<'b>, output: &mut Output<'b>) -> Result<Flow, Error> {
        output.lend(batch.bytes());
        Ok(Flow::Continue)
    }
}

/// Replaces each line with its length in bytes: `hello` becomes `5`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Length;

impl Transform for Length {
    #[inline]
    fn line<'b>(&mut self, line: &'b [u8], output: &mut Output<'b>) -> Result<Fate, Failure> {
        append_decimal(output, line.len() as u64);
        Ok(Fate::Keep)
    }
}

/// Prefixes each line with its number and a tab: `hello` becomes `1<TAB>hello`. Starts at
/// [`Engine::first_line`](super::Engine::first_line), 1 by default.
#[derive(Debug, Clone, Copy, Default)]
pub struct Number {
    /// The number of the previous line.
    last: u64,
}

impl Transform for Number {
    #[inline]
    fn line<'b>(&mut self, line: &'b [u8], output: &mut Output<'b>) -> Result<Fate, Failure> {
        self.last = self.last.wrapping_add(1);
        append_decimal(output, self.last);
        output.push(b'\t');
        output.lend(line);
        Ok(Fate::Keep)
    }

    fn batch<'b>(&mut self, batch: &Batch<'b>, output: &mut Output<'b>) -> Result<Flow, Error> {
        self.last = batch.first_line().wrapping_sub(1);
        line_by_line(self, batch, output)
    }

    fn numbered(&self) -> bool {
        true
    }
}

/// Replaces each line with its n-th field, counted from 1. Every delimiter separates two fields, so there is an empty
/// field between two adjacent delimiters. A line with too few fields becomes empty.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    number: NonZeroUsize,
    delimiter: u8,
}

impl Field {
    /// Selects field `number`, counted from 1. Fields are separated by `delimiter`.
    pub fn new(number: NonZeroUsize, delimiter: u8) -> Self {
        Self { number, delimiter }
    }
}

impl Transform for Field {
    #[inline]
    fn line<'b>(&mut self, line: &'b [u8], output: &mut Output<'b>) -> Result<Fate, Failure> {
        let mut start = 0;
        let mut delimiters = memchr::memchr_iter(self.delimiter, line);
        for _ in 1..self.number.get() {
            match delimiters.next() {
                Some(at) => start = at + 1,
                None => return Ok(Fate::Keep),
            }
        }
        output.lend(&line[start..delimiters.next().unwrap_or(line.len())]);
        Ok(Fate::Keep)
    }
}

/// Replaces `a` to `z` with `A` to `Z`. All other bytes, including non-ASCII bytes, stay the same.
#[derive(Debug, Clone, Copy, Default)]
pub struct Upper;

impl Upper {
    fn append(bytes: &[u8], output: &mut Output<'_>) -> io::Result<()> {
        copy_upper(Simd::best(), bytes, output.spare(bytes.len())?);
        output.advance(bytes.len());
        Ok(())
    }
}

impl Transform for Upper {
    fn line<'b>(&mut self, line: &'b [u8], output: &mut Output<'b>) -> Result<Fate, Failure> {
        Self::append(line, output)?;
        Ok(Fate::Keep)
    }

    fn batch<'b>(&mut self, batch: &Batch<'b>, output: &mut Output<'b>) -> Result<Flow, Error> {
        if batch.terminator().is_ascii_lowercase() {
            // The terminator isn't part of a line, so it stays as it is.
            for line in batch.lines() {
                Self::append(line.bytes, output).map_err(Error::Memory)?;
                output.extend(&batch.bytes()[line.start + line.bytes.len()..][..line.terminator_len()]);
            }
        } else {
            Self::append(batch.bytes(), output).map_err(Error::Memory)?;
        }
        Ok(Flow::Continue)
    }
}
