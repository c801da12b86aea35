//! Lines as they are.

use crate::lines::{Batch, Error, Failure, Fate, Flow, Output, Transform};

/// Each line unchanged: what the engine costs by itself. Nothing is copied, the batch is written from where it was read.
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
