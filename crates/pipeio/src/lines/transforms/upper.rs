//! Lines in capitals.

use std::io;

use crate::lines::{Batch, Error, Failure, Fate, Flow, Output, Transform};

/// Each line with `a` to `z` as `A` to `Z`. Other bytes stay, and so does whatever is not ASCII.
#[derive(Debug, Clone, Copy, Default)]
pub struct Upper;

impl Upper {
    fn append(bytes: &[u8], output: &mut Output<'_>) -> io::Result<()> {
        for (to, from) in output.spare(bytes.len())?.iter_mut().zip(bytes) {
            *to = from.to_ascii_uppercase();
        }
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
            // A terminator isn't part of a line, so it stays as it is.
            for line in batch.lines() {
                Self::append(line.bytes, output).map_err(Error::Memory)?;
                output.extend(&batch.bytes()[line.start + line.bytes.len()..][..line.terminated()]);
            }
        } else {
            Self::append(batch.bytes(), output).map_err(Error::Memory)?;
        }
        Ok(Flow::Continue)
    }
}
