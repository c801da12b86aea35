//! Lines of a web server's log (Apache's combined format), generated from a seed. A line has about 100 to 250 bytes.
//! Their repetition and variety are such that a log compresses to a tenth of its size.

use std::io::Write;
use std::sync::LazyLock;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// 2024-01-01 00:00:00 UTC.
const FIRST_SECOND: i64 = 1_704_067_200;

static PATHS: LazyLock<Vec<&str>> = LazyLock::new(|| include_str!("paths.txt").lines().collect());

static AGENTS: LazyLock<Vec<&str>> = LazyLock::new(|| include_str!("agents.txt").lines().collect());

/// HTTP statuses. Each occurs as often as in the list.
const STATUSES: [u16; 16] = [200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 206, 301, 304, 304, 404, 500];

/// The length of the longest line, in bytes. The last line of a log of fixed size may be longer.
pub(super) const MAX_LINE: usize = 300;

/// Makes the last line, which begins at `start`, `length` bytes long. If the line is too short, the browser's name is
/// lengthened. If it is too long, it is cut.
pub(super) fn fit(bytes: &mut Vec<u8>, start: usize, length: usize) {
    let end = bytes.len();
    let wanted = start + length;
    if wanted > end {
        let padding = b" Example/1.0".iter().copied().cycle().take(wanted - end);
        bytes.splice(end - 2..end - 2, padding);
    } else {
        bytes.truncate(wanted);
        bytes[wanted - 1] = b'\n';
    }
}

/// An endless log.
#[derive(Debug, Clone)]
pub(super) struct LogLines {
    generator: Box<Xoshiro256PlusPlus>,
    second: i64,
    /// `second` in the log's format. It is cached, because most lines have the same second as the previous line.
    time: String,
}

impl LogLines {
    pub(super) fn new(seed: u64) -> LogLines {
        let generator = Box::new(Xoshiro256PlusPlus::seed_from_u64(seed));
        LogLines { generator, second: FIRST_SECOND, time: format_time(FIRST_SECOND) }
    }

    /// Appends the next line.
    pub(super) fn append(&mut self, bytes: &mut Vec<u8>) {
        let (first, second) = (self.generator.next_u64(), self.generator.next_u64());
        // Each choice uses sixteen bits of the word, more than any list needs.
        let choice = |word: u64, number: u32, of: usize| ((word >> (16 * number)) & 0xffff) as usize % of;
        if choice(first, 0, 16) == 0 {
            self.second += 1;
            self.time = format_time(self.second);
        }
        let path = PATHS[choice(first, 1, PATHS.len())];
        let status = STATUSES[choice(first, 2, STATUSES.len())];
        let agent = AGENTS[choice(first, 3, AGENTS.len())];
        let method = if choice(second, 0, 8) == 0 { "POST" } else { "GET" };
        // TEST-NET-3, the addresses reserved for examples (RFC 5737).
        let host = choice(second, 1, 254) + 1;
        let size = if status == 304 { 0 } else { choice(second, 2, 60_000) };
        write!(bytes, "203.0.113.{host} - - [{}] \"{method} {path}", self.time).expect("writing to a Vec cannot fail");
        if path.ends_with(['=', '/']) && path.len() > 1 {
            write!(bytes, "{}", choice(second, 3, 10_000)).expect("writing to a Vec cannot fail");
        }
        let referrer = if choice(first, 0, 4) == 1 { "-" } else { "https://www.example.com/" };
        writeln!(bytes, " HTTP/1.1\" {status} {size} \"{referrer}\" \"{agent}\"")
            .expect("writing to a Vec cannot fail");
    }
}

fn format_time(second: i64) -> String {
    match jiff::Timestamp::from_second(second) {
        Ok(time) => time.strftime("%d/%b/%Y:%H:%M:%S +0000").to_string(),
        // The log reaches the year 9999 after about 500 TiB.
        Err(_) => "31/Dec/9999:23:59:59 +0000".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_log_for_ever() {
        let mut bytes = Vec::new();
        let mut lines = LogLines::new(1);
        for _ in 0..2000 {
            lines.append(&mut bytes);
        }
        let text = String::from_utf8(bytes).unwrap();
        // Stored files are verified against this format, so the format must not change by accident.
        assert_eq!(text.lines().next().unwrap(), FIRST);
        assert!(text.lines().all(|line| (80..MAX_LINE).contains(&line.len())));
        assert!(text.contains("[01/Jan/2024:00:01:"), "time advances");
    }

    const FIRST: &str = r#"203.0.113.110 - - [01/Jan/2024:00:00:00 +0000] "GET /search?q=pipe+throughput&page=8962 HTTP/1.1" 500 16690 "https://www.example.com/" "Mozilla/5.0 (compatible; ExampleBot/2.1; +http://www.example.com/bot.html)""#;
}
