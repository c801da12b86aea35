//! The input of a filter: yes(1) with a line, or a log in memory, plain or compressed. The log is made once for all
//! runs, in unnamed files, so nothing remains however the measurement ends.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};

use pipemark_host::child::error::{RunError, explained};
use pipemark_host::child::interrupt::Interrupt;
use pipemark_host::child::{Begin, Child};
use pipemark_model::{ByteSize, Feed};

use crate::content::Payload;

/// A line of 8 bytes with its newline, the length that pipelines (docs/sources.md) uses.
pub const SHORT_LINE: &str = "abcdefg";

/// 48 bytes with its newline: between the other two on a logarithmic axis.
pub const MIDDLE_LINE: &str = "2024-01-01T00:00:00 host app[1]: the quick fox ";

/// 285 bytes with its newline, typical of a log.
pub const LONG_LINE: &str = "2024-01-01T00:00:00 host app[1]: the quick brown fox jumps over the lazy dog the quick \
brown fox jumps over the lazy dog the quick brown fox jumps over the lazy dog the quick brown fox jumps over the lazy \
dog the quick brown fox jumps over the lazy dog the quick brown fox jumps over ";

/// The content of the log: `pipemark gen log:3` writes the same.
pub const LOG: Payload = Payload::Log { seed: 3 };

/// How long compression may take: gzip at its fastest needs half a minute per GiB.
const PACKING: Duration = Duration::from_secs(600);

/// The logs made so far, by requested total.
#[derive(Default)]
pub struct Feeds {
    logs: BTreeMap<ByteSize, Log>,
}

struct Log {
    plain: File,
    bytes: u64,
    packed: Option<File>,
}

/// The input of a filter.
pub struct FilterInput {
    /// The command that writes it; without one the filter reads the file itself.
    pub command: Option<Vec<String>>,
    /// The file to read, and the bytes that reach the filter; without it, the input is endless.
    pub file: Option<(File, u64)>,
}

impl Feeds {
    /// The input of a run; `total` applies to feeds that end.
    ///
    /// # Errors
    /// When there is no memory for a log, or compression fails.
    pub fn input(&mut self, feed: Feed, total: ByteSize, interrupt: &Interrupt) -> Result<FilterInput, RunError> {
        let failed = |error: io::Error| RunError::Failed(format!("the log could not be made: {}", explained(&error)));
        let words = |words: &[&str]| Some(words.iter().map(|&word| word.to_owned()).collect());
        let command = match feed {
            Feed::YesShort => return Ok(FilterInput { command: words(&["yes", SHORT_LINE]), file: None }),
            Feed::YesMiddle => return Ok(FilterInput { command: words(&["yes", MIDDLE_LINE]), file: None }),
            Feed::YesLong => return Ok(FilterInput { command: words(&["yes", LONG_LINE]), file: None }),
            Feed::File => None,
            Feed::Zcat => words(&["zcat"]),
            Feed::Timed => unreachable!("its lines are written here, not by another program"),
        };
        if !self.logs.contains_key(&total) {
            // Only the latest log is kept, so that experiments of different totals don't add up in memory.
            self.logs = BTreeMap::from_iter([(total, Log::of(total).map_err(failed)?)]);
        }
        let log = self.logs.get_mut(&total).expect("made above");
        if command.is_some() && log.packed.is_none() {
            log.packed = Some(log.pack(interrupt)?);
        }
        let file = log.packed.as_ref().filter(|_| command.is_some()).unwrap_or(&log.plain);
        Ok(FilterInput { file: Some((reopen(file).map_err(failed)?, log.bytes)), command })
    }
}

impl Log {
    /// Whole lines, as many as fit into `total`, at least one.
    fn of(total: ByteSize) -> io::Result<Log> {
        let mut plain = unnamed_file("log")?;
        let mut stream = LOG.stream();
        let mut bytes = 0;
        while bytes < total.0 {
            let piece = stream.next(usize::MAX);
            let room = usize::try_from(total.0 - bytes).unwrap_or(usize::MAX).min(piece.len());
            let end = match piece[..room].iter().rposition(|&byte| byte == b'\n') {
                Some(last) => last + 1,
                None if bytes > 0 => break,
                None => piece.iter().position(|&byte| byte == b'\n').map_or(room, |first| first + 1),
            };
            plain.write_all(&piece[..end])?;
            bytes += end as u64;
            if end < piece.len() {
                break;
            }
        }
        Ok(Log { plain, bytes, packed: None })
    }

    fn pack(&self, interrupt: &Interrupt) -> Result<File, RunError> {
        let failed = |error: io::Error| RunError::Failed(format!("gzip could not be started: {}", explained(&error)));
        let packed = unnamed_file("log.gz").map_err(failed)?;
        let streams = (reopen(&self.plain).map_err(failed)?.into(), packed.try_clone().map_err(failed)?.into());
        let words = ["gzip", "-1", "-c"].map(str::to_owned);
        let mut gzip = Child::start_foreign("gzip", &words, streams, None, Begin::AtOnce).map_err(failed)?;
        gzip.wait(Instant::now() + PACKING, Some(interrupt))?;
        gzip.succeeded().map(|_| packed)
    }
}

/// An unnamed file in memory.
pub fn unnamed_file(what: &str) -> io::Result<File> {
    Ok(File::from(memfd_create(what, MemfdFlags::CLOEXEC)?))
}

/// The same file, opened for reading from its beginning.
pub fn reopen(file: &File) -> io::Result<File> {
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feed_lines_have_the_declared_length() {
        let bytes = |line: &str| u32::try_from(line.len() + 1).ok();
        assert_eq!(Feed::YesShort.line_bytes(), bytes(SHORT_LINE));
        assert_eq!(Feed::YesMiddle.line_bytes(), bytes(MIDDLE_LINE));
        assert_eq!(Feed::YesLong.line_bytes(), bytes(LONG_LINE));
    }

    #[test]
    fn a_log_has_whole_lines_only() {
        for total in [1, 1000, 128 << 10, 300_000] {
            let log = Log::of(ByteSize(total)).unwrap();
            let text = io::read_to_string(reopen(&log.plain).unwrap()).unwrap();
            assert_eq!(text.len() as u64, log.bytes);
            assert!(text.ends_with('\n') && (log.bytes <= total || text.lines().count() == 1), "{total}");
            assert!(log.bytes + 400 > total, "{total}: {}", log.bytes);
        }
    }
}
