//! Verifies the bytes that arrived. Each byte is compared with the expected byte for its position.

use pipeio_harness::pattern::{Checker, Pattern, Rule};

use crate::content::{Payload, PayloadStream};

/// A fault in the first `START_BYTES` bytes indicates different content. A later fault indicates a missing piece.
const START_BYTES: u64 = 8;

fn other_content(position: u64) -> String {
    format!("byte {position} is wrong: it was changed, or the content or seed differs")
}

/// Compares a stream with its content, piece by piece as it arrives.
#[derive(Debug)]
pub struct Check {
    expected: Expected,
    position: u64,
    fault: Option<String>,
}

#[derive(Debug)]
enum Expected {
    /// Determines where a misplaced piece belongs.
    Pattern(Checker),
    /// Generates the expected bytes a second time.
    Stream(Box<PayloadStream>),
}

impl Check {
    /// A check that begins at the first byte of `content`, of which `total` bytes were generated.
    pub fn new(content: &Payload, total: u64) -> Check {
        let expected = match content {
            Payload::Pattern { seed } => {
                Expected::Pattern(Checker::new(Pattern::endless(Rule::Position { seed: *seed })))
            }
            other => Expected::Stream(Box::new(other.stream_of(total))),
        };
        Check { expected, position: 0, fault: None }
    }

    /// Compares the next bytes. After the first fault, further bytes are ignored.
    pub fn compare(&mut self, bytes: &[u8]) {
        if self.fault.is_some() {
            return;
        }
        match &mut self.expected {
            Expected::Pattern(checker) => {
                checker.check(bytes);
                self.fault = checker.fault().map(|fault| match fault.origin {
                    None if fault.position < START_BYTES => other_content(fault.position),
                    _ => fault.to_string(),
                });
            }
            Expected::Stream(stream) => {
                let mut rest = bytes;
                while !rest.is_empty() {
                    let expected = stream.next(rest.len());
                    if expected.is_empty() {
                        // More bytes arrived than were generated. The sink counts them.
                        break;
                    }
                    let (found, after) = rest.split_at(expected.len());
                    if found != expected {
                        let same = found.iter().zip(expected).take_while(|(found, expected)| found == expected).count();
                        let position = self.position + (bytes.len() - rest.len() + same) as u64;
                        let (found, expected) = (found[same], expected[same]);
                        self.fault = Some(match position < START_BYTES {
                            true => other_content(position),
                            false => {
                                format!("byte {position} is wrong: {found:#04x} instead of {expected:#04x}")
                            }
                        });
                        return;
                    }
                    rest = after;
                }
            }
        }
        self.position += bytes.len() as u64;
    }

    /// The first fault, as a sentence without a full stop; `None` if there was none.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(content: &Payload, len: usize) -> Vec<u8> {
        let mut stream = content.stream();
        let mut bytes = Vec::new();
        while bytes.len() < len {
            bytes.extend(stream.next(len - bytes.len()));
        }
        bytes
    }

    fn check(content: &Payload, bytes: &[u8]) -> Option<String> {
        let mut check = Check::new(content, u64::MAX);
        bytes.chunks(1000).for_each(|piece| check.compare(piece));
        check.fault().map(str::to_owned)
    }

    #[test]
    fn the_first_wrong_byte_is_named() {
        for word in ["line:abc", "log", "counted", "random", "pattern"] {
            let content = Payload::parse(word.into()).unwrap();
            let mut bytes = sent(&content, 300_000);
            assert_eq!(check(&content, &bytes), None, "{word}");
            bytes[200_003] ^= 1;
            let fault = check(&content, &bytes).expect("a changed byte is detected");
            assert!(fault.starts_with("byte 200003 is wrong: "), "{word}: {fault}");
        }
    }

    #[test]
    fn another_seed_is_not_reported_as_a_lost_piece() {
        for (sent_as, expected) in [("pattern:1", "pattern:3"), ("pattern:70000", "pattern"), ("random:2", "random:3")]
        {
            let [content, other] = [sent_as, expected].map(|word| Payload::parse(word.into()).unwrap());
            let fault = check(&other, &sent(&content, 100_000)).expect("another seed is detected");
            assert!(fault.contains("seed differs"), "{sent_as}: {fault}");
        }
    }

    #[test]
    fn a_lost_piece_is_reported_with_its_place() {
        let content = Payload::Pattern { seed: 6 };
        let mut bytes = sent(&content, 300_000);
        bytes.drain(100_000..108_192);
        let fault = check(&content, &bytes).expect("a lost piece is detected");
        // A word has the same low byte as the word 8192 bytes later, so the first wrong byte is the next one.
        assert_eq!(fault, "byte 100001 is wrong: the 8192 bytes before byte 108193 are missing or came later");
    }
}
