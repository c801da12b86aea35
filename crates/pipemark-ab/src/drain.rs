//! Reads a command's output. The output is counted and then discarded, hashed, or kept to read figures from it.

use std::fs::File;
use std::io::{PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::time::Instant;

use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};
use sha2::{Digest, Sha256};

use pipemark_host::child::{Child, Interrupt, RunError, wait_readable};

use crate::conditions::{left_open, not_run, too_long};

/// Bytes read from a pipe at once.
pub const READ_BYTES: usize = 1 << 20;
/// The maximum number of bytes kept of the beginning, and of the end, of a stream that figures are read from. The bytes
/// between are only counted.
const MAX_KEPT: usize = 8 << 20;
/// The same maximum for a standard error that is shown.
pub const MAX_SHOWN: usize = 32 << 10;

/// A stream of the command.
pub struct OutputStream {
    pub reader: PipeReader,
    /// The hash of all bytes so far; `None` if the stream is not hashed.
    pub hash: Option<Sha256>,
    kept: Option<KeptEnds>,
    /// The number of bytes read so far.
    pub bytes: u64,
    /// Whether a run lasts until the end of this stream.
    awaited: bool,
    ended: bool,
}

impl OutputStream {
    /// Standard output, before the first read.
    pub fn output(reader: PipeReader, hashed: bool, kept: bool) -> OutputStream {
        OutputStream {
            reader,
            hash: hashed.then(Sha256::new),
            kept: kept.then(|| KeptEnds::new(MAX_KEPT)),
            bytes: 0,
            awaited: true,
            ended: false,
        }
    }

    /// Standard error. A background process may keep it open. A run waits for the end of standard error only if figures
    /// are read from it.
    pub fn errors(reader: PipeReader, figures: bool) -> OutputStream {
        let kept = Some(KeptEnds::new(if figures { MAX_KEPT } else { MAX_SHOWN }));
        OutputStream { kept, awaited: figures, ..OutputStream::output(reader, false, false) }
    }

    /// Reads the available bytes without waiting. If they are neither hashed nor kept, splices them to /dev/null
    /// instead.
    fn take(&mut self, nowhere: &File, block: &mut [u8]) -> rustix::io::Result<usize> {
        if self.hash.is_none() && self.kept.is_none() {
            return splice(&self.reader, None, nowhere, None, READ_BYTES, SpliceFlags::MOVE | SpliceFlags::NONBLOCK);
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

    /// Reads the available bytes once and counts them, or records that the stream has ended.
    fn read(&mut self, nowhere: &File, block: &mut [u8]) -> Result<(), RunError> {
        match self.take(nowhere, block) {
            Ok(0) => self.ended = true,
            Ok(count) => self.bytes += count as u64,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(not_run(error.into())),
        }
        Ok(())
    }

    /// The kept output, without the middle of a long output; empty if the stream isn't kept.
    pub fn printed(&mut self) -> Vec<u8> {
        let Some(KeptEnds { beginning, end, .. }) = self.kept.take() else { return Vec::new() };
        let omitted = self.bytes - (beginning.len() + end.len()) as u64;
        let between =
            if omitted == 0 || self.awaited { String::new() } else { format!("\n[{omitted} bytes omitted]\n") };
        [beginning, between.into(), end].concat()
    }
}

/// The beginning and the end of an output. Programs print figures at either end.
#[derive(Debug)]
struct KeptEnds {
    /// The number of bytes to keep at each end.
    each: usize,
    beginning: Vec<u8>,
    end: Vec<u8>,
}

impl KeptEnds {
    fn new(each: usize) -> KeptEnds {
        KeptEnds { each, beginning: Vec::new(), end: Vec::new() }
    }

    fn add(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(self.each - self.beginning.len()));
        self.beginning.extend_from_slice(first);
        self.end.extend_from_slice(rest);
        if self.end.len() > 2 * self.each {
            self.end.drain(..self.end.len() - self.each);
        }
    }
}

/// Reads the awaited streams to their ends, and waits until all stages have ended. No stage is reaped. From the other
/// streams, reads only the bytes that were written by then.
///
/// While a stage runs, `writers` keeps the streams open. Otherwise the end of a stream and the exit of its stage would
/// each wake this thread, and a wake-up adds noticeably to the time of a short run.
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
    let mut block = vec![0; if kept { READ_BYTES } else { 0 }];
    // The last stage usually exits last. Only one descriptor is polled at a time, because with --concurrent there may
    // be many stages.
    let mut running = stages.iter().rev();
    let mut next = || running.next().map(Child::pidfd).transpose().map_err(not_run);
    let mut stage = next()?;
    loop {
        if stage.is_none() {
            writers.clear();
        }
        let mut open: Vec<&mut OutputStream> = streams.iter_mut().filter(|stream| !stream.ended).collect();
        if stage.is_none() && open.iter().all(|stream| !stream.awaited) {
            for stream in open {
                // One read empties the pipe.
                if wait_readable(&[stream.reader.as_fd()], Instant::now(), None)?.is_some() {
                    stream.read(&nowhere, &mut block)?;
                }
            }
            return Ok(());
        }
        let readers = open.iter().map(|stream| stream.reader.as_fd());
        let waited: Vec<_> = readers.chain(stage.as_ref().map(AsFd::as_fd)).collect();
        let late = || if stage.is_none() { left_open() } else { too_long("it") };
        let ready = wait_readable(&waited, deadline, Some(interrupt))?.ok_or_else(late)?;
        if ready == open.len() {
            stage = next()?;
            continue;
        }
        open[ready].read(&nowhere, &mut block)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_are_kept() {
        let mut kept = KeptEnds::new(MAX_KEPT);
        kept.add(b"first");
        (0..40).for_each(|_| kept.add(&vec![b'x'; READ_BYTES]));
        kept.add(b"last");
        assert!(kept.beginning.starts_with(b"first") && kept.end.ends_with(b"last"));
        assert!((MAX_KEPT..=2 * MAX_KEPT).contains(&kept.end.len()) && kept.beginning.len() == MAX_KEPT);
    }
}
