//! The content of a pipeline: the bytes that `gen` writes and `sink` expects. The same description always gives the
//! same bytes, regardless of the sizes in which they are read.

mod check;
mod log;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use pipeio_harness::pattern::{Pattern, Rule};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

pub use check::Check;
use log::{LogLines, MAX_LINE};

/// The number of bytes generated at a time. The chunk and the pipe's pages together fit into a core's second-level
/// cache.
const CHUNK: usize = 128 << 10;

/// The default seed.
const SEED: u64 = 1;

/// The content of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// One line repeated, as written by yes(1). It is stored without the newline.
    Line(Vec<u8>),
    /// Lines of a web server's log.
    Log {
        /// The seed. Logs with different seeds differ.
        seed: u64,
    },
    /// The bytes 0, 1, … 255, repeated.
    Counted,
    /// Words that depend on their position, so that the original position of a misplaced piece can be determined.
    Pattern {
        /// The seed. Streams with different seeds differ.
        seed: u64,
    },
    /// Incompressible bytes from the generator xoshiro256++.
    Random {
        /// The seed. Streams with different seeds differ.
        seed: u64,
    },
}

impl Payload {
    /// Parses `line`, `line:TEXT`, `log:SEED`, `counted` and so on. TEXT may be any bytes.
    ///
    /// # Errors
    /// A message that lists the valid forms.
    pub fn parse(word: OsString) -> Result<Payload, String> {
        let bytes = word.as_bytes();
        let (kind, rest) = match bytes.iter().position(|&byte| byte == b':') {
            Some(colon) => (&bytes[..colon], Some(&bytes[colon + 1..])),
            None => (bytes, None),
        };
        let shown = word.to_string_lossy();
        let seed = || {
            let Some(rest) = rest else { return Ok(SEED) };
            str::from_utf8(rest)
                .ok()
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| format!("'{shown}' has no usable seed; write a whole number after the colon, such as 7"))
        };
        match kind {
            b"line" => Ok(Payload::Line(rest.unwrap_or(b"y").to_vec())),
            b"log" => Ok(Payload::Log { seed: seed()? }),
            b"counted" if rest.is_none() => Ok(Payload::Counted),
            b"pattern" => Ok(Payload::Pattern { seed: seed()? }),
            b"random" => Ok(Payload::Random { seed: seed()? }),
            _ => Err(format!(
                "'{shown}' is not a valid content; use line, line:TEXT, log, counted, pattern or random; log, pattern and \
                 random take a seed, as in log:7"
            )),
        }
    }

    /// The endless stream from its first byte.
    pub fn stream(&self) -> PayloadStream {
        self.stream_of(u64::MAX)
    }

    /// The first `total` bytes. The last line of a log is lengthened to end at byte `total`. Other contents are cut.
    pub fn stream_of(&self, total: u64) -> PayloadStream {
        let (source, chunk) = match self {
            Payload::Line(line) => {
                let line = [&line[..], b"\n"].concat();
                (PayloadSource::Repeated, line.repeat((CHUNK / line.len()).max(1)))
            }
            Payload::Counted => (PayloadSource::Repeated, (0..CHUNK).map(|at| at as u8).collect()),
            Payload::Log { seed } => (PayloadSource::Log { lines: LogLines::new(*seed), left: total }, Vec::new()),
            Payload::Pattern { seed } => (PayloadSource::Pattern { seed: *seed, position: 0 }, Vec::new()),
            Payload::Random { seed } => {
                (PayloadSource::Random(Box::new(Xoshiro256PlusPlus::seed_from_u64(*seed))), Vec::new())
            }
        };
        PayloadStream { source, chunk, at: 0 }
    }
}

/// An endless sequence of bytes.
#[derive(Debug, Clone)]
pub struct PayloadStream {
    source: PayloadSource,
    chunk: Vec<u8>,
    /// The number of bytes of the chunk that were already returned.
    at: usize,
}

#[derive(Debug, Clone)]
enum PayloadSource {
    /// Repeats the chunk.
    Repeated,
    Log {
        lines: LogLines,
        /// Bytes until the end of the stream.
        left: u64,
    },
    Pattern {
        seed: u64,
        position: u64,
    },
    Random(Box<Xoshiro256PlusPlus>),
}

impl PayloadStream {
    /// The next bytes, at least one and at most `limit`. `limit` must be at least one.
    pub fn next(&mut self, limit: usize) -> &[u8] {
        if self.at == self.chunk.len() {
            self.refill();
        }
        let start = self.at;
        self.at = self.chunk.len().min(start.saturating_add(limit));
        &self.chunk[start..self.at]
    }

    /// The bytes that the stream repeats; `None` if it doesn't repeat.
    pub fn repeated(&self) -> Option<&[u8]> {
        matches!(self.source, PayloadSource::Repeated).then_some(&self.chunk)
    }

    fn refill(&mut self) {
        self.at = 0;
        match &mut self.source {
            PayloadSource::Repeated => {}
            PayloadSource::Log { lines, left } => {
                self.chunk.clear();
                while self.chunk.len() < CHUNK && *left > 0 {
                    let start = self.chunk.len();
                    lines.append(&mut self.chunk);
                    let length = (self.chunk.len() - start) as u64;
                    // If another line might not fit after this line, this line is the last.
                    if *left < length + MAX_LINE as u64 {
                        log::fit(&mut self.chunk, start, *left as usize);
                        *left = 0;
                    } else {
                        *left -= length;
                    }
                }
            }
            PayloadSource::Pattern { seed, position } => {
                self.chunk.resize(CHUNK, 0);
                Pattern::endless(Rule::Position { seed: *seed }).fill(*position, &mut self.chunk);
                *position += CHUNK as u64;
            }
            PayloadSource::Random(generator) => {
                self.chunk.resize(CHUNK, 0);
                generator.fill_bytes(&mut self.chunk);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use proptest::prelude::*;

    use super::*;

    fn take(content: &Payload, pieces: impl IntoIterator<Item = usize>) -> Vec<u8> {
        let mut stream = content.stream();
        pieces.into_iter().flat_map(|limit| stream.next(limit).to_vec()).collect()
    }

    fn parse(word: &str) -> Result<Payload, String> {
        Payload::parse(word.into())
    }

    #[test]
    fn a_log_of_any_size_ends_with_a_whole_line() {
        let log = parse("log:7").unwrap();
        for total in (1..=2000).chain([CHUNK as u64 - 1, CHUNK as u64, CHUNK as u64 + 1, 1_000_003]) {
            let mut stream = log.stream_of(total);
            let mut bytes = Vec::new();
            while (bytes.len() as u64) < total {
                bytes.extend_from_slice(stream.next(total as usize - bytes.len()));
            }
            assert_eq!((bytes.len() as u64, bytes.last()), (total, Some(&b'\n')), "{total}");
            let text = String::from_utf8(bytes).unwrap();
            let endless = String::from_utf8(take(&log, [text.len()])).unwrap_or_default();
            let whole = text.lines().filter(|line| line.ends_with('"')).count();
            assert!(total < 300 || whole == text.lines().count(), "{total}: {:?}", text.lines().last());
            // All lines but the last equal those of the endless log.
            let before = text.trim_end().rfind('\n').unwrap_or(0);
            assert!(total as usize > CHUNK || text[..before] == endless[..before], "{total}");
        }
    }

    #[test]
    fn content_names_are_parsed() {
        for (word, payload) in [
            ("line", Payload::Line(b"y".to_vec())),
            ("line:", Payload::Line(Vec::new())),
            ("line:a:b", Payload::Line(b"a:b".to_vec())),
            ("log", Payload::Log { seed: 1 }),
            ("log:7", Payload::Log { seed: 7 }),
            ("counted", Payload::Counted),
            ("pattern:3", Payload::Pattern { seed: 3 }),
            ("random:0", Payload::Random { seed: 0 }),
        ] {
            assert_eq!(parse(word), Ok(payload));
        }
        for word in ["", "lines", "counted:1", "log:", "log:x", "random:-1"] {
            assert!(parse(word).is_err(), "{word}");
        }
        let bytes = OsString::from_vec(b"line:\xff".to_vec());
        assert_eq!(Payload::parse(bytes), Ok(Payload::Line(vec![0xff])));
    }

    #[test]
    fn a_line_is_repeated_whatever_its_length() {
        assert!(take(&Payload::Line(Vec::new()), [10]) == b"\n".repeat(10));
        let long = vec![b'x'; CHUNK + 1];
        let expected = [&long[..], b"\n", &long[..], b"\n"].concat();
        assert!(take(&Payload::Line(long), [usize::MAX, usize::MAX]) == expected);
    }

    proptest! {
        #[test]
        fn a_stream_is_the_same_however_it_is_cut(
            word in prop_oneof![Just("line:abc"), Just("log:3"), Just("counted"), Just("pattern:3"), Just("random:3")],
            pieces in prop::collection::vec(1usize..100_000, 1..12),
        ) {
            let content = parse(word).unwrap();
            let cut = take(&content, pieces);
            let mut whole = content.stream();
            let mut expected: Vec<u8> = Vec::new();
            while expected.len() < cut.len() {
                expected.extend(whole.next(cut.len() - expected.len()));
            }
            prop_assert!(cut == expected);
        }
    }
}
