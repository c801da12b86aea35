//! Lines with their numbers.

use super::append_decimal;
use crate::lines::transform::line_by_line;
use crate::lines::{Batch, Error, Failure, Fate, Flow, Output, Transform};

/// Each line after its number and a tab, counted from 1: `hello` becomes `1<TAB>hello`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Number {
    /// The number of the line before.
    last: u64,
}

impl Transform for Number {
    #[inline]
    fn line<'b>(&mut self, line: &'b [u8], output: &mut Output<'b>) -> Result<Fate, Failure> {
        self.last += 1;
        append_decimal(output, self.last);
        output.push(b'\t');
        output.lend(line);
        Ok(Fate::Keep)
    }

    fn batch<'b>(&mut self, batch: &Batch<'b>, output: &mut Output<'b>) -> Result<Flow, Error> {
        self.last = batch.first_line() - 1;
        line_by_line(self, batch, output)
    }

    fn numbered(&self) -> bool {
        true
    }
}
