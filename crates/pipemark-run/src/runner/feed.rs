//! The input of a filter, called its feed: a line repeated by yes(1), or a log in memory, plain or compressed. The log
//! is generated once for all runs and kept in unnamed files, so no file remains after the measurement.

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

/// A line of 8 bytes, newline included: the length used by the benchmark "pipelines" (docs/sources.md).
pub const SHORT_LINE: &str = "abcdefg";

/// A line of 48 bytes, newline included. On a logarithmic axis, this length is halfway between the other two.
pub const MIDDLE_LINE: &str = "2024-01-01T00:00:00 host app[1]: the quick fox ";

/// A line of 285 bytes, newline included, typical of a log.
pub const LONG_LINE: &str = "2024-01-01T00:00:00 host app[1]: the quick brown fox jumps over the lazy dog the quick \
brown fox jumps over the lazy dog the quick brown fox jumps over the lazy dog the quick brown fox jumps over the lazy \
dog the quick brown fox jumps over the lazy dog the quick brown fox jumps over ";

/// The line of the published throughput.sh: 286 bytes, newline included.
pub const PUBLISHED_LINE: &str = "Alexey Fyodorovitch Karamazov was the third son of Fyodor Pavlovitch Karamazov, a \
landowner well known in our district in his own day, and still remembered among us owing to his gloomy and tragic \
death, which happened thirteen years ago, and which I shall describe in its proper place.";

/// The content of the log, which `pipemark gen log:3` writes too.
pub const LOG: Payload = Payload::Log { seed: 3 };

/// The time limit for compression. `gzip -1` needs half a minute per GiB.
const COMPRESSION_TIMEOUT: Duration = Duration::from_secs(600);

/// The latest log, by requested total.
#[derive(Default)]
pub struct Feeds {
    logs: BTreeMap<ByteSize, Log>,
}

struct Log {
    plain: File,
    bytes: u64,
    packed: Option<File>,
}

/// The input of a filter, and the reader of its output.
#[derive(Default)]
pub struct FilterInput {
    /// The pipeline that writes the input; empty if the filter reads the file itself.
    pub commands: Vec<Vec<String>>,
    /// The file that the first command or the filter reads; `None` for /dev/null.
    pub file: Option<File>,
    /// The number of bytes that reach the filter; `None` if the input is endless.
    pub bytes: Option<u64>,
    /// The command that reads the output; `None` for /dev/null.
    pub reader: Option<Vec<String>>,
}

impl Feeds {
    /// The input of a run. Endless feeds ignore `total`.
    ///
    /// # Errors
    /// If there is not enough memory for a log, or the compression fails.
    pub fn input(&mut self, feed: Feed, total: ByteSize, interrupt: &Interrupt) -> Result<FilterInput, RunError> {
        let failed = |error: io::Error| RunError::Failed(format!("cannot generate the log: {}", explained(&error)));
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<String>>();
        let yes = |line| Ok(FilterInput { commands: vec![words(&["yes", line])], ..FilterInput::default() });
        let commands = match feed {
            Feed::YesShort => return yes(SHORT_LINE),
            Feed::YesMiddle => return yes(MIDDLE_LINE),
            Feed::YesLong => return yes(LONG_LINE),
            Feed::ThroughputSh => {
                let line = PUBLISHED_LINE.len() as u64 + 1;
                let lines = (total.0 / line).max(1);
                return Ok(FilterInput {
                    commands: vec![words(&["yes", PUBLISHED_LINE]), words(&["head", &format!("-n{lines}")])],
                    bytes: Some(lines * line),
                    reader: Some(words(&["pv", "--average-rate"])),
                    ..FilterInput::default()
                });
            }
            Feed::File => Vec::new(),
            Feed::Zcat => vec![words(&["zcat"])],
            Feed::Timed => unreachable!("its lines are written here, not by another program"),
        };
        if !self.logs.contains_key(&total) {
            // Only the latest log is kept, so that the logs of several totals don't fill the memory.
            self.logs = BTreeMap::from_iter([(total, Log::of(total).map_err(failed)?)]);
        }
        let log = self.logs.get_mut(&total).expect("made above");
        let is_packed = !commands.is_empty();
        if is_packed && log.packed.is_none() {
            log.packed = Some(log.compress(interrupt)?);
        }
        let file = log.packed.as_ref().filter(|_| is_packed).unwrap_or(&log.plain);
        let file = Some(reopen(file).map_err(failed)?);
        Ok(FilterInput { commands, file, bytes: Some(log.bytes), reader: None })
    }
}

impl Log {
    /// A log of as many whole lines as fit into `total` bytes, at least one.
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

    fn compress(&self, interrupt: &Interrupt) -> Result<File, RunError> {
        let failed = |error: io::Error| RunError::Failed(format!("gzip could not be started: {}", explained(&error)));
        let packed = unnamed_file("log.gz").map_err(failed)?;
        let streams = (reopen(&self.plain).map_err(failed)?.into(), packed.try_clone().map_err(failed)?.into());
        let words = ["gzip", "-1", "-c"].map(str::to_owned);
        let mut gzip = Child::start_foreign("gzip", &words, streams, None, Begin::AtOnce).map_err(failed)?;
        gzip.wait(Instant::now() + COMPRESSION_TIMEOUT, Some(interrupt))?;
        gzip.succeeded().map(|_| packed)
    }
}

/// Creates an unnamed file in memory. `what` is its name in /proc.
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
        assert_eq!(Feed::ThroughputSh.line_bytes(), bytes(PUBLISHED_LINE));
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
