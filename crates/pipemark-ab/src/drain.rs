//! Reads a command's output: counts and discards it, hashes it, or keeps it for figures in it.

use std::fs::File;
use std::io::{PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::time::Instant;

use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};
use sha2::{Digest, Sha256};

use pipemark_host::child::{Child, Interrupt, RunError, wait_readable};

use crate::conditions::{not_run, too_long};

/// Bytes read from a pipe at once.
pub const TAKEN: usize = 1 << 20;
/// Bytes kept from the beginning and from the end of each stream; those between are only counted.
const KEPT: usize = 8 << 20;

/// A stream of the command.
pub struct OutputStream {
    pub reader: PipeReader,
    /// The hash of all bytes.
    pub hash: Option<Sha256>,
    kept: Option<KeptEnds>,
    /// Bytes so far.
    pub bytes: u64,
    ended: bool,
}

impl OutputStream {
    /// A stream of which nothing has been read.
    pub fn new(reader: PipeReader, hashed: bool, kept: bool) -> OutputStream {
        OutputStream {
            reader,
            hash: hashed.then(Sha256::new),
            kept: kept.then(KeptEnds::default),
            bytes: 0,
            ended: false,
        }
    }

    /// Reads what is available, without waiting; splices it to /dev/null unless it is hashed or kept.
    fn take(&mut self, nowhere: &File, block: &mut [u8]) -> rustix::io::Result<usize> {
        if self.hash.is_none() && self.kept.is_none() {
            return splice(&self.reader, None, nowhere, None, TAKEN, SpliceFlags::MOVE | SpliceFlags::NONBLOCK);
        }
        let count = rustix::io::read(&self.reader, &mut *block)?;
        if let Some(hash) = &mut self.hash {
            hash.update(&block[..count]);
        }
        if let Some(kept) = &mut self.kept {
            kept.add(&block[..count]);
        }
        Ok(count)
    }

    /// The kept output, without the middle of a long one; empty if it isn't kept.
    pub fn printed(&mut self) -> Vec<u8> {
        self.kept.take().map_or_else(Vec::new, |kept| [kept.beginning, kept.end].concat())
    }
}

/// The beginning and the end of an output: programs print figures at either.
#[derive(Debug, Default)]
struct KeptEnds {
    beginning: Vec<u8>,
    end: Vec<u8>,
}

impl KeptEnds {
    fn add(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(KEPT - self.beginning.len()));
        self.beginning.extend_from_slice(first);
        self.end.extend_from_slice(rest);
        if self.end.len() > 2 * KEPT {
            self.end.drain(..self.end.len() - KEPT);
        }
    }
}

/// Reads all streams to their ends and waits until all stages have ended; none is reaped.
///
/// While a stage runs, `writers` keeps the streams from ending: the end of a stream and the end of its stage would each
/// wake this thread, and a wake-up adds noticeably to the time of a short run.
///
/// # Errors
/// At the deadline, or when the user interrupts.
pub fn drain(
    streams: &mut [OutputStream],
    mut writers: Vec<PipeWriter>,
    stages: &[Child],
    deadline: Instant,
    interrupt: &Interrupt,
) -> Result<(), RunError> {
    let nowhere = File::options().write(true).open("/dev/null").map_err(not_run)?;
    let kept = streams.iter().any(|stream| stream.hash.is_some() || stream.kept.is_some());
    let mut block = vec![0; if kept { TAKEN } else { 0 }];
    // The last stage mostly ends last. One descriptor at a time: with --concurrent there may be many stages.
    let mut running = stages.iter().rev();
    let mut next = || running.next().map(Child::pidfd).transpose().map_err(not_run);
    let mut stage = next()?;
    loop {
        if stage.is_none() {
            writers.clear();
        }
        let mut open: Vec<&mut OutputStream> = streams.iter_mut().filter(|stream| !stream.ended).collect();
        if open.is_empty() && stage.is_none() {
            return Ok(());
        }
        let readers = open.iter().map(|stream| stream.reader.as_fd());
        let waited: Vec<_> = readers.chain(stage.as_ref().map(AsFd::as_fd)).collect();
        let ready = wait_readable(&waited, deadline, Some(interrupt))?.ok_or_else(too_long)?;
        if ready == open.len() {
            stage = next()?;
            continue;
        }
        match open[ready].take(&nowhere, &mut block) {
            Ok(0) => open[ready].ended = true,
            Ok(count) => open[ready].bytes += count as u64,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(not_run(error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_are_kept() {
        let mut kept = KeptEnds::default();
        kept.add(b"first");
        (0..40).for_each(|_| kept.add(&vec![b'x'; TAKEN]));
        kept.add(b"last");
        assert!(kept.beginning.starts_with(b"first") && kept.end.ends_with(b"last"));
        assert!((KEPT..=2 * KEPT).contains(&kept.end.len()) && kept.beginning.len() == KEPT);
    }
}
