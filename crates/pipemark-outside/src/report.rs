//! What an end reports after a run.

use pipemark_model::{Cpu, EndStats, counted};

/// The largest report in bytes. One with a full histogram of times is far smaller.
const MAX_BYTES: usize = 8 << 20;

/// The report of one end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EndReport {
    /// Whether the end is a sender.
    pub sender: bool,
    /// The counts in the window. `bytes_in_all` is what a sender sent or a receiver received.
    pub stats: EndStats,
    /// Bytes generated.
    pub written: u64,
    /// Bytes received, including those of round trips.
    pub received: u64,
    /// Bytes compared with what was expected.
    pub checked: u64,
    /// What was wrong first; `None` if nothing was.
    pub fault: Option<String>,
    /// The round trips that were due in the window, at a fixed rate.
    pub due: Option<u64>,
    /// The times of round trips in nanoseconds, each with its number of occurrences.
    pub trips: Vec<(u64, u64)>,
}

/// The lines that an end has written so far.
#[derive(Debug, Default)]
pub(crate) struct ReportLines {
    bytes: Vec<u8>,
    /// The end's name exists, so that the other end may connect.
    pub bound: bool,
    /// The end is connected.
    pub ready: bool,
    /// The lines of the report so far.
    report: Vec<(String, u64)>,
    /// The report is complete.
    pub ended: bool,
}

impl ReportLines {
    /// Takes more bytes.
    ///
    /// # Errors
    /// If a line has another form.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.bytes.extend_from_slice(bytes);
        let whole = self.bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
        if self.bytes.len() > MAX_BYTES || self.report.len() > MAX_BYTES / 16 {
            return Err("its report is too long".to_owned());
        }
        let lines: Vec<u8> = self.bytes.drain(..whole).collect();
        for line in String::from_utf8_lossy(&lines).lines() {
            match line {
                "bound" => self.bound = true,
                "ready" => (self.bound, self.ready) = (true, true),
                "end" => self.ended = true,
                _ => self.take_line(line).ok_or_else(|| format!("it wrote an unknown line: {}", shown(line)))?,
            }
        }
        Ok(())
    }

    fn take_line(&mut self, line: &str) -> Option<()> {
        let (key, value) = line.split_once(' ')?;
        // A time of a round trip has two numbers. Each is a line of its own here.
        for (key, value) in match value.split_once(' ') {
            Some((one, other)) if key == "trip" => vec![("trip", one), ("times", other)],
            _ => vec![(key, value)],
        } {
            self.report.push((key.to_owned(), value.parse().ok()?));
        }
        Some(())
    }

    /// The report of an end with blocks of `block` bytes, which was allowed to run on `pinned`.
    ///
    /// # Errors
    /// If a count is missing.
    pub(crate) fn report(&self, sender: bool, block: u64, pinned: Option<Cpu>) -> Result<EndReport, String> {
        let optional = |key: &str| self.report.iter().find(|(known, _)| known == key).map(|(_, value)| *value);
        let count = |key: &str| optional(key).ok_or_else(|| format!("its report has no line '{key}'"));
        let received = count("received")?;
        let calls = count("calls")?;
        let bytes = count("bytes")?;
        let mut cpus: Vec<Cpu> = self.values("cpu").filter_map(|cpu| u16::try_from(cpu).ok()).map(Cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let stats = EndStats {
            bytes,
            ns: count("ns")?,
            calls,
            bytes_per_call: (calls > 0).then(|| bytes as f64 / calls as f64),
            bytes_in_all: if sender { count("sent")?.saturating_mul(block) } else { received },
            user_ns: optional("user-ns").unwrap_or(0),
            sys_ns: optional("system-ns").unwrap_or(0),
            voluntary_switches: optional("voluntary").unwrap_or(0),
            involuntary_switches: optional("involuntary").unwrap_or(0),
            minor_faults: optional("minor-faults").unwrap_or(0),
            major_faults: optional("major-faults").unwrap_or(0),
            pinned: pinned.map(|cpu| vec![cpu]),
            cpus,
            ceiling: optional("ceiling").map(|ceiling| ceiling as f64),
            max_rss: optional("max-rss").filter(|&bytes| bytes > 0),
            ..EndStats::default()
        };
        Ok(EndReport {
            sender,
            stats,
            written: optional("written").unwrap_or(0),
            received,
            checked: optional("checked").unwrap_or(0),
            fault: fault(["wrong", "found", "size"].map(|key| optional(key).unwrap_or(0)), block),
            due: optional("due"),
            trips: self.values("trip").zip(self.values("times")).collect(),
        })
    }

    fn values(&self, key: &'static str) -> impl Iterator<Item = u64> {
        self.report.iter().filter(move |(known, _)| known == key).map(|(_, value)| *value)
    }
}

/// The beginning of a line for an error message.
fn shown(line: &str) -> String {
    line.chars().take(60).collect::<String>().escape_default().to_string()
}

/// A sentence about the first wrong block. `wrong` is its number plus 1, or 0. `found` is the number plus 1 of the block
/// that arrived in its place, or 0 if the bytes are of no block. `size` is the size plus 1 of the message that arrived,
/// or 0 if it is that of a block.
fn fault([wrong, found, size]: [u64; 3], block: u64) -> Option<String> {
    let number = wrong.checked_sub(1)?;
    let position = number.saturating_mul(block);
    if let Some(size) = size.checked_sub(1) {
        let size = counted(usize::try_from(size).unwrap_or(usize::MAX), "byte");
        return Some(format!(
            "block {number} is wrong: a message of {size} came in its place; the link keeps no boundaries"
        ));
    }
    Some(match found.checked_sub(1) {
        Some(found) if found > number => format!("block {number} is wrong: block {found} came in its place"),
        Some(found) if found < number => format!("block {number} is wrong: block {found} came again"),
        _ => format!("block {number}, from byte {position} on, is wrong: bytes were changed or are missing"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "ready\nsent 3\nreceived 0\nwritten 192\nchecked 0\nwrong 0\nbytes 128\nns 1000\ncalls 2\n\
                          user-ns 7\ncpu 1\ncpu 0\nceiling 5\ntrip 2100 4\ntrip 9 1\nend\n";

    #[test]
    fn a_report_may_arrive_in_any_pieces() {
        for piece in [1, 7, 1000] {
            let mut lines = ReportLines::default();
            for bytes in REPORT.as_bytes().chunks(piece) {
                lines.take(bytes).unwrap();
            }
            assert!(lines.ready && lines.bound && lines.ended);
            let report = lines.report(true, 64, Some(Cpu(1))).unwrap();
            assert_eq!((report.stats.bytes_in_all, report.stats.user_ns, report.fault.clone()), (192, 7, None));
            assert_eq!(report.stats.cpus, [Cpu(0), Cpu(1)]);
            assert_eq!(report.trips, [(2100, 4), (9, 1)]);
        }
    }

    #[test]
    fn wrong_lines_are_refused() {
        for (text, words) in [("sent x\n", "unknown line: sent x"), ("\x1b[2J\n", "unknown line: \\u{1b}")] {
            assert!(ReportLines::default().take(text.as_bytes()).unwrap_err().contains(words));
        }
        let mut lines = ReportLines::default();
        lines.take(b"sent 1\nend\n").unwrap();
        assert!(lines.report(true, 8, None).unwrap_err().contains("no line 'received'"));
        assert!(ReportLines::default().take(&vec![b'x'; MAX_BYTES + 1]).is_err());
    }

    #[test]
    fn faults_say_what_came() {
        let words = |wrong, found| fault([wrong, found, 0], 64).unwrap_or_default();
        assert_eq!(words(0, 0), "");
        assert!(words(6, 0).contains("block 5, from byte 320 on"));
        assert!(words(6, 7).contains("block 6 came in its place"));
        assert!(words(6, 5).contains("block 4 came again"));
        assert!(fault([6, 0, 33], 64).unwrap().contains("block 5 is wrong: a message of 32 bytes"));
    }
}
