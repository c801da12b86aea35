//! How long lines are.

use super::append_decimal;
use crate::lines::{Failure, Fate, Output, Transform};

/// Each line's length in bytes, in its place: `hello` becomes `5`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Length;

impl Transform for Length {
    #[inline]
    fn line<'b>(&mut self, line: &'b [u8], output: &mut Output<'b>) -> Result<Fate, Failure> {
        append_decimal(output, line.len() as u64);
        Ok(Fate::Keep)
    }
}
