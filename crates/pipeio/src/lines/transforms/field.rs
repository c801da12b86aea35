//! One field of lines.

use std::num::NonZeroUsize;

use crate::lines::{Failure, Fate, Output, Transform};

/// The n-th field of each line, counted from 1, in place of the line. Fields lie between delimiters, so two delimiters
/// in a row have an empty field between them; a line with too few fields becomes an empty one.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    number: NonZeroUsize,
    delimiter: u8,
}

impl Field {
    /// Field `number` of those which `delimiter` separates.
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
