//! What a command prints: counted and dropped, hashed, or kept for the figures in it.

use std::fs::File;
use std::io::PipeReader;
use std::os::fd::AsFd;
use std::time::Instant;

use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};
use sha2::{Digest, Sha256};

use pipemark_host::child::{Interrupt, RunError, wait_readable};

use crate::conditions::{not_run, too_long};

/// Bytes taken from a pipe at once.
pub const TAKEN: usize = 1 << 20;
/// As much is kept of what is printed on either stream; the rest is counted.
const KEPT: usize = 16 << 20;

/// A stream of the command, and what becomes of it.
pub struct OutputStream {
    pub reader: PipeReader,
    /// Of all of it.
    pub hash: Option<Sha256>,
    /// The beginning of it.
    pub kept: Option<Vec<u8>>,
    /// Bytes until now.
    pub bytes: u64,
    ended: bool,
}

impl OutputStream {
    /// Of which nothing is known yet.
    pub fn new(reader: PipeReader, hashed: bool, kept: bool) -> OutputStream {
        OutputStream { reader, hash: hashed.then(Sha256::new), kept: kept.then(Vec::new), bytes: 0, ended: false }
    }

    /// Takes what there is, which does not wait: as references to pages, unless it is hashed or kept.
    fn take(&mut self, nowhere: &File, block: &mut [u8]) -> rustix::io::Result<usize> {
        if self.hash.is_none() && self.kept.is_none() {
            return splice(&self.reader, None, nowhere, None, TAKEN, SpliceFlags::MOVE | SpliceFlags::NONBLOCK);
        }
        let count = rustix::io::read(&self.reader, &mut *block)?;
        if let Some(hash) = &mut self.hash {
            hash.update(&block[..count]);
        }
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(&block[..count.min(KEPT - kept.len())]);
        }
        Ok(count)
    }
}

/// Takes everything that comes from all streams until they end.
///
/// # Errors
/// When that takes until the deadline, or the person interrupts.
pub fn drain(streams: &mut [OutputStream], deadline: Instant, interrupt: &Interrupt) -> Result<(), RunError> {
    let nowhere = File::options().write(true).open("/dev/null").map_err(not_run)?;
    let kept = streams.iter().any(|stream| stream.hash.is_some() || stream.kept.is_some());
    let mut block = vec![0; if kept { TAKEN } else { 0 }];
    loop {
        let mut open: Vec<&mut OutputStream> = streams.iter_mut().filter(|stream| !stream.ended).collect();
        if open.is_empty() {
            return Ok(());
        }
        let readers: Vec<_> = open.iter().map(|stream| stream.reader.as_fd()).collect();
        let ready = wait_readable(&readers, deadline, Some(interrupt))?.ok_or_else(too_long)?;
        match open[ready].take(&nowhere, &mut block) {
            Ok(0) => open[ready].ended = true,
            Ok(count) => open[ready].bytes += count as u64,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(not_run(error.into())),
        }
    }
}
